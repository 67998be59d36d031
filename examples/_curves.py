"""What some examples have in common: pictures, and how often several ways succeed for several sizes."""

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpnoise import plots

# For a group of curves and a way: the share of a success, or whether it was one.
Shares = Mapping[tuple[str, str], float]


def show(experiment: Callable[[int], Shares], sizes: Sequence[int], what: str, repetitions: int) -> None:
    """Repeat an experiment for each size, print the average shares as Markdown, and draw them if asked to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=repetitions, help="how often the experiment is repeated")
    parser.add_argument("--plot", help="where to write a picture, which needs matplotlib")
    options = parser.parse_args()

    found = [[experiment(n) for _ in range(options.repetitions)] for n in sizes]
    curves = {key: [float(np.mean([one[key] for one in of_size])) for of_size in found] for key in found[0][0]}
    print(f"| {what} | {' | '.join(f'n = {n:,}' for n in sizes)} |")
    print("| --- " * (len(sizes) + 1) + "|")
    for (group, way), shares in curves.items():
        print(f"| {group}: {way} | {' | '.join(f'{share:.0%}' for share in shares)} |")
    if options.plot is not None:
        draw(options.plot, sizes, what, curves)


def draw(path: str, sizes: Sequence[int], what: str, curves: Mapping[tuple[str, str], Sequence[float]]) -> None:
    """Draw each curve: a colour for the way, a style of line for the group."""
    groups, ways = (list(dict.fromkeys(keys)) for keys in zip(*curves, strict=True))
    with picture(path, height=3.4 + 0.2 * len(curves)) as axes:
        for (group, way), shares in curves.items():
            axes.plot(
                sizes,
                shares,
                label=f"{group}: {way}",
                color=f"C{ways.index(way)}",
                linestyle=["-", "--", ":"][groups.index(group)],
                marker="osD"[groups.index(group)],
                markersize=10 - 2.5 * ways.index(way),  # so that equal ones are all seen
            )
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter("{x:.0%}")
        axes.grid(color="#dddddd", linewidth=0.8)
        axes.set_xlabel("people")
        axes.set_title(what, loc="left", fontsize="medium")
        axes.figure.legend(loc="outside lower center", frameon=False)


@contextmanager
def picture(path: str | Path, height: float = 3.6) -> Iterator[Axes]:
    """Draw a picture of the documentation: the same each time, and legible on a phone, which shrinks wide ones."""
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dpnoise"}):
        figure = Figure(figsize=(5.2, height), layout="constrained")
        with plots.chart(ax=figure.add_subplot()) as axes:
            yield axes
        is_svg = Path(path).suffix == ".svg"
        figure.savefig(path, metadata={"Date": None} if is_svg else None)
    if is_svg:  # Matplotlib writes a line for each point of a curve
        text = Path(path).read_text(encoding="utf-8")
        Path(path).write_text(re.sub(r"\s*\n\s*", " ", text).strip() + "\n", encoding="utf-8")
