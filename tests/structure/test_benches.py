"""What a record of the benchmarks says follows from what was measured, and so do the pages and their pictures."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import benchmarks
import pytest

from benches import page
from benches.libraries import LIBRARIES
from benches.page import judgement, report
from benches.record import IDLE, Record, kept
from benches.targets import BEST, BEST_ON_TWO_THREADS, TARGETS, Target

ROOT = Path(__file__).parents[2]
PAGES = ["benchmarks.md", "benchmarks/frequency_oracles.md"]

OURS = "dpnoise, avx512"
AMOUNTS = {OURS: (2.0, 4.0), "rival": (10.0, 12.0)}


def new_record(**fields) -> Record:
    return Record("all", "2026-01-01", "a CPU", 2, OURS, {"dpnoise": "1"}, **{"targets": [], **fields})


def judged(target: Target, higher_is_better: bool) -> list[str]:
    record = new_record()
    table = record.table("work", "ns", higher_is_better)
    for i, column in enumerate(("first", "second")):
        table.add(column, {entrant: amounts[i] for entrant, amounts in AMOUNTS.items()})
    return judgement(record, target._replace(entrant=OURS))[1:]


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


def test_a_target_is_for_the_best_of_the_machine_that_a_record_is_of() -> None:
    target = Target("work", BEST, 1.8, entrant=BEST_ON_TWO_THREADS)
    assert target.of("dpnoise, neon")[1:] == ("dpnoise, neon", 1.8, "", "dpnoise, neon, 2 threads", None)
    assert {target.of(OURS).entrant for target in TARGETS} == {OURS, f"{OURS}, 2 threads", "dpnoise, avx2"}


@pytest.mark.parametrize(
    ("share", "verdict"),
    [
        (0.0, "no"),
        (IDLE, "no"),
        (2 * IDLE, "not judged: the cores were not idle"),
        (None, "not judged: the cores were not idle"),
    ],
)
def test_a_second_thread_is_judged_where_the_cores_are_idle(share: float | None, verdict: str) -> None:
    targets = [Target("work", OURS, 1.8, entrant=f"{OURS}, 2 threads"), Target("work", 3, unit="ns", entrant=OURS)]
    record = new_record(others=share, targets=targets)
    record.table("work", "ns").add("first", {OURS: 4.0, record.two_threads: 3.0})
    assert [judgement(record, target)[3] for target in targets] == [verdict, "no"]
    assert [target for target, _ in record.missed()] == (targets if verdict == "no" else targets[1:])
    assert ("(target 1.8)" in report(record)) == (verdict == "no")


def planted() -> Record:
    """Return a record in which others are better than ours in known cases."""
    record = new_record(targets=[Target("times", "rival", 2, entrant=OURS), Target("rates", 9, entrant=OURS)])
    times, rates = record.table("times", "ns"), record.table("rates", "GB/s", higher_is_better=True)
    times.add("wins", {OURS: 2.0, "dpnoise, avx2": 8.0, "rival": 4.0, "slow": 9.0, "reading the memory": 1.0})
    times.add("loses", {OURS: 4.0, "dpnoise, avx2": 8.0, "rival": 2.0, "slow": 3.0})
    times.add("alone", {OURS: 4.0})
    times.add("equal", {OURS: 4.0, "rival": 4.0})
    rates.add("wins", {OURS: 4.0, f"{OURS}, 2 threads": 1.0, "rival": 2.0})
    rates.add("loses", {OURS: 1.0, f"{OURS}, 2 threads": 1.0, f"{OURS}, cold": 0.5, "rival": 2.0})
    record.table("threads", "ns").add("loses", {record.two_threads: 3.0, "rival": 1.5})
    return record


def test_losses_are_the_cases_where_another_entrant_is_better() -> None:
    record = planted()
    assert [(loss.table.title, loss.column, loss.entrant, loss.best, loss.factor) for loss in record.losses()] == [
        ("times", "loses", OURS, "rival", 0.5),
        ("rates", "loses", OURS, "rival", 0.5),
        ("rates", "loses", f"{OURS}, cold", "rival", 0.25),
        ("threads", "loses", record.two_threads, "rival", 0.5),
    ]
    others = list(record.losses_of_other_instruction_sets())
    assert [(entrant, table.title, [loss.factor for loss in losses]) for entrant, table, losses in others] == [
        ("dpnoise, avx2", "times", [0.5, 0.25])
    ]
    assert [(target.table, [result.column for result in missed]) for target, missed in record.missed()] == [
        ("times", ["loses", "equal"]),
        ("rates", ["wins", "loses"]),
    ]


def test_a_record_is_kept_whole_with_a_line_for_each_entrant() -> None:
    record = planted()
    record.notes.append("a note")
    record.tables["times"].missing["nobody"] = "it is slow"
    text = record.to_json()
    assert Record.from_json(text) == record
    assert '\n   "rival": [4.0, 2.0, null, 4.0],' in text


@pytest.fixture(scope="module")
def records() -> dict[str, Record]:
    return kept()


@pytest.mark.parametrize("path", PAGES)
def test_every_mark_of_a_page_is_filled(path: str) -> None:
    text = page.filled(path, (ROOT / "docs" / path).read_text(encoding="utf-8"))
    assert "from the records:" not in text
    assert text.count("\n| ") > 50


def test_every_record_has_a_page(records: dict[str, Record]) -> None:
    of_integrations = {path.parent.name for path in ROOT.glob("integrations/*/record.json")}
    assert {path.stem for path in ROOT.glob("docs/records/*.md")} | of_integrations == records.keys()
    assert all(record.kind == kind for kind, record in records.items())


def anchor(title: str) -> str:
    """Return what links call the heading of a table."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).lower())


