"""Count reports, and make them, with Dask, on the threads or processes of one machine or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from dpnoise import _calls
from dpnoise._arrays import is_arrow
from dpnoise._errors import require
from dpnoise.engines import _states
from dpnoise.local import Accumulator, Protocol

__all__ = ["collect", "perturb"]

_FAN_IN: Final = 8


def collect(protocol: Protocol, reports: Any) -> Accumulator:
    """Count reports on Dask's workers, and merge the counts in a tree.

    It runs on the current client, or on the configured scheduler. Partitions whose worker is lost are counted again, as
    often as that scheduler allows.

    Parameters
    ----------
    protocol : Protocol
        The protocol of the reports: one of `dpnoise.local` for one attribute.
    reports : dask.bag.Bag, dask.dataframe.Series, dask.array.Array or list of Delayed
        A bag of reports as bytes or of batches; a binary column; an array such as ``perturb`` returns, in chunks of
        whole rows; or delayed batches. A batch is an argument of `Accumulator.add`.

    Returns
    -------
    Accumulator
        The accumulator that one process would have made.
    """
    _states.check_protocol(protocol)
    delayed = require("dask", "dask").delayed
    count, merge = delayed(_count), delayed(_merge)
    level = [count(protocol, partition) for partition in _partitions(reports)]
    while len(level) > 1:
        level = [merge(protocol, level[first : first + _FAN_IN]) for first in range(0, len(level), _FAN_IN)]
    return _states.merge(protocol, (part.compute() for part in level))


def perturb(protocol: Protocol, values: Any) -> Any:
    """Randomise a column of values, with fresh secure randomness for every partition.

    Each report is epsilon-locally differentially private, provided that each person has one row and that one set of
    reports leaves this function. The series is lazy, and draws new reports each time that Dask computes it: write it to
    a file at once, and use the file.

    Parameters
    ----------
    protocol : Protocol
        A protocol of `dpnoise.local` for one attribute whose clients keep no memo.
    values : dask.dataframe.Series
        A value for each person, as ``perturb`` of the protocol takes it: integers, or booleans for
        `RandomizedResponse`, without missing ones.

    Returns
    -------
    dask.dataframe.Series
        A series with the name "report", of Arrow's type fixed_size_binary, and a new index, since the old one may
        reveal the value.
    """
    _states.check_client(protocol)
    pandas = require("pandas", "dask")
    if not isinstance(values, require("dask.dataframe", "dask").Series):
        raise TypeError(f"values must be a dask.dataframe.Series, got {type(values).__name__}")
    kind = pandas.ArrowDtype(require("pyarrow", "dask").binary(protocol.report_bytes))
    made = pandas.Series([], dtype=kind, name="report")
    return values.map_partitions(_perturb, protocol, meta=made, clear_divisions=True)


def _partitions(reports: Any) -> list[Any]:
    if isinstance(reports, list | tuple):
        return list(reports)
    if not hasattr(reports, "to_delayed"):
        raise TypeError(f"reports must be a Dask collection or a list of Delayed, got {type(reports).__name__}")
    partitions = reports.to_delayed()
    return partitions.ravel().tolist() if isinstance(partitions, np.ndarray) else partitions


def _perturb(values: Any, protocol: Protocol) -> Any:
    import pandas

    reports = _states.perturbed(protocol, values)
    return pandas.Series(pandas.arrays.ArrowExtensionArray(reports), name="report")


def _count(protocol: Protocol, partition: Any) -> bytes:
    return _states.count(protocol, _batches(partition))


def _batches(partition: Any) -> list[Any]:
    """Return the batches of a partition: one, or for a bag any number of batches or single reports."""
    if isinstance(partition, np.ndarray) or is_arrow(partition):
        return [partition]
    items = list(partition) if isinstance(partition, Iterator) else partition
    if isinstance(items, list) and not all(isinstance(item, bytes | None) for item in items):
        return items
    return [require("pyarrow", "dask").array(items, from_pandas=True)]


def _merge(protocol: Protocol, states: list[bytes]) -> bytes:
    return _states.merge(protocol, states).to_bytes()


_calls.explain(__name__)
