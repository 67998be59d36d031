//! Mechanisms: a query's value in, a differentially private release out.
//! A mechanism is immutable and its parameters are checked when it is made. [`Additive`] is the mechanism that adds noise:
//! to one value or many, with the library's own randomness or the caller's. [`Laplace`], [`Gaussian`],
//! [`DiscreteLaplace`] and [`DiscreteGaussian`] are this mechanism for two kinds of privacy parameters and two kinds of
//! numbers; [`TruncatedDiscreteLaplace`] and [`TruncatedDiscreteGaussian`] bound the noise, [`Staircase`], [`Skellam`] and
//! [`NegativeBinomialShares`] draw it from tables. [`Noise`] is the table of all of them as one type. [`Selector`] is the common part of mechanisms that choose among candidates by their scores.

mod additive;
mod column;
mod discrete_gaussian;
mod discrete_laplace;
mod exponential;
mod gaussian;
mod gaussian_privacy;
mod laplace;
mod moment;
mod negative_binomial_shares;
mod noise_buffer;
mod noise_kind;
mod noisy_max;
mod persons;
mod quantile;
mod quantiles;
mod real_values;
mod selector;
mod skellam;
mod sparse_vector;
mod stability_histogram;
mod staircase;
mod sum;
mod top_k;
mod truncated_gaussian;
mod truncated_geometric;
mod truncated_laplace;

use rand_core::TryCryptoRng;

use self::noise_kind::NoiseKind;
use crate::arguments::{self, Argument, Arguments, Parameter};
use crate::error::Error;
use crate::threads::{Pause, go_on};

pub use crate::calibration::Method;
pub use additive::{
    Additive, Calibration, Curve, Guarantee, Integers, Number, Numbers, OnGrid, Privacy, Residues, Values,
};
pub use column::Column;
pub use discrete_gaussian::DiscreteGaussian;
pub use discrete_laplace::DiscreteLaplace;
pub use exponential::Exponential;
pub use gaussian::Gaussian;
pub use gaussian_privacy::GaussianPrivacy;
pub use laplace::Laplace;
pub use moment::Moment;
pub use negative_binomial_shares::{NegativeBinomialShares, SharesPrivacy};
pub use noise_buffer::NoiseBuffer;
pub use noisy_max::ReportNoisyMax;
pub use persons::{codes_vartime, keep_rows_vartime, keep_rows_with_vartime};
pub use quantile::Quantile;
pub use quantiles::Quantiles;
pub use real_values::Reals;
pub use selector::Selector;
pub use skellam::{Skellam, SkellamPrivacy};
pub use sparse_vector::{AboveThreshold, Run};
pub use stability_histogram::StabilityHistogram;
pub use staircase::{Staircase, StaircasePrivacy};
pub use sum::Sum;
pub use top_k::TopK;
pub use truncated_gaussian::{TruncatedDiscreteGaussian, TruncatedGaussianPrivacy};
pub use truncated_geometric::{Law, TruncatedGeometric};
pub use truncated_laplace::{TruncatedDiscreteLaplace, TruncatedLaplacePrivacy};

/// What all mechanisms of a kind have in common.
#[derive(Clone, Copy, Debug)]
pub struct NoiseInfo {
    /// The name, in all languages.
    pub name: &'static str,
    /// The parameters of [`Noise::new`].
    pub parameters: &'static [Parameter],
}

impl NoiseInfo {
    const fn of<K: NoiseKind>() -> Self {
        Self { name: K::NAME, parameters: K::PARAMETERS }
    }

    /// The arguments of the example of the kind.
    #[must_use]
    pub fn arguments(&self) -> Vec<(&'static str, Argument)> {
        arguments::examples(self.parameters)
    }

    /// An example of the kind.
    ///
    /// # Errors
    /// Never: tests make them all.
    pub fn example(&self) -> Result<Noise, Error> {
        Noise::new(self.name, &self.arguments())
    }
}

/// Makes the enumeration of these mechanisms, and `on_noise!`, which evaluates one expression for any of them. That inner
/// macro needs a `$` of its own, which is passed in.
macro_rules! noise {
    ($dollar:tt $($kind:ident,)*) => {
        /// A mechanism that adds noise, of any kind.
        ///
        /// ```
        /// use dpnoise_core::arguments::Argument;
        /// use dpnoise_core::mechanisms::Noise;
        /// let given = [("epsilon", Argument::Real(1.0)), ("sensitivity", Argument::Integer(1))];
        /// let mut counts = [120, 5, 0];
        /// Noise::new("discrete_laplace", &given)?.release(&mut counts[..], 1)?;
        /// # Ok::<(), dpnoise_core::Error>(())
        /// ```
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum Noise {
            $(#[doc = concat!("See [`", stringify!($kind), "`].")]
            $kind($kind),)*
        }

        $(impl From<$kind> for Noise {
            fn from(mechanism: $kind) -> Self {
                Self::$kind(mechanism)
            }
        })*

        macro_rules! on_noise {
            ($dollar noise:expr, $dollar mechanism:ident => $dollar result:expr) => {
                match $dollar noise {
                    $(Noise::$kind($dollar mechanism) => $dollar result,)*
                }
            };
        }

        impl Noise {
            /// All kinds.
            pub const KINDS: &'static [NoiseInfo] = &[$(NoiseInfo::of::<$kind>(),)*];

            /// The mechanism of this kind with these arguments.
            ///
            /// # Errors
            /// [`Error::Parameter`] for an unknown kind, and when a parameter is missing, unknown, given twice or out of
            /// range.
            pub fn new(kind: &str, given: &[(&str, Argument)]) -> Result<Self, Error> {
                match kind {
                    $(<$kind as NoiseKind>::NAME => from_arguments(given).map(Self::$kind),)*
                    other => Err(unknown_kind(other)),
                }
            }
        }
    };
}

