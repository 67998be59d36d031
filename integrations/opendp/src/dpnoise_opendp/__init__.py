"""Measurements of OpenDP with fast noise: the constructors of its ``dp.m`` of the same names, with its arguments.

`patched` and `install` make ``dp.m``, ``dp.Context`` and OpenDP's own extensions in Python use them.

Each makes OpenDP's own measurement first, so that its checks and errors are the host's, and returns a user-defined
measurement with the same domain, metric, measure and output type, that can be chained and composed. Its privacy map is
OpenDP's, widened where real values are rounded to a coarser grid than OpenDP's. OpenDP's metric and measure define the
neighbours and the cost of a release. With a scale of 0, for which no noise is drawn, the measurement is OpenDP's.

OpenDP requires two features. The caller must enable them, since they are promises: that the program may use
measurements that OpenDP has not verified, and that a user-defined privacy map is right::

    dp.enable_features("contrib", "honest-but-curious")
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np
import opendp.prelude  # noqa: F401 (all modules that import constructors by name, before a patch)
from numpy.typing import NDArray
from opendp import context as _context
from opendp import measurements as _host
from opendp.domains import vector_domain as _vector_domain
from opendp.measures import max_divergence as _max_divergence
from opendp.mod import Measurement as _OpenDPMeasurement
from opendp.mod import _PartialConstructor
from opendp.typing import _ELEMENTARY_TYPES

from dpnoise import Exponential, ParameterError, ReportNoisyMax, samplers
from dpnoise.extend import Patch
from dpnoise_opendp._arithmetic import add_integer, add_integers, add_real, add_reals, below_best, ends, finite

__all__ = [
    "install",
    "make_gaussian",
    "make_laplace",
    "make_noisy_max",
    "make_randomized_response_bitvec",
    "patched",
    "then_gaussian",
    "then_laplace",
    "then_noisy_max",
    "then_randomized_response_bitvec",
]

# Bound now, since a program may put the functions below under these names.
_HOST: Final = {name: make for name, make in vars(_host).items() if name.startswith("make_")}
_Measurement: Final[Any] = _OpenDPMeasurement

# The finest grid has this many steps in the noise's scale, or up to twice as many.
_FINENESS: Final = 40
# The most real values of a vector whose domain has no size.
_MOST_VALUES: Final = 2**20
# All types of numbers that the host's constructors take.
_TYPES: Final = {
    "f32": np.float32,
    "f64": np.float64,
    "i32": np.int32,
    "i64": np.int64,
    "u32": np.uint32,
    "u64": np.uint64,
    "usize": np.uintp,
}

Function = Callable[[Any], Any]


def make_laplace(
    input_domain: Any, input_metric: Any, scale: float, k: int | None = None, MO: Any = "MaxDivergence"
) -> Any:
    """Make a measurement that adds noise from the discrete Laplace distribution, to real values on a grid.

    Parameters
    ----------
    input_domain : opendp.mod.Domain
        The domain of a number, or of a vector of numbers, of the types i32, i64, u32, u64, usize, f32 or f64.
    input_metric : opendp.mod.Metric
        The distance between neighbours: absolute for a number, L1 for a vector.
    scale : float
        The scale of the noise, taken at its exact value: positive, and from 2**-40 to 2**40 for integers; or 0.
    k : int, optional
        Real values are rounded to multiples of ``2**k``. By default, and at the least, it is the finest grid that is
        allowed, ``ceil(log2(scale)) - 40``. For integers it is None or 0.
    MO : type or str, default "MaxDivergence"
        The measure of the privacy loss, the only one that the host takes.

    Returns
    -------
    opendp.mod.Measurement
        Its map is the host's for that ``k``. Where a vector's domain has no size, for which the host refuses a grid, it
        is the map for 2**20 values, and vectors may have at most 2**20.
    """
    make = _HOST["make_laplace"]
    return _additive("laplace", lambda domain, k: make(domain, input_metric, scale, k, MO), input_domain, scale, k)


def make_gaussian(
    input_domain: Any, input_metric: Any, scale: float, k: int | None = None, MO: Any = "ZeroConcentratedDivergence"
) -> Any:
    """Make a measurement that adds noise from the discrete Gaussian distribution, to real values on a grid.

    Parameters
    ----------
    input_domain : opendp.mod.Domain
        The domain of a number, or of a vector of numbers, of the types i32, i64, u32, u64, usize, f32 or f64.
    input_metric : opendp.mod.Metric
        The distance between neighbours: absolute for a number, L2 for a vector.
    scale : float
        The standard deviation of the noise, taken at its exact value: positive, and from 2**-20 to 2**40 for integers;
        or 0.
    k : int, optional
        Real values are rounded to multiples of ``2**k``. By default, and at the least, it is the finest grid that is
        allowed, ``ceil(log2(scale)) - 40``. For integers it is None or 0.
    MO : type or str, default "ZeroConcentratedDivergence"
        The measure of the privacy loss, the only one that the host takes.

    Returns
    -------
    opendp.mod.Measurement
        Its map is the host's for that ``k``. Where a vector's domain has no size, for which the host refuses a grid, it
        is the map for 2**20 values, and vectors may have at most 2**20.
    """
    make = _HOST["make_gaussian"]
    return _additive("gaussian", lambda domain, k: make(domain, input_metric, scale, k, MO), input_domain, scale, k)


def make_randomized_response_bitvec(input_domain: Any, input_metric: Any, f: float, constant_time: bool = False) -> Any:
    """Make a measurement that flips each bit of a bit vector with a probability of ``f / 2``, exactly.

    Parameters
    ----------
    input_domain : opendp.mod.Domain
        The domain of bit vectors, with the most ones that a vector has, ``max_weight``.
    input_metric : opendp.mod.Metric
        The discrete distance.
    f : float
        Twice the probability with which a bit is flipped: above 0, and at most 1.
    constant_time : bool, default False
        Whether the host draws its coins in constant time. Our coins are drawn in constant time in any case.

    Returns
    -------
    opendp.mod.Measurement
        Its map is the host's.
    """
    made = _HOST["make_randomized_response_bitvec"](input_domain, input_metric, f, constant_time)
    probability = float(f) / 2

    def flip(bits: bytes) -> bytes:
        given = np.frombuffer(bits, np.uint8)
        return (given ^ np.packbits(samplers.bernoulli(probability, size=8 * given.size))).tobytes()

    return _measurement(made, flip, made.map, "BitVector")


def make_noisy_max(
    input_domain: Any, input_metric: Any, output_measure: Any, scale: float, negate: bool = False
) -> Any:
    """Make a measurement that chooses the index of the highest score: by `ReportNoisyMax` or `Exponential`.

    Parameters
    ----------
    input_domain : opendp.mod.Domain
        The domain of a vector of scores of the types i32, i64, u32, u64, usize, f32 or f64.
    input_metric : opendp.mod.Metric
        The L-infinity distance.
    output_measure : opendp.mod.Measure
        The max divergence, for `ReportNoisyMax`, or the zero-concentrated divergence, for `Exponential`.
    scale : float
        The scale of the noise: not negative, and at most 2**40.
    negate : bool, default False
        Whether the index of the lowest score is chosen in place of the highest.

    Returns
    -------
    opendp.mod.Measurement
        Its map is the host's; for real scores, with a distance that is increased by a step of about
        ``2**-40 * scale`` where it is not zero.
    """
    made = _HOST["make_noisy_max"](input_domain, input_metric, output_measure, scale, negate)
    number = _number(input_domain)
    scale = float(scale)  # NumPy would divide by a narrower type in its precision
    if scale == 0:
        return made
    if scale > 2.0**40:
        raise ParameterError(f"scale must be at most 2**40, got {scale!r}")
    real = np.dtype(number).kind == "f"
    kind = Exponential if "ZeroConcentrated" in str(made.output_measure) else ReportNoisyMax
    # A sensitivity of 1 is a whole number of steps, and this epsilon does not reduce the scale.
    mechanism = kind(epsilon=math.nextafter(1 / scale, 0.0), sensitivity=1.0, monotonic=True)

    def choose(scores: Any) -> int:
        given = np.array(scores, number)
        if not real:
            return mechanism.release(below_best(given, negate))
        return mechanism.release(-finite(given) if negate else finite(given))

    return _measurement(made, choose, _widened(made.map, mechanism.granularity, number) if real else made.map, "i32")


def then_laplace(scale: float, k: int | None = None, MO: Any = "MaxDivergence") -> Any:
    """Add noise from the discrete Laplace distribution, by `make_laplace`, to the output of what is before ``>>``.

    Parameters
    ----------
    scale : float
        The scale of the noise, taken at its exact value: positive, and from 2**-40 to 2**40 for integers; or 0.
    k : int, optional
        Real values are rounded to multiples of ``2**k``. By default, and at the least, it is the finest grid that is
        allowed, ``ceil(log2(scale)) - 40``. For integers it is None or 0.
    MO : type or str, default "MaxDivergence"
        The measure of the privacy loss, the only one that the host takes.

    Returns
    -------
    opendp.mod._PartialConstructor
        Behind ``>>`` it takes the domain and the metric, and its arguments are checked.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> from dpnoise_opendp import then_laplace
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> count = space >> dp.t.then_count() >> then_laplace(scale=2.0)
    >>> count.map(1)
    0.5
    """
    return _then(make_laplace, scale, k, MO)


def then_gaussian(scale: float, k: int | None = None, MO: Any = "ZeroConcentratedDivergence") -> Any:
    """Add noise from the discrete Gaussian distribution, by `make_gaussian`, to the output of what is before ``>>``.

    Parameters
    ----------
    scale : float
        The standard deviation of the noise, taken at its exact value: positive, and from 2**-20 to 2**40 for integers;
        or 0.
    k : int, optional
        Real values are rounded to multiples of ``2**k``. By default, and at the least, it is the finest grid that is
        allowed, ``ceil(log2(scale)) - 40``. For integers it is None or 0.
    MO : type or str, default "ZeroConcentratedDivergence"
        The measure of the privacy loss, the only one that the host takes.

    Returns
    -------
    opendp.mod._PartialConstructor
        Behind ``>>`` it takes the domain and the metric, and its arguments are checked.
    """
    return _then(make_gaussian, scale, k, MO)


def then_randomized_response_bitvec(f: float, constant_time: bool = False) -> Any:
    """Flip each bit with a probability of ``f / 2``, by `make_randomized_response_bitvec`.

    Parameters
    ----------
    f : float
        Twice the probability with which a bit is flipped: above 0, and at most 1.
    constant_time : bool, default False
        Whether the host draws its coins in constant time. Our coins are drawn in constant time in any case.

    Returns
    -------
    opendp.mod._PartialConstructor
        Behind ``>>`` it takes the domain and the metric, and its arguments are checked.
    """
    return _then(make_randomized_response_bitvec, f, constant_time)


def then_noisy_max(output_measure: Any, scale: float, negate: bool = False) -> Any:
    """Choose the index of the highest score, by `make_noisy_max`.

    Parameters
    ----------
    output_measure : opendp.mod.Measure
        The max divergence, for `ReportNoisyMax`, or the zero-concentrated divergence, for `Exponential`.
    scale : float
        The scale of the noise: not negative, and at most 2**40.
    negate : bool, default False
        Whether the index of the lowest score is chosen in place of the highest.

    Returns
    -------
    opendp.mod._PartialConstructor
        Behind ``>>`` it takes the domain and the metric, and its arguments are checked.
    """
    return _then(make_noisy_max, output_measure, scale, negate)


def patched() -> AbstractContextManager[None]:
    """Let OpenDP make our measurements, within a ``with`` block.

    All that makes a measurement by a name of ``opendp.measurements`` gets ours: ``dp.m.make_...``, ``dp.m.then_...``,
    the queries of ``dp.Context``, and OpenDP's own Python modules. ``make_noise``, ``make_geometric``,
    ``make_randomized_response_bool`` and ``make_report_noisy_max_gumbel`` are ours then, too. A measurement keeps the
    noise of the place where it was made. That of a query is made where the scale is given, as by ``laplace(scale=2.0)``
    itself, and without a scale when it is released, so that both belong within the block. Constructors that were
    imported by name before are not replaced.

    What OpenDP's library in Rust makes itself is not replaced, above all queries of Polars data. The page of this
    integration lists what OpenDP draws.

    The patch holds for the whole process until the last block in any thread ends, also by an exception.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> from dpnoise_opendp import patched
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> context = dp.Context.compositor(
    ...     data=[1, 2, 3],
    ...     privacy_unit=dp.unit_of(contributions=1),
    ...     privacy_loss=dp.loss_of(epsilon=1.0),
    ...     split_evenly_over=1,
    ... )
    >>> with patched():
    ...     count = context.query().count().laplace().release()
    """
    return _PATCH.within()


def install() -> None:
    """Do what `patched` does, for as long as the process runs. Calling it again changes nothing."""
    _PATCH.enter()


def _additive(
    distribution: str, make: Callable[[Any, int | None], Any], input_domain: Any, scale: float, k: int | None
) -> Any:
    """Add noise of a distribution, where ``make`` makes the host's measurement for a domain and a ``k``."""
    made = make(input_domain, k)
    number = _number(input_domain)
    if scale == 0:
        return made
    if np.dtype(number).kind != "f":
        draw = getattr(samplers, f"discrete_{distribution}")
        _check_reach(draw, scale)
        return _called_directly(
            made,
            made.map,
            lambda x: add_integer(x, draw(scale), number),
            lambda x: add_integers(x, draw(scale, size=x.size), number),
        )
    finest = math.ceil(math.log2(scale)) - _FINENESS
    if k is not None and k < finest:
        raise ParameterError(f"k must be at least {finest} for a scale of {scale!r}, got {k}")
    granularity = 2.0 ** (finest if k is None else min(k, 1023))
    privacy_map, most = made.map, None
    if k is None:
        domain = input_domain
        if _is_vector(domain) and domain.size is None:
            domain, most = _vector_domain(domain.element_domain, size=_MOST_VALUES), _MOST_VALUES
        privacy_map = make(domain, finest).map
    draw = getattr(samplers, distribution)
    _check_reach(draw, scale, granularity=granularity)

    def add(x: NDArray[Any]) -> NDArray[Any]:
        if most is not None and x.size > most:
            raise ParameterError(f"vectors must have at most {most} values where their domain has no size")
        return add_reals(x, draw(scale, size=x.size, granularity=granularity), granularity, number)

    return _called_directly(
        made, privacy_map, lambda x: add_real(x, draw(scale, granularity=granularity), granularity, number), add
    )


