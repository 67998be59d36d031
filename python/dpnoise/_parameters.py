"""Conversion and checks of parameters, by the same rules everywhere."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from functools import lru_cache
from numbers import Rational, Real
from typing import TYPE_CHECKING, Any

from dpnoise._errors import ParameterError
from dpnoise._native import Sampler, ScriptedRng, SeededRng

if TYPE_CHECKING:
    from typing_extensions import Self

Rng = SeededRng | ScriptedRng | None


class ByName:
    """A class whose parameters are keyword-only; the error for positional arguments lists them."""

    __slots__ = ()

    def __new__(cls, *given: Any, **_: Any) -> Self:
        """Make an object, whose parameters are checked by its initialiser."""
        if given:
            from inspect import Parameter, signature  # which takes long to import, and is needed for an error alone

            own = list(signature(cls.__init__).parameters.values())[1:]
            if len(given) > sum(one.kind is Parameter.POSITIONAL_OR_KEYWORD for one in own):
                names = ", ".join(f"{one.name}=" for one in own if one.kind is Parameter.KEYWORD_ONLY)
                raise TypeError(f"{cls.__name__} takes its parameters by name, use {names}")
        return super().__new__(cls)


def real(value: Any, name: str) -> float:
    """Return the nearest float; the caller checks its range."""
    if type(value) is float:  # the check of the abstract class takes long
        return value
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise ParameterError(f"{name} must be in the range of a float, got an integer beyond the largest") from None


def fraction_of(value: Any) -> Fraction:
    """Return a finite number that `real` takes as the fraction that it is."""
    return Fraction(value) if isinstance(value, Rational | float) else Fraction(float(value))


def real_down(value: Any, name: str) -> float:
    """Return the largest float that is no larger: promises are rounded down."""
    nearest = real(value, name)
    return math.nextafter(nearest, -math.inf) if value < nearest else nearest


def real_up(value: Any, name: str) -> float:
    """Return the smallest float that is no smaller: bounds are rounded up."""
    real(value, name)  # refuses everything but real numbers
    return at_least(value)


def at_least(exact: Any) -> float:
    """Return the smallest float that is at least ``exact``, of any exact type; infinity beyond the largest float."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)


def root(square: Fraction) -> float:
    """Return the square root, rounded up to a float."""
    found = math.nextafter(math.sqrt(square), 0.0)
    while Fraction(found) ** 2 < square:
        found = math.nextafter(found, math.inf)
    return found


def share_of(epsilon: float, parts: int) -> float:
    """Return epsilon divided by ``parts``, rounded down: the parts add up to at most epsilon, exactly."""
    share = epsilon / parts
    return math.nextafter(share, 0.0) if Fraction(share) * parts > Fraction(epsilon) else share


def integer(value: Any, name: str, allowed: range) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an int, got {type(value).__name__}")
    try:
        found = operator.index(value)
    except TypeError:  # an array
        raise TypeError(f"{name} must be an int, got {type(value).__name__}") from None
    if found not in allowed:
        raise ParameterError(f"{name} must be an integer from {allowed[0]} to {allowed[-1]}, got {found}")
    return found


def checked_level(level: float) -> float:
    """Return a level between 0 and 1; the error is the same as in the native mechanisms."""
    number = real(level, "level")
    if not 0 < number < 1:
        raise ParameterError(f"level must be between 0 and 1, both excluded, got {number!r}")
    return number


# Tables are a function of the public parameters, and take longer to compute than a few samples.
_cached = lru_cache(maxsize=256, typed=True)(Sampler)


def sampler_of(distribution: str, *parameters: Any) -> Sampler:
    try:
        return _cached(distribution, *parameters)
    except TypeError:  # perhaps only not hashable: the constructor's error names the problem
        return Sampler(distribution, *parameters)
