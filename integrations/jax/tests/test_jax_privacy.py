"""Privatizers of JAX Privacy with noise of dpnoise: exact sums, noise of the stated covariance that is always fresh."""

from __future__ import annotations

import inspect
import math
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from host_tests import errors
from jax.sharding import PartitionSpec
from jax_privacy import batch_selection, clipping
from jax_privacy import noise_addition as host
from jax_privacy.matrix_factorization import streaming_matrix, toeplitz

from dpnoise import ParameterError, RandomnessError, hazmat, samplers
from dpnoise.sgd import BandedToeplitz
from dpnoise_jax import _step
from dpnoise_jax import jax_privacy as ours

STRATEGY = BandedToeplitz([1.0, 0.6, 0.35], steps=6)
MATRICES = {"identity": streaming_matrix.identity(), "three bands": STRATEGY}
# The step of the grid for a stddev of 1, and how many units of the noise it has.
STEP = {"identity": Fraction(1, 2**27), "three bands": Fraction(1, 2**26)}
UNIT = 4096
NUMERATORS = [int(coefficient * UNIT) for coefficient in STRATEGY.coefficients]

TREES = {
    "nested": {"a": (jnp.ones((2, 3)), np.ones((), np.float32)), "b": [jnp.ones(700), jnp.ones((0, 4)), None]},
    "halves": {"a": jnp.ones(4, jnp.float16), "b": jnp.ones((1, 2), jnp.bfloat16), "c": jnp.ones(2)},
    "one number": jnp.float32(2.0),
    "nothing": {},
}


def privatizer(name: str = "three bands", **more: Any) -> Any:
    return ours.matrix_factorization_privatizer(MATRICES[name], **{"stddev": 1.0, **more})


def of_integers(name: str = "three bands", **more: Any) -> Any:
    return ours.integer_privatizer(MATRICES[name], **{"stddev": 1000.0, **more})


def flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.ravel(leaf).astype(float) for leaf in jax.tree.leaves(tree)])


def run(made: Any, sums: Any, steps: int, wrap: Any = lambda update: update) -> list[Any]:
    """Give what the steps of a run release for the same sums."""
    update, state, released = wrap(made.update), made.init(sums), []
    for _ in range(steps):
        noisy, state = update(sums, state)
        released.append(noisy)
    return released


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("name", MATRICES)
def test_shapes_and_dtypes_are_the_hosts(name: str, tree: str) -> None:
    sums, expected = TREES[tree], host.gaussian_privatizer(stddev=1.0, prng_key=0)
    shapes = jax.eval_shape(expected.update, sums, expected.init(sums))[0]
    for wrap in (lambda update: update, jax.jit):
        made = privatizer(name)
        state = before = made.init(jax.eval_shape(lambda: sums))
        for _ in range(4):
            released, state = wrap(made.update)(sum_of_clipped_grads=sums, noise_state=state, params=None)
            assert jax.tree.structure(released) == jax.tree.structure(shapes)
            assert jax.tree.map(lambda x: (x.shape, x.dtype), released) == jax.tree.map(
                lambda x: (x.shape, x.dtype), shapes
            )
            assert jax.tree.map(jnp.shape, state) == jax.tree.map(jnp.shape, before)
            assert [part.dtype for part in state] == [np.int32, np.uint32]
    for function in ("gaussian_privatizer", "matrix_factorization_privatizer"):
        shown, theirs = (inspect.signature(getattr(library, function)).parameters for library in (ours, host))
        assert list(shown)[-4:] == list(theirs)[-4:]
        assert [shown[key].default for key in list(shown)[-4:]] == [theirs[key].default for key in list(theirs)[-4:]]


