"""The paper has what its journal asks for, and the figures of the record; `make paper` builds it."""

import re

import paper
import pytest

TEXT, BIBLIOGRAPHY = ((paper.FOLDER / name).read_text(encoding="utf-8") for name in ("paper.md", "paper.bib"))


def test_the_paper_has_no_problems():
    assert paper.problems(TEXT, BIBLIOGRAPHY) == []


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ("date: ", "day: ", "no date in the head"),
        ("# AI usage disclosure", "# Usage", "the sections are not Summary, Statement of need"),
        ("@mironov2012", "@mironov2013", "mironov2013 is cited, and not in the bibliography"),
        ("[@steinke2023]", "", "steinke2023 is in the bibliography, and not cited"),
        ("1.17 ns", "1.71 ns", "the record says: 1.17 ns per sample"),
        ("3675\ntimes", "3765\ntimes", "the record says: 3675 times as fast as diffprivlib"),
        ("# References\n", "# References\n" + 1000 * "word ", "1[0-9]{3} words"),
    ],
)
def test_a_problem_is_noticed(right, wrong, problem):
    assert right in TEXT
    [found, *_] = paper.problems(TEXT.replace(right, wrong), BIBLIOGRAPHY)
    assert re.match(problem, found)
