//! Noise: samplers, and mechanisms that add it.

use std::sync::Arc;

use dpnoise_core::Error;
use dpnoise_core::mechanisms::{self, Method, Values};
use dpnoise_core::params::Scale;
use dpnoise_core::samplers::{self, IntegerNoise, Sampler};

use crate::generator::given;
use crate::handles::{Object, dpnoise_generator, dpnoise_mechanism, dpnoise_sampler, get, give};
use crate::memory::{edit, wiped_on_failure, write};
use crate::status::{Failure, Outcome, Status, run};

struct Noise(IntegerNoise);

impl Object for Noise {
    const KIND: &'static str = "a sampler";
}

struct Mechanism(mechanisms::Noise);

impl Object for Mechanism {
    const KIND: &'static str = "a mechanism";
}

/// Makes a sampler of discrete Laplace noise: P(x) is proportional to exp(-|x| / scale) for all integers x. `scale` is
/// from 2^-40 to 2^40, and exact: it is the rational number that the double is. Making it takes ten microseconds: keep
/// it.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_discrete_laplace_sampler(scale: f64, out: *mut dpnoise_sampler) -> Status {
    // SAFETY: as promised by the caller.
    run(|| unsafe { give(out, || Ok(Noise(samplers::DiscreteLaplace::new(Scale::from_f64(scale)?).into()))) })
}

/// Makes a sampler of discrete Gaussian noise: P(x) is proportional to exp(-x^2 / (2 sigma^2)) for all integers x.
/// `sigma` is from 2^-20 to 2^40, and exact.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_discrete_gaussian_sampler(sigma: f64, out: *mut dpnoise_sampler) -> Status {
    let make = || {
        let scale = Scale::from_f64(sigma).map_err(|error| error.of("sigma"))?;
        Ok(Noise(samplers::DiscreteGaussian::new(scale)?.into()))
    };
    // SAFETY: as promised by the caller.
    run(|| unsafe { give(out, make) })
}

/// Makes a sampler of the distribution of `sampler` under the condition that x is at most `radius` in magnitude, which is
/// at least 1 and the scale, or for noise from tables the median magnitude, and at most 2^62.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_truncated_sampler(
    sampler: dpnoise_sampler,
    radius: u64,
    out: *mut dpnoise_sampler,
) -> Status {
    let make = || Ok(Noise(get::<Noise>("sampler", sampler)?.0.clone().truncated(radius)?));
    // SAFETY: as promised by the caller.
    run(|| unsafe { give(out, make) })
}

/// Makes a sampler of Skellam noise, the difference of two Poisson variables of mean `mu`, which is from 2^-40 to 90,000, and
/// exact. Making it takes 2 to 400 milliseconds.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_skellam_sampler(mu: f64, out: *mut dpnoise_sampler) -> Status {
    let make = || {
        let mu = Scale::from_f64(mu).map_err(|error| error.of("mu"))?;
        Ok(Noise(samplers::TableNoise::skellam(mu)?.into()))
    };
    // SAFETY: as promised by the caller.
    run(|| unsafe { give(out, make) })
}

/// Makes a sampler of what one of `parties` parties adds, 1 to 2^32, so that the sum of all is exactly discrete Laplace noise
/// of this scale, from 2^-40 to 88. Making it takes 2 to 400 milliseconds.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_negative_binomial_share_sampler(
    scale: f64,
    parties: u64,
    out: *mut dpnoise_sampler,
) -> Status {
    let make = || {
        let share = samplers::TableNoise::negative_binomial_share(Scale::from_f64(scale)?, parties)?;
        Ok(Noise(share.into()))
    };
    // SAFETY: as promised by the caller.
    run(|| unsafe { give(out, make) })
}

/// Makes a sampler of staircase noise: P(x) is the same for all |x| < `inner`, falls by exp(-epsilon) from there on, and again
/// after each further `width` integers. `width` is from 1 to 3969 epsilon / (44 + epsilon), and `inner` from 1 to `width`.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_staircase_sampler(
    epsilon: f64,
    width: u64,
    inner: u64,
    out: *mut dpnoise_sampler,
) -> Status {
    let make = || {
        let epsilon = Scale::from_f64(epsilon).map_err(|error| error.of("epsilon"))?;
        Ok(Noise(samplers::TableNoise::staircase(epsilon, width, inner)?.into()))
    };
    // SAFETY: as promised by the caller.
    run(|| unsafe { give(out, make) })
}

/// Fills `out` with `n` independent samples. The work is shared by up to `threads` threads, at least 1. `generator` is
/// 0, or one that takes the place of the system's; then the calling thread does all the work.
///
/// Time and addresses do not depend on the samples. If the call fails, `out` is as it was, or zero.
///
/// # Safety
/// `out` points to `n` items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_sampler_fill(
    sampler: dpnoise_sampler,
    threads: u32,
    generator: dpnoise_generator,
    out: *mut i64,
    n: usize,
) -> Status {
    run(|| {
        let noise: Arc<Noise> = get("sampler", sampler)?;
        // SAFETY: as promised by the caller.
        let out = unsafe { edit("out", out, n) }?;
        wiped_on_failure(out, |out| {
            match given(generator, threads)? {
                None => noise.0.fill(out, threads as usize)?,
                Some(generator) => noise.0.fill_with(out, &mut *generator.lock()?)?,
            }
            Ok(())
        })
    })
}

