"""The stable bootstrap: Algorithm 14 of Dwork and Roth (2014)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dpnoise._arrays import held_numbers
from dpnoise._columns import held_column
from dpnoise._display import progress
from dpnoise._errors import ParameterError
from dpnoise._native import StabilityTest, Subsets
from dpnoise._numbers import integer
from dpnoise._types import Integer, Number, Rng
from dpnoise.sensitivity import Relation
from dpnoise.stability._mechanism import Attempt, Parameter, StableMechanism, released, stability_test, warn_of_large
from dpnoise.stability._rows import held_rows
from dpnoise.stability._subset_votes import NativeFunction, NativeName, PythonFunction, Votes, check_name

TOO_OFTEN: Final = "a row was in too many subsets"
NO_VALUE: Final = "f had no value more often than any one value"

_HOUR: Final = 3600.0


class StableBootstrap(StableMechanism):
    """The commonest value of any function on random subsets of the rows, if they agree well enough.

    A subset contains each row independently, with probability q = epsilon / (64 ln(1/delta)). The function is called on
    m = ln(n/delta) / q^2 subsets of the n rows, rounded up, and the lead of its commonest value over the next is tested
    for stability. The release is (epsilon, delta)-differentially private between data in which one row is replaced by
    another, whatever the function does; the number n of rows is public. If three quarters of the subsets agree on a
    value in expectation, and epsilon <= 1.7 ln(1/delta), it is released with a probability of at least 1 - 3 delta.

    Parameters
    ----------
    f : str or callable
        The function. Native functions, given by name, take about a microsecond for a hundred rows:

        - "mode": the commonest value; the smallest if there are several. The data are one column, of finite numbers, of
          texts or of booleans: a NumPy array, list, pandas or polars series, or Arrow array. Whole numbers are released
          as int.
        - "median": the lower median of a column of numbers, the value of rank ceil(size / 2), as float. It is stable
          where many rows have the same value, as binned numbers do.
        - "argmax_column_sum": the column of a matrix with the largest sum, the first if there are several: an int. The
          data are of shape (rows, columns), of finite numbers of at most 2**990 in magnitude; they are added up as
          float64.

        A callable is called with the rows of a subset in their order in the data, in the same kind of container (a list
        for a tuple). A subset may be empty. Subsets of arrays, tables and columns are rebuilt from their own rows, as
        `SubsampleAndAggregate` says: all numbers are float64. The value must depend on these rows only. If the function
        kept state between calls, also in the items of a list or in a global random generator, one row could change its
        values on other subsets. So could the order of a set of texts, which differs between processes. The value must
        be hashable, and picklable unless it is a number, text, bytes, None, or a tuple or frozenset of such. These may
        be nested at most 32 deep. The released value is rebuilt from the pickle or its items, with whole numbers as
        int. Subsets on which the function raises, or returns something else, count together as having no value, which
        is never released.
    epsilon : float
        The privacy parameter: from 2**-40, below 32 ln(1/delta), and above ln(n/delta) ln(1/delta) 2**-25 for n rows.
    delta : float
        The privacy parameter: between 0 and 1, both excluded. Choose it much smaller than 1/n, for n rows.
    processes : int, optional
        The number of processes that call a callable ``f``, from 1 to 2**15 - 1; by default this process does. Native
        functions take none. With more than one they are spawned: the callable must be a function that they can import,
        and a script needs ``if __name__ == "__main__":``. A subset on which three processes died counts as one on which
        the function raised.
    allow_long : bool, default False
        Whether to start when the estimated time is more than an hour.

    Notes
    -----
    m is 2 * 10^7 for epsilon = 1, delta = 10^-6 and 10^5 rows, and grows with 1 / epsilon^2. So the time is estimated
    before the run starts; a progress bar (on a terminal, with the extra ``cli``) shows the estimate. For native
    functions it is measured with zeros in place of the data, and with as many values as there are rows. For a callable
    it is measured with the data, so it can reveal as much about them as the time of the whole run does. It is rounded
    up to a power of two of minutes, hours or days. If time must reveal nothing, the time of the function must not
    depend on the data; `try_on` estimates it from made-up rows. Nothing else about single calls is shown, but what the
    function prints or writes is not hidden.

    Each different value of a callable takes memory, so there should be few.

    References
    ----------
    Smith and Thakurta (2013), "Differentially private feature selection via stability arguments, and the robustness of
    the lasso"; Dwork and Roth (2014), "The algorithmic foundations of differential privacy", Algorithm 14, Theorem 7.3
    and Lemma 7.4.

    Examples
    --------
    >>> import numpy as np
    >>> from dpnoise import stability
    >>> visits = np.random.default_rng().poisson([3.0, 1.0, 0.5], size=(20_000, 3))
    >>> stability.StableBootstrap(f="argmax_column_sum", epsilon=5.0, delta=1e-6).release(visits)
    0
    """

    __slots__ = ()

    _parameters = ("f", "epsilon", "delta", "processes", "allow_long")

    f: Any = Parameter()
    processes: Any = Parameter()
    allow_long: Any = Parameter()

    def __init__(
        self,
        *,
        f: NativeName | Callable[[Any], Any],
        epsilon: Number,
        delta: Number,
        processes: int | None = None,
        allow_long: bool = False,
    ) -> None:
        self._native = stability_test(epsilon, delta)
        _sample_rate(self.epsilon, self.delta)
        if isinstance(f, str):
            check_name(f)
            if processes is not None:
                raise ParameterError(f"processes must be None for a native function, got {processes!r}")
        elif not callable(f):
            raise TypeError(f"f must be a text or callable, got {type(f).__name__}")
        elif processes is not None:
            processes = integer(processes, "processes", range(1, 2**15))
        self._given = {"f": f, "processes": processes, "allow_long": bool(allow_long)}

    @property
    def relation(self) -> Relation:
        """The neighbouring relation: one row is replaced by another."""
        return "substitute"

    def release(self, data: Any, *, threads: int | None = None, rng: Rng = None) -> Any:
        """Release the commonest value, or None if the subsets do not agree well enough.

        A `delta` of at least 1/n for n rows causes a UserWarning.

        Parameters
        ----------
        data : array, list, data frame or series
            The rows, along the first dimension of a NumPy array; pandas and polars are taken by position. At least
            ``64 ln(1/delta) / epsilon`` rows.
        threads : int, optional
            The number of threads that a native function takes, at least 1; by default all cores that the process may
            use. It does not change the result's distribution. It must be None for a callable ``f``.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Raises
        ------
        ParameterError
            When the data do not fit `f`, there are too few rows, or the estimated time is more than an hour. Nothing
            has been released then.
        TypeError
            When the data are of another type, or other processes cannot import the function.
        """
        return self._attempt(data, rng, threads).value

    def attempt(self, data: Any, *, threads: int | None = None, rng: Rng = None) -> Attempt:
        """Release the commonest value, or give the public reason for a refusal.

        A call is one release, and costs as much. `release` says which errors and warnings there are.

        Parameters
        ----------
        data : array, list, data frame or series
            The rows, along the first dimension of a NumPy array; pandas and polars are taken by position. At least
            ``64 ln(1/delta) / epsilon`` rows.
        threads : int, optional
            The number of threads that a native function takes, at least 1; by default all cores that the process may
            use. It does not change the result's distribution. It must be None for a callable ``f``.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.

        Returns
        -------
        Attempt
            The result of `release` as ``value``, and the public reason for a refusal as ``refusal``.
        """
        return self._attempt(data, rng, threads)

    def try_on(self, example: Any, *, threads: int | None = None) -> float:
        """Call ``f`` on subsets of MADE-UP rows, let its errors through, and estimate the time of a release.

        Nothing of this is private: never give it the private data, nor rows that were copied or computed from them.

        Parameters
        ----------
        example : array, list, data frame or series
            Made-up or public rows, of the kind that `release` takes and as many, which the time depends on.
        threads : int, optional
            The number of threads, as of `release`.

        Returns
        -------
        float
            About how many seconds `release` takes for as many rows, on this machine.

        Raises
        ------
        ParameterError
            When a value cannot be counted. What ``f`` raises is raised, too.
        """
        function = self._function(example, threads)
        plan = _Plan.of(function.rows, self.epsilon, self.delta)
        if isinstance(function, PythonFunction):
            function.try_on(plan.q)
        return function.seconds_per_subset(plan.q) * plan.subsets

    def subsets(self, n: Integer) -> int:
        """Return the number of subsets for n rows, m in the book: ln(n/delta) / q^2, rounded up.

        Parameters
        ----------
        n : int
            The number of rows, from ``64 ln(1/delta) / epsilon`` to 2**53 - 1.
        """
        return _Plan.of(integer(n, "n", range(1, 2**53)), self.epsilon, self.delta).subsets

    @property
    def sample_rate(self) -> float:
        """The probability with which a subset contains a row, q in the book: epsilon / (64 ln(1/delta))."""
        return _sample_rate(self.epsilon, self.delta)

    def _held(self, x: Any) -> Any:
        if callable(self.f):
            return held_rows(x)
        return held_numbers(x, "data") if self.f == "argmax_column_sum" else held_column(x, "data")

    def _attempt(self, data: Any, rng: Rng, threads: int | None = None) -> Attempt:
        function = self._function(data, threads)
        plan = _Plan.of(function.rows, self.epsilon, self.delta)
        Subsets(1, 0.5).draw(0, rng)  # refuses an rng that is no generator
        warn_of_large(self.delta, function.rows)
        seconds = function.seconds_per_subset(plan.q) * plan.subsets
        if seconds > _HOUR and not self.allow_long:
            raise ParameterError(
                f"allow_long must be True for m={plan.subsets:,} subsets, which take about {_rounded(seconds)}; a "
                "larger epsilon needs fewer"
            )
        with progress(f"subsets, about {_rounded(seconds)}", plan.subsets, "subsets") as advance:
            votes = function.count(plan.subsets, plan.q, rng, advance)
        return _released(votes, plan.cap, self._native, rng)

    def _function(self, data: Any, threads: int | None) -> NativeFunction | PythonFunction:
        if isinstance(self.f, str):
            return NativeFunction(self.f, data, threads)  # type: ignore[arg-type] # it has been looked up
        if threads is not None:
            raise ParameterError(f"threads must be None for a Python function, got {threads!r}")
        return PythonFunction(self.f, data, self.processes)


@dataclass(frozen=True)
class _Plan:
    q: float
    subsets: int
    cap: int
    """The most subsets that a row may be in."""

    @classmethod
    def of(cls, rows: int, epsilon: float, delta: float) -> _Plan:
        surprise = -math.log(delta)
        q = _sample_rate(epsilon, delta)
        if rows * q < 1:
            raise ParameterError(
                f"data must have at least 64 ln(1/delta) / epsilon = {math.ceil(1 / q):,} rows, so that subsets are "
                f"not empty, got {rows:,}"
            )
        logarithm = math.log(rows) + surprise
        subsets = math.ceil(logarithm / q**2)
        cap = math.floor(2 * subsets * q)
        if cap >= 2**32 - 1:  # counters of appearances saturate there
            least = 64 * surprise * logarithm / 2**31
            raise ParameterError(
                f"epsilon must be above ln(n/delta) ln(1/delta) / 2**25 = {least:.4g}, got {epsilon!r}"
            )
        return cls(q, subsets, cap)


def _sample_rate(epsilon: float, delta: float) -> float:
    """Return the probability that a row is in a subset, which is below 1/2."""
    surprise = -math.log(delta)
    q = epsilon / (64 * surprise)
    if q >= 0.5:
        raise ParameterError(f"epsilon must be below 32 ln(1/delta) = {32 * surprise:.4g}, got {epsilon!r}")
    return q


def _released(votes: Votes, cap: int, test: StabilityTest, rng: Rng) -> Attempt:
    """Release the winner if its lead is stable and no row was in more than `cap` subsets."""
    if votes.most_appearances > cap:
        return Attempt(None, TOO_OFTEN)
    # A row changes at most `cap` votes, and each of them changes the difference by at most 2.
    distance = (votes.first - votes.second) // (2 * cap) - 1
    release = released(votes.winner, distance, test, rng)
    return Attempt(None, NO_VALUE) if votes.failed and release.refusal is None else release


def _rounded(seconds: float) -> str:
    """Describe a duration coarsely, so that it reveals little about the data."""
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds > size:
            return f"{2 ** math.ceil(math.log2(seconds / size)):,} {unit}"
    return "1 minute"
