"""Noise that a secret brings back: bit for bit, on any CPU, in any order, without state.

Shards, replicas and checkpoints of one computation need the same noise, or parts of it, again. A `NoiseKey` is a secret
of 32 bytes; a `Ticket` is public, and names a draw. Together they give the samples of a distribution: whoever has both
can draw any range of them.

Every other call of this package draws a fresh key and forgets it. Whoever learns a `NoiseKey` can compute all noise
that was and will be drawn with it, and subtract it from what was published: keep it as secret as the data, and use it
only where noise must come back.

Examples
--------
>>> from dpnoise import hazmat, keyed
>>> key = keyed.NoiseKey.generate()
>>> ticket = key.ticket(step=0)
>>> noise = key.draw(ticket, "discrete_gaussian", 10.0, size=1_000_000)
>>> again = hazmat.regenerate(key, ticket, "discrete_gaussian", 10.0, size=100, start=4000)
>>> bool((again == noise[4000:4100]).all())
True
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnoise import _calls, _native
from dpnoise._draws import output, sampler_of
from dpnoise._errors import ParameterError
from dpnoise._types import Integer, Number, Size

__all__ = ["NoiseKey", "Ticket"]

Distribution = Literal["discrete_laplace", "discrete_gaussian", "geometric", "laplace", "gaussian"]
Samples = NDArray[np.int64] | NDArray[np.float64]
Given = TypeVar("Given")

_DTYPES = {
    "discrete_laplace": np.int64,
    "discrete_gaussian": np.int64,
    "geometric": np.int64,
    "laplace": np.float64,
    "gaussian": np.float64,
}


class Ticket:
    """The name of a draw of noise: public, and made by `NoiseKey.ticket`.

    A ticket that was made releases noise once. A repeated step, a fork, a lost checkpoint or a second input takes
    another ticket, and gets independent noise: the nonce of 16 bytes is new each time. A ticket that was read from
    bytes, unpickled or inherited by a fork releases none; `dpnoise.hazmat.regenerate` draws the noise of any ticket
    again.
    """

    __slots__ = ("_public",)

    _public: _native.Ticket

    def __init__(self) -> None:
        raise TypeError("make one by NoiseKey.ticket() or Ticket.from_bytes()")

    @classmethod
    def _of(cls, native: _native.Ticket) -> Ticket:
        ticket = cls.__new__(cls)
        ticket._public = native
        return ticket

    @classmethod
    def from_bytes(cls, ticket: bytes) -> Ticket:
        """Read the bytes that `to_bytes` returned, as a ticket for `dpnoise.hazmat.regenerate` alone.

        Parameters
        ----------
        ticket : bytes
            What `to_bytes` returned.

        Returns
        -------
        Ticket
            An equal ticket, which is not fresh.

        Raises
        ------
        ParameterError
            When the bytes are truncated, damaged (CRC-32C), of another version, or not a ticket; the message says
            which.
        """
        return cls._of(_native.Ticket.from_bytes(_checked("ticket", ticket, bytes)))

    def to_bytes(self) -> bytes:
        """Return the ticket as bytes, which are public."""
        return self._public.to_bytes()

    @property
    def domain(self) -> str:
        """The purpose of the noise."""
        return self._public.domain

    @property
    def step(self) -> int:
        """The number of the step."""
        return self._public.step

    @property
    def nonce(self) -> bytes:
        """The nonce of 16 bytes, unique to this ticket."""
        return self._public.nonce

    @property
    def is_fresh(self) -> bool:
        """Whether noise can still be released with it."""
        return self._public.is_fresh

    def __eq__(self, other: object) -> bool:
        """Compare what is public; whether one of them is fresh does not matter."""
        return isinstance(other, Ticket) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        """Hash what is public."""
        return hash(self.to_bytes())

    def __repr__(self) -> str:
        """Show domain, step and nonce."""
        return f"<Ticket of step {self.step} of {self.domain!r}, nonce {self.nonce.hex()}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the bytes: the copy is not fresh."""
        return Ticket.from_bytes, (self.to_bytes(),)


