#![doc = include_str!("discrete_laplace.md")]

use rand_core::TryCryptoRng;

use super::design::{Design, tables};
use super::refine::{Exponential, is_below};
use crate::arch::Backend;
use crate::arch::trials::{self, Layout, Proposal, TAIL, TRIALS, Tables, Trials};
use crate::arith::exp::Constants;
use crate::arith::fixed::Fixed;
use crate::arith::interval::Interval;
use crate::error::Error;
use crate::params::{Ratio, Scale};
use crate::rng::{self, Wiped, wipe};

/// The discrete Laplace distribution: P(x) proportional to exp(-|x| / scale), over all integers.
///
/// ```
/// use dpnoise_core::{params::Scale, rng::SecureRng, samplers::DiscreteLaplace};
/// let noise = DiscreteLaplace::new(Scale::from_f64(10.0)?);
/// let mut samples = [0; 1000];
/// noise.fill(&mut SecureRng::new()?, &mut samples)?;
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DiscreteLaplace {
    scale: Scale,
    tables: Tables,
    f: Exponential,
}

/// How often the rare paths were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rarities {
    /// Trials in all.
    pub trials: u64,
    /// Trials that floating point left open.
    pub refinements: u64,
    /// Trials that proposed the tail.
    pub tails: u64,
}

impl DiscreteLaplace {
    /// Prepares the tables for a scale: some ten microseconds, worth keeping for many calls.
    #[must_use]
    pub fn new(scale: Scale) -> Self {
        Self::with_design(scale, Design::for_scale(scale.ratio()))
    }

    /// The same distribution by another proposal, for tests.
    ///
    /// # Panics
    /// When the design has no room for this scale: `weight_bits` outside 8 to 32, a shift above 48, or an expected
    /// number of tail proposals that exceeds the weights.
    #[must_use]
    pub fn with_design(scale: Scale, design: Design) -> Self {
        let ratio = scale.ratio();
        let attempt = |constants: &Constants| {
            let f = Exponential::new(ratio, constants);
            tables(design, ratio, |x| f.at(x, constants)).map(|tables| (tables, f))
        };
        let first = Constants::first();
        let (tables, f) = attempt(first).unwrap_or_else(|| {
            // Some weight is within 2^-200 of a whole number.
            let mut limbs = first.log2_e.limbs();
            let tables = loop {
                limbs *= 2;
                if let Some((tables, _)) = attempt(&Constants::new(limbs)) {
                    break tables;
                }
            };
            (tables, Exponential::new(ratio, first))
        });
        Self { scale, tables, f }
    }

    /// The scale.
    #[must_use]
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// The smallest t with P(|x| <= t) >= `level`, computed in floating point: for error bars, not for privacy.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the level is not in (0, 1).
    pub fn magnitude_quantile(&self, level: f64) -> Result<f64, Error> {
        if !(level > 0.0 && level < 1.0) {
            return Err(Error::parameter("level", format!("{level:?}"), "between 0 and 1, both excluded"));
        }
        // P(|x| > t) = 2 q^(t + 1) / (1 + q) with q = exp(-1/scale).
        let scale = self.scale.ratio().to_f64();
        let q = (-1.0 / scale).exp();
        Ok(((-scale * ((1.0 - level) * (1.0 + q) / 2.0).ln()).ceil() - 1.0).max(0.0))
    }

