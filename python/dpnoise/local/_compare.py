"""Comparison: the errors of protocols on public data, measured and predicted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from statistics import NormalDist, fmean, variance
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np
from numpy.typing import NDArray

from dpnoise._columns import labels_of
from dpnoise._display import Column, Tabular, one_line, progress
from dpnoise._domain import Domain, codes
from dpnoise._errors import ParameterError
from dpnoise._numbers import check_text, integer, items_of
from dpnoise._types import Answers, Integer, Labels, Number
from dpnoise.local._categories import RandomizedResponse
from dpnoise.local._families import FAMILIES, Family
from dpnoise.local._frequency import FrequencyProtocol
from dpnoise.local._longitudinal import LongitudinalProtocol
from dpnoise.local._memo import ClientMemo

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEVEL: Final = 0.95
_RUNS: Final = range(2, 10**6 + 1)

Maker = Callable[..., FrequencyProtocol]


@dataclass(frozen=True)
class Compared:
    """A protocol at an epsilon with the error of its counts, as `compare` measured it.

    Attributes
    ----------
    name : str
        The name in the comparison: that of the class, or the one that was given.
    protocol : FrequencyProtocol
        The protocol.
    epsilon : float
        The requested privacy parameter.
    error : float
        The root-mean-square error of all counts in all collections, in people.
    lower, upper : float
        The ends of the confidence interval of the error, of level 95 %.
    theory : float
        The same error by `FrequencyProtocol.variance`, at the frequencies of the data.
    report_bytes : int
        The size of a report.
    """

    name: str
    protocol: FrequencyProtocol
    epsilon: float
    error: float
    lower: float
    upper: float
    theory: float
    report_bytes: int


@dataclass(frozen=True, repr=False)
class Comparison(Tabular, Sequence[Compared]):
    """The errors that `compare` measured, as a sequence: for each protocol all epsilons.

    As a table it has the columns protocol (the name in the comparison), epsilon, error, lower, upper, theory (float64)
    and report_bytes (int64).

    Attributes
    ----------
    measured : tuple of Compared
        The protocols, each at each epsilon.
    n : int
        The number of people.
    k : int
        The number of possible values.
    runs : int
        The number of collections for each protocol and epsilon.
    """

    measured: tuple[Compared, ...]
    n: int
    k: int
    runs: int

    def __len__(self) -> int:
        """Count the pairs of a protocol and an epsilon."""
        return len(self.measured)

    @overload
    def __getitem__(self, index: int) -> Compared: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Compared, ...]: ...
    def __getitem__(self, index: int | slice) -> Compared | tuple[Compared, ...]:
        """Return one measurement, or several."""
        return self.measured[index]

    def plot(self, path: str | PathLike[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the errors by epsilon: what theory says as lines, what was measured as points with intervals.

        An interval without an end is not drawn.

        Parameters
        ----------
        path : path-like, optional
            The file to write, whose name ends in .png, .svg or .pdf. Without ``path`` and ``ax`` a notebook shows the
            chart.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on instead of a new figure. At most one of ``path`` and ``ax`` is given.

        Returns
        -------
        matplotlib.axes.Axes
            The axes of the chart.
        """
        from dpnoise import plots  # only charts need its imports

        with plots.chart(path, ax=ax) as axes:
            lines = {}
            for number, name in enumerate(dict.fromkeys(one.name for one in self)):
                rows = sorted((one for one in self if one.name == name), key=lambda one: one.epsilon)
                epsilons, errors, theory = np.array([(one.epsilon, one.error, one.theory) for one in rows]).T
                ends = np.abs(np.array([(one.lower, one.upper) for one in rows]).T - errors)
                # There are fewer colours than protocols: the next ones have another line and another mark.
                line, mark = (("-", "o"), ("--", "s"), (":", "D"))[number // 6 % 3]
                bar = "_" if len(rows) == 1 else None  # where there is no line
                [drawn] = axes.plot(epsilons, theory, line, linewidth=2, marker=bar, markersize=14)
                look: dict[str, Any] = {"fmt": mark, "markersize": 4, "capsize": 2.5, "color": drawn.get_color()}
                axes.errorbar(epsilons, errors, yerr=ends, **look)
                lines[name] = drawn
            axes.set(yscale="log", xlabel="epsilon", ylabel="root-mean-square error of a count, in people")
            axes.set_title(f"{self.n:,} people, {self.k:,} values, {self.runs:,} collections each", loc="left")
            axes.grid(color="#dddddd")
            for text in axes.legend(lines.values(), list(map(one_line, lines)), frameon=False).get_texts():
                text.set_parse_math(False)  # a "$" starts no formula
        return axes

    def _columns(self) -> dict[str, Column]:
        names = [field.name for field in fields(Compared) if field.name not in ("name", "protocol")]
        columns: dict[str, Column] = {"protocol": [one.name for one in self]}
        return columns | {name: [getattr(one, name) for one in self] for name in names}


def compare(
    protocols: Iterable[str | type[FrequencyProtocol]] | Mapping[str, Maker],
    epsilons: Iterable[Number],
    data: Answers,
    *,
    domain: Labels | None = None,
    runs: Integer = 100,
) -> Comparison:
    """Measure the errors of protocols on public data, beside what theory says.

    Each run randomises the values of all people with fresh randomness, and compares the estimated counts with the true
    ones. The result shows how far the true counts are from private estimates: it is not private itself.

    Parameters
    ----------
    protocols : sequence of str or of type, or mapping of str to callable
        The protocols: the classes that count values, such as `OptimizedUnaryEncoding`, or their names, or the names or
        abbreviations in `FAMILIES`, such as ``"oue"``, in upper or lower case. Or a name for each function that makes a
        protocol of the values 0 to k - 1 from ``k`` and ``epsilon``, which it is given by keyword.
    epsilons : sequence of float
        The privacy parameters of a report to compare them at, from 2**-20 to 32.
    data : array of int, str or bool, shape (n,)
        The value of each person: public or made-up data.
    domain : sequence of str, int or bool, optional
        The possible values, at least 2. By default those in the data.
    runs : int, default 100
        The number of collections for each protocol and epsilon, from 2 to 10**6.

    Returns
    -------
    Comparison
        A sequence of `Compared`, which prints as a table, and has a ``plot``.

    Raises
    ------
    ParameterError
        If a protocol or an epsilon is unknown, not allowed for this data, or none is given.

    Notes
    -----
    The intervals take the mean squared error to be distributed as a multiple of a chi-squared variable, with the
    degrees of freedom that the spread over the runs shows (Satterthwaite, 1946), at most k - 1 for each run,
    whose quantiles are those of Wilson and Hilferty (1931). For normal errors they hold about as often as they say,
    or more often. They are too narrow of fewer than 20 runs if few of many counts have most of the error, and where
    reports hardly ever change a value, as at a large epsilon.

    Examples
    --------
    >>> from dpnoise import local
    >>> comparison = local.compare(["grr", "oue"], [1.0, 2.0], 600 * ["tea"] + 400 * ["coffee"], runs=5)
    >>> [round(one.theory) for one in comparison]
    [30, 13, 65, 35]
    """
    labels = Domain(list(dict.fromkeys(labels_of(data, "data"))), "data") if domain is None else Domain(domain)
    numbers = codes(data, labels)
    if not numbers.size:
        raise ParameterError("data must have at least one person, got none")
    runs = integer(runs, "runs", _RUNS)
    at = items_of(epsilons, "epsilons", "privacy parameters")
    made = [
        (name, _made(name, make, len(labels), epsilon), float(epsilon))
        for name, make in _makers(protocols).items()
        for epsilon in at
    ]
    if not made:
        raise ParameterError("protocols and epsilons must each have at least one element, got none")
    truth = np.bincount(numbers, minlength=len(labels)).astype(np.float64)
    measured = []
    with progress("comparing", runs * len(made), "collections") as advance:
        for name, protocol, epsilon in made:
            squares = []
            for _ in range(runs):
                squares.append(float(np.mean((_counts(protocol, numbers) - truth) ** 2)))
                advance(1)
            theory = math.sqrt(fmean(protocol.variance(numbers.size, share) for share in truth / numbers.size))
            error, lower, upper = root_with_interval(squares, len(labels), _LEVEL)
            measured.append(Compared(name, protocol, epsilon, error, lower, upper, theory, protocol.report_bytes))
    return Comparison(tuple(measured), numbers.size, len(labels), runs)


def root_with_interval(squares: Sequence[float], k: int, level: float) -> tuple[float, float, float]:
    """Return the root of the mean of squared errors of k counts each, and the ends of its confidence interval."""
    mean, spread = fmean(squares), variance(squares)
    if spread == 0:  # of few people, or of reports that hardly ever change: how far another run is off is open
        return math.sqrt(mean), 0.0, math.inf
    # Of few runs the spread may happen to be far too small. Counts that sum to n have k - 1 degrees of freedom.
    width = 2 / 9 / min(2 * len(squares) * mean**2 / spread, len(squares) * (k - 1))
    z = NormalDist().inv_cdf((1 + level) / 2)
    most, least = (max(1 - width + sign * z * math.sqrt(width), 0.0) ** 3 for sign in (1, -1))
    return math.sqrt(mean), math.sqrt(mean / most), math.sqrt(mean / least) if least else math.inf


def _makers(protocols: Any) -> dict[str, Maker]:
    """Return what makes each protocol from k and epsilon, by the names in the comparison."""
    if isinstance(protocols, Mapping):
        for name, make in protocols.items():
            check_text(name, "a name in protocols")
            if not callable(make):
                raise TypeError(f"protocols[{name!r}] must be callable, got {type(make).__name__}")
        return dict(protocols)
    protocols = [protocols] if isinstance(protocols, str) else protocols
    classes = [_class_of(one) for one in items_of(protocols, "protocols", "classes or names of protocols")]
    return {one.__name__: one for one in classes}


def _class_of(given: Any) -> Any:
    if isinstance(given, str):
        named = [family.protocol for family in FAMILIES.values() if family.is_named(given)]
        if not named:
            plain = [one.abbreviation for one in FAMILIES.values() if _is_of_counts(one.protocol) and not _others(one)]
            raise ParameterError(f"protocols must be of {', '.join(plain)}, got {given!r}")
        given = named[0]
    if not _is_of_counts(given):
        raise TypeError(f"protocols must be classes or names of protocols that count values, got {given!r}")
    others = [name for family in FAMILIES.values() if family.protocol is given for name in _others(family)]
    if others:
        name = given.__name__
        raise ParameterError(f"protocols must map a name to a function that makes {name} with {' and '.join(others)}")
    return given


def _is_of_counts(given: Any) -> bool:
    return isinstance(given, type) and issubclass(given, FrequencyProtocol)


def _others(family: Family) -> list[str]:
    """Return the parameters that the class needs beside k and epsilon."""
    return [one.name for one in family.parameters if one.required and one.name not in ("k", "epsilon")]


def _made(name: str, make: Maker, k: int, epsilon: Number) -> FrequencyProtocol:
    if make is RandomizedResponse:
        if k != 2:
            raise ParameterError(f"RandomizedResponse takes 2 values, and the data have {k}")
        return RandomizedResponse(domain=(0, 1), epsilon=epsilon)
    protocol = make(k=k, epsilon=epsilon)
    numbers = tuple(range(k))  # other labels, or these in another order, have other counts
    if not isinstance(protocol, FrequencyProtocol) or protocol.k != k or protocol.domain not in (None, numbers):
        raise ParameterError(f"protocols[{name!r}] must make protocols of the values 0 to {k - 1}, got {protocol!r}")
    return protocol


def _counts(protocol: FrequencyProtocol, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the counts that one collection estimates."""
    if isinstance(protocol, LongitudinalProtocol):
        reports = protocol.perturb(numbers, ClientMemo.generate(numbers.size), question="comparison")
    else:
        reports = protocol.perturb(numbers)
    return protocol.estimate(reports).counts
