//! LOLOHA: longitudinal local hashing, for people who report repeatedly.
//!
//! A client keeps one hash function from k values to g. The permanent answer to a hash is the hash, or with some
//! probability a uniform one of the g; every report is that permanent answer, or with some probability a uniform one of
//! the g. Source: Arcolezi, Pinzón, Palamidessi and Gambs 2023, "Frequency estimation of evolving data under local
//! differential privacy", where g = 2 is BiLOLOHA. The hash functions are those of `reports/hashing.rs`.
//!
//! # Privacy
//!
//! The hash function is drawn independently of values, so reports depend on values only through hashes. All reports on
//! one hash together have the likelihood ratio of the permanent round: see `chance/two_rounds.rs`. There are g
//! permanent answers, so reports reveal at most g times as much about all hashes of a person together, however often
//! the value changes; but they may show *when* the hash changed.
//!
//! # Estimation
//!
//! Two mixtures compose to a mixture: the law is that of local hashing with the probability of keeping the hash twice.
//!
//! # The choice of g
//!
//! The paper has a closed form of the instantaneous round, which gives a single report `epsilon_first` for g = 2 and
//! less for a larger g, and an optimal g for that form. Here the round is solved for the exact likelihood ratio of a
//! single report. So for every g the variance is that of local hashing with `epsilon_first`, and the optimal g is the
//! same, too: e^`epsilon_first` + 1, rounded.
//!
//! # Constant time
//!
//! A number is drawn by rejection unless g is a power of two. If the permanent answer to a value were derived from that
//! value, the time could reveal that the value is the same as before. So the words for the permanent answers to all g
//! hashes are derived each time, from the secret alone, and rejected ones are replaced before a mask selects those for
//! one hash: the time is a function of dropped words of that person, for every value.
//!
//! A report is a number as in local hashing.

use dpnoise_kernels::arch::chacha_keys::PEOPLE;
use dpnoise_kernels::arith::mask;

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::error::Error;
use crate::local::chance::likelihood::check_first;
use crate::local::chance::mixture::{Mixer, Mixture};
use crate::local::chance::two_rounds::{TwoMixtures, too_fine};
use crate::local::derivation::{KEY_BYTES, Range};
use crate::local::estimate::Law;
use crate::local::reports::hashing::{Hashing, optimal_g};
use crate::local::reports::symbols::write_reports;
use crate::local::reports::tiles::same;
use crate::local::spec::{Field, Given, check_k};
use crate::local::values::Remembering;
use crate::rng::{AnyRng, Wiped};

/// LOLOHA over k values.
///
/// All reports on one hash together are `epsilon_permanent`-locally differentially private, and a single report is so
/// for `epsilon_first` (Arcolezi, Pinzón, Palamidessi and Gambs 2023, "Frequency estimation of evolving data under
/// local differential privacy").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loloha {
    epsilon: f64,
    epsilon_first: f64,
    hashing: Hashing,
    rounds: TwoMixtures,
}

impl Loloha {
    /// The largest number of hashes: a client derives the permanent answers to all of them.
    pub const MAX_G: u64 = 1 << 8;

    /// The protocol for `k` values whose reports on one hash achieve `epsilon_permanent`, however many there are, and a
    /// single one `epsilon_first`; with `g` hashes, or the optimal number: e^`epsilon_first` + 1, rounded, but at most k.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24, 2 <= g <= 2^8 and 2^-20 <= `epsilon_first` < `epsilon_permanent` <= 32,
    /// or when 62 binary digits are too few for both rounds.
    pub fn new(k: u64, epsilon_permanent: f64, epsilon_first: f64, g: Option<u64>) -> Result<Self, Error> {
        let k = check_k(k)?;
        check_first(epsilon_permanent, epsilon_first)?;
        let g = g.unwrap_or_else(|| optimal_g(k, epsilon_first).min(Self::MAX_G));
        if !(2..=Self::MAX_G).contains(&g) {
            return Err(Error::parameter("g", g, format!("an integer from 2 to {}", Self::MAX_G)));
        }
        let permanent = Mixture::new(g as u32, epsilon_permanent).ok();
        let rounds = permanent.and_then(|permanent| TwoMixtures::after(permanent, epsilon_first));
        let rounds = rounds.ok_or_else(|| too_fine(epsilon_permanent, epsilon_first))?;
        let hashing = Hashing::new(k, rounds.both())?;
        Ok(Self { epsilon: epsilon_permanent, epsilon_first, hashing, rounds })
    }

    /// The hash functions, and both rounds, composed.
    #[must_use]
    pub fn hashing(self) -> Hashing {
        self.hashing
    }

    /// Both rounds.
    #[must_use]
    pub fn rounds(self) -> TwoMixtures {
        self.rounds
    }
}

