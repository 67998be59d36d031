"""Propose, test, release: the test, the example's distance by brute force, exceptions that stay private, bad input."""

from __future__ import annotations

import doctest
import itertools
import math
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpnoise import ParameterError, PrivacyCost, RandomnessError, stability
from dpnoise._native import StabilityTest
from dpnoise.hazmat import ScriptedRng, SeededRng

GUIDE = Path(__file__).parents[2] / "docs/guide/stability.md"

REFUSAL = "the test of the proposed bound failed, or the release did"

OPTIONS: dict[str, Any] = {
    "propose": 2,
    "distance": lambda data, bound: 10**9,
    "answer": lambda data, bound, epsilon: (data, bound, epsilon),
    "epsilon": 1.0,
    "delta": 1e-12,  # so rarely does a distance of 0 pass, which is a refusal below
}


def full(rng: Any = None, **options: Any) -> stability.Attempt:
    release = stability.ProposeTestRelease(**OPTIONS | options).attempt("data", rng=rng)
    assert isinstance(release, stability.Attempt)
    return release


REFUSED = stability.Attempt(None, REFUSAL)


def test_the_answer_gets_half_of_epsilon_and_the_bound() -> None:
    proposed = stability.ProposeTestRelease(**OPTIONS)
    assert proposed.release("data") == ("data", 2.0, 0.5)
    assert full() == stability.Attempt(("data", 2.0, 0.5))
    assert proposed.cost == PrivacyCost(1.0, 1e-12)
    assert full(propose=lambda n: n / 8).value == ("data", 0.5, 0.5)
    assert full(distance=lambda data, bound: 10**30).value is not None
    assert full(distance=lambda data, bound: np.int32(10**9)).value is not None
    for far_off in (0, -1, -(10**30)):
        assert full(distance=lambda data, bound, found=far_off: found) == REFUSED


def test_the_test_is_that_of_half_of_epsilon() -> None:
    test = StabilityTest(0.5, 0.05)
    for seed in range(300):
        for distance in (0, test.threshold - 1, test.threshold, test.threshold + 2):
            given = full(delta=0.05, distance=lambda data, bound, found=distance: found, rng=SeededRng(seed))
            assert (given.value is not None) == test.passes(distance, SeededRng(seed))


def raises(error: BaseException) -> Callable[..., Any]:
    def function(*arguments: Any) -> Any:
        raise error

    return function


@pytest.mark.parametrize(
    "error",
    [ValueError("secret"), TypeError("secret"), KeyError("secret"), SystemExit("secret"), BaseException("secret")],
    ids=repr,
)
def test_an_exception_is_a_refusal_that_tells_nothing(error: BaseException) -> None:
    assert full(distance=raises(error)) == REFUSED
    assert full(answer=raises(error)) == REFUSED


def test_a_wrong_signature_shows_on_made_up_data_and_reads_as_a_failed_test_otherwise() -> None:
    functions = {"distance": lambda x, bound: -3, "answer": lambda x, bound, epsilon: (x, bound, epsilon)}
    made = stability.ProposeTestRelease(propose=float, epsilon=2.0, delta=1e-9, **functions)
    assert made.try_on([7]) == (1.0, 0, ([7], 1.0, 1.0))
    for name in functions:
        wrong = stability.ProposeTestRelease(propose=1, epsilon=2.0, delta=1e-9, **functions | {name: lambda x: 40})
        assert wrong.attempt([7]).refusal == "the test of the proposed bound failed, or the release did"
        with pytest.raises(TypeError, match="positional argument"):
            wrong.try_on([7])
    with pytest.raises(TypeError, match=r"^distance must return an int, got float$"):
        stability.ProposeTestRelease(
            propose=1, epsilon=2.0, delta=1e-9, **functions | {"distance": lambda x, bound: 1.5}
        ).try_on([7])


def test_warnings_are_not_shown() -> None:
    def warn(*arguments: Any) -> int:
        warnings.warn("secret", UserWarning, stacklevel=1)
        return 10**9

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        assert full(distance=warn, answer=warn).value == 10**9
    assert shown == []


