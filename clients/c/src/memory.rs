//! What pointers of callers point to.

use core::slice;

use crate::status::{Failure, Outcome, Status};

/// Types that any bytes are a value of.
pub(crate) trait Plain: Copy {}

impl Plain for u8 {}
impl Plain for u32 {}
impl Plain for u64 {}
impl Plain for i64 {}
impl Plain for f64 {}
impl Plain for usize {}

/// Checks all that can be seen of a pointer to `length` items.
fn check<T: Plain>(argument: &str, pointer: *const T, length: usize) -> Outcome {
    let problem = if pointer.is_null() {
        "must not be null"
    } else if !pointer.is_aligned() {
        "must be aligned for its type"
    } else if length > isize::MAX as usize / size_of::<T>() || pointer.addr() > usize::MAX - length * size_of::<T>() {
        "must have fewer items: no memory has room for so many"
    } else {
        return Ok(());
    };
    Err(Failure::new(Status::Memory, format!("{argument} {problem}")))
}

/// Refuses memory to be written that overlaps memory to be read, or to be written, at the same time.
#[cfg(feature = "client")]
pub(crate) fn check_apart<T: Plain, U: Plain>(
    written: (&str, *mut T, usize),
    other: (&str, *const U, usize),
) -> Outcome {
    let bytes = |start: usize, length: usize, size| start..start.saturating_add(length.saturating_mul(size));
    let one = bytes(written.1.addr(), written.2, size_of::<T>());
    let two = bytes(other.1.addr(), other.2, size_of::<U>());
    let overlap = one.start.max(two.start) < one.end.min(two.end);
    if overlap && !written.1.is_null() && !other.1.is_null() {
        return Err(Failure::new(Status::Memory, format!("{} must not overlap {}", written.0, other.0)));
    }
    Ok(())
}

/// The items at `pointer`, which may be null if there are none.
///
/// # Safety
/// Unless the pointer is null, it points to `length` items, which nobody writes while the result is in use.
#[cfg(feature = "client")]
pub(crate) unsafe fn read<'a, T: Plain>(argument: &str, pointer: *const T, length: usize) -> Outcome<&'a [T]> {
    if length == 0 {
        return Ok(&[]);
    }
    check(argument, pointer, length)?;
    // SAFETY: the pointer is aligned and not null; the rest is promised by the caller.
    Ok(unsafe { slice::from_raw_parts(pointer, length) })
}

/// The items at `pointer`, to be written.
///
/// # Safety
/// Unless the pointer is null, it points to `length` items, which nobody else uses while the result is in use.
pub(crate) unsafe fn edit<'a, T: Plain>(argument: &str, pointer: *mut T, length: usize) -> Outcome<&'a mut [T]> {
    if length == 0 {
        return Ok(&mut []);
    }
    check(argument, pointer, length)?;
    // SAFETY: the pointer is aligned and not null; the rest is promised by the caller.
    Ok(unsafe { slice::from_raw_parts_mut(pointer, length) })
}

/// Runs `fill`, and overwrites `items` with zeros unless it succeeds, also if it panics.
pub(crate) fn wiped_on_failure<T: Plain + Default>(items: &mut [T], fill: impl FnOnce(&mut [T]) -> Outcome) -> Outcome {
    struct Filling<'a, T: Plain + Default> {
        items: &'a mut [T],
        done: bool,
    }

    impl<T: Plain + Default> Drop for Filling<'_, T> {
        fn drop(&mut self) {
            if !self.done {
                self.items.fill(T::default());
            }
        }
    }

    let mut filling = Filling { items, done: false };
    fill(filling.items)?;
    filling.done = true;
    Ok(())
}

/// Writes one item.
///
/// # Safety
/// Unless the pointer is null, it points to an item, which nobody else uses.
pub(crate) unsafe fn write<T: Plain>(argument: &str, pointer: *mut T, item: T) -> Outcome {
    check(argument, pointer, 1)?;
    // SAFETY: the pointer is aligned and not null; the rest is promised by the caller.
    unsafe { pointer.write(item) };
    Ok(())
}

/// Writes one item, unless the pointer is null: the caller does not want it.
///
/// # Safety
/// As for [`write`].
#[cfg(feature = "client")]
pub(crate) unsafe fn offer<T: Plain>(argument: &str, pointer: *mut T, item: T) -> Outcome {
    // SAFETY: as promised by the caller.
    if pointer.is_null() { Ok(()) } else { unsafe { write(argument, pointer, item) } }
}

/// Writes the length of `bytes` to `length`, and the bytes themselves to the `capacity` bytes at `out` if they fit.
///
/// # Safety
/// As for [`edit`] and [`write`].
#[cfg(feature = "client")]
pub(crate) unsafe fn hand_over(bytes: &[u8], out: *mut u8, capacity: usize, length: *mut usize) -> Outcome {
    // SAFETY: as promised by the caller.
    unsafe { write("length", length, bytes.len()) }?;
    // SAFETY: as promised by the caller.
    let out = unsafe { edit("out", out, capacity) }?;
    let Some(out) = out.get_mut(..bytes.len()) else {
        let message = format!("out must have at least {} bytes, got {capacity}", bytes.len());
        return Err(Failure::new(Status::Memory, message));
    };
    out.copy_from_slice(bytes);
    Ok(())
}

#[cfg(all(test, feature = "client"))]
mod tests {
    use super::*;
    use crate::status::run;

    #[test]
    fn overlaps_are_found_to_the_byte() {
        let memory = [0u64; 4];
        let (out, values) = (memory.as_ptr().cast::<u8>().cast_mut(), memory.as_ptr());
        for (offset, length, n, is_apart) in
            [(0, 8, 1, false), (8, 8, 1, true), (7, 1, 1, false), (0, 8, 0, true), (0, 0, 1, true), (16, 1, 3, false)]
        {
            let checked = check_apart(("out", out.wrapping_add(offset), length), ("values", values, n));
            assert_eq!(checked.is_ok(), is_apart, "{offset} {length} {n}");
        }
        let other = check_apart(("out", out, 1), ("values", values.wrapping_add(1), usize::MAX));
        assert!(other.is_ok(), "it ends at the end of memory, which the other checks refuse");
    }

    #[test]
    fn what_fails_or_panics_leaves_zeros() {
        let mut items = [1u8, 2];
        let done = run(|| {
            wiped_on_failure(&mut items, |items| {
                items[1] = 3;
                Ok(())
            })
        });
        assert_eq!((done, items), (Status::Ok, [1, 3]));
        let failed = run(|| wiped_on_failure(&mut items, |_| Err(Failure::new(Status::Data, "wrong"))));
        assert_eq!((failed, items), (Status::Data, [0, 0]));
        items = [1, 2];
        assert_eq!(run(|| wiped_on_failure(&mut items, |_| panic!("planted"))), Status::Internal);
        assert_eq!(items, [0, 0]);
    }
}
