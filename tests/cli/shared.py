"""What the tests of the command line share; a module that imports this is skipped where the extra is not installed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

for package in ("typer", "rich", "pyarrow"):
    pytest.importorskip(package, reason="the extra `cli` is not installed")

from dpnoise import local
from dpnoise.cli.reports import report_writer

Run = Callable[..., Any]
Refuse = Callable[..., str]

PROTOCOL = local.OptimizedUnaryEncoding(k=4, epsilon=2.0)
DOMAIN = ["red", "green", "", "deep blue"]


def write(path: Path, n: int, protocol: Any = PROTOCOL, domain: list[str] = DOMAIN) -> Path:
    """Write a file of reports."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file, report_writer(file, protocol, domain) as add:
        add(protocol.perturb(np.arange(n) % protocol.k))
    return path
