"""Prints what was measured as ratios to NumPy in the same run, and keeps it as a dated record."""

from __future__ import annotations

import datetime
import platform
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpnoise

RECORDS = Path(__file__).parent / "records"
BASELINE = "numpy"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "items(n, unit): how many items one round handles, for the time per item")


@pytest.fixture(autouse=True)
def note_items(request: pytest.FixtureRequest) -> None:
    """Hand the marker's figures on to the report."""
    marker = request.node.get_closest_marker("items")
    if marker and "benchmark" in request.fixturenames:
        benchmark = request.getfixturevalue("benchmark")
        benchmark.extra_info["items"], benchmark.extra_info["unit"] = marker.args


def cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def table(benchmarks: list[Any]) -> str:
    groups: dict[str, dict[str, tuple[float, int, str]]] = defaultdict(dict)
    for bench in benchmarks:
        items, unit = bench.extra_info.get("items", 1), bench.extra_info.get("unit", "round")
        who = bench.extra_info.get("who") or bench.param
        groups[bench.group][who] = (bench.stats.median, items, unit)
    lines = ["| what | who | median | ns per item | times as fast as NumPy |", "| --- | --- | --- | --- | --- |"]
    for group, rows in groups.items():
        baseline = rows.get(BASELINE)
        for who, (median, items, unit) in rows.items():
            ratio = f"{baseline[0] / median:.2f}" if baseline else ""
            lines.append(
                f"| {group} | {who} | {median * 1e3:.3f} ms | {median / items * 1e9:.3f} per {unit} | {ratio} |"
            )
    return "\n".join(lines)


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    benchmarks = [bench for bench in getattr(config, "_benchmarksession").benchmarks if bench]  # noqa: B009 - not public
    if exitstatus or not benchmarks:
        return
    today = datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
    record = f"""# Benchmarks of {today}

{cpu()}, {dpnoise.cpu_backend()} backend, CPython {platform.python_version()}, NumPy {np.__version__}, dpnoise
{dpnoise.__version__}. Medians of one run: compare within a group.

{table(benchmarks)}
"""
    RECORDS.mkdir(exist_ok=True)
    path = RECORDS / f"{today}.md"
    path.write_text(record)
    terminalreporter.write_line(f"\n{record}\nwritten to {path.relative_to(config.rootpath)}")
