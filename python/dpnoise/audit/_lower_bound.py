"""Lower bounds on the privacy loss of a mechanism, by experiment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._display import floored, progress
from dpnoise._errors import ParameterError
from dpnoise._numbers import integer, real
from dpnoise._types import Integer, Number
from dpnoise.audit._clopper_pearson import nearest_pair
from dpnoise.audit._events import Event, most_telling
from dpnoise.audit._outcomes import BLOCK, Outcomes, releases_of
from dpnoise.audit._report import Report
from dpnoise.audit._statistics import Fit, fit

_COUNTS: Final = range(100, 2**40)
_BARS: Final = 60
_SELECTING: Final = 8  # one in so many releases fits statistics, and as many select events


@dataclass(frozen=True)
class EpsilonLowerBound(Report):
    """A lower bound on epsilon, and the event that gives it.

    Attributes
    ----------
    epsilon : float
        If the mechanism is (epsilon', delta)-differentially private for ``x`` and ``x_prime``, then epsilon' is at
        least this, except with a probability of at most 1 - ``level``. Never negative.
    delta : float
        The delta of the guarantee that is audited.
    level : float
        The confidence level of the bound.
    n : int
        The number of releases of each input; a quarter of them selected the event.
    event : str
        A description of the event.
    example : str or None
        An outcome in which the event occurs.
    likelier_under : str
        The input that makes the event likelier: ``"x"`` or ``"x_prime"``.
    trials : int
        The number of counted releases of each input; these are not the releases that selected the event.
    hits, hits_prime : int
        The numbers of counted releases of ``x`` and of ``x_prime`` in which the event occurred.
    p, q : float
        Probabilities of the event, p under the input that makes it likelier, with the smallest (p - delta) / q that the
        counts do not exclude.
    edges : tuple of float
        The edges of a histogram of the statistic of the event: one more than there are ``counts``.
    counts, counts_prime : tuple of int
        The numbers of outcomes of ``x`` and of ``x_prime`` between the edges.
    """

    epsilon: float
    delta: float
    level: float
    n: int
    event: str
    example: str | None
    likelier_under: str
    trials: int
    hits: int
    hits_prime: int
    p: float
    q: float
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    counts_prime: tuple[int, ...]

    def __str__(self) -> str:
        """Summarise the result in a few lines."""
        such = f", for example {self.example}" if self.example is not None else ""
        return (
            f"epsilon is at least {floored(self.epsilon)} at delta = {self.delta:g}, with a confidence of "
            f"{percent(self.level)} %\n"
            f"event: {self.event}{such}\n"
            f"it occurred {self.hits:,} times for x and {self.hits_prime:,} times for x_prime, "
            f"of {self.trials:,} releases each"
        )

    def _draw(self, axes: Any) -> None:
        middles = np.arange(len(self.counts))
        for counts, name, offset in ((self.counts, "x", -0.2), (self.counts_prime, "x_prime", 0.2)):
            axes.bar(middles + offset, np.array(counts) / self.trials, width=0.4, label=f"outcomes of {name}")
        ticks = np.linspace(0, len(self.counts), min(len(self.edges), 9)).astype(int)
        axes.set_xticks(ticks - 0.5, [f"{self.edges[tick]:.3g}" for tick in ticks])
        axes.set_xlabel(f"event: {self.event}", parse_math=False)
        axes.set_ylabel("share of the outcomes")
        axes.set_title(f"epsilon >= {floored(self.epsilon, 3)} at delta = {self.delta:g} ({percent(self.level)} %)")
        axes.legend(frameon=False)


def epsilon_lower_bound(
    mechanism: Any,
    x: Any,
    x_prime: Any,
    *,
    n: Integer,
    level: Number = 0.95,
    delta: Number = 0.0,
    vectorized: bool = False,
) -> EpsilonLowerBound:
    """Bound the privacy loss of a mechanism from below by experiment.

    Both inputs are released ``n`` times. A quarter of the outcomes selects four events, the most telling ones that are
    likelier under ``x`` and under ``x_prime``, with rare events and without them: a number above a threshold, single
    outcomes, values of low-order bits, a sum of log-likelihood ratios over the elements of an array, or others. The
    other outcomes are independent of the selection, and count how often these occur. Of each, the counts exclude pairs
    of probabilities (Clopper and Pearson for one probability, Fisher for both), with a quarter of the permitted error.
    Since P(event of one) <= e^epsilon P(event of the other) + delta for every event, the remaining pairs bound epsilon.

    A bound above the claim refutes it. A bound below the claim proves nothing: another event, or another pair of
    inputs, might show more.

    Parameters
    ----------
    mechanism : callable or object with a method ``release`` or ``perturb``
        A mechanism of any library. It is called with an input and returns an outcome: a number, an array, a text, None,
        or a sequence, set or mapping of them. Calls must be independent of each other. A protocol of `dpnoise.local`
        randomises one value.
    x, x_prime : object
        Two neighbouring inputs. A mechanism must not change them.
    n : int
        The number of releases of each input, from 100 to 2**40 - 1.
    level : float, default 0.95
        The probability with which the bound holds: between 0 and 1, both excluded.
    delta : float, default 0.0
        The delta of the guarantee, from 0 up to, but not including, 1.
    vectorized : bool, default False
        Whether the mechanism takes an array of inputs, one for each row, and returns as many independent outcomes. It
        is called with blocks of up to 65,536 rows then, which is faster.

    Returns
    -------
    EpsilonLowerBound
        The bound and the event that gives it; as text, as JSON (``to_json``) and as a picture (``plot``).

    Notes
    -----
    The largest bound that n releases can show is about log(n / 8) at a level of 95 %.

    Noise that is the same in every run of the program, because its generator is seeded once at the start, passes every
    audit within one run. To detect it, let ``mechanism`` make the generator anew, or start a new process.

    References
    ----------
    Clopper and Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of the binomial";
    Ding, Wang, Wang, Zhang and Kifer (2018), "Detecting violations of differential privacy", for choosing the event on
    other samples; Bichsel, Steffen, Bogunovic and Vechev (2021), "DP-Sniper", for events by likelihood ratios.

    Examples
    --------
    >>> from dpnoise import Laplace, audit
    >>> report = audit.epsilon_lower_bound(Laplace(epsilon=1.0), 0.0, 1.0, n=20_000)
    >>> 0.8 < report.epsilon < 1.1
    True
    """
    return bound(mechanism, x, x_prime, n, level, delta, vectorized)


def bound(
    mechanism: Any,
    x: Any,
    x_prime: Any,
    n: Integer,
    level: Number,
    delta: Number,
    vectorized: bool,
    *,
    fit: Fit = fit,
    task: str = "auditing",
) -> EpsilonLowerBound:
    """Bound epsilon by events of the statistics that ``fit`` yields."""
    n = integer(n, "n", _COUNTS)
    alarm = (1.0 - open_share(level, "level")) / 4  # a quarter for each event
    delta = delta_of(delta)
    release = releases_of(mechanism, vectorized)
    share = n // _SELECTING
    trials = n - 2 * share
    with progress(task, 2 * n, "releases") as advance:

        def released(count: int) -> tuple[Outcomes, Outcomes]:
            pair = release(x, count), release(x_prime, count)
            advance(2 * count)
            return pair

        # Statistics overfit the outcomes that they are fitted to, so other outcomes choose between them.
        to_fit, chosen_on = released(share), released(share)
        events = most_telling(fit(*to_fit), *chosen_on, delta, alarm, trials)
        counters = [_Counter(event, chosen_on) for event in events]
        for count in _blocks(trials):
            for i, outcomes in enumerate(released(count)):
                for counter in counters:
                    counter.count(i, outcomes)
    bounds = [(*counter.bound(trials, delta, alarm), counter) for counter in counters]
    epsilon, p, q, best = max(bounds, key=lambda found: found[0])
    return EpsilonLowerBound(
        epsilon=epsilon,
        delta=delta,
        level=float(level),
        n=n,
        event=str(best.event),
        example=best.example,
        likelier_under="x" if best.event.likelier_under_x else "x_prime",
        trials=trials,
        hits=int(best.hits[0]),
        hits_prime=int(best.hits[1]),
        p=p,
        q=q,
        edges=tuple(best.edges.tolist()),
        counts=tuple(best.counts[0].tolist()),
        counts_prime=tuple(best.counts[1].tolist()),
    )


class _Counter:
    """How often an event occurs for each input, and a histogram of its statistic."""

    def __init__(self, event: Event, chosen_on: tuple[Outcomes, Outcomes]) -> None:
        self.event = event
        scores = [event.statistic.of(part) for part in chosen_on]
        occurred = [event.occurs(part) for part in scores]
        examples = (part.example(found) for part, found in zip(chosen_on, occurred, strict=True) if found.any())
        self.example = next(examples, None)
        self.edges = _edges(np.concatenate(scores))
        self.hits, self.counts = np.zeros(2, np.int64), np.zeros((2, self.edges.size - 1), np.int64)

    def count(self, i: int, outcomes: Outcomes) -> None:
        scores = self.event.statistic.of(outcomes)
        self.hits[i] += int(self.event.occurs(scores).sum())
        bars = np.searchsorted(self.edges[1:-1], scores[~np.isnan(scores)], side="right")  # np.histogram sorts
        self.counts[i] += np.bincount(bars, minlength=self.edges.size - 1)

    def bound(self, trials: int, delta: float, alarm: float) -> tuple[float, float, float]:
        likelier, other = self.hits.tolist() if self.event.likelier_under_x else self.hits[::-1].tolist()
        p, q = nearest_pair(likelier, other, trials, delta, alarm)
        return math.log((p - delta) / q) if p - delta > q else 0.0, p, q


def open_share(value: Any, name: str) -> float:
    if not 0 < real(value, name) < 1:
        raise ParameterError(f"{name} must be between 0 and 1, exclusive, got {value!r}")
    return float(value)


def delta_of(value: Number) -> float:
    delta = real(value, "delta")
    if not 0 <= delta < 1:
        raise ParameterError(f"delta must be from 0 up to, but not including, 1, got {delta!r}")
    return delta


def _blocks(total: int) -> Iterator[int]:
    yield from repeat(BLOCK, total // BLOCK)
    if total % BLOCK:
        yield total % BLOCK


def _edges(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return edges of a histogram: between single values if they are few, else up to where 1 of 1000 lies beyond."""
    finite = scores[np.isfinite(scores)]
    values = np.unique(finite)
    if values.size == 0:
        return np.array([0.0, 1.0])
    if values.size <= _BARS:
        middles = (values[1:] + values[:-1]) / 2
        return np.unique(np.concatenate([[values[0] - 1], middles, [values[-1] + 1]]))
    low, high = np.quantile(finite, [0.001, 0.999])
    return np.linspace(low, high, _BARS + 1) if high > low else np.array([values[0], values[-1]])


def percent(share: float) -> str:
    return f"{100 * share:.10g}"
