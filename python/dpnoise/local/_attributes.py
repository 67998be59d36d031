"""Several attributes of each person in one report: one of them, or all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpnoise._errors import ParameterError
from dpnoise._native import LocalAccumulator, LocalAttributes, LocalProtocol
from dpnoise._numbers import at_least, check_text, fraction_of
from dpnoise._types import Integer, Number, Texts, Values
from dpnoise.local._accumulator import Accumulator, AnyAccumulator
from dpnoise.local._attribute_set import AttributeSet, check_names
from dpnoise.local._doubt import of_malformed, warn
from dpnoise.local._estimate import Post, check_post, normal_quantile, spread_over
from dpnoise.local._frequency import FrequencyProtocol
from dpnoise.local._numbers import MeanProtocol, SquareWave
from dpnoise.local._sketches import Sketch
from dpnoise.local._specification import wrap


class AttributesAccumulator(AnyAccumulator):
    """The collector's counters for several attributes: an `Accumulator` for each of them, with one state.

    Memory does not grow with the number of reports, the result is bit-identical however reports are split over
    accumulators, and several threads may add to one accumulator.

    Parameters
    ----------
    protocol : Sampled or Split
        The attributes with their protocols.

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
        self._state = LocalAccumulator(protocol._native)

    @classmethod
    def _named(cls, specification: LocalProtocol | LocalAttributes) -> AttributeSet:
        if isinstance(specification, LocalAttributes):
            return wrap(specification)  # type: ignore[return-value] # of several attributes
        raise ParameterError(
            "state must be of several attributes, got that of one protocol: use Accumulator.from_bytes"
        )

    @property
    def n_by_attribute(self) -> dict[str, int]:
        """The number of reports counted about each attribute."""
        return dict(zip(self._protocol.attributes, self._state.n_by_attribute, strict=True))

    def add(self, reports: Values, *, threads: int | None = None, strict: bool = False) -> None:
        """Count reports.

        Malformed reports are counted as rejected: those that the protocol of their attribute rejects and, of `Sampled`,
        those with the number of no attribute, or with padding that is not zero. In a report of `Split` a malformed part
        costs that part alone: each attribute is estimated from the parts about it, so the others lose nothing.

        Parameters
        ----------
        reports : ndarray of uint8, shape (n, report_bytes)
            Reports as ``perturb`` made them.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result.
        strict : bool, default False
            Whether a malformed report is an error, so that nothing is added; by default it is counted as rejected.

        Raises
        ------
        ParameterError
            When a report is malformed and ``strict`` is true.
        """
        part = LocalAccumulator(self._protocol._native)
        part.add(self._protocol._rows(reports), self._protocol.report_bytes, threads)
        self._merge_part(part, strict)


class _Part(Accumulator):
    """The counters of one of the attributes, whose doubts the estimate of all of them names."""

    __slots__ = ()

    def _for_estimate(self) -> LocalAccumulator:
        return self._state


