"""The shared privacy parameters of the two Gaussian mechanisms."""

from __future__ import annotations

from typing import Any

from dpnoise import _native
from dpnoise._errors import ParameterError
from dpnoise._parameters import integer
from dpnoise.mechanisms._mechanism import COUNTS, Mechanism


class GaussianPrivacy(Mechanism):
    """A mechanism for an epsilon and a delta, or for a rho."""

    __slots__ = ()

    _native: _native.Additive

    @property
    def epsilon(self) -> float | None:  # type: ignore[override]
        """The privacy parameter epsilon; None for a ``rho`` without a ``delta``."""
        return self._native.epsilon

    @property
    def delta(self) -> float | None:  # type: ignore[override]
        """The privacy parameter delta; None for a ``rho`` without a ``delta``."""
        return self._native.delta

    @property
    def rho(self) -> float | None:
        """The parameter of zero-concentrated differential privacy, when that was given."""
        return self._native.rho

    def delta_for(self, epsilon: float, count: int = 1) -> float:
        """Return a delta for which a release is (epsilon, delta)-differentially private.

        Parameters
        ----------
        epsilon : as everywhere
        count : int, default 1
            How many values are released at once.

        Returns
        -------
        float
            From 0 to 1, never too small. For one integer, or one value on the default grid, at most 1e-12 too large,
            relatively, where it is not below the smallest normal double; otherwise see the class.
        """
        return self._native.delta_for(epsilon, integer(count, "count", COUNTS))

    def epsilon_for(self, delta: float, count: int = 1) -> float:
        """Return the least epsilon whose `delta_for` is at most ``delta``, at most 1e-12 too large, relatively.

        Parameters
        ----------
        delta : as everywhere
        count : int, default 1
            How many values are released at once.
        """
        return self._native.epsilon_for(delta, integer(count, "count", COUNTS))

    def _values(self) -> dict[str, Any]:
        # Epsilon follows from rho and delta.
        derived = () if self.rho is None else ("epsilon", "method")
        return {name: value for name, value in super()._values().items() if name not in derived}


def check_given(epsilon: float | None, delta: float | None, rho: float | None) -> None:
    """Refuse what is neither an epsilon with a delta nor a rho."""
    if epsilon is None and rho is None:
        raise ParameterError("epsilon must be given, with delta, or else rho: got neither")
    if epsilon is not None and rho is not None:
        raise ParameterError(f"rho must be None when epsilon is given, got {rho!r} and epsilon={epsilon!r}")
    if delta is None and rho is None:
        raise ParameterError("delta must be given with epsilon, got None")
