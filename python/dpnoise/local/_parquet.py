"""Parquet files of reports, read a piece at a time: memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any

from dpnoise._arrays import require_pyarrow
from dpnoise._errors import ParameterError
from dpnoise._files import checked_path
from dpnoise._numbers import integer
from dpnoise._parquet import PARQUET, native_file, rows_at_a_time
from dpnoise._types import Integer
from dpnoise.local import _arrow
from dpnoise.local._specification import Specification


@dataclass(frozen=True)
class ReportsFile:
    """A Parquet file of reports, and what its metadata say about them.

    Attributes
    ----------
    path : str
        The name of the file.
    protocol : Protocol, Sampled, Split or None
        The protocol of the reports, where the metadata name a protocol; with labels, as texts, where they list them.
    rows : int
        The number of reports.
    """

    path: str
    protocol: Specification | None
    rows: int

    def batches(self, rows: Integer) -> Iterator[Any]:
        """Read the reports a piece at a time, so that memory does not grow with the file.

        Parameters
        ----------
        rows : int
            The largest number of reports in a piece, at least 1.

        Yields
        ------
        pyarrow.Array
            At most ``rows`` reports, without the metadata, for `Accumulator.add`.

        Raises
        ------
        ParameterError
            When the file is damaged or truncated, or has pages that are too large.
        """
        size, found = integer(rows, "rows", range(1, 2**63)), 0
        with _opened(self.path) as file:
            name = file.schema_arrow.names[_arrow.report_column(file.schema_arrow.names)]
            size = min(size, rows_at_a_time(file, self.path, name, _arrow.BLOCK_BYTES))
            for batch in file.iter_batches(batch_size=size, columns=[name]):
                found += batch.num_rows
                yield batch.column(0)
        if found != self.rows:  # a page's checksum does not cover its header, which has the number of rows
            raise ParameterError(f"{self.path!r} is damaged: it has {self.rows} reports, of which {found} can be read")


def open_reports(path: str | PathLike[str]) -> ReportsFile:
    """Read what the metadata of a Parquet file say about its reports.

    Parameters
    ----------
    path : path-like
        A file with a binary column of reports that is called "report" or is the only one.

    Returns
    -------
    ReportsFile
        What the metadata say, and a way to read the reports.

    Raises
    ------
    ParameterError
        When the file is not a Parquet file, has no column of reports, or its metadata are damaged.
    """
    name = str(checked_path(path))
    with _opened(name) as file:
        schema, metadata = file.schema_arrow, file.schema_arrow.metadata or {}
        try:
            _arrow.report_column(schema.names)
            protocol = _arrow.protocol_of(metadata)
        except ParameterError as error:
            raise ParameterError(f"{name!r} cannot be used: {error}") from None
        return ReportsFile(name, protocol, file.metadata.num_rows)


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    pa = require_pyarrow()
    import pyarrow.parquet as pq

    source = native_file(path)
    try:
        file = pq.ParquetFile(source, **PARQUET)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise ParameterError(f"{path!r} is not a Parquet file, or was cut short") from None
    with source, file:
        try:
            yield file
        except (pa.ArrowException, OSError) as error:
            raise ParameterError(f"{path!r} is damaged: {' '.join(str(error).split())}") from None
