"""One step of DP-SGD."""

from __future__ import annotations

from typing import Any

from dpnoise import _native
from dpnoise._interchange import Values
from dpnoise.accounting._losses import DiscreteGaussianLoss, Loss
from dpnoise.samplers._draw import Rng
from dpnoise.sensitivity import Relation
from dpnoise.sgd._gradients import Floats, gradients_of, output_for

_STEPS = 2.0**31  # of the grid, that the clip norm has or more


class NoisyGradient:
    """The mean of clipped gradients, with discrete Gaussian noise on their sum.

    A step on all data is (alpha, alpha / (2 * noise_multiplier**2))-Rényi differentially private for every alpha
    above 1, that is 1/(2 noise_multiplier**2)-zCDP, for neighbours that differ by one example, added or removed. On
    Poisson samples, as `poisson_sample` draws them, steps cost less: `epsilon_spent` says how much.

    Parameters
    ----------
    clip_norm : float
        The L2 norm that the gradient of no example exceeds once it is clipped; from 2**-80 to 2**80.
    noise_multiplier : float
        The ratio of the standard deviation of the noise to the sensitivity of the sum; from 2**-20 to 2**11.
    expected_batch_size : float
        How many examples a batch has on average: the sampling rate times how many there are. From 2**-32 to 2**53. It
        is a public constant: how many examples a batch really has is private, and a mean over those would tell.

    Attributes
    ----------
    clip_norm, noise_multiplier, expected_batch_size : float
        As above.

    Raises
    ------
    ParameterError
        When a parameter is out of range.
    TypeError
        When a parameter is not a number.

    Notes
    -----
    The clipped gradients are added up on a grid, as `clip_and_sum` says, and noise is added there, exactly; only then
    is the sum divided. The sensitivity is that on the grid: ``clip_norm`` and half a step of the grid for the rounding
    of each of the d coordinates, or ``sqrt(d) / 2`` steps in all, less than 5e-7 of ``clip_norm`` for a million
    coordinates.

    References
    ----------
    Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang (2016), "Deep learning with differential privacy",
    algorithm 1; Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy".

    Examples
    --------
    >>> import numpy as np
    >>> from dpnoise.sgd import NoisyGradient, poisson_sample
    >>> data, weights = np.ones((1000, 3)), np.zeros(3)
    >>> noisy = NoisyGradient(clip_norm=1.0, noise_multiplier=1.1, expected_batch_size=100)
    >>> batch = data[poisson_sample(1000, 0.1)]
    >>> weights -= 0.5 * noisy.step(batch * (batch @ weights - 1)[:, np.newaxis])
    """

    __slots__ = ("_native",)

    def __init__(self, clip_norm: float, noise_multiplier: float, expected_batch_size: float) -> None:
        self._native = _native.NoisyGradient(
            clip_norm=clip_norm, noise_multiplier=noise_multiplier, expected_batch_size=expected_batch_size
        )

    @property
    def clip_norm(self) -> float:
        """The norm that gradients are clipped to."""
        return self._native.clip_norm

    @property
    def noise_multiplier(self) -> float:
        """The ratio of the noise to the sensitivity."""
        return self._native.noise_multiplier

    @property
    def expected_batch_size(self) -> float:
        """What the noisy sum is divided by."""
        return self._native.expected_batch_size

    @property
    def relation(self) -> Relation:
        """Which data sets are neighbours: by one example, added or removed."""
        return "add/remove"

    @property
    def granularity(self) -> float:
        """The step of the grid that clipped gradients are rounded to."""
        return self._native.granularity

    def step(self, gradients: Values, *, out: Floats | None = None, threads: int | None = None, rng: Rng = None) -> Any:
        """Clip the gradient of each example of a batch, add them up, add noise, and divide.

        Parameters
        ----------
        gradients : array_like of float32 or float64, shape (n, d)
            As for `clip_and_sum`. A batch without examples, n = 0, makes a step of noise alone: leaving it out would
            tell that nobody was in the batch.
        out : ndarray, shape (d,), optional
            As for `clip_and_sum`.
        threads : int, optional
            How many threads to use; all cores that the process may use when not given.
        rng : dpnoise.hazmat generator, optional
            For tests only: such a step is not private.

        Returns
        -------
        ndarray, shape (d,)
            float32 for gradients of at most 32 bits, else float64.

        Raises
        ------
        ParameterError
            When a shape does not fit. Nothing has been drawn then.
        TypeError
            When ``gradients`` is not made of real numbers of at most 64 bits, or ``out`` has another dtype.
        RandomnessError
            When the source of randomness fails; nothing is released.
        """
        rows = gradients_of(gradients)
        array = output_for(rows, out)
        self._native.step(rows, array, threads, rng)
        return array

    def _loss(self) -> Loss:
        """Give what is known of the privacy loss of a step, for the accountant."""
        return DiscreteGaussianLoss(self.noise_multiplier * _STEPS, _STEPS, rounded=True)

    def __repr__(self) -> str:
        """Show the call that makes this."""
        return (
            f"NoisyGradient(clip_norm={self.clip_norm!r}, noise_multiplier={self.noise_multiplier!r}, "
            f"expected_batch_size={self.expected_batch_size!r})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parameters; there is no other state."""
        return NoisyGradient, (self.clip_norm, self.noise_multiplier, self.expected_batch_size)
