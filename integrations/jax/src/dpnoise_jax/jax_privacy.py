"""Noise of JAX Privacy that is exact and secure: the privatizers of ``jax_privacy.noise_addition`` of the same names.

Each makes a gradient transformation with the input and the output of the host's: sums of clipped gradients, and these
sums with noise. A sum is rounded to a grid, and the noise is in whole steps of a finer one, drawn on the CPU with keys
of the operating system. Noise that is correlated between steps has a `dpnoise.sgd.BandedToeplitz` for its matrix.

The state holds the noise of the last steps, and nothing of the data. **It is secret**: whoever has it can subtract that
noise from what was released, and whoever can change it chooses what later steps take back.

The input is a sum in floating point, whose sensitivity only the caller can know. `dpnoise_jax.optax` and
`dpnoise.sgd.CorrelatedGradient` clip and add up themselves, and their sums are exact.
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax_privacy import noise_addition
from jax_privacy.matrix_factorization import streaming_matrix
from numpy.typing import ArrayLike, DTypeLike, NDArray

from dpnoise import ParameterError
from dpnoise.extend import generator_for_tests, integer
from dpnoise.hazmat import Rng
from dpnoise.sgd import BandedToeplitz, FloatSums, IntegerSums
from dpnoise_jax._step import Step, array_of, number

__all__ = [
    "clip_and_round_to_grid",
    "enforce_norm_bound",
    "gaussian_privatizer",
    "integer_privatizer",
    "matrix_factorization_privatizer",
]

# Bound now, since a program may put the functions below under these names.
_host_privatizer: Final = noise_addition.matrix_factorization_privatizer
_DEFAULT: Final = noise_addition.SupportedStrategies.DEFAULT

_ONE: Final = 2**12  # coefficients are multiples of its inverse
_HEAD: Final = 8  # bytes of the fingerprint
_UNLIMITED: Final = 2**31 - 1  # steps of independent noise, which 32 bits count
_GRID_SCALES: Final = range(1, 2**31)
_MOST_NUMBERS: Final = 2**31
_LOW: Final = 2**32 - 1


def gaussian_privatizer(
    *, stddev: float, prng_key: Any = None, dtype: DTypeLike | None = None, intermediate_strategy: Any = _DEFAULT
) -> Any:
    """Make a transformation that adds independent Gaussian noise to sums of clipped gradients.

    Parameters
    ----------
    stddev : float
        The standard deviation of the noise, from 2**-80 to 2**80: the noise multiplier, times the sensitivity of a sum.
    prng_key : generator of `dpnoise.hazmat`, optional
        For tests only: makes the noise reproducible. By default each step draws a fresh key from the operating system.
        A key or a seed of JAX raises a ValueError: anybody who knows it can subtract the noise, and a program that
        passes the same key twice expects the same noise twice.
    dtype : dtype, optional
        A real floating-point type, in which the host draws its noise. It is checked, and has no effect: our noise is in
        whole numbers for every dtype.
    intermediate_strategy : SupportedStrategies, default SupportedStrategies.DEFAULT
        How the host shares the noise among devices. Another value than the default raises a NotImplementedError: the
        noise is drawn once, on the CPU.

    Returns
    -------
    optax.GradientTransformation
        Its ``init`` takes a tree of arrays, or of their shapes, and gives the state before the first step. Its
        ``update`` takes a tree of arrays of real floating-point numbers and a state, and gives a tree of the same
        shapes and dtypes, and the state for the next step. NaN and infinities count as zero. The state is a tuple of
        arrays: the number of the step as int32, and a fingerprint of all parameters as uint32. There are at most 2**31
        - 1 steps.

    Raises
    ------
    ValueError
        When there is a key; and where the host raises it.
    ParameterError
        When ``stddev`` is out of range; by ``update``, when the state belongs to other parameters or to a tree of other
        sizes, or comes after the last step.
    NotImplementedError
        For another intermediate strategy; by ``update``, under ``jax.shard_map`` and ``jax.pmap``, where each device
        would draw noise of its own, and under ``jax.vmap`` for sums and a state that all members share, as they would
        the noise.

    Notes
    -----
    A step is s**2 / (2 stddev**2)-zCDP, where s is the L2 sensitivity of the sum on the grid: the sensitivity of the
    sum as it is in memory, and less than ``2**-27 * stddev * sqrt(d)`` more for d numbers.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from dpnoise_jax.jax_privacy import gaussian_privatizer
    >>> privatizer = gaussian_privatizer(stddev=1.1)
    >>> sums = {"weights": jnp.ones(3), "bias": jnp.zeros(())}
    >>> state = privatizer.init(sums)
    >>> noisy, state = privatizer.update(sums, state)
    >>> noisy["weights"].shape
    (3,)
    """
    return matrix_factorization_privatizer(
        streaming_matrix.identity(),
        stddev=stddev,
        prng_key=prng_key,
        dtype=dtype,
        intermediate_strategy=intermediate_strategy,
    )


def matrix_factorization_privatizer(
    noising_matrix: Any,
    *,
    stddev: float,
    prng_key: Any = None,
    dtype: DTypeLike | None = None,
    intermediate_strategy: Any = _DEFAULT,
) -> Any:
    """Make a transformation that adds noise to sums of clipped gradients, which is correlated between steps.

    Parameters
    ----------
    noising_matrix : dpnoise.sgd.BandedToeplitz, or ``streaming_matrix.identity()`` of the host
        **The strategy C, not its inverse**, which the host takes here: the noise of the steps is the product of the
        inverse of C and independent noise. The host's ``toeplitz.inverse_as_streaming_matrix(coefficients)`` becomes
        ``BandedToeplitz(coefficients, steps=...)``. The identity is independent noise. Other matrices raise a
        NotImplementedError.
    stddev : float
        The standard deviation of the independent noise, from 2**-80 to 2**80: the noise multiplier, times
        ``noising_matrix.sensitivity(participation)``, times the sensitivity of a sum.
    prng_key : generator of `dpnoise.hazmat`, optional
        For tests only: makes the noise reproducible. By default each step draws a fresh key from the operating system.
        A key or a seed of JAX raises a ValueError: anybody who knows it can subtract the noise, and a program that
        passes the same key twice expects the same noise twice.
    dtype : dtype, optional
        A real floating-point type, in which the host draws its noise. It is checked, and has no effect: our noise is in
        whole numbers for every dtype.
    intermediate_strategy : SupportedStrategies, default SupportedStrategies.DEFAULT
        How the host shares the noise among devices. Another value than the default raises a NotImplementedError: the
        noise is drawn once, on the CPU.

    Returns
    -------
    optax.GradientTransformation
        Its ``init`` takes a tree of arrays, or of their shapes, and gives the state before the first step. Its
        ``update`` takes a tree of arrays of real floating-point numbers and a state, and gives a tree of the same
        shapes and dtypes, and the state for the next step. NaN and infinities count as zero. The state is a tuple of
        arrays: the number of the step as int32, and as uint32 a fingerprint of all parameters and the noise of the last
        steps, 8 bytes for each band and number, where the numbers of each array are rounded up to multiples of 512.
        With one band it has no noise.

    Raises
    ------
    ValueError
        When there is a key; and where the host raises it.
    ParameterError
        By ``update``, when the state belongs to other parameters or to a tree of other sizes, or comes after the last
        step.
    NotImplementedError
        For another matrix or another intermediate strategy; by ``update``, under ``jax.shard_map`` and ``jax.pmap``,
        where each device would draw noise of its own, and under ``jax.vmap`` for sums and a state that all members
        share, as they would the noise.

    Notes
    -----
    All steps together are S**2 / (2 stddev**2)-zCDP. S is ``noising_matrix.sensitivity(participation)`` times the
    largest L2 norm by which an example changes a sum on the grid: the sensitivity of the sum as it is in memory, and
    less than sqrt(d) steps of the grid more for d numbers. A step is a power of two, from 2**-28 to 2**-23 of stddev.

    Every call of ``update`` draws fresh noise, even for the same state. If a run continues from an old state after
    later steps were released, its steps are further releases of the same data.

    References
    ----------
    Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu (2023), "(Amplified) banded matrix factorization: a
    unified approach to private training".

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from dpnoise_jax.jax_privacy import matrix_factorization_privatizer
    >>> from dpnoise.sgd import BandedToeplitz, SingleEpoch
    >>> strategy = BandedToeplitz([1.0, 0.5, 0.375], steps=100)
    >>> stddev = 1.1 * strategy.sensitivity(SingleEpoch())  # for gradients of a norm of at most 1
    >>> privatizer = matrix_factorization_privatizer(strategy, stddev=stddev)
    >>> state = privatizer.init(jnp.zeros(3))
    >>> for _ in range(2):
    ...     noisy, state = privatizer.update(jnp.ones(3), state)
    >>> noisy.dtype
    dtype('float32')
    """
    rng = generator_for_tests(prng_key=prng_key)
    if dtype is not None and not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(f"dtype must be a real floating-point type, got {jnp.dtype(dtype)}")
    if intermediate_strategy is not _DEFAULT:
        raise NotImplementedError(
            "intermediate_strategy must be SupportedStrategies.DEFAULT: noise is drawn once, on the CPU, got "
            f"{intermediate_strategy}"
        )
    if not isinstance(noising_matrix, BandedToeplitz):
        _host_privatizer(noising_matrix, stddev=1.0, prng_key=0)  # the host's own checks
    return _transformation(_parameters(noising_matrix, "noising_matrix", stddev, of_integers=False), rng)


def integer_privatizer(strategy: Any, *, stddev: float, rng: Rng = None) -> Any:
    """Make a transformation that adds noise to sums of integers: nothing is rounded before the noise.

    Parameters
    ----------
    strategy : dpnoise.sgd.BandedToeplitz, or ``streaming_matrix.identity()`` of the host
        The strategy C: the noise of the steps is the product of the inverse of C and independent noise. The identity is
        independent noise, for at most 2**31 - 1 steps. Other matrices raise a NotImplementedError.
    stddev : float
        The standard deviation of the independent noise: the noise multiplier, times
        ``strategy.sensitivity(participation)``, times the ``grid_scale`` of the rows. From 1 to 2**44, or 2**32 with a
        strategy of several bands, and less if the noise of late steps is made of the noise of many steps before.
    rng : generator of `dpnoise.hazmat`, optional
        For tests only: makes the noise reproducible. Who knows its seed can subtract the noise. By default each step
        draws a fresh key from the operating system. A key or a seed of JAX raises a ValueError.

    Returns
    -------
    optax.GradientTransformation
        Its ``init`` takes a tree of arrays, or of their shapes, and gives the state before the first step. Its
        ``update`` takes a tree of arrays of int64 and a state, and gives a tree of int64 of the same shapes, and the
        state for the next step. JAX has int64 when ``jax_enable_x64`` is on. Sums are modulo 2**64. With several bands,
        sums with noise are rounded to whole numbers, half up, and are modulo 2**52, from -2**51 to 2**51 - 1. The state
        is a tuple of arrays, an int32 and many uint32, with the noise of the last steps: it is secret.

    Raises
    ------
    ValueError
        When there is a key.
    TypeError
        By ``update``, for sums that are not int64.
    ParameterError
        When ``stddev`` is out of range; by ``update``, when ``jax_enable_x64`` is off, or when the state belongs to
        other parameters or to a tree of other sizes, or comes after the last step.
    NotImplementedError
        For another matrix; by ``update``, under ``jax.shard_map`` and ``jax.pmap``, where each device would draw noise
        of its own, and under ``jax.vmap`` for sums and a state that all members share, as they would the noise.

    Notes
    -----
    All steps together are S**2 / (2 stddev**2)-zCDP. S is ``strategy.sensitivity(participation)`` times the largest L2
    norm by which an example changes a sum. It is ``grid_scale`` where each row is made by `clip_and_round_to_grid` or
    `enforce_norm_bound`, in any order and on any devices. Neighbours have an example or padding, whose row is zeros, in
    its place.

    References
    ----------
    Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu (2023), "(Amplified) banded matrix factorization: a
    unified approach to private training".

    Examples
    --------
    >>> import jax
    >>> from dpnoise_jax.jax_privacy import clip_and_round_to_grid, integer_privatizer
    >>> from dpnoise.sgd import BandedToeplitz, MinSeparation
    >>> strategy = BandedToeplitz([1.0, 0.5], steps=50)
    >>> stddev = 1.1 * strategy.sensitivity(MinSeparation(10)) * 2**22
    >>> privatizer = integer_privatizer(strategy, stddev=stddev)
    >>> with jax.enable_x64(True):
    ...     gradients = jax.numpy.ones((64, 3))  # of 64 examples
    ...     rows = jax.vmap(lambda row: clip_and_round_to_grid(row, 1.0, 2**22)[0])(gradients)
    ...     noisy, state = privatizer.update(rows.sum(axis=0), privatizer.init(rows[0]))
    >>> noisy.dtype
    dtype('int64')
    """
    return _transformation(_parameters(strategy, "strategy", stddev, of_integers=True), generator_for_tests(rng=rng))


def clip_and_round_to_grid(gradient: Any, l2_clip_norm: ArrayLike, grid_scale: int) -> tuple[Any, Any]:
    """Clip the gradient of one example to a norm of ``grid_scale`` steps of a grid, and round it to whole steps.

    Parameters
    ----------
    gradient : tree of real floating-point arrays, of d numbers in all
        The gradient of one example, under ``jax.vmap`` one of many. With a NaN or an infinity, or a sum of squares
        beyond the largest double, it counts as zeros.
    l2_clip_norm : float
        The largest L2 norm, over the whole tree, from 2**-80 to 2**80. A step of the grid is
        ``l2_clip_norm / grid_scale``.
    grid_scale : int
        The largest L2 norm of the result, in steps of the grid: above sqrt(d) / 2, and below 2**31.

    Returns
    -------
    rounded : tree of int64
        Of an L2 norm of at most ``grid_scale``, exactly.
    l2_norm : jax.Array of float32, shape ()
        The norm of the gradient before it was clipped. It is private.

    Raises
    ------
    ParameterError, TypeError
        When ``jax_enable_x64`` is off, a parameter is out of range, or numbers are not real floating-point numbers.

    Notes
    -----
    Rounding can make the norm larger by sqrt(d) / 2 steps, so the gradient is clipped to a norm that is smaller by as
    much, and by one part in 2**20 for what floating-point arithmetic adds. `enforce_norm_bound` then holds whatever was
    computed before. It makes no row zeros that this function has clipped, for up to 2**31 numbers.

    Examples
    --------
    >>> import jax
    >>> from dpnoise_jax.jax_privacy import clip_and_round_to_grid, enforce_norm_bound
    >>> with jax.enable_x64(True):
    ...     rounded, l2_norm = clip_and_round_to_grid(jax.numpy.array([3.0, 4.0]), l2_clip_norm=1.0, grid_scale=1000)
    ...     zeros = enforce_norm_bound(rounded, grid_scale=999)
    >>> rounded.tolist(), l2_norm.item(), zeros.tolist()
    ([600, 799], 5.0, [0, 0])
    """
    _check_x64()
    scale, clip_norm = integer(grid_scale, "grid_scale", _GRID_SCALES), number(l2_clip_norm, "l2_clip_norm")
    if not 2.0**-80 <= clip_norm <= 2.0**80:
        raise ParameterError(f"l2_clip_norm must be from 2**-80 to 2**80, got {clip_norm!r}")
    doubles = jax.tree.map(lambda leaf: _floats(leaf, "gradient").astype(np.float64), gradient)
    by_rounding = math.sqrt(_size(doubles)) / 2
    if scale <= by_rounding:
        raise ParameterError(
            f"grid_scale must be above {by_rounding!r}, the norm that rounding can add to {_size(doubles)} numbers, "
            f"got {scale}"
        )
    norm = jnp.sqrt(sum((jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(doubles)), jnp.zeros(())))
    factor = jnp.minimum(scale / clip_norm, (scale - by_rounding) * (1 - 2.0**-20) / norm)
    steps = jax.tree.map(
        lambda leaf: jnp.rint(jnp.where(jnp.isfinite(norm), leaf * factor, 0.0)).astype(np.int64), doubles
    )
    return enforce_norm_bound(steps, scale), norm.astype(np.float32)


def enforce_norm_bound(rounded: Any, grid_scale: int) -> Any:
    """Return the row of one example, or zeros in its place if its L2 norm is above ``grid_scale``: exactly.

    Parameters
    ----------
    rounded : tree of int64, of at most 2**31 numbers in all
        The row of one example, in steps of a grid; under ``jax.vmap`` one of many.
    grid_scale : int
        The largest L2 norm of the row, in steps of the grid; from 1 to 2**31 - 1.

    Returns
    -------
    tree of int64
        The row, or zeros of its shapes.

    Raises
    ------
    ParameterError, TypeError
        When ``jax_enable_x64`` is off, a parameter is out of range, or numbers are not int64.

    Notes
    -----
    Squares are added up in two parts of 32 bits each: in integers, whatever the order.
    """
    _check_x64()
    scale = integer(grid_scale, "grid_scale", _GRID_SCALES)
    row = jax.tree.map(lambda leaf: _integers(leaf, "rounded"), rounded)
    if _size(row) > _MOST_NUMBERS:
        raise ParameterError(f"rounded must be of at most 2**31 numbers, got {_size(row)}")
    low = high = jnp.zeros((), np.int64)
    for leaf in jax.tree.leaves(row):
        # One number that is too large makes the sum too large; its own square might not fit.
        squares = jnp.where((leaf < -scale) | (leaf > scale), scale**2 + 1, jnp.square(leaf))  # at most 2**62
        low += jnp.sum(squares & _LOW)
        high += jnp.sum(squares >> 32)
    high += low >> 32
    most_high, most_low = divmod(scale**2, 2**32)
    is_above = (high > most_high) | ((high == most_high) & ((low & _LOW) > most_low))
    return jax.tree.map(lambda leaf: jnp.where(is_above, 0, leaf), row)


def _transformation(parameters: _Parameters, rng: Rng) -> Any:
    """Make the transformation that adds such noise."""

    def init(model: Any) -> tuple[Any, Any]:
        fingerprint, length = _kept_of(model, parameters)
        return jnp.zeros((), np.int32), jnp.zeros(length, np.uint32).at[: len(fingerprint)].set(fingerprint)

    def update(sum_of_clipped_grads: Any, noise_state: Any, params: Any = None) -> tuple[Any, Any]:
        del params
        if parameters.of_integers:
            _check_x64()
        fingerprint, length = _kept_of(sum_of_clipped_grads, parameters)
        step, history = _checked(noise_state, length)
        leaves, structure = jax.tree.flatten(sum_of_clipped_grads)
        converted = _integers if parameters.of_integers else _floats
        arguments = [*(converted(leaf, "sum_of_clipped_grads") for leaf in leaves), history, step]
        results = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in arguments[:-1]]
        in_place = dict(enumerate(range(len(results))))
        attributes = {**parameters._asdict(), "fingerprint": fingerprint.astype(np.int64)}
        *noisy, history = _add_noise(results, arguments, aliases=in_place, rng=rng, **attributes)
        released = [jnp.asarray(one, jnp.result_type(leaf)) for one, leaf in zip(noisy, leaves, strict=True)]
        return structure.unflatten(released), (step + 1, jnp.asarray(history))

    return optax.GradientTransformation(init, update)


class _Parameters(NamedTuple):
    """The coefficients in steps of 2**-12, the number of steps, the standard deviation, and 1 for sums of integers."""

    numerators: NDArray[np.int64]
    steps: int
    stddev: float
    of_integers: int

    def noise(self) -> FloatSums | IntegerSums:
        return _kept_noise(tuple(self.numerators.tolist()), *self[1:])


def _parameters(matrix: Any, name: str, stddev: float, *, of_integers: bool) -> _Parameters:
    """Return the parameters of the noise of a matrix, unless the grid leaves it no room."""
    if isinstance(matrix, BandedToeplitz):
        numerators, steps = (matrix.coefficients * _ONE).astype(np.int64), matrix.steps
    else:
        _check_identity(matrix, name)
        numerators, steps = np.array([_ONE]), _UNLIMITED
    found = _Parameters(numerators, steps, number(stddev, "stddev"), int(of_integers))
    try:
        found.noise()
    except ParameterError as error:
        raise ParameterError(str(error).replace("strategy must be one", f"{name} must be a strategy")) from None
    return found


@lru_cache(maxsize=256)
def _kept_noise(numerators: tuple[int, ...], steps: int, stddev: float, of_integers: int) -> FloatSums | IntegerSums:
    """Make the noise, whose tables take longer to compute than the noise of a small model; steps repeat."""
    independent = steps == _UNLIMITED
    strategy = None if independent else BandedToeplitz(np.divide(numerators, _ONE), steps=steps)
    return (IntegerSums if of_integers else FloatSums)(strategy, stddev=stddev)


def _kept_of(shapes: Any, parameters: _Parameters) -> tuple[NDArray[np.uint32], int]:
    """Return the fingerprint at the beginning of the history for a tree of these shapes, and the history's length."""
    sizes = [math.prod(np.shape(leaf)) for leaf in jax.tree.leaves(shapes)]
    noise = parameters.noise()
    about = parameters.numerators.tolist(), parameters[1:], noise.granularity, sizes
    digest = hashlib.sha256(repr(about).encode()).digest()
    return np.frombuffer(digest[:_HEAD], np.uint32), (_HEAD + 8 * sum(map(noise.history_length, sizes))) // 4


