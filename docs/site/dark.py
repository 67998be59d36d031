"""MkDocs hook: each chart of a page is there a second time, in colours for dark pages, and a page shows one of the two.

The colours are those of the playground, which docs/playground/playground.css has, and others beside them.
"""

from __future__ import annotations

import re
from typing import Any

INK = "#e2e4e9"
ON_DARK = {
    "#000000": INK,
    "#222222": INK,
    "#5b5b5b": "#f0f0f0",
    "#dddddd": "#464b58",
    "#ffffff": "none",  # the page behind the chart
    # Charts of the benchmarks and the tutorial.
    "#3f51b5": "#8c9eff",
    "#00805d": "#44bb99",
    "#b35c00": "#ffb74d",
    "#b0508a": "#d68ac0",
    "#c62828": "#ff6e60",
    # Matplotlib's first four.
    "#1f77b4": "#8c9eff",
    "#ff7f0e": "#ffb74d",
    "#2ca02c": "#44bb99",
    "#d62728": "#ff6e60",
} | {colour: colour for colour in ("#77aadd", "#ee8866", "#44bb99", "#ffaabb", "#bbcc33", "#99ddff")}  # dpnoise.plots
"""What the colours of a chart become on a dark page."""

_COLOUR = re.compile(r"(?<=: )#[0-9a-f]{6}\b")
_SHOWN = re.compile(r'<img ([^>]*)src="([^"]+)\.svg"')


def on_files(files: Any, *, config: Any) -> None:
    """Add the second charts to the files of the site."""
    from mkdocs.structure.files import File  # the tests draw without MkDocs

    for file in [file for file in files if file.src_uri.endswith(".svg") and "/" in file.src_uri]:
        dark = darkened(file.content_string, file.src_uri)
        files.append(File.generated(config, file.src_uri.replace(".svg", "_dark.svg"), content=dark))


def darkened(picture: str, name: str) -> str:
    """Return a chart in the colours for dark pages; text that has no colour is black otherwise."""

    def dark(colour: re.Match[str]) -> str:
        if colour[0] not in ON_DARK:
            raise ValueError(f"{name} has the colour {colour[0]}, for which docs/site/dark.py knows none on dark pages")
        return ON_DARK[colour[0]]

    return _COLOUR.sub(dark, picture).replace("<svg ", f'<svg fill="{INK}" ', 1)


def on_page_content(content: str, **_: Any) -> str:
    """Show a chart on light pages, and the other one on dark pages; the browser fetches what is shown."""
    one = r'<img \1loading="lazy" src="\2{}.svg#only-{}"'
    return _SHOWN.sub(f"{one.format('_dark', 'dark')} />{one.format('', 'light')}", content)
