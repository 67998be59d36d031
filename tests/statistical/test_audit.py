"""What the audit shows of each mechanism is below its claim; what it shows of planted faults is above.

A correct mechanism is refuted with a probability of at most 1e-9 in each test.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpnoise import audit, samplers
from dpnoise.audit import _self_audit
from dpnoise.audit._cases import CASES, Case

pytestmark = pytest.mark.long

Floats = NDArray[np.float64]

# `make everything` releases so many; more would take long for mechanisms that are called once for each.
MOST = 100_000
# With so many all planted faults are found: more would make that easier.
ENOUGH = 30_000
N = min(max(ENOUGH, int(os.environ.get("DPNOISE_TEST_SAMPLES", 0)) // 250), MOST)
# Found by more than 8 standard deviations of the bound with 5,000 releases, each of which is a call.
PLAIN = {
    "SubsampleAndAggregate",
    "StableValue",
    "StableMedian",
    "StableMode",
    "Count",
    "PerPerson",
    "Sum",
    "Histogram",
    "StabilityHistogram",
    "ReportNoisyMax",
}
FEWER = 10_000
SUBTLE = {"AboveThreshold", "Mean", "Quantile", "TopK"}  # these show their loss only to those who look twice as often
RARE = {"SampleAndThreshold"}  # this shows its loss in a hundredth of the releases
# A variance, or its root, is one number made of two sums with half of epsilon each; a scale has two tests, and either
# one will do; two quantiles are two choices with half of epsilon each.
HALF = {"Quantiles", "StandardDeviation", "Variance", "StableScale"}  # they lose half of epsilon at most
EPSILON = 1.0
SURE = 1 - 1e-9


@pytest.mark.parametrize("plain", [True, False])
def test_claims_hold(plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # An audit that shows nothing would pass, too: the next test is the control.
    monkeypatch.setattr(_self_audit, "CASES", tuple(case for case in CASES if (case.name in PLAIN) == plain))
    report = audit.self_audit(epsilon=EPSILON, n=FEWER if plain and N < MOST else N, level=SURE)
    print(report)
    assert len(report.names) == (len(PLAIN) if plain else len(CASES) - len(PLAIN))
    assert not report.refuted


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_twice_the_privacy_loss_is_found(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_little_noise(*, epsilon: float) -> SimpleNamespace:
        mechanism = case.make(epsilon=(6 if case.name in HALF else 2) * epsilon)
        release = getattr(mechanism, "release", getattr(mechanism, "perturb", mechanism))
        return SimpleNamespace(release=release, epsilon=epsilon, delta=getattr(mechanism, "delta", 0.0))

    is_protocol = hasattr(case.make(epsilon=EPSILON), "perturb")
    planted = case._replace(make=too_little_noise, vectorized=case.vectorized or is_protocol)
    monkeypatch.setattr(_self_audit, "CASES", (planted,))
    times = 2 if case.name in SUBTLE else 8 if case.name in RARE else 1
    often = FEWER if case.name in PLAIN else times * ENOUGH
    report = audit.self_audit(epsilon=EPSILON, n=often)
    print(report)
    assert report.refuted


# --- sparse vector, right and wrong ----------------------------------------------------------------------------------


def sparse_vector(
    answers: Floats,
    *,
    threshold_scale: float,
    query_scale: float | None,
    cutoff: int | None,
    shows_answers: bool = False,
) -> Floats:
    """Say of each answer of each row whether it is above 0, both with noise: 1, 0, or -1 after the cutoff.

    With `shows_answers` the noisy answer is shown in place of 1, NaN in place of 0, and minus infinity in place of -1.
    """
    noisy = answers if query_scale is None else answers + samplers.laplace(query_scale, size=answers.shape)
    above = noisy >= samplers.laplace(threshold_scale, size=(len(answers), 1))
    released = np.where(above, noisy if shows_answers else 1.0, np.nan if shows_answers else 0.0)
    if cutoff is not None:
        released[np.cumsum(above, axis=1) - above >= cutoff] = -np.inf if shows_answers else -1.0
    return released


SPARSE = 2.0  # the epsilon that all variants claim
DOWN_THEN_UP = ([1.0] * 4 + [0.0] * 4, [0.0] * 4 + [1.0] * 4)


def audit_sparse_vector(x: list[float], x_prime: list[float], **variant: Any) -> audit.Check:
    return audit.check(
        lambda answers: sparse_vector(answers, **variant),
        np.array(x),
        np.array(x_prime),
        n=max(N, 400_000),
        epsilon=SPARSE,
        level=SURE,
        vectorized=True,
    )


@pytest.mark.parametrize("cutoff", [1, 4])
def test_the_right_sparse_vector_passes(cutoff: int) -> None:
    noise = {"threshold_scale": 2 / SPARSE, "query_scale": 4 * cutoff / SPARSE}
    assert not audit_sparse_vector(*DOWN_THEN_UP, **noise, cutoff=cutoff).refuted


# Names as in Lyu, Su and Li (2017), "Understanding the sparse vector technique for differential privacy". The
# neighbours resemble those of its proofs; the budget is split in halves, or as the variant does it.
WRONG: dict[str, tuple[list[float], list[float], dict[str, Any]]] = {
    "Algorithm 3: the noisy answer is shown (lecture notes of 2011)": (
        [0.0] * 5 + [1.0],
        [1.0] * 5 + [0.0],
        {"threshold_scale": 2 / SPARSE, "query_scale": 2 / SPARSE, "cutoff": 1, "shows_answers": True},
    ),
    "Algorithm 4: the noise of the queries ignores the cutoff (Lee and Clifton 2014)": (
        *DOWN_THEN_UP,
        {"threshold_scale": 4 / SPARSE, "query_scale": 4 / (3 * SPARSE), "cutoff": 4},
    ),
    "Algorithm 5: the queries have no noise (Stoddard, Chen and Machanavajjhala 2014)": (
        [0.0, 1.0],
        [1.0, 0.0],
        {"threshold_scale": 2 / SPARSE, "query_scale": None, "cutoff": None},
    ),
    "Algorithm 6: there is no cutoff (Chen, Xiao, Zhang and Xu 2015)": (
        [0.0] * 8,
        [1.0] * 4 + [-1.0] * 4,
        {"threshold_scale": 2 / SPARSE, "query_scale": 2 / SPARSE, "cutoff": None},
    ),
}


@pytest.mark.parametrize("variant", WRONG)
def test_wrong_sparse_vectors_are_found(variant: str) -> None:
    x, x_prime, parameters = WRONG[variant]
    report = audit_sparse_vector(x, x_prime, **parameters)
    print(report)
    assert report.refuted


# --- noise that is not what it seems ---------------------------------------------------------------------------------


def seeded_for_each_call(x: float) -> float:
    return x + np.random.default_rng(7).laplace(0, 1 / EPSILON)


def seeded_for_each_array(x: Floats) -> Floats:
    return x + np.random.default_rng(7).laplace(0, 1 / EPSILON, x.shape)


def one_of_few_seeds(x: float) -> float:
    # As with the time in seconds of a program that was started within the last hour.
    seed = int(np.random.default_rng().integers(100))
    return x + float(np.random.default_rng(seed).laplace(0, 1 / EPSILON))


def numpy_laplace(x: Floats) -> Floats:
    return x + np.random.default_rng().laplace(0, 1 / EPSILON, x.shape)


def numpy_laplace_rounded(x: Floats) -> Floats:
    """As good as real Laplace noise for an audit: what is left is no finer than the noise allows."""
    return np.rint(numpy_laplace(x) * 1024) / 1024


@pytest.mark.parametrize(
    ("mechanism", "n", "shown"),
    [
        (seeded_for_each_call, 2000, 3.0),
        (seeded_for_each_array, 2 * N, 5.0),
        (one_of_few_seeds, 10_000, 2.0),
        (numpy_laplace, N, 4.0),
    ],
)
def test_bad_noise_is_found(mechanism: Callable[..., object], n: int, shown: float) -> None:
    vectorized = mechanism in (seeded_for_each_array, numpy_laplace)
    report = audit.check(mechanism, 0.0, 1.0, epsilon=EPSILON, n=n, level=SURE, vectorized=vectorized)
    print(report)
    assert report.refuted
    assert report.bound.epsilon > shown


def test_what_is_wrong_with_it_is_only_the_low_order_bits() -> None:
    report = audit.check(numpy_laplace_rounded, 0.0, 1.0, epsilon=EPSILON, n=N, level=SURE, vectorized=True)
    assert not report.refuted
    assert report.bound.epsilon > 0.7 * EPSILON
