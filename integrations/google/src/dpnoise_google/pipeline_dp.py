"""PipelineDP with exact, secure noise: unchanged pipelines, within `patched` or after `install`.

Its counts, sums, means, variances and vectors get their noise from `dpnoise_google.pydp`, whole arrays in one call,
and so does its partition selection. Its exponential mechanism is `dpnoise.Exponential`. The local backend bounds a
person's contributions by sampling them with secure bits.

The noise of its quantiles is made in PyDP's library and is not replaced. Neighbours and costs are PipelineDP's: its
budget accountant states the cost of a pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pipeline_dp import dp_computations, dp_engine, pipeline_backend, sampling_utils

from dpnoise import Exponential, SecureBitGenerator
from dpnoise.extend import Patch
from dpnoise_google import pydp
from dpnoise_google.pydp._mechanisms import GridNoise

__all__ = ["install", "patched"]

_add_noise_one_by_one: Final = dp_computations.AdditiveMechanism.add_noise
_add_noise_to_each: Final = dp_computations.add_noise_vector


@contextmanager
def patched() -> Iterator[None]:
    """Let PipelineDP use the mechanisms of dpnoise, within a ``with`` block.

    The pipelines of its local backend are lazy: pipelines that are made within the block have the noise of dpnoise even
    if they are read later, since the patch is applied again while each result is computed. The patch holds for the
    whole process, but not for other processes, until the last block in any thread ends, also by an exception.

    Examples
    --------
    >>> import pipeline_dp
    >>> from dpnoise_google.pipeline_dp import patched
    >>> from pipeline_dp.dp_computations import LaplaceMechanism
    >>> with patched():
    ...     released = LaplaceMechanism.create_from_epsilon(0.5, l1_sensitivity=1.0).add_noise(37.2)
    """
    with pydp.patched(), _PATCH.within():
        yield


def install() -> None:
    """Do what `patched` does, for as long as the process runs. Calling it again changes nothing."""
    pydp.install()
    _PATCH.enter()


def _replacements() -> list[tuple[Any, str, Any]]:
    return [
        *((dp_engine.DPEngine, name, pipeline) for name, pipeline in _PIPELINES.items()),
        (dp_computations.AdditiveMechanism, "add_noise", _add_noise),
        (dp_computations, "add_noise_vector", _add_noise_vector),
        (dp_computations.ExponentialMechanism, "apply", _apply),
        (sampling_utils, "choose_from_list_without_replacement", _choose),
        (pipeline_backend.LocalBackend, "sample_fixed_per_key", _sample_fixed_per_key),
    ]


_PATCH: Final = Patch(_replacements)


def _patched_when_read(method: Callable[..., Any]) -> Callable[..., Any]:
    """Compute the results of a pipeline under the patch, whenever they are read."""

    @wraps(method)
    def made(*arguments: Any, **more: Any) -> Any:
        results = method(*arguments, **more)
        if isinstance(results, pipeline_backend.ReiterableLazyIterable):
            return pipeline_backend.ReiterableLazyIterable(_each_patched(results))
        return results

    return made


def _each_patched(results: Any) -> Iterator[Any]:
    remaining, end = iter(results), object()
    while True:
        with patched(), np.errstate(all="ignore"):  # a warning about the host's arithmetic would tell of a value
            result = next(remaining, end)
        if result is end:
            return
        yield result


_PIPELINES: Final = {
    name: _patched_when_read(getattr(dp_engine.DPEngine, name))
    for name in ("aggregate", "select_partitions", "add_dp_noise", "calculate_private_contribution_bounds")
}


def _add_noise(mechanism: Any, value: Any) -> Any:
    """Add noise as the host does, but to whole arrays at once."""
    # A mechanism that was made outside of the patch is the host's.
    if isinstance(value, np.ndarray) and isinstance(mechanism._mechanism, GridNoise):
        with np.errstate(all="ignore"):  # as above
            return mechanism._mechanism.add_noise(1.0 * value)
    return _add_noise_one_by_one(mechanism, value)


class _AtOnce:
    """A vector whose only element is the whole array when the host iterates over it."""

    def __init__(self, vector: NDArray[Any]) -> None:
        self.size = vector.size
        self._vector = vector

    def __iter__(self) -> Any:
        yield self._vector


def _add_noise_vector(vec: NDArray[Any], noise_params: Any) -> NDArray[np.float64]:
    """Add noise to the whole vector at once; the host computes and checks the sensitivity."""
    with np.errstate(all="ignore"):  # as above
        released: NDArray[np.float64] = _add_noise_to_each(_AtOnce(vec), noise_params)[0]
    return released


def _apply(mechanism: Any, eps: float, inputs_to_score_col: list[Any]) -> Any:
    """Choose as the host does: the result is an element of an array of the inputs."""
    scoring = mechanism._scoring_function
    scores = [float(scoring.score(value)) for value in inputs_to_score_col]
    chosen = Exponential(
        epsilon=eps, sensitivity=float(scoring.global_sensitivity), monotonic=bool(scoring.is_monotonic)
    ).release(scores)
    return np.asarray(inputs_to_score_col)[chosen]


def _choose(a: list[Any], size: int) -> list[Any]:
    if len(a) <= size:
        return a
    return [a[i] for i in np.random.Generator(SecureBitGenerator()).choice(len(a), size, replace=False)]


def _sample_fixed_per_key(backend: Any, col: Any, n: int, stage_name: str | None = None) -> Any:
    return backend.map_values(backend.group_by_key(col), lambda values: _choose(values, n), stage_name)
