"""``dpnoise audit``: a table, JSON and a picture, and an exit code that says whether a claim is refuted."""

from collections.abc import Callable
from pathlib import Path

import pytest
from cli.shared import Run

from dpnoise import DiscreteLaplace
from dpnoise.audit import _self_audit
from dpnoise.audit._cases import CASES, Case


def test_table_and_picture(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    outcome = run("audit", "--n", 1000, "--level", 1 - 1e-9, "--plot", tmp_path / "audit.svg")
    assert outcome.code == 0
    assert outcome.out.startswith("Epsilon, claimed and shown by 1,000 releases of each of two neighbouring inputs")
    lines = outcome.out.splitlines()
    for case in CASES:
        [row] = [line for line in lines if line.strip().startswith(f"{case.name}  ")]
        assert row.rstrip().endswith("not refuted")
    assert "All bounds together hold with a probability of 99.9999999 %." in outcome.out
    assert b"LaplaceMean" in (tmp_path / "audit.svg").read_bytes()


def test_a_refuted_claim(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = Case("Twice", lambda *, epsilon: DiscreteLaplace(epsilon=2 * epsilon).release, 0, 1)
    [laplace] = [case for case in CASES if case.name == "Laplace"]
    monkeypatch.setattr(_self_audit, "CASES", (laplace, twice))
    outcome = run("audit", "--n", 5000, "--epsilon", 0.7, "--level", 1 - 1e-9, "--json")
    assert outcome.code == 4
    record = outcome.json
    assert {name: record[name] for name in ("command", "epsilon", "n", "level", "refuted", "plot")} == {
        "command": "audit",
        "epsilon": 0.7,
        "n": 5000,
        "level": 1 - 1e-9,
        "refuted": True,
        "plot": None,
    }
    fair, unfair = record["mechanisms"]
    assert (fair["mechanism"], fair["refuted"], fair["claimed_epsilon"], fair["delta"]) == ("Laplace", False, 0.7, 0.0)
    assert (unfair["mechanism"], unfair["refuted"], unfair["claimed_epsilon"]) == ("Twice", True, 0.7)
    assert 0.7 < unfair["epsilon_lower_bound"] < 1.5
    assert unfair["seconds"] >= 0
    assert "REFUTED" in run("audit", "--n", 5000).out


def test_bad_parameters(refuse: Callable[..., str], tmp_path: Path) -> None:
    assert "n must be an integer from 100" in refuse("audit", "--n", 5)
    assert "epsilon must be" in refuse("audit", "--epsilon", 0)
    assert "level must be between 0 and 1" in refuse("audit", "--level", 1)
    assert "the plot must end in .png or .svg or .pdf" in refuse("audit", "--plot", tmp_path / "audit.bmp")
