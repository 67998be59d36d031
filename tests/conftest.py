"""What tests of several areas share."""

import gc
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def pytest_collection_finish() -> None:
    """Spare the garbage collector all that collection has imported, which stays: a twentieth of the time."""
    gc.freeze()


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """Give a folder like tmp_path, in memory where possible: what waits for the disk takes no time there."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder below it is private
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() and os.access(memory, os.W_OK) else None) as name:
        yield Path(name)
