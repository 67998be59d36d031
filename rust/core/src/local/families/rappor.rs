//! RAPPOR: a Bloom filter of a text, flipped once permanently, and then again for every report.
//!
//! A client belongs permanently to one of `num_cohorts` cohorts. The cohort's `num_hashes` hash functions choose bits
//! of a row of `num_bloombits` for a text, which are set: its Bloom filter. The permanent round, done once, makes each
//! bit 1 with probability f/2 and 0 with probability f/2, and else leaves it. The instantaneous round, done for every
//! report, makes a bit of the permanent row 1 with probability q if it is 1 and p if it is 0. Source: Erlingsson, Pihur
//! and Korolova 2014, "RAPPOR: randomized aggregatable privacy-preserving ordinal response".
//!
//! The p and q of the paper are not those of other protocols: here q > p, and both are of the instantaneous round alone.
//!
//! # Privacy
//!
//! The cohort is chosen independently of the text. In a cohort the Bloom filters of two texts differ in at most h =
//! `num_hashes` bits that are set only in the first one, and h that are set only in the second one. A pair of such bits
//! has the likelihood ratio of one-hot rows. So all reports on one text together have at most the h-th power of that of
//! the permanent round, ((1 - f/2) / (f/2))^(2h), and a single one has at most the h-th power of that of both rounds
//! composed (see `chance/two_rounds.rs`). As 2 h <= `num_bloombits`, two texts may attain it. The powers have more than
//! 128 binary digits, so epsilon is h times the exact logarithm of the ratio of a pair; that is rounded up, and so is
//! the product.
//!
//! A text is represented by its fingerprint of 64 bits, both in the Bloom filter and in the derivation of its permanent
//! row. Two texts with the same fingerprint have the same reports, so nothing distinguishes them; two with different
//! ones have independent permanent rows, even if their Bloom filters are the same. So the guarantee needs no more
//! digits of a digest.
//!
//! # Estimation
//!
//! Two flips compose to a flip: a cohort's bits are counted as those of unary encoding, and the counts of some texts
//! follow by regression on the bits of their Bloom filters.
//!
//! A report is the cohort in two bytes, little-endian, then the bits, least significant first. The collector counts, for each
//! cohort, its reports, and then those with each bit set.

use dpnoise_kernels::arch::chacha_keys::{PEOPLE, Words};

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::error::Error;
use crate::local::chance::bit_flip::{BitFlip, Flipper, Neighbours};
use crate::local::chance::likelihood::{LikelihoodRatio, MAX_EPSILON, MAX_PLANES, MIN_EPSILON};
use crate::local::chance::two_rounds::TwoFlips;
use crate::local::derivation::{KEY_BYTES, Range, flip_words};
use crate::local::reports::cohorts::{self, Cohorts, HEADER_BYTES};
use crate::local::reports::sketch::Sketch;
use crate::local::reports::tiles::{Part, TILES, parts, set_bits, write_rows};
use crate::local::spec::{Field, Given};
use crate::local::values::Remembering;
use crate::rng::{AnyRng, Wiped, wipe};

/// The seed is fixed: another one would only change which texts share bits.
const SEED: u64 = 0;

/// The probabilities of the paper, as they were given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probabilities {
    /// That the permanent round replaces a bit by a coin toss.
    pub f: f64,
    /// That a 0 of the permanent row is reported as 1.
    pub p: f64,
    /// That a 1 of the permanent row is reported as 1.
    pub q: f64,
}

/// RAPPOR of values, which are fingerprints of texts.
///
/// All reports on one text together are locally differentially private with the epsilon that follows from f, and a
/// single report with the smaller one that follows from f, p and q (Erlingsson, Pihur and Korolova 2014, "RAPPOR:
/// randomized aggregatable privacy-preserving ordinal response").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rappor {
    epsilon: f64,
    /// The epsilon of a single report if no probability were rounded.
    epsilon_first: f64,
    /// A row for each hash function of each cohort.
    hashes: Sketch,
    num_hashes: u32,
    given: Probabilities,
    flips: TwoFlips,
}

impl Rappor {
    /// The largest number of hash functions: a client writes a row for each.
    pub const MAX_HASHES: u64 = 16;

