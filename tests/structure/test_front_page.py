"""The figures of the front page are those of the record."""

from dataclasses import replace
from pathlib import Path

import pytest

from benches import page
from benches.record import Table, kept

FRONT = (Path(__file__).parents[2] / "docs/index.md").read_text(encoding="utf-8")


def test_the_figures_are_those_of_the_record():
    record = kept()["all"]
    measured = {name: amounts["10"] for name, amounts in record.tables["Discrete Laplace"].amounts.items()}
    shown = page.filled("index.md", FRONT)
    for rival, name in (("opendp", "OpenDP"), ("diffprivlib", "diffprivlib"), ("NumPy laplace, PCG64", "NumPy")):
        assert f"**{page.number(measured[rival] / measured[record.ours])} times** as fast as {name}" in shown
    assert record.date in shown
    assert "from the records:" not in shown


def test_another_record_has_other_figures():
    amounts = {"dpnoise, avx512": 2.0, "opendp": 300.0, "diffprivlib": 50.0, "NumPy laplace, PCG64": 3.0}
    table = Table("Discrete Laplace", amounts={name: {"10": time} for name, time in amounts.items()})
    figures = page.front_parts(replace(kept()["all"], ours="dpnoise, avx512", tables={table.title: table}))
    assert [figures[name] for name in page.RIVALS] == ["150", "25.0", "1.50"]
    with pytest.raises(ValueError, match="no mark of OpenDP"):
        page.fill("", figures)
