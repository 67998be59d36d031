"""Steps that programs of JAX take on the CPU, and a check of arguments, for the modules of both hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir, partial_eval
from numpy.typing import NDArray

from dpnoise.extend import real_up
from dpnoise.hazmat import Rng
from dpnoise_jax._xla import CustomCall, Function

# The identity, through which the arguments of each step go. JAX applies its rules below also where no argument depends
# on the member of a vmap or on the turn of a loop: there it would take a step itself once for all of them.
_update_p: Final = Primitive("dpnoise_update")
_update_p.multiple_results = True
_update_p.def_impl(lambda *arguments: arguments)
_update_p.def_abstract_eval(lambda *arguments: arguments)
mlir.register_lowering(_update_p, lambda _, *arguments: arguments)


def _refuse_shared(_: Any, arguments: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """Refuse a step that JAX would take once for all members of a vmap."""
    if all(dim is None for dim in dims):
        raise NotImplementedError(
            "update must not be called under vmap on arrays that are the same for all members, which would share one "
            "noise: call it outside of vmap for one release, or map an array of its arguments, for example by "
            "jnp.broadcast_to, for a release with noise of its own for each member"
        )
    return _update_p.bind(*arguments), dims


def _keep_in_loop(trace: Any, *arguments: Any) -> Any:
    """Keep a step in a loop that is differentiated: JAX would take it once, before the loop."""
    return trace.default_process_primitive(_update_p, map(trace.instantiate_const, arguments), {})


batching.fancy_primitive_batchers[_update_p] = _refuse_shared
partial_eval.custom_partial_eval_rules[_update_p] = _keep_in_loop


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

        ``jax.shard_map``, ``jax.pmap``, ``jax.grad`` of it and ``jax.vmap`` that maps no argument are refused by a
        NotImplementedError.

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
        aliases, arguments = aliases or {}, _update_p.bind(*arguments)

        def take(*arguments: Any) -> list[NDArray[Any]]:
            arrays = [np.asarray(argument) for argument in arguments]
            results = [np.empty(shape.shape, shape.dtype) for shape in shapes]
            for argument, result in aliases.items():
                results[result][...] = arrays[argument]
            self._function(arrays, results, rng=rng, **attributes)
            return results

        if not any(isinstance(argument, jax.core.Tracer) for argument in arguments):
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
