"""Files of reports, read a batch at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

from dpnoise._native import ParameterError
from dpnoise.engines._extras import require
from dpnoise.local import Protocol, protocol_from_json

_BATCH_BYTES: Final = 1 << 24


def batches(protocol: Protocol, part: Any) -> Iterator[Any]:
    """Yield the batches of a Parquet file, if ``part`` is the path of one, or ``part`` itself."""
    if not isinstance(part, str | os.PathLike):
        yield part
        return
    arrow, parquet = require("pyarrow", "cli"), require("pyarrow.parquet", "cli")
    try:
        file = parquet.ParquetFile(part, pre_buffer=False)
        metadata = file.schema_arrow.metadata or {}
        if b"dpnoise.protocol" not in metadata or "report" not in file.schema_arrow.names:
            raise ParameterError("the file must have a column 'report' and say in its metadata which protocol made it")
        found = protocol_from_json(metadata[b"dpnoise.protocol"].decode())
        if found != protocol:
            raise ParameterError(f"the reports must be of {protocol!r}, got {found!r}")
        rows = max(1, _BATCH_BYTES // protocol.report_bytes)
        for batch in file.iter_batches(batch_size=min(rows, 1 << 18), columns=["report"]):
            yield batch.column(0)
    except arrow.ArrowException:
        raise ParameterError("the file must be a well-formed Parquet file") from None
