//! AES-256 (FIPS 197) in counter mode, by the instructions of a CPU for it: tables would not be constant-time.
//!
//! The block that is encrypted has two little-endian numbers of 64 bits, of which the first counts. Nothing depends on
//! that order: no key of this generator is ever used again.
#![allow(unsafe_code, reason = "vendor intrinsics")]
#![cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(unused, reason = "no such instructions"))]

#[cfg(target_arch = "aarch64")]
#[allow(clippy::wildcard_imports, reason = "a dozen intrinsics, each named in full where it is used")]
use core::arch::aarch64::*;
#[cfg(target_arch = "x86_64")]
#[allow(clippy::wildcard_imports, reason = "two dozen intrinsics, each named in full where it is used")]
use core::arch::x86_64::*;

use super::chacha::Group;
use super::instruction_set::{InstructionSet, Kind};

/// The bytes of a block.
pub const BLOCK_BYTES: usize = 16;

/// The keys of the start and of the fourteen rounds.
pub type Schedule = [[u8; BLOCK_BYTES]; 15];

/// Vectors of blocks that are encrypted at a time, to hide the latency of a round.
const AT_A_TIME: usize = 8;

/// The instructions for AES of a CPU. Values come only from [`Aes::of`], and so prove that it has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aes(Width);

/// The blocks of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    #[cfg(target_arch = "x86_64")]
    Four,
    #[cfg(target_arch = "x86_64")]
    Two,
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    One,
}

impl Aes {
    /// The widest ones that belong to an instruction set, where this CPU has them. With AVX-512 these are blocks in vectors of
    /// 64 bytes or none, since single blocks are slower than ChaCha12 then.
    #[must_use]
    pub fn of(instructions: InstructionSet) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        let (one, wide) = (is_x86_feature_detected!("aes"), is_x86_feature_detected!("vaes"));
        match instructions.kind() {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 if one && wide => Some(Self(Width::Four)),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 if one && wide => Some(Self(Width::Two)),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 if one => Some(Self(Width::One)),
            #[cfg(target_arch = "aarch64")]
            Kind::Neon if std::arch::is_aarch64_feature_detected!("aes") => Some(Self(Width::One)),
            _ => None,
        }
    }
}

