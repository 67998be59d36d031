"""The parts of the Rust crate, timed by criterion."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from benches.record import Record

ROOT = Path(__file__).parent.parent
ESTIMATES = ROOT / "target/criterion"


def test_parts(record: Record) -> None:
    shutil.rmtree(ESTIMATES, ignore_errors=True)
    command = ["cargo", "bench", "--package", "dpnoise-benches", "--bench", "parts", "--locked"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    benches = ESTIMATES.glob("*/*/*/new/benchmark.json")
    for file in sorted(benches, key=lambda file: file.stat().st_mtime_ns):  # as they were measured
        bench = json.loads(file.read_text(encoding="utf-8"))
        estimates = json.loads(file.with_name("estimates.json").read_text(encoding="utf-8"))
        ((unit, items),) = bench["throughput"].items()
        time = estimates["median"]["point_estimate"] / items
        title, row, column = f"Rust: {bench['group_id']}", bench["function_id"], bench["value_str"]
        if unit == "Bytes":
            record.table(title, "GB/s", higher_is_better=True).add(column, {row: 1 / time})
        else:
            record.table(title, "ns per item").add(column, {row: time})
