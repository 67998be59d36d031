"""The notebooks of the tutorial have the code of its chapters, which the tests of the pages run, and run themselves."""

import json

import notebooks
import pytest

CHAPTERS = sorted(notebooks.TUTORIAL.glob("*.md"))


def code_cells(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell["source"] for cell in cells if cell["cell_type"] == "code"]


def run(name, folder, monkeypatch):
    written = {path.stem: path for path in notebooks.write(folder)}
    assert len(written) == len(CHAPTERS) > 10
    monkeypatch.chdir(folder)
    namespace = {"__name__": "__main__"}
    for code in code_cells(written[name]):
        if not code.startswith("%pip install "):
            exec(code, namespace)  # noqa: S102
    return namespace


def test_a_notebook_runs(tmp_path, monkeypatch):
    assert run("unary_encoding", tmp_path, monkeypatch)["estimate"].counts.shape == (5,)


def test_the_notebook_of_pytorch_runs(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="uses torch, which is not installed")
    assert run("sgd_pytorch", tmp_path, monkeypatch)["accuracy"](1.0) > 0.8


def test_the_first_cell_of_code_installs_what_the_notebook_needs(tmp_path):
    notebooks.write(tmp_path)
    assert code_cells(tmp_path / "sgd_pytorch.ipynb")[0] == "%pip install 'dpnoise[accounting]' torch"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_the_cells_are_the_blocks_of_the_page(chapter):
    page = chapter.read_text(encoding="utf-8")
    made = notebooks.notebook(page)
    code = [cell["source"] for cell in made["cells"] if cell["cell_type"] == "code"]
    assert len(code) == page.count("```python\n") + page.count("```sh\n") > 0
    assert all(f"```python\n{block}\n```" in page or f"```sh\n{block[1:]}\n```" in page for block in code)
    text = "\n".join(cell["source"] for cell in made["cells"] if cell["cell_type"] == "markdown")
    assert not any(left in text for left in (r"\(", r"\[", "![", "```python", "```sh", ".md)", ".md#"))
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])


def test_formulas_links_and_outputs():
    page = r"Of \(n\): \[ x \] See [noise](laplace.md), [the guide](../guide/sgd.md#a) and [a](https://b.c)."
    made = notebooks.notebook(f"{page}\n\n```{{.text .output}}\n1\n```\n\nText.")
    text = "Of $n$: $$ x $$ See [noise](laplace.ipynb), the guide and [a](https://b.c)."
    assert [cell["source"].split() for cell in made["cells"]] == [[*text.split(), "Text."]]
