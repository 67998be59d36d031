from __future__ import annotations

from dpnoise import _native
from dpnoise._calls import hot
from dpnoise._types import Integer


@hot
def random_bytes(n: Integer) -> bytes:
    """Draw random bytes: AES-256 or ChaCha12 under a fresh key from the operating system.

    Parameters
    ----------
    n : int
        The number of bytes, from 0 to 2**63 - 1.

    Returns
    -------
    bytes
        ``n`` bytes, uniform and independent.
    """
    try:
        return _native.random_bytes(n)
    except (MemoryError, OverflowError):
        raise MemoryError(f"there is no room for n = {n} bytes") from None
