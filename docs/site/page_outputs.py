"""Show what the Python code of a page prints, below it: run its blocks as one program, and keep their outputs.

    python docs/site/page_outputs.py                   # the READMEs and all pages whose packages are installed
    python docs/site/page_outputs.py docs/index.md ... # these pages

Noise is random, so the tests compare what is kept with a fresh run, numbers masked: `differences`. Where words or lines
are random as well, the fence has the class ``varies`` too, which is written by hand and kept.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import multiprocessing
import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```\{\.text \.output(?P<varies> \.varies)?\}\n(?P<shown>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_NUMBER = re.compile(r"(?<!\w)[+-]?\d+(,\d{3})*(\.\d*)?(e[+-]?\d+)?(?!\w)")


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """Return the code of every Python block of a page, with the number of the line before it."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, block.start("code")), block["code"]) for block in _BLOCK.finditer(text)]


PAGES = [page for page in [*sorted(ROOT.glob("README*.md")), *sorted(ROOT.glob("docs/**/*.md"))] if python_blocks(page)]


def run_blocks(page: Path) -> list[str]:
    """Run the blocks in order, as one program, and return what each prints; a traceback names the page and its line."""
    namespace = {"__name__": "__main__"}
    outputs = []
    for line, code in python_blocks(page):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("\n" * line + code, str(page), "exec"), namespace)  # noqa: S102
        outputs.append(printed.getvalue())
    return outputs


def with_outputs(page: Path, outputs: list[str]) -> str:
    """Return the text of the page with these outputs below its blocks, in place of those that it has."""
    remaining = iter(outputs)

    def block(found: re.Match[str]) -> str:
        printed = "\n".join(line.rstrip() for line in next(remaining).splitlines())
        shown = f"\n```{{.text .output{found['varies'] or ''}}}\n{printed}\n```\n" if printed else ""
        return f"```python\n{found['code']}```\n{shown}"

    return _BLOCK.sub(block, page.read_text(encoding="utf-8"))


def masked(output: str) -> str:
    """Replace the numbers, and the space that depends on their lengths; numbers within names, as in int64, stay."""
    numbers = re.sub(r"(?<=#)\s+(?=#)", " ", _NUMBER.sub("#", output))  # long arrays may break their lines anywhere
    words = re.sub(" +", " ", numbers)
    return re.sub(r" *\n *", "\n", re.sub(r"(?<=[\[(]) | (?=[\])])", "", words)).strip()


def differences(page: Path, outputs: list[str]) -> str:
    """Compare the outputs that the page shows with these, numbers masked; the differing lines, or nothing."""
    shown, printed = [], []
    for block, output in zip(_BLOCK.finditer(page.read_text(encoding="utf-8")), outputs, strict=True):
        if not (block["varies"] and output):
            shown += masked(block["shown"] or "").splitlines()
            printed += masked(output).splitlines()
    return "\n".join(difflib.unified_diff(shown, printed, "shown", "printed", lineterm=""))


def refresh(page: Path) -> None:
    """Run a page, and write its outputs."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            outputs = run_blocks(page)
        except ModuleNotFoundError as error:
            print(f"{page.relative_to(ROOT)} stays as it is: {error.name} is not installed")
            return
        finally:
            os.chdir(ROOT)
    page.write_text(with_outputs(page, outputs), encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Refresh pages, each in a process of its own: some change the libraries that they show."""
    start = multiprocessing.get_context("spawn").Process
    for page in [Path(argument).resolve() for argument in arguments] or PAGES:
        process = start(target=refresh, args=(page,))
        process.start()
        process.join()
        if process.exitcode:
            sys.exit(process.exitcode)


if __name__ == "__main__":
    main(sys.argv[1:])
