"""What the hooks of the site make of pages: links to the reference, to the files that people edit, and a card."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("mkdocs", reason="mkdocs, which builds the site, is not installed: make docs")

import class_links
import edit_links
import published

DOCS = Path(__file__).parents[2] / "docs"


def page_of(path):
    return SimpleNamespace(file=SimpleNamespace(src_uri=path, abs_src_path=str(DOCS / path)), edit_url=None)


@pytest.mark.parametrize(
    ("path", "edited"),
    [
        ("guide/tables.md", "docs/guide/tables.md"),
        ("proofs/alias.md", "rust/core/src/samplers/alias.md"),
        ("reference/conventions.md", "docs/reference/conventions.md"),
        ("reference/sgd.md", None),
        ("reference/local/index.md", None),
        ("records/all.md", None),
    ],
)
def test_a_page_is_edited_where_people_write_it(path, edited):
    page = page_of(path)
    config = SimpleNamespace(repo_url="https://example.com")
    edit_links.on_page_markdown((DOCS / path).read_text(encoding="utf-8"), page=page, config=config)
    assert page.edit_url == (edited and f"https://example.com/edit/main/{edited}")


def test_every_recommended_class_is_a_link():
    class_links.on_config(None)
    path = "guide/choosing_a_protocol.md"
    text = class_links.on_page_markdown((DOCS / path).read_text(encoding="utf-8"), page=page_of(path))
    recommended = text.partition("## Recommendations")[2].partition("```")[0]
    linked = re.findall(r"\[`(\w+)`\]\[dpnoise\.local\.\1\]", recommended)
    named = {name for name in re.findall(r"`(\w+)`", recommended) if name not in ("local", "Sampled")}
    assert len(linked) == len(set(linked)) == len(named) >= 8


def test_code_headings_and_links_stay_as_they_are():
    class_links.on_config(None)
    kept = "# `Rappor`\n```python\n`Rappor`\n```\n[`Rappor`](x.md) [`Rappor`][y] `Nothing`\n"
    assert class_links.on_page_markdown(kept, page=page_of("guide/x.md")) == kept
    assert class_links.on_page_markdown("`Rappor`", page=page_of("proofs/x.md")) == "`Rappor`"
    linked = "[`Rappor`][dpnoise.local.Rappor]"
    given, expected = "`Rappor` `Rappor`\n# x\n`local.Rappor`\n", f"{linked} `Rappor`\n# x\n"
    assert class_links.on_page_markdown(given, page=page_of("guide/x.md")).startswith(expected + "[`local.Rappor`][")


def test_the_card_has_the_size_that_is_shown():
    drawn = published.card("dpnoise", "Publish statistics about people")
    assert drawn[:8] == b"\x89PNG\r\n\x1a\n"
    assert [int.from_bytes(drawn[i : i + 4], "big") for i in (16, 20)] == [1200, 630]
