"""Charts: written in every format, nothing left on failure, every refusal named."""

import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import dpnoise
from dpnoise import local, plots

LABELS = ("a$b$c", "", "[bold]")
SERIES = {"estimate": (np.array([5.0, -2.0, 3.0]), np.array([1.0, -5.0, 1.0]), np.array([7.0, 3.0, 4.0]))}
MAGIC = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("suffix", plots.SUFFIXES)
def test_every_format_is_written_and_reproducible(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    path = tmp_path / f"chart{suffix}"
    plots.histogram(LABELS, SERIES, true_counts=[4, 1, 2], title="$title", path=path)
    first = path.read_bytes()
    assert first.startswith(MAGIC[suffix])
    if suffix == ".svg":
        assert b"a$b$c" in first  # "$" was drawn, not read as a formula
    else:
        plots.histogram(LABELS, SERIES, true_counts=[4, 1, 2], title="$title", path=path)
        assert path.read_bytes() == first


def test_many_labels_stay_drawable(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    counts = np.arange(10_000.0)
    path = tmp_path / "chart.svg"
    labels = [f"v{i}" for i in range(10_000)]
    plots.histogram(labels, {"estimate": (counts, counts - 1.0, counts + 1.0)}, path=path)
    text = path.read_text(encoding="utf-8")
    assert "the 60 largest of 10,000" in text
    assert "v9999" in text
    assert "v9939" not in text


def test_a_title_and_a_caption_stand_around_a_chart_or_on_given_axes(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    from matplotlib import pyplot

    title, caption = "a title of $1 and more " * 9, "a caption of $2\x07 " * 9
    figure: Any = plots.histogram(LABELS, SERIES, None, title, caption, path=tmp_path / "chart.png").figure
    own, given = pyplot.subplots(figsize=(4.0, 3.0))
    plots.histogram(LABELS, SERIES, None, title, caption, ax=given)
    around = [figure.get_suptitle(), figure.get_supxlabel()]
    on_axes = [given.get_title(loc="left"), given.get_xlabel().partition("intervals\n")[2]]
    for text, shown in ((title, [around[0], on_axes[0]]), (caption.replace("\x07", "\\x07"), [around[1], on_axes[1]])):
        assert [one.split() for one in shown] == [text.split()] * 2
    assert [len(text.split("\n")) > 1 for text in (*around, *on_axes)] == [True] * 4
    assert own.get_suptitle() == own.get_supxlabel() == ""
    pyplot.close(own)
    figure = plots.histogram(LABELS, SERIES, path=tmp_path / "chart.png").figure
    assert figure.get_suptitle() == figure.get_supxlabel() == ""


def test_an_estimate_has_n_and_epsilon_above_its_chart_and_below_it_what_its_table_says(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    protocol = local.OptimizedUnaryEncoding(domain=["a", "b"], epsilon=1.0)
    estimate = protocol.estimate(protocol.perturb(["a"] * 100))
    figure: Any = estimate.plot(tmp_path / "chart.png").figure
    assert figure.get_supxlabel() == "Estimate(n=100, rejected=0, level=0.95, simultaneous=False)"
    assert str(estimate).startswith(figure.get_supxlabel())
    assert figure.get_suptitle() == "n = 100, epsilon = 1"
    sketch = local.CountMeanSketch(rows=4, width=64, epsilon=2.0)
    figure = sketch.estimate(sketch.perturb(["a"] * 1000), ["a"]).plot(tmp_path / "chart.png").figure
    assert figure.get_suptitle() == "n = 1,000"


def test_numbers_on_the_axis_keep_their_decimals() -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    from matplotlib import pyplot

    for largest, shown in ((0.5, "0.2"), (3_000_000.0, "2,000,000")):
        counts = np.array([largest, 0.0, 0.0])
        axes = plots.histogram(LABELS, {"estimate": (counts, counts, counts)})
        axes.figure.draw_without_rendering()  # type: ignore[union-attr]
        assert shown in [label.get_text() for label in axes.get_xticklabels()]
        pyplot.close(axes.figure)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((LABELS, {}), "estimates must hold at least one series, got none"),
        ((LABELS[:2], SERIES), r"estimates\['estimate'\] must be three arrays of length 2, got \(3, 3\)"),
        ((LABELS, SERIES, [1, 2]), r"true_counts must have length 3, got the shape \(2,\)"),
    ],
)
def test_bad_input(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(dpnoise.ParameterError, match=message):
        plots.histogram(*arguments, path="chart.png")


def test_a_bad_target() -> None:
    with pytest.raises(dpnoise.ParameterError, match=r"path must end in one of .png, .svg, .pdf, got 'chart.bmp'"):
        plots.histogram(LABELS, SERIES, path="chart.bmp")
    with pytest.raises(dpnoise.ParameterError, match=r"path must be None when ax is given, got 'chart.png'"):
        plots.histogram(LABELS, SERIES, path="chart.png", ax=cast(Any, object()))
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    with pytest.raises(TypeError, match=r"^ax must be matplotlib axes, got ndarray$"):
        plots.histogram(LABELS, SERIES, ax=cast(Any, np.array([None, None])))


def test_without_a_file_pyplot_shows_the_chart(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    plots.histogram(LABELS, SERIES, path=tmp_path / "chart.png")
    assert pyplot.get_fignums() == before  # a written one is nobody's to close
    axes = plots.histogram(LABELS, SERIES)
    assert axes.figure is pyplot.gcf()
    pyplot.close(axes.figure)  # type: ignore[arg-type]
    figure, (left, right) = pyplot.subplots(ncols=2)
    assert plots.histogram(LABELS, SERIES, ax=right) is right
    assert (len(left.patches), len(right.patches)) == (0, 3)
    assert pyplot.get_fignums() == [*before, figure.number]
    pyplot.close(figure)


def test_nothing_is_drawn_of_nothing(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    plots.histogram([], {"estimate": ([], [], [])}, path=tmp_path / "chart.png")


def test_without_matplotlib_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'^a chart needs matplotlib: pip install "matplotlib>=3\.8"$'):
        plots.histogram(LABELS, SERIES, path=tmp_path / "chart.png")
    assert list(tmp_path.iterdir()) == []


def test_importing_the_module_does_not_import_matplotlib() -> None:
    program = "import sys, dpnoise.plots; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
