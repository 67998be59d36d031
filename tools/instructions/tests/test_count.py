"""The gate of instruction counts: what is slower than the record is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tools.instructions import count

SET = "x86_64, avx2"
RECORD = {"a": {SET: [100.0, 20000.0]}, "b": {SET: [2.0, 50.0]}}


@pytest.mark.parametrize(
    ("counted", "found"),
    [
        (RECORD, []),
        ({"a": {SET: [101.9, 19610.0]}, "b": {SET: [2.0, 240.0]}}, []),
        (RECORD | {"a": {SET: [102.1, 20000.0]}}, ["a: 102.1 instructions, +2.1% of 100"]),
        (RECORD | {"a": {SET: [100.0, 19400.0]}}, ["a, set-up: 19400 instructions, -3.0% of 20000"]),
        ({"a": RECORD["a"]}, ["b: only in the record"]),
        (RECORD | {"c": {SET: [1.0, 1.0]}}, ["c: only in this run"]),
        ({}, []),  # nothing could be counted, and the programs have said so
    ],
)
def test_what_differs_is_named(counted: Any, found: list[str]) -> None:
    assert count.changes(RECORD, counted) == [f"{SET}: {text}" for text in found]


def test_the_record_has_every_instruction_set_that_can_be_counted() -> None:
    text = count.RECORD.read_text(encoding="utf-8")
    record = json.loads(text)
    assert count.to_json(record) == text
    sets = {"x86_64, portable", "x86_64, avx2", "aarch64, portable", "aarch64, neon"}
    assert all(row.keys() == sets for row in record["counts"].values())


def test_versions_in_development_are_judged() -> None:
    # That of a candidate has the same code, and other counts.
    version = count.built().partition(", dpnoise ")[2]
    if "-dev." in version:
        record = json.loads(count.RECORD.read_text(encoding="utf-8"))
        assert record["built"].endswith(f", dpnoise {version}"), "make instructions RECORD=--record"
