"""Steps that programs of JAX take on the CPU, and a check of arguments, for the modules of both hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from numpy.typing import NDArray

from dpnoise.extend import real_up
from dpnoise.hazmat import Rng
from dpnoise_jax._xla import CustomCall, Function


class Step:
    """A function with randomness on NumPy arrays, which eager and compiled programs of JAX call.

    A program runs it once each time that the step is reached.

    Parameters
    ----------
    target : str
        The name of the step in XLA, which no other step has.
    function : Function
        What a step does. It takes an argument ``rng``, None except in tests, besides those of `Function`.
    """

    def __init__(self, target: str, function: Function) -> None:
        self._function = function
        self._custom_call = CustomCall(target, function)

    def __call__(
        self,
        shapes: Sequence[Any],
        arguments: Sequence[Any],
        *,
        aliases: Mapping[int, int] | None = None,
        rng: Rng = None,
        **attributes: Any,
    ) -> Any:
        """Take the step, or put it into the program that is traced.

        ``jax.shard_map`` and ``jax.pmap`` are refused by a NotImplementedError.

        Parameters
        ----------
        shapes : sequence of jax.ShapeDtypeStruct
            The shapes and dtypes of the results.
        arguments : sequence of jax.Array
            Arrays of float32, float64, int32, int64 or uint32.
        aliases : mapping of int to int, optional
            Results that are in the memory of an argument, by the index of the argument: they begin with its values. By
            default there are none.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the step reproducible. By default each step draws a fresh key from the operating
            system.
        **attributes : float, int or ndarray of int64
            Arguments of the function by name, parts of a compiled program, which may be stored: none may be secret.
        """
        if jax.sharding.get_abstract_mesh().manual_axes:
            raise NotImplementedError(
                "update must not be called under shard_map or pmap, where each device would draw noise of its own for "
                "the same sum: call it outside, on sharded gradients, for which noise is drawn once"
            )
        aliases = aliases or {}

        def take(*arguments: Any) -> list[NDArray[Any]]:
            arrays = [np.asarray(argument) for argument in arguments]
            results = [np.empty(shape.shape, shape.dtype) for shape in shapes]
            for argument, result in aliases.items():
                results[result][...] = arrays[argument]
            self._function(arrays, results, rng=rng, **attributes)
            return results

        # A new array is traced under jax.jit even if the arguments are constants, to which noise would be added only
        # once.
        if not any(isinstance(array, jax.core.Tracer) for array in (jnp.zeros(()), *arguments)):
            return take(*arguments)
        if rng is None and is_one_cpu():
            return self._custom_call(shapes, arguments, aliases, **attributes)
        return io_callback(take, shapes, *arguments)


def is_one_cpu() -> bool:
    """Say whether one CPU is the only device: each of several devices might make a custom call of its own."""
    return bool(jax.default_backend() == "cpu" and jax.device_count() == 1)


def array_of(leaf: Any, dtype: Any = None) -> Any:
    """Return numbers as an array of JAX; where JAX takes 32 bits, NumPy would warn of those that are too large."""
    with np.errstate(all="ignore"):
        return jnp.asarray(leaf, dtype)


def number(value: Any, name: str) -> float:
    """Return a number, or the only number of an array, rounded up to a float: noise never becomes less."""
    return real_up(value.item() if hasattr(value, "item") else value, name)
