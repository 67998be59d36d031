"""Spark sessions on this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

TESTS = str(Path(__file__).parents[1])
"""Where the workers find ``engines.faults``."""


def skip_without_spark() -> None:
    """Skip the module that calls it, saying why, where Spark cannot run."""
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
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


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """Start a master and two workers with one core each, and return the URL of the master.

    The workers have host names of their own, because Spark starts a second attempt of a slow task on another host.
    """
    import pyspark

    home = Path(pyspark.__file__).parent
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as started:
        log = started.enter_context((folder / "log").open("wb"))

        def start(role: str, host: str, *options: str) -> None:
            program = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{role}", "--host", host, *options]
            environment = {**os.environ, "SPARK_HOME": str(home)}
            daemon = subprocess.Popen([*program, "--webui-port", "0"], stdout=log, stderr=log, env=environment)
            started.callback(daemon.wait)
            started.callback(daemon.terminate)

        start("master.Master", "127.0.0.1", "--port", str(port))
        _wait_for_port(port)
        for host in ("127.0.0.2", "127.0.0.3"):
            start("worker.Worker", host, "--cores", "1", "--memory", "1g", "--work-dir", str(folder / host), url)
        yield url


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