def _checked(noise_state: Any, length: int) -> tuple[Any, Any]:
    """Return the step and the history of a state, unless it cannot be one for this tree."""
    parts = tuple(noise_state) if isinstance(noise_state, tuple | list) else (noise_state,)
    expected = [((), np.dtype(np.int32)), ((length,), np.dtype(np.uint32))]
    given = [(np.shape(part), getattr(part, "dtype", type(part).__name__)) for part in parts]
    if given != expected:
        raise ParameterError(
            "noise_state must be one for such sum_of_clipped_grads, as init or update gave it: an int32, and "
            f"{length} uint32, got {' and '.join(f'{dtype} of shape {shape}' for shape, dtype in given)}"
        )
    return jnp.asarray(parts[0]), jnp.asarray(parts[1])


def _check_identity(matrix: Any, name: str) -> None:
    identity = streaming_matrix.identity()
    # The matrices of the host are functions. The functions of all identities have the same code, without variables.
    function = getattr(matrix, "multiply_next", None)
    if getattr(function, "__code__", None) is not identity.multiply_next.__code__:
        raise NotImplementedError(
            f"{name} must be a dpnoise.sgd.BandedToeplitz, the strategy C and not its inverse, or "
            f"streaming_matrix.identity(), got another {type(matrix).__name__}"
        )


