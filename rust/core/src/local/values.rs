//! The values that reports are made of, of several kinds.

use core::ops::Range;

use dpnoise_kernels::arch::chacha_keys::PEOPLE;
use dpnoise_kernels::arch::secrecy::{Reason, declassify};

use super::chance::mixture::CHUNK;
use super::memo::Secret;
use crate::error::Error;

/// About how many bytes of longitudinal reports are made at once: few enough for the first-level cache, unless a
/// row is large.
const CHUNK_BYTES: usize = 1 << 12;

/// The values of some people. They are private and cannot be printed.
#[derive(Clone, Copy)]
pub enum Values<'a> {
    /// Integers below k, or below 2^bits, or fingerprints of texts.
    Integers(&'a [i64]),
    /// Numbers in [0, 1] or [-1, 1].
    Numbers(&'a [f64]),
    /// Answers to a question: 1 for yes, 0 for no.
    Answers(&'a [u8]),
    /// Rows of ceil(k / 8) bytes, as of [`one_hot`](super::one_hot) and [`pack`](super::pack), of which one bit is set or
    /// none: unary encodings also take these.
    Rows(&'a [u8]),
    /// Integers, or fingerprints, of people who report repeatedly and keep a secret.
    Remembering(Remembering<'a>),
}

/// The values of people who keep a secret each, from which everything permanent in their reports is derived.
#[derive(Clone, Copy)]
pub struct Remembering<'a> {
    /// One value for each person.
    pub values: &'a [i64],
    /// One secret for each person, as [`ClientMemo`](super::ClientMemo) keeps them.
    pub secrets: &'a [Secret],
    /// The question. What is permanent in answers to one question is independent of what is permanent in answers to
    /// another, even of the same form, or in another spelling: give it in Unicode's normal form NFC, which is not checked.
    pub question: &'a str,
}

/// A kind of [`Values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// [`Values::Integers`].
    Integers,
    /// [`Values::Numbers`].
    Numbers,
    /// [`Values::Answers`].
    Answers,
    /// [`Values::Rows`].
    Rows,
    /// [`Values::Remembering`].
    Remembering,
}

impl ValueKind {
    /// The name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Integers => "integers",
            Self::Numbers => "numbers",
            Self::Answers => "answers",
            Self::Rows => "rows of bits",
            Self::Remembering => "integers of people with a memo",
        }
    }
}

impl Values<'_> {
    /// Their kind.
    pub(crate) fn kind(self) -> ValueKind {
        match self {
            Self::Integers(_) => ValueKind::Integers,
            Self::Numbers(_) => ValueKind::Numbers,
            Self::Answers(_) => ValueKind::Answers,
            Self::Rows(_) => ValueKind::Rows,
            Self::Remembering(_) => ValueKind::Remembering,
        }
    }
}

/// The values that a family takes.
pub(crate) trait Input<'a>: Copy + Sync {
    /// Their kind.
    const KIND: ValueKind;

    /// The values, if they are of this kind.
    fn of(values: Values<'a>) -> Option<Self>;

    /// The number of people, where a report has `width` bytes.
    fn people(self, width: usize) -> usize;

    /// The bytes of reports in multiples of which threads share the work, unless the family says otherwise.
    fn unit(width: usize) -> usize {
        CHUNK * width
    }
}

macro_rules! slices {
    ($($kind:ident of $item:ty,)*) => {
        $(impl<'a> Input<'a> for &'a [$item] {
            const KIND: ValueKind = ValueKind::$kind;

            fn of(values: Values<'a>) -> Option<Self> {
                if let Values::$kind(values) = values { Some(values) } else { None }
            }

            fn people(self, _width: usize) -> usize {
                self.len()
            }
        })*
    };
}

slices! {
    Integers of i64,
    Numbers of f64,
    Answers of u8,
}

impl<'a> Input<'a> for Remembering<'a> {
    const KIND: ValueKind = ValueKind::Remembering;

    fn of(values: Values<'a>) -> Option<Self> {
        if let Values::Remembering(people) = values { Some(people) } else { None }
    }

    fn people(self, _width: usize) -> usize {
        self.values.len()
    }

    fn unit(width: usize) -> usize {
        rows_at_once(width) * width
    }
}

impl Remembering<'_> {
    /// Checks that there is a secret for each value, and that the values are below `k` if it is given.
    pub(crate) fn check(self, k: Option<u32>) -> Result<(), Error> {
        if self.secrets.len() != self.values.len() {
            let allowed = format!("one of {} people, one for each value", self.values.len());
            return Err(Error::parameter("memo", format!("one of {}", self.secrets.len()), allowed));
        }
        k.map_or(Ok(()), |k| check_below(k, self.values))
    }

    /// Fills `out`, which begins at byte `first` of all rows of `width` bytes, with the rows that `report` makes of
    /// some people, for a chunk of people at a time.
    pub(crate) fn in_chunks(
        self,
        width: usize,
        first: usize,
        out: &mut [u8],
        mut report: impl FnMut(Chunk<'_>, &mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let people = rows(first, out, width);
        let at_once = rows_at_once(width);
        let secrets = self.secrets[people.clone()].chunks(at_once);
        let chunks = secrets.zip(self.values[people].chunks(at_once)).zip(out.chunks_mut(at_once * width));
        for ((secrets, values), out) in chunks {
            report(Chunk { secrets, values }, out)?;
        }
        Ok(())
    }
}

/// Some people who keep a secret each.
#[derive(Clone, Copy)]
pub(crate) struct Chunk<'a> {
    secrets: &'a [Secret],
    values: &'a [i64],
}

impl<'a> Chunk<'a> {
    /// The number of people.
    pub(crate) fn len(self) -> usize {
        self.values.len()
    }

    /// Sixteen people at a time: their secrets, and their values, with zeros for people whom the last ones lack.
    pub(crate) fn sixteens(self) -> impl Iterator<Item = (&'a [Secret], [i64; PEOPLE])> {
        self.secrets.chunks(PEOPLE).zip(self.values.chunks(PEOPLE)).map(|(secrets, given)| {
            let mut values = [0; PEOPLE];
            values[..given.len()].copy_from_slice(given);
            (secrets, values)
        })
    }
}

/// How many longitudinal reports of `width` bytes are made at once: a multiple of the people whose words are derived
/// at once.
fn rows_at_once(width: usize) -> usize {
    (CHUNK_BYTES / width).clamp(PEOPLE, CHUNK) / PEOPLE * PEOPLE
}

/// The people whose rows of `width` bytes `out` holds, which begins at byte `first` of all rows.
pub(crate) fn rows(first: usize, out: &[u8], width: usize) -> Range<usize> {
    first / width..(first + out.len()) / width
}

/// Checks that all values are in [0, k), in one pass without a branch.
pub(crate) fn check_below(k: u32, values: &[i64]) -> Result<(), Error> {
    let outside = values.iter().fold(0, |outside, &value| outside | u8::from(value as u64 >= u64::from(k)));
    if declassify(Reason::Refusal, outside == 0) {
        Ok(())
    } else {
        Err(Error::data("values", format!("must be integers in [0, k) with k = {k}")))
    }
}

/// Checks that `out` has `rows` rows of `width` bytes.
pub(crate) fn check_out(out: &[u8], rows: usize, width: usize) -> Result<(), Error> {
    if rows.checked_mul(width) == Some(out.len()) {
        return Ok(());
    }
    Err(Error::parameter("out", format!("{} bytes", out.len()), format!("{rows} rows of {width} bytes")))
}
