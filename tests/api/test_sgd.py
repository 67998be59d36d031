"""Clipped gradients, their noise, batches, and what they cost."""

from __future__ import annotations

import copy
import logging
import math
import pickle
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import dp_accounting
import numpy as np
import pytest

import dpnoise
from dpnoise import hazmat, sgd
from dpnoise.accounting import Accountant, DiscreteGaussianLoss, Ledger, zcdp_epsilon
from dpnoise.sgd import (
    BandedToeplitz,
    FloatSums,
    IntegerSums,
    NoisyGradient,
    clip_and_sum,
    epsilon_spent,
    noise_multiplier_for,
    poisson_sample,
)

DTYPES = [np.float32, np.float64]


def granularity(clip_norm: float) -> float:
    return NoisyGradient(clip_norm=clip_norm, noise_multiplier=1.0, expected_batch_size=1.0).granularity


def gradients(n: int, d: int, dtype: Any = np.float64, seed: int = 1) -> np.ndarray:
    """Rows of very different norms."""
    generator = np.random.default_rng(seed)
    return (generator.normal(size=(n, d)) * 2.0 ** generator.integers(-20, 20, (n, 1))).astype(dtype)


# --- the sum ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_within_the_norm_are_rounded_to_the_grid_and_added_up_exactly(dtype: Any) -> None:
    """Integers against fractions, where no row is clipped."""
    rows = (np.random.default_rng(2).normal(size=(50, 7)) * 0.1).astype(dtype)
    step = Fraction(granularity(1.0))
    sums = [sum(round(Fraction(float(x)) / step) for x in column) for column in rows.T]  # half to even
    expected = np.array([float(count * step) for count in sums]).astype(dtype)
    np.testing.assert_array_equal(clip_and_sum(rows, clip_norm=1.0), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("clip_norm", [1.0, 0.3, 1e-9, 1e9])
def test_clipped_rows_point_the_same_way_and_are_as_long_as_the_norm(dtype: Any, clip_norm: float) -> None:
    """Each row by itself, in exact numbers: within half a step, and a part in 2**27 of its length."""
    step = Fraction(granularity(clip_norm))
    for row in gradients(30, 5, dtype) * dtype(clip_norm):
        exact = [Fraction(float(x)) for x in row]
        norm = Fraction(math.sqrt(sum(x * x for x in exact)))
        factor = min(Fraction(1), Fraction(clip_norm) / norm)
        found = clip_and_sum(row[np.newaxis].astype(np.float64), clip_norm=clip_norm)
        for x, y in zip(exact, found, strict=True):
            assert abs(Fraction(float(y)) - x * factor) <= step / 2 + abs(x * factor) / 2**27
        np.testing.assert_allclose(clip_and_sum(row[np.newaxis], clip_norm=clip_norm), found, rtol=2**-23)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "d"), [(0, 3), (1, 1), (3, 31), (9, 32), (20, 100), (7, 4097), (2000, 10)])
def test_it_agrees_with_numpy(dtype: Any, n: int, d: int) -> None:
    rows = gradients(n, d, dtype)
    wide = rows.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    expected = (wide * np.minimum(1, 0.5 / np.maximum(norms, 1e-300))).sum(axis=0)
    found = clip_and_sum(rows, clip_norm=0.5)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8 * (n + 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "d"), [(64, 33), (300, 1000)])
def test_order_and_threads_do_not_matter(dtype: Any, n: int, d: int) -> None:
    rows = gradients(n, d, dtype)
    expected = clip_and_sum(rows, clip_norm=1.0, threads=1)
    for order in (slice(None, None, -1), np.random.default_rng(3).permutation(n)):
        for threads in (1, 2, 5, None):
            np.testing.assert_array_equal(clip_and_sum(rows[order], clip_norm=1.0, threads=threads), expected)
    naive = (rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))).astype(dtype)
    assert np.any(naive.cumsum(axis=0)[-1] != naive[::-1].cumsum(axis=0)[-1]), "floats do depend on the order"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf, "overflow"])
def test_a_row_that_is_not_finite_counts_as_zeros(dtype: Any, bad: float | str) -> None:
    rows = gradients(5, 40, dtype)
    rows[2, 37] = bad if bad != "overflow" else np.finfo(dtype).max
    expected = clip_and_sum(np.delete(rows, 2, axis=0), clip_norm=1.0)
    if bad == "overflow" and dtype is np.float32:  # there squares do not overflow
        expected[37] += 1
        np.testing.assert_allclose(clip_and_sum(rows, clip_norm=1.0), expected, atol=1e-6)
    else:
        np.testing.assert_array_equal(clip_and_sum(rows, clip_norm=1.0), expected)


