//! Unary encoding: one of k values as k bits of which one is set, or none of the values as k bits of which none is; each
//! bit is then flipped independently.
//!
//! Definition: bit i of the report is 1 with probability p if the value is i, and q otherwise (Wang, Blocki, Li, Jha
//! 2017, "Locally differentially private protocols for frequency estimation", section 4.3).
//!
//! # Privacy
//!
//! A report is epsilon-locally differentially private with epsilon = a + b, where a = ln(p/q) and b = ln((1-q)/(1-p)): two
//! rows with one bit each differ in two bits. A row without a bit differs from such a row in one bit, whose likelihood
//! ratio is p/q if it is reported as 1 and (1-p)/(1-q) if as 0: that costs max(a, b), less than epsilon since p > q makes
//! both positive. A row with two bits set would cost more than epsilon, so it is refused.
//!
//! A report is ceil(k/8) bytes, least significant bit first; unused bits of the last byte are zero.

use core::fmt::Debug;
use core::marker::PhantomData;

use dpnoise_kernels::arch::planes::TILE_BYTES;
use rand_core::TryCryptoRng;

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::calibration::Blanket;
use crate::error::Error;
use crate::instruction_set;
use crate::local::chance::bit_flip::{BitFlip, Flipper, Neighbours};
use crate::local::estimate::Law;
use crate::local::reports::bits::{Bits, CHUNK_BYTES, encode_from};
use crate::local::spec::{Field, Given, check_k, inconsistent};
use crate::local::values::{Input, ValueKind, Values, check_below};
use crate::rng::{AnyRng, Wiped};

/// Unary encoding of k values, with a bit flip of one kind.
///
/// A report is epsilon-locally differentially private (Wang, Blocki, Li, Jha 2017, "Locally differentially private
/// protocols for frequency estimation").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unary<F> {
    k: u32,
    epsilon: f64,
    flip: BitFlip,
    kind: PhantomData<F>,
}

/// Symmetric unary encoding (basic RAPPOR; Erlingsson, Pihur, Korolova 2014): p = s/(s+1), q = 1 - p, with
/// s = e^(epsilon/2).
pub type SymmetricUnaryEncoding = Unary<Symmetric>;

/// Optimised unary encoding: p = 1/2, q = 1/(e^epsilon + 1), the smallest variance of a rare value's count.
pub type OptimizedUnaryEncoding = Unary<Optimized>;

/// Thresholding with histogram encoding; see [`BitFlip::threshold`].
pub type ThresholdHistogramEncoding = Unary<Threshold>;

/// Unary encoding with the caller's probabilities; see [`BitFlip::custom`].
pub type UnaryEncoding = Unary<Custom>;

impl SymmetricUnaryEncoding {
    /// The encoding of `k` values.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24 and 2^-20 <= epsilon <= 32.
    pub fn new(k: u64, epsilon: f64) -> Result<Self, Error> {
        Ok(Self::of(check_k(k)?, epsilon, BitFlip::symmetric(epsilon, Neighbours::OneHot)?))
    }
}

impl OptimizedUnaryEncoding {
    /// The encoding of `k` values.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24 and 2^-20 <= epsilon <= 32.
    pub fn new(k: u64, epsilon: f64) -> Result<Self, Error> {
        Ok(Self::of(check_k(k)?, epsilon, BitFlip::optimized(epsilon)?))
    }
}

impl ThresholdHistogramEncoding {
    /// The encoding of `k` values.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24 and 2^-20 <= epsilon <= 32.
    pub fn new(k: u64, epsilon: f64) -> Result<Self, Error> {
        Ok(Self::of(check_k(k)?, epsilon, BitFlip::threshold(epsilon)?))
    }
}

impl UnaryEncoding {
    /// The encoding of `k` values with the probabilities `p` and `q`, rounded in the private direction.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24 and [`BitFlip::custom`] accepts p and q.
    pub fn new(k: u64, p: f64, q: f64) -> Result<Self, Error> {
        let k = check_k(k)?;
        let (flip, epsilon) = BitFlip::custom(p, q)?;
        Ok(Self::of(k, epsilon, flip))
    }
}

