//! Arguments of a call, one of which may be replaced by a wrong one.

use dpnoise::Status;

/// What the memory of results has before a call.
pub(crate) const CANARY: u8 = 0xa5;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A pointer to items with this alignment.
    Pointer(usize),
    /// A pointer that may be null.
    Optional(usize),
    Handle,
    /// A handle that may be 0.
    Generator,
    Length,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrong {
    Null,
    Misaligned,
    Handle(u64),
    Length(usize),
}

/// Passes arguments on, and keeps their names and kinds.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) seen: Vec<(&'static str, Kind)>,
    wrong: Option<(&'static str, Wrong)>,
}

impl Arguments {
    pub(crate) fn with(name: &'static str, wrong: Wrong) -> Self {
        Self { seen: vec![], wrong: Some((name, wrong)) }
    }

    fn pass(&mut self, name: &'static str, kind: Kind) -> Option<Wrong> {
        self.seen.push((name, kind));
        self.wrong.filter(|wrong| wrong.0 == name).map(|wrong| wrong.1)
    }

    fn replaced<T>(&mut self, name: &'static str, pointer: *mut T, kind: Kind) -> *mut T {
        match self.pass(name, kind) {
            Some(Wrong::Null) => core::ptr::null_mut(),
            Some(Wrong::Misaligned) => pointer.wrapping_byte_add(1),
            _ => pointer,
        }
    }

    /// A pointer to memory that is read.
    pub(crate) fn read<T>(&mut self, name: &'static str, items: &[T]) -> *const T {
        self.replaced(name, items.as_ptr().cast_mut(), Kind::Pointer(align_of::<T>()))
    }

    /// A pointer to memory that is written.
    pub(crate) fn write<T>(&mut self, name: &'static str, items: &mut [T]) -> *mut T {
        self.replaced(name, items.as_mut_ptr(), Kind::Pointer(align_of::<T>()))
    }

    /// A pointer to memory that is written unless it is null.
    pub(crate) fn optional<T>(&mut self, name: &'static str, item: &mut T) -> *mut T {
        self.replaced(name, item, Kind::Optional(align_of::<T>()))
    }

    pub(crate) fn handle(&mut self, name: &'static str, handle: u64) -> u64 {
        if let Some(Wrong::Handle(other)) = self.pass(name, Kind::Handle) { other } else { handle }
    }

    pub(crate) fn generator(&mut self) -> u64 {
        if let Some(Wrong::Handle(other)) = self.pass("generator", Kind::Generator) { other } else { 0 }
    }

    pub(crate) fn length(&mut self, name: &'static str, length: usize) -> usize {
        if let Some(Wrong::Length(other)) = self.pass(name, Kind::Length) { other } else { length }
    }
}

/// Memory for the results of a call that makes reports: checks that a failed call has left none.
pub(crate) fn checked(status: Status, out: &[u8]) -> Status {
    let all = |byte| out.iter().all(|&other| other == byte);
    assert!(status == Status::Ok || all(CANARY) || all(0), "a report is left after an error: {out:?}");
    status
}
