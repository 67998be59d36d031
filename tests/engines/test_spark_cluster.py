"""Spark on a cluster counts like one process, also when an executor is killed."""

from __future__ import annotations

import pyarrow as pa
import pytest
from engines.faults import kill_executor, killing
from engines.spark_sessions import session, skip_without_spark

skip_without_spark()

from dpnoise.engines import spark as engine

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


@pytest.fixture(scope="module")
def spark():
    with session("local-cluster[2,1,1024]") as running:  # two executors with one core each
        yield running


def test_a_killed_executor_changes_nothing(spark, unary, tmp_path):
    marker = tmp_path / "killed"
    table = pa.table({"report": unary.column})
    frame = spark.createDataFrame(table).repartition(6).mapInArrow(killing(str(marker), kill_executor), "report binary")
    total = engine.aggregate(unary.protocol, frame)
    assert marker.exists()
    assert total.to_bytes() == unary.column_state
