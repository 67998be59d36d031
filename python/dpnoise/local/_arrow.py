"""Reports in Arrow data: columns, record batches, tables and streams of them, of any library (PyCapsule interface)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._arrays import is_arrow, require_pyarrow
from dpnoise._errors import ParameterError
from dpnoise._json import read_json
from dpnoise._native import LocalSpecification
from dpnoise._types import ArrowArray, ArrowStream
from dpnoise.local._specification import DOMAIN_KEY, PROTOCOL_KEY, REPORT, Specification, wrap

BLOCK_BYTES: Final = 1 << 24

Block = tuple[Any, Mapping[str, int]]
"""Well-shaped reports, and the number of rejected rows by reason."""


def rows_per_block(report_bytes: int) -> int:
    """Return the number of rows to hold at a time, so that their reports fill at most 16 MiB."""
    return max(1, min(1 << 18, BLOCK_BYTES // report_bytes))


def report_column(names: list[str]) -> int:
    """Return the index of the column that holds the reports: the one of that name, or the only one."""
    if names.count(REPORT) == 1:
        return names.index(REPORT)
    if len(names) == 1:
        return 0
    raise ParameterError(f"reports must be one column, or a table with one column {REPORT!r}, got {len(names)} columns")


def in_blocks(reports: Any, protocol: Specification) -> Iterable[Block]:
    """Return reports of any kind in blocks: Arrow data in blocks of bounded size, an array as it is."""
    return blocks(reports, protocol) if is_arrow(reports) else [(reports, {})]


def blocks(reports: ArrowArray | ArrowStream, protocol: Specification) -> Iterator[Block]:
    """Return Arrow data in blocks of bounded size, views of it where its layout allows."""
    pa = require_pyarrow()
    rows = rows_per_block(protocol.report_bytes)
    for column in _columns(pa, reports, protocol):
        for start in range(0, len(column), rows):
            yield _block(pa, column.slice(start, rows), protocol.report_bytes)


def protocol_of(metadata: Mapping[bytes, bytes]) -> Specification | None:
    """Return the protocol that the metadata of a schema name, if any: to compare it, or whoever counts limits it."""
    text = metadata.get(PROTOCOL_KEY)
    if text is None:
        return None
    native, _ = LocalSpecification.from_json(text.decode("utf-8", errors="replace"), None)
    protocol = wrap(native)
    if DOMAIN_KEY not in metadata:
        return protocol
    try:
        return protocol._meant(read_json(metadata[DOMAIN_KEY]))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"the metadata {DOMAIN_KEY.decode()!r} cannot be used: {error}") from None


def check_same(found: Specification | None, protocol: Specification) -> None:
    """Refuse reports whose metadata name another specification."""
    if found is not None:
        protocol._native.check_same(found._native, "reports")


def _columns(pa: Any, reports: Any, protocol: Specification) -> Iterable[Any]:
    if hasattr(reports, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(reports)
        except pa.ArrowInvalid:  # not a stream of record batches, but of a column's chunks
            yield from pa.chunked_array(reports).chunks
            return
        schema, batches = reader.schema, reader
    else:
        try:
            batch = pa.record_batch(reports)
        except pa.ArrowInvalid:
            yield pa.array(reports)
            return
        schema, batches = batch.schema, [batch]
    metadata = schema.metadata or {}
    if DOMAIN_KEY in metadata or metadata.get(PROTOCOL_KEY) != protocol.to_json().encode():
        check_same(protocol_of(metadata), protocol)  # which takes a millisecond
    index = report_column(schema.names)
    for batch in batches:
        yield batch.column(index)


def _block(pa: Any, column: Any, width: int) -> Block:
    types = pa.types
    missing = column.null_count
    if types.is_boolean(column.type):
        return column.drop_null().to_numpy(zero_copy_only=False), _reasons(missing, 0)
    if types.is_null(column.type):
        return _rows(b"", width), _reasons(missing, 0)
    if types.is_fixed_size_binary(column.type):
        return _fixed_size_block(column, width)
    if types.is_binary_view(column.type):
        column = column.cast(pa.large_binary())
    if types.is_binary(column.type) or types.is_large_binary(column.type):
        return _variable_size_block(pa, column, width)
    raise TypeError(f"reports must be a column of type fixed_size_binary[{width}] or binary, got {column.type}")


def _fixed_size_block(column: Any, width: int) -> Block:
    missing = column.null_count
    if column.type.byte_width != width:
        return _rows(b"", width), _reasons(missing, len(column) - missing)
    if missing:
        column = column.drop_null()
    values = column.buffers()[1]
    return _rows(values, width)[column.offset : column.offset + len(column)], _reasons(missing, 0)


def _variable_size_block(pa: Any, column: Any, width: int) -> Block:
    missing, wrong = column.null_count, 0
    if missing:
        column = column.drop_null()
    offsets = _offsets(pa, column)
    right = np.diff(offsets) == width
    if not right.all():
        wrong = len(column) - int(np.count_nonzero(right))
        column = column.filter(pa.array(right))
        offsets = _offsets(pa, column)
    values = np.frombuffer(column.buffers()[2] or b"", np.uint8)
    return values[offsets[0] : offsets[-1]].reshape(-1, width), _reasons(missing, wrong)


def _offsets(pa: Any, column: Any) -> NDArray[np.int32] | NDArray[np.int64]:
    if len(column) == 0:
        return np.zeros(1, np.int64)  # Arrow allows an empty buffer in this case
    kind = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    offsets: NDArray[Any] = np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column) + 1]
    return offsets


def _rows(values: Any, width: int) -> NDArray[np.uint8]:
    found = np.frombuffer(values, np.uint8) if values else np.empty(0, np.uint8)
    return found[: len(found) // width * width].reshape(-1, width)  # Arrow may pad its buffers


def _reasons(missing: int, wrong: int) -> dict[str, int]:
    reasons = {"missing report": missing, "wrong length": wrong}
    return {reason: count for reason, count in reasons.items() if count}
