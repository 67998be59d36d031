"""The count mean sketch: a random row of a table, and in it one of its columns as flipped bits."""

from __future__ import annotations

from dpnoise import _native
from dpnoise.local._sketch import Sketch


class CountMeanSketch(Sketch):
    """Counts of texts of an open domain, from reports of ``width`` bits.

    Every person draws a row of the collector's table, finds the column that the row's hash function gives their text,
    and reports the row and one bit for each column, all of them randomised. The collector asks afterwards for the
    counts of any texts. Their variance is that of `SymmetricUnaryEncoding`, and what texts add that share columns.

    Parameters
    ----------
    epsilon : float
        The privacy parameter, from 2**-20 to 32. A report is epsilon-locally differentially private.
    rows : int
        How many hash functions there are, from 1 to 65536. More of them let less stand of the accident that two texts
        share a column; it costs the collector's memory alone. With fewer rows than columns such accidents are rare and
        large, and intervals of candidates beside very frequent texts too short.
    width : int
        How many columns there are, a power of two from 8 to 2**20, with ``rows * width`` at most 2**24.
    seed : int
        A public number below 2**32, which the hash functions are made of.

    Raises
    ------
    ParameterError
        When a parameter is out of range.

    Notes
    -----
    The hash functions are defined in the documentation of the wire format. A report is the number of the row in 2
    little-endian bytes, then the bits, least significant first.

    References
    ----------
    Differential Privacy Team, Apple (2017), "Learning with privacy at scale", algorithms 1, 2 and 5.

    Examples
    --------
    >>> from dpnoise import local
    >>> sketch = local.CountMeanSketch(epsilon=4.0, rows=64, width=256)
    >>> reports = sketch.perturb(["apple", "pear", "apple"])
    >>> estimate = sketch.estimate(reports, candidates=["apple", "plum"])
    >>> estimate.counts.shape
    (2,)
    """

    __slots__ = ()
    _family = "count_mean_sketch"

    def __init__(self, *, epsilon: float, rows: int, width: int, seed: int = 0) -> None:
        self._native = _native.LocalProtocol.count_mean_sketch(epsilon, rows, width, seed)
