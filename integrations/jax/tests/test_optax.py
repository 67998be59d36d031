"""DP-SGD of optax with noise of dpnoise: the host's checks and means, exact sums, and noise that is always fresh."""

from __future__ import annotations

import runpy
import subprocess
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from host_tests import errors
from optax import contrib as host

from dpnoise import ParameterError, RandomnessError, audit, datasets, hazmat
from dpnoise.sgd import NoisyGradient, epsilon_spent
from dpnoise_jax import _step
from dpnoise_jax import optax as ours

LITTLE = 2.0**-20


def rows(*shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(1).normal(size=shape), jnp.float32)


TREES = {
    "nested": {"a": (rows(8, 2, 3), rows(8)), "b": [np.ones((8, 1), np.float32), rows(8, 0), None]},
    "half": {"a": rows(8, 4).astype(jnp.float16), "b": rows(8, 2).astype(jnp.bfloat16)},
    "integers": jnp.arange(24).reshape(8, 3),
}


def aggregate(clip: float = 1.0, multiplier: float = LITTLE, **more: Any) -> Any:
    return ours.differentially_private_aggregate(clip, multiplier, **more)


def released(transformation: Any, updates: Any) -> Any:
    return transformation.update(updates, transformation.init(None))[0]


def compiled(transformation: Any) -> Any:
    return jax.jit(lambda updates: released(transformation, updates))


