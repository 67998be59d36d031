"""What JAX may do with a step of any module: each member of a vmap and each turn of a loop has noise of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.interpreters import batching, partial_eval

from dpnoise.sgd import BandedToeplitz
from dpnoise_jax import _step, jax_privacy, optax

STRATEGY = BandedToeplitz([1.0, 0.5], steps=4)
# So many numbers that two releases are never equal by chance.
SAME, ROWS = np.zeros(9), np.zeros((5, 9))

Release = Callable[[Any], Any]


def sums(made: Any, dtype: Any) -> Release:
    return lambda x: made.update(jnp.asarray(x, dtype), made.init(SAME))[0]


def gradients(made: Any) -> Release:
    return lambda x: made.update(jnp.broadcast_to(x, (4, 9)), made.init(SAME))[0]


def releases() -> dict[str, Release]:
    """Make new functions, since JAX remembers how it has traced and mapped one."""
    return {
        "differentially_private_aggregate": gradients(optax.differentially_private_aggregate(1.0, 2000.0)),
        "dpsgd": gradients(optax.dpsgd(0.1, 1.0, 2000.0, momentum=0.9)),
        "gaussian_privatizer": sums(jax_privacy.gaussian_privatizer(stddev=1e3), np.float32),
        "matrix_factorization_privatizer": sums(
            jax_privacy.matrix_factorization_privatizer(STRATEGY, stddev=1e3), np.float64
        ),
        "integer_privatizer": sums(jax_privacy.integer_privatizer(STRATEGY, stddev=1e6), np.int64),
    }


def turns(release: Release, loop: Any = jax.lax.scan) -> Any:
    """Make a function to differentiate: its loop has the same noise of a step in its result and in its derivative."""

    def total(weights: Any) -> Any:
        def turn(so_far: Any, row: Any) -> Any:
            noise = release(SAME)
            return so_far + (weights * noise).sum(), row + noise

        return loop(turn, 0.0, ROWS)

    return total


def of_turns(release: Release) -> Any:
    return jax.grad(turns(release), has_aux=True)(SAME)[1]


def counted(turn: Any, first: Any, rows: Any) -> Any:
    def body(i: Any, state: Any) -> Any:
        so_far, noisy = turn(state[0], jnp.asarray(rows)[i])
        return so_far, state[1].at[i].set(noisy)

    return jax.lax.fori_loop(0, len(rows), body, (first, jnp.asarray(rows)))


def looped(release: Release, row: Any) -> Any:
    return jax.lax.while_loop(lambda x: x[0] < 1, lambda x: (x[0] + 1, x[1] + release(SAME)), (0, row))[1]


# Each gives as many rows as there are members, which all have noise of the same arrays.
SHARED: dict[str, Callable[[Release], Any]] = {
    "vmap": lambda release: jax.vmap(lambda row: row + release(SAME))(ROWS),
    "vmap in jit": lambda release: jax.jit(jax.vmap(lambda row: row + release(SAME)))(ROWS),
    "jit in vmap": lambda release: jax.vmap(lambda row: row + jax.jit(release)(SAME))(ROWS),
    "compiled before": lambda release: [(step := jax.jit(release))(SAME), jax.vmap(lambda x: x + step(SAME))(ROWS)][1],
    "the outer of two": lambda release: jax.vmap(lambda row: row + jax.vmap(release)(ROWS)[0])(ROWS),
    "scan in vmap": lambda release: jax.vmap(
        lambda row: jax.lax.scan(lambda x, _: (x + release(SAME), None), row, length=1)[0]
    )(ROWS),
    "loop in vmap": lambda release: jax.vmap(lambda row: looped(release, row))(ROWS),
    "map in batches": lambda release: jax.lax.map(lambda row: row + release(SAME), ROWS, batch_size=5),
    "vectorize": lambda release: jnp.vectorize(lambda row: row + release(SAME), signature="(n)->(n)")(ROWS),
    "nothing mapped": lambda release: jax.vmap(lambda: release(SAME), axis_size=5)(),
    "gradients in vmap": lambda release: jax.vmap(jax.grad(lambda row: (row * release(SAME)).sum()))(ROWS),
}
LOOPS: dict[str, Callable[[Release], Any]] = {
    "scan": of_turns,
    "scan in jit": lambda release: jax.jit(lambda: of_turns(release))(),
    "jit in scan": lambda release: of_turns(jax.jit(release)),
    "cond in scan": lambda release: of_turns(lambda x: jax.lax.cond(x[0] == 0, release, lambda x: release(x), x)),
    "scan in scan": lambda release: of_turns(
        lambda x: jax.lax.scan(lambda _, row: (None, release(row)), None, x[np.newaxis])[1][0]
    ),
    "loop": lambda release: jax.grad(turns(release, counted), has_aux=True)(SAME)[1],
    "linearize": lambda release: jax.linearize(turns(release), SAME)[0][1],
}
OWN: dict[str, Callable[[Release], Any]] = {
    "vmap": lambda release: jax.vmap(release)(ROWS),
    "vmap in vmap": lambda release: jax.vmap(jax.vmap(release))(np.zeros((3, 5, 9))).reshape(15, 9),
    "map": lambda release: jax.lax.map(lambda row: row + release(SAME), ROWS),
    "map in batches": lambda release: jax.lax.map(release, ROWS, batch_size=3),
}


@pytest.fixture(autouse=True)
def x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def repeated(ways: dict[str, Callable[[Release], Any]], release: Release) -> set[str]:
    found = {name: np.asarray(call(release)) for name, call in ways.items()}
    return {name for name, rows in found.items() if len(np.unique(rows, axis=0)) < len(rows)}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", releases())
def test_members_that_would_share_noise_are_refused(name: str) -> None:
    for call in SHARED.values():
        with pytest.raises(NotImplementedError, match=r"^update must not be called under vmap .* share one noise: "):
            call(releases()[name])


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", releases())
def test_members_and_turns_have_noise_of_their_own(name: str) -> None:
    assert repeated(OWN | LOOPS, releases()[name]) == set()


@pytest.mark.usefixtures("way")
def test_shared_noise_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rules JAX takes a step once for all members and all turns."""
    release = releases()["gaussian_privatizer"]
    update = _step._update_p
    monkeypatch.setitem(batching.fancy_primitive_batchers, update, lambda _, x, dims: (update.bind(*x), dims))
    monkeypatch.delitem(partial_eval.custom_partial_eval_rules, update)
    assert repeated(SHARED, release) == set(SHARED)
    assert repeated(LOOPS, release) == set(LOOPS)


def test_a_derivative_has_the_noise_of_the_result() -> None:
    for release in releases().values():
        derivative, noisy = jax.grad(turns(release), has_aux=True)(SAME)
        np.testing.assert_allclose(derivative, np.sum(noisy, axis=0), rtol=1e-5, atol=1e-2)
