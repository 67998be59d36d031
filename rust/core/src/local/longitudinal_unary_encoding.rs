//! Longitudinal unary encoding: unary encoding for people who are asked again and again.
//!
//! A client flips the bits of the one-hot row of a value once and for ever, and flips those of the permanent row again for
//! every report. The permanent round is optimised or symmetric, the instantaneous one symmetric: L-OSUE and L-SUE of
//! Arcolezi, Couchot, Al Bouna and Xiao 2022, "Improving the utility of locally differentially private protocols for
//! longitudinal and multidimensional frequency estimates". L-SUE is basic RAPPOR (Erlingsson, Pihur and Korolova 2014).
//!
//! # Privacy
//!
//! All reports on one value together have the likelihood ratio of the permanent round: see `two_rounds`. Each value has
//! a permanent row of its own, so reports on m values tell up to m times as much about them; and they may show *when*
//! the value changed, since a row then gives way to another.
//!
//! # Estimation
//!
//! Two flips are a flip: the law of unary encoding with the probabilities of both.
//!
//! A report is a row as in unary encoding.

use rand_core::TryCryptoRng;

use super::bit_flip::{BitFlip, Neighbours};
use super::flipper::Flipper;
use super::likelihood::check_first;
use super::memo::{Derivation, Purpose, Secret};
use super::protocol::{Family, Protocol, check_k};
use super::randomizer::Randomizer;
use super::remembering::Longitudinal;
use super::two_rounds::{TwoFlips, too_fine};
use super::unary_encoding::{clear_tail_bits, encode_part};
use crate::error::Error;
use crate::rng::Wiped;

/// The permanent round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permanent {
    /// As in optimised unary encoding: L-OSUE.
    Optimized,
    /// As in symmetric unary encoding: L-SUE.
    Symmetric,
}

/// Longitudinal unary encoding of k values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LongitudinalUnaryEncoding {
    protocol: Protocol,
    flips: TwoFlips,
}

impl LongitudinalUnaryEncoding {
    /// The encoding whose reports on one value achieve `epsilon_permanent`, however many there are, and a single one
    /// `epsilon_first`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24 and 2^-20 <= `epsilon_first` < `epsilon_permanent` <= 32, or when 62
    /// binary digits are too few for both rounds.
    pub fn new(k: u64, epsilon_permanent: f64, epsilon_first: f64, permanent: Permanent) -> Result<Self, Error> {
        let k = check_k(k)?;
        check_first(epsilon_permanent, epsilon_first)?;
        let round = match permanent {
            Permanent::Optimized => BitFlip::optimized(epsilon_permanent)?,
            Permanent::Symmetric => BitFlip::symmetric(epsilon_permanent, Neighbours::OneHot)?,
        };
        let flips = TwoFlips::after(round, epsilon_first).ok_or_else(|| too_fine(epsilon_permanent, epsilon_first))?;
        let randomizer = Randomizer::LongitudinalFlips { flips, epsilon_first };
        let protocol = Protocol::new(Family::LongitudinalUnaryEncoding, k, randomizer, epsilon_permanent);
        Ok(Self { protocol, flips })
    }

    /// The encoding that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        match protocol.randomizer() {
            Randomizer::LongitudinalFlips { flips, .. } => Some(Self { protocol, flips }),
            _ => None,
        }
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// Both rounds.
    #[must_use]
    pub fn flips(&self) -> TwoFlips {
        self.flips
    }
}

impl Longitudinal for LongitudinalUnaryEncoding {
    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn random_bytes(&self) -> usize {
        self.protocol.report_bytes() * self.flips.both().planes() as usize
    }

    /// The words of the permanent row are derived for the value. `rng` gives those of the instantaneous round for all rows
    /// of a chunk, as in unary encoding.
    fn report<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        derivation: &Derivation,
        secrets: &[Secret],
        values: &[i64],
        out: &mut [u8],
    ) -> Result<(), Error> {
        let width = self.protocol.report_bytes();
        let mut permanent = Flipper::new(self.flips.permanent(), width)?;
        let mut rows = Wiped::new(out.len());
        for ((row, secret), &value) in rows.chunks_mut(width).zip(secrets).zip(values) {
            encode_part(value, 0, row);
            permanent.flip(&mut derivation.stream(secret, Purpose::Answer, value as u64)?, row)?;
        }
        Flipper::new(self.flips.instantaneous(), rows.len())?.flip(rng, &mut rows)?;
        clear_tail_bits(&self.protocol, 0, &mut rows);
        out.copy_from_slice(&rows);
        Ok(())
    }
}