def error_of(call: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the host has some for its keys
        return errors.error_of(call)


@pytest.mark.parametrize("name", TREES)
def test_the_mean_is_the_hosts_with_its_shapes_and_dtypes(name: str) -> None:
    tree = TREES[name]
    expected = compiled(host.differentially_private_aggregate(1.5, 0.0, key=0))(tree)
    for found in (released(aggregate(1.5), tree), compiled(aggregate(1.5))(tree)):
        assert jax.tree.structure(found) == jax.tree.structure(expected)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            # Of halves, the host computes the norms with three digits.
            tolerance = 1e-2 if name == "half" else 1e-5
            np.testing.assert_allclose(a.astype(np.float32), b.astype(np.float32), atol=tolerance)


def test_a_step_is_that_of_noisy_gradient_bit_for_bit() -> None:
    """For rows that have all leaves: nothing is computed in between. The division by eight rows is exact."""
    tree = TREES["nested"]
    matrix = np.concatenate([np.reshape(leaf, (8, leaf.size // 8)) for leaf in jax.tree.leaves(tree)], axis=1)
    expected = NoisyGradient(clip_norm=0.7, noise_multiplier=1.3, expected_batch_size=8.0).release(
        matrix, rng=hazmat.SeededRng(3)
    )
    for run in (released, lambda made, tree: compiled(made)(tree)):
        for argument in ("key", "seed"):
            found = run(aggregate(0.7, 1.3, **{argument: hazmat.SeededRng(3)}), tree)
            flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(found)])
            np.testing.assert_array_equal(flat, expected)


@pytest.mark.parametrize("more", [{}, {"momentum": 0.9, "nesterov": True}], ids=str)
def test_dpsgd_makes_the_hosts_steps(more: Any) -> None:
    schedule = optax.linear_schedule(0.5, 0.1, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the host says that its own seed is deprecated
        theirs = host.dpsgd(schedule, 1.0, 0.0, 0, **more)
    mine = ours.dpsgd(schedule, 1.0, LITTLE, **more)
    tree = TREES["integers"]
    states = [made.init(jax.tree.map(lambda leaf: leaf[0], tree)) for made in (theirs, mine)]
    update, host_update = jax.jit(mine.update), jax.jit(theirs.update)
    for _ in range(3):
        expected, states[0] = host_update(tree, states[0])
        found, states[1] = update(tree, states[1])
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, expected)


BAD = {
    "no number": lambda library: library.differentially_private_aggregate(None, 1.0),
    "a text": lambda library: library.differentially_private_aggregate("1", 1.0),
    "rows of two lengths": lambda library: released(
        library.differentially_private_aggregate(1.0, 1.0), {"a": jnp.ones((8, 2)), "b": jnp.ones((7, 2))}
    ),
    "a mean": lambda library: released(
        library.differentially_private_aggregate(1.0, 1.0), {"a": jnp.ones((2, 3)), "b": jnp.ones(())}
    ),
    "nothing": lambda library: released(library.differentially_private_aggregate(1.0, 1.0), {}),
    "another argument": lambda library: library.dpsgd(0.1, 1.0, 1.0, None, clip=1.0),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_are_the_hosts(name: str) -> None:
    expected = error_of(lambda: BAD[name](host))
    assert expected is not None
    assert error_of(lambda: BAD[name](ours)) == expected


def test_parameters_that_cannot_be_honoured_are_refused() -> None:
    for given in (0, 1.5, jax.random.key(0), jax.random.PRNGKey(0), np.random.default_rng(0)):
        for name, call in (
            ("key", lambda key: aggregate(key=key)),
            ("seed", lambda seed: aggregate(seed=seed)),
            ("seed", lambda seed: ours.dpsgd(0.1, 1.0, 1.0, seed)),
        ):
            with pytest.raises(ValueError, match=f"^{name} must be left out or None, .* got [A-Za-z]+$"):
                call(given)
    with pytest.raises(ValueError, match=r"^Only one of seed or key can be specified"):
        aggregate(key=hazmat.SeededRng(1), seed=hazmat.SeededRng(1))
    for clip in (0.0, -1.0, np.inf, np.nan, 2.0**81, jnp.finfo(jnp.float32).max):
        with pytest.raises(ParameterError, match=r"^l2_norm_clip must be from 2\*\*-80 to 2\*\*80, got "):
            aggregate(clip)
    for multiplier in (0.0, -1.0, np.inf, np.nan, 2049.0):
        with pytest.raises(ParameterError, match=r"^noise_multiplier must be from 2\*\*-20 to 2\*\*11, got "):
            aggregate(1.0, multiplier)
    with pytest.raises(ValueError, match="size 1"):
        aggregate(jnp.ones(2))
    with pytest.raises(jax.errors.ConcretizationTypeError):  # what is not known when the step is compiled
        jax.jit(lambda clip: released(aggregate(clip), jnp.ones((2, 1))))(1.0)
    released(aggregate(jnp.float32(1.5), np.array([1])), jnp.ones((2, 1)))


def test_models_without_parameters_are_refused() -> None:
    for run in (released, lambda made, tree: compiled(made)(tree)):
        for rows in (0, 3):
            with pytest.raises(ParameterError, match=r"^updates must have one or more parameters for each example, "):
                run(aggregate(), {"a": jnp.ones((rows, 0)), "b": jnp.ones((rows, 2, 0))})


@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16])
def test_an_empty_batch_makes_the_noise_of_one_row_of_zeros(dtype: Any) -> None:
    made = {rows: {"a": jnp.zeros((rows, 2, 3), dtype), "b": jnp.zeros(rows, dtype)} for rows in (0, 1)}
    for run in (released, lambda made, tree: compiled(made)(tree)):
        empty, zeros = (run(aggregate(0.7, 1.3, key=hazmat.SeededRng(3)), tree) for tree in made.values())
        assert jax.tree.all(jax.tree.map(lambda x, y: x.dtype == y.dtype and np.array_equal(x, y), empty, zeros))
        assert np.count_nonzero(empty["a"]) > 0


@pytest.mark.usefixtures("way")
def test_a_training_goes_on_after_an_empty_batch() -> None:
    made = ours.dpsgd(0.5, 1.0, 1.0)
    step = jax.jit(made.update)
    state, found = made.init(None), []
    for rows in (4, 0, 0):
        update, state = step(jnp.zeros((rows, 9)), state)
        found.append(np.asarray(update))
    assert len(np.unique(found, axis=0)) == 3
    assert np.isfinite(found).all()


def test_complex_gradients_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^updates must be real numbers of at most 64 bits, got dtype complex64"):
        released(aggregate(), jnp.ones((2, 3), complex))


def test_the_norm_is_that_of_all_leaves() -> None:
    found = released(aggregate(), {"a": jnp.full((1, 1), 3.0), "b": jnp.full((1,), 4.0)})
    np.testing.assert_allclose(found["a"], [0.6], atol=1e-5)
    np.testing.assert_allclose(found["b"], 0.8, atol=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_counts_as_zeros(bad: float) -> None:
    tree = {"a": jnp.array([[0.5], [bad]]), "b": jnp.array([0.25, 100.0])}
    found = released(aggregate(), tree)
    np.testing.assert_allclose([found["a"][0], found["b"]], [0.25, 0.125], atol=1e-5)


# So many numbers that two releases are never equal by chance.
SAME = jnp.ones((4, 9))


def steps_of_all_kinds(make: Any) -> dict[str, np.ndarray]:
    """Give the noisy means of the same gradients, of steps that a program takes again and again."""
    made = make()
    step = compiled(made)
    constants = jax.jit(lambda: released(made, SAME))

    def scanned(gradients: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda state, _: made.update(gradients, state)[::-1], made.init(None), length=20)[1]

    def looped(gradients: jax.Array) -> jax.Array:
        def body(i: jax.Array, means: jax.Array) -> jax.Array:
            return means.at[i].set(released(made, gradients))

        return jax.lax.fori_loop(0, 20, body, jnp.zeros((20, 9)))

    return {
        "eager": np.array([released(made, SAME) for _ in range(5)]),
        "compiled": np.array([step(SAME) for _ in range(20)]),
        "compiled again": np.array([compiled(make())(SAME) for _ in range(2)]),
        "constants": np.array([constants() for _ in range(2)]),
        "scan of constants": np.asarray(jax.lax.scan(lambda *_: (None, released(made, SAME)), None, length=20)[1]),
        "twice in one": np.array(jax.jit(lambda x: (released(made, x), released(made, x)))(SAME)),
        "scan": np.asarray(jax.jit(scanned)(SAME)),
        "loop": np.asarray(jax.jit(looped)(SAME)),
        "vmap": np.asarray(jax.jit(jax.vmap(lambda x: released(made, x)))(jnp.ones((6, 4, 9)))),
    }


def repeated(make: Any) -> set[str]:
    return {name for name, means in steps_of_all_kinds(make).items() if len(np.unique(means, axis=0)) < len(means)}


@pytest.mark.usefixtures("way")
def test_every_step_draws_fresh_noise() -> None:
    assert repeated(lambda: aggregate(multiplier=2000.0)) == set()


def without_effects(patch: pytest.MonkeyPatch) -> None:
    """Let JAX believe that a custom call is a pure function."""
    call = jax.ffi.ffi_call

    def pure(target: str, shapes: Any, *, has_side_effect: bool, **more: Any) -> Any:
        assert has_side_effect
        return call(target, shapes, **more)

    patch.setattr(jax.ffi, "ffi_call", pure)


def test_noise_that_is_drawn_once_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A callback that remembers what it gave, and calls that JAX believes to be pure and takes out of a loop."""

    def cached(callback: Any, shape: Any, *arguments: Any) -> Any:
        kept: list[Any] = []

        def remembered(*values: Any) -> Any:
            kept[:] = kept or [callback(*values)]
            return kept[0]

        return jax.experimental.io_callback(remembered, shape, *arguments)

    def pure(callback: Any, shape: Any, *arguments: Any) -> Any:
        return jax.pure_callback(callback, shape, *arguments, vmap_method="sequential")

    with monkeypatch.context() as patch:
        without_effects(patch)
        assert {"scan", "loop"} & repeated(lambda: aggregate(multiplier=2000.0))
    monkeypatch.setattr(_step, "is_one_cpu", lambda: False)
    monkeypatch.setattr(_step, "io_callback", cached)
    assert {"compiled", "scan", "loop", "vmap"} <= repeated(lambda: aggregate(multiplier=2000.0))
    monkeypatch.setattr(_step, "io_callback", pure)
    assert {"scan", "loop"} & repeated(lambda: aggregate(multiplier=2000.0))


def steps_taken(function: Callable[[jax.Array], Any]) -> int:
    """Count the steps that a program takes."""
    calls: list[int] = []
    add_noise = NoisyGradient.add_noise

    def counting(*arguments: Any, **more: Any) -> Any:
        calls.append(1)
        return add_noise(*arguments, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NoisyGradient, "add_noise", counting)
        jax.block_until_ready(jax.jit(function)(SAME))
    return len(calls)


@pytest.mark.usefixtures("way")
def test_a_step_is_taken_once_and_not_differentiated() -> None:
    def uses(x: jax.Array) -> Any:
        mean = released(aggregate(), x)
        return [use(mean) for use in (jnp.sum, jnp.max, jnp.sin, jnp.argsort)]

    assert steps_taken(uses) == 1, "not once for each use"
    with pytest.raises(NotImplementedError, match="Differentiation rule for 'dpnoise_update' not implemented"):
        jax.grad(lambda x: released(aggregate(), x).sum())(SAME)


def a_use() -> Any:
    """Make a new function, since JAX remembers how it has traced one."""
    return lambda x: (jnp.sin(released(aggregate(), jax.lax.stop_gradient(x))) * x).sum()


def in_a_scan() -> Any:
    use = jax.checkpoint(a_use())
    return lambda x: jax.lax.scan(lambda y, _: (y + 1, use(y)), x, length=3)[1].sum()


def one_in_another() -> Any:
    use = jax.checkpoint(a_use())
    return jax.checkpoint(lambda x: jnp.sin(use(x)))


CHECKPOINTS = {
    "a checkpoint": lambda: jax.checkpoint(a_use()),
    "around a jit": lambda: jax.checkpoint(jax.jit(a_use())),
    "one in another": one_in_another,
    "in a scan": in_a_scan,
}
KEEPS = jax.__version_info__ >= (0, 11, 1)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_checkpoint_refuses_a_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if KEEPS:
        monkeypatch.setattr(_step, "is_one_cpu", lambda: False)
    with pytest.raises(NotImplementedError, match="Effects not supported"):
        jax.grad(CHECKPOINTS[name]())(SAME)


@pytest.mark.skipif(not KEEPS, reason="JAX 0.12, which needs Python 3.12: JAX 0.10 refuses a step in a checkpoint")
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_checkpoint_keeps_what_a_step_gave(name: str) -> None:
    assert steps_taken(jax.value_and_grad(CHECKPOINTS[name]())) == (3 if name == "in a scan" else 1)


def test_a_checkpoint_that_repeats_a_step_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    without_effects(monkeypatch)
    assert steps_taken(jax.value_and_grad(in_a_scan())) == 6


SEVERAL_DEVICES = """
import jax, jax.numpy as jnp, numpy as np, optax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from dpnoise_jax.optax import differentially_private_aggregate

jax.config.update("jax_num_cpu_devices", 2)
made = differentially_private_aggregate(1.0, 2.0**-20)
mesh = jax.make_mesh((2,), ("devices",), axis_types=(AxisType.Auto,))
gradients = jax.device_put(jnp.arange(8.0).reshape(8, 1) - 3, NamedSharding(mesh, P("devices")))
parameters = jax.device_put(jnp.zeros(1), NamedSharding(mesh, P()))
step = jax.jit(lambda p, g: optax.apply_updates(p, made.update(g, made.init(p))[0]))
copies = [np.asarray(copy.data) for copy in step(parameters, gradients).addressable_shards]
assert len(copies) == 2 and copies[0] == copies[1] != 0, copies
np.testing.assert_allclose(copies[0], 1 / 8, atol=1e-5)
np.testing.assert_allclose(made.update(gradients, None)[0], 1 / 8, atol=1e-5)
update = lambda g: made.update(g, None)[0]
ways = {check: jax.shard_map(update, mesh=mesh, in_specs=P("devices"), out_specs=P("devices"), check_vma=check)
        for check in (True, False)}
for way in (*map(jax.jit, ways.values()), lambda g: jax.pmap(update)(g.reshape(2, 4, 1))):
    try:
        way(jnp.ones((8, 1)))
    except NotImplementedError as error:
        assert "each device would draw noise of its own" in str(error)
    else:
        raise AssertionError("devices drew noise of their own")
print("done")
"""


@pytest.mark.usefixtures("way")
def test_nothing_is_released_without_randomness(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RandomnessError("no randomness")

    monkeypatch.setattr(NoisyGradient, "add_noise", fail)
    with pytest.raises(RandomnessError):
        released(aggregate(), SAME)
    with pytest.raises(jax.errors.JaxRuntimeError, match="no randomness"):
        jax.block_until_ready(compiled(aggregate())(SAME))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 5])
def test_both_ways_take_the_same_step(dtype: Any, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NoisyGradient, "add_noise", lambda _, sums, **more: (sums * 2.0**-31).astype(more["dtype"]))
    generator = np.random.default_rng(rows)
    with jax.enable_x64(dtype is np.float64):
        tree = {
            "a": jnp.asarray(generator.normal(size=(rows, 3, 4)), dtype),
            "b": jnp.asarray(generator.normal(size=rows), dtype),
            "c": jnp.zeros((rows, 0), dtype),
            # An array that XLA would rather keep the other way round.
            "d": jnp.asarray(generator.normal(size=(7, rows)), dtype).T,
        }
        update = aggregate().update
        found = {}
        for one in (True, False):
            monkeypatch.setattr(_step, "is_one_cpu", lambda one=one: one)
            found[one] = jax.jit(lambda tree: update(tree, None)[0])(tree)
        assert jax.tree.all(jax.tree.map(lambda x, y: x.dtype == y.dtype and np.array_equal(x, y), *found.values()))
        eager = update(tree, None)[0]
        assert jax.tree.all(jax.tree.map(np.array_equal, found[True], eager))
        assert found[True]["a"].dtype == dtype
        assert np.linalg.norm(np.concatenate([np.ravel(x) for x in jax.tree.leaves(eager)])) > 0.1


def test_several_devices_share_one_release() -> None:
    shown = subprocess.run([sys.executable, "-c", SEVERAL_DEVICES], capture_output=True, text=True, check=False)
    assert shown.stdout == "done\n", shown.stderr


def exact_change(made: Any, tree: Any, neighbour: Any, step: Fraction) -> list[Fraction]:
    """Give by how many steps each sum changes; noise that is the same for both cancels."""
    a, b = (np.concatenate([np.ravel(x) for x in jax.tree.leaves(released(made(), t))]) for t in (tree, neighbour))
    n = len(jax.tree.leaves(tree)[0])
    return [(Fraction(float(x)) - Fraction(float(y))) * n / step for x, y in zip(a, b, strict=True)]


def adversarial_rows(width: int, generator: np.random.Generator) -> dict[str, np.ndarray]:
    even = 1 / np.sqrt(width)
    return {
        "at the norm": np.full(width, even),
        "just above": np.full(width, np.nextafter(even, 1)),
        "rounded up everywhere": np.full(width, (np.floor(even * 2**32) + 0.500001) * 2.0**-32),
        "huge": np.full(width, 1e30),
        "one huge among tiny": np.where(np.arange(width) == 0, 1e200, 1e-300),
        "all signs and sizes": generator.normal(size=width) * 10.0 ** generator.integers(-9, 9, width),
    }


@pytest.mark.parametrize("width", [1, 7, 200])
def test_one_example_changes_the_sum_by_the_sensitivity_at_most(width: int) -> None:
    """In fractions: doubles, of eight rows with little noise, hold all digits of the sums and of the mean."""
    with jax.enable_x64(True):
        generator = np.random.default_rng(width)
        others = generator.normal(size=(7, width))
        noisy_gradient = NoisyGradient(clip_norm=1.0, noise_multiplier=LITTLE, expected_batch_size=8.0)
        step = Fraction(noisy_gradient.granularity)
        limit = Fraction(noisy_gradient.sensitivity(width)) / step
        longest = Fraction(0)
        for row in adversarial_rows(width, generator).values():
            without, with_row = (jnp.asarray(np.vstack([others, one])) for one in (np.zeros(width), row))
            trees = [{"a": x[:, : width // 2], "b": x[:, width // 2 :]} for x in (with_row, without)]
            change = exact_change(lambda: aggregate(key=hazmat.SeededRng(5)), *trees, step)
            assert all(part.denominator == 1 for part in change), "a sum off the grid"
            square = sum(part**2 for part in change)
            assert square <= limit**2
            longest = max(longest, square)
        assert longest > (limit * Fraction(99, 100)) ** 2


def test_a_sum_of_floats_changes_by_more_than_the_clip_norm() -> None:
    """The positive control of the test above: what the host adds up, with as many examples as a large batch has."""
    host_mean = compiled(host.differentially_private_aggregate(0.7, 0.0, key=0))
    n = 8192  # a power of two, by which the host divides exactly
    generator = np.random.default_rng(1)
    changes = []
    for _ in range(20):
        others = np.append(generator.uniform(0.5, 1, n - 1), 0).astype(np.float32)
        neighbour = np.append(others[:-1], np.float32(1))
        a, b = (Fraction(float(host_mean(jnp.asarray(batch)))) * n for batch in (others, neighbour))
        changes.append(b - a)
    assert max(changes) > Fraction(0.7) * Fraction(10001, 10000)


N = 2000
DELTA = 0.01
CLAIM = epsilon_spent(noise_multiplier=1.0, sample_rate=1.0, steps=1, delta=DELTA)
# One example more turns the gradient of the batch around.
BATCH = np.array([[100.0]] * 4 + [[0.0]], np.float32)
NEIGHBOUR = np.array([[100.0]] * 4 + [[-1e6]], np.float32)


Step = Callable[[Any], Any]


def lower_bound(step: Step) -> float:
    """Audit steps that are taken in one program, as many as the audit asks for."""
    steps = jax.jit(lambda batches: jax.lax.scan(lambda _, rows: (None, step(rows)), None, batches)[1])
    return audit.epsilon_lower_bound(
        lambda batches: np.asarray(steps(batches))[:, 0],
        BATCH,
        NEIGHBOUR,
        n=N,
        delta=DELTA,
        level=1 - 1e-9,
        vectorized=True,
    ).epsilon


def test_a_step_loses_no_more_than_it_claims() -> None:
    made = aggregate(1.0, 1.0)
    assert lower_bound(lambda rows: released(made, rows)) <= CLAIM


def for_a_quarter_of_the_norm() -> Step:
    made = aggregate(4.0, 0.25, key=hazmat.SeededRng(1))
    return lambda rows: released(made, rows)


def with_the_seed_of_another_run() -> Step:
    made, other = (aggregate(1.0, 1.0, key=hazmat.SeededRng(1)) for _ in range(2))
    return lambda rows: released(made, rows) - released(other, jnp.zeros_like(rows))


@pytest.mark.parametrize("mistake", [for_a_quarter_of_the_norm, with_the_seed_of_another_run])
def test_mistakes_are_found(mistake: Callable[[], Step]) -> None:
    """From the same noise every time: the power of the experiment is not a matter of luck."""
    assert lower_bound(mistake()) > CLAIM


def test_the_example_learns() -> None:
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples/dp_sgd_adult_optax.py"))
    features, is_high, _ = datasets.adult_incomes()
    found = {
        name: example["accuracy"](train(features, is_high, 60, *more), features, is_high)
        for name, train, more in (
            ("private", example["train_privately"], (1.0,)),
            ("open", example["train_without_privacy"], ()),
        )
    }
    assert found["open"] > found["private"] - 0.01
    assert found["private"] > 1 - is_high.mean() + 0.03
