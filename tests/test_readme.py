"""What the README and the documentation show runs as shown, and so do the examples."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpnoise.datasets import ADULT_ATTRIBUTION

ROOT = Path(__file__).parents[1]


def python_blocks(page):
    """Return the code of every python block of a Markdown page, with the number of its first line."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, block.start(1)), block[1]) for block in found]


def run_blocks(page):
    """Run the blocks in order, as one program; a traceback names the page and its line."""
    namespace = {"__name__": "__main__"}
    for line, code in python_blocks(page):
        exec(compile("\n" * line + code, str(page), "exec"), namespace)  # noqa: S102


OF_ENGINES = ROOT / "docs/guide/engines.md"
"""Needs Dask and Spark: tests/engines runs it."""

PAGES = [page for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))] if python_blocks(page)]
PAGES.remove(OF_ENGINES)
BACKENDS = ROOT / "docs/backends"
"""A page is named as the package of the library that it shows, or nearly so."""
PACKAGES = {"tumult": "tmlt.core"}


# What Opacus and PyTorch say whenever they are used.
@pytest.mark.filterwarnings("ignore:Full backward hook is firing", "ignore:Secure RNG turned off")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_of_the_page_runs(page, tmp_path, monkeypatch):
    if page.parent == BACKENDS:
        package = PACKAGES.get(page.stem, page.stem)
        pytest.importorskip(package, reason=f"shows {package}, which is not installed")
    monkeypatch.chdir(tmp_path)
    run_blocks(page)


LONG = {"compare_protocols.py", "dp_sgd_adult.py", "dp_sgd_adult_optax.py"}
EXAMPLES = [
    pytest.param(path, marks=pytest.mark.long if path.name in LONG else [], id=path.name)
    for path in sorted(ROOT.glob("examples/[!_]*.py"))
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_example_runs(example, tmp_path):
    host = example.stem.rpartition("_")[2]
    if (BACKENDS / f"{host}.md").exists():
        pytest.importorskip(host, reason=f"shows {host}, which is not installed")
    shown = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout
    assert (ADULT_ATTRIBUTION in shown.stdout) == ("adult" in example.read_text(encoding="utf-8"))


def test_the_readme_has_code():
    assert ROOT / "README.md" in PAGES


def test_a_block_that_raises_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Text.\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
    with pytest.raises(AssertionError) as caught:
        run_blocks(page)
    assert (caught.traceback[-1].path, caught.traceback[-1].lineno + 1) == (page, 8)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
def test_linked_files_exist(name):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / name).read_text(encoding="utf-8")):
        assert target.startswith("https://") or (ROOT / target).exists(), target


@pytest.mark.parametrize("command", [["dpnoise"], ["python", "-m", "dpnoise"]])
def test_command_line_starts(command):
    program, *arguments = command
    scripts = Path(sys.executable).parent
    shown = subprocess.run([scripts / program, *arguments, "--help"], capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "demo" in shown.stdout
