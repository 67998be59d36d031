"""`make test` runs Python in its development mode, whose allocators notice a write outside of an object."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# The first byte behind a bytes object and its closing zero.
OVERRUN = "import ctypes; b = b'spam' * 25; ctypes.memset(id(b) + bytes.__basicsize__ + len(b), 1, 1); del b"


def test_the_tests_run_in_development_mode() -> None:
    recipe = re.search(r"^test-python:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    assert "python -X dev -m pytest" in recipe[1]


def test_a_write_outside_of_an_object_is_noticed() -> None:
    ran = subprocess.run([sys.executable, "-X", "dev", "-c", OVERRUN], capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert "bad trailing pad byte" in ran.stderr
