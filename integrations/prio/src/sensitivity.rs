//! The types of measurements, how sensitive their aggregates are, and noise modulo p.

use dpnoise_core::Error;
use prio::field::{Field64, Field128, FieldElement, FieldElementWithInteger, NttFriendlyFieldElement};
use prio::flp::gadgets::{Mul, ParallelSumGadget};
use prio::flp::types::{Count, Histogram, L1BoundSum, MultihotCountVec, Sum, SumVec};
use prio::flp::{FlpError, Type};

use crate::error;

/// How far the exact aggregate moves, at most, when one measurement is replaced by another.
///
/// Two measurements of a type differ in at most k elements of the aggregate, by at most m in each. So the L1 norm of
/// the difference is at most k m, and the L2 norm at most sqrt(k) m. Both are attained, but for a histogram of one
/// bucket:
///
/// | type | m | k | attained by |
/// | --- | --- | --- | --- |
/// | `Count` | 1 | 1 | false and true |
/// | `Sum` | the largest measurement | 1 | 0 and the largest measurement |
/// | `Histogram` | 1 | 2, or all if there is one | two buckets |
/// | `SumVec` | the largest element | all | zeros and the largest elements |
/// | `L1BoundSum` | the largest L1 norm | 2, or all if there is one | the largest norm in one element, and in another |
/// | `MultihotCountVec` | 1 | twice the largest weight, or all if there are fewer | as disjoint sets as there are |
///
/// For `L1BoundSum` m and k bound the norms, not the elements that change: measurements a and b of L1 norm at most m
/// have no negative element, so that |a - b|_1 <= |a|_1 + |b|_1 <= 2 m, and |a - b|_2^2 <= |a|_2^2 + |b|_2^2 <= 2 m^2.
/// For `MultihotCountVec` sets of at most w elements differ in at most 2 w, and in no more than there are. When there
/// are n < 2 w, a set of min(w, n) elements and one of n - min(w, n) others differ in all n.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensitivity {
    /// In the L1 norm.
    pub l1: u64,
    /// In the L2 norm: the smallest double that is not below it, up to 2^53.
    pub l2: f64,
}

impl Sensitivity {
    /// The sensitivity when up to `elements` elements change by up to `by` each.
    fn new(by: u64, elements: usize) -> Result<Self, FlpError> {
        let (by, elements) = (u128::from(by), elements as u128);
        let squared = (by * by).checked_mul(elements);
        let found = squared.and_then(|squared| Some(Self { l1: (by * elements).try_into().ok()?, l2: root(squared) }));
        found.ok_or_else(|| {
            error(Error::parameter("sensitivity", format!("{elements} * {by} in the L1 norm"), "less than 2**64"))
        })
    }
}

/// The smallest double that is not below the square root, up to 2^53.
fn root(squared: u128) -> f64 {
    // The scaled number has 105 or 106 bits, so its root has the 53 bits of a double.
    let shift = 106u32.saturating_sub(128 - squared.leading_zeros()) / 2;
    let scaled = squared << (2 * shift);
    let floor = scaled.isqrt();
    (floor + u128::from(floor * floor < scaled)) as f64 / (1u64 << shift) as f64
}

/// The fields whose elements can take noise: `Field64` and `Field128`.
pub trait NoiseField: NttFriendlyFieldElement {
    /// The noise modulo p, in constant time.
    fn from_noise(noise: i64) -> Self;
}

macro_rules! noise_fields {
    ($($field:ident is $integer:ident;)*) => {$(
        impl NoiseField for $field {
            // Within a loop the compiler makes a jump of the last subtraction of the field's multiplication.
            #[inline(never)]
            fn from_noise(noise: i64) -> Self {
                // All ones for negative noise, which is then more than -p.
                let negative = (noise >> 63) as $integer;
                Self::from((noise as $integer).wrapping_add(Self::modulus() & negative))
            }
        }
    )*};
}

noise_fields! {
    Field64 is u64;
    Field128 is u128;
}

/// The types of measurements whose aggregate shares can take noise.
pub trait Sensitive: Type<Field: NoiseField> {
    /// How far the exact aggregate moves, at most, when one measurement is replaced by another.
    ///
    /// # Errors
    /// [`FlpError::DifferentialPrivacy`] for a largest measurement or an L1 sensitivity of 2^64 or more.
    fn sensitivity(&self) -> Result<Sensitivity, FlpError>;
}

/// The largest element of a measurement: the type's own sum of all weights, since it encodes numbers as bits.
fn largest<T: Type>(typ: &T) -> Result<u64, FlpError> {
    let ones = vec![T::Field::one(); typ.input_len()];
    let largest = <T::Field as FieldElementWithInteger>::Integer::from(typ.truncate(ones)?[0]);
    largest
        .try_into()
        .map_err(|_| error(Error::parameter("the largest measurement", format!("{largest:?}"), "less than 2**64")))
}

/// How many elements of a measurement may be true at most: as many as the type encodes.
fn largest_weight<T: Type<Measurement = Vec<bool>>>(typ: &T) -> usize {
    let length = typ.output_len();
    // The weight is encoded in just as many bits as the largest has.
    let bits = (typ.input_len() - length) as u32;
    let power = |bits| 1usize.checked_shl(bits).unwrap_or(usize::MAX);
    let (mut encoded, mut refused) = (power(bits - 1).min(length), power(bits).min(length + 1));
    while refused - encoded > 1 {
        let weight = usize::midpoint(encoded, refused);
        let measurement = (0..length).map(|i| i < weight).collect();
        *(if typ.encode_measurement(&measurement).is_ok() { &mut encoded } else { &mut refused }) = weight;
    }
    encoded
}

macro_rules! sensitive {
    ($($name:ident<F $(, $gadget:ident)?>: |$typ:ident| $by:expr, $elements:expr;)*) => {$(
        impl<F: NoiseField $(, $gadget: ParallelSumGadget<F, Mul> + Eq + 'static)?> Sensitive for $name<F $(, $gadget)?> {
            fn sensitivity(&self) -> Result<Sensitivity, FlpError> {
                let $typ = self;
                Sensitivity::new($by, $elements)
            }
        }
    )*};
}

sensitive! {
    Count<F>: |_typ| 1, 1;
    Sum<F>: |typ| largest(typ)?, 1;
    Histogram<F, S>: |typ| 1, typ.output_len().min(2);
    SumVec<F, S>: |typ| largest(typ)?, typ.output_len();
    L1BoundSum<F, S>: |typ| largest(typ)?, typ.output_len().min(2);
    MultihotCountVec<F, S>: |typ| 1, typ.output_len().min(largest_weight(typ).saturating_mul(2));
}
