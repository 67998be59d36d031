//! The key stream. Generators poison their key themselves, when they are made.

use dpnoise_core::instruction_set;
use dpnoise_core::rng::{SecureRng, SeededRng, WordBuffer, fill_bytes};
use dpnoise_kernels::arch::aes::{self, Aes, Schedule};
use dpnoise_kernels::arch::chacha::{BLOCKS, chacha12};
use dpnoise_kernels::arch::chacha_keys::{PEOPLE, Words, chacha12_keys};
use rand_core::Rng;

use super::{Check, assert_secret, secret, table};

pub(super) fn checks() -> Vec<Check> {
    table(&[
        ("ChaCha12, the kernel", || {
            let key: [u32; 8] = secret(&[0x0123_4567; 8]).try_into().unwrap();
            let mut groups = [[0; 64 * BLOCKS]; 3];
            chacha12(instruction_set::current().unwrap(), &key, 7, &mut groups);
            assert_secret(groups.as_flattened());
        }),
        ("ChaCha12 under sixteen keys, the kernel", || {
            let key: [Words; 8] = secret(&[[0x0123_4567; PEOPLE]; 8]).try_into().unwrap();
            let input: [Words; 4] = secret(&[[7; PEOPLE]; 4]).try_into().unwrap();
            let mut groups = [[0; 64 * BLOCKS]; 3];
            chacha12_keys(instruction_set::current().unwrap(), &key, &input, &mut groups);
            assert_secret(groups.as_flattened());
        }),
        ("AES-256, the kernels", || {
            if let Some(aes) = Aes::of(instruction_set::current().unwrap()) {
                let (mut schedule, mut groups) = (Schedule::default(), [[0; 64 * BLOCKS]; 3]);
                aes::expand(aes, secret(&[0x0123_4567; 8]).first_chunk().unwrap(), &mut schedule);
                assert_secret(schedule.as_flattened());
                aes::fill(aes, &schedule, 7, 0, &mut groups);
                assert_secret(groups.as_flattened());
            }
        }),
        ("random bytes in requests of any length", || {
            for length in [1, 3, 8, 64, 1024, 5000] {
                let mut bytes = vec![0; length];
                fill_bytes(&mut SecureRng::new().unwrap(), &mut bytes).unwrap();
                assert_secret(&bytes);
            }
        }),
        ("random words", || {
            let mut rng = SeededRng::new(1).unwrap();
            assert_secret(&[rng.next_u32()]);
            assert_secret(&[rng.next_u64()]);
        }),
        ("random words from a store", || {
            let mut words = WordBuffer::new().unwrap();
            assert_secret(&words.take::<4>().unwrap());
            assert_secret(&[words.take::<8>().unwrap(), words.take::<8>().unwrap()]);
        }),
    ])
}
