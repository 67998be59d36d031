"""Parquet files of reports about one column or several, written by perturb and read by estimate."""

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpnoise import ParameterError, local
from dpnoise._domain import Domain
from dpnoise._json import read_json
from dpnoise._parquet import native_file, rows_at_a_time
from dpnoise.cli import tables
from dpnoise.cli.console import InputError
from dpnoise.sensitivity import check_bounds

Announced: TypeAlias = local.Protocol | local.AttributesProtocol

Labels: TypeAlias = list[str] | range
"""The labels of values; a range stands for digits, since a file of a few bytes may be about millions of numbers."""

Meaning: TypeAlias = Labels | list[float] | dict[str, Labels]
"""What the values of a protocol stand for: labels, or the bounds of a mean, or the labels of each attribute."""

_FILE_KEY: Final = b"dpnoise.file"
_PROTOCOL_KEY: Final = b"dpnoise.protocol"
_DOMAIN_KEY: Final = b"dpnoise.domain"
_BOUNDS_KEY: Final = b"dpnoise.bounds"


@dataclass(frozen=True)
class Reports:
    """A file of reports, and what its metadata, if any, say about the reports."""

    path: str
    protocol: Announced | None
    meaning: Meaning | None
    rows: int
    batches: Callable[[int], Iterator[Any]]
    """Reads the reports a piece at a time, of at most so many rows."""


def middle_and_half(lower: float, upper: float) -> tuple[float, float]:
    """Return what 0 stands for, and half the distance of the bounds that -1 and 1 stand for."""
    return lower / 2 + upper / 2, upper / 2 - lower / 2


def meaning_of(protocol: Announced, listed: Any) -> Meaning:
    """Check what a file lists for the values of its protocol; raise a ParameterError or a TypeError."""
    if isinstance(protocol, local.AttributesProtocol):
        labelled = local.AttributesProtocol.from_json(protocol.to_json(), domains=listed, limit=None).attributes
        if others := [name for name, one in labelled.items() if not isinstance(one, local.FrequencyProtocol)]:
            raise ParameterError(f"attribute {others[0]!r} is not counted by value")
        return {name: _labels_of(one) for name, one in labelled.items()}
    if isinstance(protocol, local.MeanProtocol):
        return list(check_bounds(listed)) if listed else []
    if isinstance(protocol, local.FrequencyProtocol):
        return _labels_of(local.protocol_from_json(protocol.to_json(), domain=listed, limit=None))
    return []


def _labels_of(protocol: Any) -> Labels:
    return range(protocol.k) if protocol.domain is None else compact(Domain(protocol.domain).names)


def compact(labels: list[str]) -> Labels:
    """Return labels, as a range if they are the digits of the numbers from 0."""
    numbers = range(len(labels))
    return numbers if all(label == str(number) for label, number in zip(labels, numbers, strict=True)) else labels


def listed(meaning: Any) -> Any:
    """Return what the values of a protocol stand for, as files list it."""
    if isinstance(meaning, dict):
        return {name: listed(labels) for name, labels in meaning.items()}
    return list(map(str, meaning)) if isinstance(meaning, range) else meaning


@contextmanager
def report_writer(target: BinaryIO, protocol: Announced, meaning: Meaning | None) -> Iterator[Callable[[Any], None]]:
    """Write a Parquet file of reports; yields a function that takes a batch of them as the protocol made them."""
    schema = _batch(protocol, np.empty((0, protocol.report_bytes), np.uint8)).schema
    # Files are identified by their content, and two files of few reports could be equal by chance.
    metadata = {**schema.metadata, _FILE_KEY: secrets.token_hex(16)}
    if meaning is not None:
        key = _BOUNDS_KEY if isinstance(protocol, local.MeanProtocol) else _DOMAIN_KEY
        metadata[key] = json.dumps(meaning, ensure_ascii=False)
    # Reports are random bits: compression, dictionaries and minima would cost time and save nothing, and only a
    # checksum detects damage.
    with pq.ParquetWriter(
        target,
        schema.with_metadata(metadata),
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
    ) as writer:
        yield lambda reports: writer.write_batch(_batch(protocol, reports))


def _batch(protocol: Announced, reports: NDArray[np.uint8]) -> Any:
    if isinstance(protocol, local.Protocol):
        return protocol.to_arrow(reports)
    field = _field(protocol)
    column = pa.FixedSizeBinaryArray.from_buffers(field.type, len(reports), [None, pa.py_buffer(reports)])
    return pa.record_batch([column], schema=pa.schema([field], metadata={_PROTOCOL_KEY: protocol.to_json()}))


def _field(protocol: local.AttributesProtocol) -> pa.Field:
    return pa.field("report", pa.binary(protocol.report_bytes), nullable=False)


def open_reports(path: Path) -> Reports:
    """Read what the metadata of a file say about its reports."""
    try:
        metadata = pq.read_schema(native_file(path)).metadata or {}
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        metadata = {}  # the library names the problem
    if metadata.get(_PROTOCOL_KEY, b"").startswith(b'{"attributes":'):
        return _of_attributes(path, metadata)
    file = local.open_reports(path)
    meaning: Meaning | None = None
    if isinstance(file.protocol, local.MeanProtocol):
        meaning = _bounds(path, metadata)
    elif isinstance(file.protocol, local.FrequencyProtocol) and file.domain is not None:
        try:
            meaning = meaning_of(file.protocol, file.domain)
        except ParameterError as error:
            raise InputError(f"{file.path!r} cannot be used: {error}") from None
    return Reports(file.path, file.protocol, meaning, file.rows, file.batches)  # type: ignore[arg-type] # of protocols


def _bounds(path: Path, metadata: dict[bytes, bytes]) -> list[float] | None:
    if _BOUNDS_KEY not in metadata:
        return None
    try:
        return list(check_bounds(read_json(metadata[_BOUNDS_KEY])))
    except (ValueError, TypeError):
        raise InputError(f"{str(path)!r} cannot be used: the metadata 'dpnoise.bounds' are not two bounds") from None


def _domains(metadata: dict[bytes, bytes]) -> Any:
    try:
        return read_json(metadata.get(_DOMAIN_KEY, b"{}"))
    except ValueError:
        raise ParameterError("the metadata 'dpnoise.domain' are not JSON") from None


def _of_attributes(path: Path, metadata: dict[bytes, bytes]) -> Reports:
    try:
        protocol = local.AttributesProtocol.from_json(metadata[_PROTOCOL_KEY].decode(), limit=None)
        meaning = meaning_of(protocol, _domains(metadata))
    except (TypeError, ValueError) as error:
        raise InputError(f"{str(path)!r} cannot be used: {error}") from None
    file = tables.parquet_file(path)
    if file.schema_arrow.names != ["report"] or file.schema_arrow.field(0) != _field(protocol):
        raise InputError(f"{str(path)!r} cannot be used: its column must be report, of {protocol.report_bytes} bytes")

    def batches(rows: int) -> Iterator[NDArray[np.uint8]]:
        rows = min(rows, rows_at_a_time(file, path, "report", rows * protocol.report_bytes))
        for column in tables.columns_of(file, path, "report", rows):
            end = column.offset + len(column)
            numbers = np.frombuffer(column.buffers()[1] or b"", np.uint8, end * protocol.report_bytes)
            yield numbers.reshape(-1, protocol.report_bytes)[column.offset :]

    return Reports(str(path), protocol, meaning, file.metadata.num_rows, batches)
