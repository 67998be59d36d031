"""Turn the chapters of the tutorial into Jupyter notebooks: python scripts/notebooks.py FOLDER.

A notebook is JSON, in the format nbformat 4.5. Its code cells are the blocks of code of the page: Python, which
the tests run, and `pip install`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

TUTORIAL = Path(__file__).parents[1] / "docs/tutorial"
_CODE = re.compile(r"^```(?:python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OUTPUT = re.compile(r"^```\{\.text \.output\}\n.*?^```$", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\((?!https://)([^)#]*)(#[^)]*)?\)")


def _text(markdown: str) -> str:
    """Return Markdown as notebooks show it: formulas between dollars, links to other notebooks only, no outputs.

    Pictures are left out, since they are drawn when the site is built.
    """

    def link(found: re.Match[str]) -> str:
        page = Path(found[2])
        return f"[{found[1]}]({page.with_suffix('.ipynb')})" if (TUTORIAL / page).parent == TUTORIAL else found[1]

    markdown = _PICTURE.sub("", _OUTPUT.sub("", markdown))
    markdown = re.sub(r"\\\((.*?)\\\)", r"$\1$", markdown, flags=re.DOTALL)
    markdown = re.sub(r"\\\[(.*?)\\\]", r"$$\1$$", markdown, flags=re.DOTALL)
    return _LINK.sub(link, markdown).strip()


def notebook(page: str) -> dict[str, Any]:
    """Return the notebook of a page: a cell for each block of code, and one for the text between two of them."""
    cells: list[dict[str, Any]] = []
    for number, part in enumerate(_CODE.split(page)):
        is_code = number % 2 == 1
        source = re.sub("^pip ", "%pip ", part.rstrip("\n")) if is_code else _text(part)
        if source:
            cell = {"cell_type": "code" if is_code else "markdown", "id": f"cell-{number}", "metadata": {}}
            cells.append(cell | {"source": source} | ({"execution_count": None, "outputs": []} if is_code else {}))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def write(folder: Path) -> list[Path]:
    """Write the notebooks of all chapters to a folder, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for page in sorted(TUTORIAL.glob("*.md")):
        path = folder / f"{page.stem}.ipynb"
        path.write_text(json.dumps(notebook(page.read_text(encoding="utf-8")), indent=1) + "\n", encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    for path in write(Path(sys.argv[1])):
        print(path)
