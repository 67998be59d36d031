"""Audits in one run: how many of many secret coins its outcome reveals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._arrays import array_of, reals_of
from dpnoise._display import floored, progress
from dpnoise._errors import ParameterError
from dpnoise._numbers import integer, real
from dpnoise._types import Integer, Number, Values
from dpnoise.audit._clopper_pearson import lower_bound
from dpnoise.audit._lower_bound import delta_of, open_share, percent
from dpnoise.audit._report import Report
from dpnoise.samplers import bernoulli
from dpnoise.sgd import poisson_sample

_STEPS: Final = range(1, 2**40)
_CANARIES: Final = range(1, 2**14 + 1)  # gradients of all canaries take up to 1 GiB
_LONG: Final = 4.0  # clip norms: gradients that are not clipped are seen
_ROUNDED: Final = 1 + 1e-12  # far above the rounding errors of the slack and of its subtraction


@dataclass(frozen=True)
class OneRun(Report):
    """A lower bound on epsilon from one run with canaries.

    Attributes
    ----------
    epsilon : float
        If the run is (epsilon', delta)-differentially private for each canary, then epsilon' is at least this, except
        with a probability of at most 1 - ``level``. Never negative.
    delta : float
        The delta of the guarantee that is audited.
    level : float
        The confidence level of the bound.
    canaries : int
        The number of canaries, each with a secret coin.
    guesses : int
        The number of coins that were guessed.
    right : int
        The number of guesses that were right.
    ceiling : float
        The bound if all guesses were right: a larger epsilon cannot be refuted with so many guesses.
    """

    epsilon: float
    delta: float
    level: float
    canaries: int
    guesses: int
    right: int
    ceiling: float

    def __str__(self) -> str:
        """Summarise the result in two lines."""
        return (
            f"epsilon is at least {floored(self.epsilon)} at delta = {self.delta:g}, with a confidence of "
            f"{percent(self.level)} %\n"
            f"{self.right:,} of {self.guesses:,} guesses about {self.canaries:,} canaries were right; "
            f"{floored(self.ceiling)} is the most that so many guesses can show"
        )

    def _draw(self, axes: Any) -> None:
        axes.bar(["shown at least", "the most to be shown"], [self.epsilon, self.ceiling])
        axes.set_ylabel("epsilon")
        axes.set_title(f"{self.right:,} of {self.guesses:,} guesses were right ({percent(self.level)} %)")


def one_run(
    coins: Values, scores: Values, *, guesses: Integer | None, delta: Number = 0.0, level: Number = 0.95
) -> OneRun:
    """Bound epsilon from below by one run on data with canaries, whose coins the outcome may reveal.

    A canary is a record that is made for the audit. A fair coin, secret and independent of all else, decides whether it
    is in the data, or which one of two values it has. A score of each canary, computed from the outcome of the run
    alone, says how much the outcome speaks for the side True of its coin. The ``guesses`` coins with the most extreme
    scores are guessed: True for the highest half, False for the lowest. The more guesses are right, the more the run
    has revealed. It may be any training or release, of any library, that is run once.

    A bound above the claim refutes it. A bound below the claim proves nothing: other canaries or scores might show
    more, and with so many guesses nothing shows more than the ``ceiling`` of the report.

    Parameters
    ----------
    coins : array_like of bool, shape (m,)
        The coins. Draw them with ``samplers.bernoulli(0.5, size=m)`` and use each set for one run only; nothing but the
        data of the run, and this function, may depend on them.
    scores : array_like of float, shape (m,)
        The score of each canary, no NaN. Equal scores are ordered by the place of the canary.
    guesses : int or None
        The number of guesses, from 1 to m, which must be chosen before the scores are seen: to try several and to
        report the best one is no audit. None is for a delta of 0: then True is guessed where a score is positive, False
        where it is negative, and nothing where it is 0, as is natural for independent reports.
    delta : float, default 0.0
        The delta of the guarantee, from 0 up to, but not including, 1, under the relation by which the two sides of a
        coin are neighbours: "add/remove" for canaries that are in or out, "substitute" for two values.
    level : float, default 0.95
        The probability with which the bound holds: between 0 and 1, both excluded.

    Returns
    -------
    OneRun
        The bound and the numbers of guesses; as text, as JSON (``to_json``) and as a picture (``plot``).

    Notes
    -----
    If the run is (epsilon, delta)-differentially private, at least v of r guesses are right with a probability of at
    most ``P(X >= v) + m * delta / sqrt(pi * (r // 2 + 1 / 4))``, where X is binomial with r trials of probability
    ``exp(epsilon) / (1 + exp(epsilon))``; proved in docs/proofs/one_run.md. The bound is the least epsilon for which
    this exceeds 1 - ``level``, rounded down.

    References
    ----------
    Steinke, Nasr and Jagielski (2023), "Privacy auditing with one (1) training run", for the method and for the bound
    without delta.

    Examples
    --------
    Ten thousand people answer by randomised response with an epsilon of 1:

    >>> from dpnoise import audit, local, samplers
    >>> coins = samplers.bernoulli(0.5, size=10_000)
    >>> reports = local.RandomizedResponse(epsilon=1.0).perturb(coins)
    >>> report = audit.one_run(coins, 2.0 * reports - 1, guesses=None)
    >>> 0.8 < report.epsilon < 1.1
    True
    """
    tossed, scored = array_of(coins, "coins"), reals_of(scores, "scores")
    if tossed.dtype != bool or tossed.ndim != 1 or not tossed.size:
        raise ParameterError(
            f"coins must be booleans, one for each of at least one canary, got {tossed.dtype} of shape {tossed.shape}"
        )
    if scored.shape != tossed.shape:
        raise ParameterError(f"scores must have the shape of the coins, {tossed.shape}, got {scored.shape}")
    if np.isnan(scored).any():
        raise ParameterError("scores must not be NaN")
    alarm, delta = 1.0 - open_share(level, "level"), delta_of(delta)
    guessed = _signs(scored, guesses, delta)
    made, right = int((guessed != 0).sum()), int((guessed == np.where(tossed, 1, -1)).sum())

    # By the theorem, so many are right with at most this probability more than in independent guesses.
    slack = tossed.size * delta / math.sqrt(math.pi * (made // 2 + 0.25)) * _ROUNDED
    shown, ceiling = (
        _log_odds(lower_bound(hits, made, alarm - slack)) if slack < alarm else 0.0 for hits in (right, made)
    )
    return OneRun(shown, delta, float(level), tossed.size, made, right, ceiling)


def one_run_of_sgd(
    mechanism: Any,
    *,
    delta: Number,
    sample_rate: Number = 1.0,
    steps: Integer = 1,
    clip_norm: Number | None = None,
    canaries: Integer = 1000,
    guesses: Integer = 200,
    level: Number = 0.95,
) -> OneRun:
    """Bound the epsilon of DP-SGD from below by one training run on canaries alone, with `one_run`.

    The gradient of each canary is ``4 * clip_norm`` in a coordinate of its own and 0 in all others. In each step the
    mechanism gets the gradients of a Poisson sample of the canaries that are in the data. The score of a canary is the
    sum over the steps of its coordinate of what was released.

    Parameters
    ----------
    mechanism : callable or object with a method ``release``
        A step, of any library: called with the gradients of a batch, float64 of shape (n, m) where n may be 0 and m is
        the number of canaries, it returns m numbers, clipped, summed and with noise. A `dpnoise.sgd.NoisyGradient`
        is one.
    delta : float
        The delta of the guarantee, from 0 up to, but not including, 1.
    sample_rate : float, default 1.0
        The probability with which an example is in a batch: above 0 and at most 1.
    steps : int, default 1
        The number of steps, from 1 to 2**40 - 1.
    clip_norm : float, optional
        The norm that the mechanism clips to: positive and finite. By default its attribute ``clip_norm``.
    canaries : int, default 1000
        The number of canaries, from 1 to 16384.
    guesses : int, default 200
        The number of guesses, from 1 to ``canaries``.
    level : float, default 0.95
        The probability with which the bound holds: between 0 and 1, both excluded.

    Returns
    -------
    OneRun
        The bound and the numbers of guesses; as text, as JSON (``to_json``) and as a picture (``plot``).

    Notes
    -----
    The claim to compare with is the epsilon of all steps, for neighbours under "add/remove": that of
    `dpnoise.sgd.epsilon_spent`. No noise, a tenth of it, and gradients that are not clipped are found within seconds.
    Half of the noise is usually not refuted, as one run shows about a third of epsilon; `epsilon_lower_bound` shows
    more, in many releases.

    Examples
    --------
    >>> from dpnoise import audit, sgd
    >>> noisy = sgd.NoisyGradient(clip_norm=1.0, noise_multiplier=2.0, expected_batch_size=1)
    >>> claim = sgd.epsilon_spent(noise_multiplier=2.0, sample_rate=1.0, steps=1, delta=1e-5)
    >>> audit.one_run_of_sgd(noisy, delta=1e-5, level=1 - 1e-9).epsilon <= claim
    True
    """
    release: Callable[[NDArray[Any]], Any] = getattr(mechanism, "release", mechanism)
    if not callable(release) or isinstance(mechanism, type):
        raise TypeError(f"mechanism must be callable, or have a method release, got {type(mechanism).__name__}")
    norm = getattr(mechanism, "clip_norm", None) if clip_norm is None else clip_norm
    if norm is None:
        raise ParameterError("clip_norm must be given for a mechanism without an attribute clip_norm, got None")
    norm = real(norm, "clip_norm")
    if not 0 < norm < math.inf:
        raise ParameterError(f"clip_norm must be positive and finite, got {norm!r}")
    m, rounds = integer(canaries, "canaries", _CANARIES), integer(steps, "steps", _STEPS)
    scores = np.zeros(m)
    # Bad parameters are refused before anything is drawn.
    poisson_sample(0, sample_rate)
    one_run([True] * m, scores, guesses=guesses, delta=delta, level=level)
    coins = bernoulli(0.5, size=m)
    present = np.flatnonzero(coins)
    with progress("one run", rounds, "releases") as advance:
        for _ in range(rounds):
            batch = present[poisson_sample(present.size, sample_rate)]
            gradients = np.zeros((batch.size, m))
            gradients[np.arange(batch.size), batch] = _LONG * norm
            released = reals_of(release(gradients), "the outcome of the mechanism")
            if released.shape != (m,):
                raise ParameterError(f"mechanism must return {m} numbers, got an array of shape {released.shape}")
            scores += released
            advance(1)
    if np.isnan(scores).any():
        raise ParameterError("mechanism must return numbers that add up to a number over the steps, got NaN")
    return one_run(coins, scores, guesses=guesses, delta=delta, level=level)


def _signs(scores: NDArray[Any], guesses: Integer | None, delta: float) -> NDArray[np.int64]:
    """Guess the coins: 1 for True, -1 for False, 0 for no guess."""
    if guesses is None:
        if delta:
            raise ParameterError(f"guesses must be given for a positive delta, got None for {delta!r}")
        return np.where(scores > 0, 1, 0) - (scores < 0)
    r = integer(guesses, "guesses", range(1, scores.size + 1))
    signs, order = np.zeros(scores.size, np.int64), np.argsort(scores, kind="stable")
    signs[order[: r // 2]] = -1
    signs[order[scores.size - (r - r // 2) :]] = 1
    return signs


def _log_odds(p: float) -> float:
    return max(0.0, math.log(p / (1 - p))) if p else 0.0
