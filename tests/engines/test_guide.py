"""What the guide shows of the engines runs as shown."""

from __future__ import annotations

import os
import subprocess
import sys

from engines.spark_sessions import TESTS, skip_without_spark

skip_without_spark()


def test_code_of_the_guide_runs(tmp_path):
    # A process of its own: Spark looks for files where its JVM was started.
    environment = {**os.environ, "PYTHONPATH": TESTS, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    program = "from test_readme import OF_ENGINES, run_blocks; run_blocks(OF_ENGINES)"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
