//! What people's devices do, the same way for every protocol: check, randomise, and leave nothing behind on failure.

use rand_core::TryCryptoRng;

use super::protocol::Protocol;
use crate::error::Error;
use crate::rng::SecureRng;
use crate::threads::{self, Division, go_on};
use dpnoise_kernels::arch::secrecy::{Reason, declassify};

/// Below this many random bytes a further thread costs more than it gains.
const RANDOM_BYTES_PER_THREAD: usize = 1 << 19;

/// A protocol on people's devices: values in, reports out.
pub trait Client {
    /// The type of a value.
    type Value;

    /// Checks that all values can be reported on, in one pass without a branch: how many cannot, or which, does not show
    /// in the time.
    ///
    /// # Errors
    /// [`Error::Data`] otherwise.
    fn check_values(&self, values: &[Self::Value]) -> Result<(), Error>;

    /// Randomises every value with random words of `rng`: one row of `report_bytes` bytes of `out` for each.
    ///
    /// # Errors
    /// [`Error::Data`] unless [`Client::check_values`] finds the values good, [`Error::Parameter`] when `out` has not one
    /// row per value, before anything is drawn; [`Error::Randomness`] when `rng` fails: then `out` is all zero.
    fn perturb<R>(&self, values: &[Self::Value], out: &mut [u8], rng: &mut R) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized;

    /// Randomises every value on up to `threads` threads, each with a freshly keyed secure generator.
    ///
    /// # Errors
    /// As for [`Client::perturb`], and [`Error::Parameter`] for no threads.
    fn perturb_secure(&self, values: &[Self::Value], out: &mut [u8], threads: usize) -> Result<(), Error>;
}

/// What a protocol adds to be a [`Client`].
pub trait Randomise: Sync {
    type Value: Sync;

    fn protocol(&self) -> &Protocol;

    fn check(&self, values: &[Self::Value]) -> Result<(), Error>;

    /// The bytes of reports in multiples of which threads share the work.
    fn unit(&self) -> usize;

    /// About how many random bytes reports of `bytes` bytes take.
    fn random_bytes(&self, bytes: usize) -> usize;

    /// Fills `out`, which begins at byte `first` of the matrix of all reports on `values`, all of them checked. What is
    /// not randomised yet must not get there, since `out` may be memory that others can read.
    fn randomise<R>(&self, rng: &mut R, values: &[Self::Value], first: usize, out: &mut [u8]) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized;
}

impl<T: Randomise> Client for T {
    type Value = T::Value;

    fn check_values(&self, values: &[T::Value]) -> Result<(), Error> {
        self.check(values)
    }

    fn perturb<R>(&self, values: &[T::Value], out: &mut [u8], rng: &mut R) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        self.check(values)?;
        check_out(self.protocol(), values.len(), out)?;
        wiped_on_error(out, |out| self.randomise(rng, values, 0, out))
    }

    fn perturb_secure(&self, values: &[T::Value], out: &mut [u8], threads: usize) -> Result<(), Error> {
        self.check(values)?;
        check_out(self.protocol(), values.len(), out)?;
        in_parallel(self, out, threads, |rng, first, part| self.randomise(rng, values, first, part))
    }
}

/// Runs `work` on parts of `out` on up to `threads` threads, as many as are worth starting.
pub(super) fn in_parallel<C, F>(client: &C, out: &mut [u8], threads: usize, work: F) -> Result<(), Error>
where
    C: Randomise,
    F: Fn(&mut SecureRng, usize, &mut [u8]) -> Result<(), Error> + Sync,
{
    check_threads(threads)?;
    let threads = threads.min(1 + client.random_bytes(out.len()) / RANDOM_BYTES_PER_THREAD);
    threads::fill(out, Division { piece: usize::MAX, unit: client.unit() }, threads, &mut go_on, work)
}

/// The result of `fill`, and all of `out` wiped if it failed: half-randomised data must not stay behind.
pub(super) fn wiped_on_error(out: &mut [u8], fill: impl FnOnce(&mut [u8]) -> Result<(), Error>) -> Result<(), Error> {
    let result = fill(out);
    if result.is_err() {
        out.fill(0);
    }
    result
}

/// Checks that all values are in [0, k), in one pass without a branch.
pub(super) fn check_below_k(k: u32, values: &[i64]) -> Result<(), Error> {
    let outside = values.iter().fold(0, |outside, &value| outside | u8::from(value as u64 >= u64::from(k)));
    if declassify(Reason::Refusal, outside == 0) {
        Ok(())
    } else {
        Err(Error::data("values", format!("must be integers in [0, k) with k = {k}")))
    }
}

/// Checks that `out` has one row for each of `rows` values.
pub(super) fn check_out(protocol: &Protocol, rows: usize, out: &[u8]) -> Result<(), Error> {
    let width = protocol.report_bytes();
    if rows.checked_mul(width) == Some(out.len()) {
        return Ok(());
    }
    Err(Error::parameter("out", format!("{} bytes", out.len()), format!("{rows} rows of {width} bytes")))
}

/// Checks a number of threads.
pub(super) fn check_threads(threads: usize) -> Result<(), Error> {
    if threads == 0 { Err(Error::parameter("threads", threads, "at least 1, or not given")) } else { Ok(()) }
}
