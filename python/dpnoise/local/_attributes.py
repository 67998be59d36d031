"""Several attributes of each person in one report: one of them, or all."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._errors import ParameterError
from dpnoise._interchange import Texts, Values
from dpnoise._parameters import at_least, fraction_of, integer, real
from dpnoise.local._accumulator import Accumulator, AnyAccumulator
from dpnoise.local._attribute_counts import AttributesAccumulator
from dpnoise.local._attribute_set import AttributeSet, Parts, Vectors, check_names
from dpnoise.local._density import SquareWave
from dpnoise.local._estimate import Post, check_post, normal_quantile, spread_over
from dpnoise.local._numbers import MeanProtocol
from dpnoise.local._protocol import FrequencyProtocol
from dpnoise.local._sketches import Sketch


class AttributesProtocol(AttributeSet):
    """What `Sampled` and `Split` share.

    Both are immutable, hashable, and equal when names, specifications and labels are.
    """

    __slots__ = ()

    def accumulator(self) -> AttributesAccumulator:
        """Make an empty accumulator for reports of these attributes.

        Returns
        -------
        AttributesAccumulator
        """
        return AttributesAccumulator(self)

    def estimate(
        self,
        collected: AttributesAccumulator | Values,
        *,
        level: float = 0.95,
        simultaneous: bool = False,
        post: Post | None = None,
        candidates: Mapping[str, Texts] | None = None,
        threads: int | None = None,
    ) -> dict[str, Any]:
        """Estimate each attribute as its protocol does.

        Parameters
        ----------
        collected : AttributesAccumulator, or ndarray of uint8, shape (n, report_bytes)
            An accumulator of these attributes, or reports as ``perturb`` made them.
        level : float
            The confidence level of the intervals, between 0 and 1.
        simultaneous : bool
            Whether all intervals of all d attributes hold together at that level (Bonferroni), rather than each by
            itself. The ``level`` in an estimate is then that of its own intervals together, ``1 - (1 - level) / d``,
            rounded up.
        post : str, optional
            How to make the counts of values consistent, as for `Accumulator.estimate`; it does not apply to attributes
            that are not counted by value.
        candidates : mapping of str to texts, optional
            For each attribute with a sketch, by its name, the texts to look for.
        threads : int, optional
            How many threads count reports; all cores that the process may use when not given.

        Returns
        -------
        dict of str to estimates
            For each attribute what ``estimate`` of its protocol gives: an `Estimate`, `MeanEstimate`,
            `DensityEstimate` and so on. Of `Sampled` it is about all n people, not only those who reported on the
            attribute.

        Raises
        ------
        ParameterError
            When there is no report about an attribute, ``collected`` is of other attributes or another shape, ``level``
            is not between 0 and 1 or so close to 1 that ``1 - (1 - level) / d`` rounds to it, ``post`` is not known, or
            candidates are missing or not for a sketch; the message names the attribute.
        TypeError
            When the dtype is wrong, ``simultaneous`` is not a bool, or candidates are not texts.
        """
        own_level = _level_of_one(level, spread_over(len(self._attributes), simultaneous))
        check_post(post)
        sketches = [name for name, protocol in self._attributes.items() if isinstance(protocol, Sketch)]
        texts = {} if candidates is None else candidates
        check_names(texts, sketches, "candidates")
        counted = self._collected(collected, threads)
        estimates = {}
        for name, protocol in self._attributes.items():
            if counted._counts[name].n == 0:
                raise ParameterError(f"collected must have reports about every attribute, got none about {name!r}")
            options: dict[str, Any] = {} if isinstance(protocol, SquareWave) else {"level": own_level}
            if isinstance(protocol, FrequencyProtocol | Sketch):
                options["simultaneous"] = simultaneous
            if isinstance(protocol, FrequencyProtocol):
                options["post"] = post
            if name in texts:
                options["candidates"] = texts[name]
            estimates[name] = self._estimate(protocol, counted._counts[name], counted.n, options)
        return estimates

    def variance(self, attribute: str, n: int, at: float = 0.0) -> float:
        """Predict the variance of an estimate about an attribute.

        Parameters
        ----------
        attribute : str
            The name of an attribute whose protocol has a method ``variance``: for counts of values, or for a mean.
        n : int
            The number of people who report, at least 1.
        at : float
            The true frequency of the value, from 0 to 1, or for a mean the number that all people have, from -1 to 1.

        Returns
        -------
        float
            That of a count, in people squared, or of a mean. For `Sampled` that when n / d people report on each of d
            attributes.

        Raises
        ------
        ParameterError
            When a parameter is out of range, or no attribute has the name.
        TypeError
            When a parameter is of the wrong type, or the protocol of the attribute has no such prediction.
        """
        if attribute not in self._attributes:
            raise ParameterError(
                f"attribute must be one of {', '.join(map(repr, self._attributes))}, got {attribute!r}"
            )
        protocol = self._attributes[attribute]
        if not isinstance(protocol, FrequencyProtocol | MeanProtocol):
            found = type(protocol).__name__
            raise TypeError(f"attribute must be one of counts of values or of a mean, got one of {found}")
        people, value = integer(n, "n", range(1, 2**64)), real(at, "at")
        counts = isinstance(protocol, FrequencyProtocol)
        least = 0 if counts else -1
        if not least <= value <= 1:
            raise ParameterError(f"at must be between {least} and 1 for {attribute!r}, got {at!r}")
        if counts:
            return people * self._variance_of_one(protocol.variance(1, value), value * (1.0 - value))
        return self._variance_of_one(protocol.variance(1, value), 0.0) / people

    def _collected(self, collected: AttributesAccumulator | Values, threads: int | None) -> AttributesAccumulator:
        """Give a new accumulator of these attributes, with the reports or with what was counted until now."""
        accumulator = self.accumulator()
        if not isinstance(collected, AnyAccumulator):
            accumulator.add(collected, threads=threads)
        elif not isinstance(collected, AttributesAccumulator) or self._contradicts(collected.protocol):
            raise ParameterError(f"collected must be of {self!r}, got an accumulator of {collected.protocol!r}")
        else:
            accumulator.merge(collected)
        return accumulator

    @abstractmethod
    def _estimate(self, protocol: Any, counted: Accumulator, n: int, options: Mapping[str, Any]) -> Any:
        """Estimate an attribute of n people."""

    @abstractmethod
    def _variance_of_one(self, of_report: float, of_value: float) -> float:
        """Give the variance per person, from that of an estimate from one report, and that of having the value."""


class Sampled(AttributesProtocol):
    """Several attributes, of which each person reports one, drawn at random, with the whole epsilon (SMP).

    Nearly always more accurate than `Split`: with d attributes the variance of a count is d times that of a protocol
    that asks for one attribute, plus a small term for the draw. With a d-th of epsilon, as for `Split`, it is about
    ``d**2`` times as large where epsilon is at most 1, and far larger above.

    Parameters
    ----------
    attributes : mapping of str to Protocol
        From 2 to 256 attributes: their names, and for each any protocol of this package whose clients keep no memo.
        They may be of different kinds: categories, numbers, ranges, texts. Usually all have the same epsilon.

    Raises
    ------
    ParameterError
        When the number of attributes is out of range, or a name is empty.
    TypeError
        When ``attributes`` is no mapping, a name is not a str, or a protocol is none or needs a memo.

    Notes
    -----
    A report is the number of the attribute in one byte, then the report of its protocol, padded with zeros to the
    longest. For two people with any different values, the draw has the same distribution, and given the draw the
    report is that of one protocol: so the epsilon is the largest one of the attributes. It is for all values of a
    person together. *Random sampling plus fake data* hides which attribute was drawn, at a larger epsilon and a larger
    error; the page of proofs has the derivation.

    The attribute is drawn before values are used, exactly uniformly, and is public: it is in the report. So choosing
    values and writing reports by it reveals nothing more. Only the attribute's protocol uses the value, in constant
    time.

    An estimate is about all n people. Counts are scaled by ``n / n_a`` for the n_a people who reported on the
    attribute. Standard errors are conditional on n_a, and contain both the noise of the protocol and the error of a
    sample without replacement: for a share f the variance is
    ``n**2 / n_a * (v + f * (1 - f) * (n - n_a) / (n - 1))``, with v that per report of the protocol.
    Means and distributions are those of the people who reported on the attribute, who are a random sample of all.

    References
    ----------
    Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu (2019), "Collecting and analyzing multidimensional data with local
    differential privacy", section IV; Arcolezi, Couchot, Al Bouna and Xiao (2021), "Random sampling plus fake data:
    multidimensional frequency estimates with local differential privacy".

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.Sampled(
    ...     attributes={
    ...         "colour": local.OptimizedUnaryEncoding(domain=["red", "green", "blue"], epsilon=1.0),
    ...         "satisfaction": local.HybridMean(epsilon=1.0),
    ...     }
    ... )
    >>> people = {"colour": ["red", "blue", "red"] * 1000, "satisfaction": [0.5, -1.0, 0.75] * 1000}
    >>> estimates = protocol.estimate(protocol.perturb(people))
    >>> estimates["colour"].n, estimates["colour"].counts.shape
    (3000, (3,))
    """

    __slots__ = ()
    _family = "sampled"
    _code = 128

    @property
    def epsilon(self) -> float:
        """The epsilon of the guarantee for all attributes of a person together: the largest of theirs."""
        return max(protocol.epsilon for protocol in self._attributes.values())

    @property
    def report_bytes(self) -> int:
        """The size of a report in bytes: one more than the longest report of an attribute."""
        return 1 + max(protocol.report_bytes for protocol in self._attributes.values())

    def _fill(self, reports: NDArray[np.uint8], vectors: Vectors, threads: int | None) -> None:
        drawn, parts = _uniform(len(reports), len(vectors)), []
        for number, (name, protocol) in enumerate(self._attributes.items()):
            people = np.flatnonzero(drawn == number)
            parts.append((people, protocol._reports(vectors[name][people], None, threads, None)))
        reports[:] = 0
        reports[:, 0] = drawn
        for people, part in parts:
            reports[people, 1 : 1 + part.shape[1]] = part

    def _parts(self, reports: NDArray[np.uint8]) -> tuple[Parts, dict[str, int]]:
        numbers, contents = reports[:, 0], reports[:, 1:]
        parts, padded = {}, 0
        for number, (name, protocol) in enumerate(self._attributes.items()):
            about, width = contents[numbers == number], protocol.report_bytes
            is_padded = about[:, width:].any(axis=1)
            padded += int(np.count_nonzero(is_padded))
            parts[name] = about[~is_padded, :width]
        unknown = int(np.count_nonzero(numbers >= len(parts)))
        return parts, {"unknown attribute": unknown, "padding set": padded}

    def _n(self, counts: Mapping[str, Accumulator]) -> int:
        return sum(counted.n for counted in counts.values())

    def _estimate(self, protocol: Any, counted: Accumulator, n: int, options: Mapping[str, Any]) -> Any:
        sample = Accumulator._of(counted._state, protocol._domain, people=n)
        return dataclasses.replace(protocol.estimate(sample, **options), n=n)

    def _variance_of_one(self, of_report: float, of_value: float) -> float:
        d = len(self._attributes)
        return d * of_report + (d - 1) * of_value


class Split(AttributesProtocol):
    """Several attributes, all of which each person reports, each with a share of epsilon (SPL).

    The epsilon of the guarantee is the sum of the attributes'. Take `Sampled` unless each person's attributes are
    needed together; `plan_attributes` compares the two.

    Parameters
    ----------
    attributes : mapping of str to Protocol
        From 2 to 256 attributes: their names, and for each any protocol of this package whose clients keep no memo,
        with its share of epsilon. They may be of different kinds: categories, numbers, ranges, texts.

    Raises
    ------
    ParameterError
        When the number of attributes is out of range, or a name is empty.
    TypeError
        When ``attributes`` is no mapping, a name is not a str, or a protocol is none or needs a memo.

    Notes
    -----
    A report is that of each attribute's protocol, in their order, side by side.

    Examples
    --------
    >>> from dpnoise import local
    >>> answers = {name: local.RandomizedResponse(epsilon=0.5) for name in ("smokes", "drinks")}
    >>> protocol = local.Split(attributes=answers)
    >>> 0.999 <= protocol.epsilon <= 1.0, protocol.report_bytes
    (True, 2)
    """

    __slots__ = ()
    _family = "split"
    _code = 129

    @property
    def epsilon(self) -> float:
        """The epsilon of the guarantee for all attributes of a person together: their sum, rounded up."""
        return at_least(sum(Fraction(protocol.epsilon) for protocol in self._attributes.values()))

    @property
    def report_bytes(self) -> int:
        """The size of a report in bytes: the sum of those of the attributes."""
        return sum(protocol.report_bytes for protocol in self._attributes.values())

    def _fill(self, reports: NDArray[np.uint8], vectors: Vectors, threads: int | None) -> None:
        parts = [one._reports(vectors[name], None, threads, None) for name, one in self._attributes.items()]
        np.concatenate(parts, axis=1, out=reports)

    def _parts(self, reports: NDArray[np.uint8]) -> tuple[Parts, dict[str, int]]:
        ends = np.cumsum([protocol.report_bytes for protocol in self._attributes.values()])
        return dict(zip(self._attributes, np.split(reports, ends[:-1], axis=1), strict=True)), {}

    def _n(self, counts: Mapping[str, Accumulator]) -> int:
        return max(counted.n + counted.rejected for counted in counts.values())  # the same for all

    def _estimate(self, protocol: Any, counted: Accumulator, n: int, options: Mapping[str, Any]) -> Any:
        return protocol.estimate(counted, **options)

    def _variance_of_one(self, of_report: float, of_value: float) -> float:
        return of_report


def _level_of_one(level: float, d: int) -> float:
    """Give the level of the intervals of each of d attributes, at which all hold together at the given one."""
    normal_quantile(level)  # checks the level
    own = at_least(1 - (1 - fraction_of(level)) / d)
    if own == 1.0:
        raise ParameterError(f"level must be smaller for {d} attributes together, whose own rounds to 1, got {level!r}")
    return own


def _uniform(n: int, d: int) -> NDArray[np.uint8]:
    """Draw n numbers below d, each exactly uniform: a byte that would favour some of them is drawn again."""
    most = 256 - 256 % d
    drawn = np.frombuffer(_native.random_bytes(n), np.uint8).copy()
    while (again := np.flatnonzero(drawn >= most)).size:
        drawn[again] = np.frombuffer(_native.random_bytes(again.size), np.uint8)
    return (drawn % np.uint16(d)).astype(np.uint8)