/// Makes the Laplace mechanism for real values: it spends `epsilon` on values whose L1 sensitivity is at most
/// `sensitivity`. Values are rounded to a grid first, so the guarantee holds for floating-point numbers, too.
/// `granularity` is a power of two, or 0 for the one that suits.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_laplace_mechanism(
    epsilon: f64,
    sensitivity: f64,
    granularity: f64,
    out: *mut dpnoise_mechanism,
) -> Status {
    // SAFETY: as promised by the caller.
    unsafe { mechanism(out, || mechanisms::Laplace::new(epsilon, sensitivity, grid(granularity))) }
}

/// Makes the Gaussian mechanism for real values: it spends `epsilon` and `delta` on values whose L2 sensitivity is at
/// most `sensitivity`, with the smallest noise that suffices. `granularity` is as for `dpnoise_laplace_mechanism`.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_gaussian_mechanism(
    epsilon: f64,
    delta: f64,
    sensitivity: f64,
    granularity: f64,
    out: *mut dpnoise_mechanism,
) -> Status {
    let make = || mechanisms::Gaussian::new(epsilon, delta, sensitivity, Method::Analytic, grid(granularity));
    // SAFETY: as promised by the caller.
    unsafe { mechanism(out, make) }
}

/// Makes the discrete Laplace mechanism for integers: it spends `epsilon` on values whose L1 sensitivity is at most
/// `sensitivity`.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_discrete_laplace_mechanism(
    epsilon: f64,
    sensitivity: u64,
    out: *mut dpnoise_mechanism,
) -> Status {
    // SAFETY: as promised by the caller.
    unsafe { mechanism(out, || mechanisms::DiscreteLaplace::new(epsilon, sensitivity)) }
}

/// Makes the discrete Gaussian mechanism for integers: it spends `epsilon` and `delta` on values whose L2 sensitivity
/// is at most `sensitivity`.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_discrete_gaussian_mechanism(
    epsilon: f64,
    delta: f64,
    sensitivity: f64,
    out: *mut dpnoise_mechanism,
) -> Status {
    // SAFETY: as promised by the caller.
    unsafe { mechanism(out, || mechanisms::DiscreteGaussian::new(epsilon, delta, sensitivity)) }
}

/// Makes the discrete Laplace mechanism whose noise has the smallest bound that suffices for `epsilon` and `delta`, on
/// integers whose L1 sensitivity is at most `sensitivity`. `dpnoise_mechanism_radius` tells the bound.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_truncated_discrete_laplace_mechanism(
    epsilon: f64,
    delta: f64,
    sensitivity: u64,
    out: *mut dpnoise_mechanism,
) -> Status {
    // SAFETY: as promised by the caller.
    unsafe { mechanism(out, || mechanisms::TruncatedDiscreteLaplace::new(epsilon, delta, sensitivity)) }
}

/// Makes the discrete Gaussian mechanism with bounded noise: it spends `epsilon` and `delta` on integers whose L2
/// sensitivity is at most `sensitivity`. `dpnoise_mechanism_radius` tells the bound.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_truncated_discrete_gaussian_mechanism(
    epsilon: f64,
    delta: f64,
    sensitivity: f64,
    out: *mut dpnoise_mechanism,
) -> Status {
    // SAFETY: as promised by the caller.
    unsafe { mechanism(out, || mechanisms::TruncatedDiscreteGaussian::new(epsilon, delta, sensitivity)) }
}

/// Makes the staircase mechanism: it spends `epsilon` on one integer that changes by at most `sensitivity`, with the least mean
/// error, or for a sensitivity of 1 on integers of which one does.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_staircase_mechanism(
    epsilon: f64,
    sensitivity: u64,
    out: *mut dpnoise_mechanism,
) -> Status {
    // SAFETY: as promised by the caller.
    unsafe { mechanism(out, || mechanisms::Staircase::new(epsilon, sensitivity)) }
}

/// Makes the Skellam mechanism, of which the releases of `parties` parties, 1 to 2^32, added up modulo 2^64, spend `epsilon` and
/// `delta` on one integer that changes by at most `sensitivity`, 1 to 4096, or for a sensitivity of 1 on integers of which one
/// does. Parties that collude or drop out leave less noise: give the number of the others.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_skellam_mechanism(
    epsilon: f64,
    delta: f64,
    sensitivity: u64,
    parties: u64,
    out: *mut dpnoise_mechanism,
) -> Status {
    // SAFETY: as promised by the caller.
    unsafe { mechanism(out, || mechanisms::Skellam::new(epsilon, delta, sensitivity, parties)) }
}