class AttributesProtocol(AttributeSet):
    """What `Sampled` and `Split` share.

    Both are immutable, hashable, and equal when names, specifications and labels are.

    Parameters
    ----------
    attributes : mapping of str to Protocol
        From 2 to 256 attributes: their names, and for each any protocol of this package whose clients keep no memo.
    """

    __slots__ = ()

    def accumulator(self) -> AttributesAccumulator:
        """Make an empty accumulator for reports of these attributes.

        Returns
        -------
        AttributesAccumulator
            An accumulator without reports.
        """
        return AttributesAccumulator(self)

    def estimate(
        self,
        collected: AttributesAccumulator | Values,
        *,
        level: Number = 0.95,
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
        level : float, default 0.95
            The probability with which an interval holds: between 0 and 1, both excluded.
        simultaneous : bool, default False
            Whether all intervals of all d attributes hold together at ``level`` (Bonferroni), or each by itself. The
            ``level`` in an estimate is then that of its own intervals together, ``1 - (1 - level) / d``, rounded up.
        post : str, optional
            How to make the counts of values consistent: "base-cut", "norm", "norm-mul", "norm-sub", "norm-cut" or
            "simplex", which `Accumulator.estimate` describes; by default they are unbiased. These do not apply to
            attributes that are not counted by value.
        candidates : mapping of str to sequence of str or of bytes, optional
            For each attribute with a sketch, by its name, the texts to look for. By default no attribute has a sketch.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result.

        Returns
        -------
        dict of str to estimates
            For each attribute what ``estimate`` of its protocol gives: an `Estimate`, `MeanEstimate`,
            `DensityEstimate` and so on. Of `Sampled` it is about all n people, not only those who reported on the
            attribute.

        Raises
        ------
        ParameterError
            When there is no report about an attribute, ``level`` is so close to 1 that ``1 - (1 - level) / d`` rounds
            to it, or candidates are missing or not for a sketch; the message names the attribute.
        """
        own_level = _level_of_one(level, spread_over(len(self._attributes), simultaneous))
        check_post(post)
        sketches = [name for name, protocol in self._attributes.items() if isinstance(protocol, Sketch)]
        texts = {} if candidates is None else candidates
        check_names(texts, sketches, "candidates")
        state = self._collected(collected, threads)
        parts = [
            _Part._around(part, own) for own, part in zip(self._attributes.values(), state.attributes(), strict=True)
        ]
        noun = "reports" if isinstance(self, Sampled) else "parts of reports"
        malformed = of_malformed(state.rejected_reasons, sum(state.n_by_attribute), noun)
        pairs = list(zip(self._attributes, parts, strict=True))
        warn(self, [*malformed, *(f"{name!r}: {doubt}" for name, part in pairs for doubt in part._doubts())])
        estimates = {}
        for name, counted in pairs:
            protocol = self._attributes[name]
            if counted.n == 0:
                raise ParameterError(f"collected must have reports about every attribute, got none about {name!r}")
            options: dict[str, Any] = {} if isinstance(protocol, SquareWave) else {"level": own_level}
            if isinstance(protocol, FrequencyProtocol | Sketch):
                options["simultaneous"] = simultaneous
            if isinstance(protocol, FrequencyProtocol):
                options["post"] = post
            if name in texts:
                options["candidates"] = texts[name]
            estimates[name] = protocol.estimate(counted, **options)  # type: ignore[attr-defined] # all have it
        return estimates

    def variance(self, attribute: str, n: Integer, at: Number = 0.0) -> float:
        """Predict the variance of an estimate about an attribute.

        Parameters
        ----------
        attribute : str
            The name of an attribute whose protocol has a method ``variance``: for counts of values, or for a mean.
        n : int
            The number of people who report, from 1 to 2**64 - 1.
        at : float, default 0.0
            The true frequency of the value, from 0 to 1, or for a mean the number that all people have: from -1 to
            1, or within its bounds.

        Returns
        -------
        float
            The variance: of a count in people squared, or of a mean. For `Sampled` it is the variance when n / d people
            report on each of d attributes.
        """
        check_text(attribute, "attribute")
        protocol = self._attributes.get(attribute)
        position, factor = protocol._at(at, "at") if isinstance(protocol, MeanProtocol) else (at, 1.0)
        return factor * self._native.variance(attribute, n, position)

    def _collected(self, collected: AttributesAccumulator | Values, threads: int | None) -> LocalAccumulator:
        """Return the given accumulator, or a new one with the given reports."""
        if not isinstance(collected, AnyAccumulator):
            accumulator = self.accumulator()
            accumulator.add(collected, threads=threads)
            return accumulator._state
        if not isinstance(collected, AttributesAccumulator):
            raise ParameterError(f"collected must be of {self!r}, got an accumulator of {collected.protocol!r}")
        self._native.check_same(collected.protocol._native, "collected")
        return collected._state


class Sampled(AttributesProtocol):
    """Several attributes, of which each person reports one, drawn at random, with the whole epsilon (SMP).

    A report is (epsilon, delta)-locally differentially private for the largest epsilon and delta of the attributes.
    Nearly always more accurate than `Split`: with d attributes the variance of a count is d times that of a protocol
    that asks for one attribute, plus a small term for the draw. With a d-th of epsilon, as in `Split`, it is about
    ``d**2`` times as large where epsilon is at most 1, and far larger above.

    Parameters
    ----------
    attributes : mapping of str to Protocol
        From 2 to 256 attributes: their names, and for each any protocol of this package whose clients keep no memo.
        They may be of different kinds: categories, numbers, ranges, texts. Usually all have the same epsilon.

    Notes
    -----
    A report is the number of the attribute in one byte, then the report of its protocol, padded with zeros to the
    longest. For two people with any different values, the draw has the same distribution, and given the draw the
    report is that of one protocol: so epsilon and delta are the largest of the attributes. They are for all values of a
    person together. *Random sampling plus fake data* hides which attribute was drawn, at a larger epsilon and a larger
    error; the page of proofs has the derivation.

    The attribute is drawn before values are used, exactly uniformly, and is public: it is in the report. So choosing
    values and writing reports by it reveals nothing more. Only the attribute's protocol uses the value, in constant
    time.

    An estimate is about all n people. Counts are scaled by ``n / n_a`` for the n_a people who reported on the
    attribute. Standard errors are conditional on n_a, and contain both the noise of the protocol and the error of a
    sample without replacement: for a share f the variance is
    ``n**2 / n_a * (v + f * (1 - f) * (n - n_a) / (n - 1))``, with v the variance per report of the protocol.
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
    _scheme = "sampled"


class Split(AttributesProtocol):
    """Several attributes, all of which each person reports, each with a share of epsilon (SPL).

    A report is (epsilon, delta)-locally differentially private for the sums of the epsilons and deltas of the
    attributes. Take `Sampled` unless each person's attributes are needed together; `plan_attributes` compares the two.

    Parameters
    ----------
    attributes : mapping of str to Protocol
        From 2 to 256 attributes: their names, and for each any protocol of this package whose clients keep no memo,
        with its share of epsilon. They may be of different kinds: categories, numbers, ranges, texts.

    Notes
    -----
    A report has the reports of the attributes' protocols side by side, in the order of the attributes.

    Examples
    --------
    >>> from dpnoise import local
    >>> answers = {name: local.RandomizedResponse(epsilon=0.5) for name in ("smokes", "drinks")}
    >>> protocol = local.Split(attributes=answers)
    >>> 0.999 <= protocol.epsilon <= 1.0, protocol.report_bytes
    (True, 2)
    """

    __slots__ = ()
    _scheme = "split"


def _level_of_one(level: Number, d: int) -> float:
    """Return the level of the intervals of each of d attributes, at which all hold together at the given one."""
    normal_quantile(level)  # checks the level
    own = at_least(1 - (1 - fraction_of(level)) / d)
    if own == 1.0:
        raise ParameterError(f"level must be smaller for {d} attributes together, whose own rounds to 1, got {level!r}")
    return own
