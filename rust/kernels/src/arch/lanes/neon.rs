//! NEON, on little-endian CPUs: others would need their bytes reversed, and run portable code.

#[allow(clippy::wildcard_imports, reason = "four dozen intrinsics, each named in full where it is used")]
use core::arch::aarch64::*;
use core::array;

use super::{Lanes8, Lanes32, Lanes64, Vectors, Widen};
use crate::arch::secrecy::{Reason, declassify_in_register};

/// NEON, also called Advanced SIMD.
pub(crate) struct Neon;

impl Vectors for Neon {
    const REGISTERS: usize = 32;
    const SEVERAL_REGISTERS: bool = true;
    type U64 = Words64;
    type U32 = Words32<2>;
    type Register32 = Words32<1>;
    type U8 = Bytes;
}

/// The items at the front of `source`, as many as fill a vector.
///
/// # Safety
/// `T` is an integer or a float, and `V` consists of registers.
#[inline(always)]
unsafe fn load<T, V>(source: &[T]) -> V {
    let items = &source[..size_of::<V>() / size_of::<T>()];
    // SAFETY: that many bytes are readable, and no alignment is asked for; a register may hold any bits.
    unsafe { items.as_ptr().cast::<V>().read_unaligned() }
}

/// Writes a vector to the items at the front of `target`, as many as it fills.
///
/// # Safety
/// `T` is an integer or a float, and `V` consists of registers.
#[inline(always)]
unsafe fn store<T, V>(vector: V, target: &mut [T]) {
    let items = &mut target[..size_of::<V>() / size_of::<T>()];
    // SAFETY: that many bytes are writable, and no alignment is asked for; integers and floats may have any bits.
    unsafe { items.as_mut_ptr().cast::<V>().write_unaligned(vector) }
}

#[inline(always)]
fn zip<T: Copy, U, const N: usize>(a: [T; N], b: [T; N], f: impl Fn(T, T) -> U) -> [U; N] {
    array::from_fn(|i| f(a[i], b[i]))
}

/// Four words, the fewest that kernels are written for; a mask is all ones or zero.
#[derive(Clone, Copy)]
pub(crate) struct Words64([uint64x2_t; 2]);

/// As many doubles.
type Doubles = [float64x2_t; 2];

/// For each choice of four lanes, the bytes of the chosen ones, in order; the others are arbitrary.
const ORDERS: [[u8; 32]; 16] = {
    let mut orders = [[0; 32]; 16];
    let mut keep = 0;
    while keep < 16 {
        let (mut byte, mut count) = (0, 0);
        while byte < 32 {
            if keep >> (byte / 8) & 1 == 1 {
                orders[keep][count] = byte;
                count += 1;
            }
            byte += 1;
        }
        keep += 1;
    }
    orders
};

impl Lanes64 for Words64 {
    const N: usize = 4;
    type F64 = Doubles;
    type Mask = Self;

    #[inline(always)]
    unsafe fn compress(self, keep: u64, target: &mut [i64]) -> usize {
        // Once declassified, it may be the index of a table.
        let keep = declassify_in_register(Reason::Rejection, keep);
        // SAFETY: the caller has the instruction set.
        unsafe {
            let order: [uint8x16_t; 2] = load(&ORDERS[keep as usize & 15]);
            let words = uint8x16x2_t(vreinterpretq_u8_u64(self.0[0]), vreinterpretq_u8_u64(self.0[1]));
            store(order.map(|bytes| vqtbl2q_u8(words, bytes)), target);
        }
        keep.count_ones() as usize
    }

