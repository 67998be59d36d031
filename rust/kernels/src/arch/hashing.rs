//! How many reports of local hashing support each value.
//!
//! Value v is hashed to x = a v + b modulo a prime P, and the report supports v if x is in the report's class, an
//! interval of residues. A *walk* stands for a report: x minus the beginning of that interval, modulo P, is `start` for
//! v = 0, grows by `step` = a from value to value, and is in the interval when it is below `length`.
//!
//! Reports are public: nothing here needs to be constant-time.
#![allow(unsafe_code, reason = "functions compiled for one instruction set")]

use super::instruction_set::{InstructionSet, dispatch};
use super::lanes::{Lanes32, Vectors};

/// Vectors of reports that walk side by side: with their steps and lengths they fill 12 of 16 registers.
const VECTORS: usize = 4;

/// As many reports as one walk of the widest vectors takes.
pub const WALKERS: usize = VECTORS * 16;

/// Some walks, as little-endian 32-bit words below 2^31.
#[derive(Clone, Copy, Debug)]
pub struct Walks {
    /// Where they are for value 0, below the prime.
    pub starts: [[u8; 4]; WALKERS],
    /// What is added from value to value, below the prime.
    pub steps: [[u8; 4]; WALKERS],
    /// Below this, a value is supported.
    pub lengths: [[u8; 4]; WALKERS],
}

impl Walks {
    /// Walks that support nothing.
    pub const NONE: Self = Self { starts: [[0; 4]; WALKERS], steps: [[0; 4]; WALKERS], lengths: [[0; 4]; WALKERS] };
}

/// Adds to `counters[v]` how many of the walks are below their length at step v.
///
/// # Panics
/// For a prime of 2^31 or more.
pub fn add_supports(instructions: InstructionSet, prime: u32, walks: &[Walks], counters: &mut [u64]) {
    assert!(prime < 1 << 31);
    dispatch!(instructions, walk(prime: u32, walks: &[Walks], counters: &mut [u64]));
}

/// # Safety
/// As for the methods of [`Lanes32`].
#[inline(always)]
unsafe fn walk<S: Vectors>(prime: u32, walks: &[Walks], counters: &mut [u64]) {
    let lanes = S::U32::N;
    for walks in walks {
        for first in (0..WALKERS).step_by(VECTORS * lanes) {
            let load = |words: &[[u8; 4]; WALKERS]| {
                core::array::from_fn(|i| {
                    // SAFETY: passed on from the caller; WALKERS is a multiple of the words in VECTORS vectors.
                    unsafe { S::U32::load_le_bytes(words[first + i * lanes..].as_flattened()) }
                })
            };
            let [starts, steps, lengths] = [&walks.starts, &walks.steps, &walks.lengths].map(load);
            // SAFETY: passed on from the caller.
            unsafe { walk_abreast(prime, starts, steps, lengths, counters) };
        }
    }
}

/// # Safety
/// As for the methods of [`Lanes32`].
#[inline(always)]
unsafe fn walk_abreast<V: Lanes32>(
    prime: u32,
    mut places: [V; VECTORS],
    steps: [V; VECTORS],
    lengths: [V; VECTORS],
    counters: &mut [u64],
) {
    // SAFETY: passed on from the caller.
    unsafe {
        let minus_prime = V::splat(prime.wrapping_neg());
        for counter in counters {
            let mut below = 0;
            for ((place, &step), &length) in places.iter_mut().zip(&steps).zip(&lengths) {
                below += V::bitmask(place.less_than(length)).count_ones();
                // For x below 2 P, the smaller one of x and x - P modulo 2^32 is the residue of x.
                let next = place.add(step);
                *place = next.min(next.add(minus_prime));
            }
            *counter = counter.wrapping_add(below.into()); // a counter is at most the number of reports
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_instruction_sets_count_what_the_definition_says() {
        let prime = 1009;
        let mut walks = [Walks::NONE; 3];
        let mut expected = vec![0; 1000];
        for i in 0..walks.len() * WALKERS - 5 {
            let [start, step, length] = [i * 7919 % 1009, i * i % 1009, i * 31 % 1010];
            let walk = &mut walks[i / WALKERS];
            walk.starts[i % WALKERS] = (start as u32).to_le_bytes();
            walk.steps[i % WALKERS] = (step as u32).to_le_bytes();
            walk.lengths[i % WALKERS] = (length as u32).to_le_bytes();
            for (v, count) in expected.iter_mut().enumerate() {
                *count += u64::from((start + v * step) % 1009 < length);
            }
        }
        for instructions in InstructionSet::available() {
            let mut counters = vec![0; 1000];
            add_supports(instructions, prime, &walks, &mut counters);
            assert_eq!(counters, expected, "{}", instructions.name());
        }
    }

    #[test]
    fn the_largest_prime_does_not_overflow() {
        let prime: u32 = (1 << 31) - 1;
        let mut walks = [Walks::NONE];
        walks[0].starts[9] = (prime - 1).to_le_bytes();
        walks[0].steps[9] = (prime - 1).to_le_bytes();
        walks[0].lengths[9] = (prime - 2).to_le_bytes();
        for instructions in InstructionSet::available() {
            let mut counters = [0; 4];
            add_supports(instructions, prime, &walks, &mut counters);
            assert_eq!(counters, [0, 0, 1, 1], "P - 1, P - 2, P - 3 and P - 4; {}", instructions.name());
        }
    }
}
