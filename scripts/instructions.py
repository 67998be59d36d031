"""Count instructions per sample, report or number, and compare them with benches/instructions.json.

The counts do not depend on how busy the machine is, so a kernel that became slower is seen everywhere. They depend on
the compiler: with another one than the record's they are printed, and nothing fails. ``--record`` keeps the counts.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "benches" / "instructions.json"
TOLERANCE = 0.02
SLACK = 200
"""So many instructions of a set-up may depend on the machine: those of the C library's memory, for instance."""
PROGRAMS = (
    ["cargo", "bench", "--package=dpnoise-core", "--bench=instructions", "--locked"],
    ["scripts/instructions_aarch64.sh"],
)

Counts = dict[str, dict[str, list[float]]]
"""For each instruction set and case the instructions per item, and those of the set-up."""


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
                    column = counts.setdefault(f"{architecture}, {instructions}", {})
                    column[case] = [float(per_item), int(set_up)]
                case _:
                    print(line)
    return counts


def changes(recorded: Counts, counted: Counts) -> list[str]:
    """Return what differs from the record by more than the tolerance, and what is in only one of the two."""
    found: list[str] = []
    for column, cases in counted.items():
        known = recorded.get(column, {})
        for case in dict.fromkeys([*known, *cases]):
            if case not in known or case not in cases:
                found.append(f"{column}: {case}: only in {'the record' if case in known else 'this run'}")
                continue
            for what, slack, old, new in zip(("", ", set-up"), (0, SLACK), known[case], cases[case], strict=True):
                if abs(new - old) > max(TOLERANCE * old, slack):
                    found.append(f"{column}: {case}{what}: {new:g} instructions, {new / old - 1:+.1%} of {old:g}")
    return found


def table(counts: Counts) -> str:
    """Return the counts as a table in Markdown."""
    rows = [["", *(f"{column}, {what}" for column in counts for what in ("each", "set-up"))]]
    rows.append(["---", *("---:" for _ in rows[0][1:])])
    for case in next(iter(counts.values())):
        rows.append([case, *(f"{number:g}" for column in counts.values() for number in column[case])])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def to_json(record: dict[str, Any]) -> str:
    """Return the record with a line for each case."""
    return re.sub(r"\[\s+(\S+)\s+(\S+)\s+\]", r"[\1 \2]", json.dumps(record, indent=1)) + "\n"


def compiler() -> str:
    """Return the compiler and its version."""
    return subprocess.run(["rustc", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split(" (")[0]


def main() -> int:
    """Count, and compare or keep."""
    parser = argparse.ArgumentParser(description="Count instructions, and compare with benches/instructions.json.")
    parser.add_argument("--record", action="store_true", help="keep the counts instead")
    keep = parser.parse_args().record
    counts = count()
    print(table(counts))
    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"counts": {}}
    if keep:
        RECORD.write_text(to_json({"compiler": compiler(), "counts": record["counts"] | counts}), encoding="utf-8")
        return 0
    found = changes(record["counts"], counts)
    print(*found, sep="\n")
    if compiler() != record["compiler"]:
        print(f"SKIPPED, nothing was judged: the record was counted with {record['compiler']}, this is {compiler()}")
        return 0
    if found:
        print(
            f"These differ by more than {TOLERANCE:.0%}. If they should, keep them: make instructions RECORD=--record"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
