"""Replacement of the mechanisms in PyDP's modules."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from pydp.algorithms import numerical_mechanisms, partition_selection

from dpnoise.extend import Patch
from dpnoise_google.pydp import _mechanisms, _partition_selection

_REPLACED: Final = {
    numerical_mechanisms: (_mechanisms, ("GaussianMechanism", "LaplaceMechanism")),
    partition_selection: (
        _partition_selection,
        (
            "create_gaussian_partition_strategy",
            "create_laplace_partition_strategy",
            "create_partition_strategy",
            "create_pre_thresholding_partition_strategy",
            "create_truncated_geometric_partition_strategy",
        ),
    ),
}


def patched() -> AbstractContextManager[None]:
    """Put the mechanisms of this module into PyDP's modules, within a ``with`` block.

    These are `pydp.algorithms.numerical_mechanisms` and `pydp.algorithms.partition_selection`. Names that were imported
    from them before are not replaced. The patch holds for the whole process, but not for other processes, until the
    last block in any thread ends, also by an exception.

    Examples
    --------
    >>> from dpnoise_google.pydp import patched
    >>> from pydp.algorithms import numerical_mechanisms
    >>> with patched():
    ...     released = numerical_mechanisms.LaplaceMechanism(0.5).add_noise(37.2)
    """
    return _PATCH.within()


def install() -> None:
    """Do what `patched` does, for as long as the process runs. Calling it again changes nothing."""
    _PATCH.enter()


_PATCH: Final = Patch(
    lambda: [(owner, name, getattr(ours, name)) for owner, (ours, names) in _REPLACED.items() for name in names]
)
