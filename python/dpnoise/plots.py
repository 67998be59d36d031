"""Charts. They need matplotlib, which the extra ``plot`` brings."""

import io
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from os import PathLike
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnoise import _calls
from dpnoise._display import escaped, one_line
from dpnoise._errors import ParameterError, require
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

# Texts are data, not markup: "$" in one of them must not start a formula.
_TEXT: Final[dict[str, Any]] = {"color": _INK, "parse_math": False}


def require_matplotlib() -> None:
    """Raise an ImportError that says what to install, if matplotlib is not."""
    require("matplotlib", "plot", "a chart needs")


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
    with _charts(path, ax, [height]) as [axes]:
        yield axes


@contextmanager
def _charts(
    path: str | PathLike[str] | None, ax: "Axes | None", heights: Sequence[float], columns: int = 1, around: float = 0.0
) -> Iterator[list["Axes"]]:
    """Prepare the axes of rows of some heights, in columns that share what is written beside a row.

    ``around`` is the height of what stands above and below them.
    """
    if path is not None and ax is not None:
        raise ParameterError(f"path must be None when ax is given, got {str(path)!r}: save the figure of ax yourself")
    suffix = None if path is None else checked_path(path).suffix.lower()
    if suffix is not None and suffix not in SUFFIXES:
        raise ParameterError(f"path must end in one of {', '.join(SUFFIXES)}, got {str(path)!r}")
    require_matplotlib()
    from matplotlib.axes import Axes

    if ax is None:
        figure = _figure(max(9.0, 3.5 * columns), sum(heights) + around, shown=path is None)
        ratios = {"height_ratios": heights}
        grid = figure.subplots(len(heights), columns, squeeze=False, sharey="row", gridspec_kw=ratios)
        charts: list[Axes] = grid.ravel().tolist()
    elif not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib axes, got {type(ax).__name__}")
    else:
        charts = [ax]
    for axes in charts:
        axes.set_prop_cycle(color=_COLOURS)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    yield charts
    if path is not None:
        _write(charts[0].figure, Path(path))


def _figure(width: float, height: float, *, shown: bool) -> "Figure":
    size = (width, height)
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
    with warnings.catch_warnings():
        # Boxes in the chart show it, and the warning has lines of our source.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(rendered, format=suffix[1:], dpi=150, metadata=undated)
    with atomic_write(path) as file:
        file.write(rendered.getvalue())


def histogram(
    labels: Sequence[str],
    estimates: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]],
    true_counts: ArrayLike | None = None,
    title: str | None = None,
    caption: str | None = None,
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
    caption : str, optional
        A line below the chart. By default there is none.
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
    order = np.argsort(next(iter(series.values()))[0] if truth is None else truth, kind="stable")[-_MOST_BARS:][::-1]
    of = f" (the {len(order)} largest of {len(labels):,})" if len(order) < len(labels) else ""
    panel = Panel(
        f"count{of}; the whiskers are confidence intervals",
        [labels[i] for i in order],
        {name: (counts[order], lower[order], upper[order]) for name, (counts, lower, upper) in series.items()},
        truth=None if truth is None else truth[order],
    )
    return panels([panel], title, caption, path=path, ax=ax)[0]


def _check_shapes(k: int, series: Mapping[str, np.ndarray], truth: np.ndarray | None) -> None:
    if not series:
        raise ParameterError("estimates must hold at least one series, got none")
    for name, columns in series.items():
        if columns.shape != (3, k):
            raise ParameterError(f"estimates[{name!r}] must be three arrays of length {k}, got {columns.shape}")
    if truth is not None and truth.shape != (k,):
        raise ParameterError(f"true_counts must have length {k}, got the shape {truth.shape}")


class Panel(NamedTuple):
    """What a chart shows: numbers by row, as bars with whiskers or as points.

    Attributes
    ----------
    axis : str
        What the numbers are.
    labels : sequence of str or of float
        The names of the ``k`` rows, from the top. Of more than 60 only the first 60 are drawn, and the chart says so.
        Or, if ``rows`` is given, numbers: where the rows stand on an axis of their own.
    series : mapping of str to arrays
        The numbers and the ends of their intervals, three arrays of shape (k,), for bars, of which there is none for
        NaN; or one array of numbers, dates or times, of shape (k,), or (k, p) for several in each row, for points. A
        series with a name is in the legend.
    rows : str, default ""
        What the rows are, if they are numbers.
    truth : ndarray, shape (k,), optional
        The exact counts where they are known; drawn as marks.
    """

    axis: str
    labels: Sequence[Any]
    series: Mapping[str, tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | NDArray[Any]]
    rows: str = ""
    truth: NDArray[np.float64] | None = None


def panels(
    drawn: Sequence[Panel],
    title: str | None = None,
    caption: str | None = None,
    *,
    beside: bool = False,
    path: str | PathLike[str] | None = None,
    ax: "Axes | None" = None,
) -> "list[Axes]":
    """Draw charts in one figure, one below the other; or ``beside`` each other, if they have the same labels.

    On ``ax`` there is one chart. The other parameters, and what a notebook shows, are those of `histogram`.
    """
    heights = [_height(panel) for panel in drawn]
    if beside:
        heights = [max(heights)]
    around = 0.3 * (title is not None) + 0.3 * (caption is not None)
    with _charts(path, ax, heights, len(drawn) if beside else 1, around) as charts:
        lines = [_draw(axes, panel) for axes, panel in zip(charts, drawn, strict=True)]
        figure: Any = charts[0].figure
        if title is not None and ax is not None:
            title = _folded(title, _width(ax), 13)
            ax.set_title(title, loc="left", pad=10 + 18 * lines[0], fontsize=12, fontweight="bold", **_TEXT)
        elif title is not None:
            title = _folded(title, figure.get_figwidth(), 13)
            figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold", **_TEXT)
        if caption is not None and ax is not None:
            ax.set_xlabel(f"{ax.get_xlabel()}\n{_folded(caption, _width(ax), 10)}", **_TEXT)
        elif caption is not None:
            figure.supxlabel(_folded(caption, figure.get_figwidth(), 9), x=0.01, ha="left", fontsize=9, **_TEXT)
    return charts