def reference(name: str, sums: list[np.ndarray], steps: int, stddev: float, seed: int) -> list[np.ndarray]:
    """Compute in integers of Python: C^-1 z with R rounding half up, and sums on the grid; rounded once to doubles."""
    weights = NUMERATORS if name == "three bands" else [UNIT]
    unit, rng = STEP[name] * Fraction(2) ** (math.frexp(stddev)[1] - 1) / UNIT, hazmat.SeededRng(seed)
    history: list[list[int]] = []
    for _ in range(steps):
        noise = [
            int(z)
            for part in sums
            for z in samplers.discrete_gaussian(Fraction(stddev) / unit, size=part.size, rng=rng)
        ]
        past = list(zip(weights[1:], reversed(history), strict=False))
        taken = [sum(m * row[i] for m, row in past) for i in range(len(noise))]
        history.append([z - ((v + UNIT // 2) >> 12) for z, v in zip(noise, taken, strict=True)])
    values = [Fraction(float(x)) for part in sums for x in part.ravel()]
    on_grid = [UNIT * ((x / (UNIT * unit) + Fraction(1, 2)) // 1) for x in values]
    return [np.array([float((x + n) * unit) for x, n in zip(on_grid, row, strict=True)]) for row in history]


@pytest.mark.parametrize("stddev", [1.0, 0.3, 1.9e9])
@pytest.mark.parametrize("name", MATRICES)
def test_a_run_is_that_of_the_definition_bit_for_bit(name: str, stddev: float) -> None:
    generator = np.random.default_rng(1)
    with jax.enable_x64(True):
        parts = [generator.normal(size=n) * 10.0 ** generator.integers(-12, 12, n) for n in (300, 1)]
        parts[0][:6] = STEP[name] / 2, -STEP[name] / 2, 0.25, -1e30, 0.0, 2.0**-60
        expected = reference(name, parts, 5, stddev, 7)
        for wrap in (lambda update: update, jax.jit):
            made = privatizer(name, stddev=stddev, prng_key=hazmat.SeededRng(7))
            found = run(made, jax.tree.map(jnp.asarray, parts), 5, wrap)
            np.testing.assert_array_equal([flat(one) for one in found], expected)
            assert all(leaf.dtype == np.float64 for leaf in jax.tree.leaves(found))


INTEGERS = [0, 1, -1, 2**40, 2**51 - 1, -(2**51), 2**52 + 3, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("stddev", [1.0, 1234.5, 2.0**28])
@pytest.mark.parametrize("name", MATRICES)
def test_a_run_on_integers_is_that_of_the_definition_bit_for_bit(name: str, stddev: float) -> None:
    """In integers of Python, modulo 2**64; with several bands in units of 2**-12, and rounded half up at the end."""
    weights, unit = (NUMERATORS, UNIT) if name == "three bands" else ([UNIT], 1)
    with jax.enable_x64(True):
        parts = [jnp.array(INTEGERS), jnp.arange(-300, 300).reshape(20, 30), jnp.array(7)]
        values = [int(x) for part in parts for x in np.ravel(part)]
        for wrap in (lambda update: update, jax.jit):
            found = run(of_integers(name, stddev=stddev, rng=hazmat.SeededRng(7)), parts, 5, wrap)
            assert all(leaf.dtype == np.int64 for leaf in jax.tree.leaves(found))
            rng, history = hazmat.SeededRng(7), []
            for released in found:
                draws = [samplers.discrete_gaussian(Fraction(stddev) * unit, size=part.size, rng=rng) for part in parts]
                past = list(zip(weights[1:], reversed(history), strict=False))
                taken = [sum(m * row[i] for m, row in past) for i in range(len(values))]
                noise = [int(z) - ((v + UNIT // 2) >> 12) for z, v in zip(np.concatenate(draws), taken, strict=True)]
                history.append(noise)
                noisy = [(x * unit + n + unit // 2 + 2**63) % 2**64 - 2**63 for x, n in zip(values, noise, strict=True)]
                assert [int(x) for leaf in released for x in np.ravel(leaf)] == [x // unit for x in noisy]


class Seeded:
    """The native noise from the same seed in each step, for calls that take no generator."""

    def __init__(self, noise: Any) -> None:
        self.noise = noise
        self.history_length, self.granularity = noise.history_length, noise.granularity

    def add_noise(self, sums: Any, history: Any, step: int, rng: Any) -> None:
        self.noise.add_noise(sums, history, step, rng=hazmat.SeededRng(step + 1))


@pytest.mark.parametrize("donated", [(), (0, 1)], ids=str)
@pytest.mark.parametrize("name", MATRICES)
def test_all_ways_take_the_same_steps(name: str, donated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ours._kept_noise
    monkeypatch.setattr(ours, "_kept_noise", lambda *given: Seeded(kept(*given)))
    generator = np.random.default_rng(2)
    for x64 in (False, True):
        with jax.enable_x64(x64):
            sums = {
                "a": generator.normal(size=(3, 4)),
                "b": np.float32(generator.normal()),
                "c": generator.normal(size=70).astype(np.float16),
            }
            found = [run(privatizer(name), sums, 4)]
            for one in (True, False):
                monkeypatch.setattr(_step, "is_one_cpu", lambda one=one: one)
                compiled = jax.jit(privatizer(name).update, donate_argnums=donated)
                found.append(run(privatizer(name), sums, 4, lambda _, compiled=compiled: compiled))
            for a, b in zip(jax.tree.leaves(found[0]), jax.tree.leaves(found[1]), strict=True):
                assert a.dtype == b.dtype
            np.testing.assert_array_equal(flat(found[0]), flat(found[1]))
            np.testing.assert_array_equal(flat(found[0]), flat(found[2]))


def test_a_donated_history_is_updated_in_place_and_another_one_stays() -> None:
    made = privatizer()
    for donated, places in (((1,), 1), ((), 2)):
        update = jax.jit(made.update, donate_argnums=donated)
        _, state = update(SAME, made.init(SAME))
        before, address = np.array(state[1]), state[1].unsafe_buffer_pointer()
        _, later = update(SAME, state)
        assert len({address, later[1].unsafe_buffer_pointer()}) == places
        if not donated:
            np.testing.assert_array_equal(state[1], before)
        assert not np.array_equal(before, later[1])


def test_donated_integers_get_noise_in_place() -> None:
    with jax.enable_x64(True):
        made = of_integers()
        update = jax.jit(made.update, donate_argnums=(0, 1))
        sums, state = jnp.array(WHOLE), made.init(WHOLE)
        places = [array.unsafe_buffer_pointer() for array in (sums, state[1])]
        noisy, later = update(sums, state)
        assert [array.unsafe_buffer_pointer() for array in (noisy, later[1])] == places


def test_sums_that_are_needed_elsewhere_stay() -> None:
    """Noise is added in place: XLA copies what is used again."""
    made = ours.gaussian_privatizer(stddev=1.0)
    sums = jnp.full(9, 1e3)
    twice = {"a": sums, "b": sums}
    for given in (twice, jax.jit(lambda: twice)()):
        found = jax.jit(made.update)(given, made.init(twice))[0]
        assert not np.array_equal(found["a"], found["b"])
        assert np.all(np.abs(flat(found) - 1e3) < 100)
        np.testing.assert_array_equal(flat(given), 1e3)
    noisy, kept = jax.jit(lambda x: (made.update(2 * x, made.init(x))[0], 2 * x))(sums)
    np.testing.assert_array_equal(kept, 2e3)
    assert not np.array_equal(noisy, kept)


# So many numbers that two releases are never equal by chance.
SAME = jnp.ones(9)
WHOLE = np.full(9, 10**6)


def steps_of_all_kinds(make: Callable[[], Any], same: Any = SAME) -> dict[str, np.ndarray]:
    """Give what is released for the same sums and the same state, again and again."""
    made, same = make(), jnp.asarray(same)
    state = made.init(same)
    step = jax.jit(lambda sums: made.update(sums, state)[0])
    constants = jax.jit(lambda: made.update(same, state)[0])

    def scanned(sums: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda _, __: (None, made.update(sums, state)[0]), None, length=5)[1]

    return {
        "eager": np.array([made.update(same, state)[0] for _ in range(3)]),
        "compiled": np.array([step(same) for _ in range(5)]),
        "constants": np.array([constants() for _ in range(2)]),
        "twice in one": np.array(jax.jit(lambda x: [made.update(x, state)[0] for _ in range(2)])(same)),
        "scan": np.asarray(jax.jit(scanned)(same)),
        "vmap": np.asarray(jax.jit(jax.vmap(lambda x: made.update(x, state)[0]))(jnp.stack([same] * 4))),
    }


def repeated(make: Callable[[], Any], same: Any = SAME) -> set[str]:
    found = steps_of_all_kinds(make, same).items()
    return {name for name, released in found if len(np.unique(released, axis=0)) < len(released)}


@pytest.mark.parametrize("way", ["custom call", "callback"])
@pytest.mark.parametrize("name", MATRICES)
def test_every_call_draws_fresh_noise(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _step.is_one_cpu()
    monkeypatch.setattr(_step, "is_one_cpu", lambda: way == "custom call")
    assert repeated(lambda: privatizer(name)) == set()
    with jax.enable_x64(True):
        assert repeated(lambda: of_integers(name), WHOLE) == set()


def test_noise_of_the_state_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the host draws it; ours from the same seed in each step does the same."""
    every = {"eager", "compiled", "constants", "twice in one", "scan", "vmap"}
    assert repeated(lambda: host.gaussian_privatizer(stddev=1.0, prng_key=0)) == every
    kept = ours._kept_noise
    monkeypatch.setattr(ours, "_kept_noise", lambda *given: Seeded(kept(*given)))
    assert repeated(privatizer) == every
    with jax.enable_x64(True):
        assert repeated(of_integers, WHOLE) == every


WIDTH = 40_000


def largest_deviation(released: list[np.ndarray], covariance: np.ndarray) -> float:
    """Give the largest z-score of the covariances of the steps over many numbers with noise of their own.

    With the true covariance all are below 8, but for a probability below 1e-11: by Bernstein's inequality for products
    of two Gaussians a score above 8 has one of at most 2 exp(-32 / (1 + 8 sqrt(2 / WIDTH))) < 1e-13, and there are 21.
    """
    found = np.array(released) @ np.array(released).T / WIDTH
    spread = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / WIDTH)
    return float(np.max(np.abs(found - covariance) / spread))


def inverse_of(strategy: BandedToeplitz) -> np.ndarray:
    column = np.zeros(strategy.steps)
    column[: strategy.bands] = strategy.coefficients
    places = np.subtract.outer(np.arange(strategy.steps), np.arange(strategy.steps))
    return np.linalg.inv(np.where(places >= 0, column[places], 0.0))


def without_history(made: Any, sums: Any) -> list[Any]:
    """Lose what the state remembers: the step alone is kept."""
    states = [(jnp.int32(step), made.init(sums)[1]) for step in range(STRATEGY.steps)]
    return [made.update(sums, state)[0] for state in states]


def test_the_covariance_is_the_stated_one() -> None:
    sums, stddev = jnp.zeros(WIDTH), 2.5
    inverse = inverse_of(STRATEGY)
    covariance = stddev**2 * inverse @ inverse.T
    assert largest_deviation(run(privatizer(stddev=stddev), sums, STRATEGY.steps, jax.jit), covariance) < 8
    faults = {
        "a stddev that is 10 % too small": run(privatizer(stddev=0.9 * stddev), sums, STRATEGY.steps, jax.jit),
        "independent noise": run(privatizer("identity", stddev=stddev), sums, STRATEGY.steps, jax.jit),
        "the history is lost": without_history(privatizer(stddev=stddev), sums),
        "C for its inverse": list(np.linalg.inv(inverse) @ run(privatizer("identity", stddev=stddev), sums, 6)),
    }
    assert {name for name, released in faults.items() if largest_deviation(released, covariance) < 12} == set()
    independent = run(ours.gaussian_privatizer(stddev=stddev), sums, 6, jax.jit)
    assert largest_deviation(independent, stddev**2 * np.eye(6)) < 8


@pytest.mark.parametrize("name", MATRICES)
def test_the_covariance_of_noise_on_integers_is_the_stated_one(name: str) -> None:
    """Rounding to whole numbers adds a variance of 1/12, here by less than 1e-7 of it."""
    stddev = 1000.0
    inverse = inverse_of(STRATEGY) if name == "three bands" else np.eye(STRATEGY.steps)
    covariance = stddev**2 * inverse @ inverse.T

    def noise(stddev: float) -> list[Any]:
        with jax.enable_x64(True):
            sums = jnp.full(WIDTH, 12_345)
            return [x - 12_345.0 for x in run(of_integers(name, stddev=stddev), sums, STRATEGY.steps, jax.jit)]

    assert largest_deviation(noise(stddev), covariance) < 8
    assert largest_deviation(noise(0.9 * stddev), covariance) > 12


def test_a_state_that_was_saved_goes_on() -> None:
    made = privatizer(prng_key=hazmat.SeededRng(5))
    expected = run(made, SAME, 4)
    made = privatizer(prng_key=hazmat.SeededRng(5))
    state, found = made.init(SAME), []
    for _ in range(4):
        noisy, state = made.update(SAME, jax.tree.map(np.asarray, state))
        state = [part.tobytes() for part in state]
        state = jnp.asarray(np.frombuffer(state[0], np.int32)[0]), jnp.asarray(np.frombuffer(state[1], np.uint32))
        found.append(noisy)
    np.testing.assert_array_equal(found, expected)


def test_the_state_is_of_noise_alone() -> None:
    """The same for other sums, from the same seed."""
    states = [
        jax.tree.map(np.asarray, privatizer(prng_key=hazmat.SeededRng(5)).update(sums, privatizer().init(SAME))[1])
        for sums in (SAME, 1e6 * SAME)
    ]
    assert jax.tree.all(jax.tree.map(np.array_equal, *states))


def test_the_grid_brings_sums_apart_by_less_than_a_step_for_each_number() -> None:
    """Hence by less than the change and the root of the number of sums; changes across halves of steps come close."""
    step, generator = STEP["identity"], np.random.default_rng(1)
    with jax.enable_x64(True):
        change = generator.integers(1, 9, 50) * 2.0**-32
        ends = generator.choice([0.5, -0.5], 50) * float(step) - change / 2
        anywhere = generator.normal(size=50) * 2.0 ** generator.integers(-40, 9, 50)
        for start, moves in ((ends, {1}), (anywhere, {0, 1})):
            a, b = (
                run(privatizer("identity", prng_key=hazmat.SeededRng(1)), jnp.asarray(x), 1)[0]
                for x in (start, start + change)
            )
            moved = [(Fraction(float(y)) - Fraction(float(x))) / step for x, y in zip(a, b, strict=True)]
            assert set(moved) <= moves
            assert all(abs(by - Fraction(float(c)) / step) < 1 for by, c in zip(moved, change, strict=True))


def test_what_is_not_finite_counts_as_zero() -> None:
    sums = jnp.array([jnp.nan, jnp.inf, -jnp.inf, 1.0])
    found, expected = (
        run(privatizer(prng_key=hazmat.SeededRng(1)), given, 1)[0] for given in (sums, sums.at[:3].set(0.0))
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("microbatch_size", [None, 1, 2])
def test_an_empty_batch_is_noise_alone(microbatch_size: int | None) -> None:
    """As the page says: with a row of padding, since the host refuses a batch without rows."""
    data, none = jnp.ones((20, 9)), np.empty(0, int)
    clipped_sum = clipping.clipped_grad(
        lambda parameters, row: jnp.sum(parameters * row),
        l2_clip_norm=1.0,
        batch_argnums=1,
        microbatch_size=microbatch_size,
    )

    def sums(indices: np.ndarray) -> jax.Array:
        indices = batch_selection.pad_to_multiple_of(indices, 4)
        return clipped_sum(SAME, data[indices], is_padding_example=indices == -1)

    with pytest.raises(ValueError, match=r"^num_microbatches=0 must be positive"):
        sums(none)
    found, expected = (
        run(privatizer(prng_key=hazmat.SeededRng(1)), given, 1)[0] for given in (sums(np.append(none, -1)), 0 * SAME)
    )
    np.testing.assert_array_equal(found, expected)


def test_a_chain_with_an_optimizer_runs_in_a_loop() -> None:
    made = optax.chain(privatizer(stddev=1e-3), optax.adamw(0.1))
    parameters = {"a": jnp.zeros(3), "b": jnp.zeros(())}

    def step(carried: Any, _: Any) -> tuple[Any, None]:
        parameters, state = carried
        gradients = jax.tree.map(lambda x: x - 1.0, parameters)
        updates, state = made.update(gradients, state, parameters)
        return (optax.apply_updates(parameters, updates), state), None

    (found, state), _ = jax.jit(lambda p: jax.lax.scan(step, (p, made.init(p)), length=STRATEGY.steps))(parameters)
    assert all(np.all(np.abs(np.asarray(leaf) - 0.6) < 0.1) for leaf in jax.tree.leaves(found))
    assert state[0][0] == STRATEGY.steps


def test_steps_after_the_last_are_refused() -> None:
    made = privatizer()
    state = (jnp.int32(STRATEGY.steps), made.init(SAME)[1])
    with pytest.raises(ParameterError, match=r"^noise_state must be one before the last of 6 steps, got one after 6"):
        made.update(SAME, state)
    with pytest.raises(jax.errors.JaxRuntimeError, match="before the last of 6 steps, got one after 6"):
        jax.block_until_ready(jax.jit(made.update)(SAME, state))


OTHERS = {
    "coefficients": (BandedToeplitz([1.0, 0.5, 0.25], steps=6), 1.0, SAME),
    "steps": (BandedToeplitz(STRATEGY.coefficients, steps=7), 1.0, SAME),
    "stddev": (STRATEGY, 1.0000000000000002, SAME),
    "sizes": (STRATEGY, 1.0, jnp.ones(SAME.size - 1)),
    "order of sizes": (STRATEGY, 1.0, (SAME, jnp.ones(1))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_states_of_other_parameters_are_refused(name: str) -> None:
    strategy, stddev, sums = OTHERS[name]
    other = ours.matrix_factorization_privatizer(strategy, stddev=stddev)
    made = ours.matrix_factorization_privatizer(STRATEGY, stddev=1.0)
    given = (jnp.ones(1), SAME) if name == "order of sizes" else SAME
    made.update(given, made.init(given))
    state = other.init(sums)
    with pytest.raises(ParameterError, match=r"^noise_state must be that of a privatizer with these parameters"):
        made.update(given, state)
    with pytest.raises(jax.errors.JaxRuntimeError, match="noise_state must be that of a privatizer"):
        jax.block_until_ready(jax.jit(made.update)(given, state))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_what_is_no_state_is_refused(wrap: Any) -> None:
    made = ours.matrix_factorization_privatizer(STRATEGY, stddev=1.0)
    step, history = made.init(SAME)
    wrong = [
        (step, history.astype(np.float32)),
        (step, history.astype(np.int32)),
        (step, history[:-1]),
        (step, history[jnp.newaxis]),
        (step.astype(np.float32), history),
        (step[jnp.newaxis], history),
        (step, history, history),
        (history, step),
        step,
        (),
    ]
    for state in wrong:
        with pytest.raises(ParameterError, match=r"^noise_state must be one for such sum_of_clipped_grads"):
            wrap(made.update)(SAME, state)
    for first in (True, 0, np.int64(2**32)):
        with pytest.raises(ParameterError, match=r"^noise_state must be one for such sum_of_clipped_grads"):
            made.update(SAME, (first, history))


BAD = {
    "a vector": lambda library: library.matrix_factorization_privatizer(jnp.ones(3), stddev=1.0),
    "no matrix": lambda library: library.matrix_factorization_privatizer("C", stddev=1.0),
    "no stddev": lambda library: library.matrix_factorization_privatizer(streaming_matrix.identity()),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_are_the_hosts(name: str) -> None:
    expected = errors.error_of(lambda: BAD[name](host))
    assert expected is not None
    assert errors.error_of(lambda: BAD[name](ours)) == expected


def test_parameters_that_cannot_be_honoured_are_refused() -> None:
    for given in (0, jax.random.key(0), jax.random.PRNGKey(0), np.random.default_rng(0)):
        with pytest.raises(ValueError, match=r"^prng_key must be left out or None, .* got [A-Za-z]+$"):
            ours.gaussian_privatizer(stddev=1.0, prng_key=given)
    for stddev in (0.0, -1.0, np.inf, np.nan, 2.0**81, 2.0**-81):
        with pytest.raises(ParameterError, match=r"^stddev must be from 2\*\*-80 to 2\*\*80, got "):
            ours.gaussian_privatizer(stddev=stddev)
    for dtype in (int, complex, bool):
        with pytest.raises(TypeError, match=r"^dtype must be a real floating-point type, got "):
            ours.gaussian_privatizer(stddev=1.0, dtype=dtype)
    with pytest.raises(NotImplementedError, match=r"^intermediate_strategy must be SupportedStrategies.DEFAULT"):
        ours.gaussian_privatizer(stddev=1.0, intermediate_strategy=host.SupportedStrategies.ZERO)
    for matrix in (
        np.eye(3),
        streaming_matrix.prefix_sum(),
        streaming_matrix.identity() * 2.0,
        toeplitz.inverse_as_streaming_matrix(jnp.array([1.0, 0.5])),
    ):
        with pytest.raises(NotImplementedError, match=r"^noising_matrix must be a dpnoise.sgd.BandedToeplitz, "):
            ours.matrix_factorization_privatizer(matrix, stddev=1.0)
    with pytest.raises(ParameterError, match=r"^noising_matrix must be a strategy .* leaves 36 of them"):
        ours.matrix_factorization_privatizer(BandedToeplitz([1.0, 1.0], steps=2**20), stddev=1.0)
    for dtype in (int, complex):
        with pytest.raises(TypeError, match=r"^sum_of_clipped_grads must be real floating-point numbers, got dtype "):
            privatizer("identity").update(jnp.ones(2, dtype), privatizer("identity").init(SAME))
    ours.gaussian_privatizer(stddev=jnp.float32(1.5), dtype=jnp.bfloat16)
    ours.gaussian_privatizer(stddev=2.0**80)
    ours.gaussian_privatizer(stddev=2.0**-80)


def test_what_integers_cannot_honour_is_refused() -> None:
    for given in (0, jax.random.key(0), np.random.default_rng(0)):
        with pytest.raises(ValueError, match=r"^rng must be left out or None, .* got [A-Za-z]+$"):
            of_integers(rng=given)
    for name, most in (("identity", "17592186044416.0"), ("three bands", "4294967296.0")):
        for stddev in (0.0, 0.999, -1.0, np.inf, np.nan, 2.0**44 + 1 if name == "identity" else 2.0**32 + 1):
            with pytest.raises(ParameterError, match=rf"^stddev must be from 1 to {most}, where .* got "):
                of_integers(name, stddev=stddev)
    for matrix in (
        np.eye(3),
        "C",
        streaming_matrix.prefix_sum(),
        streaming_matrix.identity() * 2.0,
        toeplitz.inverse_as_streaming_matrix(jnp.array([1.0, 0.5])),
    ):
        with pytest.raises(NotImplementedError, match=r"^strategy must be a dpnoise.sgd.BandedToeplitz, "):
            ours.integer_privatizer(matrix, stddev=1.0)
    with pytest.raises(ParameterError, match=r"^jax_enable_x64 must be on, .* got False: call "):
        of_integers().update(WHOLE, of_integers().init(WHOLE))
    with jax.enable_x64(True):
        made = of_integers()
        state = made.init(WHOLE)
        for dtype in (np.float32, np.float64, np.int32, np.uint64, bool):
            with pytest.raises(TypeError, match=r"^sum_of_clipped_grads must be integers of dtype int64, got dtype "):
                jax.jit(made.update)(WHOLE.astype(dtype), state)
        for other in (of_integers("identity"), of_integers(stddev=1001.0), privatizer(stddev=1000.0)):
            with pytest.raises(
                ParameterError, match=r"^noise_state must be (one for such|that of a privatizer with these)"
            ):
                made.update(WHOLE, other.init(WHOLE))


def test_devices_that_each_draw_noise_are_refused() -> None:
    made = ours.gaussian_privatizer(stddev=1.0)
    mesh = jax.make_mesh((1,), ("devices",), axis_types=(jax.sharding.AxisType.Auto,))
    each = PartitionSpec("devices")
    update = jax.shard_map(lambda x: made.update(x, made.init(x))[0], mesh=mesh, in_specs=each, out_specs=each)
    with pytest.raises(NotImplementedError, match="each device would draw noise of its own"):
        jax.jit(update)(SAME)
    whole = of_integers()
    update = jax.shard_map(lambda x: whole.update(x, whole.init(x))[0], mesh=mesh, in_specs=each, out_specs=each)
    with jax.enable_x64(True), pytest.raises(NotImplementedError, match="each device would draw noise of its own"):
        jax.jit(update)(WHOLE)


SEVERAL_DEVICES = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from dpnoise_jax.jax_privacy import clip_and_round_to_grid, integer_privatizer
from dpnoise.sgd import BandedToeplitz

jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_enable_x64", True)
made = integer_privatizer(BandedToeplitz([1.0, 0.5], steps=9), stddev=1000.0)
mesh = jax.make_mesh((2,), ("devices",), axis_types=(AxisType.Auto,))
gradients = np.random.default_rng(1).normal(size=(8, 50)).astype(np.float32)

@jax.jit
def step(gradients, state):
    rows, _ = jax.vmap(lambda row: clip_and_round_to_grid(row, 1.0, 2**31 - 1))(gradients)
    sums = rows.sum(axis=0)
    noisy, state = made.update(sums, state)
    return sums, jax.device_put(noisy, NamedSharding(mesh, P())), state

state = made.init(jnp.zeros(50, np.int64))
alone, _, _ = step(gradients, state)
sums, noisy, _ = step(jax.device_put(gradients, NamedSharding(mesh, P("devices"))), state)
assert np.array_equal(alone, sums), "in integers, whatever the devices"
copies = [np.asarray(copy.data) for copy in noisy.addressable_shards]
assert len(copies) == 2 and np.array_equal(*copies) and not np.array_equal(copies[0], sums)
assert np.abs(copies[0] - sums).max() < 64_000
print("done")
"""


def test_several_devices_share_sums_and_noise() -> None:
    shown = subprocess.run([sys.executable, "-c", SEVERAL_DEVICES], capture_output=True, text=True, check=False)
    assert shown.stdout == "done\n", shown.stderr


def test_nothing_is_released_without_randomness(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(Seeded):
        def add_noise(self, *_: Any, rng: Any) -> None:
            raise RandomnessError("no randomness")

    kept = ours._kept_noise
    monkeypatch.setattr(ours, "_kept_noise", lambda *given: Failing(kept(*given)))
    with pytest.raises(RandomnessError):
        run(privatizer(), SAME, 1)
    with pytest.raises(jax.errors.JaxRuntimeError, match="no randomness"):
        jax.block_until_ready(run(privatizer(), SAME, 1, jax.jit))
