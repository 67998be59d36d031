"""Every chapter of the tutorial shows pictures, which read on the light and on the dark site."""

import re
from pathlib import Path

import pictures
import pytest

CHAPTERS = [path for path in (Path(__file__).parents[2] / "docs/tutorial").glob("*.md") if path.stem != "index"]
BACKGROUNDS = ("#ffffff", "#1e2129")
IMAGE = re.compile(r"!\[([^\]]*)\]\((\w+)\.svg\)")


def shown(page):
    return {name: " ".join(words.split()) for words, name in IMAGE.findall(page)}


def luminance(colour):
    """Return the relative luminance of a colour, by the Web Content Accessibility Guidelines."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * channel for weight, channel in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(colour, background):
    low, high = sorted(luminance(one) + 0.05 for one in (colour, background))
    return high / low


def unreadable(svg):
    """Return the colours of a picture that do not stand out from both backgrounds."""
    return {
        colour for colour in re.findall(r"#[0-9a-f]{6}", svg) if min(contrast(colour, on) for on in BACKGROUNDS) < 3
    }


def test_every_chapter_shows_pictures_and_every_picture_is_shown():
    found = [shown(chapter.read_text(encoding="utf-8")) for chapter in CHAPTERS]
    assert len(found) == 13
    assert all(found)
    assert sorted(name for names in found for name in names) == sorted(draw.__name__ for draw in pictures.PICTURES)
    assert all(len(words) > 40 for names in found for words in names.values())


@pytest.mark.parametrize("draw", pictures.PICTURES, ids=lambda draw: draw.__name__)
def test_a_picture_reads_on_both_backgrounds(draw):
    svg = pictures.picture(draw)
    assert "<svg" in svg
    assert unreadable(svg) == set()


def test_black_white_and_pale_colours_are_noticed():
    assert unreadable("fill: #000000; fill: #ffffff; fill: #ffd9a0; fill: #808080") == {"#000000", "#ffffff", "#ffd9a0"}


def test_the_labels_are_text():
    assert ">M(2)</text>" in pictures.picture(pictures.simplex)