def _check_reach(draw: Callable[..., Any], scale: float, **grid: float) -> None:
    """Refuse a scale or a grid that is out of reach, by the host's names of parameters."""
    try:
        draw(scale, size=0, **grid)
    except ParameterError as error:
        raise ParameterError(str(error).replace("sigma", "scale").replace("granularity", "2**k")) from None


def _number(domain: Any) -> Any:
    name = str(domain.carrier_type).removeprefix("Vec<").removesuffix(">")
    if name not in _TYPES:
        raise ParameterError(f"input_domain must be of numbers of a type in {', '.join(_TYPES)}, got {name}")
    return _TYPES[name]


def _is_vector(domain: Any) -> bool:
    return str(domain.carrier_type).startswith("Vec<")


class _DirectMeasurement(_Measurement):
    """A measurement that releases single numbers itself: a call by way of the host takes far longer."""

    _type_ = _Measurement._type_  # ctypes does not inherit it
    _is_number: Callable[[Any], bool]
    _function: Function

    def invoke(self, arg: Any) -> Any:
        """Add noise to a number, or to another member of the host's domain."""
        return self._function(arg) if self._is_number(arg) else super().invoke(arg)

    __call__ = invoke


# The host knows the type of what is composed by its class, not by that of which it is a subclass.
_ELEMENTARY_TYPES[_DirectMeasurement] = _ELEMENTARY_TYPES[_Measurement]


