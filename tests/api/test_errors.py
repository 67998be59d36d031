"""One base for all errors, and public names in tracebacks."""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import os
import pickle
import pkgutil
import pydoc
import re
import subprocess
import sys
import traceback
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpnoise


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
    assert others == {"Died", "DoubtfulInputWarning"}, "which no function raises"
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


BY_NAME = "takes its parameters by name, use"
CENTRED = "noise has mean 0, and is added to the value that release takes; use epsilon=, "
DERIVED = "the scale of the noise follows from the privacy parameters and the sensitivity; use epsilon=, "
NOT_SEEDED = "noise is not seeded; for tests, pass rng=dpnoise.hazmat.SeededRng(1) to the method that draws; use "
NO_LOCATION = "there is no location, noise has mean 0; use"
COINS = "RandomizedResponse.coin_flips()"

WRONG_CALLS = [
    # too many positional arguments
    ("Laplace(1.0)", f"Laplace {BY_NAME} epsilon=, sensitivity=, granularity="),
    ("Laplace(1.0, 1.0)", f"Laplace {BY_NAME} epsilon=, sensitivity=, granularity="),
    ("queries.Count(1.0)", f"Count {BY_NAME} epsilon=, relation="),
    ("accounting.Accountant('rdp')", f"Accountant {BY_NAME} method=, relation="),
    ("local.LocalHashing(4, 1.0)", f"LocalHashing {BY_NAME} k=, domain=, epsilon=, g="),
    ("local.Split({})", f"Split {BY_NAME} attributes="),
    ("sgd.SingleEpoch(3)", "SingleEpoch takes no arguments, got 1"),
    ("sensitivity.count('add/remove', 2)", "count takes relation, got 2"),
    ("PrivacyCost(1.0, 0.0, None, None, 1)", "PrivacyCost takes epsilon and delta and relation and person, got 5"),
    (
        "Laplace(epsilon=1.0).release(3.0, 5)",
        "Laplace.release takes x by position and the others by name; use threads=, ",
    ),
    (
        f"local.{COINS}.estimate(580, 1000)",
        "RandomizedResponse.estimate takes collected by position and the others by na",
    ),
    ("accounting.pure_zcdp_rho(0.1, 0.2)", "pure_zcdp_rho takes epsilon, got 2"),
    (
        "accounting.compose_advanced(cost, 9, 1e-6)",
        "compose_advanced takes cost and count by position and the others by",
    ),
    ("samplers.laplace(0, 1)", f"laplace takes scale by position and the others by name: {NO_LOCATION} size=, "),
    ("samplers.geometric(0, 1)", "geometric takes scale by position and the others by name; use size=, "),
    # names of other libraries
    ("queries.Histogram(bins=[0, 1])", "Histogram takes no bins=, use edges="),
    ("queries.Histogram(labels=['a'], epsilon=1.0)", "Histogram takes no labels=, use domain="),
    ("queries.Count(epsilon=1.0, neighbours='substitute')", "Count takes no neighbours=, use relation="),
    ("queries.Median(epsilon=1.0, lower=0, upper=1)", "Median takes no lower=, use bounds="),
    ("queries.Quantile(quantile=0.5)", "Quantile takes no quantile=, use q="),
    ("Laplace(eps=1.0)", "Laplace takes no eps=, use epsilon="),
    ("Laplace(scale=1.0)", f"Laplace takes no scale=: {DERIVED}sensitivity=, granularity="),
    ("Laplace(loc=0.0)", f"Laplace takes no loc=: {CENTRED}sensitivity=, granularity="),
    ("DiscreteLaplace(seed=1)", f"DiscreteLaplace takes no seed=: {NOT_SEEDED}epsilon=, sensitivity="),
    ("Laplace(epsilon=1.0).release(3.0, seed=1)", "Laplace.release takes no seed=, use rng="),
    ("local.LocalHashing(num_categories=4)", "LocalHashing takes no num_categories=, use k="),
    ("local.plan(n=3, k=3, eps=1.0)", "plan takes no eps=, use epsilon="),
    ("sgd.NoisyGradient(sigma=1.0)", "NoisyGradient takes no sigma=, use noise_multiplier="),
    ("sgd.NoisyGradient(max_grad_norm=1.0)", "NoisyGradient takes no max_grad_norm=, use clip_norm="),
    ("sgd.FloatSums(std=1.0)", "FloatSums takes no std=, use stddev="),
    ("accounting.Ledger(eps=1.0)", "Ledger takes no eps=, use epsilon="),
    ("samplers.laplace(loc=0.0)", f"laplace takes no loc=: {NO_LOCATION} scale=, size=, "),
    ("samplers.laplace(b=1.0)", "laplace takes no b=, use scale="),
    ("samplers.gaussian(std=1.0)", "gaussian takes no std=, use sigma="),
    ("samplers.laplace(1.0, shape=3)", "laplace takes no shape=, use size="),
    (
        "Exponential(epsilon=1.0).release_best(possible_outputs=[1])",
        "Exponential.release_best takes no possible_outputs=",
    ),
    # misspelt, or of nothing
    ("Laplace(epsilonn=1.0)", "Laplace takes no epsilonn=, use epsilon="),
    ("Exponential(utility=max)", "Exponential takes no utility=, use epsilon=, sensitivity=, monoton"),
    ("local.Split(attribute={})", "Split takes no attribute=, use attributes="),
    (
        "local.RandomizedResponse.coin_flips(domain=[])",
        "RandomizedResponse.coin_flips takes no domain= or any other argum",
    ),
    # missing
    ("Laplace()", "Laplace needs epsilon="),
    ("stability.StableMedian()", "StableMedian needs epsilon=, delta="),
    ("local.plan(3, 3)", "plan needs epsilon="),
    ("local.OptimizedUnaryEncoding(k=4)", "OptimizedUnaryEncoding needs epsilon="),
    ("local.OptimizedUnaryEncoding.from_json()", "OptimizedUnaryEncoding.from_json needs text="),
    (f"local.{COINS}.perturb()", "RandomizedResponse.perturb needs values="),
    ("Laplace(epsilon=1.0).release()", "Laplace.release needs x="),
    ("DiscreteLaplace(epsilon=1.0).release()", "DiscreteLaplace.release needs x="),
    ("samplers.laplace()", "laplace needs scale="),
    ("samplers.staircase(1.0)", "staircase needs width=, inner="),
    ("accounting.compose_sequential()", "compose_sequential needs costs="),
    ("accounting.group_privacy(size=4)", "group_privacy needs cost="),
    # others
    ("accounting.group_privacy(cost, cost=cost)", "group_privacy got cost= by position and by name"),
    (
        "accounting.compose_advanced(0.1, 100, 1e-6)",
        "compose_advanced takes cost and count by position and the others by name; use delta=, ",
    ),
    ("Laplace.release(3.0)", "release is a method: make an object first, and call its release"),
]


