"""MkDocs hook: the name of a class in a guide is a link to the reference, where a section or a row has it first."""

from __future__ import annotations

import re
from typing import Any

from reference import ROOT, shown

_PARTS = re.compile(r"^(?=#+ |\| )", re.MULTILINE)
_NAMES = re.compile(
    r"^```.*?^```$|^#+ .*?$|\[[^\]]*\][(\[]|`(?:dpnoise\.)?(?:local\.)?([A-Z]\w+)`", re.MULTILINE | re.DOTALL
)
"""Blocks of code, headings and texts of links, which stay as they are, or the name of a class."""


def on_config(config: Any) -> None:
    """Find the classes of the reference whose names no other one has."""
    global _paths
    pages = (ROOT / "docs/reference").glob("**/*.md")
    by_name: dict[str, set[str]] = {}
    for path in [path for page in pages for path, _ in shown(page.read_text(encoding="utf-8"))]:
        by_name.setdefault(path.rpartition(".")[2], set()).add(path)
    _paths = {name: paths.pop() for name, paths in by_name.items() if len(paths) == 1}


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Link the names."""
    if not page.file.src_uri.startswith(("guide/", "start.md", "uses.md")):
        return markdown
    return "".join(map(_linked, _PARTS.split(markdown)))


def _linked(part: str) -> str:
    seen = {None}

    def link(found: re.Match[str]) -> str:
        name = found[1]
        if name in seen or name not in _paths:
            return found[0]
        seen.add(name)
        return f"[{found[0]}][{_paths[name]}]"

    return _NAMES.sub(link, part)