def _called_directly(
    made: Any, privacy_map: Function, of_one: Function, of_many: Callable[[NDArray[Any]], NDArray[Any]]
) -> Any:
    """Make a measurement of the host's domain: of one number, or of a list of numbers."""
    number = _number(made.input_domain)
    if _is_vector(made.input_domain):
        return _measurement(made, lambda x: of_many(np.array(x, number)), privacy_map)
    measurement = _measurement(made, of_one, privacy_map)
    measurement.__class__ = _DirectMeasurement
    measurement._function = of_one
    measurement._is_number = lambda arg: type(arg) is float
    if np.dtype(number).kind != "f":
        least, most = ends(number)
        measurement._is_number = lambda arg: type(arg) is int and least <= arg <= most
    return measurement


def _widened(privacy_map: Function, slack: float, number: Any) -> Function:
    """Increase a distance by ``slack``, rounded up to a number of its type; a distance of zero stays zero."""

    def widened(d_in: Any) -> Any:
        exact = privacy_map(d_in)  # where the host refuses a distance, so do we
        if d_in == 0:
            return exact
        return privacy_map(float(np.nextafter(number(d_in + slack), number(np.inf))))

    return widened


def _measurement(made: Any, function: Function, privacy_map: Function, output: str | None = None) -> Any:
    """Make a measurement that differs from the host's in its function, and in its map where that is wider."""
    output_type = output or str(made.input_domain.carrier_type)
    return _HOST["make_user_measurement"](
        made.input_domain, made.input_metric, made.output_measure, function, privacy_map, output_type
    )