    /// RAPPOR with these Bloom filters and, rounded to binary digits, these probabilities.
    ///
    /// f and p are rounded up, and q down. The permanent round has the fewest digits with which it achieves 0.999 of
    /// the epsilon of f. The instantaneous round has the fewest with which a single report achieves 0.999 of the
    /// epsilon that p and q have after this permanent round, and so 0.998 of that of all three.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `num_bloombits` is a power of two from 8 to 2^20, `num_hashes` from 1 to 16 and at most half
    /// of it, `num_cohorts` from 1 to 65536, and their product at most 2^24; unless 0 < f < 1 and 0 < p < q < 1,
    /// both epsilons are from 2^-20 to 32, and 62 binary digits are enough for both rounds.
    pub fn new(num_bloombits: u64, num_hashes: u64, num_cohorts: u64, given: Probabilities) -> Result<Self, Error> {
        let hashes = check_shape(num_bloombits, num_hashes, num_cohorts)?;
        let num_hashes = num_hashes as u32;
        check_probabilities(given)?;
        let (permanent, epsilon) = permanent_round(given.f, num_hashes)?;
        let (flips, epsilon_first) = both_rounds(permanent, given, num_hashes)?;
        Ok(Self { epsilon, epsilon_first, hashes, num_hashes, given, flips })
    }

    /// The number of hash functions of a cohort.
    #[must_use]
    pub fn num_hashes(&self) -> u32 {
        self.num_hashes
    }

    /// The number of cohorts.
    #[must_use]
    pub fn num_cohorts(&self) -> u32 {
        self.hashes.rows() / self.num_hashes
    }

    /// Both rounds.
    #[must_use]
    pub fn flips(&self) -> TwoFlips {
        self.flips
    }

    /// The bits that a hash function of people's `cohorts` chooses for fingerprints. Nothing wraps below 65536; an
    /// overflow check would be a branch on what is derived from a secret.
    fn bits(&self, cohorts: &Words, hash: u32, fingerprints: &[i64; PEOPLE]) -> Words {
        let mut bits = [0; PEOPLE];
        for ((bit, &cohort), &fingerprint) in bits.iter_mut().zip(cohorts).zip(fingerprints) {
            let hash = self.hashes.hash(cohort.wrapping_mul(self.num_hashes).wrapping_add(hash));
            *bit = hash.column(fingerprint);
        }
        bits
    }

    /// Fills `out` with the bits that are set in the Bloom filters of fingerprints, for each of them cohort by cohort;
    /// a bit occurs twice where two hashes agree.
    ///
    /// # Panics
    /// Unless `out` has `num_cohorts` times `num_hashes` entries for each fingerprint.
    pub fn set_bits(&self, fingerprints: &[i64], out: &mut [i64]) {
        let rows = self.hashes.rows();
        assert_eq!(out.len(), fingerprints.len() * rows as usize);
        for row in 0..rows {
            let hash = self.hashes.hash(row);
            let bits = out.iter_mut().skip(row as usize).step_by(rows as usize);
            bits.zip(fingerprints).for_each(|(bit, &fingerprint)| *bit = hash.column(fingerprint).into());
        }
    }
}

/// The largest likelihood ratio of a pair of bits, each of them set in one of two Bloom filters.
fn of_pair(flip: BitFlip) -> LikelihoodRatio {
    flip.likelihood_ratio(Neighbours::OneHot)
}

/// `count` times a positive number, rounded up.
fn times(count: u32, number: f64) -> f64 {
    let count = f64::from(count);
    let product = count * number;
    if count.mul_add(number, -product) > 0.0 { product.next_up() } else { product }
}

fn check_shape(num_bloombits: u64, num_hashes: u64, num_cohorts: u64) -> Result<Sketch, Error> {
    if !((8..=1 << 20).contains(&num_bloombits) && num_bloombits.is_power_of_two()) {
        return Err(Error::parameter("num_bloombits", num_bloombits, Sketch::ALLOWED_WIDTHS));
    }
    let most = Rappor::MAX_HASHES.min(num_bloombits / 2);
    if !(1..=most).contains(&num_hashes) {
        let allowed = format!("an integer from 1 to {most} with num_bloombits = {num_bloombits}");
        return Err(Error::parameter("num_hashes", num_hashes, allowed));
    }
    if !(1..=1 << 16).contains(&num_cohorts) {
        return Err(Error::parameter("num_cohorts", num_cohorts, Sketch::ALLOWED_ROWS));
    }
    Sketch::new(num_cohorts * num_hashes, num_bloombits, SEED).map_err(|_| {
        let given = format!("{num_bloombits}, {num_hashes} and {num_cohorts}");
        let allowed = "such that their product is at most 2**24, and num_hashes * num_cohorts at most 65536";
        Error::parameter("num_bloombits, num_hashes and num_cohorts", given, allowed)
    })
}