def _height(panel: Panel) -> float:
    """Return the height of a chart in inches."""
    if panel.rows:
        return 3.6
    bars = max(1, sum(isinstance(series, tuple) for series in panel.series.values()))
    return 0.9 + 0.4 * any(panel.series) + min(len(panel.labels), _MOST_BARS) * (0.22 + 0.17 * bars)


def _draw(axes: "Axes", panel: Panel) -> int:
    """Draw a chart, and return how many lines its legend has."""
    shown, axis = slice(None), panel.axis
    if len(panel.labels) > _MOST_BARS and not panel.rows:
        shown, axis = slice(_MOST_BARS), f"{axis} (the first {_MOST_BARS} of {len(panel.labels):,})"
    elif len(panel.labels) == 0:
        axis = f"{axis} (none)"
    labels = panel.labels[shown]
    rows = np.array(labels) if panel.rows else np.arange(len(labels))[::-1]
    handles = _draw_series(axes, panel, rows, shown)
    width = _width(axes) - _set_ticks(axes, panel)
    if panel.truth is not None:
        marks = axes.vlines(panel.truth, rows - 0.45, rows + 0.45, color=_INK, linewidth=2.0, zorder=4)
        handles.append(("true count", marks))
    if panel.rows:
        axes.set_ylim(0.0, 1.0)
        axes.set_ylabel(panel.rows, **_TEXT)
    else:
        axes.set_ylim(-0.6, len(rows) - 0.4)
        names = list(map(one_line, labels))
        axes.set_yticks(rows, names, parse_math=False)
        width -= max(map(len, names), default=0) / 13
    axes.set_xlabel(_folded(axis, width, 10), **_TEXT)
    axes.grid(axis="both" if panel.rows else "x", color="#dddddd", linewidth=0.8)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return _add_legend(axes, [(one_line(name), handle) for name, handle in handles if name])


def _draw_series(axes: "Axes", panel: Panel, rows: NDArray[Any], shown: slice) -> list[tuple[str, Any]]:
    """Draw the bars or points of every series, and return its name and what stands for it in the legend."""
    handles: list[tuple[str, Any]] = []
    thickness = 0.74 / len(panel.series)
    for i, (name, series) in enumerate(panel.series.items()):
        colour = _COLOURS[i % len(_COLOURS)]
        if isinstance(series, tuple):
            numbers, lower, upper = (column[shown] for column in series)
            centre = rows + 0.37 - (i + 0.5) * thickness  # the first series is uppermost, as in the legend
            handle: Any = axes.barh(centre, numbers, height=thickness, color=colour)
            middle, half = (lower + upper) / 2, np.maximum(upper - lower, 0.0) / 2
            look: dict[str, Any] = {"ecolor": _INK, "elinewidth": 1.2, "capsize": 2.5, "capthick": 1.2}
            axes.errorbar(middle, centre, xerr=half, fmt="none", **look)
            axes.axvline(0.0, color=_INK, linewidth=0.8)
        else:
            handle, *_ = axes.plot(series[shown], rows, "o", color=colour, markeredgecolor=_INK, clip_on=False)
        handles.append((name, handle))
    return handles


def _set_ticks(axes: "Axes", panel: Panel) -> float:
    """Choose so few numbers or dates that they have room beside each other.

    It returns how many inches of the line below are left for what dates have in common, such as their year.
    """
    width = _width(axes)
    if any(not isinstance(series, tuple) and series.dtype.kind not in "iuf" for series in panel.series.values()):
        import matplotlib.dates

        dates: Any = matplotlib.dates
        locator = dates.AutoDateLocator(minticks=3, maxticks=max(4, int(1.2 * width)))
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        # The margins would go beyond the years that there are, as about 9999-12-31, which often stands for no end.
        first, last = dates.date2num([datetime.min, datetime(9999, 12, 31, 23, 59)])
        axes.set_xlim(*np.clip(axes.get_xlim(), first, last))
        return 1.4
    axes.locator_params(axis="x", nbins=max(3, min(10, int(1.6 * width))))
    axes.xaxis.set_major_formatter("{x:,.10g}")
    return 0.0


def _add_legend(axes: "Axes", named: Sequence[tuple[str, Any]]) -> int:
    """Add a legend above a chart, and return how many lines it has."""
    if not named:
        return 0
    names, handles = zip(*named, strict=True)
    columns = max(1, min(len(named), int(13 * _width(axes)) // (9 + max(map(len, names)))))
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    legend = axes.legend(handles, names, ncols=columns, frameon=False, **place)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return math.ceil(len(named) / columns)


def _width(axes: "Axes") -> float:
    """Return about how many inches there are for a chart and the labels beside it."""
    return float(1.2 * axes.bbox.width / axes.figure.dpi)  # the layout will use the margins


def _folded(text: str, width: float, size: float) -> str:
    """Return a text in lines of some inches, for the size of a font in points; bold fonts are wider than theirs."""
    return fill(escaped(text), max(20, int(width * 125 / size)))


_calls.explain(__name__)
