"""Mechanisms and partition selection of PyDP with exact, secure noise: its names, its parameters, its checks.

`LaplaceMechanism` and `GaussianMechanism` are subclasses of PyDP's classes, with the same properties and errors. What
differs is where the noise comes from, that ``add_noise`` takes arrays, and that they can be pickled. So it is with the
strategies of partition selection, but for arrays. `patched` and `install` put all of them into PyDP's modules.

Values are rounded to the grid of `dpnoise.Laplace` or `dpnoise.Gaussian`. The noise has PyDP's scale and one part in
2**20 more, or what suffices, if that is more. It pays for the rounding, also when many values share a sensitivity and
are released one at a time.

Neighbours are what the sensitivity is about: the caller's data sets. A release costs the mechanism's ``epsilon`` and
``delta``.
"""

from dpnoise.backends.pydp._host import ConfidenceInterval, NumericalMechanism
from dpnoise.backends.pydp._mechanisms import GaussianMechanism, LaplaceMechanism
from dpnoise.backends.pydp._partition_selection import (
    PartitionSelectionStrategy,
    PartitionSelectionStrategyType,
    create_gaussian_partition_strategy,
    create_laplace_partition_strategy,
    create_partition_strategy,
    create_pre_thresholding_partition_strategy,
    create_truncated_geometric_partition_strategy,
)
from dpnoise.backends.pydp._patch import install, patched

__all__ = [
    "ConfidenceInterval",
    "GaussianMechanism",
    "LaplaceMechanism",
    "NumericalMechanism",
    "PartitionSelectionStrategy",
    "PartitionSelectionStrategyType",
    "create_gaussian_partition_strategy",
    "create_laplace_partition_strategy",
    "create_partition_strategy",
    "create_pre_thresholding_partition_strategy",
    "create_truncated_geometric_partition_strategy",
    "install",
    "patched",
]
