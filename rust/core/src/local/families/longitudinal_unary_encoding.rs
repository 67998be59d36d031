//! Longitudinal unary encoding: unary encoding for people who report repeatedly.
//!
//! A client flips the bits of a value's one-hot row once and keeps the result, the permanent row. For every report it
//! flips the bits of the permanent row again. The permanent round is optimised or symmetric, the instantaneous one
//! symmetric: L-OSUE and L-SUE of Arcolezi, Couchot, Al Bouna and Xiao 2022, "Improving the utility of locally
//! differentially private protocols for longitudinal and multidimensional frequency estimates". L-SUE is basic RAPPOR
//! (Erlingsson, Pihur and Korolova 2014).
//!
//! # Privacy
//!
//! All reports on one value together have the likelihood ratio of the permanent round: see `chance/two_rounds.rs`. Each
//! value has a permanent row of its own, so reports on m values reveal up to m times as much about them. They may also
//! show *when* the value changed, since another permanent row is used from then on.
//!
//! # Estimation
//!
//! Two flips compose to a flip: the law is that of unary encoding with the probabilities of both rounds composed.
//!
//! A report is a row as in unary encoding.

use dpnoise_kernels::arch::chacha_keys::PEOPLE;

use super::family::Family;
use crate::arguments::{Arguments, Parameter};
use crate::error::Error;
use crate::local::chance::bit_flip::{BitFlip, Flipper, Neighbours};
use crate::local::chance::likelihood::check_first;
use crate::local::chance::two_rounds::{TwoFlips, too_fine};
use crate::local::derivation::{KEY_BYTES, flip_words};
use crate::local::estimate::Law;
use crate::local::reports::bits::Bits;
use crate::local::reports::tiles::{Part, TILES, parts, set_bits, write_rows};
use crate::local::spec::{Field, Given, check_k};
use crate::local::values::Remembering;
use crate::rng::{AnyRng, Wiped, wipe};

/// The permanent round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permanent {
    /// As in optimised unary encoding: L-OSUE.
    Optimized,
    /// As in symmetric unary encoding: L-SUE.
    Symmetric,
}

/// Longitudinal unary encoding of k values.
///
/// All reports on one value together are `epsilon_permanent`-locally differentially private, and a single report is so
/// for `epsilon_first` (Arcolezi, Couchot, Al Bouna and Xiao 2022: L-OSUE and L-SUE).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LongitudinalUnaryEncoding {
    k: u32,
    epsilon: f64,
    epsilon_first: f64,
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
        Ok(Self { k, epsilon: epsilon_permanent, epsilon_first, flips })
    }

    /// Both rounds.
    #[must_use]
    pub fn flips(self) -> TwoFlips {
        self.flips
    }
}

impl Family for LongitudinalUnaryEncoding {
    const NAME: &'static str = "longitudinal_unary_encoding";
    const ABBREVIATION: &'static str = "lue";
    const COST: Option<&'static str> = None;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter::K,
        Parameter::EPSILON_PERMANENT,
        Parameter::EPSILON_FIRST,
        Parameter::word("permanent", &["optimized", "symmetric"], "the permanent round, optimized or symmetric"),
    ];
    type Reports = Bits;
    type Values<'a> = Remembering<'a>;

    fn k(&self) -> u32 {
        self.k
    }

    fn requested_epsilon(&self) -> f64 {
        self.epsilon
    }

    fn fields(&self) -> Vec<Field> {
        let mut fields = self.flips.fields();
        fields.push(("epsilon_first", self.epsilon_first.into()));
        fields
    }

    fn from_arguments(arguments: &Arguments<'_>) -> Result<Self, Error> {
        let permanent = match arguments.word("permanent")? {
            "optimized" => Permanent::Optimized,
            "symmetric" => Permanent::Symmetric,
            other => return Err(Error::parameter("permanent", format!("{other:?}"), "\"optimized\" or \"symmetric\"")),
        };
        let [epsilon_permanent, epsilon_first] =
            ["epsilon_permanent", "epsilon_first"].map(|name| arguments.real(name));
        Self::new(arguments.integer("k")?, epsilon_permanent?, epsilon_first?, permanent)
    }

    fn from_fields(k: u64, epsilon: f64, given: &Given) -> Result<Self, Error> {
        let (p, planes) = (given.integer("permanent_p")?, given.integer("permanent_planes")?);
        let is_half = (1..64).contains(&planes) && p == 1 << (planes - 1);
        let permanent = if is_half { Permanent::Optimized } else { Permanent::Symmetric };
        Self::new(k, epsilon, given.number("epsilon_first")?, permanent)
    }

    fn epsilon(&self) -> f64 {
        self.flips.permanent().likelihood_ratio(Neighbours::OneHot).epsilon()
    }

    fn first(&self) -> Option<(f64, f64)> {
        Some((self.flips.both().likelihood_ratio(Neighbours::OneHot).epsilon(), self.epsilon_first))
    }

    fn check(&self, people: Remembering<'_>) -> Result<(), Error> {
        people.check(Some(self.k))
    }

    fn random_bits(&self) -> usize {
        8 * (KEY_BYTES + self.report_bytes() * self.flips.both().planes() as usize)
    }

    /// The words derived for the value flip its row to the permanent row. `rng` gives those of the instantaneous round
    /// for all rows of a chunk, as in unary encoding.
    fn randomise(
        &self,
        rng: &mut AnyRng<'_>,
        people: Remembering<'_>,
        first: usize,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let (permanent, width) = (self.flips.permanent(), self.report_bytes());
        let mut streams = self.streams(people.question)?;
        let mut tiles = Wiped::new(TILES);
        people.in_chunks(width, first, out, |people, out| {
            let mut rows = Wiped::try_new(out.len())?;
            for ((secrets, values), rows) in people.sixteens().zip(rows.chunks_mut(PEOPLE * width)) {
                streams.turn_to(secrets);
                streams.begin_answer(&values.map(|value| value as u64), flip_words(permanent, width));
                for Part { first, length } in parts(width) {
                    let tiles = &mut tiles[..length];
                    wipe(tiles);
                    set_bits(&values.map(|value| value as u32), first, tiles);
                    streams.flip(permanent, tiles);
                    write_rows(first, tiles, width, rows);
                }
            }
            Flipper::new(self.flips.instantaneous(), rows.len())?.flip(rng, &mut rows)?;
            Bits(self.k).clear_unused(0, &mut rows);
            out.copy_from_slice(&rows);
            Ok(())
        })
    }

    fn reports(&self) -> Bits {
        Bits(self.k)
    }

    fn law(&self) -> Option<Law> {
        Some(Law::Supports(self.flips.both().support()))
    }
}