def _then(make: Callable[..., Any], *arguments: Any) -> Any:
    """Delay a constructor until the domain and the metric are known."""
    partial = _PartialConstructor(lambda input_domain, input_metric: make(input_domain, input_metric, *arguments))
    del partial.__opendp_dict__  # from which the host would serialize nothing, without an error
    return partial


# --- the patch ---------------------------------------------------------------------------------------------------


def _make_noise(input_domain: Any, input_metric: Any, output_measure: Any, scale: float, k: int | None = None) -> Any:
    make = _HOST["make_noise"]
    return _additive(
        "gaussian" if "ZeroConcentrated" in str(output_measure) else "laplace",
        lambda domain, k: make(domain, input_metric, output_measure, scale, k),
        input_domain,
        scale,
        k,
    )


def _make_geometric(
    input_domain: Any, input_metric: Any, scale: float, bounds: Any = None, MO: Any = "MaxDivergence"
) -> Any:
    if bounds is not None:
        raise ParameterError(f"bounds must be None: our noise takes a constant time without them, got {bounds!r}")
    make = _HOST["make_geometric"]
    return _additive(
        "laplace", lambda domain, _: make(domain, input_metric, scale, None, MO), input_domain, scale, None
    )


def _make_randomized_response_bool(prob: float, constant_time: bool = False) -> Any:
    made = _HOST["make_randomized_response_bool"](prob, constant_time)
    return _measurement(made, lambda answer: answer == samplers.bernoulli(prob), made.map)


