"""Stability: exact answers where no neighbour would have another one, and none elsewhere.

The worst case over all data is often much worse than the data at hand: one person can move a median by the whole range
of values, but hardly ever does. These functions test in private how far the data are from such a case. Each returns
its answer, or None where the test fails: the refusal is public, the distance that was tested is not.
"""

from dpnoise.stability._distances import iqr_distance, median_distance, mode_distance
from dpnoise.stability._median_and_mode import release_median, release_mode
from dpnoise.stability._propose_test_release import propose_test_release
from dpnoise.stability._scale import release_scale
from dpnoise.stability._stable_bootstrap import stable_bootstrap
from dpnoise.stability._stable_release import Release, release_if_stable
from dpnoise.stability._subsample_and_aggregate import subsample_and_aggregate

__all__ = [
    "Release",
    "iqr_distance",
    "median_distance",
    "mode_distance",
    "propose_test_release",
    "release_if_stable",
    "release_median",
    "release_mode",
    "release_scale",
    "stable_bootstrap",
    "subsample_and_aggregate",
]
