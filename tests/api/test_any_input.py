"""Whatever is passed, a call works or raises a ParameterError, a TypeError or, for a size, a MemoryError; and, with a
script that is too short, a RandomnessError.

In particular native code never panics, and never writes outside of ``out``. Warnings are errors in the tests.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dpnoise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    ParameterError,
    PrivacyCost,
    RandomnessError,
    SecureBitGenerator,
    accounting,
    hazmat,
    local,
    samplers,
    stability,
)
from dpnoise._numbers import real_down

pytestmark = pytest.mark.filterwarnings("ignore::dpnoise.DoubtfulInputWarning")  # reports are made up

REFUSALS = (ParameterError, TypeError, MemoryError, RandomnessError)

FLOATS = st.floats() | st.integers(-1080, 1023).map(lambda exponent: 2.0**exponent if exponent > -1075 else 0.0)
INTEGERS = st.integers() | st.integers(-3, 3) | st.integers(-70, 70).map(lambda k: 2 ** abs(k) * (-1 if k < 0 else 1))
FRACTIONS = st.fractions() | st.builds(Fraction, INTEGERS, st.integers(1, 2**130))
NUMPY = arrays.scalar_dtypes().flatmap(lambda dtype: arrays.arrays(dtype, ())).map(lambda array: array[()])
NUMBERS = FLOATS | INTEGERS | FRACTIONS
ODDITIES = st.none() | st.booleans() | st.text() | st.binary() | st.complex_numbers() | st.decimals() | NUMPY
ANYTHING = NUMBERS | ODDITIES | st.lists(NUMBERS, max_size=3)
GOOD_SCALES = st.floats(1e-6, 1e6) | st.integers(1, 1000) | st.builds(Fraction, st.integers(1, 99), st.integers(1, 99))

# Sizes that fit, or that no machine has memory for.
LENGTHS = st.integers(0, 300) | st.integers(-5, 5) | st.integers(2**50, 2**80)
SIZES = LENGTHS | st.lists(LENGTHS, max_size=3).map(tuple) | st.lists(st.integers(0, 9), max_size=3) | ODDITIES
THREADS = st.none() | INTEGERS | ODDITIES
RNGS = st.none() | st.just(hazmat.SeededRng(1)) | st.just(hazmat.ScriptedRng(b"")) | ODDITIES

# By one parameter and `size`.
WITH_MORE: dict[str, Callable[..., Any]] = {
    "staircase": partial(samplers.staircase, width=1, inner=1),
    "negative_binomial_share": partial(samplers.negative_binomial_share, parties=3),
}
DRAWS = [WITH_MORE.get(name, getattr(samplers, name)) for name in samplers.__all__ if name != "random_bytes"]
DTYPES = {draw: draw(0.5, size=1).dtype for draw in DRAWS}
SAMPLERS = st.sampled_from(list(DTYPES))


def examples(most: int) -> settings:
    """Try so many examples in `make statistical`, and a fifth of them in every other run: all runs try new ones."""
    return settings(max_examples=most if "DPNOISE_TEST_SAMPLES" in os.environ else most // 5, deadline=None)


def attempt(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Give the result of a call, or None when it is refused with a message."""
    try:
        return call(*arguments, **options)
    except REFUSALS as refusal:
        message = str(refusal)
    assert message
    return None


def answers(values: Any) -> int:
    """Count the answers that were accepted: one, or a sequence of them."""
    return len(values) if np.ndim(values) else 1


@examples(500)
@given(SAMPLERS, GOOD_SCALES | ANYTHING, st.none() | SIZES, THREADS, RNGS)
def test_samplers(draw: Any, scale: Any, size: Any, threads: Any, rng: Any) -> None:
    samples = attempt(draw, scale, size=size, threads=threads, rng=rng)
    if samples is not None and size is not None:
        assert samples.dtype == DTYPES[draw]
        assert samples.size == np.prod(size, dtype=int)


@examples(300)
@given(st.sampled_from([samplers.laplace, samplers.gaussian]), NUMBERS, FLOATS | ANYTHING)
def test_granularities(draw: Any, scale: Any, granularity: Any) -> None:
    samples = attempt(draw, scale, size=10, granularity=granularity)
    if samples is not None and granularity is not None:
        assert np.all(samples / float(granularity) % 1 == 0)


