"""``dpnoise demo FILE``: one page that holds noisy answers alone, and the sum of what they cost."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.shared import Refuse, Run

AGES = [3] * 7_123 + [40] * 9_456 + [70] * 4_789
HOSTILE = "<b>x\x1b"
QUESTION = "histogram:age:0,18,65,inf"


@pytest.fixture(autouse=True)
def _desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with a file of people."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{age},{'Rome' if age < 9 else HOSTILE}\n" for age in AGES)
    Path("people.csv").write_text(f"age,city\n{rows}", encoding="utf-8")


def numbers(text: str) -> list[float]:
    """Return what a page says in its cells: answers and errors in turn."""
    return [
        float(one.replace(",", ""))
        for one in re.findall(r"-?[0-9][0-9,.]*", " ".join(re.findall(r"<td>([^<]+)<", text)))
    ]


def test_a_page_of_answers_at_three_epsilons(run: Run) -> None:
    outcome = run("demo", "people.csv", "--query", QUESTION, "--epsilon", 2)
    assert (outcome.code, outcome.err) == (0, "")
    assert "Spent in all: epsilon 2" in outcome.out
    assert "may be shown to others if epsilon 2 is small enough" in outcome.out
    page = Path("demo.html").read_text(encoding="utf-8")
    assert re.findall(r"<h2>epsilon ([^<]+)</h2>", page) == ["0.1", "0.4", "1.5"]
    assert "0.1 + 0.4 + 1.5 = 2." in page
    assert "may be shown to others if epsilon\n2 is small enough" in page
    shown = np.array(numbers(page)).reshape(3, 3, 2)  # epsilon, bin, answer and error
    truth = np.array([7_123, 9_456, 4_789])
    # Discrete Laplace noise of scale 1/epsilon: beyond 30 scales with a probability of 2 exp(-30) a count.
    assert np.all(np.abs(shown[:, :, 0] - truth) <= 30 / np.array([[0.1], [0.4], [1.5]]))
    assert np.all(np.diff(shown[:, 0, 1]) < 0), "the error shrinks as epsilon grows"
    assert np.all(shown[0, :, 1] > 20)


def test_answers_are_not_the_true_ones(run: Run) -> None:
    exact = 0
    for i in range(12):
        record = run("demo", "people.csv", "--query", QUESTION, "-o", f"{i}.html", "--json").json
        answers = [row["answer"] for row in record["releases"][0]["answers"]]
        exact += sum(np.array(answers) == [7_123, 9_456, 4_789])
    # Each of 36 counts is exact with a probability of tanh(0.05 / 2): 20 of them with less than 1e-21.
    assert exact < 20


def test_json_has_the_sum(run: Run) -> None:
    record = run("demo", "people.csv", "--query", "mean:age:0,100", "-o", "mean.html", "--json").json
    assert (record["command"], record["query"], record["page"]) == ("demo", "mean:age:0,100", "mean.html")
    assert [one["epsilon"] for one in record["releases"]] == [0.05, 0.2, 0.75]
    assert record["epsilon"] == 1
    for one in record["releases"]:
        [answer] = one["answers"]
        assert 0 <= answer["answer"] <= 100


def test_a_page_needs_no_network_and_its_texts_are_no_markup(run: Run) -> None:
    assert run("demo", "people.csv", "--query", f"histogram:city:Rome,{HOSTILE}").code == 0
    page = Path("demo.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;x\\x1b" in page
    assert "<b>" not in page
    assert not re.findall(r"https?:|<script|<link|<img|url\(|@import", page)
    assert "default-src 'none'" in page


def test_an_answer_replaces_no_file(run: Run, refuse: Refuse) -> None:
    assert run("demo", "people.csv", "--query", QUESTION).code == 0
    before = Path("demo.html").read_bytes()
    assert "'demo.html' is there already" in refuse("demo", "people.csv", "--query", QUESTION)
    assert Path("demo.html").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["people.csv"], "say with --query what to ask, all of it: count, histogram, mean, sum"),
        (["people.csv", "--query", "histogram:age"], "Bins, values and bounds are public"),
        (["people.csv", "--query", "keys:city"], "say with --query what to ask"),
        (["people.csv", "--query", "mean:age:0"], "--query mean takes two bounds"),
        (["people.csv", "--query", "mean:ages:0,9"], "did you mean 'age'?"),
        (["people.csv", "--query", QUESTION, "--epsilon", 0], "epsilon must be positive and finite, got 0.0"),
        (["people.csv", "--query", QUESTION, "-o", "page.png"], "the page must end in .html"),
        (["people.csv", "--query", QUESTION, "--plot", "a.png"], "--plot goes without IN"),
        (["--query", QUESTION], "--query goes with IN"),
        (["missing.csv", "--query", QUESTION], "missing.csv: No such file or directory"),
    ],
)
def test_what_is_refused_leaves_no_page(refuse: Refuse, words: list[Any], message: str) -> None:
    assert message in refuse("demo", *words)
    assert [path.name for path in Path().iterdir()] == ["people.csv"]


@pytest.mark.parametrize("epsilon", [0.3, 0.7, 1.1, 3.3])
def test_the_answers_spend_what_was_asked(run: Run, epsilon: float) -> None:
    assert run("demo", "people.csv", "--query", QUESTION, "--epsilon", epsilon, "--json").json["epsilon"] == epsilon
