"""Arguments as arrays that the native module takes: values, reports, and the fingerprints of texts.

Messages show types and shapes, never data.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._errors import ParameterError
from dpnoise._interchange import (
    arrow_column,
    asked,
    built_in,
    codes_of,
    is_arrow,
    is_missing,
    kinds_of,
    objects,
    require_pyarrow,
    unreadable,
)
from dpnoise._parameters import Domain, array_of, doubles, dtype_of

_FILL: Final = "fill or drop missing values"


def integers(values: Any) -> NDArray[np.int64]:
    """Copy a vector of integers to a new int64 array, which no other code can change while it is in use."""
    return np.array(_integers(values), dtype=np.int64, order="C")


def _integers(values: Any) -> NDArray[Any]:
    found = _vector(values, "integers, for example a NumPy array of dtype int64", np.int64)
    if found.dtype.kind not in "iu":
        if found.dtype.kind == "b":
            hint = "cast with .astype(int) if False and True stand for 0 and 1"
        elif found.dtype.kind == "f" or _has_missing(found):
            missing = "NaN" if found.dtype.kind == "f" else "None, NA"
            hint = f"{_FILL} ({missing}) first, then cast with .astype('int64')"
        else:
            codes = codes_of(values)
            given = f", which {codes} gives if the categories are that list" if codes else ""
            hint = f"replace every value by its index in the list of possible values{given}"
        raise TypeError(f"values must be integers, got dtype {dtype_of(found)}: {hint}")
    return found


def codes(values: Any, domain: Domain | None) -> NDArray[np.int64]:
    """Copy a vector of labels as their indices, or of indices if there is no domain, to a new int64 array."""
    values = _of_people(values)
    if domain is None:
        return integers(values)
    if domain.kind is str:
        return domain.of_texts(values, "values")
    if domain.kind is bool:
        return domain.of_booleans(booleans(values))
    if isinstance(values, list | tuple) and not {bool, np.bool_}.isdisjoint(map(type, values)):
        raise TypeError("values must be integers, as the labels of the domain are, got bool")
    return domain.of_integers(_integers(values), "values")


def numbers(values: Any) -> NDArray[np.float64]:
    """Copy a vector of real numbers to a new float64 array, which no other code can change while it is in use."""
    found = _vector(values, "real numbers, for example a NumPy array of dtype float64", np.float64)
    if found.dtype.kind not in "iuf":
        hint = "cast with .astype(float) if they stand for numbers" + (
            f"; {_FILL} first" if _has_missing(found) else ""
        )
        raise TypeError(f"values must be real numbers, got dtype {dtype_of(found)}: {hint}")
    return doubles(found, copy=True)  # a number that is too large becomes infinite, and is refused


def booleans(values: Any) -> NDArray[np.uint8]:
    """Copy a vector of booleans to a new uint8 array, which no other code can change while it is in use."""
    found = _vector(_of_people(values), "booleans, for example a NumPy array of dtype bool", np.bool_)
    if found.dtype.kind != "b":
        hint = "compare to get booleans, for example answers == 1"
        if found.dtype.kind == "f" or _has_missing(found):
            hint += f"; {_FILL} first"
        raise TypeError(f"values must be booleans, got dtype {dtype_of(found)}: {hint}")
    return np.array(found, order="C").view(np.uint8)


def counts(true_counts: Any, k: int) -> NDArray[np.int64]:
    """Copy the numbers of people with each of k values to an int64 array; their sum fits into int64, too."""
    found = array_of(true_counts, "true_counts")
    if found.dtype.kind not in "iu":
        raise TypeError(f"true_counts must be integers, got dtype {found.dtype}")
    if found.shape != (k,):
        raise ParameterError(f"true_counts must have shape ({k},), one for each value, got {found.shape}")
    if not all(count >= 0 for count in found.tolist()) or sum(found.tolist()) >= 2**62:
        raise ParameterError("true_counts must be at least 0 and sum to less than 2**62")
    return np.array(found, np.int64)


def matrix(rows: Any, width: int, name: str) -> NDArray[np.uint8]:
    """Return packed rows as a C-contiguous uint8 matrix, copied only if necessary."""
    found = array_of(rows, name)
    if found.dtype != np.uint8:
        raise TypeError(f"{name} must be a NumPy array of dtype uint8 and shape (n, {width}), got dtype {found.dtype}")
    if found.ndim != 2 or found.shape[1] != width:
        raise ParameterError(f"{name} must have shape (n, {width}), got {found.shape}")
    return np.ascontiguousarray(found)


def answers(reports: Any) -> NDArray[np.uint8]:
    """Return binary reports, booleans of shape (n,) or bytes of shape (n, 1), as a C-contiguous uint8 matrix."""
    found = array_of(reports, "reports")
    if found.dtype == np.bool_ and found.ndim == 1:
        return np.ascontiguousarray(found).view(np.uint8).reshape(-1, 1)
    if found.dtype == np.uint8 and found.ndim == 2 and found.shape[1] == 1:
        return np.ascontiguousarray(found)
    wanted = "reports must have dtype bool and shape (n,), or dtype uint8 and shape (n, 1)"
    if found.dtype not in (np.bool_, np.uint8):
        raise TypeError(f"{wanted}; got dtype {found.dtype}")
    raise ParameterError(f"{wanted}; got dtype {found.dtype} and shape {found.shape}")


def _of_people(answers: Any) -> Any:
    """Make a list of a single answer, and of one of the caller's own classes."""
    if isinstance(answers, list | tuple) and type(answers) not in (list, tuple):
        return asked(partial(list, answers), partial(unreadable, answers, "values"))
    return [answers] if isinstance(answers, str | int | np.integer | np.bool_) else answers


def _has_missing(found: NDArray[Any]) -> bool:
    return found.dtype.kind == "O" and any(map(is_missing, found))


def _vector(values: Any, what: str, empty: type[np.generic]) -> NDArray[Any]:
    if values is None:
        raise TypeError(f"values must be {what}, got None")
    found = array_of(values, "values")
    if found.ndim != 1:
        raise ParameterError(f"values must be one-dimensional, one for each person, got shape {found.shape}")
    if found.size == 0 and isinstance(values, list | tuple):
        return np.empty(0, empty)  # an empty list has no type of its own
    return found


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
    texts = asked(partial(objects, texts), partial(unreadable, texts, name))
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
    texts_types = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    types = (*texts_types, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    if not any(is_type(column.type) for is_type in types):
        raise TypeError(f"{name} must be str or bytes, all of one type, got a column of type {column.type}")
    if column.null_count:
        raise ParameterError(f"{name} must have no missing values: fill or drop them first")
    column = column.cast(pa.large_binary()).combine_chunks()
    _, offsets, data = column.buffers() if len(column) else (None, None, None)
    if offsets is None:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]], ends - ends[0]
