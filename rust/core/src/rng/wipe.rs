//! Memory that is wiped after use, at the speed of `memset`.

use core::ops::{Deref, DerefMut};

use dpnoise_kernels::memory::{Zero, room, zeroed};
use zeroize::optimization_barrier;

use crate::error::Error;

/// Overwrites `items` with the default value, in a way that the compiler must not optimise away.
/// `zeroize` does the same one volatile store at a time, which for the buffers of a single draw takes as long as the
/// draw.
pub(crate) fn wipe<T: Copy + Default>(items: &mut [T]) {
    items.fill(T::default());
    optimization_barrier(items);
}

/// The result of `fill`, and all of `out` wiped if it failed: what is half made must not stay behind.
pub(crate) fn wiped_on_error<T: Copy + Default, R, E>(
    out: &mut [T],
    fill: impl FnOnce(&mut [T]) -> Result<R, E>,
) -> Result<R, E> {
    let result = fill(out);
    if result.is_err() {
        wipe(out);
    }
    result
}

/// A buffer that is wiped when it is dropped.
#[derive(Default)]
pub(crate) struct Wiped<T: Copy + Default>(Vec<T>);

impl<T: Copy + Default> Wiped<T> {
    /// A buffer of `length` default values: a few, or there may be an abort.
    pub(crate) fn new(length: usize) -> Self {
        // Memory of `vec!` comes zeroed, and for that many allocators pass over the blocks that were freed last.
        let mut items = Vec::with_capacity(length);
        items.resize(length, T::default());
        Self(items)
    }

    /// The same, of a length that comes from outside.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub(crate) fn try_new(length: usize) -> Result<Self, Error> {
        let mut items = room(length)?;
        items.resize(length, T::default());
        Ok(Self(items))
    }

    /// Zeros, of a length that comes from outside: large memory comes from the system with zeros in it.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub(crate) fn try_zeroed(length: usize) -> Result<Self, Error>
    where
        T: Zero,
    {
        Ok(Self(zeroed(length)?))
    }

    /// A copy of `items`, whose number comes from outside.
    ///
    /// # Errors
    /// [`Error::Allocation`].
    pub(crate) fn copy_of(items: &[T]) -> Result<Self, Error> {
        let mut copy = room(items.len())?;
        copy.extend_from_slice(items);
        Ok(Self(copy))
    }
}

impl<T: Copy + Default> Deref for Wiped<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Copy + Default> DerefMut for Wiped<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Copy + Default> Drop for Wiped<T> {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wiping_leaves_zeros() {
        let mut secrets = [1u8, 2, 3];
        wipe(&mut secrets);
        assert_eq!(secrets, [0; 3]);
    }
}
