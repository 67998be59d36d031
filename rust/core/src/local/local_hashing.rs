//! Local hashing: a random hash of the value, randomised.
//!
//! A client draws a hash function from k values to g, hashes its value, and keeps the hash with probability
//! e^epsilon / (e^epsilon + g - 1), replacing it by another one otherwise. The choice g = e^epsilon + 1 is optimal (Wang,
//! Blocki, Li and Jha 2017, "Locally differentially private protocols for frequency estimation").
//!
//! # The hash functions
//!
//! v -> floor(g x / P) with x = (a v + b) mod P, where P is the smallest prime that is at least k and g, and a and b are
//! drawn uniformly from 0 to P - 1. All P^2 of them are used. So x for two different values is uniform over all pairs of
//! residues (Carter and Wegman 1979, "Universal classes of hash functions"): the hashes of two values are the same with
//! a probability that is known exactly, the sum of (c / P)^2 over the classes of c residues each. There is no other
//! assumption on the hash functions, and estimates are unbiased for every k.
//!
//! # Privacy
//!
//! The hash function is drawn without regard to the value, so only the hash tells anything: generalised randomised
//! response over g values.
//!
//! A report is the number (a P + b) g + hash.

use rand_core::TryCryptoRng;

use super::estimate::Support;
use super::mixer::{index_bytes, uniform};
use super::mixture::Mixture;
use super::protocol::{Family, Protocol, check_k};
use super::randomizer::Randomizer;
use super::symbols::Symbols;
use crate::error::Error;
use dpnoise_kernels::arith::divisor::Divisor;

/// The largest number of hashes.
pub const MAX_G: u64 = 1 << 16;

/// Reports fit 8 bytes, with room for sums.
const MAX_REPORT_BITS: u32 = 62;

/// Which hash functions, and what is done to a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashing {
    pub(super) prime: Divisor,
    mixture: Mixture,
}

impl Hashing {
    /// The hash functions of `k` values, for hashes to which the `mixture` is done.
    pub(super) fn new(k: u32, mixture: Mixture) -> Result<Self, Error> {
        let g = mixture.k();
        let prime = (k.max(g)..=u32::MAX).find(|&p| is_prime(p)).expect("there is a prime below twice every number");
        if u128::from(prime) * u128::from(prime) * u128::from(g) > 1 << MAX_REPORT_BITS {
            let allowed = "such that k**2 g is below 2**62";
            return Err(Error::parameter("k and g", format!("k = {k}, g = {g}"), allowed));
        }
        Ok(Self { prime: Divisor::new(prime), mixture })
    }

    /// P.
    #[must_use]
    pub fn prime(self) -> u64 {
        self.prime.get()
    }

    /// What is done to a hash.
    #[must_use]
    pub fn mixture(self) -> Mixture {
        self.mixture
    }

    pub(super) fn reports(self) -> u64 {
        self.prime() * self.prime() * u64::from(self.mixture.k())
    }

    /// The hash of a value, in a time that does not depend on it. Products are below 2^50: a check for overflow would be a
    /// jump on a secret.
    #[must_use]
    #[inline(always)]
    pub fn hash(self, a: u64, b: u64, value: u32) -> u32 {
        let (_, x) = self.prime.divide(a.wrapping_mul(value.into()).wrapping_add(b));
        self.prime.divide(x.wrapping_mul(self.mixture.k().into())).0 as u32
    }

    /// Draws the seeds a P + b of hash functions: first all a, then all b.
    pub(super) fn draw_seeds<R: TryCryptoRng + ?Sized>(self, rng: &mut R, seeds: &mut [u64]) -> Result<(), Error> {
        let prime = self.prime();
        let mut b = vec![0; seeds.len()];
        uniform(rng, prime as u32, seeds)?;
        uniform(rng, prime as u32, &mut b)?;
        seeds.iter_mut().zip(b).for_each(|(seed, b)| *seed = seed.wrapping_mul(prime).wrapping_add(b));
        Ok(())
    }

    /// The hash of a value by the function with this seed.
    #[inline(always)]
    pub(super) fn hash_with(self, seed: u64, value: u32) -> u32 {
        let (a, b) = self.prime.divide(seed);
        self.hash(a, b, value)
    }

    /// The first residue with this hash.
    pub(super) fn first_residue(self, hash: u64) -> u64 {
        (hash * self.prime()).div_ceil(u64::from(self.mixture.k()))
    }

