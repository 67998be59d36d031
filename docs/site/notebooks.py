"""Turn the tutorial and the guide to tables into Jupyter notebooks: python docs/site/notebooks.py FOLDER.

A notebook is JSON, in the format nbformat 4.5. After a first cell, which installs dpnoise unless it is there, its code
cells are the blocks of code of the page: Python with its output, which the tests compare, and `pip install`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
PAGES = [*sorted((DOCS / "tutorial").glob("*.md")), DOCS / "guide/tables.md"]
SETUP = """\
# Nothing is installed where everything is there. The path of a wheel, such as `make wheel` builds, may stand before the
# bracket: it needs no Rust.
try:
    import dpnoise, matplotlib, pandas
except ModuleNotFoundError:
    %pip install --quiet pandas '.[accounting,arrow,plot,tables]'
"""
_BLOCK = re.compile(
    r"^```(?:python|sh)\n(.*?)^```$(?:\n\n```\{\.text \.output[^}]*\}\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
_PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n", re.MULTILINE)
_ONLY_ON_THE_SITE = re.compile(r" \{ #[^}\n]*\}$|^</?div.*$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\((?!https://)([^)#]*)(#[^)]*)?\)")


def _text(markdown: str, folder: Path) -> str:
    """Return Markdown as notebooks show it: formulas between dollars, links to other notebooks only.

    Pictures are left out, since they are drawn when the site is built.
    """

    def link(found: re.Match[str]) -> str:
        page = (folder / found[2]).resolve()
        return f"[{found[1]}]({page.stem}.ipynb)" if page in PAGES else found[1]

    markdown = _ONLY_ON_THE_SITE.sub("", _PICTURE.sub("", markdown))
    markdown = re.sub(r"\\\((.*?)\\\)", r"$\1$", markdown, flags=re.DOTALL)
    markdown = re.sub(r"\\\[(.*?)\\\]", r"$$\1$$", markdown, flags=re.DOTALL)
    return _LINK.sub(link, markdown).strip()


def _cell(number: int, kind: str, source: str, **more: Any) -> dict[str, Any]:
    return {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": source.strip("\n"), **more}


def _code(number: int, source: str, output: str | None) -> dict[str, Any]:
    outputs = [{"output_type": "stream", "name": "stdout", "text": output}] if output else []
    return _cell(number, "code", source, execution_count=None, outputs=outputs)


def notebook(page: str, folder: Path) -> dict[str, Any]:
    """Return the notebook of a page: a cell for each block of code, and one for the text between two of them."""
    texts, codes, outputs = (_BLOCK.split(page)[i::3] for i in range(3))
    cells = [_code(0, SETUP, None)]
    for i, text in enumerate(texts):
        if markdown := _text(text, folder):
            cells.append(_cell(2 * i + 1, "markdown", markdown))
        if i < len(codes):
            cells.append(_code(2 * i + 2, re.sub("^pip ", "%pip ", codes[i]), outputs[i]))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def write(folder: Path) -> list[Path]:
    """Write the notebooks of all pages to a folder, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for page in PAGES:
        path = folder / f"{page.stem}.ipynb"
        made = notebook(page.read_text(encoding="utf-8"), page.parent)
        path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    for path in write(Path(sys.argv[1])):
        print(path)
