"""MkDocs hook: draw the pictures of the tutorial, one or more for each chapter.

Nothing of this is committed. The pictures are no wider than a phone shows without shrinking the letters much.
"""

from __future__ import annotations

from collections.abc import Callable
from math import e, exp, log, pi, sqrt
from typing import Any

import matplotlib
import numpy as np
from benchmarks import COLOURS, svg
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

BLUE, GREEN, ORANGE, _, GREY, _ = COLOURS
STYLE = {
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "axes.prop_cycle": matplotlib.cycler(color=(BLUE, ORANGE, GREEN)),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 11,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "text.color": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
}


def on_files(files: Any, *, config: Any) -> None:
    """Add the pictures to the files of the site."""
    from mkdocs.structure.files import File  # the tests draw without MkDocs

    for draw in PICTURES:
        files.append(File.generated(config, f"tutorial/{draw.__name__}.svg", content=picture(draw)))


def picture(draw: Callable[[], Figure]) -> str:
    """Return a picture in the style of the tutorial."""
    with matplotlib.rc_context(STYLE):
        return svg(draw)


def chart(height: float = 2.8, **axes: Any) -> tuple[Figure, Axes]:
    """Return a figure with a pair of axes."""
    figure = Figure(figsize=(5.2, height), layout="constrained")
    return figure, figure.add_subplot(**axes)


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure to draw shapes on, with the coordinates 0 to `width` and 0 to `height`, undistorted."""
    figure, axes = chart(5.2 * height / width, xlim=(0, width), ylim=(0, height), aspect="equal")
    axes.set_axis_off()
    return figure, axes


def box(axes: Axes, x: float, y: float, text: str, colour: str = GREY, width: float = 1.6) -> None:
    """Draw a box around a text, with its centre at (x, y)."""
    shape = {"boxstyle": "round,pad=0.08", "edgecolor": colour, "fill": False}
    axes.add_patch(FancyBboxPatch((x - width / 2, y - 0.25), width, 0.5, **shape))
    label(axes, x, y, text)


def label(axes: Axes, x: float, y: float, text: str, colour: str = GREY) -> None:
    """Write a text around (x, y)."""
    axes.text(x, y, text, color=colour, ha="center", va="center")


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = GREY) -> None:
    """Draw an arrow."""
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0})


def laplace(z: np.ndarray, b: float = 1.0) -> np.ndarray:
    """Return the Laplace density."""
    return np.exp(-np.abs(z) / b) / (2 * b)


def normal(z: np.ndarray) -> np.ndarray:
    """Return the normal density."""
    return np.exp(-(z**2) / 2) / sqrt(2 * pi)


def simplex() -> Figure:
    """Draw the distributions of three outputs as a triangle, and those close to the uniform one."""
    corners = np.array([[0.5, 0.4], [4.5, 0.4], [2.5, 0.4 + 2 * sqrt(3)]])
    figure, axes = canvas(5, 4.4)
    axes.fill(*corners.T, edgecolor=GREY, fill=False)
    epsilon = 0.5
    high, low = exp(epsilon) / 3, exp(-epsilon) / 3
    rest = 1 - high - low
    near = ((high, low), (high, rest), (rest, high), (low, high), (low, rest), (rest, low))  # around the hexagon
    axes.fill(*(np.array([(p, q, 1 - p - q) for p, q in near]) @ corners).T, color=BLUE, alpha=0.25, linewidth=0)
    axes.plot(*corners.mean(axis=0), "o", color=ORANGE)
    label(axes, 2.5, 1.84, "M(2)", ORANGE)
    label(axes, 2.5, 0.85, "neighbours, ε = 0.5", BLUE)
    for (x, y), text in zip(corners, ("always 1", "always 2", "always 3"), strict=True):
        label(axes, x, y + (0.25 if y > 1 else -0.25), text)
    return figure


def neighbours() -> Figure:
    """Draw two histograms that differ by one person."""
    figure, axes = chart(2.4, xticks=(0.2, 1.2), xticklabels=("A", "B"), yticks=range(5), ylabel="people")
    axes.bar((0, 1), (2, 3), 0.36, color=BLUE, label="2A3B")
    axes.bar((0.4, 1.4), (2, 3), 0.36, color=ORANGE, label="2A4B")
    axes.bar(1.4, 1, 0.36, bottom=3, edgecolor=ORANGE, fill=False, hatch="///", label="the one more")
    axes.legend(loc="upper left")
    return figure


def laplace_densities() -> Figure:
    """Draw Laplace densities of several scales."""
    figure, axes = chart(xlabel="z - μ", ylabel="density")
    z = np.linspace(-8, 8, 321)
    for b in (1, 2, 4):
        axes.plot(z, laplace(z, b), label=f"b = {b}, peak 1/{2 * b}")
    axes.legend()
    return figure


def shifted_densities() -> Figure:
    """Draw two densities of neighbours, and the band that one has to stay in."""
    figure, axes = chart(xlabel="output", ylabel="density", xticks=(0, 1), xticklabels=("f(D)", "f(D')"))
    y, epsilon = np.linspace(-4, 5, 361), 0.7
    density = laplace(y, 1 / epsilon)
    band = density * exp(-epsilon), density * exp(epsilon)
    axes.fill_between(y, *band, color=BLUE, alpha=0.2, linewidth=0, label="from e^-ε to e^ε times M(D)")
    axes.plot(y, density, label="M(D)")
    axes.plot(y, laplace(y - 1, 1 / epsilon), label="M(D')")
    axes.set_ylim(0, 1.2)
    axes.legend()
    return figure


def gaussian_sets() -> Figure:
    """Draw two normal densities, and where their ratio is large."""
    figure, axes = chart(xlabel="output", ylabel="density", xticks=(0, 1), xticklabels=("f(D)", "f(D')"))
    y = np.linspace(-4, 5, 361)
    axes.plot(y, normal(y), label="M(D)")
    axes.plot(y, normal(y - 1), label="M(D')")
    for edge, outside in ((-1.6, y < -1.6), (2.6, y > 2.6)):  # where the loss, 1/2 - y, is -2.1 and 2.1
        axes.fill_between(y, normal(y), where=outside, color=BLUE, alpha=0.4, linewidth=0)
        axes.axvline(edge, color=GREY, linestyle=":", linewidth=1)
    for x, text in ((-3, "R₂"), (0.5, "R₁"), (3.4, "R₂")):
        label(axes, x, 0.44, text)
    axes.set_ylim(0, 0.48)
    axes.legend(loc="center right")
    return figure


def exponential() -> Figure:
    """Draw the probabilities of candidates for several epsilons."""
    figure, axes = chart(2.6, xlabel="candidate, with its score", ylabel="probability", xticks=range(4))
    scores = np.array([10, 8, 5, 1])
    axes.set_xticklabels([f"{name}: {score}" for name, score in zip("abcd", scores, strict=True)])
    for i, epsilon in enumerate((0.1, 0.5, 2.0)):
        weights = np.exp(epsilon * scores / 2)
        axes.bar(np.arange(4) + 0.27 * (i - 1), weights / weights.sum(), 0.25, label=f"ε = {epsilon}")
    axes.legend()
    return figure


def two_coins() -> Figure:
    """Draw the tree of the survey with two coins."""
    figure, axes = canvas(7.6, 3.6)
    box(axes, 1, 2, "first coin")
    box(axes, 4.2, 1.2, "second coin")
    for end, side, y in (((5.4, 3.0), "heads", 2.8), ((3.25, 1.2), "tails", 1.3)):
        arrow(axes, (1.95, 2), end)
        label(axes, 2.5, y, side)
    for y, answer in ((1.9, "“yes”, 1/4"), (0.5, "“no”, 1/4")):
        arrow(axes, (5.15, 1.2), (5.65, y))
        box(axes, 6.5, y, answer, ORANGE, 1.5)
    box(axes, 6.4, 3, "the truth, 1/2", BLUE, 1.8)
    return figure


def unary_bits() -> Figure:
    """Draw the bits of five people, what they report, and the sums of both."""
    figure, axes = canvas(12, 7.4)
    generator = np.random.default_rng(13)
    true = np.eye(5, dtype=int)[[0, 2, 0, 1, 0]]
    reports = (generator.random((5, 5)) < np.where(true, 0.5, 1 / (e + 1))).astype(int)
    for left, bits, title, colour in ((0.4, true, "true bits", BLUE), (6.6, reports, "reports", ORANGE)):
        label(axes, left + 2.5, 6.9, title, colour)
        for (row, column), bit in np.ndenumerate(bits):
            fill = {"facecolor": colour, "alpha": 0.45} if bit else {"fill": False}
            axes.add_patch(Rectangle((left + column, 5.3 - row), 1, 1, edgecolor=GREY, **fill))
            label(axes, left + column + 0.5, 5.8 - row, str(bit))
        for column, total in enumerate(bits.sum(axis=0)):
            label(axes, left + column + 0.5, 0.6, str(total), colour)
    arrow(axes, (5.6, 3.8), (6.4, 3.8))
    return figure


def raw_sums() -> Figure:
    """Draw the expected sums of bits for some occupations of Adult: the true counts on top of what chance sets."""
    n, p, q = 32_561, 0.75, 0.25
    counts = {"Armed-Forces": 9, "Tech-support": 928, "Sales": 3650, "Prof-specialty": 4140}
    figure, axes = chart(2.4, xlabel="set bits in all reports")
    axes.barh(list(counts), n * q, color=GREY, alpha=0.5, label="n q, by chance")
    axes.barh(list(counts), [(p - q) * c for c in counts.values()], left=n * q, label="(p - q) times the count")
    figure.legend(loc="outside upper right", ncols=2)
    return figure


def local_and_central() -> Figure:
    """Draw the error of a share by the number of people, for both models, at epsilon = 1."""
    figure, axes = chart(xscale="log", yscale="log", xlabel="people", ylabel="error of a share")
    n = np.geomspace(100, 1e9, 2)
    axes.plot(n, np.sqrt(4 * e / (e - 1) ** 2 / n), label="local: of the order of 1/√n")
    axes.plot(n, sqrt(2) / n, label="central: of the order of 1/n")
    axes.legend()
    return figure


def subsample_and_aggregate() -> Figure:
    """Draw figure 7.1 of Dwork and Roth: the program on blocks, and the aggregate."""
    figure, axes = canvas(8.4, 5.4)
    box(axes, 4.2, 5.0, "data x", width=5.5)
    for x, number in ((1.2, "1"), (3.2, "2"), (7.2, "m")):
        box(axes, x, 3.8, f"block {number}")
        box(axes, x, 2.5, "f", BLUE, 0.6)
        arrow(axes, (x, 4.65), (x, 4.2))
        arrow(axes, (x, 3.45), (x, 2.9))
        arrow(axes, (x, 2.15), (4.2 + 0.35 * (x - 4.2), 1.65))
    for y in (3.8, 2.5):
        label(axes, 5.2, y, "…")
    box(axes, 4.2, 1.3, "private aggregate M", ORANGE, 4)
    arrow(axes, (4.2, 0.95), (4.2, 0.45))
    label(axes, 4.2, 0.2, "release")
    return figure


def clipping() -> Figure:
    """Draw gradients, the circle to which they are clipped, and the noise of their sum."""
    figure, axes = canvas(9, 5)
    gradients = np.array([[3.0, 1.0], [0.5, 1.1], [-0.5, 2.4], [1.0, -0.6]])
    clipped = gradients / np.maximum(1, np.linalg.norm(gradients, axis=1) / 1.5)[:, np.newaxis]
    centre, start = np.array([2.1, 2.0]), np.array([5.6, 1.2])
    axes.add_patch(Circle(centre, 1.5, edgecolor=GREY, fill=False, linestyle="--"))
    for long, short in zip(gradients, clipped, strict=True):
        axes.plot(*np.transpose([centre, centre + long]), ":", color=BLUE)
        arrow(axes, tuple(centre), tuple(centre + short), BLUE)
    label(axes, 1.0, 0.4, "norm C")
    end = start + clipped.sum(axis=0) / 2  # half of it, to fit
    arrow(axes, tuple(start), tuple(end), BLUE)
    axes.add_patch(Circle(tuple(end), 0.8, color=ORANGE, alpha=0.25, linewidth=0))
    label(axes, end[0], end[1] + 1.1, "noise of deviation z C", ORANGE)
    label(axes, start[0], start[1] - 0.4, "sum of the clipped", BLUE)
    return figure


def clipped_mean() -> Figure:
    """Draw what an outlier does to the clipped mean of gradients, and to the sum of the clipped ones."""
    ways = ("mean, then clipped", "clipped, then added up")
    figure, axes = chart(2.4, xticks=(0, 1), xticklabels=ways, ylabel="in multiples of C")
    axes.bar((-0.2, 0.8), (-1, -4), 0.36, color=BLUE, label="without the outlier")
    axes.bar((0.2, 1.2), (1, -3), 0.36, color=ORANGE, label="with it")
    axes.axhline(0, color=GREY, linewidth=1)
    axes.legend(loc="lower left")
    return figure


def composition() -> Figure:
    """Draw what many releases with epsilon = 0.1 cost together."""
    figure, axes = chart(xlabel="releases of ε = 0.1", ylabel="ε of all")
    k = np.arange(1, 151)
    axes.plot(k, 0.1 * k, label="sum")
    axes.plot(k, 0.1 * np.sqrt(2 * k * log(1e6)) + k * 0.1 * (exp(0.1) - 1), label="advanced, δ = 10⁻⁶")
    axes.legend()
    return figure


PICTURES = (
    simplex,
    neighbours,
    laplace_densities,
    shifted_densities,
    gaussian_sets,
    exponential,
    two_coins,
    unary_bits,
    raw_sums,
    local_and_central,
    subsample_and_aggregate,
    clipping,
    clipped_mean,
    composition,
)
