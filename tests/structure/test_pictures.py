"""Every chapter of the tutorial shows pictures, and every picture is shown."""

import re
from pathlib import Path

import pictures

CHAPTERS = [path for path in (Path(__file__).parents[2] / "docs/tutorial").glob("*.md") if path.stem != "index"]
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
