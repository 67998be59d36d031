"""The base class of protocols, and how to read one from its specification."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._domain import Domain
from dpnoise._draws import array_for
from dpnoise._errors import ParameterError
from dpnoise._native import LocalAccumulator, LocalProtocol
from dpnoise._numbers import integer, real_down
from dpnoise._types import Integer, Labels, Number, Rng, Values
from dpnoise.local._accumulator import Accumulator, AnyAccumulator
from dpnoise.local._memo import ClientMemo
from dpnoise.local._specification import CLASSES, ROWS, Specification, check_normal, in_native, shown

if TYPE_CHECKING:
    from dpnoise.accounting import ShuffledCost

COUNTER_LIMIT: Final = _native.COUNTER_LIMIT
"""The most bytes that the counters of a protocol or a state of others may have unless a limit is given: 128 MiB."""

AnyProtocol = TypeVar("AnyProtocol", bound="Protocol")

_PARAMETERS: Final = {name: [parameter[0] for parameter in parameters] for name, *_, parameters, _ in ROWS}


class Protocol(Specification):
    """The abstract base class of all local protocols.

    Protocols are immutable, hashable, and equal when their specifications and labels are. With a question and a period
    they say what their reports are about.
    """

    __slots__ = ("_domain",)

    _native: LocalProtocol
    _family: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if "_family" in vars(cls):
            CLASSES[cls._family] = cls

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Make a protocol without labels; its initialiser may set them."""
        if not hasattr(cls, "_family"):
            raise TypeError("make one of the protocols of dpnoise.local, for example OptimizedUnaryEncoding")
        protocol = super().__new__(cls)
        protocol._domain = None
        return protocol

    def _make(self, **arguments: Number | str | None) -> None:
        self._take(LocalProtocol(self._family, **arguments))

    def _take(self, native: LocalProtocol) -> None:
        """Be this protocol, for the labels that were given."""
        self._native = native if self._domain is None else native.about(None, None, self._meaning())

    @property
    def requested_epsilon(self) -> float:
        """The requested epsilon."""
        return self._native.requested_epsilon

    def _specified(self) -> dict[str, Any]:
        """Return the fields of the specification."""
        fields: dict[str, Any] = json.loads(self.to_json())
        return fields

    @classmethod
    def _of(cls: type[AnyProtocol], native: LocalProtocol, domain: Any = None) -> AnyProtocol:
        """Make an object of this class around a native protocol of its family, with what its values stand for."""
        protocol = cls.__new__(cls)
        protocol._native, protocol._domain = native, domain
        return protocol

    def _with(self, native: LocalProtocol, domain: Any) -> Self:
        return self._of(native, self._domain if domain is None else domain)

    def _meant(self, domain: Any) -> Self:
        known = self._domain_of(domain)
        return self._of(self._native.knowing(in_native(known)), known)

    def _known(self) -> Any:
        return self._domain

    @classmethod
    def _domain_of(cls, given: Any) -> Any:
        """Return what values stand for, in one form."""
        return Domain(given)

    def _identity(self) -> tuple[Any, ...]:
        return self.to_json(), self._domain and type(self._domain[0])  # 1 and "1" have one digest

    def _arguments(self) -> dict[str, Any]:
        """Return the parameters that were requested."""
        requested = {name: f"requested_{name}" for name in _PARAMETERS[self._family]}
        return {name: getattr(self, other if hasattr(type(self), other) else name) for name, other in requested.items()}

    def __repr__(self) -> str:
        """Show the call that makes this protocol."""
        about: dict[str, Any] = {"question": self.question, "period": self.period}
        parameters = self._arguments()
        if isinstance(self._domain, Domain):
            parameters.pop("k", None)
            parameters = {"domain": self._domain, **parameters}
        elif self._domain is not None:
            parameters = {"bounds": self._domain, **parameters}
        elif self._native.labels is not None:
            return f"{type(self).__name__}.from_json({self.to_json()!r})"
        return shown(type(self).__name__, parameters, about)

    def accumulator(self) -> Accumulator:
        """Make an empty accumulator for reports of this protocol."""
        return Accumulator(self)

    def shuffled_cost(self, *, n: Integer, delta: Number) -> ShuffledCost:
        """Return the cost of n reports together when a shuffler has removed their senders and their order.

        The shuffler must be trusted to shuffle, and the reports must be from n people who follow the protocol.

        Parameters
        ----------
        n : int
            The number of reports that are shuffled, from 1 to 2**64 - 1.
        delta : float
            The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than one over the number of
            people.

        Returns
        -------
        ShuffledCost
            The given ``delta`` with an epsilon, at most the ``epsilon`` of a report. Neighbours differ by one person
            who is substituted: in what that person has.

        Raises
        ------
        ParameterError
            When the protocol has a delta of its own, as `GaussianMean` has.

        Notes
        -----
        The epsilon is that of `dpnoise.accounting.amplify_by_shuffling`, which holds for every protocol, or, if that is
        smaller, that of the privacy blanket of this protocol with its exact probabilities: for randomised response,
        unary encodings without a memo, local hashing, Hadamard response, subset selection and projective geometry
        response; or, for the other protocols that count values, of k = 2 values, that of every randomiser of one of two
        values. Every epsilon is computed from above, and the ``bound`` of the cost says which one it is.

        References
        ----------
        Balle, Bell, Gascon and Nissim (2019), "The privacy blanket of the shuffle model", lemma 5.3.

        Examples
        --------
        >>> from dpnoise import local
        >>> protocol = local.OptimizedUnaryEncoding(k=15, epsilon=1.0)
        >>> cost = protocol.shuffled_cost(n=10**4, delta=1e-6)
        >>> round(cost.epsilon, 3), cost.bound
        (0.03, 'blanket')
        """
        from dpnoise.accounting import ShuffledCost  # reports alone do not need it

        failure = real_down(delta, "delta")
        epsilon, bound = self._native.shuffled_epsilon(integer(n, "n", range(1, 2**64)), failure)
        return ShuffledCost(epsilon, failure, "substitute", bound=bound)

    def _collected(self, collected: Accumulator | Values, threads: int | None) -> Accumulator:
        """Return an accumulator of this protocol: the given one, or a new one with the given reports."""
        if isinstance(collected, Accumulator) and collected.protocol == self:
            return collected
        accumulator = self.accumulator()
        if not isinstance(collected, AnyAccumulator):
            accumulator.add(collected, threads=threads)
        elif not isinstance(collected, Accumulator):
            raise ParameterError(f"collected must be of {self!r}, got an accumulator of {collected.protocol!r}")
        else:
            self._native.check_same(collected.protocol._native, "collected")
            accumulator._state = collected._state  # only one of the protocols has labels
        return accumulator

    def _doubts(self, state: LocalAccumulator) -> Iterator[str]:
        """Say why the well-formed reports of a state, of which there are some, are not all of this protocol."""
        if self._is_unlikely(state):
            yield "some counts are far larger or smaller than any people's values make them"

    def _is_unlikely(self, state: LocalAccumulator) -> bool:
        """Tell whether honest people's reports, whatever their values, do not have such counters by chance."""
        raise NotImplementedError

    def perturb(
        self, values: Any, *, out: NDArray[Any] | None = None, threads: int | None = None, rng: Rng = None
    ) -> NDArray[Any]:
        """Randomise values, as each person's device does, for any number of people at once.

        Each report is (epsilon, delta)-locally differentially private for the achieved ``epsilon`` and ``delta``,
        provided that each person sends one.

        Parameters
        ----------
        values : array_like, shape (n,)
            A value for each person, of the kind that the protocol is for: numbers or labels of categories, numbers in a
            range, or texts. Protocols whose clients keep a memo take that, and a question, too.
        out : ndarray, optional
            An array to fill and return in place of a new one: writable, C-contiguous, of the shape and dtype of the
            result.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result's distribution.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can undo the randomisation.
            By default each call draws a fresh key from the operating system.

        Returns
        -------
        ndarray of uint8, shape (n, report_bytes)
            A report for each person. `RandomizedResponse` returns booleans of shape (n,).
        """
        return self._reports(self._vector(values), out, threads, rng)

    def _vector(self, values: Any) -> NDArray[Any]:
        """Copy people's values to an array that the randomiser takes, if they are of the right kind."""
        raise NotImplementedError  # raised by protocols whose clients keep a memo

    def _limits(self) -> tuple[float, float]:
        """Return the smallest and the largest number that the randomiser takes."""
        return 0, self._native.k - 1

    def _reports(
        self, values: NDArray[Any], out: NDArray[np.uint8] | None, threads: int | None, rng: Rng
    ) -> NDArray[np.uint8]:
        """Return a report for each value. Takes ownership of ``values``."""
        reports = array_for((len(values), self._native.report_bytes), out, np.uint8)
        self._native.perturb(values, reports, threads, rng)
        return reports

    def _reports_of(
        self,
        memo: ClientMemo,
        question: str,
        values: NDArray[np.int64],
        out: NDArray[np.uint8] | None,
        threads: int | None,
        rng: Rng,
    ) -> NDArray[np.uint8]:
        """Return a report for the value of each person of the memo. Takes ownership of ``values``."""
        if not isinstance(memo, ClientMemo):
            raise TypeError(f"memo must be a ClientMemo, got {type(memo).__name__}")
        check_normal(question, "question")
        reports = array_for((len(values), self._native.report_bytes), out, np.uint8)
        self._native.perturb_remembering(values, memo._secrets, question, reports, threads, rng)
        return reports


def protocol_from_json(text: str, *, domain: Labels | None = None, limit: int | None = COUNTER_LIMIT) -> Protocol:
    """Read the specification of a protocol of any kind.

    Parameters
    ----------
    text : str
        The specification as ``to_json`` gave it, or a document as ``to_document`` gave it; white space around it does
        not matter.
    domain : sequence of str, int or bool, optional
        What the values stand for, where ``text`` is a specification, which has only a digest of it: the labels in their
        order, or the two bounds of a mean.
    limit : int or None, default 134217728
        The most bytes that the counters of the protocol may have: 128 MiB by default, since a short specification may
        ask for much memory. None, for specifications of your own, allows any size.

    Returns
    -------
    Protocol
        The protocol, of the class of its family.

    Raises
    ------
    ParameterError
        When ``text`` is neither, was written again by another program, or its probabilities do not follow from its
        epsilon; when its counters have more than ``limit`` bytes; or when the domain is not that of the specification.
    """
    return Protocol.from_json(text, domain=domain, limit=limit)
