"""The notebooks of the tutorial have the code of its chapters, which the tests of the pages run, and run themselves."""

import json

import notebooks
import pytest

CHAPTERS = sorted(notebooks.TUTORIAL.glob("*.md"))


def code_cells(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell["source"] for cell in cells if cell["cell_type"] == "code"]


def test_a_notebook_runs(tmp_path, monkeypatch):
    written = {path.stem: path for path in notebooks.write(tmp_path)}
    assert len(written) == len(CHAPTERS) > 10
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for code in code_cells(written["unary_encoding"]):
        exec(code, namespace)  # noqa: S102
    assert namespace["estimate"].counts.shape == (5,)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_the_cells_are_the_blocks_of_the_page(chapter):
    page = chapter.read_text(encoding="utf-8")
    made = notebooks.notebook(page)
    code = [cell["source"] for cell in made["cells"] if cell["cell_type"] == "code"]
    assert len(code) == page.count("```python\n") > 0
    assert all(f"```python\n{block}\n```" in page for block in code)
    text = "\n".join(cell["source"] for cell in made["cells"] if cell["cell_type"] == "markdown")
    assert not any(left in text for left in (r"\(", r"\[", "![", "```python", ".md)", ".md#"))
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])


def test_formulas_links_and_outputs():
    page = r"Of \(n\): \[ x \] See [noise](laplace.md), [the guide](../guide/sgd.md#a) and [a](https://b.c)."
    made = notebooks.notebook(f"{page}\n\n```{{.text .output}}\n1\n```\n\nText.")
    text = "Of $n$: $$ x $$ See [noise](laplace.ipynb), the guide and [a](https://b.c)."
    assert [cell["source"].split() for cell in made["cells"]] == [[*text.split(), "Text."]]