def test_what_does_not_depend_on_the_data_is_raised() -> None:
    with pytest.raises(RandomnessError):
        full(answer=raises(RandomnessError("no randomness")))
    for name in ("answer", "distance"):
        assert full(**{name: raises(KeyboardInterrupt())}).value is None, "an error like any other"
        with pytest.raises(KeyboardInterrupt):
            full(**{name: lambda *given: signal.raise_signal(signal.SIGINT)})
    with pytest.raises(RandomnessError):
        full(rng=ScriptedRng(b""))


BAD: list[tuple[type[Exception], str, dict[str, Any]]] = [
    (ParameterError, "epsilon must be from 2 * 2**-40 to 2**40, got 0.0", {"epsilon": 0.0}),
    (ParameterError, "epsilon must be from 2 * 2**-40 to 2**40, got -1", {"epsilon": -1}),
    (ParameterError, "epsilon must be from 2 * 2**-40 to 2**40, got nan", {"epsilon": math.nan}),
    (ParameterError, "epsilon must be from 2 * 2**-40 to 2**40, got inf", {"epsilon": math.inf}),
    (TypeError, "epsilon must be a number, got str", {"epsilon": "1"}),
    (ParameterError, "delta must be between 0 and 1, both excluded, got 0.0", {"delta": 0.0}),
    (ParameterError, "delta must be between 0 and 1, both excluded, got 1.0", {"delta": 1}),
    (ParameterError, "propose must be, or return, a positive finite number, got 0.0", {"propose": 0}),
    (ParameterError, "propose must be, or return, a positive finite number, got inf", {"propose": math.inf}),
    (ParameterError, "propose must be, or return, a positive finite number, got nan", {"propose": lambda n: math.nan}),
    (TypeError, "propose must be a number, got NoneType", {"propose": None}),
    (TypeError, "propose must be a number, got str", {"propose": str}),
    (TypeError, "distance must be callable, got int", {"distance": 3}),
    (TypeError, "answer must be callable, got NoneType", {"answer": None}),
    (TypeError, "distance must return an int, got float", {"distance": lambda data, bound: 12345.0}),
    (TypeError, "distance must return an int, got bool", {"distance": lambda data, bound: True}),
    (TypeError, "distance must return an int, got ndarray", {"distance": lambda data, bound: np.array([12345])}),
    (TypeError, "distance must return an int, got NoneType", {"distance": lambda data, bound: None}),
]


@pytest.mark.parametrize(("kind", "message", "bad"), BAD, ids=[f"{i}-{min(row[2])}" for i, row in enumerate(BAD)])
def test_bad_input_is_named_before_anything_is_drawn(kind: type[Exception], message: str, bad: dict[str, Any]) -> None:
    with pytest.raises(kind, match="^" + re.escape(message) + "$"):
        full(**bad, rng=ScriptedRng(b""))


def test_rows_are_counted_only_for_a_proposal_that_asks_for_them() -> None:
    def per_row(n: int) -> float:
        return 1 / n

    fixed = stability.ProposeTestRelease(**OPTIONS | {"delta": 0.25})
    counting = stability.ProposeTestRelease(**OPTIONS | {"delta": 0.25, "propose": per_row})
    assert fixed.release(iter([1]))[1] == 2.0
    assert fixed.release([])[1] == 2.0
    with pytest.warns(UserWarning, match=r"delta=0\.25 is at least 1/n with n=4") as warned:
        counting.release("data")
    assert [warning.filename for warning in warned] == [__file__], "it points to the caller"
    with pytest.raises(ParameterError, match="data must have at least one row if propose is to be called, got none"):
        counting.release([])
    with pytest.raises(TypeError, match="data must have a length if propose is to be called"):
        counting.release(iter([1]))


# --- the example -----------------------------------------------------------------------------------------------------

DOMAIN = (0, 1, 3, 50, 100)  # both bounds of the example, where one person's change has the largest effect
Ages = tuple[int, ...]


def example() -> dict[str, Any]:
    """Run the example and give what it defines."""
    module = sys.modules["dpnoise.stability._propose_test_release"]
    finder = doctest.DocTestFinder()
    (found,) = (
        test for test in finder.find(stability.ProposeTestRelease, "example", module, globs={}) if test.examples
    )
    assert doctest.DocTestRunner(verbose=False).run(found, clear_globs=False).failed == 0
    return found.globs