@pytest.mark.parametrize(("call", "message"), WRONG_CALLS)
def test_wrong_calls_are_answered(call: str, message: str) -> None:
    names = {name: getattr(dpnoise, name) for name in dpnoise.__all__} | {"cost": dpnoise.PrivacyCost(1.0)}
    with pytest.raises(TypeError, match=f"^{re.escape(message)}") as caught:
        eval(call, names)  # noqa: S307
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert "_calls.py" not in "".join(traceback.format_exception(caught.value))


# A context manager, and calls of a microsecond, which a wrapper would make slower: named right by Python itself.
PYTHONS_OWN = {
    "chart",
    "random_bytes",
    "NoiseBuffer.add_noise",
    "TruncatedGeometric.should_keep",
    "AboveThresholdRun.is_above",
}


def public_calls() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Return the public functions, and the constructors and methods of public classes, with their names in messages.

    `dpnoise.extend` is left out: it is for packages, and their hosts call some of it for each number.
    """
    for module in pkgutil.walk_packages(dpnoise.__path__, "dpnoise."):
        if re.search(r"\._|\.cli|\.extend", module.name):
            continue
        members = importlib.import_module(module.name)
        for kind in (getattr(members, name) for name in members.__all__):
            if inspect.isfunction(kind):
                yield kind.__name__, kind
            if (
                not inspect.isclass(kind)
                or inspect.isabstract(kind)
                or issubclass(kind, np.random.BitGenerator | BaseException | tuple)
            ):
                continue
            bases = dpnoise.local.FrequencyProtocol, dpnoise.local.LongitudinalProtocol  # that say to make another one
            if inspect.isfunction(kind.__init__) and kind not in bases:
                yield kind.__name__, kind
            for name in (name for name in dir(kind) if not name.startswith("_")):
                method = inspect.getattr_static(kind, name)
                if inspect.isfunction(method) and method.__module__.startswith("dpnoise"):
                    yield f"{kind.__name__}.{name}", partial(method, object.__new__(kind))
                elif isinstance(method, classmethod | staticmethod):
                    yield f"{kind.__name__}.{name}", getattr(kind, name)


# Its keywords are the names of the answers.
TAKE_ANY_NAME = {"Questions.release", "Table.release"}


def test_every_public_call_is_answered_for_its_own_name() -> None:
    called = dict(public_calls())
    assert len(called) > 400
    for name, call in called.items():
        with pytest.raises(TypeError) as caught:
            call(nonsense=1)
        if name in TAKE_ANY_NAME:
            assert str(caught.value).startswith("nonsense must be ")
            continue
        answer = "() got an unexpected keyword argument 'nonsense'" if name in PYTHONS_OWN else " takes no nonsense="
        assert str(caught.value).startswith(f"{name}{answer}")
        assert not re.search(r"_\w", str(caught.value))


def test_functions_that_answer_stay_functions() -> None:
    function, method = dpnoise.accounting.group_privacy, dpnoise.Laplace(epsilon=1.0).error
    assert pickle.loads(pickle.dumps(function)) is function  # noqa: S301
    assert pickle.loads(pickle.dumps(method))() == method()  # noqa: S301
    assert "def group_privacy(cost: PrivacyCost" in inspect.getsource(function)
    assert pydoc.render_doc(function, renderer=pydoc.plaintext).count("cost: 'PrivacyCost | Number', size: 'Integer')")
    assert list(inspect.signature(dpnoise.Laplace).parameters) == ["epsilon", "sensitivity", "granularity"]
    assert list(inspect.signature(dpnoise.Laplace.release).parameters) == ["self", "x", "threads", "rng"]
    assert list(inspect.signature(dpnoise.samplers.bernoulli).parameters) == ["p", "size", "out", "threads", "rng"]
    assert type(dpnoise.Laplace) is type


@pytest.mark.parametrize("level", [2.0, "a"])
def test_tracebacks_of_errors_show_no_wrapper(level: Any) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        dpnoise.Laplace(epsilon=1.0).error(level)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [Path(frame.filename).name for frame in frames] == [Path(__file__).name, "_noise.py"]


def test_completion_lists_what_is_public() -> None:
    assert {*dir(dpnoise)} == {*dpnoise.__all__, "bit_generator", "mechanisms"}
    assert not {"lazily", "TYPE_CHECKING"} & vars(dpnoise).keys()


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("RandomizedResponse", "dpnoise.local.RandomizedResponse"),
        ("UnaryEncoding", "dpnoise.local.UnaryEncoding"),
        ("RandomisedResponse", "dpnoise.local.RandomizedResponse"),
        ("LaplaceMechanism", "dpnoise.Laplace or dpnoise.samplers.laplace"),
        ("laplace", "dpnoise.Laplace or dpnoise.samplers.laplace"),
        ("NoiseBuffer", "dpnoise.mechanisms.NoiseBuffer"),
        ("Ledger", "dpnoise.accounting.Ledger"),
        ("low_order_bits", "dpnoise.audit.attacks.low_order_bits"),
        ("lazily", None),
        ("_private", None),
    ],
)
def test_names_that_are_elsewhere_are_found(name: str, places: str | None) -> None:
    place = f", use {places}" if places else ""
    missing = f"module 'dpnoise' has no attribute {name!r}{place}"
    with pytest.raises(AttributeError, match=f"^{re.escape(missing)}$"):
        getattr(dpnoise, name)
    with pytest.raises(ImportError, match=f"^cannot import name {name!r} from 'dpnoise'{re.escape(place)}"):
        exec(f"from dpnoise import {name}")  # noqa: S102
    assert not hasattr(dpnoise, name)


def test_code_of_no_module_gets_the_same_answers() -> None:
    with pytest.raises(AttributeError, match=r"use dpnoise\.Laplace"):
        exec("import dpnoise\ndpnoise.LaplaceMechanism", {})  # noqa: S102
    with pytest.warns(UserWarning, match="perturb_encoded"):
        exec("from dpnoise import local\nlocal.OptimizedUnaryEncoding(k=3, epsilon=1).perturb([0, 1, 0])", {})  # noqa: S102


def test_a_package_names_what_the_top_has() -> None:
    with pytest.raises(
        AttributeError, match=r"^module 'dpnoise\.accounting' has no attribute 'Laplace', use dpnoise\.La"
    ):
        _ = dpnoise.accounting.Laplace  # type: ignore[attr-defined]


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


def test_a_failing_call_keeps_no_data() -> None:
    class Column(np.ndarray):
        """An array that may be referred to weakly."""

    gc.disable()
    try:
        for call in (
            dpnoise.local.OptimizedUnaryEncoding(k=3, epsilon=1.0).perturb,
            dpnoise.queries.Count(epsilon=1.0).release,
        ):
            data = np.zeros((3, 3)).view(Column)
            kept = weakref.ref(data)
            with contextlib.suppress(TypeError, ValueError):
                call(data)
                pytest.fail("it takes a table")
            del data
            assert kept() is None
    finally:
        gc.enable()


def test_a_name_that_is_nowhere_imports_nothing() -> None:
    code = "import sys, dpnoise; assert not hasattr(dpnoise, 'nope'); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
