"""Arguments as arrays that the native module takes: reports, counts, and the fingerprints of texts.

Messages show types and shapes, never data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._arrays import (
    array_of,
    arrow_column,
    dtype_of,
    is_arrow,
    library_of,
    missing_values,
    read_by,
    require_pyarrow,
)
from dpnoise._columns import built_in, kinds_of, named_columns, objects
from dpnoise._domain import Domain
from dpnoise._errors import ParameterError

_ROWS_AT_ONCE: Final = 1 << 12
"""So many rows that columns become, while they are in the cache."""


def counts(numbers: Any, k: int, name: str) -> NDArray[np.int64]:
    """Copy a number of people for each of k values to an int64 array; their sum fits into int64, too."""
    found = array_of(numbers, name)
    if found.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got dtype {dtype_of(found)}")
    if found.shape != (k,):
        raise ParameterError(f"{name} must have shape ({k},), one for each value, got {found.shape}")
    if not all(count >= 0 for count in found.tolist()) or sum(found.tolist()) >= 2**62:
        raise ParameterError(f"{name} must be at least 0 and sum to less than 2**62")
    return np.array(found, np.int64)


def matrix(rows: Any, width: int, name: str) -> NDArray[np.uint8]:
    """Return packed rows, also in a list of single ones, as a C-contiguous uint8 matrix, copied only if necessary."""
    if type(rows) in (list, tuple) and rows and set(map(type, rows)) == {bytes}:
        if set(map(len, rows)) != {width}:
            raise ParameterError(f"{name} of bytes must have {width} bytes each; messages are for add_messages")
        return np.frombuffer(b"".join(rows), np.uint8).reshape(-1, width)
    found = array_of(rows, name)
    if found.ndim == 3 and found.shape[1] == 1:  # a list of what `perturb` gives for one person
        found = found[:, 0]
    if found.dtype != np.uint8:
        wanted = f"a NumPy array of dtype uint8 and shape (n, {width})"
        raise TypeError(f"{name} must be {wanted}, got dtype {dtype_of(found)}")
    if found.ndim != 2 or found.shape[1] != width:
        raise ParameterError(f"{name} must have shape (n, {width}), got {found.shape}")
    return np.ascontiguousarray(found)


def rows_of_bits(rows: Any, k: int, width: int, domain: Domain | None) -> NDArray[np.uint8]:
    """Return rows of k bits: a copy of packed ones, which no other code can change, or else a byte for each bit.

    The columns of a data frame are found by name. The bytes of an array of uint8 or bool are not checked here.
    """
    named = named_columns(rows, "rows")
    if named is not None:
        return _from_columns(*named, k, domain)
    found = array_of(rows, "rows")
    if found.shape == (k,) and library_of(type(rows)) not in ("pandas", "polars"):  # a series is a column, not a row
        found = found[np.newaxis]
    if found.dtype == np.uint8 and found.ndim == 2 and found.shape[1] == width:
        return np.array(found, order="C")
    bits = _bits(found)
    if bits.ndim != 2 or bits.shape[1] != k:
        wanted = f"shape (n, {k}), a column for each value, or (n, {width}) and dtype uint8 if they are packed"
        raise ParameterError(f"rows must have {wanted}, got shape {found.shape} and dtype {found.dtype}")
    return bits


def _from_columns(names: list[Any], columns: list[Any], k: int, domain: Domain | None) -> NDArray[np.uint8]:
    """Return the columns of a data frame in the order of the labels, which are compared as texts, as in files."""
    labels = list(map(str, range(k))) if domain is None else domain.names
    texts = [str(name).lower() if isinstance(name, bool | np.bool_) else str(name) for name in names]
    of = f"the numbers from 0 to {k - 1}" if domain is None else f"the domain {domain!r}"
    if not set(texts) <= set(labels):
        raise ParameterError(f"rows must have columns named by {of} alone; the name of another one may be private")
    if len(set(texts)) < len(texts):
        raise ParameterError(f"rows must have one column for each label, got several for one of {of}")
    place = dict(zip(texts, range(k), strict=False))
    missing = next((label for label in labels if label not in place), None)
    if missing is not None:
        hint = "range(k)" if domain is None else "domain"
        raise ParameterError(
            f"rows must have a column for each label, {missing!r} is missing: reindex(columns={hint}, fill_value=0)"
        )
    bits = [_bits(array_of(columns[place[label]], "rows")) for label in labels]
    rows = np.empty((len(bits[0]), k), np.uint8)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        np.stack([column[part] for column in bits], axis=1, out=rows[part])
    return rows


def _bits(found: NDArray[Any]) -> NDArray[np.uint8]:
    """Return bytes of 0 or 1, which those of uint8 and bool need not be."""
    if found.dtype.kind not in "biuf":
        raise TypeError(f"rows must be 0 and 1, as bool, integers or floats, got dtype {dtype_of(found)}")
    if found.dtype in (np.uint8, np.bool_):
        return np.ascontiguousarray(found).view(np.uint8)
    with np.errstate(all="ignore"):  # a warning about a signalling NaN
        ones: NDArray[np.bool_] = np.equal(found, 1, order="C")
        if np.count_nonzero(ones) != np.count_nonzero(found):  # NaN is not zero
            raise ParameterError("rows must be 0 or 1 in every column")
    return ones.view(np.uint8)


def answers(reports: Any) -> NDArray[np.uint8]:
    """Return binary reports, booleans of shape (n,) or bytes of shape (n, 1), as a C-contiguous uint8 matrix."""
    if type(reports) in (list, tuple) and reports and isinstance(reports[0], bytes):
        return matrix(reports, 1, "reports")
    found = array_of(reports, "reports")
    if found.dtype == np.bool_ and found.shape[1:] in ((), (1,)):  # a list of what `perturb` gives for one person
        return np.ascontiguousarray(found).view(np.uint8).reshape(-1, 1)
    if found.dtype == np.uint8 and found.ndim == 2 and found.shape[1] == 1:
        return np.ascontiguousarray(found)
    wanted = "reports must have dtype bool and shape (n,), or dtype uint8 and shape (n, 1)"
    if found.dtype not in (np.bool_, np.uint8):
        raise TypeError(f"{wanted}; got dtype {dtype_of(found)}")
    raise ParameterError(f"{wanted}; got dtype {found.dtype} and shape {found.shape}")


def fingerprints(texts: Any, name: str) -> NDArray[np.int64]:
    """Return the fingerprints of texts: a sequence of str or of bytes, or an Arrow column of strings or binary."""
    data, offsets = _from_arrow(texts, name) if is_arrow(texts) else _from_sequence(texts, name)
    found = np.empty(offsets.size - 1, np.int64)
    _native.text_fingerprints(data, offsets, found)
    return found


def readable_twice(texts: Any, name: str) -> Any:
    """Return texts that can be read by `fingerprints` and then by `as_list`: some streams can be read only once."""
    return arrow_column(texts, name) if is_arrow(texts) else texts


def as_list(texts: Any, name: str) -> list[Any]:
    """Return texts as a list, after `fingerprints` has accepted them."""
    found: list[Any] = arrow_column(texts, name).to_pylist() if is_arrow(texts) else np.asarray(texts, object).tolist()
    return found


def _from_sequence(texts: Any, name: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    wanted = f"{name} must be str or bytes, all of one type"
    in_order = all(hasattr(type(texts), method) for method in ("__len__", "__iter__", "__getitem__"))
    if not in_order or isinstance(texts, str | bytes | Mapping):
        raise TypeError(f"{wanted}, in a list or an array, got {type(texts).__name__}")
    texts = np.asarray(texts) if isinstance(texts, np.ndarray) else texts  # no subclass
    if isinstance(texts, np.ndarray) and (texts.ndim != 1 or texts.dtype.kind == "S"):
        # NumPy drops zero bytes at the end of what it stores as fixed-size bytes.
        raise ParameterError(f"{wanted}, in one dimension, got shape {texts.shape} and dtype {dtype_of(texts)}")
    texts = read_by(objects, texts, name)
    kinds = kinds_of(texts)
    others = {kind.__name__ for kind in kinds if not issubclass(kind, str | bytes)}
    if others:
        raise TypeError(f"{wanted}, got {', '.join(sorted(others))}; fill or drop missing values first")
    texts = built_in(texts, kinds, name).tolist()
    is_text = {issubclass(kind, str) for kind in kinds}
    if len(is_text) == 2:
        raise TypeError(f"{wanted}, got both")
    try:
        encoded = list(map(str.encode, texts)) if is_text == {True} else texts
    except UnicodeEncodeError:
        raise ParameterError(f"{name} must be Unicode text, without lone surrogates") from None
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


def _from_arrow(texts: Any, name: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    pa, column = require_pyarrow(), arrow_column(texts, name)
    types = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    if not any(is_type(column.type) for is_type in types):
        raise TypeError(f"{name} must be str or bytes, all of one type, got a column of type {column.type}")
    if column.null_count:
        raise missing_values(name)
    column = column.cast(pa.large_binary()).combine_chunks()
    _, offsets, data = column.buffers() if len(column) else (None, None, None)
    if offsets is None:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]], ends - ends[0]