def _check_x64() -> None:
    if not jax.config.jax_enable_x64:
        raise ParameterError(
            "jax_enable_x64 must be on, since JAX has no int64 without it, got False: call "
            "jax.config.update('jax_enable_x64', True) first"
        )


def _size(tree: Any) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def _floats(leaf: Any, name: str) -> Any:
    """Return numbers as float32, which holds all smaller types, or float64."""
    array = array_of(leaf)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise TypeError(f"{name} must be real floating-point numbers, got dtype {array.dtype}")
    return array if array.dtype == np.float64 else array.astype(np.float32)


def _integers(leaf: Any, name: str) -> Any:
    array = jnp.asarray(leaf)
    if array.dtype != np.int64:
        raise TypeError(f"{name} must be integers of dtype int64, got dtype {array.dtype}")
    return array


def _write_noisy(
    arguments: list[NDArray[Any]],
    results: list[NDArray[Any]],
    *,
    numerators: NDArray[np.int64],
    steps: int,
    stddev: float,
    of_integers: int,
    fingerprint: NDArray[np.int64],
    rng: Rng = None,
) -> None:
    step = arguments[-1]
    *sums, history = results  # they begin with the values of the arguments
    head, history = np.split(history, [len(fingerprint)])
    if (head != fingerprint).any():
        raise ParameterError("noise_state must be that of a privatizer with these parameters, got one of others")
    if not 0 <= step < steps:
        raise ParameterError(f"noise_state must be one before the last of {steps} steps, got one after {step}")
    noise = _Parameters(numerators, steps, stddev, of_integers).noise()
    rest = history.view(np.int64)  # a history for each array
    for part in sums:
        own, rest = np.split(rest, [noise.history_length(part.size)])
        noise.add_noise(part.reshape(-1), own, int(step), rng=rng)


_add_noise: Final = Step("dpnoise_jax_privacy_add_noise", _write_noisy)
