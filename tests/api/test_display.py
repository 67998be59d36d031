"""How results look: printed as tables, and in notebooks as HTML in which nothing of the user's is markup."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpnoise import Laplace, Table, _display, audit, local, queries
from dpnoise.accounting import Ledger, PrivacyCost, ShuffledCost
from dpnoise.audit import attacks

HOSTILE = [
    "<script>alert(1)</script>",
    "</td></table><img src=x onerror='alert(1)'>",
    '"&amp;\n\x1b[31m\u202e',
    "x" * 80,
]


class Page(HTMLParser):
    """The tags of an HTML text, its attributes and its cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.tables: list[list[list[str]]] = []
        self.captions: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, "every tag is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
        elif tag == "caption":
            self.captions.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("th", "td"):
            self.tables[-1][-1][-1] += data
        elif self.open and self.open[-1] == "caption":
            self.captions[-1] += data

    @property
    def rows(self) -> list[list[str]]:
        return [row for table in self.tables for row in table]


def is_harmless(text: str) -> bool:
    page = Page(text)
    tables = {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    return page.tags <= tables and page.attributes <= {"style", "scope"}


def estimate_of(labels: list[str]) -> local.Estimate:
    protocol = local.OptimizedUnaryEncoding(domain=labels, epsilon=1.0)
    return protocol.estimate(protocol.perturb(labels * 100))


def results(path: Path) -> list[Any]:
    generator = np.random.default_rng(1)
    numbers = generator.random(500)
    ledger = Ledger(path / "ledger.db", epsilon=1.0, delta=1e-6)
    ledger.release(Laplace(epsilon=0.25), 12.0, label="visitors")
    unary = local.OptimizedUnaryEncoding(k=10, epsilon=1.0)
    sketch = local.CountMeanSketch(epsilon=2.0, rows=16, width=64)
    ranges = local.HierarchicalRange(k=100, epsilon=2.0)
    mean = local.HybridMean(epsilon=1.0)
    wave = local.SquareWave(k=16, epsilon=1.0)
    laplace = Laplace(epsilon=1.0)
    return [
        estimate_of(["a", "b"]),
        estimate_of(["a", "b"]).count("a"),
        sketch.estimate(sketch.perturb(["a"] * 100), candidates=["a", "b"]),
        ranges.estimate(ranges.perturb([3] * 100)),
        ranges.estimate(ranges.perturb([3] * 100)).range(1, 5),
        mean.estimate(mean.perturb(numbers)),
        wave.estimate(wave.perturb(numbers)),
        unary.check_popcounts(unary.perturb([1] * 100)),
        local.plan(n=1000, k=10, epsilon=1.0),
        PrivacyCost(0.1, 1e-9, "substitute"),
        ledger,
        audit.epsilon_lower_bound(laplace, 0.0, 1.0, n=200),
        audit.check(laplace, 0.0, 1.0, n=200),
        attacks.low_order_bits(laplace, n=200),
        attacks.precision(laplace, n=200),
        attacks.timing(laplace, n=200),
    ]


def test_every_result_has_a_harmless_table(tmp_path: Path) -> None:
    for result in results(tmp_path):
        text = result._repr_html_()
        assert is_harmless(text)
        page = Page(text)
        assert type(result).__name__ in page.captions[0]
        for table in page.tables:
            assert len(table) > 1
            assert len(set(map(len, table))) == 1
        assert "object at" not in text


def test_labels_are_text_and_no_markup() -> None:
    page = Page(estimate_of(HOSTILE)._repr_html_())
    shown = [row[0] for row in page.rows[1:]]
    assert shown[:2] == HOSTILE[:2]
    assert shown[2] == '"&amp;\\n\\x1b[31m\\u202e'
    assert shown[3] == "x" * 50 + "..."
    assert is_harmless(estimate_of(HOSTILE)._repr_html_())


def test_a_release_has_a_harmless_table() -> None:
    columns = {"<b>\n": ["a", "b"], HOSTILE[0]: [1, 2]}
    table = Table(columns, person="<b>\n", rows=1)
    found = table.by(HOSTILE[0], keys=[1, 2.5]).release(**{HOSTILE[1]: queries.Count(epsilon=1e6)})
    page = Page(found._repr_html_())
    assert is_harmless(found._repr_html_())
    assert page.captions == [f"count of rows, by {HOSTILE[0]}"]
    assert page.rows[0] == [HOSTILE[0], HOSTILE[1], "error", "lower", "upper"]
    assert [row[:2] for row in page.rows[1:]] == [["1", "1"], ["2.5", "0"]]
    assert "<p>epsilon 1000000.0 (person: &lt;b&gt;\\n, at most 1 row); each answer within" in found._repr_html_()
    assert repr(found).split("\n")[-2] == "epsilon 1000000.0 (person: <b>\\n, at most 1 row)"


def test_a_label_that_is_markup_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_display, "escape", str)
    assert not is_harmless(estimate_of([HOSTILE[0], "b"])._repr_html_())
    with pytest.raises(AssertionError):
        is_harmless(estimate_of([HOSTILE[1], "b"])._repr_html_())