/// Calls a function that is generic over [`Blocks`] in the version for a width: `dispatch!(aes, function(argument: Type, ...))`, as
/// kernels are called for an instruction set, and with the same names.
macro_rules! dispatch {
    ($aes:expr, $kernel:ident($($argument:ident: $type:ty),*)) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,vaes")]
        fn avx512($($argument: $type),*) {
            // SAFETY: compiled for the instructions, and called only where the CPU has them.
            unsafe { $kernel::<__m512i>($($argument),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,vaes")]
        fn avx2($($argument: $type),*) {
            // SAFETY: compiled for the instructions, and called only where the CPU has them.
            unsafe { $kernel::<__m256i>($($argument),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx,aes")]
        fn one($($argument: $type),*) {
            // SAFETY: compiled for the instructions, and called only where the CPU has them.
            unsafe { $kernel::<__m128i>($($argument),*) }
        }
        #[cfg(target_arch = "aarch64")]
        #[target_feature(enable = "neon,aes")]
        #[inline(never)]
        fn neon($($argument: $type),*) {
            // SAFETY: compiled for the instructions, and called only where the CPU has them.
            unsafe { $kernel::<uint8x16_t>($($argument),*) }
        }
        #[cfg(all(dpnoise_secrecy, target_arch = "x86_64"))]
        super::instruction_set::keep_arguments!(avx512($($type),*));
        #[cfg(all(dpnoise_secrecy, target_arch = "aarch64"))]
        super::instruction_set::keep_arguments!(neon($($type),*));
        match $aes.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this `Aes` exists only on a CPU with AVX-512 F and VAES.
            Width::Four => unsafe { avx512($($argument),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this `Aes` exists only on a CPU with AVX2 and VAES.
            Width::Two => unsafe { avx2($($argument),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this `Aes` exists only on a CPU with AVX2 and AES.
            Width::One => unsafe { one($($argument),*) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: this `Aes` exists only on a CPU with NEON and AES.
            Width::One => unsafe { neon($($argument),*) },
        }
    }};
}

/// Writes the schedule of a key.
pub fn expand(aes: Aes, key: &[u32; 8], schedule: &mut Schedule) {
    dispatch!(aes, schedule_of(key: &[u32; 8], schedule: &mut Schedule));
}

/// Writes the encryptions of (`counter`, `second`), (`counter` + 1, `second`) and so on to `groups`, one after the other.
pub fn fill(aes: Aes, schedule: &Schedule, counter: u64, second: u64, groups: &mut [Group]) {
    dispatch!(aes, encrypt(schedule: &Schedule, counter: u64, second: u64, groups: &mut [Group]));
}

/// A vector of `N` blocks.
///
/// # Safety
/// Every method may be called only on a CPU that has the vector's instructions for AES, from a function compiled for them.
trait Blocks: Copy {
    /// The number of blocks.
    const N: usize;

    /// Every block is `block`.
    unsafe fn splat(block: &[u8; BLOCK_BYTES]) -> Self;
    /// Block i is (`counter` + i, `second`).
    unsafe fn count(counter: u64, second: u64) -> Self;
    /// Writes the blocks to `target`; it has room for at least `N`.
    unsafe fn store(self, target: &mut [u8]);
    /// Bitwise exclusive or.
    unsafe fn xor(self, other: Self) -> Self;
    /// A round.
    unsafe fn round(self, key: Self) -> Self;
    /// The last round, which mixes no columns.
    unsafe fn last_round(self, key: Self) -> Self;
    /// The bytes of a word through the S-box: the last round of a block that is filled with the word, as shifting its rows
    /// changes nothing.
    unsafe fn s_box(word: u32) -> u32;
}

/// FIPS 197, section 5.2.
///
/// # Safety
/// As for the methods of [`Blocks`].
#[inline(always)]
unsafe fn schedule_of<V: Blocks>(key: &[u32; 8], schedule: &mut Schedule) {
    // SAFETY: passed on from the caller.
    let s_box = |word| unsafe { V::s_box(word) };
    let mut words: [u32; 8] = *key;
    for (i, pair) in schedule.chunks_mut(2).enumerate() {
        if i > 0 {
            words[0] ^= s_box(words[7].rotate_right(8)) ^ 1 << (i - 1);
            for place in 1..8 {
                let before = words[place - 1];
                words[place] ^= if place == 4 { s_box(before) } else { before };
            }
        }
        for (bytes, word) in pair.as_flattened_mut().as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
    }
}

/// # Safety
/// As for the methods of [`Blocks`].
#[inline(always)]
unsafe fn encrypt<V: Blocks>(schedule: &Schedule, counter: u64, second: u64, groups: &mut [Group]) {
    let mut counter = counter;
    // SAFETY: passed on from the caller; so many vectors divide a group.
    unsafe {
        let keys = schedule.each_ref().map(|key| V::splat(key));
        for chunk in groups.as_flattened_mut().chunks_exact_mut(AT_A_TIME * V::N * BLOCK_BYTES) {
            let mut states = [keys[0]; AT_A_TIME];
            for state in &mut states {
                *state = V::count(counter, second).xor(*state);
                counter = counter.wrapping_add(V::N as u64);
            }
            for key in &keys[1..14] {
                states = states.map(|state| state.round(*key));
            }
            for (state, target) in states.into_iter().zip(chunk.chunks_exact_mut(V::N * BLOCK_BYTES)) {
                state.last_round(keys[14]).store(target);
            }
        }
    }
}

/// The blocks of an x86-64 vector, by its intrinsics.
#[cfg(target_arch = "x86_64")]
macro_rules! blocks {
    ($vector:ident, $n:literal, $broadcast:expr, $load:ident, $store:ident, $xor:ident, $round:ident, $last:ident) => {
        impl Blocks for $vector {
            const N: usize = $n;

            #[inline(always)]
            unsafe fn splat(block: &[u8; BLOCK_BYTES]) -> Self {
                // SAFETY: the caller has the instructions; 16 bytes are readable.
                unsafe { $broadcast(_mm_loadu_si128(block.as_ptr().cast())) }
            }

            #[inline(always)]
            unsafe fn count(counter: u64, second: u64) -> Self {
                let words: [[u64; 2]; $n] = core::array::from_fn(|i| [counter.wrapping_add(i as u64), second]);
                // SAFETY: the caller has the instructions; the words fill the vector.
                unsafe { $load(words.as_ptr().cast()) }
            }

            #[inline(always)]
            unsafe fn store(self, target: &mut [u8]) {
                let target = &mut target[..$n * BLOCK_BYTES];
                // SAFETY: the caller has the instructions; so many bytes are writable.
                unsafe { $store(target.as_mut_ptr().cast(), self) }
            }

            #[inline(always)]
            unsafe fn xor(self, other: Self) -> Self {
                // SAFETY: the caller has the instructions.
                unsafe { $xor(self, other) }
            }

            #[inline(always)]
            unsafe fn round(self, key: Self) -> Self {
                // SAFETY: the caller has the instructions.
                unsafe { $round(self, key) }
            }

            #[inline(always)]
            unsafe fn last_round(self, key: Self) -> Self {
                // SAFETY: the caller has the instructions.
                unsafe { $last(self, key) }
            }

            #[inline(always)]
            unsafe fn s_box(word: u32) -> u32 {
                // SAFETY: the caller has the instructions.
                unsafe {
                    let filled = _mm_set1_epi32(word.cast_signed());
                    _mm_cvtsi128_si32(_mm_aesenclast_si128(filled, _mm_setzero_si128())).cast_unsigned()
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
blocks!(
    __m128i,
    1,
    |block| block,
    _mm_loadu_si128,
    _mm_storeu_si128,
    _mm_xor_si128,
    _mm_aesenc_si128,
    _mm_aesenclast_si128
);
#[cfg(target_arch = "x86_64")]
blocks!(
    __m256i,
    2,
    _mm256_broadcastsi128_si256,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_xor_si256,
    _mm256_aesenc_epi128,
    _mm256_aesenclast_epi128
);
#[cfg(target_arch = "x86_64")]
blocks!(
    __m512i,
    4,
    _mm512_broadcast_i32x4,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_xor_si512,
    _mm512_aesenc_epi128,
    _mm512_aesenclast_epi128
);

// Inlined all the same, into functions that have the instructions: the check of the machine code refuses calls.
#[cfg(target_arch = "aarch64")]
#[allow(
    unknown_lints,
    inline_always_mismatching_target_features,
    reason = "methods of a trait have no target features"
)]
impl Blocks for uint8x16_t {
    const N: usize = 1;

    #[inline(always)]
    unsafe fn splat(block: &[u8; BLOCK_BYTES]) -> Self {
        // SAFETY: the caller has the instructions; 16 bytes are readable.
        unsafe { vld1q_u8(block.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn count(counter: u64, second: u64) -> Self {
        let words = [counter, second];
        // SAFETY: the caller has the instructions; the words fill the vector.
        unsafe { vld1q_u8(words.as_ptr().cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, target: &mut [u8]) {
        let target = &mut target[..BLOCK_BYTES];
        // SAFETY: the caller has the instructions; so many bytes are writable.
        unsafe { vst1q_u8(target.as_mut_ptr(), self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller has the instructions.
        unsafe { veorq_u8(self, other) }
    }

    // The instruction adds the key first, and not last: the compiler merges that with the end of the round before.
    #[inline(always)]
    unsafe fn round(self, key: Self) -> Self {
        // SAFETY: the caller has the instructions.
        unsafe { veorq_u8(vaesmcq_u8(vaeseq_u8(self, vdupq_n_u8(0))), key) }
    }

    #[inline(always)]
    unsafe fn last_round(self, key: Self) -> Self {
        // SAFETY: the caller has the instructions.
        unsafe { veorq_u8(vaeseq_u8(self, vdupq_n_u8(0)), key) }
    }

    #[inline(always)]
    unsafe fn s_box(word: u32) -> u32 {
        // SAFETY: the caller has the instructions.
        unsafe {
            let filled = vreinterpretq_u8_u32(vdupq_n_u32(word));
            vgetq_lane_u32::<0>(vreinterpretq_u32_u8(vaeseq_u8(filled, vdupq_n_u8(0))))
        }
    }
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;

    /// All that this CPU has.
    fn all() -> Vec<Aes> {
        let mut found: Vec<_> = InstructionSet::available().into_iter().filter_map(Aes::of).collect();
        #[cfg(target_arch = "x86_64")]
        if found.contains(&Aes(Width::Two)) {
            found.push(Aes(Width::One)); // AES is there, too
        }
        found.dedup();
        if found.is_empty() {
            println!("skipped: this CPU has no instructions for AES");
        }
        found
    }

    fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        core::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
    }

    fn schedule(aes: Aes, key: &str) -> Schedule {
        let key: [u8; 32] = bytes(key);
        let words = core::array::from_fn(|i| u32::from_le_bytes(*key[4 * i..].first_chunk().unwrap()));
        let mut schedule = Schedule::default();
        expand(aes, &words, &mut schedule);
        schedule
    }

    /// What a block is encrypted to, at each place of a group.
    fn encrypted(aes: Aes, schedule: &Schedule, block: [u8; 16]) -> [u8; 16] {
        let [counter, second] = [0, 8].map(|at| u64::from_le_bytes(*block[at..].first_chunk().unwrap()));
        let found: Vec<[u8; 16]> = (0..64u64)
            .map(|place| {
                let mut groups = [[0; 1024]; 1];
                fill(aes, schedule, counter.wrapping_sub(place), second, &mut groups);
                *groups[0][16 * place as usize..].first_chunk().unwrap()
            })
            .collect();
        assert!(found.iter().all(|block| *block == found[0]), "{aes:?}");
        found[0]
    }

    /// FIPS 197, appendix C.3, and SP 800-38A, appendix F.1.5; the last words of appendix A.3's expansion.
    #[test]
    fn the_published_vectors_are_reproduced() {
        for aes in all() {
            let keys = schedule(aes, "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
            let block = encrypted(aes, &keys, bytes("00112233445566778899aabbccddeeff"));
            assert_eq!(block, bytes("8ea2b7ca516745bfeafc49904b496089"), "{aes:?}");
            let keys = schedule(aes, "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
            assert_eq!(keys[14], bytes("fe4890d1e6188d0b046df344706c631e"), "{aes:?}");
            for (plain, cipher) in [
                ("6bc1bee22e409f96e93d7e117393172a", "f3eed1bdb5d2a03c064b5a7e3db181f8"),
                ("ae2d8a571e03ac9c9eb76fac45af8e51", "591ccb10d410ed26dc5ba74a31362870"),
                ("30c81c46a35ce411e5fbc1191a0a52ef", "b6ed21b99ca6f4f9f153e7b1beafed1d"),
                ("f69f2445df4f9b17ad2b417be66c3710", "23304b7a39f9f3ff067d8d8f9e24ecc7"),
            ] {
                assert_eq!(encrypted(aes, &keys, bytes(plain)), bytes(cipher), "{aes:?}");
            }
        }
    }

    /// Also where the counter carries, and from one group to the next.
    #[test]
    fn all_widths_agree() {
        let all = all();
        for counter in [0, 5, (1 << 32) - 70, u64::MAX - 70] {
            let found: Vec<_> = all
                .iter()
                .map(|&aes| {
                    let keys = schedule(aes, &"5a".repeat(32));
                    let mut groups = [[0; 1024]; 3];
                    fill(aes, &keys, counter, 7, &mut groups);
                    let mut later = [[0; 1024]; 1];
                    fill(aes, &keys, counter.wrapping_add(128), 7, &mut later);
                    assert_eq!(groups[2], later[0], "{aes:?}");
                    groups
                })
                .collect();
            assert!(found.iter().all(|groups| *groups == found[0]), "{counter} {all:?}");
        }
    }
}
