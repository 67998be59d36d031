//! LOLOHA: local hashing for people who are asked again and again.
//!
//! A client has one hash function from k values to g for ever. The permanent answer to a hash is the hash, or by chance any
//! of the g; and every report is that permanent answer, or by chance any of the g. Source: Arcolezi, Pinzón, Palamidessi
//! and Gambs 2023, "Frequency estimation of evolving data under local differential privacy", where g = 2 is BiLOLOHA. The
//! hash functions are those of `local_hashing`.
//!
//! # Privacy
//!
//! The hash function is drawn without regard to values, so only hashes tell anything. All reports on one hash together
//! have the likelihood ratio of the permanent round: see `two_rounds`. There are g permanent answers, so reports tell at
//! most g times as much about all the hashes that there ever were, however often the value changes; but they may show
//! *when* the hash changed.
//!
//! # Estimation
//!
//! Two mixtures are a mixture: the law of local hashing with the probability of keeping the hash twice.
//!
//! # The choice of g
//!
//! The paper has a closed form of the instantaneous round that gives a single report `epsilon_first` for g = 2, and less for
//! a larger g, and an optimal g that goes with it. Here the round is solved for the exact likelihood ratio of a single
//! report. So whatever g is, the variance is that of local hashing with `epsilon_first`, and so is the optimal g,
//! e^`epsilon_first` + 1, rounded.
//!
//! # Constant time
//!
//! A number is drawn by rejection unless g is a power of two. If the permanent answer to a value were derived from that
//! value, the time could tell that the value is the same as before. So the permanent answers to all g hashes are derived
//! each time, from the secret alone, and a mask selects one: what the time shows is a function of dropped words of that
//! person, whatever the value is.
//!
//! A report is a number as in local hashing.

use core::slice;

use rand_core::TryCryptoRng;

use super::likelihood::check_first;
use super::local_hashing::{Hashing, optimal_g};
use super::memo::{Derivation, Purpose, Secret};
use super::mixer::{Mixer, random_bytes};
use super::mixture::Mixture;
use super::protocol::{Family, Protocol, check_k};
use super::randomizer::Randomizer;
use super::remembering::Longitudinal;
use super::symbols::write_reports;
use super::two_rounds::{TwoMixtures, too_fine};
use crate::error::Error;
use crate::rng::Wiped;
use dpnoise_kernels::arith::mask;

/// The largest number of hashes: a client derives the permanent answers to all of them.
pub const MAX_G: u64 = 1 << 8;

/// LOLOHA over k values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loloha {
    protocol: Protocol,
    hashing: Hashing,
    rounds: TwoMixtures,
}

impl Loloha {
    /// The protocol for `k` values whose reports on one hash achieve `epsilon_permanent`, however many there are, and a
    /// single one `epsilon_first`; with `g` hashes, or the optimal number: e^`epsilon_first` + 1, rounded, but at most k.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24, 2 <= g <= 2^8 and 2^-20 <= `epsilon_first` < `epsilon_permanent` <= 32,
    /// or when 62 binary digits are too few for both rounds.
    pub fn new(k: u64, g: Option<u64>, epsilon_permanent: f64, epsilon_first: f64) -> Result<Self, Error> {
        let k = check_k(k)?;
        check_first(epsilon_permanent, epsilon_first)?;
        let g = g.unwrap_or_else(|| optimal_g(k, epsilon_first).min(MAX_G));
        if !(2..=MAX_G).contains(&g) {
            return Err(Error::parameter("g", g, format!("an integer from 2 to {MAX_G}")));
        }
        let permanent = Mixture::new(g as u32, epsilon_permanent).ok();
        let rounds = permanent.and_then(|permanent| TwoMixtures::after(permanent, epsilon_first));
        let rounds = rounds.ok_or_else(|| too_fine(epsilon_permanent, epsilon_first))?;
        let hashing = Hashing::new(k, rounds.both())?;
        let randomizer = Randomizer::LongitudinalHashing { hashing, rounds, epsilon_first };
        let protocol = Protocol::new(Family::Loloha, k, randomizer, epsilon_permanent);
        Ok(Self { protocol, hashing, rounds })
    }

    /// The protocol that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        match protocol.randomizer() {
            Randomizer::LongitudinalHashing { hashing, rounds, .. } => Some(Self { protocol, hashing, rounds }),
            _ => None,
        }
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }
}

impl Longitudinal for Loloha {
    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn random_bytes(&self) -> usize {
        let g = self.rounds.permanent().k() as usize;
        g * random_bytes(self.rounds.permanent()) + random_bytes(self.rounds.instantaneous())
    }

    /// The words derived for a person give a and b of the hash function as in local hashing, and then the permanent
    /// answers to the hashes 0, 1, ..., g - 1 as a chunk of `mixer`. `rng` gives the words of the instantaneous round for a
    /// chunk.
    fn report<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        derivation: &Derivation,
        secrets: &[Secret],
        values: &[i64],
        out: &mut [u8],
    ) -> Result<(), Error> {
        let g = self.rounds.permanent().k();
        let mut permanent = Mixer::new(self.rounds.permanent(), g as usize);
        let (mut answers, mut symbols) = (Wiped::new(g as usize), Wiped::new(values.len()));
        let mut seeds = vec![0; values.len()];
        for (((seed, symbol), secret), &value) in seeds.iter_mut().zip(&mut *symbols).zip(secrets).zip(values) {
            let mut words = derivation.stream(secret, Purpose::Person, 0)?;
            self.hashing.draw_seeds(&mut words, slice::from_mut(seed))?;
            answers.iter_mut().zip(0..).for_each(|(answer, hash)| *answer = hash);
            permanent.mix(&mut words, &mut answers)?;
            let own = self.hashing.hash_with(*seed, value as u32);
            *symbol = (0..).zip(&*answers).fold(0, |found, (hash, answer)| found | answer & mask(hash == own) as u32);
        }
        Mixer::new(self.rounds.instantaneous(), values.len()).mix(rng, &mut symbols)?;
        write_reports(&mut seeds, &symbols, g, self.protocol.report_bytes(), out);
        Ok(())
    }
}
