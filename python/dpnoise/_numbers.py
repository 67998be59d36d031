"""Numbers and words among parameters: what is taken, and how numbers are rounded, by the same rules everywhere."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, Final

from dpnoise._errors import Error, ParameterError
from dpnoise._types import Number

_WORDS: Final = {"moments": "rdp", "renyi": "rdp"}
"""Words that texts have for those that parameters take."""


def real(value: Any, name: str) -> float:
    """Check that a parameter is a real number, and return the nearest float.

    Parameters
    ----------
    value : float
        A real number of Python or NumPy, an int or a Fraction included, but no bool. Its range is for the caller to
        check.
    name : str
        The name of the parameter, for the message.

    Returns
    -------
    float
        The float nearest to `value`.

    Raises
    ------
    TypeError
        When it is no number. The message names its type, and not the value.
    ParameterError
        When it is an integer beyond the largest float.
    """
    if type(value) is float:  # checking the abstract class is slow
        return value
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")

    problem: Exception
    try:
        return float(value)
    except OverflowError:
        problem = ParameterError(f"{name} must be in the range of a float, got an integer beyond the largest")
    except (Error, ImportError, MemoryError):
        raise
    except Exception:  # of the caller's class, whose message might show a value
        problem = TypeError(f"{name} must be a number, got {type(value).__name__}")
    raise problem


def _exact(value: Any) -> Any:
    """Return a number as one that Python compares exactly with floats: NumPy makes its integers floats before that."""
    return operator.index(value) if hasattr(value, "__index__") else value


def fraction_of(value: Any) -> Fraction:
    """Return a finite number that `real` takes as the fraction that it is."""
    value = _exact(value)
    if isinstance(value, Rational | float):
        return Fraction(value)
    return Fraction(*getattr(value, "as_integer_ratio", float(value).as_integer_ratio)())  # NumPy has wider floats


def real_down(value: Any, name: str) -> float:
    """Round a promise down: return the largest float that is no larger, nor is the decimal number that Python prints.

    Ledgers read a float as that number.
    """
    nearest = real(value, name)
    if isinstance(value, float) or not math.isfinite(nearest) or (exact := fraction_of(value)) == nearest:
        return nearest
    while max(Fraction(nearest), Fraction(repr(nearest))) > exact:
        nearest = math.nextafter(nearest, -math.inf)
    return nearest


def real_up(value: Any, name: str) -> float:
    """Check that a parameter is a real number, and return the smallest float that is no smaller.

    For scales and bounds, which may only grow when they are rounded.

    Parameters
    ----------
    value : float
        A real number of Python or NumPy, an int or a Fraction included, but no bool. Its range is for the caller to
        check.
    name : str
        The name of the parameter, for the message.

    Returns
    -------
    float
        The smallest float that is at least `value`: infinity beyond the largest float.

    Raises
    ------
    TypeError
        When it is no number. The message names its type, and not the value.
    ParameterError
        When it is an integer beyond the largest float.
    """
    real(value, name)  # refuses everything but real numbers
    return at_least(value)


def at_least(exact: Any) -> float:
    """Return the smallest float that is at least ``exact``, of any exact type; infinity beyond the largest float."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if nearest >= _exact(exact) else math.nextafter(nearest, math.inf)


def root(square: Fraction) -> float:
    """Return the square root of a fraction, rounded up to a float.

    Parameters
    ----------
    square : Fraction
        The number whose root is taken: not negative.

    Returns
    -------
    float
        The smallest float whose square is at least ``square``.
    """
    found = math.nextafter(math.sqrt(square), 0.0)
    while Fraction(found) ** 2 < square:
        found = math.nextafter(found, math.inf)
    return found


def share_of(epsilon: float, parts: int) -> float:
    """Return epsilon divided by ``parts``, rounded down: the parts add up to at most epsilon, exactly."""
    share = epsilon / parts
    return math.nextafter(share, 0.0) if Fraction(share) * parts > Fraction(epsilon) else share


def integer(value: Any, name: str, allowed: range) -> int:
    """Check that a parameter is an integer within a range, and return it as an int.

    Parameters
    ----------
    value : int
        An integer of Python or NumPy, but no bool.
    name : str
        The name of the parameter, for the message.
    allowed : range
        The integers that are allowed; not empty.

    Returns
    -------
    int
        The integer, as an int of Python.

    Raises
    ------
    TypeError
        When it is no integer. The message names its type, and not the value.
    ParameterError
        When it is out of range.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an int, got {type(value).__name__}")
    try:
        found = operator.index(value)
    except TypeError:  # an array
        raise TypeError(f"{name} must be an int, got {type(value).__name__}") from None
    if found not in allowed:
        raise ParameterError(f"{name} must be an integer from {allowed[0]} to {allowed[-1]}, got {found}")
    return found


def check_word(value: object, name: str, *allowed: str) -> None:
    """Refuse what is none of a few words, arrays too, which have no truth value."""
    if not isinstance(value, str) or value not in allowed:
        words = " or ".join(f'"{word}"' for word in allowed)
        meant = _WORDS.get(value) if isinstance(value, str) else None
        hint = f', use "{meant}"' if meant in allowed else ""
        raise ParameterError(f"{name} must be {words}, got {value!r:.60}{hint}")


def check_text(value: object, name: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, got {type(value).__name__}")
    if value != value.encode(errors="replace").decode():
        raise ParameterError(f"{name} must be a text that UTF-8 can hold, got one with surrogates")


def items_of(given: Any, name: str, what: str) -> list[Any]:
    """Return the items of an iterable; errors that it raises itself pass through."""
    try:
        if isinstance(given, str | bytes):  # the items of bytes are numbers
            raise TypeError
        items = iter(given)
    except TypeError:
        raise TypeError(f"{name} must be an iterable of {what}, got {type(given).__name__}") from None
    return list(items)


def checked_level(level: Number) -> float:
    """Return a level between 0 and 1; the error is the same as in the native mechanisms."""
    number = real(level, "level")
    if not 0 < number < 1:
        raise ParameterError(f"level must be between 0 and 1, both excluded, got {number!r}")
    return number


def checked_delta(delta: Number) -> float:
    """Return a delta between 0 and 1; the error is the same as in the native mechanisms."""
    number = real_down(delta, "delta")
    if not 0 < number < 1:
        raise ParameterError(f"delta must be between 0 and 1, both excluded, got {number!r}")
    return number
