"""Count reports with Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpnoise.engines import _states
from dpnoise.engines._extras import require
from dpnoise.local import Accumulator, Protocol

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

__all__ = ["aggregate"]


def aggregate(protocol: Protocol, frame: DataFrame, column: str = "report") -> Accumulator:
    """Count a column of reports where Spark has it, and merge the states of its partitions in the driver.

    Each partition becomes one row, the state of its accumulator. Spark takes one result for each partition, however
    often it runs the task that makes it, because a worker was lost or was slow.

    Parameters
    ----------
    protocol : Protocol
        The protocol of the reports. dpnoise must be installed on the workers, too.
    frame : pyspark.sql.DataFrame
        The reports.
    column : str
        The name of a column of type binary.

    Returns
    -------
    dpnoise.local.Accumulator
        The same as if one process had counted everything.

    Raises
    ------
    TypeError
        When ``protocol`` is not a protocol.
    ImportError
        When PySpark or PyArrow is not installed.
    pyspark.errors.PySparkException
        When the job fails.
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
