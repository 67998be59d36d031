"""Texts as the fingerprints that the native module takes. No message shows a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._errors import ParameterError
from dpnoise._interchange import arrow_column, is_arrow, require_pyarrow
from dpnoise._parameters import dtype_of


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
    in_order = all(hasattr(texts, method) for method in ("__len__", "__iter__", "__getitem__"))
    if not in_order or isinstance(texts, str | bytes | Mapping):
        raise TypeError(f"{wanted}, in a list or an array, got {type(texts).__name__}")
    if isinstance(texts, np.ndarray) and (texts.ndim != 1 or texts.dtype.kind == "S"):
        # NumPy drops zero bytes at the end of what it stores as fixed-size bytes.
        raise ParameterError(f"{wanted}, in one dimension, got shape {texts.shape} and dtype {dtype_of(texts)}")
    kinds = {kind.__name__ for kind in map(type, texts) if not issubclass(kind, str | bytes)}
    if kinds:
        raise TypeError(f"{wanted}, got {', '.join(sorted(kinds))}; fill or drop missing values first")
    is_text = {isinstance(text, str) for text in texts}
    if len(is_text) == 2:
        raise TypeError(f"{wanted}, got both")
    try:
        encoded = [text.encode() for text in texts] if is_text == {True} else list(texts)
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
