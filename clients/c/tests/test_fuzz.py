"""``make fuzz`` plants every fault that its harness has, and fails when one is not found."""

from __future__ import annotations

import re
from pathlib import Path

from clients.c.fuzz import fuzz

ROOT = Path(__file__).parents[3]
CALLS = fuzz.TARGETS["calls"]


def functions() -> list[str]:
    header = (ROOT / "clients/c/dpnoise.h").read_text()
    return re.findall(r"^dpnoise_status (\w+)\(", header, re.MULTILINE)


def fuzzer(folder: Path, *, reached: list[str], found: dict[str, str]) -> Path:
    """Return a program that calls these functions once each, and finds these planted faults."""
    lines = ["#!/bin/sh"]
    lines += [
        f'if [ "$DPNOISE_FUZZ_PLANT" = {fault} ]; then echo "{words}" >&2; exit 1; fi' for fault, words in found.items()
    ]
    lines += [f"echo 'calls: {name} 1 0 0 0 0 0 0' >&2" for name in reached]
    program = folder / "fuzzer"
    program.write_text("\n".join(lines) + "\n")
    program.chmod(0o755)
    return program


def test_every_fault_of_the_harness_is_planted() -> None:
    sources = "".join(file.read_text() for file in (ROOT / "clients/c/fuzz/src").glob("*.rs"))
    assert set(re.findall(r'planted::is\("([\w-]+)"\)', sources)) == {
        fault for target in fuzz.TARGETS.values() for fault in target.planted
    }


def test_a_fault_that_is_not_found_is_a_problem(tmp_path: Path) -> None:
    assert fuzz.check_seeds(CALLS, fuzzer(tmp_path, reached=functions(), found=CALLS.planted), tmp_path) == []
    blind = {fault: words for fault, words in CALLS.planted.items() if fault != "read-past"}
    problems = fuzz.check_seeds(CALLS, fuzzer(tmp_path, reached=functions(), found=blind), tmp_path)
    assert problems == ["the planted fault read-past is not found"]
    problems = fuzz.check_seeds(
        CALLS, fuzzer(tmp_path, reached=functions(), found=CALLS.planted | {"read-past": "other"}), tmp_path
    )
    assert problems == ["the planted fault read-past is not found"]


def test_a_function_that_no_seed_reaches_is_a_problem(tmp_path: Path) -> None:
    reached = [name for name in functions() if name != "dpnoise_free"]
    problems = fuzz.check_seeds(CALLS, fuzzer(tmp_path, reached=reached, found=CALLS.planted), tmp_path)
    assert problems == ["no seed calls dpnoise_free with success"]
