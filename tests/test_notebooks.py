"""The notebooks of the tutorial have the code of its chapters, which the tests of the pages run, and run themselves."""

import json
import re
from importlib.metadata import metadata

import notebooks
import pytest

CHAPTERS = sorted(notebooks.TUTORIAL.glob("*.md"))


def code_cells(made):
    """Return the code cells after the first one, which installs dpnoise."""
    setup, *cells = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    assert made["cells"][0] == setup
    assert setup["source"] == notebooks.SETUP.strip()
    return cells


def test_a_notebook_runs(tmp_path, monkeypatch):
    written = {path.stem: path for path in notebooks.write(tmp_path)}
    assert len(written) == len(CHAPTERS) > 10
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for cell in code_cells(json.loads(written["unary_encoding"].read_text(encoding="utf-8"))):
        exec(cell["source"], namespace)  # noqa: S102
    assert namespace["estimate"].counts.shape == (5,)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_the_cells_are_the_blocks_of_the_page(chapter):
    page = chapter.read_text(encoding="utf-8")
    made = notebooks.notebook(page)
    code = code_cells(made)
    assert len(code) == page.count("```python\n") > 0
    assert all(f"```python\n{cell['source']}\n```" in page for cell in code)
    shown = [output["text"] for cell in code for output in cell["outputs"]]
    assert len(shown) == page.count("{.text .output") > 0
    assert all(f"}}\n{output}```" in page for output in shown)
    text = "\n".join(cell["source"] for cell in made["cells"] if cell["cell_type"] == "markdown")
    assert not any(left in text for left in (r"\(", r"\[", "```python", ".md)", ".md#"))
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])


def test_formulas_links_and_outputs():
    page = r"Of \(n\): \[ x \] See [noise](laplace.md), [the guide](../guide/sgd.md#a) and [a](https://b.c)."
    made = notebooks.notebook(f"{page}\n\n```python\nprint(1)\n```\n\n```{{.text .output}}\n1\n```\n\nText.")
    text = "Of $n$: $$ x $$ See [noise](laplace.ipynb), the guide and [a](https://b.c)."
    assert [cell["source"] for cell in made["cells"][1:]] == [text, "print(1)", "Text."]
    assert [output["text"] for cell in code_cells(made) for output in cell["outputs"]] == ["1\n"]


def test_the_first_cell_names_extras_of_the_package():
    extras = set(re.findall(r"\[(.*?)\] @", notebooks.SETUP)[0].split(","))
    assert extras <= set(metadata("dpnoise").get_all("Provides-Extra"))
