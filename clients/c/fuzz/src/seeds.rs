//! The first inputs: for each vector the way from the specification to an estimate, and ways through the noise.

use std::path::Path;

use crate::mechanisms::MECHANISMS;
use crate::vectors::VECTORS;
use crate::world::Call;

/// Writes the seeds, a file each.
pub(crate) fn write(folder: &Path) -> std::io::Result<()> {
    for (index, vector) in VECTORS.iter().enumerate() {
        let at = index as u8;
        let mut seed = vec![Call::Protocol as u8, at, 0, 0, 0, 0];
        // protocol, question, period, out, the two texts, and the specification
        seed.extend([Call::About as u8, 0, 0, 0, 0, 0, 0, 0, 0, Call::Free as u8, 0]);
        if !vector.memo.is_empty() {
            seed.extend([Call::MemoFromBytes as u8, at, 0, 0, 0, 0]);
            seed.extend([Call::WithMemo as u8, 0, 0, 0, 0, 0]);
        }
        seed.extend([Call::Generator as u8, at, 0, 0, 0, 0, 0, 0]);
        for generator in [&[0][..], &[255, 0]] {
            for form in 0..2 {
                // protocol, generator, n (or that the memo's people are meant), form, threads, length, kind, out
                seed.extend([Call::Perturb as u8, 0]);
                seed.extend(generator);
                seed.extend([8, form, 0, 0, 0, 0, 0]);
                let (values, after) = if vector.takes_texts {
                    ([7, b'p', b'l', b'u', b'm', b's'].repeat(8), 3)
                } else {
                    ([0, 1].repeat(8), 1)
                };
                seed.extend(values);
                seed.extend(vec![0; after]);
            }
        }
        seed.extend([Call::Accumulator as u8, 0, 0]);
        seed.extend([Call::AddMessages as u8, 0, at, 8]);
        (0..8).for_each(|message| seed.extend([message, 0]));
        seed.extend([0, 0, 0, 1]);
        seed.extend([Call::AccumulatorFromBytes as u8, at, 0, 0, 0, 0, 0]);
        seed.extend([Call::Merge as u8, 0, 1, Call::Counts as u8, 0, 0, 0, Call::Estimate as u8, 1, 0, 0, 0, 0]);
        seed.extend([1, 0, 0, 0]); // the mean
        seed.extend([Call::ToBytes as u8, 1, 0, 0, 0, 0, 0, Call::ToBytes as u8, 0, 2, 0, 0, 0, 0]);
        seed.extend([Call::Facts as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        seed.extend([Call::Free as u8, 0, Call::Free as u8, 241, Call::Free as u8, 1]);
        std::fs::write(folder.join(format!("{index:02}-{}", vector.name)), seed)?;

        let mut seed = vec![Call::Protocol as u8, at, 0, 0, 0, 0, Call::Accumulator as u8, 0, 0];
        seed.extend([Call::AddMessages as u8, 0, at, 8]);
        (0..8).for_each(|message| seed.extend([message, 0]));
        seed.extend([0, 0, 0, 1]);
        for which in 0..5 {
            // accumulator, n, out, first, last, text, offsets, which; and then a share, or memory and the level
            seed.extend([Call::EstimateOthers as u8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, b'a', 0, 0, which]);
            seed.extend(if which < 3 { &[][..] } else { &[0, 0, 127] });
            seed.extend([0, 0, 0]); // the attribute
        }
        std::fs::write(folder.join(format!("{index:02}-{}-estimates", vector.name)), seed)?;
    }
    for choice in 0..MECHANISMS.len() as u8 {
        let mut seed = vec![Call::MemoNew as u8, 0, 2, 0];
        for sampler in 0..6 {
            // which, scale, the sampler that is truncated, radius, out
            seed.extend([Call::Sampler as u8, 240, sampler, 7 + choice, 0, 0, 3, 0]);
        }
        seed.extend([Call::Fill as u8, 0, 0, 100, 1, 0]);
        seed.extend([Call::Generator as u8, 4 + choice, 0, 0, 0, 0, 0, 0, Call::Fill as u8, 0, 255, 0, 2, 1, 0]);
        // which, whole, parties, epsilon, delta, sensitivity, granularity, out
        seed.extend([Call::Mechanism as u8, 240, choice, 0, 5, 0, 5, 7, 0, 7, 0, 0]);
        seed.extend([Call::Release as u8, 0, 0, 20, 1, u8::from(choice > 1)]);
        seed.extend([0; 41]);
        for asks_radius in [0, 240] {
            seed.extend([Call::Error as u8, 0, 0, 200, 0, 3, 0, asks_radius]);
        }
        seed.extend([Call::Free as u8, 0]);
        std::fs::write(folder.join(format!("noise-{choice}")), seed)?;
    }
    Ok(())
}
