"""What the record of the benchmarks says of a target follows from what was measured."""

from __future__ import annotations

import pytest

from benches.record import Record
from benches.targets import IDLE, OURS, TWO_THREADS, Target

AMOUNTS = {OURS: (2.0, 4.0), "rival": (10.0, 12.0)}


def judged(target: Target, higher_is_better: bool) -> list[str]:
    record = Record(whole=False)
    table = record.table("work", "ns", higher_is_better)
    for i, column in enumerate(("first", "second")):
        table.add(column, {entrant: amounts[i] for entrant, amounts in AMOUNTS.items()})
    return record.judged(target)[1:]


@pytest.mark.parametrize(
    ("target", "higher_is_better", "expected"),
    [
        (Target("work", "rival", 3), False, ["3 x rival", "3.00 to 5.00", "yes"]),
        (Target("work", "rival", 3.5), False, ["3.5 x rival", "3.00 to 5.00", "in 1 of 2 cases"]),
        (Target("work", "rival", 6), False, ["6 x rival", "3.00 to 5.00", "no"]),
        (Target("work", "rival", 3.5, column="first"), False, ["3.5 x rival", "5.00", "yes"]),
        (Target("work", "rival", 0.3), True, ["0.3 x rival", "0.200 to 0.333", "in 1 of 2 cases"]),
        (Target("work", 3, unit="ns"), False, ["3 ns", "2.00 to 4.00", "in 1 of 2 cases"]),
        (Target("work", 2, unit="GB/s"), True, ["2 GB/s", "2.00 to 4.00", "yes"]),
        (Target("work", "nobody", 3), False, ["3 x nobody", "not measured", ""]),
        (Target("other work", 3, unit="ns"), False, ["3 ns", "not measured", ""]),
    ],
)
def test_a_target_is_judged_by_the_measurements(target: Target, higher_is_better: bool, expected: list[str]) -> None:
    assert judged(target, higher_is_better) == expected


@pytest.mark.parametrize(
    ("share", "verdict"),
    [
        (0.0, "yes"),
        (IDLE, "yes"),
        (2 * IDLE, "not judged: the cores were not idle"),
        (None, "not judged: the cores were not idle"),
    ],
)
def test_a_second_thread_is_judged_where_the_cores_are_idle(
    share: float | None, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benches.record.os.cpu_count", lambda: 2)
    record = Record(whole=False)
    monkeypatch.setattr(record.others, "share", lambda: share)
    record.table("work", "ns").add("first", {OURS: 4.0, TWO_THREADS: 2.0})
    assert record.judged(Target("work", OURS, 1.8, entrant=TWO_THREADS))[3] == verdict
    assert record.judged(Target("work", 5, unit="ns"))[3] == "yes"
