"""Spark on a cluster counts like one process, also when an executor is killed or a slow task gets a second attempt."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest
from engines.faults import kill_executor, killing, waiting
from engines.spark_sessions import session, skip_without_spark, standalone_cluster

skip_without_spark()
if sys.platform != "linux":
    pytest.skip("the cluster needs several loopback addresses and /proc, as Linux has", allow_module_level=True)

from dpnoise.engines import spark as engine

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

SPECULATION = {
    "spark_speculation": "true",
    "spark_speculation_interval": "100ms",
    "spark_speculation_minTaskRuntime": "100ms",
    "spark_speculation_quantile": "0.5",
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    with (
        standalone_cluster(tmp_path_factory.mktemp("cluster")) as url,
        session(url, spark_executor_memory="512m", **SPECULATION) as running,
    ):
        yield running


@pytest.fixture
def frame(spark, unary):
    return spark.createDataFrame(pa.table({"report": unary.column})).repartition(6)


def test_a_second_attempt_of_a_slow_task_counts_once(frame, unary, tmp_path):
    total = engine.collect(unary.protocol, frame.mapInArrow(waiting(str(tmp_path)), "report binary"))
    assert total.to_bytes() == unary.column_state
    assert {path.name for path in tmp_path.iterdir()} >= {"0-0", "0-1", "1-0", "2-0", "3-0", "4-0", "5-0"}


def test_a_killed_executor_changes_nothing(frame, unary, tmp_path):
    marker = tmp_path / "killed"
    total = engine.collect(unary.protocol, frame.mapInArrow(killing(str(marker), kill_executor), "report binary"))
    assert marker.exists()
    assert total.to_bytes() == unary.column_state
