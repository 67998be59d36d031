"""MkDocs hook: "Edit this page" leads to the file that people write, and is absent where the page is made of others.

A page of one line, which includes a proof that stands beside its code, is edited there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_INCLUDED = re.compile(r'\s*--8<-- "([^"]+)"\s*')
_MADE = re.compile(r"^(::: |<!-- objects of )", re.MULTILINE)


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> None:
    """Set where the page is edited, before other hooks change its text."""
    included, source = _INCLUDED.fullmatch(markdown), page.file.abs_src_path
    if source is None or _MADE.search(markdown) or page.file.src_uri.startswith("records/"):
        return
    path = included[1] if included else Path(source).relative_to(ROOT).as_posix()
    page.edit_url = f"{config.repo_url}/edit/main/{path}"
