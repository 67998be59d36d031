"""MkDocs hook: KaTeX sets the formulas of a page while the site is built, so that readers need no script.

`docs/katex` is KaTeX 0.16.40, unchanged: the program runs here, and the site gets the style sheet and the fonts.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from py_mini_racer import JSEvalException, MiniRacer

_KATEX = Path(__file__).parents[1] / "katex/katex.min.js"
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\(?P<open>[(\[])(?P<latex>.*?)\\[)\]]</\1>', re.DOTALL)
_CODE = re.compile(r"<(code|pre)\b.*?</\1>", re.DOTALL)


def on_startup(**_: Any) -> None:
    """Load KaTeX."""
    global _engine
    _engine = MiniRacer()
    _engine.eval(_KATEX.read_text(encoding="utf-8"))


def on_shutdown() -> None:
    """Stop the engine's thread: left to itself, it may keep Python from ending."""
    _engine.close()


def on_page_content(content: str, *, page: Any, **_: Any) -> str:
    """Set every formula of the page's HTML; refuse what KaTeX refuses, and what only looks like a formula."""

    def to_html(formula: re.Match[str]) -> str:
        latex = html.unescape(formula["latex"]).strip()
        options = {"displayMode": formula["open"] == "[", "strict": "error"}
        try:
            shown = _engine.call("katex.renderToString", latex, options)
        except JSEvalException as error:
            raise PluginError(f"{page.file.src_uri}: the formula {latex}: {error}") from error
        # The words of a page are searched, not the letters of its formulas.
        return f"<{formula[1]} data-search-exclude>{shown}</{formula[1]}>"

    misread = re.search(r"\$\$.*|\\\[.*", _CODE.sub("", _FORMULA.sub("", content)))
    if misread:
        raise PluginError(f"{page.file.src_uri}: a display formula needs blank lines around it: {misread[0]}")
    return _FORMULA.sub(to_html, content)
