//! The exact decision of a trial: is U w < a, for a uniform U whose bits are drawn as far as they are needed?
//!
//! Numbers are intervals in fixed point. The first comparison, at 256 bits, takes the same time for every value; it
//! leaves a trial open with a probability below 2^-62, and only then does the work depend on the values.

use dpnoise_kernels::arch::secrecy::{Reason, declassify};
use dpnoise_kernels::arith::exp::{Constants, FIRST_LIMBS};
use dpnoise_kernels::arith::fixed::Fixed;
use dpnoise_kernels::arith::interval::Interval;
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use crate::error::Error;

/// The result of a comparison at one precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It is decided for all further bits of U.
    Decided,
    /// The further bits of U decide.
    NeedsBits,
    /// More precision decides.
    NeedsPrecision,
}

/// A uniform number on [0, 1), known by its leading bits.
struct Uniform(Zeroizing<Vec<u64>>);

impl Uniform {
    /// The prefix and the prefix plus one unit in its last place.
    fn bounds(&self, limbs: usize) -> (Fixed, Fixed) {
        // The first word has 63 bits and the others 64: one bit to the left they are the limbs of the fraction.
        let mut fraction = Zeroizing::new(vec![0; limbs]);
        let mut unit = vec![0; limbs];
        for (i, &word) in self.0.iter().enumerate() {
            let next = self.0.get(i + 1).map_or(0, |next| next >> 63);
            fraction[limbs - 1 - i] = word << 1 | next;
        }
        unit[limbs - self.0.len()] = 2;
        let low = Fixed::from_fraction(&fraction);
        (low.clone(), low.plus(&Fixed::from_fraction(&unit)))
    }

    /// The verdict, which is declassified; and whether U w < a if it is decided, which remains a secret.
    fn verdict(&self, reason: Reason, weight: &Interval, threshold: &Interval) -> (Verdict, bool) {
        let (low, high) = self.bounds(weight.low.limbs());
        let exact = declassify(Reason::Tail, !weight.low.is_less(&weight.high)); // it is so for all bins but the tail
        let times =
            |u: Fixed| if exact { Interval::exact(u.times(&weight.low)) } else { Interval::exact(u).times(weight) };
        let (low, high) = (times(low), times(high));
        let at_most = |a: &Fixed, b: &Fixed| !b.is_less(a);
        let below = at_most(&high.high, &threshold.low);
        let not_below = at_most(&threshold.high, &low.low);
        let inside = at_most(&low.high, &threshold.low) & at_most(&threshold.high, &high.low);
        let verdict = match declassify(reason, (below | not_below, inside)) {
            (true, _) => Verdict::Decided,
            (_, true) => Verdict::NeedsBits,
            _ => Verdict::NeedsPrecision,
        };
        (verdict, below)
    }
}

/// Draws a trial of probability `probability`, exactly.
///
/// # Errors
/// [`Error::Randomness`] when `rng` fails.
pub(super) fn bernoulli<R: TryCryptoRng + ?Sized>(
    rng: &mut R,
    probability: impl Fn(&Constants) -> Interval,
) -> Result<bool, Error> {
    let prefix = rng.try_next_u64().map_err(Error::randomness)? >> 1;
    let heads = is_below(rng, Reason::Tail, prefix, |constants| {
        let one = Fixed::from_integer(1, constants.log2_e.limbs());
        (Interval::exact(one), probability(constants))
    })?;
    Ok(declassify(Reason::Tail, heads))
}

/// How many coins of a probability show heads before one shows tails.
///
/// # Errors
/// [`Error::Randomness`] when `rng` fails.
pub(super) fn heads<R: TryCryptoRng + ?Sized>(
    rng: &mut R,
    probability: impl Fn(&Constants) -> Interval,
) -> Result<u64, Error> {
    let mut count = 0;
    while bernoulli(rng, &probability)? {
        count += 1;
    }
    Ok(count)
}

