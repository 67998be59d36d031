//! Laplace and Gaussian noise over the real numbers: integer noise, in steps of a grid.
//! [`super::grid`] proves the guarantee for a value with this noise.

use rand_core::TryCryptoRng;

use super::discrete_gaussian::DiscreteGaussian;
use super::discrete_laplace::DiscreteLaplace;
use super::grid::{Grid, Reach};
use super::integer_noise::IntegerNoise;
use super::keyed_noise::Keyed;
use super::sampler::Sampler;
use crate::error::Error;
use crate::params::{RealScale, Scale};
use crate::rng::wiped_on_error;

/// Noise n g, with integer noise n and the granularity g of a grid.
///
/// ```
/// use dpnoise_core::{params::RealScale, samplers::{GridNoise, Sampler}};
/// let noise = GridNoise::laplace(RealScale::from_f64(0.3).unwrap(), None)?;
/// let mut samples = [0.0; 4];
/// noise.fill(&mut samples, 1)?;
/// assert!(samples.iter().all(|x| x % noise.grid().granularity() == 0.0));
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GridNoise {
    grid: Grid,
    noise: IntegerNoise,
}

impl GridNoise {
    /// P(n g) is proportional to exp(-|n| g / scale). The default granularity is 2^ceil(log2(scale) - 40).
    ///
    /// # Errors
    /// [`Error::Parameter`] for a granularity that is not a power of two from 2^-1019 to 2^900, or such that the scale is
    /// not from 2^-40 to 2^40 steps; and for a scale for which there is no default.
    pub fn laplace(scale: RealScale, granularity: Option<f64>) -> Result<Self, Error> {
        let default = scale.ceil_log2() - 40;
        let (grid, noise) = on_grid("scale", scale, granularity, default, |steps| Some(DiscreteLaplace::new(steps)))?;
        Ok(Self { grid, noise: noise.into() })
    }

    /// P(n g) is proportional to exp(-(n g)^2 / (2 sigma^2)). The default granularity is 2^ceil(log2(2 sigma) - 40).
    ///
    /// # Errors
    /// As for [`GridNoise::laplace`], with a sigma from 2^-20 to 2^40 steps.
    pub fn gaussian(sigma: RealScale, granularity: Option<f64>) -> Result<Self, Error> {
        let default = sigma.ceil_log2() + 1 - 40;
        let (grid, noise) = on_grid("sigma", sigma, granularity, default, |steps| DiscreteGaussian::new(steps).ok())?;
        Ok(Self { grid, noise: noise.into() })
    }

    /// The grid.
    #[must_use]
    pub fn grid(&self) -> Grid {
        self.grid
    }
}

impl Sampler for GridNoise {
    type Item = f64;

    fn fill_with<R: TryCryptoRng + ?Sized>(&self, out: &mut [f64], rng: &mut R) -> Result<(), Error> {
        out.fill(0.0);
        wiped_on_error(out, |out| {
            self.noise.perturb(rng, out, |zeros, noise| self.grid.add_noise(Reach::Near, zeros, noise))
        })
    }
}

impl Keyed for GridNoise {
    /// That of the integers, and the exponent of the granularity, as 4 little-endian bytes.
    fn identity(&self) -> Vec<u8> {
        [self.noise.identity(), self.grid.exponent().to_le_bytes().to_vec()].concat()
    }
}

/// The grid of a granularity, by default the finest one of at least 2^default; and the noise in its steps.
fn on_grid<N>(
    name: &'static str,
    scale: RealScale,
    granularity: Option<f64>,
    default: i32,
    noise: impl Fn(Scale) -> Option<N>,
) -> Result<(Grid, N), Error> {
    let grid = granularity.map(Grid::new).transpose()?.or_else(|| Grid::at_least(default));
    let pair = grid.and_then(|grid| Some((grid, noise(scale.in_steps(grid.exponent())?)?)));
    pair.ok_or_else(|| {
        let value = scale.to_f64();
        match granularity {
            Some(granularity) => {
                let allowed =
                    format!("such that {name} is from 2**-40 (Gaussian: 2**-20) to 2**40 steps ({name} is {value:?})");
                Error::parameter("granularity", format!("{granularity:?}"), allowed)
            }
            None => Error::parameter(name, format!("{value:?}"), "from 2**-1019 to 2**939 when granularity is None"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{ScriptedRng, SeededRng};

    fn scale(value: f64) -> RealScale {
        RealScale::from_f64(value).unwrap()
    }

    #[test]
    fn samples_are_those_of_the_integers_times_the_granularity() {
        for (value, granularity) in [(0.3, None), (1e-300, None), (5e-324, Some(2f64.powi(-1019))), (8.0, Some(0.25))] {
            let (laplace, gaussian) =
                (GridNoise::laplace(scale(value), granularity), GridNoise::gaussian(scale(value), granularity));
            for noise in [laplace, gaussian].into_iter().filter_map(Result::ok) {
                let (mut real, mut whole) = ([7.0; 1500], [0; 1500]);
                noise.fill_with(&mut real, &mut SeededRng::new(3).unwrap()).unwrap();
                noise.noise.fill_with(&mut whole, &mut SeededRng::new(3).unwrap()).unwrap();
                let g = noise.grid().granularity();
                assert!(real.iter().zip(&whole).all(|(&x, &n)| x == n as f64 * g), "{value}");
            }
        }
    }

    #[test]
    fn default_granularities_follow_the_scale() {
        for (value, laplace, gaussian) in [(1.0, -40, -39), (1.5, -39, -38), (0.3, -41, -40), (1e300, 957, 958)] {
            let exponent = |noise: Result<GridNoise, Error>| noise.map(|noise| noise.grid().exponent());
            if laplace > 900 {
                assert!(exponent(GridNoise::laplace(scale(value), None)).is_err());
                assert!(exponent(GridNoise::gaussian(scale(value), None)).is_err());
            } else {
                assert_eq!(exponent(GridNoise::laplace(scale(value), None)), Ok(laplace));
                assert_eq!(exponent(GridNoise::gaussian(scale(value), None)), Ok(gaussian));
            }
        }
    }

    #[test]
    fn bad_granularities_are_named() {
        let message = |granularity| GridNoise::laplace(scale(1.0), Some(granularity)).unwrap_err().to_string();
        assert!(message(0.3).starts_with("granularity must be a power of two"));
        assert!(
            message(2f64.powi(-41))
                .contains("such that scale is from 2**-40 (Gaussian: 2**-20) to 2**40 steps (scale is 1.0)")
        );
        assert!(
            message(2f64.powi(41))
                .contains("such that scale is from 2**-40 (Gaussian: 2**-20) to 2**40 steps (scale is 1.0)")
        );
        assert!(GridNoise::gaussian(scale(1.0), Some(2f64.powi(21))).is_err());
        assert!(GridNoise::gaussian(scale(1.0), Some(2f64.powi(20))).is_ok());
    }

    #[test]
    fn nothing_is_left_behind_when_the_randomness_fails() {
        let noise = GridNoise::laplace(scale(1.0), None).unwrap();
        let mut out = [7.0; 100];
        assert!(noise.fill_with(&mut out, &mut ScriptedRng::new([0; 64])).is_err());
        assert_eq!(out, [0.0; 100]);
    }
}
