"""Spark counts like one process, also when the processes of tasks are killed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines.faults import failing_after, kill_worker, killing
from engines.spark_sessions import session, skip_without_spark

skip_without_spark()

from dpnoise import local
from dpnoise.engines import spark as engine

# What PySpark says of the newest pandas concerns its own pandas interface.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


@pytest.fixture(scope="module")
def spark():
    with session("local[2,4]") as running:  # two tasks at once, four attempts for each
        yield running


@pytest.fixture(scope="module")
def frame_of(spark):
    def make(column: pa.Array):
        return spark.createDataFrame(pa.table({"report": column})).repartition(5)

    return make


def test_reports_are_counted_as_by_one_process(frame_of, collection):
    total = engine.aggregate(collection.protocol, frame_of(collection.column))
    assert total.to_bytes() == collection.column_state


def test_a_column_of_a_file_is_counted(spark, unary, tmp_path):
    column = unary.column[:-4].cast(pa.binary(2))
    for part in range(2):
        half = pa.table({"person": np.arange(2500), "answer": column[2500 * part : 2500 * (part + 1)]})
        pq.write_table(half, tmp_path / f"{part}.parquet")
    frame = spark.read.parquet(str(tmp_path))
    assert engine.aggregate(unary.protocol, frame, "answer").to_bytes() == unary.state


def test_no_partitions_and_empty_ones_give_no_reports(spark, unary):
    nothing = unary.protocol.accumulator()
    empty = spark.createDataFrame([], "report binary")
    assert engine.aggregate(unary.protocol, empty) == nothing
    few = spark.createDataFrame([(bytes(unary.reports[1]),)], "report binary").repartition(4)
    nothing.add(unary.reports[1:2])
    assert engine.aggregate(unary.protocol, few) == nothing


def test_a_killed_process_changes_nothing(frame_of, unary, tmp_path):
    marker = tmp_path / "killed"
    frame = frame_of(unary.column).mapInArrow(killing(str(marker), kill_worker), "report binary")
    total = engine.aggregate(unary.protocol, frame)
    assert marker.exists()
    assert total.to_bytes() == unary.column_state


class CountedTwice:
    """A frame every partition of which is counted to the end twice, because its first task fails after that."""

    def __init__(self, frame, folder):
        self.frame, self.folder = frame, folder

    def select(self, column):
        return CountedTwice(self.frame.select(column), self.folder)

    def mapInArrow(self, function, schema):  # noqa: N802
        return self.frame.mapInArrow(function, schema).mapInArrow(failing_after(str(self.folder)), schema)


def test_a_task_that_runs_twice_counts_once(frame_of, unary, tmp_path):
    total = engine.aggregate(unary.protocol, CountedTwice(frame_of(unary.column), tmp_path))
    assert total.to_bytes() == unary.column_state
    made = [local.Accumulator.from_bytes(path.read_bytes()) for path in tmp_path.iterdir()]
    assert sum(state.n + state.rejected for state in made) == 2 * len(unary.column)


def test_bad_reports_and_columns_are_errors(spark, frame_of, unary):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="ParameterError"):
        engine.aggregate(local.OptimizedUnaryEncoding(k=104, epsilon=1.0), frame_of(unary.column))
    with pytest.raises(PySparkException, match="absent"):
        engine.aggregate(unary.protocol, frame_of(unary.column), "absent")
    with pytest.raises(TypeError, match=r"protocol must be a protocol of dpnoise\.local, got str"):
        engine.aggregate("rappor", frame_of(unary.column))
