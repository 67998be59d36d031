"""What the guide shows of the engines runs as shown."""

from __future__ import annotations

import sys

import pytest
from engines.spark_sessions import skip_without_spark, stop
from test_readme import OF_ENGINES, run_blocks

skip_without_spark()


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.filterwarnings("ignore:The inplace keyword in:DeprecationWarning")  # Dask uses it
def test_code_of_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    try:
        run_blocks(OF_ENGINES)
    finally:
        stop()