    /// The tables of the proposal.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Fills `out` with independent samples. Magnitudes above `i64::MAX` saturate; at the largest scale that has a
    /// probability below 2^(-2^19).
    ///
    /// # Errors
    /// [`Error::Randomness`] when `rng` fails; `out` is zero then.
    pub fn fill<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, out: &mut [i64]) -> Result<Rarities, Error> {
        let result = self.try_fill(rng, out);
        if result.is_err() {
            wipe(out);
        }
        result
    }

    /// One sample.
    ///
    /// # Errors
    /// [`Error::Randomness`] when `rng` fails.
    pub fn sample<R: TryCryptoRng + ?Sized>(&self, rng: &mut R) -> Result<i64, Error> {
        let mut out = [0];
        self.fill(rng, &mut out)?;
        Ok(out[0])
    }

    fn try_fill<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, out: &mut [i64]) -> Result<Rarities, Error> {
        let backend = Backend::current()?;
        let mut block = Block::new(self.tables.layout, TRIALS);
        let mut packed = Wiped::new(TRIALS);
        let mut rarities = Rarities::default();
        let mut rest = out;
        while !rest.is_empty() {
            rng::fill_bytes(rng, &mut block.words)?;
            let Block { words, trials } = &mut block;
            trials::run(backend, &self.tables, words, trials);
            rarities.count(trials);
            if trials.undecided | trials.tail != 0 {
                self.resolve(rng, &mut block)?;
            }
            let count = trials::compact(backend, &block.trials, &mut packed).min(rest.len());
            let (head, tail) = rest.split_at_mut(count);
            head.copy_from_slice(&packed[..count]);
            rest = tail;
        }
        Ok(rarities)
    }

    /// Decides the block's open trials, in order.
    fn resolve<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, block: &mut Block) -> Result<(), Error> {
        for i in 0..TRIALS {
            if (block.trials.undecided | block.trials.tail) >> i & 1 == 1 {
                let (bin, offset, accept) = block.words_of(self.tables.layout, TRIALS, i);
                let proposal = trials::proposal(&self.tables, bin, offset, accept);
                if let Some(value) = self.decide(rng, &proposal)? {
                    block.trials.values[i] = value;
                    block.trials.accepted |= 1 << i;
                }
            }
        }
        Ok(())
    }

    /// The outcome of a trial, exactly.
    fn decide<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, proposal: &Proposal) -> Result<Option<i64>, Error> {
        if proposal.bin == TAIL {
            return self.tail(rng, proposal);
        }
        let accepted = is_below(rng, proposal.uniform, |constants| {
            let weight = Interval::exact(Fixed::from_integer(proposal.weight.into(), constants.log2_e.limbs()));
            (weight, self.f(constants).at(proposal.magnitude, constants).times_integer(proposal.amplitude))
        })?;
        Ok((accepted & !self.tables.is_negative_zero(proposal)).then(|| proposal.value()))
    }

    /// The outcome of a trial that chose the tail bin: see "The tail" in the module's documentation.
    fn tail<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, proposal: &Proposal) -> Result<Option<i64>, Error> {
        let shift = match self.tables.layout {
            Layout::Single => 0,
            Layout::Graded { shift } => shift,
        };
        let (units, _) = self.tables.layout.bin_start(TAIL as u32);
        let start = units << shift;
        let kept = is_below(rng, proposal.uniform, |constants| {
            let f = self.f(constants);
            let mass = f.at(1, constants).complement().times_integer(1 << shift).times_integer(proposal.weight.into());
            (mass, f.at(start, constants).times_integer(self.tables.amplitude << u32::from(self.tables.folded)))
        })?;
        if !kept {
            return Ok(None);
        }
        // Beyond the start the tail is the whole distribution of magnitudes again.
        let mut block = Block::new(self.tables.layout, 1);
        let further = loop {
            rng::fill_bytes(rng, &mut block.words)?;
            let (bin, offset, accept) = block.words_of(self.tables.layout, 1, 0);
            let trial = trials::proposal(&self.tables, bin, offset, accept);
            if let Some(value) = self.decide(rng, &trial)?
                && let Ok(value) = u64::try_from(value)
            {
                break value;
            }
        };
        let magnitude = start.saturating_add(further).min(i64::MAX.unsigned_abs()).cast_signed();
        Ok(Some(if proposal.negative { -magnitude } else { magnitude }))
    }

    /// f at the precision of `constants`.
    fn f(&self, constants: &Constants) -> Exponential {
        if core::ptr::eq(constants, Constants::first()) {
            self.f.clone()
        } else {
            Exponential::new(self.ratio(), constants)
        }
    }

    fn ratio(&self) -> Ratio {
        self.scale.ratio()
    }
}

impl Rarities {
    fn count(&mut self, trials: &Trials) {
        self.trials += TRIALS as u64;
        self.refinements += u64::from(trials.undecided.count_ones());
        self.tails += u64::from(trials.tail.count_ones());
    }
}

/// The words of some trials and their outcome, in one place so that one wipe takes all.
struct Block {
    words: Wiped<u8>,
    trials: Trials,
}

impl Block {
    /// Room for `count` trials.
    fn new(layout: Layout, count: usize) -> Self {
        Self { words: Wiped::new(layout.bytes(count)), trials: Trials::default() }
    }

    /// The bin, offset and acceptance words of trial `i` of `count`.
    fn words_of(&self, layout: Layout, count: usize, i: usize) -> (u32, u64, u64) {
        let size = layout.offset_bytes();
        let (bins, rest) = self.words.split_at(4 * count);
        let (offsets, accepts) = rest.split_at(size * count);
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let at = |words: &[u8], size: usize| word(&words[size * i..size * (i + 1)]);
        (at(bins, 4) as u32, at(offsets, size), at(accepts, 8))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        wipe(&mut self.trials.values);
    }
}
