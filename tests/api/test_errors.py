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
from pathlib import Path
from typing import Any

import pytest

import dpnoise
from dpnoise import local, queries, sgd, stability
from dpnoise._parameters import ByName


def errors() -> set[type[Exception]]:
    found = set()
    for module in pkgutil.walk_packages(dpnoise.__path__, "dpnoise."):
        parts = module.name.split(".")
        if parts[-1] == "__main__":  # running the program is no import
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
        (dpnoise.BudgetExceeded(dpnoise.PrivacyCost(1.0), dpnoise.PrivacyCost(0.5), Path("a")), dpnoise.Error),
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


NOT_SEEDED = "noise is not seeded; for tests, pass rng=dpnoise.hazmat.SeededRng(1) to the method that draws; use "
DERIVED = "the scale of the noise follows from the privacy parameters and the sensitivity; use epsilon=, "
CENTRED = "noise has mean 0, and is added to the value that release takes; use epsilon=, "


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        (queries.Histogram, {"bins": [0, 1]}, "Histogram takes no bins=, use edges="),
        (queries.Histogram, {"labels": ["a"], "epsilon": 1.0}, "Histogram takes no labels=, use domain="),
        (queries.Count, {"eps": 1.0}, "Count takes no eps=, use epsilon="),
        (queries.Count, {"epsilon": 1.0, "neighbours": "substitute"}, "Count takes no neighbours=, use relation="),
        (queries.Sum, {"epsilon": 1.0, "range": (0, 1)}, "Sum takes no range=, use bounds="),
        (queries.Median, {"epsilon": 1.0, "lower": 0, "upper": 1}, "Median takes no lower=, use bounds="),
        (queries.Quantile, {"quantile": 0.5}, "Quantile takes no quantile=, use q="),
        (dpnoise.Laplace, {"scale": 1.0}, f"Laplace takes no scale=: {DERIVED}sensitivity=, granularity="),
        (dpnoise.Laplace, {"loc": 0.0}, f"Laplace takes no loc=: {CENTRED}sensitivity=, granularity="),
        (dpnoise.Gaussian, {"sigma": 1.0}, f"Gaussian takes no sigma=: {DERIVED}delta=, sensitivity=, rho=, "),
        (dpnoise.DiscreteLaplace, {"seed": 1}, f"DiscreteLaplace takes no seed=: {NOT_SEEDED}epsilon=, sensitivity="),
        (dpnoise.Laplace, {"epsilonn": 1.0}, "Laplace takes no epsilonn=, use epsilon="),
        (dpnoise.TopK, {"kk": 1, "epsilon": 1.0}, "TopK takes no kk=, use k="),
        (dpnoise.Exponential, {"utility": max}, "Exponential takes no utility=, use epsilon=, sensitivity=, monoton"),
        (local.RandomizedResponse, {"seed": 1}, f"RandomizedResponse takes no seed=: {NOT_SEEDED}domain=, epsilon="),
        (local.OptimizedUnaryEncoding, {"Eps": 1.0}, "OptimizedUnaryEncoding takes no Eps=, use epsilon="),
        (local.LocalHashing, {"num_categories": 4}, "LocalHashing takes no num_categories=, use k="),
        (local.Split, {"attribute": {}}, "Split takes no attribute=, use attributes="),
        (local.plan, {"n": 3, "k": 3, "eps": 1.0}, "plan takes no eps=, use epsilon="),
        (stability.StableMode, {"eps": 1.0}, "StableMode takes no eps=, use epsilon="),
        (sgd.NoisyGradient, {"sigma": 1.0}, "NoisyGradient takes no sigma=, use noise_multiplier="),
        (sgd.NoisyGradient, {"max_grad_norm": 1.0}, "NoisyGradient takes no max_grad_norm=, use clip_norm="),
        (sgd.FloatSums, {"std": 1.0}, "FloatSums takes no std=, use stddev="),
        (sgd.IntegerSums, {"std": 1.0}, "IntegerSums takes no std=, use stddev="),
        (sgd.epsilon_spent, {"sigma": 1.0}, "epsilon_spent takes no sigma=, use noise_multiplier="),
        (dpnoise.accounting.Ledger, {"eps": 1.0}, "Ledger takes no eps=, use epsilon="),
    ],
)
def test_unknown_parameters_are_told_what_is_meant(call: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(message)}") as caught:
        call(**given)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dpnoise.Laplace(), "Laplace needs epsilon="),  # type: ignore[call-arg]
        (lambda: stability.StableMedian(), "StableMedian needs epsilon=, delta="),  # type: ignore[call-arg]
        (lambda: local.GeneralizedRandomizedResponse(k=3), "GeneralizedRandomizedResponse needs epsilon="),  # type: ignore[call-arg]
        (lambda: local.plan(3, 3), "plan needs epsilon="),  # type: ignore[call-arg]
        (lambda: sgd.SingleEpoch(3), "SingleEpoch: too many positional arguments"),  # type: ignore[call-arg]
    ],
)
def test_missing_parameters_are_named_for_the_class_that_is_called(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        make()


def classes_by_name(kind: type = ByName) -> set[type]:
    return {kind}.union(*map(classes_by_name, kind.__subclasses__()))


@pytest.mark.parametrize("kind", sorted(classes_by_name(), key=str), ids=lambda kind: kind.__name__)
def test_no_message_about_parameters_names_a_private_class(kind: type) -> None:
    messages = []
    for given in ({}, {"nonsense": 1}):
        try:
            kind(**given)
        except (TypeError, dpnoise.ParameterError) as error:
            messages.append(str(error))
    assert len(messages) > 0 or kind.__init__ is object.__init__
    assert set(re.findall(r"\b_\w+", " ".join(messages))) <= {kind.__name__}


def test_no_private_class_has_public_methods_that_messages_would_name() -> None:
    for kind in classes_by_name():
        public = {name for name, one in vars(kind).items() if callable(one) and not name.startswith("_")}
        assert not kind.__name__.startswith("_") or not public, kind


def test_a_call_that_fits_keeps_its_own_errors_and_signature() -> None:
    with pytest.raises(TypeError, match=r"^epsilon must be a number, got str$"):
        dpnoise.Laplace(epsilon="1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^attributes must be a mapping"):
        local.plan_attributes(3, 3, 1.0)  # type: ignore[arg-type]
    assert list(inspect.signature(local.plan).parameters) == ["n", "k", "epsilon", "shuffled_delta"]
    assert dpnoise.queries.Quantile(q=0.5, bounds=(0, 1), epsilon=1.0).q == 0.5
    assert "epsilon" in inspect.signature(dpnoise.Laplace).parameters


@pytest.mark.parametrize(
    ("variable", "value", "fails"),
    [
        ("DPNOISE_INSTRUCTION_SET", "", False),
        ("DPNOISE_INSTRUCTION_SET", "portable", False),
        ("DPNOISE_INSTRUCTION_SET", "sse9", True),
        ("DPNOISE_GENERATOR", "", False),
        ("DPNOISE_GENERATOR", "chacha12", False),
        ("DPNOISE_GENERATOR", "rc4", True),
    ],
)
def test_a_variable_that_names_nothing_is_refused_before_anything_is_spent(
    variable: str, value: str, fails: bool, tmp_path: Path
) -> None:
    code = """if True:
        import sys, dpnoise
        ledger = dpnoise.accounting.Ledger(path=sys.argv[1], epsilon=1.0)
        try:
            ledger.release(dpnoise.Laplace(epsilon=1.0), 0.0)
        finally:
            print(ledger.spent.epsilon)
    """
    command = [sys.executable, "-c", code, str(tmp_path / "ledger")]
    ran = subprocess.run(command, env={**os.environ, variable: value}, capture_output=True, text=True, check=False)
    assert (ran.returncode != 0) == fails, ran.stderr
    assert (f"{variable} must be unset" in ran.stderr) == fails
    assert float(ran.stdout) == (0.0 if fails else 1.0)
