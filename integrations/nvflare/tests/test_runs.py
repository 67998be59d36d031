"""Whole runs: two sites of NVFlare's simulator, and sites that are killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpnoise.accounting import Ledger


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, Path(__file__).with_name(program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_simulated_run_gets_updates_with_noise_until_the_budgets_are_spent(tmp_path: Path) -> None:
    shown = run("simulation.py", tmp_path)
    assert "Simulation failed" in shown.stderr, shown.stdout + shown.stderr
    study = tmp_path / "study"
    server = (study / "server/log.txt").read_text(encoding="utf-8")
    assert "due to fatal return code UNSAFE_JOB from client site-" in server
    assert "0.123456" not in server
    for name in ("site-1", "site-2"):
        log = (study / name / "log.txt").read_text(encoding="utf-8")
        assert log.count("paid for an update: epsilon 2.419 by itself, at delta 1e-06, ") == 2
    assert "no update leaves this site, and the run is halted: this would cost rho=0.125" in shown.stdout
    # Each number of an update is clipped from 0.1 to 0.005, and the mean of two, twice, has the variance of one.
    model = np.load(study / "server/simulate_job/models/server.npy")
    squares = np.sum(((model - 1.01) / 2) ** 2, dtype=float)
    low, high = stats.chi2.ppf([1e-10, 1 - 1e-10], model.size)
    assert low < squares < high
    assert not low < 1.2**2 * squares < high
    run("simulation.py", tmp_path)  # deletes the workspaces, but not the ledgers
    for name in ("site-1", "site-2"):
        assert len(Ledger.open_readonly(tmp_path / f"{name}.db").entries()) == 2
        assert "paid for" not in (study / name / "log.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("kills", [10, pytest.param(50, marks=pytest.mark.long)])
def test_no_update_of_a_killed_site_is_unpaid(tmp_path: Path, kills: int) -> None:
    unpaid, sent, paid = map(int, run("kills.py", tmp_path, kills).stdout.split())
    assert unpaid == 0
    assert kills < sent <= paid <= sent + kills


def test_a_site_that_pays_too_late_is_noticed(tmp_path: Path) -> None:
    unpaid, *_ = map(int, run("kills.py", tmp_path, 10, "late").stdout.split())
    assert unpaid > 0