def adversarial_rows(clip_norm: float, d: int) -> dict[str, np.ndarray]:
    """Rows that a careless implementation would make too long."""
    step = granularity(clip_norm)
    even = clip_norm / math.sqrt(d)
    first = np.zeros(d)
    first[0] = 1.0
    return {
        "just at the norm": np.full(d, even),
        "one number at the norm": first * clip_norm,
        "a little beyond": np.full(d, np.nextafter(even, math.inf)),
        "all rounded up": np.full(d, (math.floor(even / step) + 0.500001) * step),
        "huge": np.full(d, 1e150),
        "one is huge": 1.0 + first * 1e153,
        "huge and subnormal": first * 1e153 + 5e-324,
        "subnormal": np.full(d, 5e-324),
        "tiny": np.full(d, 2.0**-511),
        "overflow": np.full(d, 1e300),
        "infinite": np.where(first > 0, math.inf, 0.0),
        "not a number": np.full(d, math.nan),
        "steep": clip_norm * 2.0 ** -np.arange(d, dtype=np.float64),
    }


def longest_in_steps(clip_norm: float, d: int, dtype: Any) -> Fraction:
    """Give the square of the length of the longest row, in steps."""
    step = Fraction(granularity(clip_norm))
    longest = Fraction(0)
    for row in adversarial_rows(clip_norm, d).values():
        with np.errstate(over="ignore", under="ignore"):
            # As doubles, which hold what singles are clipped to on the grid.
            given = row.astype(dtype).astype(np.float64)
        steps = [Fraction(float(x)) / step for x in clip_and_sum(given[np.newaxis], clip_norm=clip_norm)]
        assert all(count.denominator == 1 for count in steps)
        longest = max(longest, sum(count * count for count in steps))
    return longest


@pytest.mark.parametrize(("n", "d"), [(1, 1), (12, 45), (5, 3000)])
def test_singles_are_clipped_as_the_same_doubles_are(n: int, d: int) -> None:
    """So the search for rows that are too long covers both."""
    rows = gradients(n, d, np.float32)
    rows[0] = np.finfo(np.float32).max
    wide = clip_and_sum(rows.astype(np.float64), clip_norm=0.3)
    np.testing.assert_array_equal(clip_and_sum(rows, clip_norm=0.3), wide.astype(np.float32))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("clip_norm", [1.0, 0.7, 1.0 + 2.0**-52, 1e-20, 1e20])
def test_no_row_changes_the_sum_by_more_than_the_sensitivity(dtype: Any, clip_norm: float) -> None:
    reached = []
    for d in (1, 2, 3, 32, 90, 500):
        sensitivity = Fraction(
            NoisyGradient(clip_norm=clip_norm, noise_multiplier=1.0, expected_batch_size=1.0)._native.sensitivity(d)
        )
        longest = longest_in_steps(clip_norm, d, dtype) * Fraction(granularity(clip_norm)) ** 2
        assert longest <= sensitivity**2
        reached.append(longest > (Fraction(clip_norm) * (1 - Fraction(1, 2**20))) ** 2)
        exceeds_the_norm = longest > Fraction(clip_norm) ** 2
        assert sensitivity > clip_norm or not exceeds_the_norm
    assert all(reached), "rows are clipped too much"


def test_the_clip_norm_alone_is_exceeded() -> None:
    """The rounding that the sensitivity allows for does happen."""
    exceeding = [d for d in range(1, 60) if longest_in_steps(1.0, d, np.float64) > 2**64]
    assert len(exceeding) > 5


def test_sensitivity_and_granularity() -> None:
    native = NoisyGradient(clip_norm=1.5, noise_multiplier=1.0, expected_batch_size=1.0)._native
    assert native.granularity == 2.0**-31
    for d, extra in [(1, 1), (4, 1), (5, 2), (10**6, 500), (10**6 + 1, 501)]:
        assert native.sensitivity(d) == 1.5 + extra * 2.0**-31
    assert (
        NoisyGradient(clip_norm=1.0, noise_multiplier=1.0, expected_batch_size=1.0)._native.sensitivity(10**6) - 1
        < 5e-7
    )


def test_out_is_filled_and_conversions_are_exact() -> None:
    rows = np.arange(12.0).reshape(3, 4)
    expected = clip_and_sum(rows, clip_norm=1.0)
    out = np.empty(4)
    assert clip_and_sum(rows, clip_norm=1.0, out=out) is out
    np.testing.assert_array_equal(out, expected)
    unaligned = np.frombuffer(b"\0" + rows.tobytes(), np.float64, offset=1).reshape(3, 4)
    assert not unaligned.flags.aligned
    strided = np.repeat(rows, 2, 1)[:, ::2]
    for same in (rows.tolist(), rows.astype(np.int8), np.asfortranarray(rows), strided, unaligned, rows.astype(">f8")):
        np.testing.assert_array_equal(clip_and_sum(same, clip_norm=1.0), expected)
    half = rows.astype(np.float16)
    assert clip_and_sum(half, clip_norm=1.0).dtype == np.float32
    np.testing.assert_array_equal(clip_and_sum(half, clip_norm=1.0), expected.astype(np.float32))


