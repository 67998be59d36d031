"""MkDocs hook: the records of the benchmarks become pages, tables of pages, and pictures.

Nothing of this is committed: it follows from benches/records.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib
from matplotlib.figure import Figure

sys.path.append(str(Path(__file__).parents[2]))  # the program mkdocs does not look there

from benches.libraries import KINDS, kind_of, library
from benches.oracle_cases import LARGE, MSE, ORACLES
from benches.page import filled, number, report, span
from benches.published import FELDMAN_2022_BY_EPSILON
from benches.record import WHOLE, Record, Table, kept, place

NOISE = ("Discrete Laplace", "Discrete Gaussian", "Float Laplace", "Float Gaussian")
MIDDLE = ("k = 128", "width = 128", "num_bloombits = 128", "epsilon = 1")
"""The columns of local protocols that are compared with each other."""
LOCAL = ("dpnoise", "NumPy", "multi-freq-ldpy", "pure-ldp")
"""Who has local protocols."""
# Distinct for the colour-blind, with a contrast of at least 4.5 to white; kinds differ by shape, too.
COLOURS = ("#3f51b5", "#00805d", "#b35c00", "#b0508a", "#5b5b5b", "#c62828")
SHAPES = "osD^vP"

Marks = Mapping[str, Sequence[float]]
"""The amounts of a row by their kinds."""


def on_files(files: Any, *, config: Any) -> None:
    """Add the pictures to the files of the site."""
    from mkdocs.structure.files import File  # the tests draw without MkDocs

    records = kept()
    for name, draw in pictures(records[WHOLE], records["oracles"]).items():
        files.append(File.generated(config, f"benchmarks/{name}.svg", content=svg(draw)))


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Replace the page of a record by what the record says, and the marks of other pages by their tables."""
    path = Path(page.file.src_uri)
    if path.parent.name != "records":
        return filled(page.file.src_uri, markdown)
    return report(Record.from_json(place(path.stem).read_text(encoding="utf-8")))


def pictures(record: Record, oracles: Record) -> dict[str, Callable[[], Figure]]:
    """Return what draws the pictures, by their names."""
    return {
        "noise": partial(noise, record),
        "local": partial(local, record),
        "by_n": partial(by_n, record),
        "oracles_by_epsilon": partial(by_epsilon, oracles),
    }


def svg(draw: Callable[[], Figure]) -> str:
    """Return a picture whose text remains text."""
    with matplotlib.rc_context({"svg.fonttype": "none", "axes.axisbelow": True}):
        text = io.StringIO()
        draw().savefig(text, format="svg")
        return text.getvalue()


def dots(panels: Mapping[str, Mapping[str, tuple[str, Marks]]], kinds: Sequence[str], unit: str) -> Figure:
    """Draw panels by their titles, with a row for each label, a text at its right and a mark for each amount."""
    counts = [len(rows) for rows in panels.values()]
    figure = Figure(figsize=(9, 0.26 * sum(counts) + 0.6 * len(counts) + 0.4), layout="constrained")
    grid = figure.subplots(len(panels), squeeze=False, height_ratios=counts)[:, 0]
    for axes, (title, rows) in zip(grid, panels.items(), strict=True):
        for i, kind in enumerate(kinds):
            points = [(amount, y) for y, (_, marks) in enumerate(rows.values()) for amount in marks.get(kind, ())]
            if points:  # the first kind is drawn above the others
                axes.plot(*zip(*points, strict=True), SHAPES[i], color=COLOURS[i], zorder=9 - i, label=kind)
        axes.set(xscale="log", yticks=range(len(rows)), yticklabels=rows, ylim=(len(rows) - 0.5, -0.5))
        axes.set_title(title, loc="left", fontweight="bold")
        axes.grid(color="#dddddd")
        for y, (text, _) in enumerate(rows.values()):
            axes.text(1.01, y, text, transform=axes.get_yaxis_transform(), verticalalignment="center")
    axes.set_xlabel(unit)
    legend = {marks.get_label(): marks for axes in grid for marks in axes.get_lines()}
    figure.legend(legend.values(), legend.keys(), loc="outside upper left", ncols=2, frameon=False)
    return figure


