"""Histograms of values that nobody has listed: clients take part at random, and rare values are left out."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from itertools import islice
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpnoise import _columns, _native
from dpnoise._arrays import is_missing
from dpnoise._errors import ParameterError
from dpnoise._numbers import checked_level, integer, real_down
from dpnoise._types import Integer, Number, Rng, Values
from dpnoise.local._estimate import EstimateTable, intervals, normal_quantile, spread_over
from dpnoise.mechanisms import Mechanism
from dpnoise.samplers import bernoulli
from dpnoise.sensitivity import Relation, check_relation

_RELEASED: Final = "has been released"


class SampleAndThreshold(Mechanism):
    """The counts of values that nobody has listed, without noise: of a random sample, and only of frequent values.

    Each person's device tosses a coin, and sends the plain value with the probability ``sample_rate``, or else nothing.
    The collector counts the reports, and releases the values of at least ``threshold`` reports with these counts, and
    nothing else. The release is (epsilon, delta)-differentially private.

    **This is not local privacy.** A report is a value as it is, which only the sample, the removal of its sender and
    the threshold protect. Whoever counts the reports, or sees a rare one, must be trusted.

    Parameters
    ----------
    epsilon : float
        The privacy parameter: above 0 and at most 32. For "substitute" it must be at least
        ``ln(1 / (1 - sample_rate))``.
    delta : float, optional
        The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than one over the number of
        people. Exactly two of ``delta``, ``threshold`` and ``sample_rate`` are given; the third one is the best that
        they allow: by default the least delta.
    threshold : int, optional
        The smallest number of reports of a value that is released, from 1 to 65536; by default the least that ``delta``
        and ``sample_rate`` allow.
    sample_rate : float, optional
        The probability with which a person takes part, at least ``2**-40`` and below 1; by default the largest that
        ``delta`` and ``threshold`` allow.
    relation : {"add/remove", "substitute"}, default "add/remove"
        Which data sets are neighbours: ``"add/remove"``: one row is added or removed, and the number of rows is
        private; ``"substitute"``: one row is replaced, and the number of rows is public. A row is a person. For
        "substitute" the computed delta is a bound, far above the truth for large thresholds; for "add/remove" it is
        exact.

    Raises
    ------
    ParameterError
        When not exactly two of ``delta``, ``threshold`` and ``sample_rate`` are given, or no allowed value of the third
        one suffices.

    Notes
    -----
    Delta is the largest difference of the probabilities of waiting times, computed from above, for any number of other
    people; the documentation has the proof. It assumes that at most one value of a person is reported, after one toss,
    and that the coins of all others are secret: who sends ``threshold - 1`` reports of a guessed value sees the next
    report of it.

    References
    ----------
    Bharadwaj and Cormode (2022), "Sample and threshold differential privacy: histograms and applications", whose delta
    in closed form is larger.

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.SampleAndThreshold(epsilon=1.0, delta=1e-8, threshold=20)
    >>> round(protocol.sample_rate, 4)
    0.2514
    >>> collected = protocol.accumulator()
    >>> collected.add(protocol.sample(["tea"] * 4000 + ["xyzzy"]))
    >>> protocol.release(collected).values
    ['tea']
    """

    __slots__ = ("_delta", "_epsilon", "_relation", "_sample_rate", "_threshold")

    _parameters = ("epsilon", "threshold", "sample_rate", "relation")
    _reason = "its release has the standard error of each count"

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        threshold: Integer | None = None,
        sample_rate: Number | None = None,
        relation: Relation = "add/remove",
    ) -> None:
        given = {"delta": delta, "threshold": threshold, "sample_rate": sample_rate}
        names = [name for name, value in given.items() if value is not None]
        if len(names) != 2:
            raise ParameterError(f"two of {', '.join(given)} must be given, got {' and '.join(names) or 'none'}")
        check_relation(relation)
        self._epsilon, self._relation = real_down(epsilon, "epsilon"), relation
        if threshold is not None:
            self._threshold = integer(threshold, "threshold", range(1, 2**16 + 1))
        if sample_rate is not None:
            self._sample_rate = real_down(sample_rate, "sample_rate")
        if delta is not None:
            goal = self._epsilon, real_down(delta, "delta")
            if threshold is None:
                self._threshold = _native.least_threshold(*goal, self._sample_rate, relation)
            else:
                self._sample_rate = _native.largest_sample_rate(*goal, self._threshold, relation)
        self._delta = _native.sample_and_threshold_delta(self._epsilon, self._sample_rate, self._threshold, relation)

    @property
    def epsilon(self) -> float:
        """The epsilon of a release."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """The delta that is achieved: at most the given one."""
        return self._delta

    @property
    def threshold(self) -> int:
        """The smallest number of reports that is released."""
        return self._threshold

    @property
    def sample_rate(self) -> float:
        """The probability with which a person takes part, exactly: every binary digit of it counts."""
        return self._sample_rate

    @property
    def relation(self) -> Relation:
        """The neighbouring relation, "add/remove" or "substitute"."""
        return self._relation

    def sample(self, values: Values, *, threads: int | None = None, rng: Rng = None) -> list[Any]:
        """Decide who takes part, as each person's device does, for any number of people at once.

        Call it once for a person and release: a device that repeats it takes part more often than is accounted for.

        Parameters
        ----------
        values : list, array or column
            A value for each person: all texts, all numbers or all booleans. Missing values never take part.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result's distribution.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can tell who takes part. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        list
            The values of those who take part, in their order, which the shuffler must remove. They are for an
            `accumulator`: `release` of a list would draw a sample of the sample.
        """
        # Beside a missing value integers would become floats, and so one missing row would change many values.
        column = _columns.column_of(values, "values", missing=False)
        reports: list[Any] = column[bernoulli(self._sample_rate, size=len(column), threads=threads, rng=rng)].tolist()
        if column.dtype.kind in "biuSU":
            return reports
        return [value for value in reports if not is_missing(value)]

    def accumulator(self) -> ThresholdAccumulator:
        """Make an empty accumulator for reports of this protocol."""
        return ThresholdAccumulator(self)

    def release(
        self,
        collected: ThresholdAccumulator | Values,
        *,
        level: Number = 0.95,
        simultaneous: bool = False,
        rng: Rng = None,
    ) -> ThresholdEstimate:
        """Release the frequent values, and estimate how many people have each of them.

        Every sample is a release with a `cost` of its own, for which `dpnoise.accounting.Ledger.release` pays. Each
        report may be in one release only: two counts of it, before and after others came, show single reports. So an
        accumulator takes no more reports after its release.

        Parameters
        ----------
        collected : ThresholdAccumulator, or array_like
            An accumulator of this protocol with the reports of those who take part. Or the values of all people, all
            texts, all numbers or all booleans: then the sample is drawn here.
        level : float, default 0.95
            The probability with which an interval holds: between 0 and 1, both excluded.
        simultaneous : bool, default False
            Whether all intervals hold together at ``level`` (Bonferroni), or each by itself.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can tell who takes part. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        ThresholdEstimate
            The frequent values, the most frequent first.
        """
        level = checked_level(level)
        collected = self._taken(collected)
        if not isinstance(collected, ThresholdAccumulator):
            values, collected = collected, self.accumulator()
            collected.add(self.sample(values, rng=rng))
        collected._end = _RELEASED
        counts = collected._counts
        frequent = [(value, count) for value, count in counts.items() if count >= self._threshold]
        frequent.sort(key=lambda found: (-found[1], found[0]))  # not in the order of arrival
        quantile = normal_quantile(level, spread_over(max(len(frequent), 1), simultaneous))
        rate, reports = self._sample_rate, np.array([count for _, count in frequent], np.int64)
        counts_of_all, standard_errors = reports / rate, np.sqrt(reports * (1 - rate)) / rate
        lower, upper = intervals(counts_of_all, standard_errors, quantile)
        reports.flags.writeable = False
        return ThresholdEstimate(
            values=[value for value, _ in frequent],
            reports=reports,
            counts=counts_of_all,
            standard_errors=standard_errors,
            lower=lower,
            upper=upper,
            level=level,
            simultaneous=simultaneous,
            threshold=self._threshold,
            sample_rate=rate,
            visible_from=self.visible_from(level),
        )

    def _taken(self, x: Any) -> Any:
        """Refuse, before a ledger pays, what cannot be released."""
        if not isinstance(x, ThresholdAccumulator):
            x = _columns.held_column(x, "values")
            _columns.counts(x, "values")
        elif x.protocol != self:
            raise ParameterError(f"collected must be of {self!r}, got an accumulator of {x.protocol!r}")
        elif x._end != _RELEASED:  # whose release again is the same one
            x._check_open("collected")
        return x

    def visible_from(self, level: Number = 0.95) -> int:
        """Return how many people must have a value for it to be released with this probability.

        Parameters
        ----------
        level : float, default 0.95
            The probability with which the value is released: between 0 and 1, both excluded.

        Returns
        -------
        int
            The number of people, at least the threshold.
        """
        level = checked_level(level)
        rate, others = self._sample_rate, np.arange(1, self._threshold)
        odds = rate / (1 - rate)

        def is_enough(people: int) -> bool:
            logarithms = np.cumsum(np.log(odds * ((people + 1 - others) / others)))
            none = people * math.log1p(-rate)
            return math.exp(none) + float(np.exp(none + logarithms).sum()) <= 1 - level

        low, high = self._threshold - 1, self._threshold
        while not is_enough(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return high


class ThresholdAccumulator:
    """The collector's counts of reports: **private**, as they include the values of single people.

    Only the result of `SampleAndThreshold.release` may leave the collector. The guarantee needs each report to be
    counted once, and in one release: a batch that is added twice, or an accumulator that is merged twice, makes one
    person two. So it cannot be copied. A pickle, for another process of the collector, has all counts: protect it like
    the reports, and release or merge only one of an accumulator, its pickles and what a forked child has of it.

    Parameters
    ----------
    protocol : SampleAndThreshold
        The protocol of the reports.
    """

    __slots__ = ("_counts", "_end", "_protocol")

    def __init__(self, protocol: SampleAndThreshold) -> None:
        if not isinstance(protocol, SampleAndThreshold):
            raise TypeError(f"protocol must be a SampleAndThreshold, got {type(protocol).__name__}")
        self._protocol = protocol
        self._counts: Counter[Any] = Counter()
        self._end: str | None = None

    @property
    def protocol(self) -> SampleAndThreshold:
        """The protocol of the reports."""
        return self._protocol

    def add(self, reports: Values) -> None:
        """Count sampled values.

        Parameters
        ----------
        reports : array_like
            Values as `SampleAndThreshold.sample` gave them: all texts, all numbers or all booleans. Missing values are
            left out. They are taken for a sample: **values of all people would be released unprotected.**

        Raises
        ------
        ParameterError
            After a release.
        """
        self._check_open("reports")
        self._add(_columns.counts(reports, "reports"), "reports")

    def merge(self, other: ThresholdAccumulator) -> None:
        """Add the counts of another accumulator, which holds other reports.

        Parameters
        ----------
        other : ThresholdAccumulator
            An accumulator of the same protocol, neither released nor merged before. Its reports are in this one from
            now on.
        """
        if not isinstance(other, ThresholdAccumulator):
            raise TypeError(f"other must be a ThresholdAccumulator, got {type(other).__name__}")
        if other._protocol != self._protocol:
            raise ParameterError(f"other must be an accumulator of {self._protocol!r}, got one of {other._protocol!r}")
        if other is self:
            raise ParameterError("other must be another accumulator, got the same one: its reports would count twice")
        self._check_open("other")
        other._check_open("other")
        self._add(other._counts, "other")
        other._end = "has been merged into another one"

    def _check_open(self, name: str) -> None:
        if self._end is not None:
            raise ParameterError(
                f"{name} must be of an accumulator that takes reports, and this one {self._end}: reports that are "
                f"counted in two releases are not protected"
            )

    def _add(self, counts: dict[Any, int], name: str) -> None:
        kinds = [_columns.common_kind(islice(some, 1)) for some in (self._counts, counts) if some]
        if len(set(kinds)) > 1:
            raise TypeError(f"{name} must be {kinds[0]}, as those before, got {kinds[1]}")
        self._counts.update(counts)

    def __copy__(self) -> NoReturn:
        """Refuse: a copy would count the same reports in a second release."""
        raise TypeError(
            "a ThresholdAccumulator cannot be copied, since reports in two releases are not protected: pickle it to "
            "move it to another process"
        )

    def __deepcopy__(self, memo: object) -> NoReturn:
        """Refuse, as `__copy__` does."""
        self.__copy__()

    def __repr__(self) -> str:
        """Show the protocol: the counts are private, and so is their number."""
        return f"<ThresholdAccumulator of {self._protocol!r}>"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ThresholdEstimate(EstimateTable):
    """The values of many people and how many people have each of them, the most frequent first.

    As a table it has the columns value, count, standard_error, lower and upper (float64).

    Attributes
    ----------
    values : list
        The values that are released.
    reports : ndarray of int64
        How many reports have each value: at least the threshold.
    counts : ndarray of float64
        How many people have each value, ``reports / sample_rate``. Counts are unbiased for values that are released
        almost surely, and too large on average for those that just passed the threshold.
    standard_errors : ndarray of float64
        The standard deviation of each count over the sample, ``sqrt(reports * (1 - sample_rate)) / sample_rate``.
    lower, upper : ndarray of float64
        The ends of the confidence intervals, by the normal approximation.
    level : float
        The probability with which an interval holds.
    simultaneous : bool
        Whether all intervals hold together at ``level`` (Bonferroni), or each by itself.
    threshold : int
        The threshold of the protocol. A value of fewer people than the threshold is always missing.
    sample_rate : float
        The probability with which a person took part.
    visible_from : int
        How many people must have a value for it to be released with the probability ``level``; values of fewer people
        may be missing.
    """

    values: list[Any]
    reports: NDArray[np.int64]
    counts: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    level: float
    simultaneous: bool
    threshold: int
    sample_rate: float
    visible_from: int

    def _values(self) -> list[Any]:
        return self.values