    intrinsics! {
        fn splat(word: u64) -> Self { Self([vdupq_n_u64(word); 2]) }
        fn load(source: &[i64]) -> Self { Self(load(source)) }
        fn load_le_bytes(source: &[u8]) -> Self { Self(load(source)) }
        fn load_le_bytes_u32(source: &[u8]) -> Self { widen(load(source)) }
        fn load_f64(source: &[f64]) -> Doubles { load(source) }
        fn store(self, target: &mut [i64]) { store(self.0, target) }
        fn store_le_bytes(self, target: &mut [u8]) { store(self.0, target) }
        fn store_f64(a: Doubles, target: &mut [f64]) { store(a, target) }

        fn add(self, other: Self) -> Self { Self(zip(self.0, other.0, |a, b| vaddq_u64(a, b))) }
        fn sub(self, other: Self) -> Self { Self(zip(self.0, other.0, |a, b| vsubq_u64(a, b))) }
        fn and(self, other: Self) -> Self { Self(zip(self.0, other.0, |a, b| vandq_u64(a, b))) }
        fn xor(self, other: Self) -> Self { Self(zip(self.0, other.0, |a, b| veorq_u64(a, b))) }
        fn shl(self, count: u32) -> Self { self.shl_each(Self::splat(count.into())) }
        // A negative count shifts to the right.
        fn shr(self, count: u32) -> Self { self.shl_each(Self::splat(u64::from(count).wrapping_neg())) }
        fn shl_each(self, counts: Self) -> Self {
            Self(zip(self.0, counts.0, |word, count| vshlq_u64(word, vreinterpretq_s64_u64(count))))
        }
        fn less_than(self, other: Self) -> Self { Self(zip(self.0, other.0, |a, b| vcltq_u64(a, b))) }
        fn zero_unless_any(self, bits: Self) -> Self { self.and(Self(zip(self.0, bits.0, |a, b| vtstq_u64(a, b)))) }
        fn select(self, other: Self, mask: Self) -> Self {
            Self(array::from_fn(|i| vbslq_u64(mask.0[i], self.0[i], other.0[i])))
        }
        fn bitmask(mask: Self) -> u64 {
            let lanes = vcombine_u32(vmovn_u64(mask.0[0]), vmovn_u64(mask.0[1]));
            vaddvq_u32(vandq_u32(lanes, load(&[1, 2, 4, 8]))).into()
        }

        fn convert_f64(self) -> Doubles { self.0.map(|word| vcvtq_f64_s64(vreinterpretq_s64_u64(word))) }
        fn convert_f64_below_2_52(self) -> Doubles { self.convert_f64() }
        fn bitcast_f64(self) -> Doubles { self.0.map(|word| vreinterpretq_f64_u64(word)) }
        fn bitcast_u64(a: Doubles) -> Self { Self(a.map(|a| vreinterpretq_u64_f64(a))) }

        fn splat_f64(value: f64) -> Doubles { [vdupq_n_f64(value); 2] }
        fn add_f64(a: Doubles, b: Doubles) -> Doubles { zip(a, b, |a, b| vaddq_f64(a, b)) }
        fn sub_f64(a: Doubles, b: Doubles) -> Doubles { zip(a, b, |a, b| vsubq_f64(a, b)) }
        fn mul_f64(a: Doubles, b: Doubles) -> Doubles { zip(a, b, |a, b| vmulq_f64(a, b)) }
        fn mul_add_f64(a: Doubles, b: Doubles, c: Doubles) -> Doubles { array::from_fn(|i| vfmaq_f64(c[i], a[i], b[i])) }
        // The instruction FMIN orders zeros by their sign and passes NaN on, unlike those of other instruction sets.
        fn min_f64(a: Doubles, b: Doubles) -> Doubles { zip(a, b, |a, b| vbslq_f64(vcltq_f64(a, b), a, b)) }
        fn max_f64(a: Doubles, b: Doubles) -> Doubles { zip(a, b, |a, b| vbslq_f64(vcgtq_f64(a, b), a, b)) }
        fn floor_f64(a: Doubles) -> Doubles { a.map(|a| vrndmq_f64(a)) }
        fn less_than_f64(a: Doubles, b: Doubles) -> Self { Self(zip(a, b, |a, b| vcltq_f64(a, b))) }
    }
}

/// Four words in each register; a mask is all ones or zero.
#[derive(Clone, Copy)]
pub(crate) struct Words32<const REGISTERS: usize>([uint32x4_t; REGISTERS]);

impl<const REGISTERS: usize> Lanes32 for Words32<REGISTERS> {
    const N: usize = 4 * REGISTERS;
    type Mask = Self;

