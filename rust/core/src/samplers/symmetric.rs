//! The trait of noise with error bounds.

use core::fmt::Debug;
use core::ops::Deref;

use super::integer_noise::IntegerNoise;
use crate::error::Error;

/// Integer noise whose distribution is symmetric around 0.
pub trait Symmetric: Deref<Target = IntegerNoise> + Clone + Debug + Send + Sync {
    /// The smallest t with P(|x| <= t) >= `level`, computed in floating point: for error bars, not for privacy.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the level is not in (0, 1).
    fn magnitude_quantile(&self, level: f64) -> Result<f64, Error>;
}
