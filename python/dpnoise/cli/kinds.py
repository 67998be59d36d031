"""What columns must hold, what their values are converted to, and labels as values of a column.

Labels come as texts. A column of a Parquet file has a type, as which they are read. The fields of a CSV file are texts,
and match labels that are the same boolean or number.
"""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from dpnoise._domain import listing
from dpnoise.cli.console import InputError

_TEXT: Final = pa.large_string()


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_categorical(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(_is_text(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_null(kind))


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    fractions = types.is_floating(kind) or types.is_decimal(kind)
    return bool(fractions or types.is_integer(kind) or types.is_boolean(kind) or types.is_null(kind))


def _has_ids(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(_is_text(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind))


def _has_labels(kind: pa.DataType) -> bool:
    return bool(_is_text(kind) or _is_number(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _texts(values: pa.Array) -> pa.Array:
    """Return equal values as equal texts; NaN is missing."""
    if pa.types.is_floating(values.type):
        values = pc.add(values.cast(pa.float64()), 0.0)  # -0.0 becomes 0.0
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
    return values.cast(_TEXT)


def _ids(values: pa.Array) -> pa.Array:
    """Return ids as they are, but for an empty text, which is how some programs write that there is none."""
    if not _is_text(values.type):
        return values
    texts = values.cast(_TEXT)
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, _TEXT), texts)


def _truths(texts: pa.Array) -> pa.Array:
    """Return booleans in lower case, and other texts as they are."""
    lower = pc.utf8_lower(texts)
    return pc.if_else(pc.is_in(lower, pa.array(["false", "true"], _TEXT)), lower, texts)


def _wholes(texts: pa.Array) -> pa.Array:
    """Return whole numbers in as few digits as possible, and other texts as they are."""
    digits = pc.replace_substring_regex(texts, r"^(?:\+|(-))?0*([0-9]+)(?:\.0*)?$", r"\1\2")
    return pc.replace_substring_regex(digits, "^-0$", "0")


def _alike(texts: pa.Array) -> pa.Array:
    """Return equal booleans as equal texts, and equal numbers without exponents, and other texts as they are."""
    fraction = r"^(?:\+|(-))?0*([0-9]+\.[0-9]*[1-9])0*$"
    return pc.replace_substring_regex(_wholes(_truths(texts)), fraction, r"\1\2")


def _with_digits(texts: pa.Array) -> pa.Array:
    """Return booleans as 1 and 0, as which they are numbers, and other texts as they are."""
    return pc.replace_substring_regex(pc.replace_substring_regex(texts, "(?i)^true$", "1"), "(?i)^false$", "0")


def _parsed_integers(fields: pa.Array) -> pa.Array:
    texts = pc.utf8_trim_whitespace(fields)
    try:
        return texts.cast(pa.int64())
    except pa.ArrowInvalid:  # perhaps 1.0, as many programs write integers beside missing values
        return _wholes(_with_digits(texts)).cast(pa.int64())


def _parsed_numbers(fields: pa.Array) -> pa.Array:
    texts = pc.utf8_trim_whitespace(fields)
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return _with_digits(texts).cast(pa.float64())


def _numbers(values: pa.Array) -> pa.Array:
    # Arrow's cast of decimals is off by a unit in the last place; that of their texts is the nearest double.
    texts = values.cast(_TEXT) if pa.types.is_decimal(values.type) else values
    return texts.cast(pa.float64(), safe=False)


def with_points(fields: pa.Array) -> pa.Array:
    """Return numbers with a point for their decimal comma; a field with a point is then no number.

    The point may separate thousands.
    """
    return pc.replace_substring(pc.replace_substring(fields, ".", "?"), ",", ".")


def _presence(values: pa.Array) -> pa.Array:
    """Return which values count: those that are neither missing nor False, as in `queries.Count`."""
    if pa.types.is_boolean(values.type):
        return values.fill_null(False)
    return pc.invert(pc.is_null(values, nan_is_null=True))


def _parsed_presence(fields: pa.Array) -> pa.Array:
    return pc.not_equal(pc.utf8_lower(fields), "false").fill_null(False)


@dataclass(frozen=True)
class Kind:
    """What a column must hold, and the type that it is converted to."""

    name: str
    allows: Callable[[pa.DataType], bool]
    type: pa.DataType
    convert: Callable[[pa.Array], pa.Array]
    value: str = "text"
    """What each value must be, for messages."""
    parse: Callable[[pa.Array], pa.Array] | None = None
    """What converts the fields of a CSV file, if that is not `convert`."""

    def of(self, values: pa.Array, column: str) -> pa.Array:
        """Convert values of a column; no message shows one."""
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        return self._by(self.convert, values, column, "")

    def parsed(self, fields: pa.Array, column: str, hint: str = "") -> pa.Array:
        """Convert the fields of a column of CSV, which are texts; a message ends with the hint."""
        return self._by(self.parse or self.convert, fields, column, hint)

    def _by(self, convert: Callable[[pa.Array], pa.Array], values: pa.Array, column: str, hint: str) -> pa.Array:
        try:
            return convert(values)
        except pa.ArrowException:
            message = f"column {column!r} has a value that is no {self.value}; which one is private{hint}"
            raise InputError(message) from None


PRESENT: Final = Kind("any", lambda _: True, pa.bool_(), _presence, parse=_parsed_presence)
TEXTS: Final = Kind("text, integer, boolean or categorical", _is_categorical, _TEXT, _texts)
LABELS: Final = Kind(
    "text, number, boolean, date, timestamp or categorical: cast it to text", _has_labels, _TEXT, _texts
)
PERSONS: Final = Kind("text or integer, which say whose a row is", _has_ids, _TEXT, _ids)
INTEGERS: Final = Kind(
    "a number or boolean", _is_number, pa.int64(), lambda x: x.cast(pa.int64()), "whole number", _parsed_integers
)
NUMBERS: Final = Kind("a number or boolean", _is_number, pa.float64(), _numbers, "number", _parsed_numbers)


def _to_microseconds(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, r"(\.[0-9]{6})[0-9]+", r"\1")


def times(first: dt.date) -> Kind:
    """Return the kind of columns that are compared with dates, or with times with or without a time zone."""
    return _times(isinstance(first, dt.datetime) and first.tzinfo is not None)


@cache
def _times(aware: bool) -> Kind:
    kind = pa.timestamp("us", "UTC" if aware else None)

    def allows(found: pa.DataType) -> bool:
        if pa.types.is_timestamp(found):
            return bool((found.tz is not None) == aware)
        return bool(pa.types.is_date(found) and not aware)

    needed = "a timestamp with a time zone" if aware else "a date, or a timestamp without a time zone"
    return Kind(
        needed, allows, kind, lambda x: x, "date", lambda x: _to_microseconds(pc.utf8_trim_whitespace(x)).cast(kind)
    )


# How labels are read, the texts that they are then, and what these are called.
_BOOLEANS: Final = (_truths, "^(false|true)$", "true or false")
_WHOLE_NUMBERS: Final = (_wholes, "^-?[0-9]+$", "whole numbers")

_SPELLED_OTHERWISE: Final = r"^(false|true|-?[0-9]+(\.[0-9]+)?)$"  # what fields of CSV may spell otherwise


def spelled_as(
    labels: Sequence[str], kind: pa.DataType | None, column: str, *, strict: bool
) -> Callable[[pa.Array], pa.Array]:
    """Return what gives the values of a column, as texts, the spelling of the labels that they are equal to.

    Labels are read as the type of the column; `strict` refuses those that are no value of it, which no row has. A CSV
    file has no types, so `kind` is None: a field is the label that is spelled like it, or else the first that is the
    same number or boolean.
    """
    given = pa.array(labels, _TEXT)
    if kind is None:
        same = _alike(given)
        if not pc.any(pc.match_substring_regex(same, _SPELLED_OTHERWISE)).as_py():
            return lambda texts: texts
    else:
        same, allowed = _read_as(kind, given)
        foreign = given.filter(same.is_null()).to_pylist()
        if foreign and strict:
            raise InputError(
                f"the labels of column {column!r}, of the type {kind}, must be {allowed}, got {listing(foreign)}"
            )
        same = pc.coalesce(same, given)
        if len(same.unique()) < len(same):
            raise InputError(f"two labels of column {column!r}, of the type {kind}, are the same: {listing(labels)}")
        if same.equals(given):
            return lambda texts: texts

    def spelled(texts: pa.Array) -> pa.Array:
        encoded = texts.dictionary_encode()  # a column has fewer values than rows
        values = encoded.dictionary
        found = pc.index_in(values, value_set=same if kind is not None else given)
        if kind is None and found.null_count:
            found = pc.coalesce(found, pc.index_in(_alike(values), value_set=same))
        names = pc.coalesce(given.take(found), values)
        return texts if names.equals(values) else names.take(encoded.indices)

    return spelled


def _read_as(kind: pa.DataType, labels: pa.Array) -> tuple[pa.Array, str]:
    """Return labels as the texts of the values that they are, or missing; and what they may be, for messages."""
    types = pa.types
    if _is_text(kind) or types.is_null(kind):
        return labels, "texts"
    if types.is_boolean(kind) or types.is_integer(kind):
        read, pattern, allowed = _BOOLEANS if types.is_boolean(kind) else _WHOLE_NUMBERS
        same = read(labels)
        return pc.if_else(pc.match_substring_regex(same, pattern), same, pa.scalar(None, _TEXT)), allowed
    found: list[str | None] = []
    for label in labels:
        try:
            found.append(_texts(pa.array([label]).cast(kind))[0].as_py())
        except pa.ArrowException:
            found.append(None)
    example = "1.5" if _is_number(kind) else "2020-01-31" if types.is_date(kind) else "2020-01-31 12:00:00"
    zone = "Z" if types.is_timestamp(kind) and kind.tz else ""
    return pa.array(found, _TEXT), f"values such as {example}{zone}"