impl<F> Unary<F> {
    fn of(k: u32, epsilon: f64, flip: BitFlip) -> Self {
        Self { k, epsilon, flip, kind: PhantomData }
    }

    /// The exact probabilities.
    #[must_use]
    pub fn flip(&self) -> BitFlip {
        self.flip
    }

    /// Fills `out`, which begins at byte `first` of the matrix: `write(at, chunk)` puts data bits in `chunk`, which
    /// begins at byte `at`. They are flipped in a private buffer, since `out` may be memory that others can read.
    fn fill<R, W>(&self, rng: &mut R, first: usize, out: &mut [u8], write: W) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
        W: Fn(usize, &mut [u8]),
    {
        let mut flipper = Flipper::new(self.flip, out.len())?;
        let mut private = Wiped::new(out.len().min(CHUNK_BYTES));
        for (index, out) in out.chunks_mut(CHUNK_BYTES).enumerate() {
            let at = first + index * CHUNK_BYTES;
            let chunk = &mut private[..out.len()];
            write(at, chunk);
            flipper.flip(rng, chunk)?;
            Bits(self.k).clear_unused(at, chunk);
            out.copy_from_slice(chunk);
        }
        Ok(())
    }
}

/// How the kinds of unary encodings differ.
pub(crate) trait Kind: Copy + Debug + PartialEq + Sync {
    /// The name in specifications.
    const NAME: &'static str;

    /// See [`Family`].
    const ABBREVIATION: &'static str;

    /// See [`Family`].
    const COST: Option<&'static str> = None;

    /// See [`Family`].
    const PARAMETERS: &'static [Parameter] = &[Parameter::K, Parameter::EPSILON];

    /// The encoding with these arguments.
    fn from_arguments(arguments: &Arguments<'_>) -> Result<Unary<Self>, Error>;

    /// The flip for `epsilon`, and what else is `given`.
    fn from_fields(epsilon: f64, given: &Given) -> Result<BitFlip, Error>;
}

/// The kind of [`SymmetricUnaryEncoding`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Symmetric;

impl Kind for Symmetric {
    const NAME: &'static str = "symmetric_unary_encoding";
    const ABBREVIATION: &'static str = "sue";
    const COST: Option<&'static str> = Some("n k bits");

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Unary<Self>, Error> {
        Unary::<Self>::new(arguments.integer("k")?, arguments.real("epsilon")?)
    }

    fn from_fields(epsilon: f64, _given: &Given) -> Result<BitFlip, Error> {
        BitFlip::symmetric(epsilon, Neighbours::OneHot)
    }
}

/// The kind of [`OptimizedUnaryEncoding`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimized;

impl Kind for Optimized {
    const NAME: &'static str = "optimized_unary_encoding";
    const ABBREVIATION: &'static str = "oue";
    const COST: Option<&'static str> = Some("n k bits");

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Unary<Self>, Error> {
        Unary::<Self>::new(arguments.integer("k")?, arguments.real("epsilon")?)
    }

    fn from_fields(epsilon: f64, _given: &Given) -> Result<BitFlip, Error> {
        BitFlip::optimized(epsilon)
    }
}

/// The kind of [`ThresholdHistogramEncoding`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold;

impl Kind for Threshold {
    const NAME: &'static str = "threshold_histogram_encoding";
    const ABBREVIATION: &'static str = "the";

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Unary<Self>, Error> {
        Unary::<Self>::new(arguments.integer("k")?, arguments.real("epsilon")?)
    }

    fn from_fields(epsilon: f64, _given: &Given) -> Result<BitFlip, Error> {
        BitFlip::threshold(epsilon)
    }
}

/// The kind of [`UnaryEncoding`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Custom;

impl Kind for Custom {
    const NAME: &'static str = "unary_encoding";
    const ABBREVIATION: &'static str = "ue";
    const PARAMETERS: &'static [Parameter] = &[
        Parameter::K,
        Parameter::probability("p", 0.75, "the probability that a 1 is reported as 1"),
        Parameter::probability("q", 0.25, "the probability that a 0 is reported as 1"),
    ];