def test_the_guide_has_the_example_of_the_reference() -> None:
    lines = (stability.ProposeTestRelease.__doc__ or "").split("\n")
    code = [line.strip()[4:] for line in lines if line.strip().startswith((">>> def", "..."))]
    code = [line for line in code if not line.strip().startswith("datasets.") and line != ")"]
    guide = GUIDE.read_text(encoding="utf-8")
    assert len(code) == 8
    for line in code:
        assert line in guide


def people(n: int) -> list[Ages]:
    return list(itertools.combinations_with_replacement(DOMAIN, n))


def neighbours(ages: Ages) -> Iterator[Ages]:
    for i, age in itertools.product(range(len(ages)), DOMAIN):
        yield tuple(sorted((*ages[:i], age, *ages[i + 1 :])))


def median(ages: Ages) -> int:
    return ages[(len(ages) - 1) // 2]


def distances(n: int, bound: float) -> dict[Ages, float]:
    """How many ages have to change until the local sensitivity is above the bound, by searching all of them."""
    found: dict[Ages, float] = dict.fromkeys(people(n), math.inf)
    layer = [ages for ages in found if max(abs(median(ages) - median(other)) for other in neighbours(ages)) > bound]
    for distance in itertools.count():
        found |= dict.fromkeys(layer, distance)
        layer = [other for other in {near for ages in layer for near in neighbours(ages)} if found[other] == math.inf]
        if not layer:
            return found
    raise AssertionError


def unjustified(distance: Callable[[Any, float], int], n: int, bound: float) -> int:
    """Count the data whose distance is negative, above the true one, or moved by more than 1 by somebody."""
    found = {ages: distance(ages, bound) for ages in people(n)}
    true = distances(n, bound)
    return sum(
        not 0 <= found[ages] <= true[ages] or any(abs(found[ages] - found[other]) > 1 for other in neighbours(ages))
        for ages in found
    )


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_the_distance_of_the_example_by_brute_force(n: int) -> None:
    distance = example()["distance"]
    for bound in (0.5, 1, 2, 47, 50, 99, 100):
        assert unjustified(distance, n, bound) == 0
    # Positive controls: one more than it should be, and twice as much.
    assert unjustified(lambda ages, bound: distance(ages, bound) + 1, n, 2) > 0
    assert unjustified(lambda ages, bound: 2 * distance(ages, bound), n, 50) > 0 or n == 1


def test_the_example_is_private_in_exact_fractions() -> None:
    """Over all neighbours of three and four people, with exp(-epsilon/2) replaced by a fraction."""
    r, delta, bound = Fraction(1, 2), Fraction(1, 50), 1
    t = next(t for t in itertools.count() if r ** (t + 1) / (1 + r) <= delta)
    weights = np.array([r ** abs(i) for i in range(-110, 111)]) * (1 - r) / (1 + r)

    def passes(distance: int) -> Fraction:
        above = t - int(distance)
        return r ** (above + 1) / (1 + r) if above >= -1 else 1 - r**-above / (1 + r)

    def law(distance: int, answer: int) -> Any:
        """Of no release, and of the answers -5 to 105 with noise; those beyond are put together."""
        noisy = weights[105 - answer : 216 - answer].copy()
        noisy[0], noisy[-1] = r ** (answer + 5) / (1 + r), r ** (105 - answer) / (1 + r)
        return np.array([1 - passes(distance), *(passes(distance) * noisy)])

    def worst(distance: Callable[[Any, float], int], n: int) -> Fraction:
        laws = {ages: law(distance(ages, bound), median(ages)) for ages in people(n)}
        return max(
            np.maximum(laws[ages] - laws[other] / r**2, 0).sum() for ages in laws for other in set(neighbours(ages))
        )

    distance = example()["distance"]
    for n in (3, 4):
        assert 0 < worst(distance, n) <= delta
    assert worst(lambda ages, bound: distance(ages, bound) + 1, 3) > delta  # a planted fault
