"""What all protocols have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnoise import _native
from dpnoise._native import ParameterError, ScriptedRng, SeededRng
from dpnoise.bit_generator import SecureBitGenerator
from dpnoise.local import _inputs

if TYPE_CHECKING:
    from dpnoise.local._accumulator import Accumulator
    from dpnoise.local._estimate import Estimate

Rng = SeededRng | ScriptedRng | None

AnyProtocol = TypeVar("AnyProtocol", bound="Protocol")

_CLASSES: dict[str, type[Protocol]] = {}
"""The class of each family, by its name in specifications."""


class Protocol:
    """What all local protocols have in common. Make one of the others.

    Protocols are immutable, hashable, and equal when their specifications are.
    """

    __slots__ = ("_native",)

    _native: _native.LocalProtocol
    _family: ClassVar[str]
    _parameters: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        if "_family" in vars(cls):
            _CLASSES[cls._family] = cls

    def __init__(self) -> None:
        raise TypeError("make one of the protocols of dpnoise.local, for example OptimizedUnaryEncoding")

    @property
    def k(self) -> int:
        """The number of values that an answer may have."""
        return self._native.k

    @property
    def p(self) -> float:
        """The probability that a report counts for the true value: that a bit that is 1 is reported as 1."""
        return self._native.p

    @property
    def q(self) -> float:
        """The probability that a report counts for another given value: that a bit that is 0 is reported as 1."""
        return self._native.q

    @property
    def epsilon(self) -> float:
        """The epsilon of the guarantee, exact and rounded up; at least 0.999 of the requested one, and never above."""
        return self._native.epsilon

    @property
    def requested_epsilon(self) -> float:
        """The epsilon that was asked for."""
        return self._native.requested_epsilon

    @property
    def report_bytes(self) -> int:
        """The size of a report in bytes."""
        return self._native.report_bytes

    @property
    def spec_id(self) -> str:
        """The first 8 bytes of the SHA-256 of the specification, in hexadecimal."""
        return self._native.spec_id

    def to_json(self) -> str:
        """Give the canonical specification: JSON with sorted keys and without spaces.

        Returns
        -------
        str
        """
        return self._native.to_json()

    @classmethod
    def from_json(cls: type[AnyProtocol], text: str) -> AnyProtocol:
        """Read a specification and check that it does not contradict itself.

        Parameters
        ----------
        text : str
            As `to_json` gave it; spaces and order do not matter.

        Returns
        -------
        Protocol
            Of the class that this is called on. `protocol_from_json` reads all kinds.

        Raises
        ------
        ParameterError
            When it is not a specification, of another protocol, or its probabilities are not those of its epsilon.
        """
        protocol = protocol_from_json(text)
        if not isinstance(protocol, cls):
            wanted, found = cls.__name__, type(protocol).__name__
            raise ParameterError(f"the specification must be of {wanted}, got one of {found}: use protocol_from_json")
        return protocol

    def variance(self, n: int, frequency: float = 0.0) -> float:
        """Predict the variance of an estimated count.

        Parameters
        ----------
        n : int
            The number of reports.
        frequency : float
            The true frequency of the value, from 0 to 1.

        Returns
        -------
        float
            ``n (q (1 - q) / (p - q)**2 + frequency (1 - p - q) / (p - q))`` (Wang et al. 2017, equation 2), in squared
            people.

        Raises
        ------
        ParameterError
            When a parameter is out of range.
        """
        return self._native.variance(n, frequency)

    def accumulator(self) -> Accumulator:
        """Make an empty accumulator for reports of this protocol.

        Returns
        -------
        Accumulator
        """
        from dpnoise.local._accumulator import Accumulator  # it imports this module

        return Accumulator(self)

    def aggregate(self, reports: ArrayLike, *, threads: int | None = None) -> Estimate:
        """Count reports and estimate how many people have each value: an accumulator for one batch.

        Parameters
        ----------
        reports : ndarray of uint8, shape (n, report_bytes)
            As ``perturb`` made them.
        threads : int, optional
            How many threads to use; all cores that the process may use when not given.

        Returns
        -------
        Estimate
            With 95 % confidence intervals. ``accumulator()`` gives other levels.

        Raises
        ------
        ParameterError
            When the shape is another.
        TypeError
            When the dtype is another.
        """
        accumulator = self.accumulator()
        accumulator.add(reports, threads=threads)
        return accumulator.estimate()

    def simulate(self, true_counts: ArrayLike) -> Estimate:
        """Draw the estimate that a collection would give, without making a report.

        Parameters
        ----------
        true_counts : array of non-negative integers, shape (k,)
            How many people have each value; for `RandomizedResponse` how many would say no, and yes.

        Returns
        -------
        Estimate
            With the distribution that it has when all these people report. It takes a time in the order of k, whatever
            the counts.

        Raises
        ------
        ParameterError
            When the shape is another, or a count is negative or too large.
        TypeError
            When the counts are not integers.

        Notes
        -----
        This is for planning. Counters are sums of binomial and multinomial variables, which are NumPy's, on secure
        bits: exact up to the accuracy of its floating-point arithmetic. For `LocalHashing`, `HadamardResponse` and
        `SubsetSelection` each count has its distribution, but different counts are drawn independently, which those of
        a collection are not quite.
        """
        from dpnoise.local._accumulator import Accumulator  # it imports this module

        counts = _inputs.counts(true_counts, self.k)
        counters = self._draw_counters(counts, np.random.Generator(SecureBitGenerator())).astype(np.uint64)
        state = _native.LocalAccumulator.from_counters(self._native, int(counts.sum()), counters)
        return Accumulator._of(state).estimate()

    def _draw_counters(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw how many reports count for each value; here each bit by itself."""
        own, of_others = generator.binomial(counts, self.p), generator.binomial(counts.sum() - counts, self.q)
        drawn: NDArray[np.int64] = own + of_others
        return drawn

    def messages(self, reports: ArrayLike) -> list[bytes]:
        """Give each report as a message of its own, for devices that send one.

        Parameters
        ----------
        reports : ndarray of uint8, shape (n, report_bytes)
            As ``perturb`` made them. For `RandomizedResponse` booleans of shape (n,), too.

        Returns
        -------
        list of bytes
            A header of 12 bytes, which says what the report is of, and the report.

        Raises
        ------
        ParameterError
            When the shape is another.
        TypeError
            When the dtype is another.
        """
        header = self._native.message_header
        return [header + row.tobytes() for row in self._rows(reports)]

    def _rows(self, reports: ArrayLike) -> NDArray[np.uint8]:
        return _inputs.matrix(reports, self.report_bytes, "reports")

    def __eq__(self, other: object) -> bool:
        """Compare specifications."""
        return isinstance(other, Protocol) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash(self.to_json())

    def __repr__(self) -> str:
        """Show the call that makes this protocol."""
        parameters = {name.removeprefix("requested_"): getattr(self, name) for name in self._parameters}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in parameters.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the specification."""
        return protocol_from_json, (self.to_json(),)


def wrap_as(cls: type[AnyProtocol], native: _native.LocalProtocol) -> AnyProtocol:
    """Make an object of class ``cls`` around a native protocol of its family."""
    protocol = cls.__new__(cls)
    protocol._native = native
    return protocol


def wrap(native: _native.LocalProtocol) -> Protocol:
    """Give a native protocol its class."""
    return wrap_as(_CLASSES[native.family], native)


def protocol_from_json(text: str) -> Protocol:
    """Read the specification of a protocol of any kind.

    Parameters
    ----------
    text : str
        As ``to_json`` gave it; spaces and order do not matter.

    Returns
    -------
    Protocol

    Raises
    ------
    ParameterError
        When it is not a specification, or its probabilities are not those of its epsilon.
    """
    return wrap(_native.LocalProtocol.from_json(text))