def test_labels_of_a_ledger_are_text(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "<b>.db", epsilon=10.0)
    for label in HOSTILE:
        ledger.spend(PrivacyCost(0.1), label)
    assert is_harmless(ledger._repr_html_())
    assert [row[2] for row in Page(ledger._repr_html_()).rows[-4:-2]] == HOSTILE[:2]


def test_a_ledger_shows_exact_amounts(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db", epsilon=1.0, delta=1e-6)
    for _ in range(3):
        ledger.spend(PrivacyCost(0.1, 1e-9), "visitors")
    rows = Page(ledger._repr_html_()).rows
    assert rows[1:4] == [["budget", "1", "0.000001"], ["spent", "0.3", "3E-9"], ["remaining", "0.7", "9.97E-7"]]
    assert [row[4:] for row in rows[-3:]] == [
        ["0.1", "1E-9", "0.1", "1E-9"],
        ["0.1", "1E-9", "0.2", "2E-9"],
        ["0.1", "1E-9", "0.3", "3E-9"],
    ]
    assert Page(Ledger.open_readonly(tmp_path / "ledger.db")._repr_html_()).rows[1:] == rows[1:]


def test_a_cost_is_not_rounded() -> None:
    rows = Page(PrivacyCost(0.1 + 0.2, 1e-9, "substitute")._repr_html_()).rows
    assert rows[1:] == [["epsilon", "0.30000000000000004"], ["delta", "1e-09"], ["relation", "substitute"]]
    cost = ShuffledCost(0.5, 1e-9, bound="clones")
    assert repr(cost) == "ShuffledCost(epsilon=0.5, delta=1e-09, bound='clones')"
    assert Page(cost._repr_html_()).rows[1:] == [["epsilon", "0.5"], ["delta", "1e-09"], ["bound", "clones"]]


def test_what_was_not_released_is_not_shown(tmp_path: Path) -> None:
    secret = 8_127_361.0
    ledger = Ledger(tmp_path / "ledger.db", epsilon=1.0)
    ledger.release(Laplace(epsilon=0.5), secret, label="revenue")
    assert "8127361" not in ledger._repr_html_().replace(",", "")


def test_a_long_table_is_cut_in_the_middle() -> None:
    estimate = local.OptimizedUnaryEncoding(k=1234, epsilon=1.0).simulate([1] * 1234)
    html, text = Page(estimate._repr_html_()), str(estimate).split("\n")
    values = [*map(str, range(5)), "...", *map(str, range(1229, 1234))]
    assert [row[0] for row in html.rows[1:]] == values
    assert estimate._repr_html_().endswith("<p>1,234 rows</p>")
    assert [line.split()[0] for line in text[2:-1]] == values
    assert text[-1] == "1,234 rows"
    whole = local.OptimizedUnaryEncoding(k=60, epsilon=1.0).simulate([1] * 60)
    assert len(Page(whole._repr_html_()).rows) == 61
    assert "rows" not in whole._repr_html_()


def test_the_text_of_a_table() -> None:
    columns = {"name": ["a", "b\n"], "count": [12345.678, -1.5], "n": [1234, 5], "kept": [True, False]}
    assert _display.text_table("Title", columns).split("\n") == [
        "Title",
        "name   count     n  kept",
        "a     12,346  1234  True",
        "b\\n       -2     5  False",
    ]


def test_numbers_have_the_decimals_that_two_digits_of_their_errors_need() -> None:
    errors = [24.2, 0.0416, None, 0.0, float("inf"), 9.96]
    columns = {"name": list("abcdef"), "mean": [1234.5678, -0.51239, 1.25, 2.5, 3.75, None], "error": errors}
    rows = Page(_display.html_table("", columns, {"mean": errors, "error": errors})).rows
    assert rows[1:] == [
        ["a", "1,235", "24"],
        ["b", "-0.512", "0.042"],
        ["c", "1.2500", ""],
        ["d", "2.5000", "0.0"],
        ["e", "3.7500", "inf"],
        ["f", "", "10"],
    ]
    assert _display.text_table("", columns, {"mean": errors}).split("\n")[2] == "a      1,235  24.200"
    assert Page(_display.html_table("", columns)).rows[3][1:] == ["1.2", "None"]


def test_the_numbers_of_an_estimate_have_the_decimals_that_its_errors_need() -> None:
    estimate = estimate_of(["a", "b"])
    row = Page(estimate._repr_html_()).rows[1]
    assert row == str(estimate).split("\n")[2].split()
    assert [len(cell.partition(".")[2]) for cell in row[1:]] == [0, 0, 0, 0]  # of 200 people: the error is above 10


def test_names_of_columns_are_text_and_no_markup() -> None:
    columns = {name: ["cell"] for name in HOSTILE}
    assert is_harmless(_display.html_table("", columns))
    heads = Page(_display.html_table("", columns)).rows[0]
    assert heads == [*HOSTILE[:2], '"&amp;\\n\\x1b[31m\\u202e', "x" * 50 + "..."]
    assert len(_display.text_table("", columns).split("\n")) == 3


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.0], ["0.0"]),
        ([123.456, 0.001], ["123.46", "0.00"]),
        ([1e9, float("inf"), float("nan")], ["1,000,000,000", "inf", "nan"]),
        ([1.5e-9, 0.0], ["1.5e-09", "0"]),
        ([np.float32(0.5), np.float64(0.25)], ["0.50000", "0.25000"]),
        ([np.int64(5), 2**80], ["5", str(2**80)]),
        ([b"<", None], ["b'<'", "None"]),
        ([], []),
    ],
)
def test_numbers_of_a_column_have_the_same_decimals(values: list[Any], shown: list[str]) -> None:
    assert [row[0] for row in Page(_display.html_table("", {"x": values})).rows[1:]] == shown


