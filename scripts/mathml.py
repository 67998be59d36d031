"""MkDocs hook: turn the formulas of a page into MathML while the site is built.

Browsers show MathML by themselves, so the site needs no script from elsewhere and reads the same offline.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\(?P<open>[(\[])(?P<latex>.*?)\\[)\]]</\1>', re.DOTALL)
_CODE = re.compile(r"<(code|pre)\b.*?</\1>", re.DOTALL)


def on_page_content(content: str, *, page: Any, **_: Any) -> str:
    """Replace every formula of the page's HTML; refuse unknown commands, and what only looks like a formula."""

    def to_mathml(formula: re.Match[str]) -> str:
        latex = html.unescape(formula["latex"]).strip()
        mathml = convert(latex, display="block" if formula["open"] == "[" else "inline")
        unknown = re.search(r"<m\w+>\s*(\\\w+)", mathml)
        if unknown:
            raise PluginError(f"{page.file.src_uri}: unknown command {unknown[1]} in the formula {latex}")
        # A formula that is wider than the page scrolls in this box.
        return f'<div class="formula">{mathml}</div>' if formula["open"] == "[" else mathml

    shown = _FORMULA.sub(to_mathml, content)
    misread = re.search(r"\$<math.{,200}|\$\$.*|\\\[.*", _CODE.sub("", shown))
    if misread:
        raise PluginError(f"{page.file.src_uri}: a display formula needs blank lines around it: {misread[0]}")
    return shown
