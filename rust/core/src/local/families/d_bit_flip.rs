//! dBitFlipPM: some bits of a value's one-hot row, flipped once and kept.
//!
//! A client samples d of the k values once and keeps the sample. It reports only the bits of those values. Each bit is
//! flipped, and the flipped row of a value is kept. The row depends only on which sampled value it is, if any, so there
//! are d + 1 of them. Source: Ding, Kulkarni and Yekhanin 2017, "Collecting telemetry data privately".
//!
//! # Privacy
//!
//! The sample is drawn independently of values, and may be known. Two values differ in at most two of the sampled bits,
//! so a symmetric flip for one-hot rows achieves epsilon; for d = 1 they differ in one, and a flip for one bit is
//! enough. All reports on one value are the same. Reports on m values reveal up to m times as much about them, at most
//! d + 1 times; and they may show *when* the value changed, since nothing is flipped again.
//!
//! # Estimation
//!
//! A report supports the values whose bits are 1. A value is sampled with probability d / k, so it is supported with
//! probability p d / k if it is the sender's, and q d / k otherwise. The collector need not know the sample.
//!
//! # Constant time
//!
//! The sample is drawn by rejection, from words derived from the secret alone. The words of a permanent row are derived
//! for the value, or for none if it is not sampled; flipping takes the same time for all.
//!
//! A report has k bits, least significant first; those of values that are not sampled are 0.

use dpnoise_kernels::arch::chacha_keys::{PEOPLE, Words};
use dpnoise_kernels::memory::collected;

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::error::Error;
use crate::local::chance::bit_flip::{BitFlip, Neighbours};
use crate::local::chance::likelihood::MAX_PLANES;
use crate::local::derivation::{KEY_BYTES, Range, Streams, flip_words};
use crate::local::estimate::{Law, Support};
use crate::local::reports::sets::{MAX_K, Sets};
use crate::local::reports::tiles::{Part, TILES, Tile, parts, same, set_bits, tiles, write_rows};
use crate::local::spec::{Field, Given, check_k};
use crate::local::values::Remembering;
use crate::rng::{AnyRng, Wiped, wipe};

/// dBitFlipPM over k values.
///
/// All reports on one value together are epsilon-locally differentially private (Ding, Kulkarni and Yekhanin 2017,
/// "Collecting telemetry data privately").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DBitFlip {
    k: u32,
    epsilon: f64,
    d: u32,
    flip: BitFlip,
}

impl DBitFlip {
    /// The protocol that reports `d` of the bits of `k` values.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^16, 1 <= d <= k and 2^-20 <= epsilon <= 32, or when a denominator of 2^62 does
    /// not achieve 0.999 of epsilon.
    pub fn new(k: u64, epsilon: f64, d: u64) -> Result<Self, Error> {
        let k = check_k(k)?;
        if k > MAX_K {
            return Err(Error::parameter("k", k, format!("an integer from 2 to {MAX_K} where values are sampled")));
        }
        if !(1..=u64::from(k)).contains(&d) {
            return Err(Error::parameter("d", d, format!("an integer from 1 to k = {k}")));
        }
        let d = d as u32;
        let flip = BitFlip::symmetric(epsilon, neighbours(d))?;
        if flip.planes() + k.next_power_of_two().trailing_zeros() > MAX_PLANES {
            let allowed = "such that probabilities over a denominator of at most 2**62 achieve 0.999 of epsilon";
            return Err(Error::parameter("k and epsilon", format!("k = {k}, epsilon = {epsilon:?}"), allowed));
        }
        Ok(Self { k, epsilon, d, flip })
    }

    /// The number of sampled bits.
    #[must_use]
    pub fn d(self) -> u32 {
        self.d
    }

    /// The flip of each sampled bit.
    #[must_use]
    pub fn flip(self) -> BitFlip {
        self.flip
    }
}

/// The largest number of bits, among `d` sampled ones, in which the rows of two values differ.
fn neighbours(d: u32) -> Neighbours {
    if d == 1 { Neighbours::OneBit } else { Neighbours::OneHot }
}

/// Draws a set of `size` values for each person, in constant time (Fan, Muller and Rezucha 1962), with the next words of
/// `streams`: one for each of the values, of which `ranges` has how many are left.
fn sample(streams: &mut Streams, size: u32, ranges: &[Range], samples: &mut [Tile]) {
    let mut missing = [size; PEOPLE];
    for (ranges, tile) in ranges.chunks(32).zip(samples) {
        streams.next(ranges.len());
        let mut bits = [0; PEOPLE];
        for (i, &range) in ranges.iter().enumerate() {
            for ((bits, missing), word) in bits.iter_mut().zip(&mut missing).zip(streams.accepted(range, i)) {
                // Both are below 2^31, so the sign of the difference tells which one is smaller.
                let taken = range.number(word).wrapping_sub(*missing) >> 31;
                *missing = missing.wrapping_sub(taken);
                *bits |= taken << i;
            }
        }
        *tile = bits.map(u32::to_le_bytes);
    }
}