class NoiseKey:
    """A secret of 32 bytes that brings noise back. It is wiped when it is dropped, and is neither shown nor pickled.

    Make one by `generate`, or by `from_secret_bytes` from where you keep secrets.
    """

    __slots__ = ("_secret",)

    _secret: _native.NoiseKey

    def __init__(self) -> None:
        raise TypeError("make one by NoiseKey.generate() or NoiseKey.from_secret_bytes()")

    @classmethod
    def _of(cls, native: _native.NoiseKey) -> NoiseKey:
        key = cls.__new__(cls)
        key._secret = native
        return key

    @classmethod
    def generate(cls) -> NoiseKey:
        """Draw a key from the operating system."""
        return cls._of(_native.NoiseKey.generate())

    @classmethod
    def from_secret_bytes(cls, secret: bytes) -> NoiseKey:
        """Read the bytes that `to_secret_bytes` returned.

        Parameters
        ----------
        secret : bytes
            The key: 32 bytes, uniformly random. A password or a seed is no key.
        """
        return cls._of(_native.NoiseKey.from_secret_bytes(_checked("secret", secret, bytes)))

    def to_secret_bytes(self) -> bytes:
        """Return the 32 secret bytes, to keep where secrets are kept. Python does not wipe them."""
        return self._secret.to_secret_bytes()

    @property
    def fingerprint(self) -> bytes:
        """8 public bytes: equal for equal keys, and revealing nothing else about a key."""
        return self._secret.fingerprint

    def ticket(self, step: Integer, *, domain: str = "") -> Ticket:
        """Make a new ticket, which releases noise once.

        Parameters
        ----------
        step : int
            The number of the step, from 0 to 2**64 - 1. It may be repeated: the noise is independent all the same.
        domain : str, default ""
            What the noise is for: a text of at most 1024 bytes in UTF-8. Domains that begin with ``dpnoise.`` are for
            the package's own noise.
        """
        try:
            _checked("domain", domain, str).encode()
        except UnicodeEncodeError:
            raise ParameterError(f"domain must be text that UTF-8 can encode, got {domain!r}") from None
        return Ticket._of(self._secret.ticket(domain, step))

    def draw(
        self,
        ticket: Ticket,
        distribution: Distribution,
        scale: Number,
        *,
        size: Size,
        start: Integer = 0,
        granularity: Number | None = None,
        radius: Integer | None = None,
        out: Samples | None = None,
        threads: int | None = None,
    ) -> Any:
        """Draw the noise of a ticket, which is used up.

        The distribution is exactly the one that `dpnoise.samplers` has under this name, and bound to the noise with its
        exact scale: another scale, distribution, granularity or radius gives independent noise. Time and memory
        addresses do not depend on the samples, with the exceptions that `dpnoise.samplers` has.

        Parameters
        ----------
        ticket : Ticket
            A fresh ticket of this key.
        distribution : str
            The name of a function of `dpnoise.samplers`: ``"discrete_laplace"``, ``"discrete_gaussian"``,
            ``"geometric"``, ``"laplace"`` or ``"gaussian"``.
        scale : int, float or Fraction
            The scale or sigma of the distribution, in the range of its function in `dpnoise.samplers`; taken at its
            exact value.
        size : int or tuple of int
            The shape of the result.
        start : int, default 0
            The number of the first sample among all samples of the ticket, of which there are 2**44: not negative, and
            such that all drawn samples have numbers below 2**44.
        granularity : float, optional
            The step of the grid for ``"laplace"`` and ``"gaussian"``, a power of two from 2**-1019 to 2**900. By
            default the one that these functions choose; None for the other distributions.
        radius : int, optional
            The largest magnitude of a sample for ``"discrete_laplace"``, ``"discrete_gaussian"`` and ``"geometric"``,
            from 1 and the scale to 2**62. By default the distribution is not truncated; None for the other
            distributions.
        out : ndarray of int64 or float64, optional
            An array to fill and return in place of a new one: writable, C-contiguous, of the shape and dtype of the
            result.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result.

        Returns
        -------
        ndarray of int64 or float64
            The samples: float64 for ``"laplace"`` and ``"gaussian"``, int64 for the other distributions.

        Raises
        ------
        ParameterError
            When the ticket is not fresh or of another key. A fresh ticket stays fresh after an error.

        Notes
        -----
        The words are ChaCha12 under a key that HMAC-SHA256 derives from the secret, the ticket and the distribution.
        Sample i is in block i // 4096, whose words begin at a place of their own, and whole blocks are always drawn: so
        any range equals the same part of the whole. The samples of release 1 stay the samples of a ticket for ever.
        """
        return _fill(self, ticket, distribution, scale, size, start, granularity, radius, out, threads, once=True)

    def __eq__(self, other: object) -> bool:
        """Compare fingerprints."""
        return isinstance(other, NoiseKey) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        """Hash the fingerprint."""
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        """Show the fingerprint."""
        return f"<NoiseKey {self.fingerprint.hex()}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Refuse to be pickled."""
        raise TypeError("a NoiseKey cannot be pickled: keep key.to_secret_bytes() where secrets are kept")


