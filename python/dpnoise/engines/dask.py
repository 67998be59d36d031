"""Count reports with Dask, on the threads or processes of one machine or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from dpnoise.engines import _states
from dpnoise.engines._extras import require
from dpnoise.local import Accumulator, Protocol
from dpnoise.local._arrow import is_arrow

__all__ = ["aggregate"]

_FAN_IN: Final = 8


def aggregate(protocol: Protocol, reports: Any) -> Accumulator:
    """Count reports where Dask has them, and merge the counts in a tree.

    It runs on the current client, or the scheduler that Dask is set to. Partitions whose worker is lost are counted
    again, as often as that scheduler allows.

    Parameters
    ----------
    protocol : Protocol
        The protocol of the reports.
    reports : dask.bag.Bag, dask.dataframe.Series, dask.array.Array or list of Delayed
        A bag of reports as bytes or of batches; a binary column; an array like those of ``perturb``, in chunks of whole
        rows; or batches still to be made. A batch is what `Accumulator.add` takes.

    Returns
    -------
    dpnoise.local.Accumulator
        The same as if one process had counted everything.

    Raises
    ------
    ParameterError
        When reports do not fit the protocol.
    TypeError
        When ``protocol`` or the reports are of another type.
    ImportError
        When Dask is not installed.
    """
    _states.check_protocol(protocol)
    delayed = require("dask", "dask").delayed
    count, merge = delayed(_count), delayed(_merge)
    level = [count(protocol, partition) for partition in _partitions(reports)]
    while len(level) > 1:
        level = [merge(protocol, level[first : first + _FAN_IN]) for first in range(0, len(level), _FAN_IN)]
    return _states.merge(protocol, (part.compute() for part in level))


def _partitions(reports: Any) -> list[Any]:
    """Give the partitions of a collection as a list of Delayed."""
    if isinstance(reports, list | tuple):
        return list(reports)
    if not hasattr(reports, "to_delayed"):
        raise TypeError(f"reports must be a Dask collection or a list of Delayed, got {type(reports).__name__}")
    partitions = reports.to_delayed()
    return partitions.ravel().tolist() if isinstance(partitions, np.ndarray) else partitions


def _count(protocol: Protocol, partition: Any) -> bytes:
    return _states.count(protocol, _batches(partition))


def _batches(partition: Any) -> list[Any]:
    """Give the batches of a partition, which may be one; that of a bag has any number, or reports one by one."""
    if isinstance(partition, np.ndarray) or is_arrow(partition):
        return [partition]
    items = list(partition) if isinstance(partition, Iterator) else partition
    if isinstance(items, list) and not all(isinstance(item, bytes | None) for item in items):
        return items
    return [require("pyarrow", "dask").array(items, from_pandas=True)]


def _merge(protocol: Protocol, states: list[bytes]) -> bytes:
    return _states.merge(protocol, states).to_bytes()
