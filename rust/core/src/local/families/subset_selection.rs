//! Subset selection: omega of the k values, which include the sender's more often than by chance.
//!
//! A uniformly random set of omega values is drawn. With some probability it is made to contain the sender's value: if
//! it does not yet, a uniformly random member is replaced by it. Given that the set contains the value, it is uniform
//! among those that do, and given that it does not, among those that do not. So it is subset selection in the sense of
//! Ye and Barg 2018, "Optimal schemes for discrete distribution estimation under locally differential privacy", and of
//! Wang, Huang, Wang et al. 2016, "Mutual information optimally local private discrete distribution estimation". The
//! choice omega = k / (e^epsilon + 1), rounded, is nearly optimal for the squared error of all counts together.
//!
//! # Privacy
//!
//! With m = keep / 2^planes, a set contains the sender's value with probability p = m + (1 - m) omega / k. A set is
//! p (k - omega) / ((1 - p) omega) = 1 + m k / ((1 - m) omega) times as likely for a sender whose value it contains as
//! for one whose value it does not contain: C(k-1, omega-1) sets share p, and C(k-1, omega) share 1 - p.
//!
//! # Estimation
//!
//! A report supports its omega values. Each other value than the sender's is in it with the same probability,
//! (omega - p) / (k - 1).
//!
//! # Constant time
//!
//! All members of the first set are secret: together with the report they would reveal which one was replaced.
//! `reports/sets.rs` draws sets, and replaces a member, with masks only.
//!
//! A report has k bits, least significant first, omega of them set.

use dpnoise_kernels::memory::{collected, room};

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::calibration::Blanket;
use crate::error::Error;
use crate::local::chance::mixture::Mixture;
use crate::local::estimate::{Law, Support};
use crate::local::reports::sets::{INDEX_BYTES, MAX_K, Sets, number, pack, rejected_below, replace_rejected, select};
use crate::local::spec::{Field, Given, check_k};
use crate::local::values::{check_below, rows};
use crate::rng::{AnyRng, Wiped, fill_bytes};

/// The bytes of a coin.
const COIN_BYTES: usize = 8;

/// About this many index words are drawn at once: few enough for the first-level cache.
const CHUNK_WORDS: usize = 1 << 12;

/// Subset selection among k values.
///
/// A report is epsilon-locally differentially private (Ye and Barg 2018, "Optimal schemes for discrete distribution
/// estimation under locally differential privacy").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubsetSelection {
    epsilon: f64,
    omega: u32,
    /// Sets are made to contain the sender's value with the probability that a mixture keeps a value.
    mixture: Mixture,
}

impl SubsetSelection {
    /// Sets of `omega` of `k` values, or of the optimal number of them: k / (e^epsilon + 1), rounded, at least 1.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^16, 1 <= omega < k and 2^-20 <= epsilon <= 32, or when a denominator of
    /// 2^62 does not achieve 0.999 of epsilon.
    pub fn new(k: u64, epsilon: f64, omega: Option<u64>) -> Result<Self, Error> {
        let k = check_k(k)?;
        if k > MAX_K {
            return Err(Error::parameter("k", k, format!("an integer from 2 to {MAX_K} for subset selection")));
        }
        let omega = match omega {
            None => (f64::from(k) / (epsilon.exp() + 1.0)).round_ties_even().clamp(1.0, f64::from(k - 1)) as u32,
            Some(omega) if (1..u64::from(k)).contains(&omega) => omega as u32,
            Some(omega) => {
                return Err(Error::parameter("omega", omega, format!("an integer from 1 to k - 1 = {}", k - 1)));
            }
        };
        Ok(Self { epsilon, omega, mixture: Mixture::of_windows(k, omega, epsilon)? })
    }

    /// The number of members.
    #[must_use]
    pub fn omega(self) -> u32 {
        self.omega
    }

    /// The mixture whose probability of keeping a value is that of making a set contain the sender's value.
    #[must_use]
    pub fn mixture(self) -> Mixture {
        self.mixture
    }

    /// The people whose randomness is drawn at once.
    fn chunk(self) -> usize {
        (CHUNK_WORDS / (self.mixture.k() as usize + 1)).max(1)
    }

    /// The ranges of the numbers that index words are made into: k, k - 1, ..., 1 for the members, and omega for which
    /// member is replaced.
    fn ranges(self) -> Result<Vec<u32>, Error> {
        let mut ranges = room(self.mixture.k() as usize + 1)?;
        ranges.extend((1..=self.mixture.k()).rev().chain([self.omega]));
        Ok(ranges)
    }
}

