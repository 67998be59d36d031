"""In which steps of a run an example may take part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from dpnoise._errors import ParameterError
from dpnoise._parameters import ByName, integer, real_up

STEPS: Final = range(1, 2**20 + 1)
_DISTANCES: Final = range(1, 2**53 + 1)


class _OneEvent(ByName):
    """All participations of an example are within one event."""

    @property
    def sample_rate(self) -> float:
        """The sampling rate of an event: 1, since nothing is sampled."""
        return 1.0

    def events(self, steps: int) -> int:
        """Return the number of Gaussian releases that a run of 1 to 2**20 ``steps`` costs: 1."""
        integer(steps, "steps", STEPS)
        return 1


@dataclass(frozen=True)
class SingleEpoch(_OneEvent):
    """Each example takes part in at most one step of the run.

    Which step that is may depend on the example itself, but not on the data of other examples.

    Notes
    -----
    ``sample_rate`` is 1 and there is one event: the whole run costs as much as one Gaussian release of its
    ``noise_multiplier``, without amplification by sampling.

    Examples
    --------
    >>> from dpnoise.sgd import BandedToeplitz, SingleEpoch
    >>> BandedToeplitz([1.0, 0.5], steps=100).sensitivity(SingleEpoch()) ** 2
    1.2500000000000002
    """

    def _pattern(self, bands: int) -> tuple[int, int]:
        """Return the smallest separation and the largest number of an event's participations."""
        return 1, 1


@dataclass(frozen=True)
class MinSeparation(_OneEvent):
    """Any two steps that an example takes part in are some number of steps apart, or more.

    The steps of an example must not depend on the data of other examples. Batches in a fixed order, the same in all
    epochs, have the number of steps of an epoch as their separation. Examples shuffled anew for each epoch have
    separation 1, since the last example of an epoch may be the first of the next.

    Parameters
    ----------
    separation : int
        The smallest difference between the numbers of two steps of an example, at least 1 (any steps). From 1 to 2**53.
    max_participations : int, optional
        The largest number of steps of an example, from 1 to 2**53. Without it, as many as the separation allows.

    Notes
    -----
    ``sample_rate`` is 1 and there is one event: all participations of an example are within the sensitivity of the
    strategy, and the whole run costs as much as one Gaussian release of its ``noise_multiplier``.

    References
    ----------
    Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu (2023), "(Amplified) banded matrix factorization: a
    unified approach to private training".

    Examples
    --------
    >>> from dpnoise.sgd import BandedToeplitz, MinSeparation
    >>> BandedToeplitz([1.0, 0.0], steps=100).sensitivity(MinSeparation(25))
    2.0
    """

    separation: int
    max_participations: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Check the separation and the number of participations."""
        object.__setattr__(self, "separation", integer(self.separation, "separation", _DISTANCES))
        if self.max_participations is not None:
            most = integer(self.max_participations, "max_participations", _DISTANCES)
            object.__setattr__(self, "max_participations", most)

    def _pattern(self, bands: int) -> tuple[int, int]:
        return self.separation, self.max_participations or len(STEPS)


@dataclass(frozen=True)
class CyclicPoisson(ByName):
    """Poisson subsampling from groups of examples that take turns.

    The examples are divided into ``cycle`` groups, without looking at the data of other examples. Step t, counted from
    0, draws its batch from group t mod ``cycle`` by `poisson_sample`.

    Parameters
    ----------
    cycle : int
        The number of groups, from 1 to 2**53. A strategy must not have more bands.
    sample_rate : float
        The probability of an example to be in the batch of a step of its group; above 0 and at most 1, rounded up to a
        float. For batches of an average size B from n examples it is ``cycle * B / n``.

    Notes
    -----
    Each participation of an example changes no more than ``bands`` steps of the product of C and the gradients, and
    they are ``cycle`` steps apart or more, so that they do not overlap. The run costs as much as ``events(steps)``
    steps of DP-SGD with this sampling rate.

    References
    ----------
    Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu (2023), "(Amplified) banded matrix factorization: a
    unified approach to private training".

    Examples
    --------
    >>> from dpnoise.sgd import CyclicPoisson
    >>> CyclicPoisson(8, sample_rate=0.1).events(1000)
    125
    """

    cycle: int
    sample_rate: float = field(kw_only=True)

    def __post_init__(self) -> None:
        """Check the cycle and the sample rate."""
        object.__setattr__(self, "cycle", integer(self.cycle, "cycle", _DISTANCES))
        rate = real_up(self.sample_rate, "sample_rate")
        if not 0 < rate <= 1:
            raise ParameterError(f"sample_rate must be above 0 and at most 1, got {rate!r}")
        object.__setattr__(self, "sample_rate", rate)

    def events(self, steps: int) -> int:
        """Return the number of steps that an example may take part in: a ``cycle``-th of ``steps``, rounded up."""
        return -(-integer(steps, "steps", STEPS) // self.cycle)

    def _pattern(self, bands: int) -> tuple[int, int]:
        if bands > self.cycle:
            raise ParameterError(
                f"strategy must have no more bands than the cycle of CyclicPoisson, {self.cycle}, got {bands}"
            )
        return 1, 1


Participation = SingleEpoch | MinSeparation | CyclicPoisson
