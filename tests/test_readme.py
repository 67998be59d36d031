"""What the README and the documentation show runs as shown, and so do the examples."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import page_types
import pytest
from page_outputs import PAGES, differences, python_blocks, run_blocks, with_outputs

from dpnoise.datasets import ADULT_ATTRIBUTION

ROOT = Path(__file__).parents[1]


OF_ENGINES = ROOT / "docs/guide/engines.md"
"""Needs Dask and Spark: tests/engines runs it."""

OF_PYTORCH = ROOT / "docs/tutorial/sgd_pytorch.md"
"""Needs PyTorch: the integration that has it runs the chapter."""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page != OF_ENGINES], ids=lambda page: str(page.relative_to(ROOT))
)
def test_code_of_the_page_prints_what_it_shows(page, tmp_path, monkeypatch):
    if page == OF_PYTORCH:
        pytest.importorskip("torch", reason="uses torch, which is not installed")
    monkeypatch.chdir(tmp_path)
    assert differences(page, run_blocks(page)) == ""


LONG = {
    "correlated_noise.py",
    "dp_sgd_adult.py",
    "guide_pictures.py",
}
EXAMPLES = [
    pytest.param(path, marks=pytest.mark.long if path.name in LONG else [], id=path.name)
    for path in sorted(ROOT.glob("examples/[!_]*.py"))
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_example_runs(example, tmp_path):
    shown = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout
    assert (ADULT_ATTRIBUTION in shown.stdout) == ("adult" in example.read_text(encoding="utf-8"))


def facts(text):
    """Return the code of a page without its comments, and the numbers of its prose, each as often as it is there."""
    code = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```$|https://[^\s)\"]*", "", text, flags=re.MULTILINE | re.DOTALL)
    numbers = re.findall(r"\d+(?:[.,]\d+)*", prose)
    return [ast.dump(ast.parse(block)) for block in code], sorted(numbers)


TRANSLATIONS = [page for page in PAGES if page.suffixes == [".zh", ".md"]]


@pytest.mark.parametrize("page", TRANSLATIONS, ids=lambda page: page.name)
def test_a_translation_has_the_code_and_the_numbers_of_its_original(page):
    translation, original = (
        file.read_text(encoding="utf-8") for file in (page, page.with_name(page.name[:-6] + ".md"))
    )
    assert facts(translation) == facts(original)
    for right, wrong in (("32,561", "32,651"), ("\nprint(", "\nprint(0, ")):
        assert facts(translation.replace(right, wrong, 1)) != facts(original)


def test_the_readmes_have_code():
    assert {ROOT / "README.md", ROOT / "README.zh.md", ROOT / "docs/tutorial/adult.zh.md"} <= {*PAGES}


def test_a_block_that_raises_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Text.\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
    with pytest.raises(AssertionError) as caught:
        run_blocks(page)
    assert (caught.traceback[-1].path, caught.traceback[-1].lineno + 1) == (page, 8)


def test_both_checkers_notice_a_type_that_is_wrong(tmp_path):
    pytest.importorskip("mypy", reason="uses mypy, which is not installed")
    good, bad = tmp_path / "good.md", tmp_path / "bad.md"
    block = "Text.\n\n```python\nx = 1\nx = 'a'\n```\n"
    good.write_text(block)
    bad.write_text(f"{block}\n```python\ny: int = x\n```\n")
    found, shown = page_types.errors([good, bad]), os.path.relpath(bad, ROOT)
    assert [line for line in found if "good.md" in line] == []
    assert [line.partition(": error")[0] for line in found if ": error: " in line] == [f"{shown}:9"]
    assert [line.strip().partition(" - ")[0] for line in found if " - error: " in line] == [f"{shown}:9:10"]


def page_with(tmp_path, code, shown=""):
    page = tmp_path / "page.md"
    page.write_text(f"Text.\n\n```python\n{code}\n```\n{shown}\nMore.\n")
    return page


def test_a_wrong_output_is_noticed(tmp_path):
    code = "print([-1.5, 12], 'int64')"
    page = page_with(tmp_path, code, "\n```{.text .output}\n[ 3.25e-07, 4 ] int64\n```\n")
    assert differences(page, run_blocks(page)) == ""  # only numbers differ
    for wrong in ("[1, 2, 3] int64", "[1, 2] int32", "[1, 2] int64\n5", "[1, 2]", ""):
        page = page_with(tmp_path, code, f"\n```{{.text .output}}\n{wrong}\n```\n")
        assert differences(page, run_blocks(page))
    assert differences(page_with(tmp_path, code), ["[1, 2] int64\n"])
    assert differences(page_with(tmp_path, "1", "\n```{.text .output}\nint64\n```\n"), [""])


def test_where_words_are_random_there_only_has_to_be_an_output(tmp_path):
    page = page_with(tmp_path, "print(True)", "\n```{.text .output .varies}\nFalse\n```\n")
    assert differences(page, run_blocks(page)) == ""
    assert differences(page, [""])


def test_outputs_are_written_below_their_blocks(tmp_path):
    for shown in ("", "\n```{.text .output}\nold\n```\n"):
        page = page_with(tmp_path, "print('new')", shown)
        assert with_outputs(page, run_blocks(page)) == (
            "Text.\n\n```python\nprint('new')\n```\n\n```{.text .output}\nnew\n```\n\nMore.\n"
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_of_the_page_fits_80_columns(page):
    lines = [(first + i, line) for first, code in python_blocks(page) for i, line in enumerate(code.splitlines(), 1)]
    assert [(number, line) for number, line in lines if len(line) > 80] == []


@pytest.mark.parametrize("command", [["dpnoise"], ["python", "-m", "dpnoise"]])
def test_command_line_starts(command):
    program, *arguments = command
    scripts = Path(sys.executable).parent
    shown = subprocess.run([scripts / program, *arguments, "--help"], capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "demo" in shown.stdout
