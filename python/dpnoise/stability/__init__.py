"""Stability: answers where the data are far from those with a different answer, and refusals elsewhere.

The worst case over all data is often much worse than the data at hand: one person can move a median by the whole range
of values, but hardly ever does. These mechanisms test privately how far the data are from such a case. Each releases
its answer, or None where the test fails: the refusal is public, the distance that was tested is not. An answer and a
refusal cost the same, and the cost is known in advance: ledgers and accountants take these mechanisms like all others.
"""

from dpnoise import _calls
from dpnoise.stability._distances import iqr_distance, local_sensitivity, median_distance, mode_distance
from dpnoise.stability._mechanism import Attempt, StableMechanism
from dpnoise.stability._median_and_mode import StableMedian, StableMode, StableValue
from dpnoise.stability._propose_test_release import ProposeTestRelease
from dpnoise.stability._scale import StableScale
from dpnoise.stability._stable_bootstrap import StableBootstrap
from dpnoise.stability._subsample_and_aggregate import SubsampleAndAggregate

__all__ = [
    "Attempt",
    "ProposeTestRelease",
    "StableBootstrap",
    "StableMechanism",
    "StableMedian",
    "StableMode",
    "StableScale",
    "StableValue",
    "SubsampleAndAggregate",
    "iqr_distance",
    "local_sensitivity",
    "median_distance",
    "mode_distance",
]

_calls.explain(__name__)
