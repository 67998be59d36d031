"""Count reports, and make them, with Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpnoise import _calls
from dpnoise._errors import require
from dpnoise.engines import _states
from dpnoise.local import Accumulator, Protocol

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

__all__ = ["collect", "perturb"]


def collect(protocol: Protocol, frame: DataFrame, column: str = "report") -> Accumulator:
    """Count a column of reports on Spark's workers, and merge the states of its partitions in the driver.

    Each partition becomes one row, the state of its accumulator. Spark takes one result for each partition, even if it
    runs the task several times because a worker was lost or slow.

    Parameters
    ----------
    protocol : Protocol
        The protocol of the reports: one of `dpnoise.local` for one attribute. dpnoise must be installed on the workers,
        too.
    frame : pyspark.sql.DataFrame
        A frame with the reports.
    column : str, default "report"
        The name of a column of type binary. It does not name the protocol of the reports, so the caller must know it:
        reports of another protocol with the same length would be counted wrongly.

    Returns
    -------
    Accumulator
        The accumulator that one process would have made.
    """
    _states.check_protocol(protocol)
    require("pyspark", "spark")
    require("pyarrow", "spark")

    def count(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        state = _states.count(protocol, (batch.column(0) for batch in batches))
        yield pyarrow.record_batch([pyarrow.array([state], pyarrow.binary())], ["state"])

    rows = frame.select(column).mapInArrow(count, "state binary").collect()
    return _states.merge(protocol, (bytes(row.state) for row in rows))


def perturb(protocol: Protocol, frame: DataFrame, column: str) -> DataFrame:
    """Randomise a column of values, with fresh secure randomness in every task.

    Each report is epsilon-locally differentially private, provided that each person has one row and that one set of
    reports leaves this function. The frame is lazy, and draws new reports each time that Spark computes it: write it to
    a file at once, and use the file.

    Parameters
    ----------
    protocol : Protocol
        A protocol of `dpnoise.local` for one attribute whose clients keep no memo.
    frame : pyspark.sql.DataFrame
        A frame with the true values.
    column : str
        The name of a column of integers, or of booleans for `RandomizedResponse`, without nulls.

    Returns
    -------
    pyspark.sql.DataFrame
        A frame with one column "report" of type binary. Other columns are left out, since they might reveal the value.

    Raises
    ------
    pyspark.errors.PySparkException
        When the job fails, for example because a value is outside of [0, k); this happens only when the frame is
        computed.
    """
    _states.check_client(protocol)
    require("pyspark", "spark")
    require("pyarrow", "spark")

    def randomise(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        for batch in batches:
            reports = _states.perturbed(protocol, batch.column(0))
            yield pyarrow.record_batch([reports.cast(pyarrow.binary())], ["report"])

    return frame.select(column).mapInArrow(randomise, "report binary")


_calls.explain(__name__)
