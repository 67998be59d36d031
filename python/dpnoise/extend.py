"""What packages that build on dpnoise need beside its mechanisms, samplers and errors: integrations, above all.

- `real`, `real_up`, `integer`, `reals_of`, `array_of`: checks and conversions of parameters and data, with the messages
  that all of dpnoise has.
- `root`: a square root that is rounded up.
- `gaussian`, `with_scale`: mechanisms for a host that states the scale of its noise.
- `generator_for_tests`: refuses the keys and seeds of a host.
- `Patch`: replaces attributes of a host for a while.

An integration imports these and other public names only. [How to add one](https://dpnoise.github.io/dpnoise/adding_an_integration/)
says which of them it needs.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

from dpnoise._arrays import array_of, reals_of
from dpnoise._errors import ParameterError
from dpnoise._native import ScriptedRng, SeededRng
from dpnoise._numbers import integer, real, real_up, root
from dpnoise._types import Number
from dpnoise.mechanisms import DiscreteGaussian, Gaussian

__all__ = [
    "Patch",
    "array_of",
    "gaussian",
    "generator_for_tests",
    "integer",
    "real",
    "real_up",
    "reals_of",
    "root",
    "with_scale",
]

_Noise = TypeVar("_Noise", Gaussian, DiscreteGaussian)


def _check_scale(scale: Number) -> None:
    if not 0 < real(scale, "scale") < math.inf:
        raise ParameterError(f"scale must be positive and finite, got {scale!r}")


@lru_cache(maxsize=256)
def gaussian(epsilon: Number, delta: Number, sensitivity: Number, scale: Number) -> Gaussian:
    """Make a mechanism for real values with enough noise for epsilon and delta, and at least the host's scale.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: positive and finite.
    delta : float
        The privacy parameter: above 0 and at most 1. With 1, which needs no noise, the scale alone counts.
    sensitivity : float
        The most that one person can change the value, in the L2 norm: positive and finite.
    scale : float
        The standard deviation that the host would use: positive and finite.

    Returns
    -------
    dpnoise.Gaussian
        The same object for the same arguments: its tables are kept.

    Raises
    ------
    ParameterError
        When `dpnoise.Gaussian` refuses a parameter, or the scale is not positive and finite.

    Notes
    -----
    The mechanism is (epsilon, delta)-differentially private, rounding to its grid included: it has the larger scale of
    the two, that of `dpnoise.Gaussian` for epsilon and delta and the host's.

    Examples
    --------
    >>> from dpnoise import extend
    >>> extend.gaussian(1.0, 1e-5, sensitivity=1.0, scale=7.0).scale >= 7.0
    True
    """
    _check_scale(scale)
    # A delta of 1 needs no noise, but the hosts add noise.
    least = None if delta == 1 else Gaussian(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    return least if least and least.scale >= scale else with_scale(Gaussian, sensitivity, scale)


def with_scale(kind: type[_Noise], sensitivity: Number, scale: Number) -> _Noise:
    """Make a Gaussian mechanism of at least a scale, and as near to it as a rho can express.

    Parameters
    ----------
    kind : type
        The class of the mechanism: `dpnoise.Gaussian` or `dpnoise.DiscreteGaussian`.
    sensitivity : float
        The most that one person can change the value, in the L2 norm: positive and finite.
    scale : float
        The least standard deviation of the noise: positive and finite.

    Returns
    -------
    dpnoise.Gaussian or dpnoise.DiscreteGaussian
        A mechanism of the class `kind` whose ``scale`` is at least the given one.

    Raises
    ------
    ParameterError
        When the scale is not positive and finite, or the mechanism refuses the sensitivity or the rho.

    Notes
    -----
    The mechanism is rho-zero-concentrated differentially private, with its own ``rho`` of at most
    ``(sensitivity / scale)**2 / 2``.

    Examples
    --------
    >>> import dpnoise
    >>> from dpnoise import extend
    >>> extend.with_scale(dpnoise.DiscreteGaussian, sensitivity=1, scale=3.5).scale >= 3.5
    True
    """
    _check_scale(scale)
    rho = (real(sensitivity, "sensitivity") / scale) ** 2 / 2
    while (mechanism := kind(rho=rho, sensitivity=sensitivity)).scale < scale:
        rho = math.nextafter(rho, 0.0)
    return mechanism


def generator_for_tests(**given: Any) -> SeededRng | ScriptedRng | None:
    """Return the test generator that stands in place of a host's key or seed; refuse keys and seeds.

    Anybody who knows the seed of noise can subtract the noise.

    Parameters
    ----------
    **given : object
        The parameters in which the host takes a key or a seed, by their names; None where nothing was given.

    Returns
    -------
    SeededRng, ScriptedRng or None
        The generator of `dpnoise.hazmat`, if one of the parameters is one; it goes to ``rng=`` of a mechanism.

    Raises
    ------
    ValueError
        When a parameter is anything else, or when two are given.

    Examples
    --------
    >>> from dpnoise import extend, hazmat, samplers
    >>> rng = extend.generator_for_tests(key=None, seed=hazmat.SeededRng(1))
    >>> noise = samplers.discrete_laplace(2.0, size=10, rng=rng)
    """
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        if not isinstance(value, SeededRng | ScriptedRng):
            raise ValueError(
                f"{name} must be left out or None, since anybody who knows it can subtract the noise, or for tests a "
                f"generator of dpnoise.hazmat, got {type(value).__name__}"
            )
    if len(given) > 1:
        raise ValueError(f"Only one of {' or '.join(given)} can be specified.")
    return next(iter(given.values()), None)


class Patch:
    """A replacement of attributes of a host that lasts while any thread needs it.

    Parameters
    ----------
    replacements : callable
        A function without parameters that returns an iterable of triples: the owner (a module or a class), the name and
        the new value of each attribute to replace. It is called when the first thread enters, so that the host is
        imported by then.

    Notes
    -----
    Several threads may be within at once, and calls may nest: the attributes are replaced at the first entry and
    restored, in the reverse order, at the last exit. An attribute that the owner inherits is deleted again.

    Examples
    --------
    >>> import types
    >>> from dpnoise import extend
    >>> host = types.SimpleNamespace(noise=lambda: 0.0)
    >>> patch = extend.Patch(lambda: [(host, "noise", lambda: 1.5)])
    >>> with patch.within():
    ...     host.noise()
    1.5
    >>> host.noise()
    0.0
    """

    def __init__(self, replacements: Callable[[], Iterable[tuple[Any, str, Any]]]) -> None:
        self._replacements = replacements
        self._lock = threading.Lock()
        self._users = 0
        self._originals: list[tuple[Any, str, Any]] = []

    @contextmanager
    def within(self) -> Iterator[None]:
        """Replace the attributes for the length of a ``with`` block."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """Replace the attributes until `leave` is called as often as this."""
        with self._lock:
            if self._users == 0:
                for owner, name, replacement in list(self._replacements()):
                    self._originals.append((owner, name, owner.__dict__.get(name)))
                    setattr(owner, name, replacement)
            self._users += 1

    def leave(self) -> None:
        """Restore the attributes, if all others have left."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                while self._originals:
                    owner, name, original = self._originals.pop()
                    if original is None:  # inherited
                        delattr(owner, name)
                    else:
                        setattr(owner, name, original)
