"""What the guide shows of the engines runs as shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from engines.spark_sessions import skip_without_spark

skip_without_spark()

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/guide/engines.md"
SITE = str(ROOT / "docs/site")


def test_code_of_the_guide_runs(tmp_path):
    # A process of its own: Spark looks for files where its JVM was started.
    environment = {**os.environ, "PYTHONPATH": SITE, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    program = f"""
from pathlib import Path
from page_outputs import differences, run_blocks
page = Path({str(PAGE)!r})
assert differences(page, outputs := run_blocks(page)) == "", outputs
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