    intrinsics! {
        fn splat(word: u32) -> Self { Self([vdupq_n_u32(word); REGISTERS]) }
        fn load(source: &[u32]) -> Self { Self(load(source)) }
        fn load_le_bytes(source: &[u8]) -> Self { Self(load(source)) }
        fn load_f32(source: &[f32]) -> Self { Self(load(source)) }
        fn store_le_bytes(self, target: &mut [u8]) { store(self.0, target) }
        fn look_up(self, table: &[u32; 64]) -> Self {
            let quarters: [[uint8x16_t; 4]; 4] = load(table);
            let quarters = quarters.map(|[a, b, c, d]| uint8x16x4_t(a, b, c, d));
            Self(self.0.map(|index| {
                let mut bytes = bytes_of(index);
                let mut found = vqtbl4q_u8(quarters[0], bytes);
                for quarter in &quarters[1..] {
                    // Indices of other quarters, modulo 2^8, are above 63: they leave what was found.
                    bytes = vsubq_u8(bytes, vdupq_n_u8(64));
                    found = vqtbx4q_u8(found, *quarter, bytes);
                }
                vreinterpretq_u32_u8(found)
            }))
        }
        fn look_up_4(self, table: &[u32; 4]) -> Self {
            let [table]: [uint8x16_t; 1] = load(table);
            Self(self.0.map(|index| vreinterpretq_u32_u8(vqtbl1q_u8(table, bytes_of(index)))))
        }

        fn add(self, other: Self) -> Self { Self(zip(self.0, other.0, |a, b| vaddq_u32(a, b))) }
        fn and(self, other: Self) -> Self { Self(zip(self.0, other.0, |a, b| vandq_u32(a, b))) }
        fn xor(self, other: Self) -> Self { Self(zip(self.0, other.0, |a, b| veorq_u32(a, b))) }
        fn min(self, other: Self) -> Self { Self(zip(self.0, other.0, |a, b| vminq_u32(a, b))) }
        fn shl(self, count: u32) -> Self {
            let count = vdupq_n_s32(count.cast_signed());
            Self(self.0.map(|word| vshlq_u32(word, count)))
        }
        fn shr(self, count: u32) -> Self {
            let count = vdupq_n_s32(-count.cast_signed()); // a negative count shifts to the right
            Self(self.0.map(|word| vshlq_u32(word, count)))
        }
        fn rotate_left(self, count: u32) -> Self {
            if count == 8 {
                // One instruction for two; the compiler itself finds one for a count of 16.
                const ORDER: [u8; 16] = [3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14];
                let bytes = self.0.map(|word| vqtbl1q_u8(vreinterpretq_u8_u32(word), load(&ORDER)));
                return Self(bytes.map(|bytes| vreinterpretq_u32_u8(bytes)));
            }
            Self(zip(self.shl(count).0, self.shr(32 - count).0, |a, b| vorrq_u32(a, b)))
        }
        fn less_than(self, other: Self) -> Self { Self(zip(self.0, other.0, |a, b| vcltq_u32(a, b))) }
        fn zero_unless_any(self, bits: Self) -> Self { self.and(Self(zip(self.0, bits.0, |a, b| vtstq_u32(a, b)))) }
        fn select(self, other: Self, mask: Self) -> Self {
            Self(array::from_fn(|i| vbslq_u32(mask.0[i], self.0[i], other.0[i])))
        }
        fn bitmask(mask: Self) -> u64 {
            let mut bits = 0;
            for (i, lanes) in mask.0.into_iter().enumerate() {
                bits |= u64::from(vaddvq_u32(vandq_u32(lanes, load(&[1, 2, 4, 8])))) << (4 * i);
            }
            bits
        }
    }
}

/// The four bytes of a table of 32-bit words for each index i: 4 i to 4 i + 3.
///
/// # Safety
/// As for the methods of [`Lanes32`].
#[inline(always)]
unsafe fn bytes_of(index: uint32x4_t) -> uint8x16_t {
    // SAFETY: the caller has the instruction set.
    unsafe { vreinterpretq_u8_u32(vmlaq_u32(vdupq_n_u32(0x0302_0100), index, vdupq_n_u32(0x0404_0404))) }
}

impl Widen for Words32<2> {
    type Wide = Words64;

    intrinsics! {
        fn widen(self) -> [Words64; 2] { self.0.map(|words| widen(words)) }
        fn widen_f64(self) -> [Doubles; 2] { self.widen().map(|words| words.0.map(|word| vcvtq_f64_u64(word))) }
        fn widen_f32(self) -> [Doubles; 2] {
            self.0.map(|bits| {
                let singles = vreinterpretq_f32_u32(bits);
                [vcvt_f64_f32(vget_low_f32(singles)), vcvt_high_f64_f32(singles)]
            })
        }
    }
}

/// The words.
///
/// # Safety
/// As for the methods of [`Lanes32`].
#[inline(always)]
unsafe fn widen(words: uint32x4_t) -> Words64 {
    // SAFETY: the caller has the instruction set.
    unsafe { Words64([vmovl_u32(vget_low_u32(words)), vmovl_high_u32(words)]) }
}

/// 16 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Bytes(uint8x16_t);

impl Lanes8 for Bytes {
    const N: usize = 16;

    intrinsics! {
        fn splat(byte: u8) -> Self { Self(vdupq_n_u8(byte)) }
        fn load(source: &[u8]) -> Self { Self(load(source)) }
        fn store(self, target: &mut [i8]) { store(self.0, target) }
        fn look_up(self, table: &[u8; 64]) -> Self {
            let [a, b, c, d] = load(table);
            Self(vqtbl4q_u8(uint8x16x4_t(a, b, c, d), self.0))
        }
        fn and(self, other: Self) -> Self { Self(vandq_u8(self.0, other.0)) }
        fn xor(self, other: Self) -> Self { Self(veorq_u8(self.0, other.0)) }
        fn sub(self, other: Self) -> Self { Self(vsubq_u8(self.0, other.0)) }
        fn is_negative(self) -> Self { Self(vcltzq_s8(vreinterpretq_s8_u8(self.0))) }
        fn is_below(self, other: Self, ties: Self) -> Self {
            let tied = vandq_u8(ties.0, vceqq_u8(self.0, other.0));
            Self(vorrq_u8(vcltq_u8(self.0, other.0), tied))
        }
        fn select(self, other: Self, mask: Self) -> Self { Self(vbslq_u8(mask.0, self.0, other.0)) }
    }
}
