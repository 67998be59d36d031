"""One base for all errors, and public names in tracebacks."""

from __future__ import annotations

import importlib
import inspect
import os
import pickle
import pkgutil
import re
import subprocess
import sys
from typing import Any

import pytest

import dpnoise


def errors() -> set[type[Exception]]:
    found = set()
    for module in pkgutil.walk_packages(dpnoise.__path__, "dpnoise."):
        parts = module.name.split(".")
        if (
            "backends" in parts or parts[-1] == "__main__"
        ):  # they need other libraries; running the program is no import
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, Exception) and value.__module__.startswith("dpnoise"):
                found.add(value)
    return found


def test_all_errors_have_one_base() -> None:
    others = {error.__name__ for error in errors() if not issubclass(error, dpnoise.Error)}
    assert others == {"Died"}, "which no function raises"
    assert len(errors()) >= 6


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (dpnoise.ParameterError("no"), ValueError),
        (dpnoise.RandomnessError("no"), RuntimeError),
        (dpnoise.HaltedError("no"), RuntimeError),
        (dpnoise.BudgetExceeded(dpnoise.PrivacyCost(1.0), dpnoise.PrivacyCost(0.5)), dpnoise.Error),
        (dpnoise.accounting.LedgerError("no"), dpnoise.Error),
    ],
)
def test_errors_are_found_where_they_say_they_are(error: Exception, kind: type) -> None:
    name = type(error).__module__
    assert "_" not in name
    assert getattr(importlib.import_module(name), type(error).__name__) is type(error)
    assert isinstance(error, kind)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301


def test_the_native_module_raises_them() -> None:
    with pytest.raises(dpnoise.ParameterError, match="epsilon must be positive"):
        dpnoise.Laplace(epsilon=0.0)
    with pytest.raises(dpnoise.RandomnessError):
        dpnoise.Laplace(epsilon=1.0).release(0.0, rng=dpnoise.hazmat.ScriptedRng(b""))
    run = dpnoise.AboveThreshold(epsilon=1e6, threshold=0.0).start()
    run.is_above(1e9)
    with pytest.raises(dpnoise.HaltedError):
        run.is_above(0.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: dpnoise.Laplace(1.0),
            "Laplace takes its parameters by name, use epsilon=, sensitivity=",
        ),
        (lambda: dpnoise.queries.Count(1.0), "Count takes its parameters by name, use epsilon=, relation="),
        (
            lambda: dpnoise.queries.Quantile(0.5, (0, 1)),
            "Quantile takes its parameters by name, use q=, bounds=, epsilon=",
        ),
        (
            lambda: dpnoise.accounting.Accountant("rdp"),
            "Accountant takes its parameters by name, use method=, relation=",
        ),
        (lambda: dpnoise.sgd.NoisyGradient(1.0), "NoisyGradient takes its parameters by name, use clip_norm=, "),
        (
            lambda: dpnoise.local.LocalHashing(4, 1.0),
            "LocalHashing takes its parameters by name, use k=, domain=, epsilon=, g=",
        ),
    ],
)
def test_parameters_by_position_are_told_their_names(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(message)}"):
        make()


def test_other_wrong_calls_are_still_pythons_to_name() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'scale'"):
        dpnoise.Laplace(scale=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'epsilon'"):
        dpnoise.Laplace()  # type: ignore[call-arg]
    assert dpnoise.queries.Quantile(q=0.5, bounds=(0, 1), epsilon=1.0).q == 0.5
    assert "epsilon" in inspect.signature(dpnoise.Laplace).parameters


@pytest.mark.parametrize(("variable", "fails"), [("", False), ("portable", False), ("sse9", True)])
def test_an_empty_variable_chooses_no_instruction_set(variable: str, fails: bool) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "import dpnoise; dpnoise.Laplace(epsilon=1.0).release(0.0)"],
        env={**os.environ, "DPNOISE_INSTRUCTION_SET": variable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode != 0) == fails, ran.stderr
    assert ("DPNOISE_INSTRUCTION_SET must be unset" in ran.stderr) == fails
