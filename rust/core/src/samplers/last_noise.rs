//! Noise that depends on the number of values, kept for the next release.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Error;

/// The noise of the last release of several values, with their number: its tables take longer than a small release.
#[derive(Debug)]
pub(crate) struct LastNoise<N>(Arc<Mutex<Option<Several<N>>>>);

/// The noise for so many values.
type Several<N> = (usize, Arc<N>);

impl<N> Clone for LastNoise<N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<N> Default for LastNoise<N> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<N> LastNoise<N> {
    /// The noise for `count` values, made by `make` unless it was the last one.
    pub(crate) fn get_or(&self, count: usize, make: impl FnOnce() -> Result<N, Error>) -> Result<Arc<N>, Error> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, noise)) = last.as_ref().filter(|(length, _)| *length == count) {
            return Ok(Arc::clone(noise));
        }
        let noise = Arc::new(make()?);
        *last = Some((count, Arc::clone(&noise)));
        Ok(noise)
    }
}
