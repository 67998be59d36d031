"""Reports as a column of Arrow."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from dpnoise.local import Protocol


def perturbed(protocol: Protocol, values: NDArray[Any]) -> Any:
    """Give a report for each value, as a pyarrow array of type fixed_size_binary."""
    import pyarrow

    # One thread: the engine has a worker for every core.
    reports = protocol.perturb(values, threads=1)  # type: ignore[attr-defined] # every protocol has it, but not alike
    kind = pyarrow.binary(protocol.report_bytes)
    return pyarrow.FixedSizeBinaryArray.from_buffers(kind, len(values), [None, pyarrow.py_buffer(reports)])
