"""How often several ways succeed for several sizes, as a table and as a picture: what some examples have in common."""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from dpnoise import plots

# For a group of curves and a way: the share of a success, or whether it was one.
Shares = Mapping[tuple[str, str], float]


def show(experiment: Callable[[int], Shares], sizes: Sequence[int], what: str, repetitions: int) -> None:
    """Repeat an experiment for each size, print the average shares as Markdown, and draw them if asked to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=repetitions, help="how often the experiment is repeated")
    parser.add_argument("--plot", help="where to write a picture, which needs dpnoise[plot]")
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
    with plots.chart(path, height=5.5) as axes:
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
        axes.set(xlabel="people", ylabel=what)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=len(groups), frameon=False)
    minify(path)


def minify(path: str | Path) -> None:
    """Join the lines of an SVG file: Matplotlib writes a line for each point of a curve."""
    if Path(path).suffix == ".svg":
        text = Path(path).read_text(encoding="utf-8")
        Path(path).write_text(re.sub(r"\s*\n\s*", " ", text).strip() + "\n", encoding="utf-8")
