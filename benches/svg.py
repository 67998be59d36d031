"""Pictures of amounts on logarithmic axes, as SVG that needs no font and suits light and dark pages.

Text is 14 units high in pictures 440 units wide, so that it can be read on a telephone. A label has a line of its own,
so that none meets another. Kinds differ by shape as well as by colour, which are nearly those that Okabe and Ito chose
for the colour-blind. A browser chooses light or dark by the colour scheme of the page. The ground is part of the
picture.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

WIDTH, MARGIN, LINE, ROW = 440, 16, 20, 36
SHAPES = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",  # a disc
    "M-4.5-4.5h9v9h-9z",  # a square
    "M0-6.5 6.5 0 0 6.5-6.5 0z",  # a diamond
    "M0-6 6 5-6 5z",  # a triangle
    "M0 6 6-5-6-5z",  # a triangle on its tip
    "M-2-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",  # a plus
)
LIGHT = {"card": "#ffffff", "text": "#1f2328", "grid": "#d0d7de"}
DARK = {"card": "#1e2129", "text": "#e6e8ee", "grid": "#434857"}
LIGHT_COLOURS = ("#0072b2", "#00805d", "#b35c00", "#b0508a", "#5b5b5b", "#c23b22")
DARK_COLOURS = ("#56b4e9", "#22c79a", "#e69f00", "#dd8fbd", "#b5b5b5", "#ff7f50")
# A label covers the lines beneath it.
STYLE = (
    "text{font:14px system-ui,sans-serif;paint-order:stroke;stroke-width:4px;stroke-linejoin:round}"
    "text.title{font-weight:bold;font-size:16px}"
    "path.line{fill:none;stroke-width:2}"
    "path.dashed{stroke-width:1.5;stroke-dasharray:5 4}"
)


class Mark(NamedTuple):
    """An amount, and the number of its kind, which has a shape and a colour."""

    amount: float
    kind: int


class Row(NamedTuple):
    """What a picture of rows says of an entrant or of a piece of work."""

    label: str
    text: str
    """The amounts in words, at the right of the label."""
    marks: Sequence[Mark]


class LogAxis:
    """Where on a logarithmic axis an amount stands, from `start` to `end`."""

    def __init__(self, amounts: Iterable[float], start: float, end: float) -> None:
        ordered = sorted(amounts)
        low, high = ordered[0], ordered[-1]
        few = high / low < 50  # then 2 and 5 have ticks, too
        steps = [
            digit * 10.0**power
            for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            for digit in ((1, 2, 5) if few else (1,))
        ]
        first = max(step for step in steps if step <= low)
        last = min((step for step in steps if step >= high and step > first), default=10 * first)
        self.ticks = [step for step in steps if first <= step <= last]
        self._at_one = start - (end - start) * math.log10(first) / math.log10(last / first)
        self._decade = (end - start) / math.log10(last / first)

    def __call__(self, amount: float) -> float:
        return self._at_one + self._decade * math.log10(amount)


def of_rows(title: str, axis_title: str, kinds: Mapping[int, str], rows: Sequence[Row]) -> str:
    """Draw a line for every row, with its marks; `kinds` explains them."""
    top = _height_of_head(kinds)
    bottom = top + ROW * len(rows) + 6
    axis = LogAxis((mark.amount for row in rows for mark in row.marks), MARGIN + 8, WIDTH - MARGIN - 12)

    def parts() -> Iterator[str]:
        for tick in axis.ticks:
            yield _line("grid", axis(tick), top, axis(tick), bottom)
            yield _text(axis(tick), bottom + 16, _tick(tick), "middle")
        yield _text(WIDTH / 2, bottom + 36, f"{axis_title}, logarithmic", "middle")
        for i, row in enumerate(rows):
            y = top + ROW * i + 16
            yield _text(MARGIN, y, row.label)
            yield _text(WIDTH - MARGIN, y, row.text, "end")
            amounts = [mark.amount for mark in row.marks]
            yield _line("grid", axis(min(amounts)), y + 12, axis(max(amounts)), y + 12)
            # The first kind is drawn last, above the others.
            for mark in sorted(row.marks, key=lambda mark: -mark.kind):
                yield _mark(mark.kind, axis(mark.amount), y + 12)

    return _svg(title, kinds, bottom + 46, parts())


def of_lines(
    title: str,
    axis_titles: tuple[str, str],
    kinds: Mapping[int, str],
    lines: Mapping[int, Mapping[float, float]],
    dashed: tuple[str, Mapping[int, Mapping[float, float]]] = ("", {}),
) -> str:
    """Draw a line for every kind, from its amounts by what they depend on; both axes are logarithmic.

    `dashed` has the lines of another entrant, and its name.
    """
    top = _height_of_head(kinds) + 2 * LINE
    bottom = top + 260
    both = [*lines.values(), *dashed[1].values()]
    across = LogAxis((x for line in both for x in line), 64, WIDTH - MARGIN - 20)
    up = LogAxis((y for line in both for y in line.values()), bottom, top)

    def path(style: str, line: Mapping[float, float]) -> str:
        points = "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in sorted(line.items()))
        return f'<path class="{style}" d="M{points}"/>'

    def parts() -> Iterator[str]:
        yield _text(MARGIN, top - 14, f"{axis_titles[1]}, logarithmic")
        for tick in up.ticks:
            yield _line("grid", 56, up(tick), WIDTH - MARGIN, up(tick))
            yield _text(50, up(tick) + 5, _tick(tick), "end")
        for tick in across.ticks:
            yield _line("grid", across(tick), bottom, across(tick), bottom + 5)
            yield _text(across(tick), bottom + 20, _tick(tick), "middle")
        yield _text(WIDTH / 2, bottom + 40, f"{axis_titles[0]}, logarithmic", "middle")
        if dashed[1]:
            yield _text(MARGIN, top - 14 - LINE, f"dashed: {dashed[0]}")
        for kind, line in dashed[1].items():
            yield path(f"line dashed k{kind}", line)
        for kind, line in sorted(lines.items(), reverse=True):
            yield path(f"line k{kind}", line)
            yield from (_mark(kind, across(x), up(y)) for x, y in line.items())

    return _svg(title, kinds, bottom + 50, parts())


def _svg(title: str, kinds: Mapping[int, str], height: float, parts: Iterable[str]) -> str:
    legend = [
        part
        for i, (kind, text) in enumerate(kinds.items())
        for part in (_mark(kind, MARGIN + 6, 45 + LINE * i), _text(MARGIN + 20, 50 + LINE * i, text))
    ]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:g}" viewBox="0 0 {WIDTH} {height:g}" '
        'role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_style()}</style>",
        '<rect class="card" width="100%" height="100%" rx="6"/>',
        f'<text class="title" x="{MARGIN}" y="26">{escape(title)}</text>',
        *legend,
        *parts,
        "</svg>\n",
    ]
    return "\n".join(lines)


def _height_of_head(kinds: Mapping[int, str]) -> int:
    return 44 + LINE * len(kinds)


def _style() -> str:
    def scheme(ground: Mapping[str, str], colours: Sequence[str]) -> str:
        kinds = "".join(f".k{i}{{fill:{colour};stroke:{colour}}}" for i, colour in enumerate(colours))
        return (
            f".card{{fill:{ground['card']}}}text{{fill:{ground['text']};stroke:{ground['card']}}}"
            f".grid{{stroke:{ground['grid']}}}{kinds}.mark{{stroke:{ground['card']}}}"
        )

    dark = f"@media(prefers-color-scheme:dark){{{scheme(DARK, DARK_COLOURS)}}}"
    return STYLE + scheme(LIGHT, LIGHT_COLOURS) + dark


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}"{at}>{escape(text)}</text>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def _mark(kind: int, x: float, y: float) -> str:
    return f'<path class="k{kind} mark" transform="translate({x:.1f} {y:.1f})" d="{SHAPES[kind]}"/>'


def _tick(amount: float) -> str:
    if 0.001 < amount < 9999:
        return f"{amount:g}"
    return "10" + f"{math.log10(amount):.0f}".translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
