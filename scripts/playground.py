"""MkDocs hook: the playground gets the client that `make web` built, or says that it has none.

The site builds without Rust, so a missing client is no error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

CLIENT = Path(__file__).parents[1] / "clients/web/dist"
FILES = ("dpnoise.mjs", "dpnoise-collector.wasm")

_PLACE = "<!-- playground -->"
_SHOWN = """<link rel="stylesheet" href="playground.css">
<div id="people" data-state="loading"><p>The playground needs JavaScript, WebAssembly and workers.</p></div>
<script type="module" src="playground.mjs"></script>
"""
_MISSING = """!!! warning "The playground is left out of this copy of the site"

    It runs the client for browsers, which was not there when the site was built. `make web docs` builds both.
"""


def has_client() -> bool:
    """Return whether the client has been built."""
    return all((CLIENT / name).is_file() for name in FILES)


def on_files(files: Any, *, config: Any) -> None:
    """Add the client to the files of the site."""
    if has_client():
        for name in FILES:
            files.append(File.generated(config, f"playground/client/{name}", abs_src_path=str(CLIENT / name)))


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the playground, or a notice, where the page wants it."""
    return markdown.replace(_PLACE, _SHOWN if has_client() else _MISSING)
