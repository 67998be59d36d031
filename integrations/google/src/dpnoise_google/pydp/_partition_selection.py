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

    Parameters
    ----------
    epsilon : float
        The privacy parameter of all groups together: finite, and at least ``2**-20 * max_partitions_contributed``.
    delta : float
        The privacy parameter of all groups together: from 0 to 1, and if positive at least ``2**-800 *
        max_partitions_contributed``. Choose it much smaller than one over the number of people.
    max_partitions_contributed : int
        The most groups that a person is in, from 1 to 2**31 - 1.

    Returns
    -------
    PartitionSelectionStrategy
        A strategy whose ``should_keep`` takes whole numbers of people.

    References
    ----------
    Desfontaines, Voss, Gipson and Mandayam (2022), "Differentially private partition selection", Theorem 1.
    """
    return _TruncatedGeometric(_checked(_create_truncated_geometric(epsilon, delta, max_partitions_contributed)))


def create_laplace_partition_strategy(
    epsilon: float, delta: float, max_partitions_contributed: int
) -> PartitionSelectionStrategy:
    """Make the strategy that keeps a group if its number of people, with Laplace noise, reaches a threshold.

    Parameters
    ----------
    epsilon : float
        The privacy parameter of all groups together: positive and finite, with ``max_partitions_contributed / epsilon``
        below 2**940.
    delta : float
        The privacy parameter of all groups together: from 0 to 1, and if positive at least ``2**-800 *
        max_partitions_contributed``. With 0 no group is kept. Choose it much smaller than one over the number of
        people.
    max_partitions_contributed : int
        The most groups that a person is in, from 1 to 2**31 - 1.

    Returns
    -------
    PartitionSelectionStrategy
        Its ``noised_value_if_should_keep(num_users)`` returns the noisy number or None.
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

    Parameters
    ----------
    epsilon : float
        The privacy parameter of all groups together: positive and finite, with a standard deviation of the noise below
        2**939.
    delta : float
        The privacy parameter of all groups together: at least ``2**-800 * max_partitions_contributed``, and at most 1.
        Choose it much smaller than one over the number of people.
    max_partitions_contributed : int
        The most groups that a person is in, from 1 to 2**31 - 1.

    Returns
    -------
    PartitionSelectionStrategy
        Its ``noised_value_if_should_keep(num_users)`` returns the noisy number or None.
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
    epsilon : float
        The privacy parameter of all groups together: positive and finite, and for truncated geometric noise at least
        ``2**-20 * max_partitions_contributed``.
    delta : float
        The privacy parameter of all groups together: from 0, which Gaussian noise excludes, to 1, and if positive at
        least ``2**-800 * max_partitions_contributed``. Choose it much smaller than one over the number of people.
    max_partitions_contributed : int
        The most groups that a person is in, from 1 to 2**31 - 1.
    pre_threshold : int
        The fewest people with which a group can be kept, from 1 to 2**31 - 1. Never take it from the data.
    strategy_type : PartitionSelectionStrategyType
        The strategy for the people from there on: ``NEAR_TRUNCATED_GEOMETRIC``, ``LAPLACE`` or ``GAUSSIAN``.

    Returns
    -------
    PartitionSelectionStrategy
        A strategy with the attribute ``pre_threshold``.
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
    strategy : str
        The name of the strategy: "truncated_geometric", "laplace" or "gaussian", in upper or lower case.
    epsilon : float
        The privacy parameter of all groups together: positive and finite, and for truncated geometric noise at least
        ``2**-20 * max_partitions_contributed``.
    delta : float
        The privacy parameter of all groups together: from 0, which Gaussian noise excludes, to 1, and if positive at
        least ``2**-800 * max_partitions_contributed``. Choose it much smaller than one over the number of people.
    max_partitions_contributed : int
        The most groups that a person is in, from 1 to 2**31 - 1.
    pre_threshold : int, optional
        The fewest people with which a group can be kept, from 1 to 2**31 - 1: the strategy counts from there. Never
        take it from the data. By default there is no such number.

    Returns
    -------
    PartitionSelectionStrategy
        The strategy, with the attribute ``pre_threshold`` if that was given.
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

    Parameters
    ----------
    made : pydp.algorithms.partition_selection.PartitionSelectionStrategy
        PyDP's strategy, which has the parameters. Users call the functions that create strategies instead.

    Attributes
    ----------
    epsilon : float
        The privacy parameter epsilon of all groups together.
    delta : float
        The privacy parameter delta of all groups together.
    max_partitions_contributed : int
        The most groups that a person is in.
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
        """Return PyDP's probability, which is a few millionths of itself above the probability of the draw.

        Parameters
        ----------
        num_users : float
            The number of people in the group.

        Returns
        -------
        float
            The probability, from 0 to 1. It is private where the number is.
        """
        return float(self._made.probability_of_keep(num_users))

    def should_keep(self, num_users: float) -> bool:
        """Say whether a group is released.

        Parameters
        ----------
        num_users : float
            The private number of people in the group. The truncated geometric strategy takes whole numbers alone.

        Returns
        -------
        bool
            Whether the group is kept. Each call draws anew, and costs as much.
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
