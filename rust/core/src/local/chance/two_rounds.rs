//! Two rounds of randomisation: a permanent one, and an instantaneous one for each report.
//!
//! The instantaneous round randomises the outcome of the permanent one. Two flips compose to a flip, and two mixtures
//! to a mixture, again with exact probabilities; so the collector counts reports as if there were one round.
//!
//! # Privacy
//!
//! All reports on one value are post-processing of its permanent answer, so the likelihood ratio of the permanent round
//! bounds that of any number of them. A single report has the likelihood ratio of both rounds composed, which is
//! smaller.

use super::bit_flip::{BitFlip, Neighbours};
use super::likelihood::{LikelihoodRatio, MAX_PLANES, fewest_planes};
use super::mixture::Mixture;
use crate::error::Error;
use crate::local::spec::Field;

/// A permanent and an instantaneous flip of one-hot rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TwoFlips {
    permanent: BitFlip,
    instantaneous: BitFlip,
}

impl TwoFlips {
    /// Both rounds; `None` if they have more than 62 binary digits together.
    #[must_use]
    pub fn new(permanent: BitFlip, instantaneous: BitFlip) -> Option<Self> {
        let planes = permanent.planes() + instantaneous.planes();
        (planes <= MAX_PLANES).then_some(Self { permanent, instantaneous })
    }

    /// A permanent round and the symmetric one with the fewest planes after which a single report achieves
    /// `epsilon_first`; `None` if no such round exists.
    #[must_use]
    pub fn after(permanent: BitFlip, epsilon_first: f64) -> Option<Self> {
        let make = |planes: u32, q: u64| {
            let instantaneous = BitFlip::of(planes, (1 << planes) - q, q);
            Self { permanent, instantaneous }
        };
        let ratio = |planes, q| make(planes, q).both().likelihood_ratio(Neighbours::OneHot);
        let planes = 2..=MAX_PLANES.checked_sub(permanent.planes())?;
        let found = fewest_planes(epsilon_first, planes, ratio);
        found.map(|(planes, q)| make(planes, q))
    }

    /// The permanent round.
    #[must_use]
    pub fn permanent(self) -> BitFlip {
        self.permanent
    }

    /// The instantaneous round.
    #[must_use]
    pub fn instantaneous(self) -> BitFlip {
        self.instantaneous
    }

    /// Both rounds, composed.
    #[must_use]
    pub fn both(self) -> BitFlip {
        let (first, second) = (self.permanent, self.instantaneous);
        let one = 1 << first.planes();
        let after = |set: u64| set * second.p() + (one - set) * second.q();
        let planes = first.planes() + second.planes();
        BitFlip::of(planes, after(first.p()), after(first.q()))
    }

    /// Their part of a specification.
    pub(crate) fn fields(self) -> Vec<Field> {
        let (permanent, instantaneous) = (self.permanent, self.instantaneous);
        vec![
            ("instantaneous_p", instantaneous.p().into()),
            ("instantaneous_planes", instantaneous.planes().into()),
            ("instantaneous_q", instantaneous.q().into()),
            ("permanent_p", permanent.p().into()),
            ("permanent_planes", permanent.planes().into()),
            ("permanent_q", permanent.q().into()),
        ]
    }
}

/// A permanent and an instantaneous mixture of the same values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TwoMixtures {
    permanent: Mixture,
    instantaneous: Mixture,
}

impl TwoMixtures {
    /// A permanent round and the one with the fewest planes after which a single report achieves `epsilon_first`;
    /// `None` if no such round exists.
    #[must_use]
    pub fn after(permanent: Mixture, epsilon_first: f64) -> Option<Self> {
        let k = permanent.k();
        let make = |planes: u32, other: u64| {
            let instantaneous = Mixture::of(k, planes, (1 << planes) - other);
            Self { permanent, instantaneous }
        };
        let ratio = |planes, other| make(planes, other).likelihood_ratio();
        let used = permanent.planes() + k.next_power_of_two().trailing_zeros();
        let planes = 1..=MAX_PLANES.checked_sub(used)?;
        let found = fewest_planes(epsilon_first, planes, ratio);
        found.map(|(planes, other)| make(planes, other))
    }

