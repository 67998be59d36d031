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
        A name for XLA.
    function : Function
        Called with an argument ``rng`` where a call has one.
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
        """Take the step, or put it into the program that is traced, with the arguments of `CustomCall`.

        ``jax.shard_map`` and ``jax.pmap`` are refused by a NotImplementedError.
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


def number(value: Any, name: str) -> float:
    """Return a number, or the only number of an array, rounded up to a float: noise never becomes less."""
    return real_up(value.item() if hasattr(value, "item") else value, name)
