"""Draw the chart of ``dpnoise demo`` for README.md, on light and on dark pages: docs/demo.svg and docs/demo_dark.svg.

    python docs/site/demo_picture.py [FOLDER]

It is of one random run. The text remains text, and legible where a telephone shrinks the chart to its width.
"""

import io
import re
import sys
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from dpnoise import datasets
from dpnoise.cli import demo

FOLDER = Path(__file__).parents[1]
_INK = "#222222"
ON_DARK = {_INK: "#e6edf3", "#dddddd": "#3d444d"}
"""What the ink and the grid of `dpnoise.plots` become on a dark page."""

_STYLE = dict.fromkeys(
    ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "patch.edgecolor"), _INK
) | {"svg.fonttype": "none", "svg.hashsalt": "dpnoise", "savefig.transparent": True}


def main(folder: Path = FOLDER) -> None:
    """Write both files."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(6.1, 4.2), layout="constrained")
        demo.draw(demo.compare(1.0, None), ax=figure.add_subplot())
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg")
    light = small(drawn.getvalue())
    (folder / "demo.svg").write_text(light, encoding="utf-8")
    (folder / "demo_dark.svg").write_text(on_dark(light), encoding="utf-8")
    print(datasets.ADULT_ATTRIBUTION)


def on_dark(picture: str) -> str:
    """Return a picture for a light page in the colours for a dark one."""
    for light, dark in ON_DARK.items():
        picture = picture.replace(light, dark)
    return picture


def small(picture: str) -> str:
    """Drop what nobody sees: metadata, lists of fonts, all digits after the first decimal, and line ends."""
    picture = re.sub(r"<metadata>.*?</metadata>", "", picture, flags=re.DOTALL)
    picture = re.sub(r"font-family: [^;\"]*", "font-family: sans-serif", picture)
    picture = re.sub(r"(\d\.\d)\d+", r"\1", picture)
    return re.sub(r">\s+<", "><", re.sub(r"\s*\n\s*", " ", picture)).strip() + "\n"


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
