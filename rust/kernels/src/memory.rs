//! Memory whose size comes from outside: an error where there is not so much, since an abort takes the whole process,
//! and in a browser every other object.
#![allow(unsafe_code, reason = "zeroed memory, which the standard library gives only to callers that may abort")]

use core::ptr;
use std::alloc::{Layout, alloc_zeroed};

/// There is not so much memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

/// Types whose value 0 is zero bytes.
///
/// # Safety
/// Zero bytes are a value of the type, which needs no destructor.
pub unsafe trait Zero: Copy {}

macro_rules! zero {
    ($($number:ty),*) => {
        $(
            // SAFETY: zero bytes are the number 0.
            unsafe impl Zero for $number {}
        )*
    };
}

zero!(u8, u32, u64, usize, i32, i64, f64);

/// `length` zeros. As of `vec!`, large memory comes from the system with zeros in it, and takes no time until it is used.
///
/// # Errors
/// [`OutOfMemory`].
pub fn zeroed<T: Zero>(length: usize) -> Result<Vec<T>, OutOfMemory> {
    let layout = Layout::array::<T>(length).map_err(|_| OutOfMemory)?;
    if layout.size() == 0 {
        return Ok(vec![]);
    }
    // SAFETY: the layout is not empty.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        return Err(OutOfMemory);
    }
    // SAFETY: the memory is of this layout, that of `length` items, of which zero bytes are values.
    Ok(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(memory.cast(), length)) }.into_vec())
}

/// An empty vector with room for `length` items.
///
/// # Errors
/// [`OutOfMemory`].
pub fn room<T>(length: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut items = vec![];
    items.try_reserve_exact(length).map_err(|_| OutOfMemory)?;
    Ok(items)
}

/// The `items`, collected.
///
/// # Errors
/// [`OutOfMemory`].
pub fn collected<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, OutOfMemory> {
    let mut collected = room(items.len())?;
    collected.extend(items);
    Ok(collected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_zeros_as_asked_for() {
        for length in [0, 1, 7, 1 << 20] {
            let mut zeros = zeroed::<u64>(length).unwrap();
            assert_eq!((zeros.len(), zeros.capacity()), (length, length));
            assert!(zeros.iter().all(|&zero| zero == 0));
            zeros.push(1); // the memory is of the kind that a vector grows
            assert_eq!(zeros.len(), length + 1);
        }
    }

    #[test]
    fn what_no_memory_has_room_for_is_an_error() {
        for length in [isize::MAX as usize / 8, usize::MAX / 8, usize::MAX] {
            assert_eq!(zeroed::<u64>(length), Err(OutOfMemory));
            assert_eq!(room::<u64>(length), Err(OutOfMemory));
        }
        assert_eq!(collected(core::iter::repeat_n(0u64, usize::MAX)), Err(OutOfMemory));
        assert_eq!(collected([1, 2].into_iter()), Ok(vec![1, 2]));
    }
}
