"""Docstrings say what is specific: what holds everywhere is on one page, and no docstring begins with "Give"."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python/dpnoise"
CONVENTIONS = (ROOT / "docs/reference/conventions.md").read_text(encoding="utf-8")


def named_docstrings_of(source: str) -> list[tuple[str, str]]:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    found = [(getattr(node, "name", ""), ast.get_docstring(node)) for node in nodes]
    return [(name, docstring) for name, docstring in found if docstring]


def docstrings_of(source: str) -> list[str]:
    return [docstring for _, docstring in named_docstrings_of(source)]


def sources() -> dict[str, str]:
    files = [*PACKAGE.rglob("*.py"), *ROOT.glob("integrations/*/src/**/*.py")]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}


def docstrings() -> dict[str, list[str]]:
    return {path: docstrings_of(source) for path, source in sources().items()}


def begin_with_give(texts: list[str]) -> list[str]:
    return [text.partition("\n")[0] for text in texts if re.match(r"Gives?\b", text)]


def without_convention(texts: list[str], page: str) -> set[str]:
    """List the parameters that docstrings leave to the conventions and the page lacks."""
    explained = {
        name for cell in re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    }
    groups = (re.findall(r"^\s*([\w, ]+) : as everywhere$", text, re.MULTILINE) for text in texts)
    return {name for group in groups for names in group for name in names.split(", ")} - explained


def without_description(documented: list[tuple[str, str]]) -> set[tuple[str, str]]:
    """List the parameters that a docstring leaves to another one which does not mention them, and that one's name."""
    left = re.compile(r"^\s*([\w, ]+) : as (?:for|by|in) `([\w.]+)`", re.MULTILINE)
    missing = set()
    for names, target in (found for _, text in documented for found in left.findall(text)):
        last = target.rpartition(".")[2]
        described = "\n".join(text for name, text in documented if name == last)
        missing |= {(name, target) for name in names.split(", ") if not re.search(rf"\b{name}\b", described)}
    return missing


def test_no_docstring_begins_with_give() -> None:
    found = {path: begin_with_give(texts) for path, texts in docstrings().items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_the_page_has_every_parameter_that_is_as_everywhere() -> None:
    texts = [text for found in docstrings().values() for text in found]
    assert without_convention(texts, CONVENTIONS) == set()


def test_siblings_describe_the_parameters_that_are_left_to_them() -> None:
    assert (
        without_description([found for source in sources().values() for found in named_docstrings_of(source)]) == set()
    )


@pytest.mark.parametrize("first", ["Give the sum.", "Gives the sum."])
def test_faults_are_noticed(first: str) -> None:
    assert begin_with_give(docstrings_of(f'def f():\n    """{first}"""')) == [first]
    planted = ["Draw.\n\nParameters\n----------\nout, threads, luck : as everywhere"]
    assert without_convention(planted, CONVENTIONS) == {"luck"}
    planted_source = 'def f():\n    """Draw.\n\n    n, luck : as for `a.g`\n    """\ndef g():\n    """n : int"""'
    assert without_description(named_docstrings_of(planted_source)) == {("luck", "a.g")}
