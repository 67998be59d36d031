"""What a record of the benchmarks says follows from what was measured, and so does the page with its pictures."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from benches import page, pictures, svg
from benches.libraries import LIBRARIES
from benches.record import FOLDER, IDLE, Record, kept
from benches.report import judgement, report
from benches.targets import Target

OURS = "dpnoise, avx512"
AMOUNTS = {OURS: (2.0, 4.0), "rival": (10.0, 12.0)}


def new_record(**fields) -> Record:
    return Record("2026-01-01", "", "a CPU", 2, OURS, {"dpnoise": "1"}, **{"targets": [], **fields})


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


def test_a_record_is_kept_whole() -> None:
    record = planted()
    record.texts["text"] = "of its own"
    assert Record.from_json(record.to_json()) == record


@pytest.fixture(scope="module")
def records():
    return kept()


@pytest.fixture(scope="module")
def files():
    return page.files()


def texts_of(picture):
    elements = ElementTree.fromstring(picture).iter()  # noqa: S314, since the picture is ours
    return [(element.text, element) for element in elements if element.tag.endswith("text")]


def test_the_pages_are_those_of_the_newest_records(files):
    assert {path: path.read_text(encoding="utf-8") for path in files} == files, "run python -m benches.page"
    assert set(page.PICTURES.iterdir()) == files.keys() - {page.PAGE}
    shown = [
        at.parent / name for at in (page.PAGE, page.ORACLES) for name in re.findall(r"\]\(([\w/]+\.svg)\)", files[at])
    ]
    assert sorted(shown) == sorted(page.PICTURES.glob("*.svg"))
    assert all(path.stat().st_size < 60_000 for path in page.PICTURES.iterdir())


def test_the_markdown_of_a_record_is_that_of_its_numbers(records):
    for record in records:
        assert (FOLDER / f"{record.name}.md").read_text(encoding="utf-8") == report(record)


def test_every_library_is_said_to_be_exact_and_secure_or_not(records):
    for record in records:
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


def test_records_of_parts_add_what_the_newest_of_all_benchmarks_lacks():
    whole = planted()
    older, part = replace(whole, date="2025-12-31"), replace(whole, part="part")
    newer = replace(part, date="2026-01-02", tables={"new": whole.tables["times"]})
    lacking = replace(whole, tables={"times": whole.tables["times"]})
    found = page.current([older, lacking, part, newer])
    assert [(record.name, list(record.tables)) for record in found] == [
        ("2026-01-01", ["times"]),
        ("2026-01-02-part", ["new"]),
        ("2026-01-01-part", ["rates", "threads"]),
    ]
    assert page.current([older, part, newer, whole])[0] == whole


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="no marks of losses"):
        page.fill("<!-- from the records: newest -->\n<!-- end -->\n", {"newest": "text", "losses": "text"})


def test_the_picture_of_a_sampler_names_all_entrants_from_fastest_to_slowest_on_a_logarithmic_axis():
    table = new_record().table("Discrete Laplace", "ns per sample")
    for scale, factor in (("1", 1.0), ("1000", 2.0)):
        amounts = {"NumPy random() < p, SFC64": 30.0, OURS: 3.0, "opendp": 6000.0, "python-dp": 2000.0}
        table.add(scale, {entrant: factor * amount for entrant, amount in amounts.items()})
    picture = pictures.noise(table)
    texts = texts_of(picture)
    names = [text for text, _ in texts if text in table.amounts]
    assert names == [OURS, "NumPy random() < p, SFC64", "python-dp", "opendp"]
    assert "ns per sample, logarithmic" in dict(texts)
    assert {text.partition(": ")[2] for text, _ in texts} >= {
        "exact and secure",
        "secure, not exact",
        "neither exact nor secure",
    }
    ticks = [float(dict(texts)[name].get("x")) for name in ("1", "10", "100", "1000", "10⁴", "10⁵")]
    steps = [after - before for before, after in pairwise(ticks)]
    assert steps == pytest.approx([steps[0]] * 5, abs=0.11)
    assert steps[0] > 50
    first = float(re.search(r"translate\((\S+) ", picture[picture.index("3.00 to 6.00") :])[1])
    assert ticks[0] < first < ticks[1]


def test_a_mark_stands_where_its_logarithm_says():
    axis = svg.LogAxis([2.0, 300.0], 100, 400)
    assert axis.ticks == [1, 10, 100, 1000]
    assert [axis(amount) for amount in (1, 10**0.5, 1000)] == pytest.approx([100, 150, 400])
    assert svg.LogAxis([0.6, 1.7], 0, 1).ticks == [0.5, 1, 2]
    assert svg.LogAxis([10.0], 0, 1).ticks == [10, 20]