/// Ones for each person whose bit is sampled, and zeros for others.
fn are_sampled(bits: &Words, samples: &[Tile]) -> Words {
    let mut found = [0; PEOPLE];
    for (j, sample) in (0..).zip(samples) {
        for ((found, bytes), &bit) in found.iter_mut().zip(sample).zip(bits) {
            *found |= u32::from_le_bytes(*bytes) & same(bit >> 5, j);
        }
    }
    for (found, &bit) in found.iter_mut().zip(bits) {
        *found = (*found >> (bit & 31) & 1).wrapping_neg();
    }
    found
}

/// Clears the bits that are not sampled.
fn keep_sampled(tiles: &mut [Tile], samples: &[Tile]) {
    for (bytes, sampled) in
        tiles.as_flattened_mut().as_flattened_mut().iter_mut().zip(samples.as_flattened().as_flattened())
    {
        *bytes &= sampled;
    }
}

impl Family for DBitFlip {
    const NAME: &'static str = "d_bit_flip";
    const ABBREVIATION: &'static str = "dbitflip";
    const COST: Option<&'static str> = None;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter::k("an integer from 2 to 65536"),
        Parameter::EPSILON,
        Parameter::integer("d", "an integer from 1 to k", 1, "how many values a person samples"),
    ];
    type Reports = Sets;
    type Values<'a> = Remembering<'a>;

    fn k(&self) -> u32 {
        self.k
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        let mut fields = self.flip.fields();
        fields.push(("d", self.d.into()));
        fields
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        Self::new(arguments.integer("k")?, arguments.real("epsilon")?, arguments.integer("d")?)
    }

    fn from_fields(k: u64, epsilon: f64, given: &Given) -> Result<Self, Error> {
        Self::new(k, epsilon, given.integer("d")?)
    }

    fn epsilon(&self) -> f64 {
        self.flip.likelihood_ratio(neighbours(self.d)).epsilon()
    }

    fn check(&self, people: Remembering<'_>) -> Result<(), Error> {
        people.check(Some(self.k))
    }

    fn random_bits(&self) -> usize {
        8 * (KEY_BYTES + 4 * (self.k as usize + flip_words(self.flip, self.report_bytes())))
    }

    /// The words derived for a person give the sample: value after value, a value is sampled if a number below that of
    /// values left is below that of samples missing. The words derived for the value, or for k if it is not sampled,
    /// flip the row. `rng` is not used.
    fn randomise(
        &self,
        _rng: &mut AnyRng<'_>,
        people: Remembering<'_>,
        first: usize,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let width = self.report_bytes();
        let mut streams = self.streams(people.question)?;
        let (mut samples, mut tiles) = (Wiped::try_new(tiles(width))?, Wiped::new(TILES));
        let ranges = collected((0..self.k).map(|values| Range::new(self.k - values)))?;
        people.in_chunks(width, first, out, |people, out| {
            for ((secrets, values), rows) in people.sixteens().zip(out.chunks_mut(PEOPLE * width)) {
                let bits = values.map(|value| value as u32);
                streams.turn_to(secrets);
                streams.begin(ranges.len());
                sample(&mut streams, self.d, &ranges, &mut samples);
                let mut states = [0; PEOPLE];
                for ((state, bit), sampled) in states.iter_mut().zip(bits).zip(are_sampled(&bits, &samples)) {
                    *state = (bit & sampled | self.k & !sampled).into();
                }
                streams.begin_answer(&states, flip_words(self.flip, width));
                for Part { first, length } in parts(width) {
                    let (tiles, samples) = (&mut tiles[..length], &samples[first..][..length]);
                    wipe(tiles);
                    set_bits(&bits, first, tiles);
                    keep_sampled(tiles, samples);
                    streams.flip(self.flip, tiles);
                    keep_sampled(tiles, samples);
                    write_rows(first, tiles, width, rows);
                }
            }
            Ok(())
        })
    }

    fn reports(&self) -> Sets {
        Sets { k: self.k, fewest: 0, most: self.d, malformed: "not a set of at most d values" }
    }

    fn law(&self) -> Option<Law> {
        let (k, d) = (u64::from(self.k), u64::from(self.d));
        let Support { p, q, one } = self.flip.support();
        Some(Law::Supports(Support { p: d * p, q: d * q, one: k * one }))
    }
}
