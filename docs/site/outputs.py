"""MkDocs hook: tell outputs with aligned columns, which the style sheet keeps, from messages, which it wraps."""

from __future__ import annotations

import html
import re
from typing import Any

_OUTPUT = re.compile(r'<div class="([^"]*\boutput\b[^"]*)">(.*?</pre>)', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Mark the outputs that have aligned columns, with the number of their characters in a line."""

    def marked(output: re.Match[str]) -> str:
        lines = html.unescape(re.sub("<[^>]*>", "", output[2])).splitlines()
        if not any(re.search(r"\S {2,}\S", line) for line in lines):
            return output[0]
        return f'<div class="{output[1]} aligned" style="--columns: {max(map(len, lines))}">{output[2]}'

    return _OUTPUT.sub(marked, content)