@st.composite
def outs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Make an array and what surrounds it, of any dtype, layout and alignment."""
    dtype = draw(
        st.sampled_from([np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.bool_)]) | arrays.scalar_dtypes()
    )
    shape = draw(arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=20))
    size = int(np.prod(shape, dtype=int)) * dtype.itemsize
    around = np.full(size + 128, 0xA5, np.uint8)
    start = 64 + draw(st.sampled_from([0, 0, 0, 1, 4]))
    out = around[start : start + size].view(dtype).reshape(shape, order=draw(st.sampled_from("CCF")))
    if draw(st.integers(0, 4)) == 0:
        out = out[::2] if out.ndim else out
    if draw(st.integers(0, 4)) == 0:
        out.flags.writeable = False
    return out, around


@examples(500)
@given(SAMPLERS, outs(), st.none() | st.integers(0, 20))
def test_nothing_is_written_outside_of_out(draw: Any, given_out: tuple[np.ndarray, np.ndarray], size: Any) -> None:
    out, around = given_out
    before = around.copy()
    own = np.zeros(around.size, bool)
    own[out.ctypes.data - around.ctypes.data :][: out.nbytes] = out.flags.c_contiguous
    filled = attempt(draw, 0.5, size=size, out=out)
    if filled is None:
        assert np.array_equal(around, before)
    else:
        assert filled is out
        assert np.array_equal(around[~own], before[~own])


@examples(300)
@given(st.sampled_from([Laplace, DiscreteLaplace]), ANYTHING, ANYTHING, st.none() | ANYTHING)
def test_mechanisms(make: Any, epsilon: Any, sensitivity: Any, granularity: Any) -> None:
    options = {} if make is DiscreteLaplace or granularity is None else {"granularity": granularity}
    mechanism = attempt(make, epsilon=epsilon, sensitivity=sensitivity, **options)
    if mechanism is not None:
        assert eval(repr(mechanism)) == mechanism  # noqa: S307
        attempt(mechanism.release, 1)
        attempt(mechanism.release, [1, 2, 3])


@examples(300)
@given(st.sampled_from([Gaussian, DiscreteGaussian]), *[st.none() | FLOATS | ANYTHING] * 3, ANYTHING, ANYTHING)
def test_gaussian_mechanisms(make: Any, epsilon: Any, delta: Any, rho: Any, sensitivity: Any, other: Any) -> None:
    options = {"epsilon": epsilon, "delta": delta} if rho is None else {"rho": rho, "delta": delta}
    mechanism = attempt(make, **options) or attempt(make, **options, sensitivity=sensitivity)
    attempt(make, epsilon=epsilon, delta=delta, rho=rho)
    if make is Gaussian:
        attempt(make, **options, method=other)
        attempt(make, **options, granularity=other)
    if mechanism is not None:
        assert eval(repr(mechanism)) == mechanism  # noqa: S307
        attempt(mechanism.release, 1)
        attempt(mechanism.release, [1, 2, 3])
        attempt(mechanism.delta_for, other, 3)
        attempt(mechanism.epsilon_for, 0.1, other)


VALUES = (
    arrays.arrays(arrays.scalar_dtypes() | arrays.array_dtypes(), arrays.array_shapes(min_dims=0, min_side=0))
    | arrays.arrays(arrays.integer_dtypes(), st.integers(0, 50), elements=st.integers(0, 20))
    | st.recursive(ANYTHING, lambda inner: st.lists(inner, max_size=3))
    | st.lists(INTEGERS)
    | st.lists(st.booleans())
)
MECHANISMS = [
    Laplace(epsilon=1.0),
    Laplace(epsilon=0.1, granularity=0.5),
    DiscreteLaplace(epsilon=1.0),
    Gaussian(epsilon=1.0, delta=1e-6),
    DiscreteGaussian(rho=0.5, sensitivity=3),
]


@examples(500)
@given(st.sampled_from(MECHANISMS), VALUES, THREADS, RNGS)
def test_releases(mechanism: Any, x: Any, threads: Any, rng: Any) -> None:
    released = attempt(mechanism.release, x, threads=threads, rng=rng)
    if released is not None:
        assert np.shape(released) == np.shape(x)


@examples(200)
@given(st.sampled_from(MECHANISMS), ANYTHING, ANYTHING)
def test_error_bars(mechanism: Any, released: Any, level: Any) -> None:
    attempt(mechanism.error, level)
    attempt(mechanism.confidence_interval, released, 0.9)
    attempt(mechanism.confidence_interval, 1.0, level)


MAKERS = [local.OptimizedUnaryEncoding, local.SymmetricUnaryEncoding, local.RandomizedResponse, local.UnaryEncoding]


@examples(500)
@given(st.sampled_from(MAKERS), st.integers(0, 300) | ANYTHING, st.floats(0, 40) | ANYTHING, st.floats(0, 1) | ANYTHING)
def test_protocols(make: Any, k: Any, first: Any, second: Any) -> None:
    if make is local.RandomizedResponse:
        protocol = attempt(make, epsilon=first)
    elif make is local.UnaryEncoding:
        protocol = attempt(make, k=k, p=first, q=second)
    else:
        protocol = attempt(make, k=k, epsilon=first)
    if protocol is not None:
        assert eval(repr(protocol), vars(local).copy()) == protocol  # noqa: S307
        attempt(protocol.variance, k, second)


LONGITUDINAL = [local.LongitudinalUnaryEncoding, local.LOLOHA, local.DBitFlip]


@examples(500)
@given(
    st.sampled_from(LONGITUDINAL),
    st.integers(0, 300) | ANYTHING,
    st.floats(0, 40) | ANYTHING,
    st.floats(0, 40) | ANYTHING,
    st.integers(0, 300) | ANYTHING,
)
def test_longitudinal_protocols(make: Any, k: Any, first: Any, second: Any, number: Any) -> None:
    if make is local.DBitFlip:
        protocol = attempt(make, k=k, d=number, epsilon=first)
    elif make is local.LOLOHA:
        protocol = attempt(make, k=k, epsilon_permanent=first, epsilon_first=second, g=number)
    else:
        protocol = attempt(make, k=k, epsilon_permanent=first, epsilon_first=second, permanent=number)
        protocol = protocol or attempt(make, k=k, epsilon_permanent=first, epsilon_first=second)
    if protocol is not None:
        assert eval(repr(protocol), vars(local).copy()) == protocol  # noqa: S307
        attempt(protocol.variance, k, second)


@examples(300)
@given(VALUES, st.integers(0, 20).map(local.ClientMemo.generate) | ANYTHING, THREADS, RNGS)
def test_reports_with_a_memo(values: Any, memo: Any, threads: Any, rng: Any) -> None:
    protocol = local.DBitFlip(k=15, d=3, epsilon=1.0)
    made = attempt(protocol.perturb, values, memo, threads=threads, rng=rng)
    if made is not None:
        assert len(made) == answers(values) == len(memo)


@examples(300)
@given(INTEGERS | ANYTHING, st.binary() | ANYTHING, ANYTHING)
def test_memos(n: Any, memo: Any, index: Any) -> None:
    assert attempt(local.ClientMemo.from_bytes, memo) is None
    if not isinstance(n, int) or n < 10**6:
        attempt(local.ClientMemo.generate, n)
    if not hasattr(index, "__index__"):  # an IndexError is right for these
        assert attempt(local.ClientMemo.generate(3).__getitem__, index) is None


PROTOCOLS = [local.OptimizedUnaryEncoding(k=15, epsilon=1.0), local.RandomizedResponse(epsilon=1.0)]
REPORTS = arrays.arrays(np.uint8, st.tuples(st.integers(0, 20), st.integers(0, 3))) | VALUES


# Invented reports may well have too many set bits.
@pytest.mark.filterwarnings("ignore:reports have far more or fewer set bits:UserWarning")
@examples(500)
@given(st.sampled_from(PROTOCOLS), VALUES, REPORTS, THREADS, RNGS)
def test_reports(protocol: Any, values: Any, reports: Any, threads: Any, rng: Any) -> None:
    made = attempt(protocol.perturb, values, threads=threads, rng=rng)
    if made is not None:
        assert len(made) == answers(values)
    attempt(protocol.estimate, reports, threads=threads)
    if isinstance(protocol, local.OptimizedUnaryEncoding):
        attempt(protocol.check_popcounts, reports)
        attempt(protocol.encode, values)
        attempt(protocol.perturb_encoded, reports, threads=threads, rng=rng)


MEANS = [local.DuchiMean, local.PiecewiseMean, local.HybridMean, local.LaplaceMean]
OF_NUMBERS = [
    *(kind(epsilon=1.0) for kind in MEANS),
    local.GaussianMean(epsilon=1.0, delta=1e-6),
    local.SquareWave(k=15, epsilon=1.0),
]


@examples(300)
@given(
    st.sampled_from([*MEANS, local.GaussianMean, local.SquareWave]),
    st.integers(0, 300) | ANYTHING,
    st.floats(0, 40) | ANYTHING,
    st.floats(0, 1) | ANYTHING,
)
def test_protocols_of_numbers(make: Any, k: Any, epsilon: Any, delta: Any) -> None:
    options = {local.SquareWave: {"k": k}, local.GaussianMean: {"delta": delta}}.get(make, {})
    protocol = attempt(make, epsilon=epsilon, **options)
    if protocol is not None:
        assert eval(repr(protocol), vars(local).copy()) == protocol  # noqa: S307
    if protocol is not None and make is not local.SquareWave:
        attempt(protocol.variance, k, epsilon)


@examples(500)
@given(st.sampled_from(OF_NUMBERS), VALUES | st.lists(st.floats(-1, 1)), REPORTS, THREADS, RNGS, ANYTHING)
def test_reports_on_numbers(protocol: Any, values: Any, reports: Any, threads: Any, rng: Any, option: Any) -> None:
    made = attempt(protocol.perturb, values, threads=threads, rng=rng)
    if made is not None:
        assert len(made) == answers(values)
    attempt(protocol.estimate, reports)
    attempt(protocol.estimate, protocol.perturb([0.5]), option)


SKETCHES = [local.CountMeanSketch, local.HadamardCountMeanSketch]
WIDTHS = st.sampled_from([8, 16, 1024, 2**20]) | INTEGERS | ANYTHING
TEXTS = st.lists(st.text()) | st.lists(st.binary()) | st.lists(st.text() | ODDITIES, max_size=3) | VALUES


@examples(500)
@given(
    st.sampled_from(SKETCHES),
    st.floats(0, 40) | ANYTHING,
    st.integers(0, 300) | ANYTHING,
    WIDTHS,
    st.integers(0, 2**32) | ANYTHING,
)
def test_sketches(make: Any, epsilon: Any, rows: Any, width: Any, seed: Any) -> None:
    sketch = attempt(make, epsilon=epsilon, rows=rows, width=width, seed=seed)
    if sketch is not None:
        assert eval(repr(sketch), vars(local).copy()) == sketch  # noqa: S307


@examples(300)
@given(
    st.floats(0, 40) | ANYTHING, st.integers(0, 70) | ANYTHING, st.integers(0, 20) | ANYTHING, WIDTHS, VALUES, REPORTS
)
def test_prefixes(epsilon: Any, bits: Any, step: Any, width: Any, values: Any, reports: Any) -> None:
    made = attempt(local.PrefixExtension, epsilon=epsilon, bits=bits, step=step, rows=3, width=width)
    if made is not None:
        assert eval(repr(made), vars(local).copy()) == made  # noqa: S307
    protocol = local.PrefixExtension(epsilon=1.0, bits=9, step=3, rows=3, width=8)
    attempt(protocol.perturb, values)
    attempt(protocol.estimate, reports)


RAPPOR = {"num_bloombits": 8, "num_hashes": 2, "num_cohorts": 3, "f": 0.5, "p": 0.5, "q": 0.75}
CHANCES = st.floats(0, 1) | ANYTHING


@examples(500)
@given(WIDTHS, st.integers(0, 20) | ANYTHING, st.integers(0, 300) | ANYTHING, CHANCES, CHANCES, CHANCES)
def test_bloom_filters(bits: Any, hashes: Any, cohorts: Any, f: Any, p: Any, q: Any) -> None:
    made = attempt(local.Rappor, num_bloombits=bits, num_hashes=hashes, num_cohorts=cohorts, f=f, p=p, q=q)
    made = made or attempt(local.Rappor, **{**RAPPOR, "f": f, "p": p, "q": q})
    if made is not None:
        assert eval(repr(made), vars(local).copy()) == made  # noqa: S307


@examples(300)
@given(TEXTS, st.integers(0, 20).map(local.ClientMemo.generate) | ANYTHING, REPORTS, TEXTS, ANYTHING)
def test_texts_with_a_memo(texts: Any, memo: Any, reports: Any, candidates: Any, level: Any) -> None:
    rappor = local.Rappor(**RAPPOR)
    made = attempt(rappor.perturb, texts, memo, question="a")
    if made is not None:
        assert len(made) == answers(texts) == len(memo)
    some = rappor.perturb(["plum"] * 50, local.ClientMemo.generate(50), question="a")
    attempt(rappor.estimate, some, candidates, level=level)
    attempt(rappor.estimate, some, candidates)
    attempt(rappor.estimate, reports, candidates)


@examples(500)
@given(st.sampled_from(SKETCHES), TEXTS, REPORTS, TEXTS, ANYTHING, THREADS, RNGS)
def test_texts(make: Any, texts: Any, reports: Any, candidates: Any, level: Any, threads: Any, rng: Any) -> None:
    sketch = make(epsilon=1.0, rows=3, width=8)
    made = attempt(sketch.perturb, texts, threads=threads, rng=rng)
    if made is not None:
        assert len(made) == answers(texts)
        attempt(sketch.estimate, made, candidates, level=level)
    attempt(sketch.estimate, reports, candidates)


@examples(300)
@given(st.floats(0, 40) | ANYTHING, INTEGERS | ANYTHING, st.floats(0, 1) | ANYTHING)
def test_shuffling(epsilon0: Any, n: Any, delta: Any) -> None:
    cost = attempt(lambda: accounting.amplify_by_shuffling(PrivacyCost(epsilon0), n=n, delta=delta))
    assert cost is None or 0 < cost.epsilon <= PrivacyCost(epsilon0).epsilon  # rounded up


BUDGETS = st.floats(0, 100) | ANYTHING
DELTAS = st.floats(0, 1) | ANYTHING
COLUMNS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2) | arrays.arrays(float, 9) | ANYTHING


@pytest.mark.filterwarnings("ignore:delta=")
@examples(200)
@given(COLUMNS, BUDGETS, DELTAS, RNGS)
def test_releases_of_scales(x: Any, epsilon: Any, delta: Any, rng: Any) -> None:
    scale = attempt(stability.StableScale, epsilon=epsilon, delta=delta)
    if scale is not None:
        assert (scale.cost.epsilon, scale.cost.delta) == (real_down(epsilon, "epsilon"), real_down(delta, "delta"))
        released = attempt(scale.release, x, rng=rng)
        assert released is None or 0 <= released < math.inf


SCALARS = arrays.arrays(arrays.scalar_dtypes(), st.integers(0, 5))
RELATIONS = st.sampled_from(["add/remove", "substitute"]) | ANYTHING


@examples(300)
@given(COLUMNS | SCALARS | st.lists(ANYTHING), RELATIONS, st.integers(1, 2) | ANYTHING)
def test_distances(x: Any, relation: Any, discretization: Any) -> None:
    for distance in (stability.median_distance, stability.mode_distance):
        found = attempt(distance, x, relation=relation)
        assert found is None or 0 <= found < max(1, len(x))
    found = attempt(stability.iqr_distance, x, discretization)
    assert found is None or 1 <= found < len(x)


@pytest.mark.filterwarnings("ignore:delta=")
@examples(300)
@given(
    st.sampled_from([stability.StableMedian, stability.StableMode]),
    COLUMNS | SCALARS | st.lists(ANYTHING),
    BUDGETS,
    DELTAS,
    RELATIONS,
    RNGS,
)
def test_releases_of_values(kind: Any, x: Any, epsilon: Any, delta: Any, relation: Any, rng: Any) -> None:
    stable = attempt(kind, epsilon=epsilon, delta=delta, relation=relation)
    if stable is not None:
        assert (stable.cost.epsilon, stable.cost.delta) == (real_down(epsilon, "epsilon"), real_down(delta, "delta"))
        released = attempt(stable.release, x, rng=rng)
        assert released is None or type(released) in (bool, int, float, str, bytes)


@pytest.mark.filterwarnings("ignore:delta=")
@examples(200)
@given(COLUMNS, st.floats(0, 9) | ANYTHING, INTEGERS | ANYTHING, BUDGETS, DELTAS, RNGS)
def test_proposals(x: Any, bound: Any, distance: Any, epsilon: Any, delta: Any, rng: Any) -> None:
    for propose in (bound, lambda n: bound):
        options = {"distance": lambda x, bound: distance, "answer": lambda x, *given: given}
        proposed = attempt(stability.ProposeTestRelease, propose=propose, epsilon=epsilon, delta=delta, **options)
        released = None if proposed is None else attempt(proposed.release, x, rng=rng)
        assert released is None or released == (float(bound), real_down(epsilon, "epsilon") / 2)


ANSWERS = ANYTHING | st.lists(ANYTHING, max_size=2) | st.tuples(ANYTHING, ANYTHING) | st.sets(NUMBERS, max_size=2)
BOUNDS = st.just((0.0, 1.0)) | st.lists(st.tuples(FLOATS, FLOATS), max_size=2) | st.tuples(FLOATS, FLOATS) | ANYTHING
OPTIONS = {
    "bounds": BOUNDS,
    "alpha": st.floats(0, 0.5) | ANYTHING,
    "candidates": ANSWERS,
    "delta": DELTAS,
    "default": ANSWERS,
    "blocks": st.integers(1, 4) | ANYTHING,
    "epsilon": BUDGETS,
}
AGGREGATES: dict[str, dict[str, Any]] = {
    "mean": {"bounds": (0.0, 1.0)},
    "trimmed_mean": {"bounds": (0.0, 1.0), "alpha": 0.25},
    "winsorized_mean": {"bounds": [(0.0, 1.0), (-3.0, 0.0)], "alpha": 0.25},
    "median": {"bounds": [(0.0, 1.0)]},
    "noisy_max": {"candidates": ["a", 1, None]},
    "mode": {"delta": 1e-9},
}


@examples(300)
@given(st.lists(ANSWERS, min_size=4, max_size=6), st.sampled_from(list(AGGREGATES)))
def test_answers_of_blocks_are_never_refused(answers: Any, aggregate: Any) -> None:
    options = AGGREGATES[aggregate]
    released = stability.SubsampleAndAggregate(
        f=lambda block: block[0], blocks=4, aggregate=aggregate, epsilon=1.0, **options
    ).release(answers)
    if "bounds" in options:
        lower, upper = np.transpose(options["bounds"])
        assert np.shape(released) == np.shape(lower)
        assert np.all((lower <= released) & (released <= upper))
    assert aggregate != "noisy_max" or released in options["candidates"]


@pytest.mark.filterwarnings("ignore:delta=")
@examples(300)
@given(st.sampled_from(list(AGGREGATES)), st.fixed_dictionaries({}, optional=OPTIONS), RNGS)
def test_aggregates(aggregate: Any, options: Any, rng: Any) -> None:
    given = {"blocks": 4, "epsilon": 1.0} | AGGREGATES[aggregate] | options
    made = attempt(stability.SubsampleAndAggregate, f=sum, aggregate=aggregate, **given)
    if made is not None:
        assert hash(copy.copy(made)) == hash(made)
        assert copy.copy(made) == made
        attempt(made.release, [1, 2, 3, 4], rng=rng)


@examples(300)
@given(st.binary() | ANYTHING, st.text() | ANYTHING)
def test_states_and_specifications(state: Any, text: Any) -> None:
    assert attempt(local.Accumulator.from_bytes, state) is None
    assert attempt(local.protocol_from_json, text) is None


@examples(300)
@given(LENGTHS | ANYTHING)
def test_integers(n: Any) -> None:
    drawn = attempt(samplers.random_bytes, n)
    assert drawn is None or len(drawn) == n
    attempt(hazmat.SeededRng, n)
    attempt(hazmat.ScriptedRng, n)
    attempt(SecureBitGenerator, n)
