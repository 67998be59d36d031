"""What the gate relies on: every test is compiled and run."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_long_test_is_run() -> None:
    makefile = (ROOT / "Makefile").read_text()
    recipes = re.findall(r"^(?:statistical|everything):.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    run = [ROOT / path for recipe in recipes for path in re.findall(r"(?:tests|clients)/[\w/.]+", recipe)]
    files = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("clients/**/test_*.py")]
    marked = [file for file in files if "mark.long" in file.read_text(encoding="utf-8")]
    marked.remove(Path(__file__))
    assert {ROOT / "tests/statistical/test_audit.py", ROOT / "clients/web/tests/test_collector.py"} < {*marked}
    assert [file for file in marked if not any(file.is_relative_to(path) for path in run)] == []


def test_every_test_file_of_the_core_is_compiled() -> None:
    # The integration tests are modules of one program: Cargo does not look for files by itself.
    folder = ROOT / "rust/core/tests"
    named = set(re.findall(r"^mod (\w+);", (folder / "all.rs").read_text(), re.MULTILINE))
    assert named == {file.stem for file in folder.glob("*.rs")} - {"all"}