def regenerate(
    key: NoiseKey,
    ticket: Ticket,
    distribution: Distribution,
    scale: Number,
    *,
    size: Size,
    start: Integer = 0,
    granularity: Number | None = None,
    radius: Integer | None = None,
    out: Samples | None = None,
    threads: int | None = None,
) -> Any:
    """Draw the noise of a ticket again, or a part of it.

    Adding it to a second input would release both inputs with the same noise, whose difference is not private: use it
    only to make again what was made before, or to take noise away that a later step no longer needs.

    Parameters
    ----------
    key : NoiseKey
        The key that made the ticket.
    ticket : Ticket
        Any ticket of the key, also one that is used up or was read from bytes. A fresh ticket is used up.
    distribution : str
        The name of a function of `dpnoise.samplers`: ``"discrete_laplace"``, ``"discrete_gaussian"``, ``"geometric"``,
        ``"laplace"`` or ``"gaussian"``. With another distribution, scale, granularity or radius than the draw had, the
        noise is independent of the draw's.
    scale : int, float or Fraction
        The scale or sigma of the distribution, in the range of its function in `dpnoise.samplers`; taken at its exact
        value.
    size : int or tuple of int
        The shape of the result.
    start : int, default 0
        The number of the first sample among all samples of the ticket, of which there are 2**44: not negative, and such
        that all drawn samples have numbers below 2**44.
    granularity : float, optional
        The step of the grid for ``"laplace"`` and ``"gaussian"``, a power of two from 2**-1019 to 2**900. By default
        the one that these functions choose; None for the other distributions.
    radius : int, optional
        The largest magnitude of a sample for ``"discrete_laplace"``, ``"discrete_gaussian"`` and ``"geometric"``, from
        1 and the scale to 2**62. By default the distribution is not truncated; None for the other distributions.
    out : ndarray of int64 or float64, optional
        An array to fill and return in place of a new one: writable, C-contiguous, of the shape and dtype of the result.
    threads : int, optional
        The number of threads that share the work, at least 1; by default all cores that the process may use. It does
        not change the result.

    Returns
    -------
    ndarray of int64 or float64
        The samples: float64 for ``"laplace"`` and ``"gaussian"``, int64 for the other distributions.
    """
    return _fill(key, ticket, distribution, scale, size, start, granularity, radius, out, threads, once=False)


def _fill(
    key: NoiseKey,
    ticket: Ticket,
    distribution: Distribution,
    scale: Number,
    size: Size,
    start: Integer,
    granularity: Number | None,
    radius: Integer | None,
    out: Samples | None,
    threads: int | None,
    once: bool,
) -> Any:
    _checked("key", key, NoiseKey)
    _checked("ticket", ticket, Ticket)
    if not isinstance(distribution, str) or distribution not in _DTYPES:
        raise ParameterError(f"distribution must be one of {', '.join(map(repr, _DTYPES))}, got {distribution!r}")
    dtype: Any = _DTYPES[distribution]
    more, other, name = (radius, granularity, "granularity") if dtype is np.int64 else (granularity, radius, "radius")
    if other is not None:
        raise ParameterError(f"{name} must be None for {distribution!r}, got {other!r}")
    sampler = sampler_of(distribution, (scale, more))
    array = output(size, out, dtype)
    key._secret.fill(ticket._public, sampler, start, array, threads, once)
    return array


def _checked(name: str, given: Given, kind: type[Given]) -> Given:
    if not isinstance(given, kind):
        article = "" if kind is bytes else "a "
        raise TypeError(f"{name} must be {article}{kind.__name__}, got {type(given).__name__}")
    return given


_calls.explain(__name__)
