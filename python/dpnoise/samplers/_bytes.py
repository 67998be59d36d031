"""Random bytes."""

from __future__ import annotations

from dpnoise import _native
from dpnoise._arrays import shape_of


def random_bytes(n: int) -> bytes:
    """Draw random bytes: ChaCha12 under a fresh key from the operating system.

    Parameters
    ----------
    n : int
        How many.

    Returns
    -------
    bytes

    Raises
    ------
    ParameterError
        When ``n`` is negative.
    RandomnessError
        When the operating system has no randomness to give.
    """
    (count,) = shape_of(n)
    return _native.random_bytes(count)