# --- the step -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_step_is_the_sum_and_discrete_gaussian_noise_on_the_grid(dtype: Any) -> None:
    noisy = NoisyGradient(clip_norm=1.5, noise_multiplier=1.1, expected_batch_size=100)
    rows = gradients(20, 9, dtype)
    found = noisy.release(rows, rng=hazmat.SeededRng(5))
    sigma = math.nextafter(1.1 * (noisy._native.sensitivity(9) / noisy.granularity), math.inf)
    noise = dpnoise.samplers.discrete_gaussian(sigma, size=9, rng=hazmat.SeededRng(5))
    total = clip_and_sum(rows.astype(np.float64), clip_norm=1.5) / noisy.granularity
    expected = [(int(count) + int(n)) * noisy.granularity / 100 for count, n in zip(total, noise, strict=True)]
    np.testing.assert_array_equal(found, np.array(expected).astype(dtype))
    assert found.dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_empty_batch_makes_a_step_of_noise(dtype: Any) -> None:
    noisy = NoisyGradient(clip_norm=1.0, noise_multiplier=2.0, expected_batch_size=10)
    step = noisy.release(np.empty((0, 20_000), dtype))
    assert step.dtype == dtype
    # Of so many Gaussian values the mean square is off by 10% with a probability below 1e-22.
    assert abs(np.mean(step.astype(np.float64) ** 2) / 0.2**2 - 1) < 0.1
    assert np.any(noisy.release(np.empty((0, 20_000), dtype)) != step)


def test_releases_fill_out_use_threads_and_can_be_pickled() -> None:
    noisy = NoisyGradient(clip_norm=0.5, noise_multiplier=0.7, expected_batch_size=12.5)
    out = np.empty(40_000, np.float32)
    assert noisy.release(np.zeros((3, 40_000), np.float32), out=out, threads=2) is out
    assert np.count_nonzero(out) > 30_000
    for twin in (copy.copy(noisy), pickle.loads(pickle.dumps(noisy))):  # noqa: S301
        assert repr(twin) == "NoisyGradient(clip_norm=0.5, noise_multiplier=0.7, expected_batch_size=12.5)"
        rows = gradients(4, 3)
        step = twin.release(rows, rng=hazmat.SeededRng(1))
        np.testing.assert_array_equal(step, noisy.release(rows, rng=hazmat.SeededRng(1)))


def test_a_step_costs_what_its_rho_and_a_delta_say(memory_path: Path) -> None:
    noisy = NoisyGradient(clip_norm=1.0, noise_multiplier=3.0, expected_batch_size=10)
    assert Fraction(noisy.rho) >= Fraction(1, 18) > Fraction(math.nextafter(noisy.rho, 0))
    assert (noisy.relation, noisy.epsilon, noisy.delta) == ("add/remove", None, None)
    with pytest.raises(dpnoise.ParameterError, match=r"delta must be given for a cost, got None: rho=0\.05.*delta="):
        _ = noisy.cost
    paying = NoisyGradient(clip_norm=1.0, noise_multiplier=3.0, expected_batch_size=10, delta=1e-6)
    assert paying.cost == dpnoise.PrivacyCost(zcdp_epsilon(noisy.rho, delta=1e-6), 1e-6, "add/remove")
    assert repr(paying).endswith("expected_batch_size=10.0, delta=1e-06)")
    assert pickle.loads(pickle.dumps(paying)) == paying != noisy  # noqa: S301
    # Continuous noise of as many sensitivities, exactly accounted for, costs a little less.
    gaussian = dpnoise.Gaussian(sensitivity=1.0, rho=noisy.rho).epsilon_for(1e-6)
    assert gaussian < paying.cost.epsilon < 1.1 * gaussian
    ledger = Ledger(memory_path / "ledger", epsilon=4.0, delta=1e-5)
    step = ledger.release(paying, np.ones((3, 2)))
    assert step.shape == (2,)
    assert ledger.spent == paying.cost
    with pytest.raises(dpnoise.ParameterError, match="gradients must be of shape"):
        ledger.release(paying, np.ones(2))
    with pytest.raises(dpnoise.ParameterError, match="delta must be given for a cost"):
        ledger.release(noisy, np.ones((3, 2)))
    assert ledger.spent == paying.cost, "nothing more was spent"


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_noise_is_as_large_as_said(level: float) -> None:
    noisy = NoisyGradient(clip_norm=4.0, noise_multiplier=0.5, expected_batch_size=10)
    d = 1_000_000
    within = np.count_nonzero(np.abs(noisy.release(np.empty((0, d)))) <= noisy.error(d, level)) / d
    assert abs(within - level) < 7 * math.sqrt(level * (1 - level) / d), "fails once in 10^11 runs"
    wider = NoisyGradient(clip_norm=4.0, noise_multiplier=1.0, expected_batch_size=10)
    assert wider.error(d, level) == pytest.approx(2 * noisy.error(d, level), rel=1e-6)