/// Decides U w < a exactly, where the first 63 bits of U are `prefix` and `sides` gives w and a at a precision.
/// The answer is secret; the need for further bits or more precision is declassified for the given reason.
///
/// Bits are drawn only when the ones at hand leave the answer open, which is a property of the numbers and not of the
/// precision at which they were computed.
///
/// # Errors
/// [`Error::Randomness`] when `rng` fails.
pub(super) fn is_below<R: TryCryptoRng + ?Sized>(
    rng: &mut R,
    reason: Reason,
    prefix: u64,
    sides: impl Fn(&Constants) -> (Interval, Interval),
) -> Result<bool, Error> {
    // With capacity for the largest number of words: reallocation would leave a copy behind.
    let mut uniform = Uniform(Zeroizing::new(Vec::with_capacity(FIRST_LIMBS)));
    uniform.0.push(prefix);
    let mut wider: Constants;
    let mut constants = Constants::first();
    loop {
        let (weight, threshold) = sides(constants);
        let limbs = constants.log2_e.limbs();
        let (verdict, below) = uniform.verdict(reason, &weight, &threshold);
        match verdict {
            Verdict::Decided => return Ok(below),
            Verdict::NeedsBits => uniform.0.push(rng.try_next_u64().map_err(Error::randomness)?),
            Verdict::NeedsPrecision => {}
        }
        if verdict == Verdict::NeedsPrecision || uniform.0.len() + FIRST_LIMBS / 2 > limbs {
            wider = Constants::new(2 * limbs);
            constants = &wider;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::ScriptedRng;

    fn decide(prefix: u64, further: &[u64], numerator: u64, weight: u64) -> Result<(bool, usize), Error> {
        let script: Vec<u8> = further.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut rng = ScriptedRng::new(script);
        let answer = is_below(&mut rng, Reason::Refinement, prefix, |constants| {
            let limbs = constants.log2_e.limbs();
            let exact = |value| Interval::exact(Fixed::from_integer(value, limbs));
            (exact(weight), exact(numerator))
        })?;
        Ok((answer, rng.remaining()))
    }

    #[test]
    fn a_rational_threshold_is_hit_to_the_last_bit() {
        // U < 1/3, with 1/3 = 0.010101... in binary: 63 bits leave it open only at 0b0101...01.
        let third = 0x2aaa_aaaa_aaaa_aaaa;
        assert_eq!(decide(third - 1, &[], 1, 3), Ok((true, 0)));
        assert_eq!(decide(third + 1, &[], 1, 3), Ok((false, 0)));
        assert!(matches!(decide(third, &[], 1, 3), Err(Error::Randomness(_))), "bits are missing");
        // 63 bits are 31 pairs 01 and a 0: the next word continues with 10...
        assert_eq!(decide(third, &[0xaaaa_aaaa_aaaa_aaa9], 1, 3), Ok((true, 0)));
        assert_eq!(decide(third, &[0xaaaa_aaaa_aaaa_aaab], 1, 3), Ok((false, 0)));
        // The answer is found, with no superfluous word, for any number of agreeing bits.
        let mut further = vec![0xaaaa_aaaa_aaaa_aaaa; 9];
        further.push(0);
        further.push(7);
        assert_eq!(decide(third, &further, 1, 3), Ok((true, 8)));
    }

    #[test]
    fn thresholds_at_the_ends_need_no_further_bits() {
        assert_eq!(decide((1 << 63) - 1, &[], 5, 5), Ok((true, 0)), "U < 1 always");
        assert_eq!(decide(0, &[], 0, 5), Ok((false, 0)), "U < 0 never");
        assert_eq!(decide(1 << 62, &[], 1, 2), Ok((false, 0)), "U >= 1/2");
        assert_eq!(decide((1 << 62) - 1, &[], 1, 2), Ok((true, 0)), "U < 1/2");
    }
}