noise! { $
    Laplace,
    Gaussian,
    DiscreteLaplace,
    DiscreteGaussian,
    TruncatedDiscreteLaplace,
    TruncatedDiscreteGaussian,
    Staircase,
    Skellam,
    NegativeBinomialShares,
}

fn from_arguments<K: NoiseKind>(given: &[(&str, Argument)]) -> Result<K, Error> {
    K::from_arguments(&Arguments::new(K::PARAMETERS, given)?)
}

fn of_type<T: Number>(values: Values<'_>) -> Result<&mut [T], Error> {
    let (taken, given) = if T::IS_INTEGER { ("integers", "real values") } else { ("real values", "integers") };
    T::of(values).ok_or_else(|| Error::parameter("mechanism", format!("one for {taken}"), format!("one for {given}")))
}

fn unknown_kind(name: &str) -> Error {
    let known: Vec<_> = Noise::KINDS.iter().map(|info| info.name).collect();
    Error::parameter("kind", format!("{name:?}"), format!("one of {}", known.join(", ")))
}

/// What [`Additive`] has, for any kind.
impl Noise {
    /// The kind of this name.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an unknown kind.
    pub fn kind(name: &str) -> Result<&'static NoiseInfo, Error> {
        Self::KINDS.iter().find(|info| info.name == name).ok_or_else(|| unknown_kind(name))
    }

    /// Whether the values are integers; else they are real numbers.
    #[must_use]
    pub fn takes_integers(&self) -> bool {
        on_noise!(self, mechanism => mechanism.takes_integers())
    }

    /// What a release costs.
    #[must_use]
    pub fn guarantee(&self) -> Guarantee {
        on_noise!(self, mechanism => mechanism.guarantee())
    }

    /// The sensitivity, an integer or a real number.
    #[must_use]
    pub fn sensitivity(&self) -> Argument {
        on_noise!(self, mechanism => mechanism.sensitivity().into())
    }

    /// The granularity of the grid for a release of `count` values; 1 for integers.
    ///
    /// # Errors
    /// As for [`Additive::noise`].
    pub fn granularity(&self, count: usize) -> Result<f64, Error> {
        on_noise!(self, mechanism => Ok(mechanism.noise(count)?.granularity()))
    }

    /// The scale of the noise of each value in a release of `count` values, in their unit.
    ///
    /// # Errors
    /// As for [`Additive::noise`].
    pub fn scale(&self, count: usize) -> Result<f64, Error> {
        on_noise!(self, mechanism => Ok(mechanism.noise(count)?.real_scale()))
    }

    /// The largest magnitude of the noise of each value in a release of `count` values, where it is bounded.
    ///
    /// # Errors
    /// As for [`Additive::noise`].
    pub fn radius(&self, count: usize) -> Result<Option<u64>, Error> {
        on_noise!(self, mechanism => match mechanism.noise(1)?.radius() {
            Some(_) => Ok(mechanism.noise(count)?.radius()),
            None => Ok(None),
        })
    }

    /// The bound of [`Additive::error`].
    ///
    /// # Errors
    /// As there.
    pub fn error(&self, level: f64, count: usize) -> Result<f64, Error> {
        on_noise!(self, mechanism => mechanism.error(level, count))
    }

    /// A delta for this epsilon, as [`Additive::delta_for`] gives it.
    ///
    /// # Errors
    /// As there.
    pub fn delta_for(&self, epsilon: f64, count: u64) -> Result<f64, Error> {
        on_noise!(self, mechanism => mechanism.delta_for(epsilon, count))
    }

    /// The least epsilon for this delta, as [`Additive::epsilon_for`] gives it.
    ///
    /// # Errors
    /// As there.
    pub fn epsilon_for(&self, delta: f64, count: u64) -> Result<f64, Error> {
        on_noise!(self, mechanism => mechanism.epsilon_for(delta, count))
    }

    /// Replaces each of `values` by its release, on up to `threads` threads with a freshly keyed generator each.
    ///
    /// # Errors
    /// As for [`Additive::release`]; and [`Error::Parameter`] for values that are not of the
    /// type that the mechanism takes.
    pub fn release<'a>(&self, values: impl Into<Values<'a>>, threads: usize) -> Result<(), Error> {
        self.release_pausing(values, threads, &mut go_on)
    }

    /// Releases values as [`Noise::release`] does, and calls `pause` between pieces of work.
    ///
    /// # Errors
    /// As for [`Noise::release`]; and the error of `pause`, with `values` overwritten.
    pub fn release_pausing<'a>(
        &self,
        values: impl Into<Values<'a>>,
        threads: usize,
        pause: &mut Pause<'_>,
    ) -> Result<(), Error> {
        on_noise!(self, mechanism => mechanism.release_pausing(of_type(values.into())?, threads, pause))
    }

    /// Replaces each of `values` by its release, with noise from `rng`.
    ///
    /// # Errors
    /// As for [`Noise::release`].
    pub fn release_with<'a, R: TryCryptoRng + ?Sized>(
        &self,
        values: impl Into<Values<'a>>,
        rng: &mut R,
    ) -> Result<(), Error> {
        on_noise!(self, mechanism => mechanism.release_with(of_type(values.into())?, rng))
    }
}