fn check_probabilities(Probabilities { f, p, q }: Probabilities) -> Result<(), Error> {
    for (name, value) in [("f", f), ("p", p), ("q", q)] {
        if !(0.0 < value && value < 1.0) {
            return Err(Error::parameter(name, format!("{value:?}"), "a probability strictly between 0 and 1"));
        }
    }
    if p < q { Ok(()) } else { Err(Error::parameter("q", format!("{q:?}"), format!("greater than p = {p:?}"))) }
}

/// The permanent round with the fewest planes, and the epsilon of `num_hashes` pairs of bits if f were not rounded.
fn permanent_round(f: f64, num_hashes: u32) -> Result<(BitFlip, f64), Error> {
    let refused = || {
        let allowed = "such that epsilon = 2 * num_hashes * ln((2 - f) / f) is between 2**-20 and 32";
        Error::parameter("f", format!("{f:?}"), allowed)
    };
    // Scaling by a power of two is exact, and floor and ceil of a double are doubles: nothing else is rounded here.
    let scaled = |planes: u32| f * (1u64 << (planes - 1)) as f64;
    let make = |planes: u32, q: f64| BitFlip::new(planes, (1 << planes) - q as u64, q as u64).ok();
    let unrounded = make(MAX_PLANES, scaled(MAX_PLANES).floor()).map(|flip| of_pair(flip).epsilon());
    let requested = unrounded.filter(|&epsilon| is_allowed(times(num_hashes, epsilon))).ok_or_else(refused)?;
    let rounded = (2..=MAX_PLANES).filter_map(|planes| make(planes, scaled(planes).ceil()));
    let round = rounded.into_iter().find(|&flip| of_pair(flip).achieves(requested)).ok_or_else(refused)?;
    Ok((round, times(num_hashes, requested)))
}

/// Both rounds, the second with the fewest planes, and the epsilon of a single report if p and q were not rounded.
fn both_rounds(permanent: BitFlip, given: Probabilities, num_hashes: u32) -> Result<(TwoFlips, f64), Error> {
    let refused = || {
        let allowed = "such that the epsilon of a single report is at least 2**-20, and two rounds of at most 62 binary \
                       digits together achieve 0.999 of it";
        let Probabilities { f, p, q } = given;
        Error::parameter("f, p and q", format!("{f:?}, {p:?} and {q:?}"), allowed)
    };
    let make = |planes: u32, round_q: fn(f64) -> f64, round_p: fn(f64) -> f64| {
        let scaled = |value: f64, round: fn(f64) -> f64| round(value * (1u64 << planes) as f64) as u64;
        TwoFlips::new(permanent, BitFlip::new(planes, scaled(given.q, round_q), scaled(given.p, round_p)).ok()?)
    };
    let most = MAX_PLANES - permanent.planes();
    let unrounded = make(most, f64::ceil, f64::floor).map(|flips| of_pair(flips.both()).epsilon());
    let requested = unrounded.filter(|&epsilon| is_allowed(times(num_hashes, epsilon))).ok_or_else(refused)?;
    let mut rounded = (2..=most).filter_map(|planes| make(planes, f64::floor, f64::ceil));
    let flips = rounded.find(|flips| of_pair(flips.both()).achieves(requested)).ok_or_else(refused)?;
    Ok((flips, times(num_hashes, requested)))
}

fn is_allowed(epsilon: f64) -> bool {
    (MIN_EPSILON..=MAX_EPSILON).contains(&epsilon)
}