def test_a_printed_plan_is_a_table() -> None:
    plan = local.plan(n=1000, k=10, epsilon=1.0)
    lines = str(plan).split("\n")
    assert lines[0] == "Plan(n=1000, k=10, epsilon=1.0)"
    assert len(lines) == len(plan) + 2
    assert lines[2].startswith(type(plan[0].protocol).__name__)
    assert plan[:2] == plan.candidates[:2]
    table = plan.to_arrow()
    names = list(local.Candidate.__dataclass_fields__)
    assert table.column_names == names[:-2]
    assert table["standard_deviation"].to_pylist() == [candidate.standard_deviation for candidate in plan]
    plan = local.plan(n=1000, k=10, epsilon=1.0, shuffled_delta=1e-6)
    assert str(plan).startswith("Plan(n=1000, k=10, epsilon=1.0, shuffled_delta=1e-06)\n")
    table = plan.to_arrow()
    assert table.column_names == names
    assert table["bound"].to_pylist() == ["blanket"] * len(plan)


def test_no_other_package_is_needed() -> None:
    program = (
        "import sys; from dpnoise import local; plan = local.plan(n=1000, k=10, epsilon=1.0); str(plan);"
        "plan._repr_html_(); sys.exit(bool({'pandas', 'matplotlib', 'jinja2', 'IPython'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
