"""Mechanisms and partition selection of PyDP with exact, secure noise: its names, its parameters, its checks.

`LaplaceMechanism` and `GaussianMechanism` are subclasses of PyDP's classes, with the same properties and errors. They
differ in the source of the noise, take arrays in ``add_noise``, and can be pickled. The same holds for the strategies
of partition selection, except for arrays. `patched` and `install` put all of them into PyDP's modules.

Values are rounded to the grid of `dpnoise.Laplace` or `dpnoise.Gaussian`. The noise has PyDP's scale increased by one
part in 2**20, or the least scale that suffices, if that is larger. The increase covers the rounding, even if many
values share a sensitivity and are released one at a time.

The caller's sensitivity defines the neighbours. A release costs the mechanism's ``epsilon`` and ``delta``.
"""

from dpnoise_google.pydp._host import ConfidenceInterval, NumericalMechanism
from dpnoise_google.pydp._mechanisms import GaussianMechanism, LaplaceMechanism
from dpnoise_google.pydp._partition_selection import (
    PartitionSelectionStrategy,
    PartitionSelectionStrategyType,
    create_gaussian_partition_strategy,
    create_laplace_partition_strategy,
    create_partition_strategy,
    create_pre_thresholding_partition_strategy,
    create_truncated_geometric_partition_strategy,
)
from dpnoise_google.pydp._patch import install, patched

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
