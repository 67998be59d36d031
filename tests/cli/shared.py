"""What the tests of the command line share; a module that imports this is skipped where the extra is not installed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

for package in ("typer", "rich", "pyarrow"):
    pytest.importorskip(package, reason="the extra `cli` is not installed")

from dpnoise import local
from dpnoise.cli.reports import report_writer

Run = Callable[..., Any]
Refuse = Callable[..., str]

DOMAIN = ["red", "green", "", "deep blue"]
PROTOCOL = local.OptimizedUnaryEncoding(domain=DOMAIN, epsilon=2.0)
REVERSED = local.OptimizedUnaryEncoding(domain=DOMAIN[::-1], epsilon=2.0)


def write(path: Path, n: int, protocol: Any = PROTOCOL) -> Path:
    """Write a file of reports."""
    path.parent.mkdir(parents=True, exist_ok=True)
    labels = protocol.domain or range(protocol.k)
    with path.open("wb") as file, report_writer(file, protocol) as add:
        add(protocol.perturb([labels[i % protocol.k] for i in range(n)]))
    return path
