"""The state of a collector of several attributes."""

from __future__ import annotations

from dpnoise import _native
from dpnoise._errors import ParameterError
from dpnoise._interchange import Values
from dpnoise.local._accumulator import AnyAccumulator
from dpnoise.local._attribute_set import AttributeSet


class AttributesAccumulator(AnyAccumulator):
    """The collector's counters for several attributes: an `Accumulator` for each of them, with one state.

    As for `Accumulator`, memory does not grow with the number of reports, the result is bit-identical however reports
    are split over accumulators, and several threads may add to one.

    Parameters
    ----------
    protocol : Sampled or Split
        The attributes with their protocols.

    Raises
    ------
    TypeError
        When ``protocol`` is neither.

    Examples
    --------
    >>> from dpnoise import local
    >>> answers = {name: local.RandomizedResponse(epsilon=1.0) for name in ("smokes", "drinks")}
    >>> protocol = local.Sampled(attributes=answers)
    >>> total = protocol.accumulator()
    >>> total.add(protocol.perturb({"smokes": [True, False, True], "drinks": [False, False, True]}))
    >>> total.n, sum(total.n_by_attribute.values())
    (3, 3)
    """

    __slots__ = ()

    _protocol: AttributeSet

    def __init__(self, protocol: AttributeSet) -> None:
        if not isinstance(protocol, AttributeSet):
            raise TypeError(f"protocol must be Sampled or Split, got {type(protocol).__name__}")
        self._protocol = protocol
        self._state = _native.LocalAccumulator(protocol._native)

    @classmethod
    def _of(cls, state: _native.LocalAccumulator) -> AttributesAccumulator:
        if not isinstance(state.protocol, _native.LocalAttributes):
            raise ParameterError(
                "state must be of several attributes, got that of one protocol: use Accumulator.from_bytes"
            )
        accumulator = cls.__new__(cls)
        accumulator._state = state
        accumulator._protocol = AttributeSet._of(state.protocol, {})
        return accumulator

    @property
    def n_by_attribute(self) -> dict[str, int]:
        """The number of reports counted about each attribute."""
        return dict(zip(self._protocol.attributes, self._state.n_by_attribute, strict=True))

    def add(self, reports: Values, *, threads: int | None = None, strict: bool = False) -> None:
        """Count reports.

        Malformed ones are counted as rejected: those that the protocol of their attribute rejects and, of `Sampled`,
        those with the number of no attribute, or with padding that is not zero. In a report of `Split` a malformed part
        costs that part alone: each attribute is estimated from the parts about it, so the others lose nothing.

        Parameters
        ----------
        reports : ndarray of uint8, shape (n, report_bytes)
            As ``perturb`` made them.
        threads : int, optional
            How many threads to use; all cores that the process may use when not given.
        strict : bool
            Whether a malformed report is an error.

        Raises
        ------
        ParameterError
            When the shape is wrong, or a report is malformed and ``strict`` is true. Nothing has been added then.
        TypeError
            When the dtype is wrong.
        """
        part = _native.LocalAccumulator(self._protocol._native)
        part.add(self._protocol._rows(reports), self._protocol.report_bytes, threads)
        self._merge_part(part, strict)
