"""Partition selection: which groups may be released, where the set of groups is private too."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, Final

from pydp.algorithms import partition_selection as host

from dpnoise import ParameterError
from dpnoise.extend import gaussian, real
from dpnoise.mechanisms import NoiseBuffer, TruncatedGeometric
from dpnoise_google.pydp import _host
from dpnoise_google.pydp._mechanisms import WIDENING, laplace

PartitionSelectionStrategyType = host.PartitionSelectionStrategyType
"""PyDP's own types of strategies, which `create_pre_thresholding_partition_strategy` takes."""

# Bound here, since `patched` puts those below under these names.
_create_gaussian = host.create_gaussian_partition_strategy
_create_laplace = host.create_laplace_partition_strategy
_create_pre_thresholding = host.create_pre_thresholding_partition_strategy
_create_truncated_geometric = host.create_truncated_geometric_partition_strategy

# The safety margin: a share of the scale above the threshold.
_MARGIN: Final = 2.0**-20
# For each group of a person: so that doubles hold the probabilities.
_LEAST_DELTA: Final = 2.0**-800


def create_truncated_geometric_partition_strategy(
    epsilon: float, delta: float, max_partitions_contributed: int
) -> PartitionSelectionStrategy:
    """Make the strategy that keeps as many groups as epsilon and delta allow.

    ``should_keep`` takes whole numbers of people.

    Parameters
    ----------
    epsilon : float
        Positive; at least ``2**-20 * max_partitions_contributed``.
    delta : float
        From 0 to 1; if positive, at least ``2**-800 * max_partitions_contributed``.
    max_partitions_contributed : int
        The number of groups of a person.

    References
    ----------
    Desfontaines, Voss, Gipson and Mandayam (2022), "Differentially private partition selection", Theorem 1.
    """
    return _TruncatedGeometric(_checked(_create_truncated_geometric(epsilon, delta, max_partitions_contributed)))


def create_laplace_partition_strategy(
    epsilon: float, delta: float, max_partitions_contributed: int
) -> PartitionSelectionStrategy:
    """Make the strategy that keeps a group if its number of people, with Laplace noise, reaches a threshold.

    Its ``noised_value_if_should_keep`` returns the noisy number or None.

    Parameters
    ----------
    epsilon, delta, max_partitions_contributed
        As for `create_truncated_geometric_partition_strategy`, but epsilon may be any positive number for which the
        scale is in the reach of `dpnoise.Laplace`.
    """
    made = _checked(_create_laplace(epsilon, delta, max_partitions_contributed))
    return _Thresholding(
        create_laplace_partition_strategy,
        made,
        laplace(made.epsilon, float(made.max_partitions_contributed)),
        _laplace_quantile(*_shared(made.delta, made.max_partitions_contributed)),
    )


def create_gaussian_partition_strategy(
    epsilon: float, delta: float, max_partitions_contributed: int
) -> PartitionSelectionStrategy:
    """Make the strategy that keeps a group if its number of people, with Gaussian noise, reaches a threshold.

    One half of delta is for the noise, the other for the threshold, as by PyDP.

    Its ``noised_value_if_should_keep`` returns the noisy number or None.

    Parameters
    ----------
    epsilon, delta, max_partitions_contributed
        As for `create_laplace_partition_strategy`, with the reach of `dpnoise.Gaussian`; delta is positive.
    """
    made = _checked(_create_gaussian(epsilon, delta, max_partitions_contributed))
    half, sensitivity = made.delta / 2, math.sqrt(made.max_partitions_contributed)
    std = _host.GaussianMechanism(made.epsilon, half, sensitivity).std
    return _Thresholding(
        create_gaussian_partition_strategy,
        made,
        gaussian(made.epsilon, half, sensitivity * WIDENING, std * WIDENING),
        -NormalDist().inv_cdf(_shared(half, made.max_partitions_contributed)[0]),
    )


def create_pre_thresholding_partition_strategy(
    epsilon: float, delta: float, max_partitions_contributed: int, pre_threshold: int, strategy_type: Any
) -> PartitionSelectionStrategy:
    """Make a strategy that keeps no group with fewer people than ``pre_threshold``, and counts from there.

    Parameters
    ----------
    epsilon, delta, max_partitions_contributed : as for the strategy of that type
    pre_threshold : int
        Positive.
    strategy_type : PartitionSelectionStrategyType
        One of the types of PyDP.
    """
    made = _create_pre_thresholding(epsilon, delta, max_partitions_contributed, pre_threshold, strategy_type)
    inner = _CREATORS[strategy_type](epsilon, delta, max_partitions_contributed)
    return _PreThresholding(made, strategy_type, inner)


def create_partition_strategy(
    strategy: str, epsilon: float, delta: float, max_partitions_contributed: int, pre_threshold: int | None = None
) -> PartitionSelectionStrategy:
    """Make the strategy of that name, or raise a ValueError if there is none.

    Parameters
    ----------
    strategy : {"truncated_geometric", "laplace", "gaussian"}
        In upper or lower case.
    epsilon, delta, max_partitions_contributed : as for that strategy
    pre_threshold : int, optional
        Groups of fewer people are never kept.
    """
    if strategy.lower() not in _TYPES:
        raise ValueError(f"Strategy '{strategy}' is not supported.")
    of_type = _TYPES[strategy.lower()]
    budget = epsilon, delta, max_partitions_contributed
    if pre_threshold is None:
        return _CREATORS[of_type](*budget)
    return create_pre_thresholding_partition_strategy(*budget, pre_threshold, of_type)