def noise(record: Record) -> Figure:
    """Draw all entrants of each sampler, the fastest first, with a mark for each scale."""

    def rows(table: Table) -> dict[str, tuple[str, Marks]]:
        amounts = {entrant: list(by_column.values()) for entrant, by_column in table.amounts.items()}
        ordered = sorted(amounts, key=lambda entrant: median(amounts[entrant]))
        return {entrant: (span(amounts[entrant]), {kind_of(entrant): amounts[entrant]}) for entrant in ordered}

    return dots({title: rows(record.tables[title]) for title in NOISE}, KINDS, "ns per sample")


def local(record: Record) -> Figure:
    """Draw the times of all local protocols in one case of each, the fastest of ours first, with our number."""

    def rows(role: str) -> Iterator[tuple[str, tuple[str, Marks]]]:
        for title, table in record.tables.items():
            protocol, _, rest = title.partition(f", {role}")
            column = next((column for column in MIDDLE if column in table.columns), None)
            # Unary encoding that is counted from memory has another unit.
            if protocol == title or rest not in ("", ", from cache") or column is None:
                continue
            items = int(column.removeprefix("k = ")) if table.unit == "ns per bit" else 1
            marks: dict[str, list[float]] = {}
            for entrant, amounts in table.amounts.items():
                if column in amounts and (entrant == record.ours or not entrant.startswith("dpnoise")):
                    marks.setdefault(library(entrant), []).append(items * amounts[column])
            yield protocol, (number(marks["dpnoise"][0]), marks)

    panels = {
        f"{role.capitalize()}; the numbers are ours": dict(sorted(rows(role), key=lambda row: row[1][1]["dpnoise"][0]))
        for role in ("client", "server")
    }
    return dots(panels, LOCAL, "ns per report")


def by_n(record: Record) -> Figure:
    """Draw how the time of a sample falls with the number of samples of a call."""
    lines = {
        "Discrete Laplace, dpnoise": ("Calls: discrete Laplace", record.ours),
        "the same, a new scale in each call": ("Calls: discrete Laplace", f"{record.ours}, new parameter"),
        "Laplace mechanism, dpnoise": ("Calls: Laplace mechanism", record.ours),
        "NumPy laplace, PCG64": ("Calls: discrete Laplace", "NumPy laplace, PCG64"),
    }
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for i, (label, (table, entrant)) in enumerate(lines.items()):
        amounts = record.tables[table].amounts[entrant]
        points = {n: amounts[f"n = {n}"] / n for n in (1, 10, 100, 1000)}
        axes.loglog(points.keys(), points.values(), f"{SHAPES[i]}-", color=COLOURS[i], label=label)
    axes.set(xlabel="samples n of a call", ylabel="ns per sample")
    axes.grid(color="#dddddd")
    axes.legend(frameon=False)
    return figure


def by_epsilon(record: Record) -> Figure:
    """Draw the squared error of each protocol by epsilon, and what was published."""
    figure = Figure(figsize=(6, 4.5), layout="constrained")
    axes = figure.add_subplot()
    drawn = [name for name in ORACLES if name != "OptimizedUnaryEncoding"]  # whose error is that of LocalHashing
    for i, name in enumerate(drawn):
        errors = [record.tables[str(case)].amounts[f"dpnoise {name}"][MSE] for case in LARGE]
        axes.semilogy([case.epsilon for case in LARGE], errors, f"{SHAPES[i]}-", color=COLOURS[i], label=name)
        if name in FELDMAN_2022_BY_EPSILON:
            published = FELDMAN_2022_BY_EPSILON[name]
            label = f"{name}, published, n = 1000"
            axes.semilogy(published.keys(), published.values(), "--", color=COLOURS[i], label=label)
    axes.set(xlabel="epsilon", ylabel="MSE/n")
    axes.grid(color="#dddddd")
    axes.legend(frameon=False)
    return figure
