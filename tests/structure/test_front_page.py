"""The chart of the front page shows the figures of a record."""

import re
from pathlib import Path

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


def recorded(record):
    """Return the numbers for scale 10 in the first table on discrete Laplace noise."""
    table = record.partition("## Discrete Laplace\n\n")[2].partition("\n\n")[0]
    header, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    return {row[0]: row[header.index("10")] for row in rows}


def test_the_chart_shows_the_record():
    page = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    [date] = re.findall(r"Medians of ([\d-]+)", page)
    measured = recorded((ROOT / f"benches/records/{date}.md").read_text(encoding="utf-8"))
    shown = chart(page)
    assert len(shown) == 7
    assert shown == {label: [measured[label]] * 2 for label in shown}


def test_another_figure_is_noticed():
    row = '<tr><th>OpenDP</th><td style="--ns: 7016">7061</td></tr>'
    assert chart(row) == {"opendp": ["7016", "7061"]}
    assert recorded("## Discrete Laplace\n\n| ns | 1 | 10 |\n| --- | --- | --- |\n| opendp | 3 | 7016 |\n\n") == {
        "opendp": "7016"
    }
