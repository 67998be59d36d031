"""`make test` runs Python in its development mode, whose allocators notice a write outside of an object."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# The first byte behind a bytes object and its closing zero.
OVERRUN = "import ctypes; b = b'spam' * 25; ctypes.memset(id(b) + bytes.__basicsize__ + len(b), 1, 1); del b"


def test_the_tests_run_in_development_mode() -> None:
    """The option -X dev would not reach the workers of pytest-xdist, and did not: the environment does."""
    exported = re.search(r"^(.*): export PYTHONDEVMODE := 1$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert exported is not None
    assert "test-python" in exported[1].split()
    assert sys.flags.dev_mode == bool(os.environ.get("PYTHONDEVMODE"))


def test_a_write_outside_of_an_object_is_noticed() -> None:
    ran = subprocess.run([sys.executable, "-X", "dev", "-c", OVERRUN], capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert "bad trailing pad byte" in ran.stderr
