"""The best of a random number of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from inspect import Parameter, iscoroutinefunction, signature
from itertools import accumulate
from operator import length_hint
from typing import Any, Final, Literal, TypeVar

import numpy as np

from dpnoise._errors import Error, ParameterError
from dpnoise._numbers import checked_delta, real
from dpnoise._silence import interruptible, without_warnings
from dpnoise._types import Integer, Number, Real, Rng
from dpnoise.accounting import PrivacyCost, PrivacyLoss, RandomStoppingLoss, RenyiCost, ZcdpCost
from dpnoise.mechanisms._mechanism import Mechanism
from dpnoise.samplers import bernoulli
from dpnoise.sensitivity import Relation

Output = TypeVar("Output")
RunCost = PrivacyCost | ZcdpCost | RenyiCost | PrivacyLoss | Mechanism
Stopping = Literal["logarithmic", "geometric", "poisson"]

_OPTIONAL: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


class PrivateSelection(Mechanism):
    """The best of several private runs, such as trainings with different parameters, for little more than one costs.

    A number K is drawn from a public law; K independent runs are made; and the best score is released with the output
    of its run. K, and everything about the other runs, stays secret: that is why the release costs less than K runs.

    Parameters
    ----------
    run_cost : PrivacyCost, ZcdpCost, RenyiCost, PrivacyLoss or mechanism
        The cost of one run: of its output and of its score together. Where each row is either trained on or scored, and
        a fresh coin for each row, or for each person, decides, it is the larger of the two costs; otherwise it is their
        sum.
    mean : float, default 10
        The mean of K: from 1 up to a limit that depends on ``stopping`` and ``most``. The parameter of the law is
        rounded up to a multiple of 1/1000, and `expected_runs` is the mean that it has.
    stopping : {"logarithmic", "geometric", "poisson"}, default "logarithmic"
        The law of K, given that K is from 1 to ``most``: P(K = k) is proportional to ``(1 - gamma)**k / k``, to ``(1 -
        gamma)**k``, or to ``mu**k / k!``. The first costs least, but is 1 more often than the others.
    most : int, optional
        The largest K, from 1 to 2000; by default 100 times the mean, rounded up, or 2000 if that is less. With a
        smaller one the same mean costs more: about 1% if it is 10 times the mean.
    padded : bool, default False
        Whether ``most`` runs are always made, of which the first K count. So the running time does not tell K.
    delta : float, optional
        The privacy parameter for which `epsilon` is computed, if the cost of a run has none: between 0 and 1, both
        excluded. Without it such a release is for ledgers of rho or of Rényi orders, and `cost` raises an error.

    Notes
    -----
    A run must draw its noise and its candidate afresh, the candidate with replacement from a public list. Nothing may
    pass from one run to another, and a run must pay no ledger, whose entries would tell K. The release pays once, by
    ``ledger.release(selection, run)``, before K is drawn. What a run prints, logs or writes, and without ``padded`` how
    long the release takes, tells K to whoever sees it: the guarantee is for those who do not.

    Exceptions and warnings of a run are not shown, as they depend on the data. A run that raises, or whose score is NaN
    or no number, counts, and is worse than every other one. It is not repeated, since that would change the law of K.
    Try the run on made-up data first. An array of one number, as JAX and PyTorch give, is a number here; a bool and a
    decimal number are none. In the main thread Ctrl-C stops the release.

    For runs whose loss is a `PrivacyLoss` without an epsilon, such as Gaussian noise, ``delta`` needs dp-accounting,
    which the extra ``accounting`` brings.

    References
    ----------
    Liu and Talwar (2019), "Private selection from private candidates"; Papernot and Steinke (2022), "Hyperparameter
    tuning with Rényi differential privacy"; Koskela, Redberg and Wang (2024), "Privacy profiles for private selection".
    The proof page "Private selection" has the bounds, some of which are lower than theirs.

    Examples
    --------
    >>> import random
    >>> from dpnoise import Laplace, PrivateSelection
    >>> profits = {1: 1200.0, 2: 1900.0, 3: 1700.0}  # of each price, from data of persons
    >>> noise = Laplace(epsilon=0.1, sensitivity=5)
    >>> def run():
    ...     price = random.SystemRandom().choice([1, 2, 3])
    ...     return noise.release(profits[price]), price
    >>> selection = PrivateSelection(run_cost=noise, mean=5)
    >>> profit, price = selection.release(run)
    >>> round(selection.epsilon, 3)
    0.187
    """

    __slots__ = ("_delta", "_epsilon", "_given", "_padded", "_stopped")

    _parameters = ("run_cost", "mean", "stopping", "most", "padded", "delta")
    _reason = "how much better the best of all candidates is depends on the candidates"

    def __init__(
        self,
        *,
        run_cost: RunCost,
        mean: Number = 10,
        stopping: Stopping = "logarithmic",
        most: Integer | None = None,
        padded: bool = False,
        delta: Number | None = None,
    ) -> None:
        if not isinstance(padded, bool):
            raise TypeError(f"padded must be a bool, got {type(padded).__name__}")
        self._stopped = loss = RandomStoppingLoss(run_cost, mean, stopping, most)
        self._padded, self._given = padded, delta
        self._epsilon: float | None = loss.epsilon
        self._delta: float | None = loss.delta
        if loss.epsilon == math.inf:
            self._epsilon = self._delta = None
            if delta is not None:
                self._delta = checked_delta(delta)
                self._epsilon = loss.epsilon_at(self._delta)
                if self._epsilon == math.inf:
                    raise ParameterError(
                        f"delta must be larger for {loss!r}, got {delta!r}: no epsilon is known for it"
                    )
        elif delta is not None:
            raise ParameterError(f"delta must be None for a run_cost with an epsilon, got {delta!r}")

    @property
    def run_cost(self) -> Any:
        """The cost of one run."""
        return self._stopped.run_cost

    @property
    def mean(self) -> Number:
        """The mean of K that was asked for."""
        return self._stopped.mean

    @property
    def stopping(self) -> Stopping:
        """The family of the law of K."""
        return self._stopped.stopping

    @property
    def most(self) -> int:
        """The largest K."""
        return len(self._stopped.weights)

    @property
    def padded(self) -> bool:
        """Whether ``most`` runs are always made."""
        return self._padded

    @property
    def law(self) -> tuple[Fraction, ...]:
        """The probabilities of K = 1, 2, ..., ``most``, exactly."""
        return self._stopped.law

    @property
    def expected_runs(self) -> float:
        """The mean of K, rounded up."""
        return self._stopped.expected_runs

    @property
    def epsilon(self) -> float | None:  # type: ignore[override]
        """The privacy parameter epsilon; None when only rho or Rényi divergences are known and there is no delta."""
        return self._epsilon

    @property
    def delta(self) -> float | None:  # type: ignore[override]
        """The privacy parameter delta; None when it was not given and the cost of a run has no epsilon."""
        return self._delta

    @property
    def rho(self) -> float:
        """The parameter of zero-concentrated differential privacy; infinity when there is none."""
        return self._stopped.rho

    @property
    def relation(self) -> Relation | None:
        """The neighbouring relation, that of a run."""
        return self._stopped.relation

    @property
    def person(self) -> str | None:
        """The name of the column that says whose a row is, that of a run."""
        return self._stopped.person

    def release(self, run: Callable[[], tuple[Real, Output]], *, rng: Rng = None) -> tuple[Real, Output]:
        """Make the runs, and release the best score and the output of its run.

        Parameters
        ----------
        run : callable
            A function without parameters that makes one run, and returns its score and its output: a number, higher is
            better, and any object. Of equal scores the first one counts.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes K reproducible, and nothing else. By default each call draws a fresh key from the
            operating system.

        Returns
        -------
        tuple
            The best score, and the output of its run.

        Raises
        ------
        Error
            When no run returned a score. The cost is spent then.
        """
        # K stands in no variable: what shows the variables of a traceback would show it.
        best = _best(self._taken(run), self._schedule(rng))
        if best is None:
            raise Error(
                "no run returned a pair of a number, other than NaN, and an output: call it on made-up data, where its "
                "exceptions can be seen; the cost of this release is spent"
            )
        return best

    def _schedule(self, rng: Rng) -> Iterator[bool]:
        """Draw K, and say of each run whether it counts: a uniform integer lies below the weights of 1, ..., K."""
        weights = self._stopped.weights
        total = sum(weights)
        bits = total.bit_length()
        while True:
            coins = bernoulli(0.5, size=bits, rng=rng)
            if (drawn := int.from_bytes(np.packbits(coins).tobytes(), "big") >> -bits % 8) < total:
                break
        counts = [drawn >= below for below in accumulate(weights[:-1], initial=0)]
        return iter(counts if self._padded else [one for one in counts if one])

    def _taken(self, run: Any) -> Any:
        if not callable(run) or isinstance(run, type):
            raise TypeError(f"run must be a function that makes one run, got {type(run).__name__}")
        if iscoroutinefunction(run):
            raise TypeError("run must be a function that makes one run, got one that is async")
        with suppress(ValueError):  # some functions in C do not say what they take
            taken = signature(run).parameters.values()
            needed = [one.name for one in taken if one.default is one.empty and one.kind not in _OPTIONAL]
            if needed:  # only their names, since a default may be private
                raise TypeError(f"run must be a function without parameters, got one that needs {', '.join(needed)}")
        return run

    def _loss(self) -> PrivacyLoss | PrivacyCost:
        return self._stopped

    def _values(self) -> dict[str, Any]:
        values = super()._values()
        values.pop("delta", None)  # that of the cost of a run
        return values if self._given is None else {**values, "delta": self._given}


def _best(run: Callable[[], tuple[Real, Output]], schedule: Iterator[bool]) -> tuple[Real, Output] | None:
    """Make a run for each item, and return the best of those that count; None if they all failed."""
    best = None
    with interruptible(_made) as making:
        while length_hint(schedule):
            made = making(run)
            if next(schedule) and made and (best is None or made[0] > best[0]):
                best = made
    return best and best[1]


def _made(run: Callable[[], tuple[Real, Output]]) -> tuple[float, tuple[Real, Output]] | None:
    """Make one run, and return its score as a float, and what it returned; None if it failed."""
    try:
        with without_warnings():
            score, output = run()
            number = real(score.item() if hasattr(score, "item") else score, "score")
    except BaseException:  # as of functions of `stability`: Rust's panics are no `Exception`; see `interruptible`
        return None
    return None if math.isnan(number) else (number, (score, output))
