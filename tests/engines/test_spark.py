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
    total = engine.collect(collection.protocol, frame_of(collection.column))
    assert total.to_bytes() == collection.column_state


def test_a_column_of_a_file_is_counted(spark, unary, tmp_path):
    column = unary.column[:-4].cast(pa.binary(2))
    for part in range(2):
        half = pa.table({"person": np.arange(2500), "answer": column[2500 * part : 2500 * (part + 1)]})
        pq.write_table(half, tmp_path / f"{part}.parquet")
    frame = spark.read.parquet(str(tmp_path))
    assert engine.collect(unary.protocol, frame, "answer").to_bytes() == unary.state


def test_no_partitions_and_empty_ones_give_no_reports(spark, unary):
    nothing = unary.protocol.accumulator()
    empty = spark.createDataFrame([], "report binary")
    assert engine.collect(unary.protocol, empty) == nothing
    few = spark.createDataFrame([(bytes(unary.reports[1]),)], "report binary").repartition(4)
    nothing.add(unary.reports[1:2])
    assert engine.collect(unary.protocol, few) == nothing


def test_a_killed_process_changes_nothing(frame_of, unary, tmp_path):
    marker = tmp_path / "killed"
    frame = frame_of(unary.column).mapInArrow(killing(str(marker), kill_worker), "report binary")
    total = engine.collect(unary.protocol, frame)
    assert marker.exists()
    assert total.to_bytes() == unary.column_state


class CountedTwice:
    """A frame every partition of which is counted to the end twice, because its first task fails after that."""

    def __init__(self, frame, folder):
        self.frame, self.folder = frame, folder

    def select(self, column):
        return CountedTwice(self.frame.select(column), self.folder)

    def mapInArrow(self, function, schema):
        return self.frame.mapInArrow(function, schema).mapInArrow(failing_after(str(self.folder)), schema)


def test_a_task_that_runs_twice_counts_once(frame_of, unary, tmp_path):
    total = engine.collect(unary.protocol, CountedTwice(frame_of(unary.column), tmp_path))
    assert total.to_bytes() == unary.column_state
    made = [local.Accumulator.from_bytes(path.read_bytes()) for path in tmp_path.iterdir()]
    assert sum(state.n + state.rejected for state in made) == 2 * len(unary.column)


@pytest.mark.parametrize(
    "protocol",
    [local.GeneralizedRandomizedResponse(k=15, epsilon=32.0), local.RandomizedResponse(epsilon=32.0)],
    ids=lambda protocol: type(protocol).__name__,
)
def test_every_value_is_randomised_in_its_place(spark, protocol, tmp_path):
    # At the largest epsilon all reports are true, but for a chance of below 1e-9.
    person = np.arange(3_000)
    answers = person % 2 == 0 if isinstance(protocol, local.RandomizedResponse) else person % 15
    frame = spark.createDataFrame(pa.table({"person": person, "answer": answers})).coalesce(1)
    reports = engine.perturb(protocol, frame, "answer").toArrow()
    assert reports.schema.names == ["report"]
    assert b"".join(reports["report"].to_pylist()) == answers.astype(np.uint8).tobytes()


def test_every_partition_draws_its_own_randomness(spark, unary):
    frame = spark.createDataFrame(pa.table({"answer": np.zeros(4_000, int)})).repartition(2)
    by_partition = engine.perturb(unary.protocol, frame, "answer").rdd.glom().collect()
    first, second = ([bytes(row.report) for row in rows] for rows in by_partition)
    assert sum(a != b for a, b in zip(first, second, strict=False)) > 1_000


def test_bad_reports_and_columns_are_errors(spark, frame_of, unary):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=r"TypeError: reports must be a column of type .*, got int64"):
        engine.collect(unary.protocol, spark.range(10), "id")
    with pytest.raises(PySparkException, match="absent"):
        engine.collect(unary.protocol, frame_of(unary.column), "absent")
    with pytest.raises(TypeError, match=r"protocol must be a protocol of dpnoise\.local for one attribute, got str"):
        engine.collect("rappor", frame_of(unary.column))
    with pytest.raises(TypeError, match="protocol must be one without a memo, which clients keep, got DBitFlip"):
        engine.perturb(local.DBitFlip(k=9, d=3, epsilon=1.0), spark.range(10), "id")
