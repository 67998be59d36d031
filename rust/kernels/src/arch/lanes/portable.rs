//! Plain code.

use core::array;
use core::hint::black_box;

use super::{Lanes8, Lanes32, Lanes64, Vectors, Widen};
use crate::arch::secrecy::{Reason, declassify};
use crate::arith::power_of_two;

/// The instruction set that every CPU has.
pub(crate) struct Portable;

impl Vectors for Portable {
    const REGISTERS: usize = 16;
    const SEVERAL_REGISTERS: bool = true;
    type U64 = Words64<8>; // enough work at a time to hide the latency of the table scans
    type U32 = Words32<16>;
    type Register32 = Words32<4>; // of the baseline of x86-64 and aarch64
    type U8 = Bytes;
}

/// `N` words; a mask is all ones or zero.
#[derive(Clone, Copy)]
pub(crate) struct Words64<const N: usize>([u64; N]);

impl<const N: usize> Words64<N> {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self(array::from_fn(|i| f(self.0[i], other.0[i])))
    }
}

#[inline(always)]
fn mask(condition: bool) -> u64 {
    u64::from(condition).wrapping_neg()
}

#[inline(always)]
fn zip<const N: usize>(a: [f64; N], b: [f64; N], f: impl Fn(f64, f64) -> f64) -> [f64; N] {
    array::from_fn(|i| f(a[i], b[i]))
}