    /// How often a report supports its sender's value and any other: the hash is that of the value when it is kept, or
    /// when it is replaced by itself; and it is that of another value when it is kept and both have the same hash, or
    /// when it is replaced by that.
    ///
    /// Rounded to 52 binary digits.
    #[must_use]
    pub fn support(self) -> Support {
        let g = f64::from(self.mixture.k());
        let one = (1u64 << self.mixture.planes()) as f64;
        let keep = self.mixture.keep() as f64 / one;
        let replaced = ((1u64 << self.mixture.planes()) - self.mixture.keep()) as f64 / one / g;
        let classes =
            (0..u64::from(self.mixture.k())).map(|hash| self.first_residue(hash + 1) - self.first_residue(hash));
        let same: u64 = classes.map(|residues| residues * residues).sum();
        let same = same as f64 / (self.prime() as f64 * self.prime() as f64);
        let digits = |probability: f64| (probability * (1u64 << 62) as f64) as u64;
        Support { p: digits(keep + replaced), q: digits(keep * same + replaced), one: 1 << 62 }
    }
}

fn is_prime(p: u32) -> bool {
    p > 1 && (2..=p.isqrt()).all(|d| !p.is_multiple_of(d))
}

/// The number of hashes with the smallest variance of a rare value's count, at most k: e^epsilon + 1, rounded.
pub(super) fn optimal_g(k: u32, epsilon: f64) -> u64 {
    // A float beyond the integers becomes the largest one.
    (epsilon.exp().round() as u64).saturating_add(1).clamp(2, MAX_G.min(k.into()))
}

/// Local hashing of k values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalHashing {
    protocol: Protocol,
    hashing: Hashing,
}

impl LocalHashing {
    /// Local hashing of `k` values to `g`, or to the optimal number: e^epsilon + 1, rounded, but at most k.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 2 <= k <= 2^24, 2 <= g <= 2^16, k^2 g is below 2^62, 2^-20 <= epsilon <= 32, and
    /// [`Mixture::new`] takes g and epsilon together.
    pub fn new(k: u64, g: Option<u64>, epsilon: f64) -> Result<Self, Error> {
        let k = check_k(k)?;
        let g = g.unwrap_or_else(|| optimal_g(k, epsilon));
        if !(2..=MAX_G).contains(&g) {
            return Err(Error::parameter("g", g, format!("an integer from 2 to {MAX_G}")));
        }
        let hashing = Hashing::new(k, Mixture::new(g as u32, epsilon)?)?;
        let protocol = Protocol::new(Family::LocalHashing, k, Randomizer::Hashing(hashing), epsilon);
        Ok(Self { protocol, hashing })
    }

    /// The local hashing that `protocol` specifies, or `None` when it is of another family.
    #[must_use]
    pub fn from_protocol(protocol: Protocol) -> Option<Self> {
        match protocol.randomizer() {
            Randomizer::Hashing(hashing) => Some(Self { protocol, hashing }),
            _ => None,
        }
    }

    /// The checked parameters.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// The hash functions.
    #[must_use]
    pub fn hashing(&self) -> Hashing {
        self.hashing
    }
}

impl Symbols for LocalHashing {
    fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    fn mixture(&self) -> Mixture {
        self.hashing.mixture
    }

    fn seed_bytes(&self) -> usize {
        2 * index_bytes(self.hashing.prime() as u32)
    }

    fn draw_seeds<R: TryCryptoRng + ?Sized>(&self, rng: &mut R, seeds: &mut [u64]) -> Result<(), Error> {
        self.hashing.draw_seeds(rng, seeds)
    }

    #[inline(always)]
    fn symbol(&self, seed: u64, value: i64) -> u32 {
        self.hashing.hash_with(seed, value as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_primes() {
        let primes: Vec<u32> = (0..30).filter(|&p| is_prime(p)).collect();
        assert_eq!(primes, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
        assert!(is_prime(65_521) && !is_prime(65_521 * 3) && is_prime(16_777_259) && !is_prime(4093 * 4093));
    }

    /// All hash functions, all pairs of values: the shares are those of the support.
    #[test]
    fn two_values_have_the_same_hash_exactly_as_often_as_is_said() {
        for (k, g) in [(2, 2), (3, 2), (5, 4), (10, 4), (13, 7), (4, 9)] {
            let hashing = LocalHashing::new(k, Some(g), 1.0).unwrap().hashing;
            let prime = hashing.prime();
            let functions = || (0..prime).flat_map(|a| (0..prime).map(move |b| (a, b)));
            let mixture = hashing.mixture;
            let keep = mixture.keep() as f64 / (1u64 << mixture.planes()) as f64;
            for (v, w) in (0..k as u32).flat_map(|v| (0..v).map(move |w| (v, w))) {
                let same = functions().filter(|&(a, b)| hashing.hash(a, b, v) == hashing.hash(a, b, w)).count();
                let same = same as f64 / (prime * prime) as f64;
                let support = hashing.support();
                let q = keep * same + (1.0 - keep) / g as f64;
                assert!((support.probability(support.q) - q).abs() < 1e-15, "{k} {g}: {v} {w}");
            }
            assert!(functions().all(|(a, b)| u64::from(hashing.hash(a, b, 1)) == (a + b) % prime * g / prime));
        }
    }
}
