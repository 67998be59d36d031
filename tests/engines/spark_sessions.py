"""Spark sessions on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

TESTS = str(Path(__file__).parents[1])
"""Where the workers find ``engines.faults``."""


def skip_without_spark() -> None:
    """Skip the module that calls it, saying why, where Spark cannot run."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'dpnoise[spark]'")
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        pytest.skip("Spark needs Java 17 or newer, and there is no java", allow_module_level=True)


@contextmanager
def session(master: str, **settings: str) -> Iterator[Any]:
    """Start Spark, and stop it at the end, so that another can start."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.executorEnv.PYTHONPATH", TESTS)
    builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
    for key, value in settings.items():
        builder = builder.config(key.replace("_", "."), value)
    with mock.patch.dict(os.environ, PYSPARK_PYTHON=sys.executable, PYTHONPATH=TESTS):
        spark = builder.getOrCreate()
        try:
            spark.sparkContext.setLogLevel("OFF")
            yield spark
        finally:
            spark.stop()
