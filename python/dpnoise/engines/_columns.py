"""Reports as a column of Arrow."""

from __future__ import annotations

from typing import Any

from dpnoise.local import Protocol


def perturbed(protocol: Protocol, values: Any) -> Any:
    """Return a report for each value, as a pyarrow array of type fixed_size_binary."""
    # One thread: the engine has a worker for every core.
    reports = protocol.perturb(values, threads=1)  # type: ignore[attr-defined] # every protocol has it, but not alike
    return protocol.to_arrow(reports).column(0)