def wrong_figures(text: str, records: dict[str, Record]) -> list[str]:
    """Return the figures of links to tables of records that are no amount and no ratio of the table."""
    wrong = []
    for words, kind, heading in re.findall(r"\[([\d.; to]+)\]\([./]*records/(\w+)\.md#([\w-]+)\)", text):
        [table] = [table for title, table in records[kind].tables.items() if anchor(title) == heading]
        known = [amount for amounts in table.amounts.values() for amount in amounts.values()]
        known += [x for one in table.amounts for other in table.amounts for x in table.factors(one, other).values()]
        for figure in re.findall(r"[\d.]+", words):
            digits = len(figure.partition(".")[2])
            if figure not in {f"{x:.{digits}f}" for x in known}:
                wrong.append(figure)
    return wrong


def test_the_figures_that_link_to_a_record_are_those_of_the_record(records: dict[str, Record]) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in ROOT.glob("docs/**/*.md")}
    assert [(path, wrong) for path, text in pages.items() if (wrong := wrong_figures(text, records))] == []
    compared = pages[ROOT / "docs/compare.md"]
    assert wrong_figures(compared.replace("[187; 184]", "[178; 184]"), records) == ["178"]


def test_every_library_is_said_to_be_exact_and_secure_or_not(records: dict[str, Record]) -> None:
    for record in records.values():
        assert record.versions.keys() - {"rustc", "CPython"} <= LIBRARIES.keys()


def test_where_we_lose_has_the_cases_that_were_planted():
    rows = page.losses([planted()]).splitlines()[2:]
    assert [row.split(" | ")[:4] for row in rows] == [
        ["| rates, cold", "0.250", "rival", "loses"],
        ["| times", "0.500", "rival", "loses"],
        ["| rates", "0.500", "rival", "loses"],
        ["| threads, 2 threads", "0.500", "rival", "loses"],
    ]
    assert page.instruction_sets([planted()]).splitlines()[2:] == [
        "| avx2 | times | 0.250 to 0.500 | rival | 2 of 4 | all |"
    ]


def test_records_of_parts_add_what_that_of_all_benchmarks_lacks() -> None:
    whole = planted()
    older, newer = replace(whole, kind="older"), replace(whole, kind="newer", date="2026-01-02")
    newer = replace(newer, tables={"new": whole.tables["times"], "rates": whole.tables["rates"]})
    lacking = replace(whole, tables={"times": whole.tables["times"]})
    found = page.current([older, newer, lacking])
    assert [(record.kind, list(record.tables)) for record in found] == [
        ("all", ["times"]),
        ("newer", ["new", "rates"]),
        ("older", ["threads"]),
    ]


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no mark of losses"):
        page.fill("<!-- from the records: newest -->\n", {"newest": "text", "losses": "text"})


def test_the_pictures_of_the_pages_are_drawn(records: dict[str, Record]) -> None:
    texts = [(ROOT / "docs" / path).read_text(encoding="utf-8") for path in PAGES]
    shown = {name for text in texts for name in re.findall(r"(\w+)\.svg\)", text)}
    drawn = benchmarks.pictures(records["all"], records["oracles"])
    assert drawn.keys() == shown
    noise = benchmarks.svg(drawn["noise"])
    names = [name for name in re.findall(r">([^<>]+)</text>", noise) if name in benchmarks.NOISE or name == "opendp"]
    assert sorted(names) == sorted([*benchmarks.NOISE, *["opendp"] * 4])
    assert "5766 to 6003" in noise


def test_a_picture_needs_no_library_that_is_not_installed(records: dict[str, Record]) -> None:
    def without(*libraries: str) -> str:
        tables = {title: replace(table, amounts=dict(table.amounts)) for title, table in records["all"].tables.items()}
        for table in tables.values():
            for name in libraries:
                table.amounts.pop(name, None)
        return benchmarks.svg(partial(benchmarks.noise, replace(records["all"], tables=tables)))

    assert "secure, not exact" in without("opendp")
    assert "secure, not exact" not in without("diffprivlib", "python-dp")


def test_the_page_of_a_record_is_its_report(records: dict[str, Record]) -> None:
    def shown(path: str) -> str:
        return benchmarks.on_page_markdown("text", page=SimpleNamespace(file=SimpleNamespace(src_uri=path)))

    assert shown("records/all.md") == report(records["all"])
    assert shown("guide/sgd.md") == "text"


def test_the_site_needs_no_dpnoise() -> None:
    program = "import sys; sys.modules['dpnoise'] = None; sys.path.append('docs/site'); import benchmarks, pictures"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
