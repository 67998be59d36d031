"""The chart of the front page shows the figures of a record."""

import re
from pathlib import Path

from benches.page import number
from benches.record import kept

ROOT = Path(__file__).parents[2]
LABELS = {
    "dpnoise, AVX-512": "dpnoise, avx512",
    "dpnoise, AVX2": "dpnoise, avx2",
    "NumPy, PCG64": "NumPy difference of geometrics, PCG64",
    "OpenDP": "opendp",
}


def chart(page):
    """Return the labels of the chart with the lengths of their bars and the numbers beside these."""
    rows = re.findall(r'<th>(.*?)</th><td style="--ns: (.*?)">(.*?)</td>', page)
    return {LABELS.get(label, label): numbers for label, *numbers in rows}


def test_the_chart_shows_the_record():
    page = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    record = kept()["all"]
    assert re.findall(r"Medians of ([\d-]+)", page) == [record.date]
    measured = record.tables["Discrete Laplace"].amounts
    shown = chart(page)
    assert len(shown) == 7
    assert shown == {label: [number(measured[label]["10"])] * 2 for label in shown}


def test_another_figure_is_noticed():
    row = '<tr><th>OpenDP</th><td style="--ns: 7016">7061</td></tr>'
    assert chart(row) == {"opendp": ["7016", "7061"]}
