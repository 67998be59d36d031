"""The few log lines: silent unless asked for, on one logger, and without anything private."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpnoise import BudgetExceeded, Laplace
from dpnoise._processes import Died, in_processes
from dpnoise.accounting import Ledger, PrivacyCost
from dpnoise.engines.multiprocess import _log_death


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="dpnoise")


def test_a_spend_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger(path, epsilon=1.0, delta=1e-6)
    ledger.release(Laplace(epsilon=0.5), 8_127_361.0, label="visitors\nof 2026")
    ledger.spend(PrivacyCost(0.1, 1e-9))
    with pytest.raises(BudgetExceeded):
        ledger.release(Laplace(epsilon=0.5), 8_127_361.0, label="too much")
    assert [(record.name, record.levelname) for record in caplog.records] == [("dpnoise", "INFO")] * 2
    assert caplog.messages == [
        f"{str(path)!r}: spent epsilon=0.5, delta=0.0 for 'visitors\\nof 2026'",
        f"{str(path)!r}: spent epsilon=0.1, delta=1e-09 for ''",
    ]


def test_a_dead_process_of_an_engine_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    [(name, reply)] = in_processes(os._exit, [("parts[0]", 7)], 1, _log_death)
    assert (name, type(reply)) == ("parts[0]", Died)
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    assert (
        caplog.messages
        == ["a process died with exit code 7 while it counted parts[0]; another one takes its place"] * 3
    )


def test_other_deaths_depend_on_private_data_and_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    [(_, reply)] = in_processes(os._exit, [("rows", 7)], 1)
    assert isinstance(reply, Died)
    assert not caplog.records


@pytest.mark.parametrize(("setup", "lines"), [("", 0), ("logging.basicConfig(level='INFO')", 1)])
def test_nothing_is_printed_unless_logging_is_configured(tmp_path: Path, setup: str, lines: int) -> None:
    program = f"""
import logging
{setup}
from dpnoise.accounting import Ledger, PrivacyCost
Ledger({str(tmp_path / "ledger.db")!r}, epsilon=1.0).spend(PrivacyCost(0.1))
logging.getLogger("dpnoise").warning("more than INFO") if not {lines} else None
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert (ran.stdout, ran.stderr.count("\n")) == ("", lines)
    assert ran.stderr.startswith("INFO:dpnoise:") == bool(lines)
