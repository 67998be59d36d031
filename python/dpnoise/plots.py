"""Charts. They need matplotlib, which ``pip install 'dpnoise[plot]'`` brings."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from dpnoise import _calls
from dpnoise._display import one_line
from dpnoise._errors import ParameterError
from dpnoise._files import atomic_write, checked_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["SUFFIXES", "chart", "histogram", "require_matplotlib"]

SUFFIXES: Final = (".png", ".svg", ".pdf")
"""The file types that a chart can be written as."""

_MOST_BARS: Final = 60  # more are illegible, and the figure would exceed matplotlib's limits
_COLOURS: Final = ("#77aadd", "#ee8866", "#44bb99", "#ffaabb", "#bbcc33", "#99ddff")  # distinct for the colour-blind
_INK: Final = "#222222"


def require_matplotlib() -> None:
    """Raise an ImportError that says what to install, if matplotlib is not."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise ImportError("a chart needs matplotlib: pip install 'dpnoise[plot]'") from error


@contextmanager
def chart(
    path: str | PathLike[str] | None = None, *, ax: "Axes | None" = None, height: float = 5.0
) -> Iterator["Axes"]:
    """Show, write or give the chart that the block draws.

    Parameters
    ----------
    path : path-like, optional
        The file of the chart; the suffix (one of `SUFFIXES`) chooses the format. The file appears only when the block
        has succeeded. Without a file the figure is pyplot's: a notebook shows it, and so does ``pyplot.show()``.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on instead of those of a new figure. Give at most one of `path` and `ax`.
    height : float, default 5.0
        The height of a new figure, in inches; its width is 9.

    Yields
    ------
    matplotlib.axes.Axes
        The axes to draw on.
    """
    if path is not None and ax is not None:
        raise ParameterError(f"path must be None when ax is given, got {str(path)!r}: save the figure of ax yourself")
    suffix = None if path is None else checked_path(path).suffix.lower()
    if suffix is not None and suffix not in SUFFIXES:
        raise ParameterError(f"path must end in one of {', '.join(SUFFIXES)}, got {str(path)!r}")
    require_matplotlib()
    from matplotlib.axes import Axes

    if ax is None:
        ax = _figure(height, shown=path is None).add_subplot()
    elif not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib axes, got {type(ax).__name__}")
    ax.set_prop_cycle(color=_COLOURS)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    yield ax
    if path is not None:
        _write(ax.figure, Path(path))


def _figure(height: float, *, shown: bool) -> "Figure":
    size = (9.0, height)
    if shown:
        from matplotlib import pyplot

        return pyplot.figure(figsize=size, layout="constrained")
    from matplotlib.figure import Figure

    # Without pyplot no window system is looked for and no global state is left behind.
    return Figure(figsize=size, layout="constrained")


def _write(figure: Any, path: Path) -> None:
    suffix = path.suffix.lower()
    rendered = io.BytesIO()
    undated = {} if suffix == ".png" else {"Date" if suffix == ".svg" else "CreationDate": None}
    figure.savefig(rendered, format=suffix[1:], dpi=150, metadata=undated)
    with atomic_write(path) as file:
        file.write(rendered.getvalue())


def histogram(
    labels: Sequence[str],
    estimates: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]],
    true_counts: ArrayLike | None = None,
    title: str | None = None,
    *,
    path: str | PathLike[str] | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw a bar chart of one or more estimated histograms with their confidence intervals.

    Parameters
    ----------
    labels : sequence of str
        The names of the ``k`` bars.
    estimates : mapping of str to (counts, lower, upper)
        The name of each series, of which there is at least one, and its three arrays of shape (k,): the estimates and
        the ends of their intervals.
    true_counts : array_like, shape (k,), optional
        The exact counts where they are known; drawn as marks. They sort the bars; without them the first series does.
        Of more than 60 labels only the 60 uppermost are drawn, and the chart says so.
    title : str, optional
        A line above the chart. By default there is none.
    path : path-like, optional
        The file of the chart; the suffix (one of `SUFFIXES`) chooses the format. Without a file the figure is pyplot's:
        a notebook shows it, and so does ``pyplot.show()``.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on instead of those of a new figure. Give at most one of `path` and `ax`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the chart.
    """
    series = {name: np.array(columns, dtype=np.float64) for name, columns in estimates.items()}
    truth = None if true_counts is None else np.array(true_counts, dtype=np.float64)
    _check_shapes(len(labels), series, truth)
    order = np.argsort(next(iter(series.values()))[0] if truth is None else truth, kind="stable")[-_MOST_BARS:]
    with chart(path, ax=ax, height=1.6 + len(order) * (0.22 + 0.17 * len(series))) as axes:
        shown = {name: columns[:, order] for name, columns in series.items()}
        _draw(axes, shown, None if truth is None else truth[order])
        # Labels are data, not markup: "$" in one of them must not start a formula.
        axes.set_yticks(np.arange(len(order)), [one_line(labels[i]) for i in order], parse_math=False)
        of = f" (the {len(order)} largest of {len(labels):,})" if len(order) < len(labels) else ""
        axes.set_xlabel(f"count{of}; the whiskers are confidence intervals", color=_INK)
        if title is not None:
            axes.set_title(title, loc="left", pad=28, fontsize=12, fontweight="bold", color=_INK, parse_math=False)
    return axes


def _check_shapes(k: int, series: Mapping[str, np.ndarray], truth: np.ndarray | None) -> None:
    if not series:
        raise ParameterError("estimates must hold at least one series, got none")
    for name, columns in series.items():
        if columns.shape != (3, k):
            raise ParameterError(f"estimates[{name!r}] must be three arrays of length {k}, got {columns.shape}")
    if truth is not None and truth.shape != (k,):
        raise ParameterError(f"true_counts must have length {k}, got the shape {truth.shape}")


def _draw(axes: "Axes", series: Mapping[str, np.ndarray], truth: np.ndarray | None) -> None:
    """Draw the bars of every series, already in the order from bottom to top, and the marks of the true counts."""
    rows = np.arange(next(iter(series.values())).shape[1])
    thickness = 0.74 / len(series)
    for i, (name, (counts, lower, upper)) in enumerate(series.items()):
        centre = rows + 0.37 - (i + 0.5) * thickness  # the first series is uppermost, as in the legend
        whiskers = np.maximum([counts - lower, upper - counts], 0.0)  # rounding can leave an end on the wrong side
        axes.barh(
            centre,
            counts,
            height=thickness,
            xerr=whiskers,
            label=name,
            color=_COLOURS[i % len(_COLOURS)],
            error_kw={"ecolor": _INK, "elinewidth": 1.2, "capsize": 2.5, "capthick": 1.2},
        )
    if truth is not None:
        axes.vlines(truth, rows - 0.45, rows + 0.45, color=_INK, linewidth=2.0, label="true count", zorder=4)
    axes.axvline(0.0, color=_INK, linewidth=0.8)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="x", color="#dddddd", linewidth=0.8)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(series) + 1, frameon=False, borderaxespad=0.2)


_calls.explain(__name__)