/// Makes the mechanism of which the releases of `parties` parties, 1 to 2^32, added up modulo 2^64, have the noise of
/// `dpnoise_discrete_laplace_mechanism`. `sensitivity` / `epsilon` is at most 88. Parties that collude or drop out leave less
/// noise: give the number of the others.
///
/// # Safety
/// `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_negative_binomial_shares_mechanism(
    epsilon: f64,
    sensitivity: u64,
    parties: u64,
    out: *mut dpnoise_mechanism,
) -> Status {
    // SAFETY: as promised by the caller.
    unsafe { mechanism(out, || mechanisms::NegativeBinomialShares::new(epsilon, sensitivity, parties)) }
}

/// Replaces each of `n` real values by its release: all of them together are one release, whose sensitivity is that of
/// the mechanism. The work is shared by up to `threads` threads, at least 1. `generator` is as for
/// `dpnoise_sampler_fill`.
///
/// Time and addresses do not depend on the values. Values that are not finite are refused with `DPNOISE_STATUS_DATA`.
/// If the call fails, `values` has zeros, so that a caller who forgets to look at the status does not publish them as
/// they were; only if the pointer itself is refused, with `DPNOISE_STATUS_MEMORY`, nothing is written.
///
/// # Safety
/// `values` points to `n` items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_mechanism_release_numbers(
    mechanism: dpnoise_mechanism,
    values: *mut f64,
    n: usize,
    threads: u32,
    generator: dpnoise_generator,
) -> Status {
    run(|| {
        // SAFETY: as promised by the caller.
        let values = unsafe { edit("values", values, n) }?;
        wiped_on_failure(values, |values| release(mechanism, values, threads, generator))
    })
}

/// Replaces each of `n` integers by its release, as `dpnoise_mechanism_release_numbers` does. Sums outside the range of
/// 64 bits saturate, or wrap around for noise that several parties add.
///
/// # Safety
/// `values` points to `n` items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_mechanism_release_integers(
    mechanism: dpnoise_mechanism,
    values: *mut i64,
    n: usize,
    threads: u32,
    generator: dpnoise_generator,
) -> Status {
    run(|| {
        // SAFETY: as promised by the caller.
        let values = unsafe { edit("values", values, n) }?;
        wiped_on_failure(values, |values| release(mechanism, values, threads, generator))
    })
}

/// Writes a bound on the error of each of `n` values that are released together: the smallest one that a given value's
/// error exceeds with a probability of at most 1 - `level`. That all errors are within it at once is less probable.
///
/// # Safety
/// `error` points to a double.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_mechanism_error(
    mechanism: dpnoise_mechanism,
    level: f64,
    n: usize,
    error: *mut f64,
) -> Status {
    run(|| {
        let mechanism: Arc<Mechanism> = get("mechanism", mechanism)?;
        let bound = mechanism.0.error(level, n)?;
        // SAFETY: as promised by the caller.
        unsafe { write("error", error, bound) }
    })
}

/// Writes the largest magnitude of the noise of `n` values that are released together, for a mechanism with bounded noise.
///
/// # Safety
/// `radius` points to an integer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dpnoise_mechanism_radius(mechanism: dpnoise_mechanism, n: usize, radius: *mut u64) -> Status {
    run(|| {
        let bound = get::<Mechanism>("mechanism", mechanism)?.0.radius(n)?;
        let wrong = "mechanism must be one for bounded noise, got one for noise without a bound";
        let bound = bound.ok_or_else(|| Failure::new(Status::Handle, wrong))?;
        // SAFETY: as promised by the caller.
        unsafe { write("radius", radius, bound) }
    })
}

/// The granularity that was given, if one was.
fn grid(granularity: f64) -> Option<f64> {
    (granularity != 0.0).then_some(granularity)
}

/// Hands out the mechanism that `make` makes.
///
/// # Safety
/// `out` points to a handle.
unsafe fn mechanism<M: Into<mechanisms::Noise>>(
    out: *mut dpnoise_mechanism,
    make: impl FnOnce() -> Result<M, Error>,
) -> Status {
    // SAFETY: as promised by the caller.
    run(|| unsafe { give(out, || Ok(Mechanism(make()?.into()))) })
}

fn release<'a>(
    mechanism: dpnoise_mechanism,
    values: impl Into<Values<'a>>,
    threads: u32,
    generator: dpnoise_generator,
) -> Outcome {
    let mechanism = get::<Mechanism>("mechanism", mechanism)?;
    let released = match given(generator, threads)? {
        None => mechanism.0.release(values, threads as usize),
        Some(generator) => mechanism.0.release_with(values, &mut *generator.lock()?),
    };
    released.map_err(|error| match error {
        Error::Data { problem, .. } => Error::data("values", problem).into(), // it is x there
        Error::Parameter { parameter: "mechanism", .. } => Failure::new(Status::Handle, error.to_string()),
        error => error.into(),
    })
}