    /// The largest likelihood ratio of a single report.
    #[must_use]
    pub fn likelihood_ratio(self) -> LikelihoodRatio {
        self.both().likelihood_ratio()
    }

    /// The permanent round.
    #[must_use]
    pub fn permanent(self) -> Mixture {
        self.permanent
    }

    /// The instantaneous round.
    #[must_use]
    pub fn instantaneous(self) -> Mixture {
        self.instantaneous
    }

    /// Their part of a specification.
    pub(crate) fn fields(self) -> Vec<Field> {
        let (permanent, instantaneous) = (self.permanent, self.instantaneous);
        vec![
            ("instantaneous_keep", instantaneous.keep().into()),
            ("instantaneous_planes", instantaneous.planes().into()),
            ("permanent_keep", permanent.keep().into()),
            ("permanent_planes", permanent.planes().into()),
        ]
    }

    /// Both rounds, composed: the value if both keep it, or else a uniform one.
    #[must_use]
    pub fn both(self) -> Mixture {
        let (first, second) = (self.permanent, self.instantaneous);
        Mixture::of(first.k(), first.planes() + second.planes(), first.keep() * second.keep())
    }
}

/// The error for epsilons that need more than 62 binary digits.
pub(crate) fn too_fine(epsilon_permanent: f64, epsilon_first: f64) -> Error {
    let given = format!("{epsilon_permanent:?} and {epsilon_first:?}");
    let allowed = "such that two rounds of at most 62 binary digits together achieve 0.999 of both";
    Error::parameter("epsilon_permanent and epsilon_first", given, allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One plane fewer does not achieve `first`, and a flipping probability smaller by one step is not private.
    #[test]
    fn the_second_round_is_the_smallest_and_the_closest() {
        for (permanent, first) in [(2.0, 1.0), (1.0, 0.999), (4.0, 0.01), (0.5, 0.1), (9.0, 8.0), (16.0, 2.0)] {
            for round in
                [BitFlip::optimized(permanent).unwrap(), BitFlip::symmetric(permanent, Neighbours::OneHot).unwrap()]
            {
                let second = TwoFlips::after(round, first).unwrap().instantaneous;
                let ratio = |planes: u32, q: u64| {
                    let second = BitFlip::new(planes, (1 << planes) - q, q).unwrap();
                    TwoFlips::new(round, second).unwrap().both().likelihood_ratio(Neighbours::OneHot)
                };
                let (planes, q) = (second.planes(), second.q());
                assert!(ratio(planes, q).achieves(first) && (q == 1 || !ratio(planes, q - 1).is_at_most(first)));
                let fewer = |q: u64| 0 < q && q < 1 << (planes - 2) && ratio(planes - 1, q).achieves(first);
                assert!(planes == 2 || !(q / 2 - 2.min(q / 2)..q / 2 + 3).any(fewer), "{permanent} {first}");
            }
            let round = Mixture::new(5, permanent).unwrap();
            let second = TwoMixtures::after(round, first).unwrap().instantaneous;
            let ratio = |planes, other| {
                let instantaneous = Mixture::of(5, planes, (1 << planes) - other);
                TwoMixtures { permanent: round, instantaneous }.likelihood_ratio()
            };
            let (planes, other) = (second.planes(), (1 << second.planes()) - second.keep());
            assert!(ratio(planes, other).achieves(first));
            assert!(other == 1 || !ratio(planes, other - 1).is_at_most(first), "{permanent} {first}");
        }
    }

    #[test]
    fn too_many_digits_are_refused() {
        let fine = BitFlip::new(40, (1 << 39) + 1, (1 << 39) - 1).unwrap();
        assert!(TwoFlips::new(fine, fine).is_none());
        assert!(TwoFlips::after(BitFlip::new(61, 1 << 60, 1).unwrap(), 1.0).is_none());
        assert!(TwoMixtures::after(Mixture::of(300, 55, 1), 1.0).is_none());
    }
}