# --- bad input ----------------------------------------------------------------------------------------------------

NOISY = NoisyGradient(clip_norm=1.0, noise_multiplier=1.0, expected_batch_size=1.0)
ROWS = np.ones((3, 2))


def noisy(**parameters: Any) -> NoisyGradient:
    return NoisyGradient(**{"clip_norm": 1.0, "noise_multiplier": 1.0, "expected_batch_size": 1.0, **parameters})


BAD = [
    (lambda: clip_and_sum(ROWS, clip_norm=0.0), ValueError, r"clip_norm must be from 2\*\*-80 to 2\*\*80, got 0.0"),
    (lambda: clip_and_sum(ROWS, clip_norm=-1), ValueError, "clip_norm must be .*got -1.0"),
    (lambda: clip_and_sum(ROWS, clip_norm=math.nan), ValueError, "clip_norm must be .*got NaN"),
    (lambda: clip_and_sum(ROWS, clip_norm=math.inf), ValueError, "clip_norm must be .*got inf"),
    (lambda: clip_and_sum(ROWS, clip_norm="1"), TypeError, "clip_norm must be a number, got str"),
    (lambda: clip_and_sum(ROWS[0], clip_norm=1.0), ValueError, r"gradients must be of shape \(examples, parameters\)"),
    (lambda: clip_and_sum(ROWS[np.newaxis], clip_norm=1.0), ValueError, "gradients must be of shape.*got 3 dimensions"),
    (lambda: clip_and_sum(np.ones((3, 0)), clip_norm=1.0), ValueError, "gradients must be of .*got no parameters"),
    (lambda: clip_and_sum(ROWS.astype(complex), clip_norm=1.0), TypeError, "gradients must be real .*complex128"),
    (lambda: clip_and_sum(ROWS > 0, clip_norm=1.0), TypeError, "gradients must be real numbers .*got dtype bool"),
    (lambda: clip_and_sum([["a"]], clip_norm=1.0), TypeError, "gradients must be real numbers .*got dtype str"),
    (lambda: clip_and_sum([[1.0], [2.0, 3.0]], clip_norm=1.0), ValueError, "gradients must be an array, got nested"),
    (lambda: clip_and_sum(np.ma.masked_equal(ROWS, 1), clip_norm=1.0), ValueError, "gradients must have no masked"),
    (lambda: clip_and_sum(ROWS, clip_norm=1.0, out=np.empty(3)), ValueError, r"out must have the shape of size \(2,\)"),
    (lambda: clip_and_sum(ROWS, clip_norm=1.0, out=np.empty(2, "f4")), TypeError, "out must be .* dtype float64"),
    (lambda: clip_and_sum(ROWS, clip_norm=1.0, out=ROWS[0]), ValueError, "out must not share memory with gradients"),
    (lambda: clip_and_sum(ROWS, clip_norm=1.0, out=np.empty(4)[::2]), ValueError, "out must be C-contiguous"),
    (lambda: clip_and_sum(ROWS, clip_norm=1.0, threads=0), ValueError, "threads must be None or a positive"),
    (lambda: noisy(clip_norm=0), ValueError, "clip_norm must be from"),
    (lambda: noisy(noise_multiplier=0.0), ValueError, r"noise_multiplier must be from 2\*\*-20 to 2\*\*11, got 0.0"),
    (lambda: noisy(noise_multiplier=-1.0), ValueError, "noise_multiplier must be .*got -1.0"),
    (lambda: noisy(noise_multiplier=math.nan), ValueError, "noise_multiplier must be .*got NaN"),
    (lambda: noisy(noise_multiplier=1e4), ValueError, "noise_multiplier must be .*got 10000.0"),
    (
        lambda: noisy(expected_batch_size=0),
        ValueError,
        r"expected_batch_size must be from 2\*\*-32 to 2\*\*53, got 0.0",
    ),
    (lambda: noisy(expected_batch_size=math.inf), ValueError, "expected_batch_size must be .*got inf"),
    (lambda: noisy(expected_batch_size=None), TypeError, "expected_batch_size must be a number, got NoneType"),
    (lambda: NoisyGradient(1.0, 1.0, 1.0), TypeError, "NoisyGradient takes its parameters by name, use clip_norm="),
    (lambda: noisy(delta=0.0), ValueError, "delta must be between 0 and 1, both excluded, got 0.0"),
    (lambda: noisy(delta="1"), TypeError, "delta must be a number, got str"),
    (lambda: NOISY.error(0), ValueError, "d must be an integer from 1 to .*got 0"),
    (lambda: NOISY.error(3, 1.0), ValueError, "level must be between 0 and 1, both excluded, got 1.0"),
    (lambda: NOISY.release(ROWS[0]), ValueError, "gradients must be of shape"),
    (lambda: NOISY.release(ROWS, rng=np.random.default_rng()), TypeError, "rng must be None"),
    (lambda: NOISY.release(ROWS, threads=-1), ValueError, "threads must be None or a positive"),
    (lambda: NOISY.release(ROWS, rng=hazmat.ScriptedRng(b"")), dpnoise.RandomnessError, "bytes|random|exhausted"),
    (lambda: poisson_sample(-1, 0.5), ValueError, "n must be an integer from 0 to .*got -1"),
    (lambda: poisson_sample(2.0, 0.5), TypeError, "n must be an int, got float"),
    (lambda: poisson_sample(5, 0.0), ValueError, "sample_rate must be above 0 and at most 1, got 0.0"),
    (lambda: poisson_sample(5, 1.1), ValueError, "sample_rate must be above 0 and at most 1, got 1.1"),
    (lambda: poisson_sample(5, math.nan), ValueError, "sample_rate must be .*got nan"),
    (lambda: poisson_sample(5, "1"), TypeError, "sample_rate must be a number, got str"),
]

