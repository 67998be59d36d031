"""The shared parameters of the mechanisms of DP-SGD."""

from __future__ import annotations

from typing import Any, Final

from dpnoise.accounting import DiscreteGaussianLoss, PrivacyLoss
from dpnoise.mechanisms import Mechanism
from dpnoise.sensitivity import Relation

_STEPS: Final = 2.0**31  # the sensitivity has so many steps of the noise's grid, or more


class GradientPrivacy(Mechanism):
    """A mechanism that clips gradients, adds them up with noise, and divides."""

    __slots__ = ("_delta", "_epsilon")

    _native: Any
    _delta: float | None
    _epsilon: float | None

    @property
    def clip_norm(self) -> float:
        """The norm that gradients are clipped to."""
        return float(self._native.clip_norm)

    @property
    def noise_multiplier(self) -> float:
        """The ratio of the noise to the sensitivity."""
        return float(self._native.noise_multiplier)

    @property
    def expected_batch_size(self) -> float:
        """The divisor of the noisy sum."""
        return float(self._native.expected_batch_size)

    @property
    def granularity(self) -> float:
        """The step of the grid that clipped gradients are rounded to."""
        return float(self._native.granularity)

    @property
    def epsilon(self) -> float | None:  # type: ignore[override]
        """The privacy parameter epsilon; None without a ``delta``."""
        return self._epsilon

    @property
    def delta(self) -> float | None:  # type: ignore[override]
        """The privacy parameter delta, when that was given."""
        return self._delta

    @property
    def relation(self) -> Relation:
        """The neighbouring relation: one example, added or removed."""
        return "add/remove"

    def _loss_of_noise(self) -> PrivacyLoss:
        """Return the loss of a release of the noise multiplier on all data."""
        return DiscreteGaussianLoss(self.noise_multiplier * _STEPS, _STEPS, rounded=True)