impl Family for SubsetSelection {
    const NAME: &'static str = "subset_selection";
    const ABBREVIATION: &'static str = "ss";
    const COST: Option<&'static str> = Some("n k bits");
    const PARAMETERS: &'static [Parameter] = &[
        Parameter::k("an integer from 2 to 65536"),
        Parameter::EPSILON,
        Parameter::integer("omega", "an integer from 1 to k - 1", 1, "the size of the set").or_most_accurate(),
    ];
    type Reports = Sets;
    type Values<'a> = &'a [i64];

    fn k(&self) -> u32 {
        self.mixture.k()
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        let mut fields = self.mixture.fields();
        fields.push(("omega", self.omega.into()));
        fields
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        Self::new(arguments.integer("k")?, arguments.real("epsilon")?, arguments.optional("omega")?)
    }

    fn from_fields(k: u64, epsilon: f64, given: &Given) -> Result<Self, Error> {
        Self::new(k, epsilon, Some(given.integer("omega")?))
    }

    fn epsilon(&self) -> f64 {
        self.mixture.window_ratio(self.omega).epsilon()
    }

    fn blanket(&self) -> Option<Blanket> {
        let ratio = self.mixture.window_ratio(self.omega);
        let (k, omega) = (u128::from(self.k()), u128::from(self.omega));
        Some(Blanket::of_supports(ratio.into(), (omega, k), (omega * (omega - 1), k * (k - 1))))
    }

    fn check(&self, values: &[i64]) -> Result<(), Error> {
        check_below(self.k(), values)
    }

    fn random_bits(&self) -> usize {
        8 * (INDEX_BYTES * (self.k() as usize + 1) + COIN_BYTES)
    }

    fn unit(&self) -> usize {
        self.chunk() * self.report_bytes()
    }

    /// For a chunk of max(1, floor(4096 / (k + 1))) people, `rng` gives the k + 1 index words of each, then their
    /// coins, then the replacements of rejected index words. Index words have 32 bits; coins have 64, of which the
    /// upper `planes` are used.
    fn randomise(&self, rng: &mut AnyRng<'_>, values: &[i64], first: usize, out: &mut [u8]) -> Result<(), Error> {
        let width = self.report_bytes();
        let values = &values[rows(first, out, width)];
        let ranges = self.ranges()?;
        let rejected_below = collected(ranges.iter().map(|&range| rejected_below(range)))?;
        let chunk = self.chunk().min(values.len().max(1));
        let mut random = Wiped::try_new(chunk * (INDEX_BYTES * ranges.len() + COIN_BYTES))?;
        let mut members = Wiped::try_new(ranges.len() - 1)?;
        for (values, out) in values.chunks(chunk).zip(out.chunks_mut(chunk * width)) {
            let random = &mut random[..values.len() * (INDEX_BYTES * ranges.len() + COIN_BYTES)];
            fill_bytes(rng, random)?;
            let (words, coins) = random.split_at_mut(values.len() * INDEX_BYTES * ranges.len());
            let (words, coins) = (words.as_chunks_mut().0, coins.as_chunks().0);
            for words in words.chunks_mut(ranges.len()) {
                replace_rejected(rng, words, &ranges, &rejected_below)?;
            }
            let people = out.chunks_mut(width).zip(words.chunks(ranges.len())).zip(coins).zip(values);
            for (((row, words), coin), &value) in people {
                let numbers = words.iter().zip(&ranges).map(|(&word, &range)| number(word, range));
                let force = u64::from_le_bytes(*coin) >> (64 - self.mixture.planes()) < self.mixture.keep();
                select(self.omega, value as u32, force, numbers, &mut members);
                pack(&members, row);
            }
        }
        Ok(())
    }

    fn reports(&self) -> Sets {
        Sets { k: self.k(), fewest: self.omega, most: self.omega, malformed: "not a set of omega values" }
    }

    /// Rounded to 52 binary digits.
    fn law(&self) -> Option<Law> {
        let Self { omega, mixture, .. } = self;
        let (k, omega, keep) = (u128::from(mixture.k()), u128::from(*omega), u128::from(mixture.keep()));
        let all = k << mixture.planes();
        let p = keep * k + ((1 << mixture.planes()) - keep) * omega;
        let q = omega * all - p;
        let digits = |probability: f64| (probability * (1u64 << 62) as f64) as u64;
        Some(Law::Supports(Support {
            p: digits(p as f64 / all as f64),
            q: digits(q as f64 / (all * (k - 1)) as f64),
            one: 1 << 62,
        }))
    }
}