impl<const N: usize> Lanes64 for Words64<N> {
    const N: usize = N;
    type F64 = [f64; N];
    type Mask = Self;

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        Self([word; N])
    }

    #[inline(always)]
    unsafe fn load(source: &[i64]) -> Self {
        let words: &[i64; N] = source.first_chunk().expect("N words");
        Self(words.map(i64::cast_unsigned))
    }

    #[inline(always)]
    unsafe fn load_le_bytes(source: &[u8]) -> Self {
        let words = source.as_chunks().0;
        Self(array::from_fn(|i| u64::from_le_bytes(words[i])))
    }

    #[inline(always)]
    unsafe fn load_le_bytes_u32(source: &[u8]) -> Self {
        let words = source.as_chunks().0;
        Self(array::from_fn(|i| u32::from_le_bytes(words[i]).into()))
    }

    #[inline(always)]
    unsafe fn store(self, target: &mut [i64]) {
        *target.first_chunk_mut().expect("N words") = self.0.map(u64::cast_signed);
    }

    #[inline(always)]
    unsafe fn store_le_bytes(self, target: &mut [u8]) {
        for (bytes, word) in target.as_chunks_mut().0.iter_mut().zip(self.0) {
            *bytes = word.to_le_bytes();
        }
    }

    #[inline(always)]
    unsafe fn compress(self, keep: u64, target: &mut [i64]) -> usize {
        let keep = declassify(Reason::Rejection, keep);
        let mut count = 0;
        for (i, word) in self.0.into_iter().enumerate() {
            target[count] = word.cast_signed();
            count += (keep >> i & 1) as usize;
        }
        count
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.zip(other, u64::wrapping_add)
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.zip(other, u64::wrapping_sub)
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self.zip(other, |a, b| a ^ b)
    }

    #[inline(always)]
    unsafe fn shl(self, count: u32) -> Self {
        Self(self.0.map(|word| word << count))
    }

    #[inline(always)]
    unsafe fn shr(self, count: u32) -> Self {
        Self(self.0.map(|word| word >> count))
    }

    #[inline(always)]
    unsafe fn shl_each(self, counts: Self) -> Self {
        self.zip(counts, |word, count| word.wrapping_shl(count as u32)) // without a check to branch on
    }

    #[inline(always)]
    unsafe fn less_than(self, other: Self) -> Self {
        // The optimiser must not see the comparison: it could make a branch of it and of a choice by it.
        black_box(self.zip(other, |a, b| mask(a < b)))
    }

    #[inline(always)]
    unsafe fn zero_unless_any(self, bits: Self) -> Self {
        self.zip(bits, |word, bits| word & mask(word & bits != 0))
    }

    #[inline(always)]
    unsafe fn select(self, other: Self, mask: Self) -> Self {
        Self(array::from_fn(|i| self.0[i] & mask.0[i] | other.0[i] & !mask.0[i]))
    }

    #[inline(always)]
    unsafe fn bitmask(mask: Self) -> u64 {
        mask.0.into_iter().enumerate().fold(0, |bits, (i, lane)| bits | (lane & 1) << i)
    }

    #[inline(always)]
    unsafe fn convert_f64(self) -> [f64; N] {
        self.0.map(|word| word.cast_signed() as f64)
    }

    #[inline(always)]
    unsafe fn convert_f64_below_2_52(self) -> [f64; N] {
        let base = power_of_two(52).to_bits();
        self.0.map(|word| f64::from_bits(word | base) - f64::from_bits(base))
    }

    #[inline(always)]
    unsafe fn bitcast_f64(self) -> [f64; N] {
        self.0.map(f64::from_bits)
    }

    #[inline(always)]
    unsafe fn bitcast_u64(a: [f64; N]) -> Self {
        Self(a.map(f64::to_bits))
    }

    #[inline(always)]
    unsafe fn splat_f64(value: f64) -> [f64; N] {
        [value; N]
    }

    #[inline(always)]
    unsafe fn load_f64(source: &[f64]) -> [f64; N] {
        *source.first_chunk().expect("N doubles")
    }

    #[inline(always)]
    unsafe fn store_f64(a: [f64; N], target: &mut [f64]) {
        *target.first_chunk_mut().expect("N doubles") = a;
    }

    #[inline(always)]
    unsafe fn add_f64(a: [f64; N], b: [f64; N]) -> [f64; N] {
        zip(a, b, |a, b| a + b)
    }

    #[inline(always)]
    unsafe fn sub_f64(a: [f64; N], b: [f64; N]) -> [f64; N] {
        zip(a, b, |a, b| a - b)
    }

    #[inline(always)]
    unsafe fn mul_f64(a: [f64; N], b: [f64; N]) -> [f64; N] {
        zip(a, b, |a, b| a * b)
    }

    #[inline(always)]
    unsafe fn mul_add_f64(a: [f64; N], b: [f64; N], c: [f64; N]) -> [f64; N] {
        // `f64::mul_add` would be a library call where the target has no FMA.
        array::from_fn(|i| a[i] * b[i] + c[i])
    }

    #[inline(always)]
    unsafe fn min_f64(a: [f64; N], b: [f64; N]) -> [f64; N] {
        zip(a, b, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    unsafe fn max_f64(a: [f64; N], b: [f64; N]) -> [f64; N] {
        zip(a, b, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    unsafe fn floor_f64(a: [f64; N]) -> [f64; N] {
        // `f64::floor` would be a library call where the target cannot round. Truncated towards zero, minus one if that
        // is larger.
        a.map(|a| {
            // SAFETY: it fits, being below 2^53. (The conversion that saturates has branches.)
            let truncated = unsafe { a.to_int_unchecked::<i64>() } as f64;
            truncated - f64::from(u8::from(truncated > a))
        })
    }

    #[inline(always)]
    unsafe fn less_than_f64(a: [f64; N], b: [f64; N]) -> Self {
        Self(array::from_fn(|i| mask(a[i] < b[i])))
    }
}

/// `N` words; a mask is all ones or zero.
#[derive(Clone, Copy)]
pub(crate) struct Words32<const N: usize>([u32; N]);

impl<const N: usize> Words32<N> {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(u32, u32) -> u32) -> Self {
        Self(array::from_fn(|i| f(self.0[i], other.0[i])))
    }

    #[inline(always)]
    fn scan(self, table: &[u32]) -> Self {
        let mut found = [0; N];
        for (entry, &value) in (0..).zip(table) {
            for (found, &index) in found.iter_mut().zip(&self.0) {
                *found |= value & u32::from(index == entry).wrapping_neg();
            }
        }
        Self(found)
    }
}

impl<const N: usize> Lanes32 for Words32<N> {
    const N: usize = N;
    type Mask = Self;

    #[inline(always)]
    unsafe fn splat(word: u32) -> Self {
        Self([word; N])
    }

    #[inline(always)]
    unsafe fn load(source: &[u32]) -> Self {
        Self(*source.first_chunk().expect("N words"))
    }

    #[inline(always)]
    unsafe fn load_le_bytes(source: &[u8]) -> Self {
        let words = source.as_chunks().0;
        Self(array::from_fn(|i| u32::from_le_bytes(words[i])))
    }

    #[inline(always)]
    unsafe fn load_f32(source: &[f32]) -> Self {
        let singles: &[f32; N] = source.first_chunk().expect("N singles");
        Self(singles.map(f32::to_bits))
    }

    #[inline(always)]
    unsafe fn store_le_bytes(self, target: &mut [u8]) {
        for (bytes, word) in target.as_chunks_mut().0.iter_mut().zip(self.0) {
            *bytes = word.to_le_bytes();
        }
    }

    #[inline(always)]
    unsafe fn look_up(self, table: &[u32; 64]) -> Self {
        self.scan(table)
    }

    #[inline(always)]
    unsafe fn look_up_4(self, table: &[u32; 4]) -> Self {
        self.scan(table)
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.zip(other, u32::wrapping_add)
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self.zip(other, |a, b| a ^ b)
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        self.zip(other, u32::min)
    }

    #[inline(always)]
    unsafe fn shl(self, count: u32) -> Self {
        Self(self.0.map(|word| word << count))
    }

    #[inline(always)]
    unsafe fn shr(self, count: u32) -> Self {
        Self(self.0.map(|word| word >> count))
    }

    #[inline(always)]
    unsafe fn rotate_left(self, count: u32) -> Self {
        Self(self.0.map(|word| word.rotate_left(count)))
    }

    #[inline(always)]
    unsafe fn less_than(self, other: Self) -> Self {
        self.zip(other, |a, b| u32::from(a < b).wrapping_neg())
    }

    #[inline(always)]
    unsafe fn zero_unless_any(self, bits: Self) -> Self {
        self.zip(bits, |word, bits| word & u32::from(word & bits != 0).wrapping_neg())
    }

    #[inline(always)]
    unsafe fn select(self, other: Self, mask: Self) -> Self {
        Self(array::from_fn(|i| self.0[i] & mask.0[i] | other.0[i] & !mask.0[i]))
    }

    #[inline(always)]
    unsafe fn bitmask(mask: Self) -> u64 {
        mask.0.into_iter().enumerate().fold(0, |bits, (i, lane)| bits | u64::from(lane & 1) << i)
    }
}

impl Widen for Words32<16> {
    type Wide = Words64<8>;

    #[inline(always)]
    unsafe fn widen(self) -> [Words64<8>; 2] {
        let half = |first: usize| Words64(array::from_fn(|i| self.0[first + i].into()));
        [half(0), half(8)]
    }

    #[inline(always)]
    unsafe fn widen_f64(self) -> [[f64; 8]; 2] {
        let half = |first: usize| array::from_fn(|i| self.0[first + i].into());
        [half(0), half(8)]
    }

    #[inline(always)]
    unsafe fn widen_f32(self) -> [[f64; 8]; 2] {
        let half = |first: usize| array::from_fn(|i| f32::from_bits(self.0[first + i]).into());
        [half(0), half(8)]
    }
}

/// 64 bytes: enough work for each entry of a table that is scanned.
#[derive(Clone, Copy)]
pub(crate) struct Bytes([u8; 64]);

impl Bytes {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(u8, u8) -> u8) -> Self {
        Self(array::from_fn(|i| f(self.0[i], other.0[i])))
    }
}

impl Lanes8 for Bytes {
    const N: usize = 64;

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        Self([byte; 64])
    }

    #[inline(always)]
    unsafe fn load(source: &[u8]) -> Self {
        Self(*source.first_chunk().expect("N bytes"))
    }

    #[inline(always)]
    unsafe fn store(self, target: &mut [i8]) {
        target[..64].copy_from_slice(&self.0.map(u8::cast_signed));
    }

    #[inline(always)]
    unsafe fn look_up(self, table: &[u8; 64]) -> Self {
        let mut found = [0; 64];
        for (i, &entry) in table.iter().enumerate() {
            for (found, &index) in found.iter_mut().zip(&self.0) {
                *found |= entry & u8::from(index == i as u8).wrapping_neg();
            }
        }
        Self(found)
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self.zip(other, |a, b| a ^ b)
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.zip(other, u8::wrapping_sub)
    }

    #[inline(always)]
    unsafe fn is_negative(self) -> Self {
        Self(self.0.map(|byte| (byte >> 7).wrapping_neg()))
    }

    #[inline(always)]
    unsafe fn is_below(self, other: Self, ties: Self) -> Self {
        let below = self.zip(other, |a, b| u8::from(a < b).wrapping_neg());
        let tied = self.zip(other, |a, b| u8::from(a == b).wrapping_neg()).zip(ties, |a, b| a & b);
        below.zip(tied, |a, b| a | b)
    }

    #[inline(always)]
    unsafe fn select(self, other: Self, mask: Self) -> Self {
        Self(array::from_fn(|i| self.0[i] & mask.0[i] | other.0[i] & !mask.0[i]))
    }
}
