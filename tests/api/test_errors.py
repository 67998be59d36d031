"""One base for all errors, and public names in tracebacks."""

from __future__ import annotations

import importlib
import pickle
import pkgutil

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
