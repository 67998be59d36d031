"""Every chapter of the tutorial shows pictures, every picture is shown, and dark pages have colours of their own."""

import re
from pathlib import Path

import dark
import pictures
import pytest

DOCS = Path(__file__).parents[2] / "docs"
CHAPTERS = [path for path in (DOCS / "tutorial").glob("*.md") if path.stem not in ("index", "adult.zh")]
IMAGE = re.compile(r"!\[([^\]]*)\]\((\w+)\.svg\)")


def shown(page):
    return {name: " ".join(words.split()) for words, name in IMAGE.findall(page)}


def test_every_chapter_shows_pictures_and_every_picture_is_shown():
    found = [shown(chapter.read_text(encoding="utf-8")) for chapter in CHAPTERS]
    assert len(found) == 13
    assert all(found)
    assert sorted(name for names in found for name in names) == sorted(draw.__name__ for draw in pictures.PICTURES)
    assert all(len(words) > 40 for names in found for words in names.values())


def test_the_labels_are_text():
    assert ">M(2)</text>" in pictures.picture(pictures.simplex)


def luminance(colour):
    """Return the relative luminance of WCAG 2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_colours_for_dark_pages_stand_out_and_differ():
    page = luminance("#1e2129")
    drawn = [colour for colour in dark.ON_DARK.values() if colour not in ("none", dark.ON_DARK["#dddddd"])]
    assert min((luminance(colour) + 0.05) / (page + 0.05) for colour in drawn) >= 4.5
    for together in (pictures.COLOURS, ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728")):
        assert len({dark.ON_DARK[colour] for colour in together}) == len(together)


def test_every_committed_chart_has_colours_for_dark_pages():
    charts = [path for path in DOCS.glob("*/*.svg") if path.parent.name in ("guide", "examples")]
    assert len(charts) > 5
    for path in charts:
        assert dark.INK in dark.darkened(path.read_text(encoding="utf-8"), path.name)
    with pytest.raises(ValueError, match=r"x\.svg has the colour #123456"):
        dark.darkened('<svg ><path style="fill: #123456"/></svg>', "x.svg")
    shown = dark.on_page_content('<img alt="a" src="../x.svg" />')
    assert re.findall(r'src="([^"]+)"', shown) == ["../x_dark.svg#only-dark", "../x.svg#only-light"]