def _make_report_noisy_max_gumbel(input_domain: Any, input_metric: Any, scale: float, optimize: str = "max") -> Any:
    _HOST["make_report_noisy_max_gumbel"](input_domain, input_metric, scale, optimize)
    return make_noisy_max(input_domain, input_metric, _max_divergence(), scale, optimize == "min")


_OURS: Final = {
    "make_gaussian": make_gaussian,
    "make_geometric": _make_geometric,
    "make_laplace": make_laplace,
    "make_noise": _make_noise,
    "make_noisy_max": make_noisy_max,
    "make_randomized_response_bitvec": make_randomized_response_bitvec,
    "make_randomized_response_bool": _make_randomized_response_bool,
    "make_report_noisy_max_gumbel": _make_report_noisy_max_gumbel,
}


class _Entries:
    """The entries of a dict as attributes, which a `Patch` can replace."""

    def __init__(self, entries: dict[str, Any]) -> None:
        self.__dict__ = entries


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    """Replace ``make_...`` alone: the host's ``then_...`` call them by their names in its module."""
    by_original = {id(_HOST[name]): ours for name, ours in _OURS.items()}
    # Copies, since other threads may import modules or give warnings meanwhile, which are noted in the module.
    for module in [module for name, module in list(sys.modules.items()) if name.startswith("opendp.")]:
        for name, value in list(vars(module).items()):
            if id(value) in by_original:
                yield module, name, by_original[id(value)]
    # The only one of these that has no ``then_...``.
    constructors, name = _context.constructors, "randomized_response_bool"
    yield _Entries(constructors), name, (_make_randomized_response_bool, False)


_PATCH: Final = Patch(_replacements)