    fn from_arguments(arguments: &Arguments<'_>) -> Result<UnaryEncoding, Error> {
        UnaryEncoding::new(arguments.integer("k")?, arguments.real("p")?, arguments.real("q")?)
    }

    /// The requested doubles are not recorded; the guarantee can be checked without them.
    fn from_fields(epsilon: f64, given: &Given) -> Result<BitFlip, Error> {
        let planes = u32::try_from(given.integer("planes")?).unwrap_or(u32::MAX);
        let flip = BitFlip::new(planes, given.integer("p")?, given.integer("q")?)?;
        let fewest_planes = flip.planes() == 2 || flip.p() % 2 == 1 || flip.q() % 2 == 1;
        let is_consistent = fewest_planes && flip.likelihood_ratio(Neighbours::OneHot).achieves(epsilon);
        if is_consistent { Ok(flip) } else { Err(inconsistent()) }
    }
}

/// Values, or rows of bits.
#[derive(Clone, Copy)]
pub(crate) enum Encoded<'a> {
    Not(&'a [i64]),
    Already(&'a [u8]),
}

impl<'a> Input<'a> for Encoded<'a> {
    const KIND: ValueKind = ValueKind::Integers;

    fn of(values: Values<'a>) -> Option<Self> {
        match values {
            Values::Integers(values) => Some(Self::Not(values)),
            Values::Rows(rows) => Some(Self::Already(rows)),
            _ => None,
        }
    }

    fn people(self, width: usize) -> usize {
        match self {
            Self::Not(values) => values.len(),
            Self::Already(rows) => rows.len() / width,
        }
    }

    /// Whole tiles, not whole rows: encoding can begin anywhere in a row.
    fn unit(_width: usize) -> usize {
        TILE_BYTES
    }
}

impl<K: Kind> Family for Unary<K> {
    const NAME: &'static str = K::NAME;
    const ABBREVIATION: &'static str = K::ABBREVIATION;
    const COST: Option<&'static str> = K::COST;
    const PARAMETERS: &'static [Parameter] = K::PARAMETERS;
    type Reports = Bits;
    type Values<'a> = Encoded<'a>;

    fn k(&self) -> u32 {
        self.k
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        self.flip.fields()
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        K::from_arguments(arguments)
    }

    fn from_fields(k: u64, epsilon: f64, given: &Given) -> Result<Self, Error> {
        Ok(Self::of(check_k(k)?, epsilon, K::from_fields(epsilon, given)?))
    }

    fn epsilon(&self) -> f64 {
        self.flip.likelihood_ratio(Neighbours::OneHot).epsilon()
    }

    fn blanket(&self) -> Option<Blanket> {
        let ratio = self.flip.likelihood_ratio(Neighbours::OneHot);
        let (q, one) = (u128::from(self.flip.q()), 1 << self.flip.planes());
        Some(Blanket::of_supports(ratio.into(), (q, one), (q * q, one * one)))
    }

    fn check(&self, values: Encoded<'_>) -> Result<(), Error> {
        match values {
            Encoded::Not(values) => check_below(self.k, values),
            Encoded::Already(rows) => Bits(self.k).check_rows(rows),
        }
    }

    fn random_bits(&self) -> usize {
        8 * self.report_bytes() * self.flip.planes() as usize
    }

    fn randomise(&self, rng: &mut AnyRng<'_>, values: Encoded<'_>, first: usize, out: &mut [u8]) -> Result<(), Error> {
        match values {
            Encoded::Not(values) => {
                let (instructions, width) = (instruction_set::current()?, self.report_bytes());
                self.fill(rng, first, out, |at, chunk| encode_from(instructions, values, width, at, chunk))
            }
            Encoded::Already(rows) => {
                self.fill(rng, first, out, |at, chunk| chunk.copy_from_slice(&rows[at..at + chunk.len()]))
            }
        }
    }

    fn reports(&self) -> Bits {
        Bits(self.k)
    }

    fn law(&self) -> Option<Law> {
        Some(Law::Supports(self.flip.support()))
    }
}
