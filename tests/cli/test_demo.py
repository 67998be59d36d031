"""``dpnoise demo``."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cli.shared import Run


def test_table_sentences_chart_and_attribution(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    chart = tmp_path / "new folder" / "chart.png"
    outcome = run("demo", "--plot", chart, "--threads", 1)
    assert outcome.code == 0
    assert outcome.err == ""
    for words in ("Prof-specialty", "4,140", "(missing)", "1,843", "root-mean-square error", "DOI 10.24432/C5XW20"):
        assert words in outcome.out
    assert "of the 15 local 95 % intervals hold the true count" in outcome.out
    assert chart.read_bytes().startswith(b"\x89PNG")


def test_json(run: Run, tmp_path: Path, tolerance: Callable[[int, float, float], float]) -> None:
    record = run("demo", "--json", "--epsilon", 2, "--plot", tmp_path / "chart.svg").json
    assert record["command"] == "demo"
    assert record["people"] == 32_561
    assert record["epsilon"] == 2.0
    assert record["local_epsilon"] <= 2.0
    assert [row["true_count"] for row in record["occupations"]][:2] == [4140, 4099]
    assert sum(row["true_count"] for row in record["occupations"]) == 32_561
    assert "CC BY 4.0" in record["attribution"]
    assert 0 <= record["local_intervals_that_cover"] <= 15
    off = tolerance(32_561, 0.5, 1 / (np.exp(2) + 1))
    for row in record["occupations"]:
        assert abs(row["local_estimate"] - row["true_count"]) < off
        # Laplace of scale 1: beyond 60 with probability exp(-60).
        assert abs(row["central_release"] - row["true_count"]) < 60
        assert row["local_lower"] < row["local_estimate"] < row["local_upper"]
    # The factor is about 100; it is below 10 with a probability of less than 1e-9.
    assert record["error_ratio"] > 10


def test_without_matplotlib_it_says_so_and_goes_on(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    outcome = run("demo", "--plot", tmp_path / "chart.png")
    assert outcome.code == 0
    assert 'No chart was drawn: a chart needs matplotlib: pip install "matplotlib>=3.8"' in outcome.out
    assert list(tmp_path.iterdir()) == []
    assert run("demo", "--json", "--plot", tmp_path / "chart.png").json["plot"] is None


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf"])
def test_bad_epsilon(refuse: Callable[..., str], tmp_path: Path, epsilon: str) -> None:
    assert "epsilon must be" in refuse("demo", "--epsilon", epsilon, "--plot", tmp_path / "chart.png")
    assert list(tmp_path.iterdir()) == []


def test_bad_chart_suffix(refuse: Callable[..., str]) -> None:
    assert refuse("demo", "--plot", "chart.bmp") == "the plot must end in .png or .svg or .pdf, got 'chart.bmp'"


def words_and_colours(picture: str) -> set[str]:
    """Return what does not depend on the noise; numbers at the axis do."""
    return set(re.findall(r"(?<=>)[^<>\d]+(?=</text>)|#[0-9a-f]{6}", picture))


def test_the_pictures_of_the_readme_are_those_of_the_demo(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    import demo_picture

    demo_picture.main(tmp_path)
    for name in ("demo.svg", "demo_dark.svg"):
        kept = (demo_picture.FOLDER / name).read_text(encoding="utf-8")
        drawn = words_and_colours((tmp_path / name).read_text(encoding="utf-8"))
        assert {"Prof-specialty", "local estimate"} < drawn
        assert words_and_colours(kept) == drawn
        assert words_and_colours(kept.replace("Prof-specialty", "Prof")) != drawn
        assert len(kept) < 30_000
    light, dark = ((demo_picture.FOLDER / name).read_text(encoding="utf-8") for name in ("demo.svg", "demo_dark.svg"))
    assert demo_picture.on_dark(light) == dark
    assert "#222222" not in dark
