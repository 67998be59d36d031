//! Clients of longitudinal protocols: what is permanent in their reports is derived from the secrets that they keep.

use rand_core::TryCryptoRng;

use super::client::{Randomise, check_below_k};
use super::memo::{Derivation, Secret};
use super::mixer::CHUNK;
use super::protocol::Protocol;
use crate::error::Error;

/// About as many bytes of reports are made at once: few enough for the first-level cache.
const CHUNK_BYTES: usize = 1 << 12;

/// A protocol for clients who remember. Nothing here may let time or addresses depend on a value or a secret.
pub trait Longitudinal: Sync {
    /// The checked parameters.
    fn protocol(&self) -> &Protocol;

    /// About how many random bytes a report takes, derived ones included.
    fn random_bytes(&self) -> usize;

    /// Checks that these are values: numbers below k, unless the protocol takes others.
    ///
    /// # Errors
    /// [`Error`] otherwise, which does not tell a value.
    fn check(&self, values: &[i64]) -> Result<(), Error> {
        check_below_k(self.protocol().k(), values)
    }

    /// Fills `out` with the reports of the people with these secrets on `values`, all of them checked. What is not
    /// randomised yet must not get there, since `out` may be memory that others can read.
    ///
    /// # Errors
    /// [`Error::Randomness`] when `rng` fails.
    fn report<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        derivation: &Derivation,
        secrets: &[Secret],
        values: &[i64],
        out: &mut [u8],
    ) -> Result<(), Error>;
}

/// The clients of a longitudinal protocol: the people who have these secrets, one value for each.
///
/// ```
/// use dpnoise_core::local::longitudinal_unary_encoding::Permanent;
/// use dpnoise_core::local::{Client, ClientMemo, LongitudinalUnaryEncoding, Remembering};
/// let encoding = LongitudinalUnaryEncoding::new(15, 2.0, 1.0, Permanent::Optimized)?;
/// let memo = ClientMemo::generate(2)?; // what their devices keep
/// let (today, mut reports) = ([3, 14], [0; 4]);
/// Remembering::new(&encoding, memo.secrets(), "favourite colour").perturb_secure(&today, &mut reports, 1)?;
/// # Ok::<(), dpnoise_core::Error>(())
/// ```
pub struct Remembering<'a, P> {
    protocol: &'a P,
    secrets: &'a [Secret],
    derivation: Derivation,
}

impl<'a, P: Longitudinal> Remembering<'a, P> {
    /// The clients with these secrets, who are asked this question: what is permanent in answers to one question is
    /// independent of what is in those to another, even of the same form.
    pub fn new(protocol: &'a P, secrets: &'a [Secret], question: &str) -> Self {
        let derivation = Derivation::new(protocol.protocol(), question);
        Self { protocol, secrets, derivation }
    }
}

impl<P: Longitudinal> Randomise for Remembering<'_, P> {
    type Value = i64;

    fn protocol(&self) -> &Protocol {
        self.protocol.protocol()
    }

    fn check(&self, values: &[i64]) -> Result<(), Error> {
        if self.secrets.len() != values.len() {
            let allowed = format!("one of {} people, one for each value", values.len());
            return Err(Error::parameter("memo", format!("one of {}", self.secrets.len()), allowed));
        }
        self.protocol.check(values)
    }

    fn unit(&self) -> usize {
        let width = self.protocol().report_bytes();
        rows_at_once(width) * width
    }

    fn random_bytes(&self, bytes: usize) -> usize {
        (bytes / self.protocol().report_bytes()).saturating_mul(self.protocol.random_bytes())
    }

    fn randomise<R>(&self, rng: &mut R, values: &[i64], first: usize, out: &mut [u8]) -> Result<(), Error>
    where
        R: TryCryptoRng + ?Sized,
    {
        let width = self.protocol().report_bytes();
        let people = first / width..(first + out.len()) / width;
        let (secrets, values) = (&self.secrets[people.clone()], &values[people]);
        let rows = rows_at_once(width);
        let chunks = secrets.chunks(rows).zip(values.chunks(rows)).zip(out.chunks_mut(rows * width));
        for ((secrets, values), out) in chunks {
            self.protocol.report(rng, &self.derivation, secrets, values, out)?;
        }
        Ok(())
    }
}

/// The reports of `width` bytes that are made at once.
fn rows_at_once(width: usize) -> usize {
    (CHUNK_BYTES / width).clamp(1, CHUNK)
}