SPENT: dict[str, Any] = {"noise_multiplier": 1.0, "sample_rate": 0.1, "steps": 10, "delta": 1e-5}
WANTED: dict[str, Any] = {"epsilon": 1.0, "sample_rate": 0.1, "steps": 10, "delta": 1e-5}

BAD_COSTS = [
    ("noise_multiplier", 0.0, ValueError, "noise_multiplier must be from"),
    ("noise_multiplier", math.nan, ValueError, "noise_multiplier must be from"),
    ("sample_rate", 0.0, ValueError, r"sample_rate must be from 2\*\*-1022 to 1, got 0.0"),
    ("sample_rate", 5e-324, ValueError, r"sample_rate must be from 2\*\*-1022 to 1, got 5e-324"),
    ("sample_rate", 1.5, ValueError, r"sample_rate must be from 2\*\*-1022 to 1, got 1.5"),
    ("sample_rate", None, TypeError, "sample_rate must be a number"),
    ("steps", 0, ValueError, "steps must be an integer from 1 .*got 0"),
    ("steps", 1.5, TypeError, "steps must be an int, got float"),
    ("delta", 0.0, ValueError, "delta must be between 0 and 1, both excluded, got 0.0"),
    ("delta", 1.0, ValueError, "delta must be between 0 and 1, both excluded, got 1.0"),
    ("delta", math.nan, ValueError, "delta must be between 0 and 1"),
    ("method", "moments", ValueError, 'method must be "pld" or "rdp", got \'moments\''),
    ("epsilon", 0.0, ValueError, "epsilon must be positive and finite, got 0.0"),
    ("epsilon", math.inf, ValueError, "epsilon must be positive and finite, got inf"),
    ("epsilon", -1.0, ValueError, "epsilon must be positive and finite, got -1.0"),
    ("epsilon", math.nan, ValueError, "epsilon must be positive and finite, got nan"),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_input_is_named(case: int) -> None:
    call, error, message = BAD[case]
    with pytest.raises(error, match=message) as caught:
        call()
    assert error is not ValueError or isinstance(caught.value, dpnoise.ParameterError)


@pytest.mark.parametrize(("name", "value", "error", "message"), BAD_COSTS)
def test_bad_parameters_of_costs_are_named(name: str, value: Any, error: type, message: str) -> None:
    calls: list[tuple[Callable[..., float], dict[str, Any]]] = [
        (epsilon_spent, SPENT | {name: value}),
        (noise_multiplier_for, WANTED | {name: value}),
    ]
    for function, parameters in calls:
        if name in ("epsilon", "noise_multiplier") and name not in (SPENT if function is epsilon_spent else WANTED):
            continue
        with pytest.raises(error, match=message):
            function(**parameters)


def test_too_large_a_wish_is_said_to_be() -> None:
    with pytest.raises(dpnoise.ParameterError, match=r"epsilon must be larger .*got 1e-06: no noise up to 2\*\*11"):
        noise_multiplier_for(epsilon=1e-6, delta=1e-9, sample_rate=1.0, steps=1000, method="rdp")


@pytest.mark.parametrize("change", [{"noise_multiplier": 0.01}, {"delta": 1e-14}, {"delta": 1e-300}])
def test_divergences_answer_where_distributions_cannot(change: dict[str, float]) -> None:
    parameters: dict[str, Any] = SPENT | change
    assert epsilon_spent(**parameters) == epsilon_spent(**parameters, method="rdp")
    multiplier, rate, delta = (parameters.pop(name) for name in ("noise_multiplier", "sample_rate", "delta"))
    noisy = NoisyGradient(clip_norm=1.0, noise_multiplier=multiplier, expected_batch_size=1.0)
    with pytest.raises(dpnoise.ParameterError, match=r"for 'pld'.*: Accountant\(method='rdp'\) takes it$"):
        Accountant().compose(noisy, parameters["steps"], sample_rate=rate).epsilon(delta)


def test_messages_do_not_tell_how_large_a_batch_is() -> None:
    for bad in (np.ones((12345, 0)), np.ones(12345)):
        with pytest.raises(dpnoise.ParameterError) as caught:
            NOISY.release(bad)
        assert "12345" not in str(caught.value)


# --- batches ------------------------------------------------------------------------------------------------------


def test_batches_are_the_coins_that_fell() -> None:
    coins = dpnoise.samplers.bernoulli(0.3, size=1000, rng=hazmat.SeededRng(2))
    batch = poisson_sample(1000, 0.3, rng=hazmat.SeededRng(2))
    assert batch.dtype == np.int64
    np.testing.assert_array_equal(batch, np.flatnonzero(coins))
    assert poisson_sample(0, 0.5).shape == (0,)
    np.testing.assert_array_equal(poisson_sample(5, 1), np.arange(5))


def test_batches_of_many_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpnoise.sgd._sampling._COINS", 100)
    np.testing.assert_array_equal(poisson_sample(1050, 1.0), np.arange(1050))
    batch = poisson_sample(100_000, 0.5)
    # 50 000 and 29 standard deviations
    assert np.all(np.diff(batch) > 0)
    assert 45_000 < len(batch) < 55_000
    assert batch[-1] > 99_000


# --- what it costs ------------------------------------------------------------------------------------------------


def by_dp_accounting(noise_multiplier: float, sample_rate: float, steps: int, delta: float, method: str) -> float:
    event = dp_accounting.SelfComposedDpEvent(
        dp_accounting.PoissonSampledDpEvent(sample_rate, dp_accounting.GaussianDpEvent(noise_multiplier)), steps
    )
    kinds = {"rdp": dp_accounting.rdp.RdpAccountant, "pld": dp_accounting.pld.PLDAccountant}
    return float(kinds[method]().compose(event).get_epsilon(delta))


SETTINGS = [
    (multiplier, rate, steps, delta, method)
    for multiplier in (1.3, 2.0, 4.0, 12.0, 50.0)
    for rate, steps, delta in [(0.001, 1000, 1e-5), (0.01, 300, 1e-6), (0.1, 50, 1e-5), (0.5, 7, 1e-8), (1.0, 3, 1e-5)]
    for method in ("rdp", "pld")
]


@pytest.mark.parametrize(
    ("multiplier", "rate", "steps", "delta", "method"),
    [pytest.param(*setting, marks=[] if setting[0] == 2.0 else pytest.mark.long) for setting in SETTINGS],
)
def test_epsilon_spent_agrees_with_dp_accounting(
    multiplier: float, rate: float, steps: int, delta: float, method: Any
) -> None:
    """Fifty settings. Both round up; that the steps on all data are taken for one makes ours a little smaller."""
    spent = epsilon_spent(noise_multiplier=multiplier, sample_rate=rate, steps=steps, delta=delta, method=method)
    known = by_dp_accounting(multiplier, rate, steps, delta, method)
    assert known * (1 - (1e-5 if rate == 1 else 1e-9)) <= spent <= known * (1 + 1e-5) + 1e-7


@pytest.mark.parametrize(
    "cost", [partial(epsilon_spent, noise_multiplier=1.0), partial(noise_multiplier_for, epsilon=1.0)]
)
def test_without_the_extra_it_says_in_one_line_what_to_install(cost: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    line = 'this needs dp_accounting: pip install "dp-accounting>=0.6,<0.7"'
    with pytest.raises(ImportError, match=f"^{re.escape(line)}$"):
        cost(sample_rate=0.1, steps=10, delta=1e-5)


def test_fifty_settings_are_compared() -> None:
    assert len(SETTINGS) == 50


def test_a_step_on_all_data_costs_what_gaussian_noise_costs() -> None:
    """The exact curve of continuous noise (Balle and Wang 2018, theorem 8)."""
    epsilon = epsilon_spent(noise_multiplier=1.3, sample_rate=1.0, steps=1, delta=1e-5)

    def normal(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    def delta_at(epsilon: float) -> float:
        a, b = 1 / (2 * 1.3), epsilon * 1.3
        return normal(a - b) - math.exp(epsilon) * normal(-a - b)

    assert delta_at(epsilon) <= 1e-5 * (1 + 1e-9)
    assert delta_at(epsilon * 0.999) > 1e-5


def test_costs_are_those_of_the_accountant_and_can_be_composed() -> None:
    noisy = NoisyGradient(clip_norm=3.0, noise_multiplier=1.5, expected_batch_size=64)
    accountant = Accountant(method="rdp").compose(noisy, 20, sample_rate=0.1)
    spent = epsilon_spent(noise_multiplier=1.5, sample_rate=0.1, steps=20, delta=1e-5, method="rdp")
    assert accountant.epsilon(1e-5) == spent
    assert accountant.compose(dpnoise.Laplace(epsilon=0.1)).epsilon(1e-5) > spent


@pytest.mark.parametrize(
    ("epsilon", "rate", "steps", "delta", "method"),
    [
        (1.0, 0.1, 20, 1e-5, "rdp"),
        (5.0, 1.0, 1, 1e-6, "rdp"),
        (30.0, 0.5, 10, 1e-5, "rdp"),
        (0.05, 0.01, 50, 1e-5, "pld"),
        pytest.param(0.5, 1.0, 4, 1e-6, "pld", marks=pytest.mark.long),
    ],
)
def test_the_noise_found_suffices_and_a_little_less_does_not(
    epsilon: float, rate: float, steps: int, delta: float, method: Any
) -> None:
    found = noise_multiplier_for(epsilon=epsilon, delta=delta, sample_rate=rate, steps=steps, method=method)

    def spent(multiplier: float) -> float:
        return epsilon_spent(noise_multiplier=multiplier, sample_rate=rate, steps=steps, delta=delta, method=method)

    assert spent(found) <= epsilon < spent(found / (1 + 1e-4))


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate", "steps"),
    [
        (1000.0, 1e-5, 1.0, 1),
        (1000.0, 1e-5, 1e-4, 1),
        (30.0, 0.1, 0.01, 1000),
        (1e6, 1e-5, 0.1, 10),
        (3.0, 1e-5, 0.1, 9),
    ],
)
def test_the_better_of_both_methods_is_taken_in_silence(
    epsilon: float, delta: float, rate: float, steps: int, caplog: pytest.LogCaptureFixture
) -> None:
    wanted: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "sample_rate": rate, "steps": steps}
    found, by_divergences = noise_multiplier_for(**wanted), noise_multiplier_for(**wanted, method="rdp")
    assert found <= by_divergences
    del wanted["epsilon"]
    assert epsilon_spent(noise_multiplier=found, **wanted) <= epsilon
    assert epsilon_spent(noise_multiplier=found / (1 + 1e-4), **wanted) > epsilon
    assert caplog.records == []


def test_the_smallest_noise_is_not_undercut() -> None:
    for method in ("pld", "rdp"):
        found = noise_multiplier_for(epsilon=1e15, delta=1e-5, sample_rate=1.0, steps=1, method=method)
        assert 2.0**-20 <= found <= 2.0**-20 * (1 + 1e-4)


@pytest.mark.parametrize("threads", [True, False])
def test_what_others_log_meanwhile_is_kept(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, threads: bool
) -> None:
    """The series of dp-accounting does not converge here, which it logs, and divergences of all data bound the loss."""
    monkeypatch.setattr(logging, "logThreads", threads)  # a program may leave out of records which thread logs
    sampled, whole = (DiscreteGaussianLoss(2.0**40, 2.0**40, rate) for rate in (0.1, 1.0))
    by_library = dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(1.0))
    dp_accounting.rdp.RdpAccountant([1.1]).compose(by_library)
    assert [record.name for record in caplog.records] == ["absl"], "the control"
    assert sampled.divergence(1.1) <= whole.divergence(1.1) < math.inf
    dp_accounting.rdp.RdpAccountant([1.1]).compose(by_library)
    assert len(caplog.records) == 2


