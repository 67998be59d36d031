//! Samples that a [`NoiseKey`] brings back; see `rng/noise_key.rs`.

use super::sampler::Sampler;
use crate::error::Error;
use crate::rng::{BLOCK, NoiseKey, Ticket};
use crate::threads::{self, NOISE, Pause, check_threads};

/// The samples that a ticket may have: so many blocks have words of their own.
const MAX_SAMPLES: u64 = (BLOCK as u64) << 32;

/// A distribution whose samples can be brought back.
pub trait Keyed: Sampler {
    /// The kind of distribution and its exact parameters, in a form that no other distribution has.
    fn identity(&self) -> Vec<u8>;

    /// Fills `out` with the samples of a fresh ticket from number `start` on, to be released, on up to `threads` threads;
    /// calls `pause` between pieces of work. The samples are the same in every division of a range, on every CPU.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the ticket is not fresh or of another key, for samples from 2^44 on, and for no threads;
    /// then nothing has been drawn, and a fresh ticket stays fresh. The error of `pause`; then `out` has
    /// the default value where it was written.
    fn draw_keyed(
        &self,
        key: &NoiseKey,
        ticket: &Ticket,
        start: u64,
        out: &mut [Self::Item],
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<(), Error> {
        check(key, ticket, start, out.len(), threads)?;
        ticket.take()?;
        fill(self, key, ticket, start, out, threads, pause)
    }

    /// Fills `out` with the samples of any ticket as [`Keyed::draw_keyed`] does. The ticket is not fresh afterwards.
    ///
    /// # Errors
    /// As for [`Keyed::draw_keyed`], but for tickets that are not fresh.
    fn regenerate(
        &self,
        key: &NoiseKey,
        ticket: &Ticket,
        start: u64,
        out: &mut [Self::Item],
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<(), Error> {
        check(key, ticket, start, out.len(), threads)?;
        let _was_fresh = ticket.take();
        fill(self, key, ticket, start, out, threads, pause)
    }
}

/// Checks that a ticket of this key has `count` samples from number `start` on, and the number of threads.
fn check(key: &NoiseKey, ticket: &Ticket, start: u64, count: usize, threads: usize) -> Result<(), Error> {
    check_threads(threads)?;
    if start.checked_add(count as u64).is_none_or(|end| end > MAX_SAMPLES) {
        let given = format!("{start}, for {count} samples");
        return Err(Error::parameter("start", given, "such that all samples have numbers below 2**44"));
    }
    key.check(ticket)
}

fn fill<S: Keyed + ?Sized>(
    sampler: &S,
    key: &NoiseKey,
    ticket: &Ticket,
    start: u64,
    out: &mut [S::Item],
    threads: usize,
    pause: &mut Pause<'_>,
) -> Result<(), Error> {
    let stream = key.stream(ticket, &sampler.identity());
    threads::in_parts(out, NOISE, threads, pause, |first, part| {
        stream.fill(start + first as u64, part, |rng, block| sampler.fill_with(block, rng))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{RealScale, Scale};
    use crate::samplers::{DiscreteGaussian, DiscreteLaplace, Geometric, GridNoise, IntegerNoise};
    use crate::threads::go_on;

    fn key() -> NoiseKey {
        NoiseKey::from_secret_bytes(&core::array::from_fn::<u8, 32, _>(|i| i as u8)).unwrap()
    }

    /// The ticket of the domain `test`, step 7 and a fixed nonce.
    fn ticket() -> Ticket {
        let mut bytes = [&b"DPNT\x01"[..], &key().fingerprint(), &7u64.to_le_bytes(), &[0xa5; 16], b"test"].concat();
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        Ticket::from_bytes(&bytes).unwrap()
    }

    fn samples<S: Keyed>(sampler: &S, start: u64, count: usize, threads: usize) -> Vec<S::Item> {
        let mut out = vec![S::Item::default(); count];
        sampler.regenerate(&key(), &ticket(), start, &mut out, threads, &mut go_on).unwrap();
        out
    }

    fn checksum<S: Keyed>(sampler: &S, bits: impl Fn(S::Item) -> u64) -> u32 {
        let samples = samples(sampler, 4000, 5000, 1).into_iter();
        samples.fold(0, |crc, sample| crc32c::crc32c_append(crc, &bits(sample).to_le_bytes()))
    }

    /// One output on every architecture, for ever: a change of these numbers takes another label.
    #[test]
    fn keyed_samples_are_stable() {
        for (b, expected) in [
            (0.3, [0x59aa_c4f3, 0xa2cb_b75b, 0xdb55_b423, 0xfd2d_05e4, 0x1539_f7fa]),
            (30.0, [0x43d4_1737, 0x3a70_3431, 0x3617_a485, 0x3d21_13db, 0x607d_8235]),
            (1e3, [0x2e6c_814a, 0xeb27_c449, 0x54e2_1968, 0x6614_63d1, 0x7df7_3783]),
            (1e9, [0x157d_4d35, 0x5aa5_aafa, 0x0fd2_c40d, 0x8502_6df1, 0xaacc_0b4f]),
        ] {
            let (scale, real) = (Scale::from_f64(b).unwrap(), RealScale::from_f64(b).unwrap());
            let integers = |noise: IntegerNoise| checksum(&noise, i64::cast_unsigned);
            let reals = |noise: Result<GridNoise, _>| checksum(&noise.unwrap(), f64::to_bits);
            let found = [
                integers(DiscreteLaplace::new(scale).into()),
                integers(DiscreteGaussian::new(scale).unwrap().into()),
                integers(Geometric::new(scale).into()),
                reals(GridNoise::laplace(real, None)),
                reals(GridNoise::gaussian(real, None)),
            ];
            assert_eq!(found, expected, "{b}: {found:#x?}");
        }
    }

    #[test]
    fn any_range_on_any_number_of_threads_is_a_part_of_the_whole() {
        let noise: IntegerNoise = DiscreteGaussian::new(Scale::from_f64(10.0).unwrap()).unwrap().into();
        let whole = samples(&noise, 0, 100_000, 1);
        for threads in [1, 2, 3] {
            assert_eq!(samples(&noise, 0, 100_000, threads), whole, "{threads}");
        }
        for (start, end) in [(0, 1), (4095, 4097), (1, 99_999), (50_000, 50_000), (8192, 12_288)] {
            assert_eq!(samples(&noise, start, end - start as usize, 2), whole[start as usize..end], "{start} {end}");
        }
    }

    /// Noise of two scales, shapes or grids is not made of the same words.
    #[test]
    fn distributions_have_different_identities() {
        let scale = |b| Scale::from_f64(b).unwrap();
        let real = |b| RealScale::from_f64(b).unwrap();
        let integers: [IntegerNoise; 4] = [
            DiscreteLaplace::new(scale(2.0)).into(),
            DiscreteLaplace::new(scale(4.0)).into(),
            Geometric::new(scale(2.0)).into(),
            DiscreteGaussian::new(scale(2.0)).unwrap().into(),
        ];
        let reals = [(1.0, 0.5), (2.0, 1.0), (2.0, 0.5)].map(|(b, g)| GridNoise::laplace(real(b), Some(g)).unwrap());
        let identities: Vec<_> =
            integers.iter().map(Keyed::identity).chain(reals.iter().map(Keyed::identity)).collect();
        let distinct: std::collections::HashSet<_> = identities.iter().collect();
        assert_eq!(distinct.len(), identities.len());
    }

    #[test]
    fn samples_beyond_the_last_block_are_refused() {
        let noise: IntegerNoise = DiscreteLaplace::new(Scale::from_f64(1.0).unwrap()).into();
        assert_eq!(samples(&noise, MAX_SAMPLES - 1, 1, 1).len(), 1);
        for start in [MAX_SAMPLES, MAX_SAMPLES - 1, u64::MAX] {
            let mut out = [7; 2];
            let refused = noise.regenerate(&key(), &ticket(), start, &mut out, 1, &mut go_on).unwrap_err().to_string();
            assert!(refused.starts_with("start must be such that"), "{refused}");
            assert_eq!(out, [7; 2]);
        }
    }

    #[test]
    fn a_ticket_is_drawn_once_and_only_errors_leave_it_fresh() {
        let noise: IntegerNoise = DiscreteLaplace::new(Scale::from_f64(1.0).unwrap()).into();
        let (key, mut out) = (key(), [0; 2]);
        let ticket = key.ticket("", 0).unwrap();
        assert!(noise.draw_keyed(&key, &ticket, MAX_SAMPLES, &mut out, 1, &mut go_on).is_err());
        assert!(noise.draw_keyed(&key, &ticket, 0, &mut out, 0, &mut go_on).is_err());
        assert!(ticket.is_fresh());
        noise.draw_keyed(&key, &ticket, 0, &mut out, 1, &mut go_on).unwrap();
        assert!(noise.draw_keyed(&key, &ticket, 0, &mut out, 1, &mut go_on).is_err());
        let regenerated = key.ticket("", 0).unwrap();
        noise.regenerate(&key, &regenerated, 0, &mut out, 1, &mut go_on).unwrap();
        assert!(noise.draw_keyed(&key, &regenerated, 0, &mut out, 1, &mut go_on).is_err());
    }
}
