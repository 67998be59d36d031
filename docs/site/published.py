"""MkDocs hook: what only the published site needs: a card where its address is shared, and a choice of versions.

`mike deploy 0.1 latest` builds the site into the folder 0.1 of the branch gh-pages. Other builds stand alone.
"""

from __future__ import annotations

import io
import os
from textwrap import fill
from typing import Any

from benchmarks import COLOURS
from matplotlib.figure import Figure


def on_config(config: Any) -> None:
    """Offer other versions if there are any."""
    if "MIKE_DOCS_VERSION" in os.environ:
        config.extra["version"] = {"provider": "mike", "default": "latest"}


def on_files(files: Any, *, config: Any) -> None:
    """Add the card to the files of the site."""
    from mkdocs.structure.files import File  # the tests draw without MkDocs

    files.append(File.generated(config, "card.png", content=card(config.site_name, config.site_description)))


def card(name: str, description: str) -> bytes:
    """Draw the card: what the project is, beside the logo's discrete Laplace distribution."""
    figure = Figure(figsize=(12, 6.3), dpi=100, facecolor=COLOURS[0])
    axes = figure.add_axes((0.66, 0.18, 0.28, 0.64))
    axes.bar(range(-3, 4), [2.0 ** -abs(z) for z in range(-3, 4)], color="white", width=0.75)
    axes.set_axis_off()
    figure.text(0.07, 0.72, name, color="white", fontsize=56, fontweight="bold")
    figure.text(0.07, 0.64, fill(description, 30), color="white", fontsize=27, linespacing=1.4, va="top")
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    return drawn.getvalue()
