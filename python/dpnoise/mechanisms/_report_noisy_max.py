"""Report noisy max, which is permute-and-flip."""

from __future__ import annotations

from dpnoise import _native
from dpnoise.mechanisms._selection import OneOfMany


class ReportNoisyMax(OneOfMany):
    """The index of the largest noisy score, with one-sided geometric noise: permute-and-flip, exactly.

    Scores are rounded to a grid, each gets noise n = 0, 1, 2, ... steps with probability proportional to ``exp(-n *
    granularity / scale)``, and the largest sum wins, ties being broken evenly. On a grid this equals permute-and-flip:
    visit candidates in random order, and choose the first one whose coin shows heads, with probability
    ``exp((score - best) / scale)``. The release is epsilon-differentially private for neighbouring data sets between
    which each score changes by at most ``sensitivity``.

    Its expected score is never below the expected score of `Exponential` at the same epsilon.

    Parameters
    ----------
    epsilon : as everywhere
    sensitivity, monotonic : as for `Exponential`

    Notes
    -----
    It does not have bounded range: its cost under zero-concentrated differential privacy is ``epsilon**2 / 2``, as for
    every epsilon-differentially private mechanism, and not the ``epsilon**2 / 8`` of `Exponential`.

    Time and memory accesses depend on neither scores nor choice.

    References
    ----------
    McKenna and Sheldon (2020), "Permute-and-flip: a new mechanism for differentially private selection"; Ding, Kifer,
    Sayed Mohammad, Steinke, Wang, Xiao and Zhang (2021), "The permute-and-flip mechanism is identical to
    report-noisy-max with exponential noise".

    Examples
    --------
    >>> from dpnoise import ReportNoisyMax
    >>> votes = [120, 80, 119]
    >>> winner = ReportNoisyMax(epsilon=1.0, monotonic=True).release(votes)
    """

    __slots__ = ()

    def __init__(self, *, epsilon: float, sensitivity: float = 1.0, monotonic: bool = False) -> None:
        self._native = _native.Selection.report_noisy_max(epsilon, sensitivity, monotonic)


PermuteAndFlip = ReportNoisyMax
"""Another name of `ReportNoisyMax`: the two have the same distribution."""