@pytest.mark.parametrize("order", [1.1, 1.9, 2.5, 10.3])
def test_no_divergence_of_a_sample_is_rounded_away(order: float) -> None:
    """dp-accounting's is 0, or has no right digit, where the logarithm is below 1e-15."""
    for step in range(1, 200):
        rate, sigma = 1e-9 * 1.05**step, 303.7 + step
        least = (order / 2) * rate**2 * math.expm1(1 / sigma**2)  # the first term of the series, for small rates
        found = DiscreteGaussianLoss(sigma * 2.0**40, 2.0**40, rate).divergence(order)
        assert 0.999 * least < found < 2 * least


def test_the_smallest_sampling_rate_costs_next_to_nothing() -> None:
    assert 0 <= epsilon_spent(**SPENT | {"sample_rate": 2.0**-1022}) < 1e-9


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: FloatSums(stddev=0.0), dpnoise.ParameterError, r"stddev must be from 2\*\*-80 to 2\*\*80, got 0.0"),
        (lambda: FloatSums(3, stddev=1.0), TypeError, "strategy must be a BandedToeplitz, got int"),  # type: ignore[arg-type]
        (
            lambda: IntegerSums(stddev=0.5),
            dpnoise.ParameterError,
            r"stddev must be from 1 to 17592186044416\.0, .*got 0.5",
        ),
        (lambda: IntegerSums(3, stddev=1.0), TypeError, "strategy must be a BandedToeplitz, got int"),  # type: ignore[arg-type]
        (lambda: whole(step=2), dpnoise.ParameterError, "step must be an integer from 0 to 1, got 2"),
        (lambda: whole(history=np.zeros(1, np.int64)), dpnoise.ParameterError, "history must be as long as the number"),
        (lambda: whole(sums=np.zeros(3)), TypeError, "sums must be a NumPy array of dtype int64"),
        (lambda: take(step=2), dpnoise.ParameterError, "step must be an integer from 0 to 1, got 2"),
        (lambda: take(history=np.zeros(1, np.int64)), dpnoise.ParameterError, "history must be as long as the number"),
        (lambda: take(sums=np.zeros(3, np.int64)), TypeError, "sums must be .* float32 or float64, got dtype int64"),
    ],
)
def test_bad_sums(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def take(*, sums: Any = None, history: Any = None, step: int = 0, kind: Any = FloatSums) -> None:
    noise = kind(BandedToeplitz([1.0, 0.5], steps=2), stddev=1.0)
    kept = np.zeros(noise.history_length(3), np.int64) if history is None else history
    noise.add_noise(np.zeros(3, np.int64 if kind is IntegerSums else float) if sums is None else sums, kept, step)


whole = partial(take, kind=IntegerSums)


def test_sums_say_what_their_noise_is() -> None:
    strategy = BandedToeplitz([1.0, 0.5], steps=2)
    for kind, granularity in ((FloatSums, 2.0**-26), (IntegerSums, 1.0)):
        made = kind(strategy, stddev=1.0)
        assert (made.strategy, made.stddev, made.granularity) == (strategy, 1.0, granularity)
        assert (made.history_length(513), kind(stddev=1.0).history_length(513)) == (2048, 0)


def test_the_names_are_those_of_the_package() -> None:
    runs = ["BandedToeplitz", "CorrelatedGradient", "CorrelatedGradientRun", "CyclicPoisson"]
    steps = ["NoisyGradient", "SingleEpoch", "clip_and_sum", "epsilon_spent"]
    noise = ["noise_multiplier_for", "noise_multipliers", "poisson_sample"]
    assert sgd.__all__ == [*runs, "FloatSums", "IntegerSums", "MinSeparation", *steps, *noise]
    assert "sgd" in dpnoise.__all__


def test_parts_of_a_step_refuse_what_they_would_misread():
    mechanism = sgd.NoisyGradient(clip_norm=1.0, noise_multiplier=1.0, expected_batch_size=4)
    matrix = np.ones((4, 100))
    assert np.linalg.norm(mechanism.clipped_sum([matrix]) * mechanism.granularity) <= 4
    for given, message in [
        (matrix, "gradients must be a list or tuple of arrays, got ndarray"),  # whose rows are no layers
        ([np.array(3.0)], "with a row for each example, got a single number"),
        ([[1.0]], "with a row for each example, got list"),
    ]:
        with pytest.raises(TypeError, match=message):
            mechanism.clipped_sum(given)
    sums = mechanism.clipped_sum([matrix])
    for given, options, kind, message in [
        (sums.tolist(), {}, TypeError, "sums must be an array of int64, as clipped_sum returns, got list"),
        (sums.astype(float), {}, TypeError, "got dtype float64"),
        (sums.reshape(10, 10), {}, dpnoise.ParameterError, "sums must have one dimension, got 2"),
        (sums, {"dtype": np.float16}, TypeError, "dtype must be float32 or float64, got float16"),
    ]:
        with pytest.raises(kind, match=message):
            mechanism.add_noise(given, **options)
