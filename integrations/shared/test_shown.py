"""What an integration shows is right: the code of its pages, the examples of its docstrings, and its programs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import page_outputs
import pytest

from dpnoise.datasets import ADULT_ATTRIBUTION

FOLDER = Path.cwd()  # where the Makefile runs the tests
(PACKAGE,) = (path.parent.name for path in FOLDER.glob("src/*/__init__.py"))
MODULES = [PACKAGE, *(module.name for module in pkgutil.walk_packages([f"src/{PACKAGE}"], f"{PACKAGE}."))]


@pytest.mark.parametrize("page", [page.name for page in FOLDER.glob("*.md") if page_outputs.python_blocks(page)])
def test_the_code_of_the_page_prints_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert page_outputs.differences(FOLDER / page, page_outputs.run_blocks(FOLDER / page)) == ""


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_docstrings_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.long
@pytest.mark.parametrize("program", [path.name for path in FOLDER.glob("examples/[!_]*.py")])
def test_the_program_runs(program, tmp_path):
    program = FOLDER / "examples" / program
    shown = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout
    assert (ADULT_ATTRIBUTION in shown.stdout) == ("adult" in program.read_text(encoding="utf-8"))