_TYPES: Final = {
    "truncated_geometric": PartitionSelectionStrategyType.NEAR_TRUNCATED_GEOMETRIC,
    "laplace": PartitionSelectionStrategyType.LAPLACE,
    "gaussian": PartitionSelectionStrategyType.GAUSSIAN,
}
_CREATORS: Final = {
    PartitionSelectionStrategyType.NEAR_TRUNCATED_GEOMETRIC: create_truncated_geometric_partition_strategy,
    PartitionSelectionStrategyType.LAPLACE: create_laplace_partition_strategy,
    PartitionSelectionStrategyType.GAUSSIAN: create_gaussian_partition_strategy,
}


class PartitionSelectionStrategy(host.PartitionSelectionStrategy):
    """A strategy that is (epsilon, delta)-differentially private for people in at most a given number of groups.

    Neighbours differ by one person. The number of people of a group, which ``should_keep`` takes, counts each once.

    Attributes
    ----------
    epsilon, delta : float
        The privacy parameters of all groups together.
    max_partitions_contributed : int
        The number of groups of a person.
    """

    def __init__(self, made: Any) -> None:
        self._made = made
        self.epsilon = float(made.epsilon)
        self.delta = float(made.delta)
        self.max_partitions_contributed = int(made.max_partitions_contributed)

    @property
    def _budget(self) -> tuple[float, float, int]:
        return self.epsilon, self.delta, self.max_partitions_contributed

    def probability_of_keep(self, num_users: float) -> float:
        """Return PyDP's probability, which is a few millionths of itself above the probability of the draw."""
        return float(self._made.probability_of_keep(num_users))

    def should_keep(self, num_users: float) -> bool:
        """Say whether a group is released.

        Parameters
        ----------
        num_users : int or float
            The number of people in the group; positive.
        """
        raise NotImplementedError


class _TruncatedGeometric(PartitionSelectionStrategy):
    def __init__(self, made: Any) -> None:
        super().__init__(made)
        epsilon, delta, partitions = self._budget
        self._selection = TruncatedGeometric(epsilon=epsilon, delta=delta, max_partitions_contributed=partitions)

    def should_keep(self, num_users: float) -> bool:
        if type(num_users) is not int:  # the usual type needs no check here
            num_users = real(num_users, "num_users")
        return self._selection.should_keep(num_users)

    def __reduce__(self) -> tuple[Any, ...]:
        return create_truncated_geometric_partition_strategy, self._budget


class _Thresholding(PartitionSelectionStrategy):
    def __init__(self, create: Any, made: Any, noise: Any, quantile: float) -> None:
        super().__init__(made)
        self._create = create
        self._noise = noise
        self._add_noise = NoiseBuffer(noise).add_noise
        safe = max(made.threshold, 1 + quantile * noise.scale)
        self.threshold = safe + _MARGIN * noise.scale + 2.0**-50 * max(safe, 0.0)

    def should_keep(self, num_users: float) -> bool:
        keep: bool = self._noised(num_users) >= self.threshold
        return keep

    def noised_value_if_should_keep(self, num_users: float) -> float | None:
        noisy = self._noised(num_users)
        return noisy if noisy >= self.threshold else None

    def _noised(self, num_users: float) -> float:
        if type(num_users) is not int:  # the usual type needs no check here
            people = real(num_users, "num_users")
            if not math.isfinite(people):
                return people
        return self._add_noise(num_users)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._create, self._budget


class _PreThresholding(PartitionSelectionStrategy):
    def __init__(self, made: Any, strategy_type: Any, inner: PartitionSelectionStrategy) -> None:
        super().__init__(made)
        self.pre_threshold = float(made.pre_threshold)
        self._type = strategy_type
        self._inner = inner

    def should_keep(self, num_users: float) -> bool:
        people = real(num_users, "num_users")
        return people >= self.pre_threshold and self._inner.should_keep(people - (self.pre_threshold - 1))

    def __reduce__(self) -> tuple[Any, ...]:
        return create_pre_thresholding_partition_strategy, (*self._budget, int(self.pre_threshold), self._type)


def _checked(made: Any) -> Any:
    """Refuse a delta whose part for each group is too small for exact computation."""
    if 0 < made.delta < _LEAST_DELTA * made.max_partitions_contributed:
        raise ParameterError(
            f"delta must be 0, or at least 2**-800 * max_partitions_contributed (which is "
            f"{made.max_partitions_contributed}), got {made.delta!r}"
        )
    return made


def _shared(delta: float, partitions: int) -> tuple[float, float]:
    """Return the part of a delta for one of several groups, and one minus it."""
    if delta == 1:
        return 1.0, 0.0
    logarithm = math.log1p(-delta) / partitions
    return -math.expm1(logarithm), math.exp(logarithm)


def _laplace_quantile(above: float, below: float) -> float:
    """Return the number that noise of scale 1 reaches with the probability ``above``."""
    if above <= 0.5:
        return -math.log(2 * above) if above else math.inf
    return math.log(2 * below) if below else -math.inf
