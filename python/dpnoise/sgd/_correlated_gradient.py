"""Runs of DP-SGD whose noise is correlated from step to step."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpnoise import _native
from dpnoise._arrays import read_by
from dpnoise._errors import HaltedError, ParameterError
from dpnoise._numbers import checked_delta, checked_level, integer
from dpnoise._types import Integer, Number, Rng, Values
from dpnoise.accounting import PrivacyLoss, zcdp_epsilon
from dpnoise.keyed import NoiseKey
from dpnoise.sgd._accounting import epsilon_spent
from dpnoise.sgd._gradients import Floats, gradients_of, output_for
from dpnoise.sgd._noisy_gradient import GradientPrivacy
from dpnoise.sgd._strategy import BandedToeplitz, Participation

_WIDTHS: Final = range(1, 2**40 + 1)


class CorrelatedGradient(GradientPrivacy):
    """A run of DP-SGD whose noise is correlated between steps: each step takes back some of the noise before it.

    A model is trained by the sums of its gradients, and these have less noise than with independent noise for the same
    privacy. This is DP-FTRL, or banded matrix factorization, with exact noise. All steps together are
    ``events / (2 * noise_multiplier**2)``-zCDP, where one event is a release to which sampling applies: one for
    `SingleEpoch` and `MinSeparation`. With the sampling of `CyclicPoisson` they cost less: see ``cost``.

    Parameters
    ----------
    strategy : BandedToeplitz
        How the noise is correlated, and the number of steps.
    clip_norm : float
        The largest L2 norm of a clipped gradient, from 2**-80 to 2**80: a gradient above it is scaled down to it.
    noise_multiplier : float
        The ratio of the standard deviation of the independent noise to the sensitivity of the run, which is
        ``strategy.sensitivity(participation)`` times the sensitivity of a clipped gradient. At least 2**-20, and small
        enough that the noise fits into 64 bits: at most 910 over the sensitivity of the strategy, and less if the noise
        of late steps is made of the noise of many steps before, such as 0.157 for nine coefficients of 1 and 2**20
        steps.
    expected_batch_size : float
        The divisor of the noisy sum: the average size of a batch, which is the sampling rate times the number of
        examples. From 2**-32 to 2**53. It is a public constant: the actual size of a batch is private, and a mean over
        it would reveal it.
    participation : SingleEpoch, MinSeparation or CyclicPoisson
        In which steps an example may take part. The caller must make the batches accordingly: nothing here can check
        it.
    delta : float, optional
        The delta of the whole run: between 0 and 1, both excluded. Choose it much smaller than one over the number of
        examples. It determines the epsilon of the run, and so its `cost`, which is unknown without it. With a sample
        rate below 1 this needs the extra ``accounting``.

    Notes
    -----
    The guarantee is for neighbours that differ by one example whose gradients are replaced by zeros in all its steps;
    and so for one example that is added or removed, if the steps of each example depend on nothing of the others.

    Gradients are clipped and added up as `clip_and_sum` does, on a grid that is 1024 times as coarse. The noise has a
    grid that is 4096 times as fine as the grid of the sums, and is made in integers: the noise of step t is ``z[t]``,
    independent discrete Gaussian noise, less the rounded sum of ``coefficients[j] * w[t - j]``, where w is the noise of
    earlier steps. Between neighbours, the integers that z is added to differ by exactly C times the difference of the
    gradients, whatever has been released before. So the whole run, adaptive as it is, costs as much as one release of
    Gaussian noise. The proof is in ``docs/proofs/correlated_noise.md``.

    Sums wrap around above 2**29 times ``clip_norm``. Memory: ``bands`` numbers of 8 bytes for each parameter, all of
    which a step reads.

    References
    ----------
    Kairouz, McMahan, Song, Thakkar, Thakurta and Xu (2021), "Practical and private (deep) learning without sampling or
    shuffling"; Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu (2023), "(Amplified) banded matrix
    factorization: a unified approach to private training"; Canonne, Kamath and Steinke (2020), "The discrete Gaussian
    for differential privacy".

    Examples
    --------
    >>> import numpy as np
    >>> from dpnoise.sgd import BandedToeplitz, CorrelatedGradient, SingleEpoch
    >>> data, weights = np.ones((1000, 3)), np.zeros(3)
    >>> run = CorrelatedGradient(
    ...     strategy=BandedToeplitz([1.0, 0.5, 0.375], steps=10),
    ...     clip_norm=1.0,
    ...     noise_multiplier=1.1,
    ...     expected_batch_size=100,
    ...     participation=SingleEpoch(),
    ... ).start()
    >>> for batch in data.reshape(10, 100, 3):
    ...     weights -= 0.5 * run.step(batch * (batch @ weights - 1)[:, np.newaxis])
    """

    __slots__ = ("_participation", "_strategy")

    _native: _native.CorrelatedGradient
    _parameters = ("strategy", "clip_norm", "noise_multiplier", "expected_batch_size", "participation", "delta")

    def __init__(
        self,
        *,
        strategy: BandedToeplitz,
        clip_norm: Number,
        noise_multiplier: Number,
        expected_batch_size: Number,
        participation: Participation,
        delta: Number | None = None,
    ) -> None:
        if not isinstance(strategy, BandedToeplitz):
            raise TypeError(f"strategy must be a BandedToeplitz, got {type(strategy).__name__}")
        self._strategy, self._participation = strategy, participation
        self._native = _native.CorrelatedGradient(
            numerators=strategy._numerators,
            steps=strategy.steps,
            gain=strategy._gain(),
            sensitivity=strategy.sensitivity(participation),
            participation=repr(participation),
            clip_norm=clip_norm,
            noise_multiplier=noise_multiplier,
            expected_batch_size=expected_batch_size,
        )
        self._delta = None if delta is None else checked_delta(delta)
        self._epsilon = None if self._delta is None else self._epsilon_for(self._delta)

    def _epsilon_for(self, delta: float) -> float:
        if self._participation.sample_rate == 1:
            return zcdp_epsilon(self.rho, delta=delta)
        return epsilon_spent(
            noise_multiplier=self.noise_multiplier,
            sample_rate=self._participation.sample_rate,
            steps=self._events,
            delta=delta,
        )

    @property
    def strategy(self) -> BandedToeplitz:
        """How the noise is correlated, and the number of steps."""
        return self._strategy

    @property
    def participation(self) -> Participation:
        """In which steps an example may take part."""
        return self._participation

    @property
    def rho(self) -> float:
        """The parameter of zero-concentrated differential privacy of a run without sampling, rounded up."""
        return self._loss_of_noise().repeated(self._events).rho

    def start(self, *, key: NoiseKey | None = None) -> CorrelatedGradientRun:
        """Start a run, which makes one step at a time; all steps together cost `cost`.

        Parameters
        ----------
        key : NoiseKey, optional
            A secret that brings the noise back, for runs that may have to be resumed. Whoever learns it can subtract
            the noise. Without it the noise comes from fresh keys that nobody keeps.
        """
        if not isinstance(key, NoiseKey | None):
            raise TypeError(f"key must be a NoiseKey or None, got {type(key).__name__}")
        return CorrelatedGradientRun(self._native.start(None if key is None else key._secret))

    def resume(self, state: bytes, *, key: NoiseKey, threads: int | None = None) -> CorrelatedGradientRun:
        """Continue a run from its state, with the next step.

        The noise of all earlier steps is made again, which takes as long as without gradients. Resume from the last
        step that has been released: a run that goes on from an earlier one releases steps a second time, with other
        noise, and costs more than `cost`. An older state, or the state of another run with this key, is as good as the
        last one: where others can write states, compare `next_step` and `run_id` with what only you can write.

        Parameters
        ----------
        state : bytes
            The result of `CorrelatedGradientRun.state`, for equal parameters. This is checked before anything is drawn.
        key : NoiseKey
            The key of the run.
        threads : int, optional
            The number of threads that make the noise of the earlier steps again, at least 1; by default all cores that
            the process may use. It does not change the noise.

        Raises
        ------
        ParameterError
            When ``state`` was changed, or belongs to other parameters or to another key.
        """
        if not isinstance(state, bytes):
            raise TypeError(f"state must be bytes, got {type(state).__name__}")
        if not isinstance(key, NoiseKey):
            raise TypeError(f"key must be a NoiseKey, got {type(key).__name__}")
        run = self.start(key=key)
        run._native.resume(state, threads)
        return run

    def release(self, batches: Iterable[Values], *, rng: Rng = None) -> NDArray[Any]:
        """Start a run and return its steps, of shape (batches, d), for batches that are known beforehand.

        Parameters
        ----------
        batches : iterable of array_like of float32 or float64, each of shape (n, d)
            The gradients of each batch, which `CorrelatedGradientRun.step` takes: a row for each example, and the same
            d in all batches. There are at least one and at most as many batches as the strategy has steps.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system.
        """
        given = self._held(batches)
        if not 0 < len(given) <= self._strategy.steps or len({rows.shape[1] for rows in given}) > 1:
            most = f"from 1 to {self._strategy.steps} arrays with as many columns each"
            raise ParameterError(f"batches must be {most}, got {len(given)} arrays")
        run = self.start()
        return np.array([run.step(rows, rng=rng) for rows in given])

    def _held(self, x: Any) -> list[Floats]:
        batches: list[Any] = read_by(list, x, "batches")
        return [gradients_of(batch) for batch in batches]

    def error(self, d: Integer, level: Number = 0.95) -> float:  # type: ignore[override]
        """Bound the noise of each coordinate of a step.

        The bound is in the unit of a step, after the division by ``expected_batch_size``. The noise in sums of the
        gradients of many steps is smaller than with independent noise: see `BandedToeplitz.max_error`.

        The bound holds for all sub-Gaussian noise, and is more than a third above the smallest one for level 0.95.

        Parameters
        ----------
        d : int
            The number of coordinates of a gradient, from 1 to 2**40.
        level : float, default 0.95
            The probability with which the bound holds: between 0 and 1, both excluded.
        """
        independent = self.noise_multiplier * self._native.sensitivity(integer(d, "d", _WIDTHS))
        independent *= self._strategy.sensitivity(self._participation)
        # The noise is the inverse of C times independent noise and rounding errors of half a unit. Rows of the inverse
        # have norms of at most the gain, and so sums of magnitudes of at most sqrt(steps) times the gain.
        deviations = math.sqrt(2 * (math.log(2.0) - math.log1p(-checked_level(level))))
        rounding = math.sqrt(self._strategy.steps) * self.granularity * 2.0**-13
        noise = self._strategy._gain() * (deviations * independent + rounding)
        return noise / self.expected_batch_size * (1 + 2.0**-40)

    def _loss(self) -> PrivacyLoss:
        """Return the privacy loss of a run, for the accountant."""
        event, rate = self._loss_of_noise(), self._participation.sample_rate
        return (event.sampled(rate) if rate < 1 else event).repeated(self._events)

    @property
    def _events(self) -> int:
        return self._participation.events(self._strategy.steps)


class CorrelatedGradientRun:
    """A run of steps, made by `CorrelatedGradient.start` or `CorrelatedGradient.resume`.

    It holds the noise of earlier steps, which is secret, and wiped when it is dropped. It can be neither copied nor
    pickled, and a forked child cannot continue it: its steps would be made twice. Steps are made one after the other.

    Parameters
    ----------
    native : object
        The native run, which only `CorrelatedGradient.start` and `CorrelatedGradient.resume` make.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.CorrelatedGradient) -> None:
        self._native = native

    @property
    def next_step(self) -> int:
        """The number of the next step, counted from 0; a HaltedError while another thread makes a step."""
        return self._native.next_step

    @property
    def run_id(self) -> bytes | None:
        """16 public bytes, unique to the run, which a resumed run keeps; None without a key."""
        return self._native.id

    def step(
        self, gradients: Values, *, out: Floats | None = None, threads: int | None = None, rng: Rng = None
    ) -> NDArray[Any]:
        """Clip the gradient of each example of a batch, add them up, add the noise of the next step, and divide.

        Parameters
        ----------
        gradients : array_like of float32 or float64, shape (n, d)
            A row for each example, with all parameters of the model: d is from 1 to 2**40 and the same in all steps,
            and n may be 0, for a step of noise alone. C-contiguous arrays of these dtypes are read in place and must
            not be changed meanwhile; others are converted, float16, bfloat16 and smaller floats of ml_dtypes to
            float32, and integers to float64.
        out : ndarray, optional
            An array to fill and return in place of a new one: writable, C-contiguous, of shape (d,) and of the dtype of
            the result. It shares no memory with ``gradients``.
        threads : int, optional
            The number of threads that share the work, at least 1; by default all cores that the process may use. It
            does not change the result's distribution.
        rng : generator of `dpnoise.hazmat`, optional
            For tests only: makes the call reproducible, on one thread. Who knows its seed can subtract the noise. By
            default each call draws a fresh key from the operating system. A run with a key refuses it.

        Returns
        -------
        ndarray, shape (d,)
            The noisy sum, divided by ``expected_batch_size``: float32 for gradients of at most 32 bits, else float64.

        Raises
        ------
        HaltedError
            After the last step of the strategy, while another thread makes a step, or when another process started the
            run.
        """
        rows = gradients_of(gradients)
        array = output_for(rows, out)
        self._native.step(rows, array, threads, rng)
        return array

    def state(self) -> bytes:
        """Return the public state, from which `CorrelatedGradient.resume` continues the run with its key.

        Nobody can change it without the key. It has fingerprints of the key and of the parameters, the run's id, the
        number of parameters of the model, and 16 random bytes for each step, but neither the key nor any noise.

        A run without a key has no state.

        Raises
        ------
        HaltedError
            While another thread makes a step.
        """
        return self._native.state()

    def __repr__(self) -> str:
        """Show the number of the next step, unless another thread makes it."""
        with suppress(HaltedError):
            return f"<CorrelatedGradientRun, next step {self.next_step}>"
        return "<CorrelatedGradientRun in a step>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise TypeError(
            "a CorrelatedGradientRun holds secret noise and cannot be pickled: keep its state() and its key"
        )
