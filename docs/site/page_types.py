"""Check the types of the Python code of all pages: python docs/site/page_types.py.

A page is one program of a user's, which mypy, as strict as for the package, and basedpyright check.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from page_outputs import PAGES, ROOT, python_blocks

# A page uses a name again for something else, as a notebook does, and its loops run at least once. PyTorch and other
# packages that linters do without are unknown to both checkers, and a page may derive a class from one of theirs.
_OPTIONS = """\
# mypy: allow-redefinition, allow-subclassing-any
# pyright: reportPossiblyUnboundVariable=false, reportMissingImports=false
"""


def program(page: Path) -> str:
    """Return the code of a page, each line where it is on the page; the options are above, where a page has a title."""
    lines = _OPTIONS.splitlines()
    for line, code in python_blocks(page):
        lines += [""] * (line - len(lines)) + code.splitlines()
    return "\n".join(lines) + "\n"


def errors(pages: list[Path]) -> list[str]:
    """Return the lines that mypy and basedpyright print of pages with errors, which name the page and its line."""
    with tempfile.TemporaryDirectory() as folder:
        names = {}
        for page in pages:
            name = os.path.relpath(page, ROOT)
            file = Path(folder, re.sub(r"\W", "_", name) + ".py")
            file.write_text(program(page), encoding="utf-8")
            names[str(file)] = name
        found = []
        for checker in (["mypy", "--hide-error-context"], ["basedpyright", "--pythonpath", sys.executable]):
            command = [Path(sys.executable).with_name(checker[0]), *checker[1:], *names]
            checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            printed = re.sub("|".join(map(re.escape, names)), lambda file: names[file[0]], checked.stdout)
            if checked.returncode:
                found += (printed + checked.stderr).splitlines() or [f"{checker[0]} failed: {checked.returncode}"]
    return found


if __name__ == "__main__":
    sys.exit("\n".join(errors(PAGES)) or None)
