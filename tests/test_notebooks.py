"""The notebooks have the code of their pages, which the tests of the pages run, and run themselves."""

import json
import re
from importlib.metadata import metadata

import notebooks
import pytest


def code_cells(made):
    """Return the code cells after the first one, which installs dpnoise."""
    setup, *cells = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    assert made["cells"][0] == setup
    assert setup["source"] == notebooks.SETUP.strip()
    return cells


def run(name, folder, monkeypatch):
    written = {path.stem: path for path in notebooks.write(folder)}
    assert len(written) == len(notebooks.PAGES) > 10
    monkeypatch.chdir(folder)
    namespace = {"__name__": "__main__"}
    for cell in code_cells(json.loads(written[name].read_text(encoding="utf-8"))):
        if not cell["source"].startswith("%pip install "):
            exec(cell["source"], namespace)  # noqa: S102
    return namespace


def test_a_notebook_runs(tmp_path, monkeypatch):
    assert run("unary_encoding", tmp_path, monkeypatch)["estimate"].counts.shape == (5,)


def test_the_notebook_of_pytorch_runs(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="uses torch, which is not installed")
    assert run("sgd_pytorch", tmp_path, monkeypatch)["accuracy"](1.0) > 0.8


@pytest.mark.parametrize("path", notebooks.PAGES, ids=lambda path: path.stem)
def test_the_cells_are_the_blocks_of_the_page(path):
    page = path.read_text(encoding="utf-8")
    made = notebooks.notebook(page, path.parent)
    code = code_cells(made)
    assert len(code) == page.count("```python\n") + page.count("```sh\n") > 0
    assert all(f"\n{cell['source'].removeprefix('%')}\n```" in page for cell in code)
    shown = [output["text"] for cell in code for output in cell["outputs"]]
    assert len(shown) == page.count("{.text .output") > 0
    assert all(f"}}\n{output}```" in page for output in shown)
    text = "\n".join(cell["source"] for cell in made["cells"] if cell["cell_type"] == "markdown")
    assert not any(left in text for left in (r"\(", r"\[", "![", "```python", "```sh", ".md)", ".md#", "{ #", "<div"))
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])


def test_formulas_links_and_outputs():
    page = r"Of \(n\): \[ x \] See [noise](laplace.md), [the guide](../guide/sgd.md#a) and [a](https://b.c)."
    page = f"{page}\n\n```python\nprint(1)\n```\n\n```{{.text .output}}\n1\n```\n\nText."
    made = notebooks.notebook(page, notebooks.PAGES[0].parent)
    text = "Of $n$: $$ x $$ See [noise](laplace.ipynb), the guide and [a](https://b.c)."
    assert [cell["source"] for cell in made["cells"][1:]] == [text, "print(1)", "Text."]
    assert [output["text"] for cell in code_cells(made) for output in cell["outputs"]] == ["1\n"]


def test_the_first_cell_names_extras_of_the_package():
    extras = set(re.findall(r"'[^'\[]*\[(.*?)\]", notebooks.SETUP)[0].split(","))
    assert extras <= set(metadata("dpnoise").get_all("Provides-Extra"))