impl Family for Rappor {
    const NAME: &'static str = "rappor";
    const ABBREVIATION: &'static str = "rappor";
    const COST: Option<&'static str> = None;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter::integer("num_bloombits", Sketch::ALLOWED_WIDTHS, 8, "the bits of a Bloom filter, a power of two"),
        Parameter::integer("num_hashes", "an integer from 1 to 16", 2, "how many hash functions a cohort has"),
        Parameter::integer("num_cohorts", Sketch::ALLOWED_ROWS, 4, "how many cohorts there are"),
        Parameter::probability("f", 0.5, "the probability that the permanent round replaces a bit by a coin toss"),
        Parameter::probability("p", 0.5, "the probability that a 0 of the permanent row is reported as 1"),
        Parameter::probability("q", 0.75, "the probability that a 1 of the permanent row is reported as 1"),
    ];
    const NAME_OF_K: &'static str = "num_bloombits";
    const OF_TEXTS: bool = true;
    type Reports = Cohorts;
    type Values<'a> = Remembering<'a>;

    fn k(&self) -> u32 {
        self.hashes.width()
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        let Probabilities { f, p, q } = self.given;
        let own = [
            ("num_cohorts", self.num_cohorts().into()),
            ("num_hashes", self.num_hashes.into()),
            ("prob_f", f.into()),
            ("prob_p", p.into()),
            ("prob_q", q.into()),
        ];
        self.flips.fields().into_iter().chain(own).collect()
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        let [f, p, q] = ["f", "p", "q"].map(|name| arguments.real(name));
        let [bits, hashes, cohorts] =
            ["num_bloombits", "num_hashes", "num_cohorts"].map(|name| arguments.integer(name));
        Self::new(bits?, hashes?, cohorts?, Probabilities { f: f?, p: p?, q: q? })
    }

    /// The epsilon follows from the probabilities.
    fn from_fields(num_bloombits: u64, _epsilon: f64, given: &Given) -> Result<Self, Error> {
        let (hashes, cohorts) = (given.integer("num_hashes")?, given.integer("num_cohorts")?);
        let [f, p, q] = ["prob_f", "prob_p", "prob_q"].map(|name| given.number(name));
        Self::new(num_bloombits, hashes, cohorts, Probabilities { f: f?, p: p?, q: q? })
    }

    fn epsilon(&self) -> f64 {
        times(self.num_hashes, of_pair(self.flips.permanent()).epsilon())
    }

    fn first(&self) -> Option<(f64, f64)> {
        Some((times(self.num_hashes, of_pair(self.flips.both()).epsilon()), self.epsilon_first))
    }

    /// Every integer is a valid fingerprint.
    fn check(&self, people: Remembering<'_>) -> Result<(), Error> {
        people.check(None)
    }

    fn random_bits(&self) -> usize {
        8 * (KEY_BYTES + self.report_bytes() * self.flips.both().planes() as usize)
    }

    /// The word derived for a person gives the cohort, and those for the fingerprint flip the Bloom filter to the
    /// permanent row. `rng` gives those of the instantaneous round for all rows of a chunk.
    fn randomise(
        &self,
        rng: &mut AnyRng<'_>,
        people: Remembering<'_>,
        first: usize,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let (permanent, width) = (self.flips.permanent(), self.report_bytes());
        let bits_bytes = width - HEADER_BYTES;
        let mut streams = self.streams(people.question)?;
        let (mut bits, mut tiles) = (Wiped::new(self.num_hashes as usize), Wiped::new(TILES));
        let range = Range::new(self.num_cohorts());
        people.in_chunks(width, first, out, |people, out| {
            let (mut cohorts, mut rows) = (vec![0; people.len()], Wiped::try_new(people.len() * bits_bytes)?);
            let told = cohorts.chunks_mut(PEOPLE).zip(rows.chunks_mut(PEOPLE * bits_bytes));
            for ((secrets, values), (cohorts, rows)) in people.sixteens().zip(told) {
                streams.turn_to(secrets);
                streams.begin(1);
                streams.next(1);
                let own = streams.accepted(range, 0).map(|word| range.number(word));
                bits.iter_mut().zip(0..).for_each(|(bits, hash)| *bits = self.bits(&own, hash, &values));
                streams.begin_answer(&values.map(|value| value as u64), flip_words(permanent, bits_bytes));
                for Part { first, length } in parts(bits_bytes) {
                    let tiles = &mut tiles[..length];
                    wipe(tiles);
                    bits.iter().for_each(|bits| set_bits(bits, first, tiles));
                    streams.flip(permanent, tiles);
                    write_rows(first, tiles, bits_bytes, rows);
                }
                cohorts.iter_mut().zip(own).for_each(|(cohort, own)| *cohort = own.into());
            }
            Flipper::new(self.flips.instantaneous(), rows.len())?.flip(rng, &mut rows)?;
            cohorts::write(&cohorts, &rows, out);
            Ok(())
        })
    }

    fn reports(&self) -> Cohorts {
        Cohorts { groups: self.num_cohorts(), bits: self.k(), malformed: "cohort out of range" }
    }
}