impl Family for Loloha {
    const NAME: &'static str = "loloha";
    const ABBREVIATION: &'static str = "loloha";
    const COST: Option<&'static str> = None;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter::K,
        Parameter::EPSILON_PERMANENT,
        Parameter::EPSILON_FIRST,
        Parameter::integer("g", "an integer from 2 to 256", 2, "how many hashes").or_most_accurate(),
    ];
    type Reports = Hashing;
    type Values<'a> = Remembering<'a>;

    fn k(&self) -> u32 {
        self.hashing.k()
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        let mut fields = self.rounds.fields();
        fields.extend(self.hashing.fields());
        fields.push(("epsilon_first", self.epsilon_first.into()));
        fields
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        let [epsilon_permanent, epsilon_first] =
            ["epsilon_permanent", "epsilon_first"].map(|name| arguments.real(name));
        Self::new(arguments.integer("k")?, epsilon_permanent?, epsilon_first?, arguments.optional("g")?)
    }

    fn from_fields(k: u64, epsilon: f64, given: &Given) -> Result<Self, Error> {
        let first = given.number("epsilon_first")?;
        Self::new(k, epsilon, first, Some(given.integer("g")?))
    }

    fn epsilon(&self) -> f64 {
        self.rounds.permanent().likelihood_ratio().epsilon()
    }

    fn first(&self) -> Option<(f64, f64)> {
        Some((self.rounds.both().likelihood_ratio().epsilon(), self.epsilon_first))
    }

    fn check(&self, people: Remembering<'_>) -> Result<(), Error> {
        people.check(Some(self.k()))
    }

    fn random_bits(&self) -> usize {
        let (permanent, instantaneous) = (self.rounds.permanent(), self.rounds.instantaneous());
        8 * (KEY_BYTES + 12 * permanent.k() as usize + instantaneous.random_bytes())
    }

    /// The words derived for a person give a and b of the hash function, a word each, and then, for the hashes 0, 1, ...,
    /// g - 1, a coin of two words and a number below g of one: the permanent answer is the hash, or that number. `rng`
    /// gives the words of the instantaneous round for a chunk.
    fn randomise(
        &self,
        rng: &mut AnyRng<'_>,
        people: Remembering<'_>,
        first: usize,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let (permanent, width, prime) = (self.rounds.permanent(), self.report_bytes(), self.hashing.prime());
        let (g, length) = (permanent.k(), 2 + 3 * permanent.k() as usize);
        let (residues, hashes) = (Range::new(prime as u32), Range::new(g));
        let threshold = permanent.keep() << (64 - permanent.planes());
        let mut streams = self.streams(people.question)?;
        people.in_chunks(width, first, out, |people, out| {
            let (mut seeds, mut symbols) = (vec![0; people.len()], Wiped::new(people.len()));
            let told = seeds.chunks_mut(PEOPLE).zip(symbols.chunks_mut(PEOPLE));
            for ((secrets, values), (seeds, symbols)) in people.sixteens().zip(told) {
                streams.turn_to(secrets);
                streams.begin(length);
                streams.next(length);
                let mut own = [0; PEOPLE];
                let [a, b] = [0, 1].map(|i| streams.accepted(residues, i));
                for (i, seed) in seeds.iter_mut().enumerate() {
                    let [a, b] = [a[i], b[i]].map(|word| residues.number(word).into());
                    own[i] = self.hashing.hash(a, b, values[i] as u32);
                    *seed = a.wrapping_mul(prime).wrapping_add(b);
                }
                // Of the words for all hashes, those for a person's own.
                let mut words = [[0; PEOPLE]; 3];
                for (hash, at) in (0..g).zip((2..).step_by(3)) {
                    let given = [streams.word(at), streams.word(at + 1), streams.accepted(hashes, at + 2)];
                    for (words, given) in words.iter_mut().zip(given) {
                        for ((word, given), own) in words.iter_mut().zip(given).zip(own) {
                            *word |= given & same(own, hash);
                        }
                    }
                }
                let [low, high, other] = words;
                for (i, symbol) in symbols.iter_mut().enumerate() {
                    let keep = mask(u64::from(high[i]) << 32 | u64::from(low[i]) < threshold) as u32;
                    *symbol = own[i] & keep | hashes.number(other[i]) & !keep;
                }
            }
            Mixer::new(self.rounds.instantaneous(), symbols.len()).mix(rng, &mut symbols)?;
            write_reports(&mut seeds, &symbols, g, width, out);
            Ok(())
        })
    }

    fn reports(&self) -> Hashing {
        self.hashing
    }

    fn law(&self) -> Option<Law> {
        Some(Law::Supports(self.hashing.support()))
    }
}
