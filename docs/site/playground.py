"""MkDocs hook: the playground gets the client that `make web` built; a copy without one does not promote it.

The site builds without Rust, so a missing client is no error.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

CLIENT = Path(__file__).parents[2] / "clients/web/dist"
FILES = ("dpnoise.mjs", "dpnoise-collector.wasm")

_CHOICE = re.compile(
    r"<!-- with the playground -->\n(.*?)<!-- without the playground -->\n(.*?)<!-- end -->\n", re.DOTALL
)


def has_client() -> bool:
    """Return whether the client has been built."""
    return all((CLIENT / name).is_file() for name in FILES)


def on_config(config: Any) -> None:
    """Take the page from the navigation if it has nothing to show."""
    if not has_client():
        config.nav = [entry for entry in config.nav if entry != {"Playground": "playground.md"}]


def on_files(files: Any, *, config: Any) -> None:
    """Add the client to the files of the site."""
    if has_client():
        for name in FILES:
            files.append(File.generated(config, f"playground/client/{name}", abs_src_path=str(CLIENT / name)))


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Keep what a page says with the playground, or what it says without."""
    return _CHOICE.sub(r"\1" if has_client() else r"\2", markdown)
