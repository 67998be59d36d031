"""Parquet files of reports about one column or several, written by perturb and read by estimate."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpnoise import local
from dpnoise._parquet import rows_at_a_time
from dpnoise.cli import tables
from dpnoise.cli.console import InputError

Announced: TypeAlias = local.Protocol | local.AttributesProtocol

_FILE_KEY: Final = b"dpnoise.file"


@dataclass(frozen=True)
class Reports:
    """A file of reports, and what its metadata, if any, say about the reports."""

    path: str
    protocol: Announced | None
    rows: int
    batches: Callable[[int], Iterator[Any]]
    """Reads the reports a piece at a time, of at most so many rows."""


@contextmanager
def report_writer(target: BinaryIO, protocol: Announced) -> Iterator[Callable[[Any], None]]:
    """Write a Parquet file of reports; yields a function that takes a batch of them as the protocol made them."""
    schema = protocol.to_arrow(np.empty((0, protocol.report_bytes), np.uint8)).schema
    # Files are identified by their content, and two files of few reports could be equal by chance.
    metadata = {**schema.metadata, _FILE_KEY: secrets.token_hex(16)}
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
        yield lambda reports: writer.write_batch(protocol.to_arrow(reports))


def open_reports(path: Path) -> Reports:
    """Read what the metadata of a file say about its reports."""
    file = local.open_reports(path)
    if isinstance(file.protocol, local.AttributesProtocol):
        return _of_attributes(path, file.protocol)
    return Reports(file.path, file.protocol, file.rows, file.batches)  # type: ignore[arg-type] # of one protocol


def _of_attributes(path: Path, protocol: local.AttributesProtocol) -> Reports:
    field = protocol.to_arrow(np.empty((0, protocol.report_bytes), np.uint8)).schema.field(0)
    file = tables.parquet_file(path)
    if file.schema_arrow.names != ["report"] or file.schema_arrow.field(0) != field:
        raise InputError(f"{str(path)!r} cannot be used: its column must be report, of {protocol.report_bytes} bytes")

    def batches(rows: int) -> Iterator[NDArray[np.uint8]]:
        rows = min(rows, rows_at_a_time(file, path, "report", rows * protocol.report_bytes))
        for [column] in tables.batches_of(file, path, ["report"], rows):
            end = column.offset + len(column)
            numbers = np.frombuffer(column.buffers()[1] or b"", np.uint8, end * protocol.report_bytes)
            yield numbers.reshape(-1, protocol.report_bytes)[column.offset :]

    return Reports(str(path), protocol, file.metadata.num_rows, batches)
