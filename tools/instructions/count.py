"""Count instructions per sample, report or number, and compare them with record.json.

The counts do not depend on how busy the machine is, so a kernel that became slower is seen everywhere. They depend on
the compiler, and by up to 4 % on the version of the crates, which is in the names by which it orders functions: with
others than the record's they are printed, and nothing fails. ``--record`` keeps the counts.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_name("record.json")
TOLERANCE = 0.02
SLACK = 200
"""So many instructions of a set-up may depend on the machine: those of the C library's memory, for instance."""
PROGRAMS = (
    ["cargo", "bench", "--package=dpnoise-core", "--bench=instructions", "--locked"],
    ["tools/instructions/count_aarch64.sh"],
)

Counts = dict[str, dict[str, list[float]]]
"""For each case and instruction set the instructions per item, and the instructions of the set-up."""


def count() -> Counts:
    """Run the programs; one that lacks something says so, and counts nothing."""
    counts: Counts = {}
    for program in PROGRAMS:
        ran = subprocess.run(program, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        if ran.returncode != 0:
            sys.exit(f"{' '.join(program)} failed")
        for line in ran.stdout.splitlines():
            match line.split("\t"):
                case [architecture, instructions, case, per_item, set_up]:
                    row = counts.setdefault(case, {})
                    row[f"{architecture}, {instructions}"] = [float(per_item), int(set_up)]
                case _:
                    print(line)
    return counts


def columns(counts: Counts) -> list[str]:
    """Return the instruction sets for which there are counts."""
    return list(dict.fromkeys(column for row in counts.values() for column in row))


def changes(recorded: Counts, counted: Counts) -> list[str]:
    """Return what differs from the record by more than the tolerance, and what is in only one of the two."""
    found: list[str] = []
    for column in columns(counted):
        for case in dict.fromkeys([*recorded, *counted]):
            known, now = (counts.get(case, {}).get(column) for counts in (recorded, counted))
            if known is None or now is None:
                if known or now:
                    found.append(f"{column}: {case}: only in {'this run' if now else 'the record'}")
                continue
            for what, slack, old, new in zip(("", ", set-up"), (0, SLACK), known, now, strict=True):
                if abs(new - old) > max(TOLERANCE * old, slack):
                    found.append(f"{column}: {case}{what}: {new:g} instructions, {new / old - 1:+.1%} of {old:g}")
    return found


def table(counts: Counts) -> str:
    """Return the counts as a table in Markdown."""
    names = columns(counts)
    rows = [["", *(f"{column}, {what}" for column in names for what in ("each", "set-up"))]]
    rows.append(["---", *("---:" for _ in rows[0][1:])])
    for case, row in counts.items():
        rows.append([case, *(f"{number:g}" for column in names for number in row.get(column, [math.nan] * 2))])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def to_json(record: dict[str, Any]) -> str:
    """Return the record with a line for each case."""
    lines = ",\n".join(f"  {json.dumps(case)}: {json.dumps(row)}" for case, row in record["counts"].items())
    return f'{{\n "built": {json.dumps(record["built"])},\n "counts": {{\n{lines}\n }}\n}}\n'


def built() -> str:
    """Return the compiler and its version, and the version of the crates."""
    rustc = subprocess.run(["rustc", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split(" (")[0]
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    return f"{rustc}, dpnoise {manifest['workspace']['package']['version']}"


def main() -> int:
    """Count, and compare or keep."""
    parser = argparse.ArgumentParser(description="Count instructions, and compare with tools/instructions/record.json.")
    parser.add_argument("--record", action="store_true", help="keep the counts instead")
    keep = parser.parse_args().record
    counts = count()
    print(table(counts))
    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"counts": {}}
    if keep:
        merged = {case: record["counts"].get(case, {}) | row for case, row in counts.items()}
        RECORD.write_text(to_json({"built": built(), "counts": merged}), encoding="utf-8")
        return 0
    found = changes(record["counts"], counts)
    print(*found, sep="\n")
    if built() != record["built"]:
        print(f"SKIPPED, nothing was judged: the record was counted with {record['built']}, this is {built()}")
        return 0
    if found:
        print(
            f"These differ by more than {TOLERANCE:.0%}. If they should, keep them: make instructions RECORD=--record"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
