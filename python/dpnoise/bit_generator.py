"""Secure random bits for NumPy's `numpy.random.Generator`."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.random.bit_generator import SeedlessSeedSequence

from dpnoise import _calls, _native

__all__ = ["SecureBitGenerator"]


class SecureBitGenerator(np.random.BitGenerator):
    """Cryptographically secure random bits for `numpy.random.Generator`.

    Use it for simulations, shuffles and sampling, including Poisson subsampling: its bits are unpredictable and never
    repeat, neither in other processes and threads nor after a fork.

    It does **not** make NumPy's samplers private. Noise from ``Generator.normal`` or ``Generator.laplace`` reveals
    low-order bits of the value that it is added to, and takes a time that depends on the noise, even with secure bits.
    Use `dpnoise.samplers` and the mechanisms for noise.

    It takes no seed, and its state cannot be read, set, copied or pickled. Make a new object for another stream.

    Notes
    -----
    AES-256 or ChaCha12 makes the bits (see `dpnoise.generator`). They are drawn 16 KiB at a time under a fresh key from
    the operating system, which is wiped at once; each word is overwritten when it is given out. In a child process the
    first draw discards the parent's bytes: on Linux after every kind of fork, elsewhere after the C library's ``fork``.
    A snapshot of a virtual machine that is restored more than once repeats the remaining part of the 16 KiB.

    Several threads may share one, but they wait for each other: NumPy holds ``lock`` while it draws.

    NumPy's interface cannot report an error. If the operating system provides no randomness when more bytes are needed,
    the process is **aborted**, with a message on standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from dpnoise import SecureBitGenerator
    >>> generator = np.random.Generator(SecureBitGenerator())
    >>> sampled = generator.random(1000) < 0.01  # Poisson sampling
    >>> order = generator.permutation(1000)
    """

    __slots__ = ()

    def __init__(self) -> None:
        if self.capsule is not None:
            # Generators would keep a pointer to a freed state.
            raise TypeError("a SecureBitGenerator can be initialised only once")
        super().__init__(SeedlessSeedSequence())
        _native.secure_bit_generator(self.capsule)

    @property
    def state(self) -> Any:
        """Not available: the state is secret."""
        _refuse("has no state that can be read or set")

    @state.setter
    def state(self, value: Any) -> NoReturn:
        _refuse("has no state that can be read or set")

    @property
    def seed_seq(self) -> NoReturn:
        """Not available: there is no seed."""
        _refuse("has no seed")

    def spawn(self, n_children: int) -> NoReturn:
        """Refuse: generators are independent of each other without being spawned.

        Parameters
        ----------
        n_children : int
            How many generators NumPy's caller asks for; it is not read.
        """
        _refuse("cannot be spawned from")

    def __reduce__(self) -> NoReturn:
        """Refuse copies and pickles, which would repeat the stream."""
        _refuse("cannot be copied or pickled")


def _refuse(what: str) -> NoReturn:
    raise TypeError(f"a SecureBitGenerator {what}: make a new one, it is independent of all others")


_calls.explain(__name__)
