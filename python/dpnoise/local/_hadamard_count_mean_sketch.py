"""The Hadamard count mean sketch: a random row of a table, and one randomised entry of its Hadamard transform."""

from __future__ import annotations

from dpnoise import _native
from dpnoise.local._sketch import Sketch


class HadamardCountMeanSketch(Sketch):
    """Counts of texts of an open domain, from reports of one randomised bit and a public number.

    Every person draws a row of the collector's table and a column of a Hadamard matrix, finds the column of the table
    that the row's hash function gives their text, and reports what stands there in the matrix: one randomised bit. A
    report has up to 4 bytes. The variance is close to that of `CountMeanSketch` for epsilon up to 1, larger for more.

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
    The hash functions are defined in the documentation of the wire format. A report is the number
    ``2 (row * width + column) + entry`` as little-endian bytes.

    References
    ----------
    Differential Privacy Team, Apple (2017), "Learning with privacy at scale", algorithms 3, 4 and 5.

    Examples
    --------
    >>> from dpnoise import local
    >>> local.HadamardCountMeanSketch(epsilon=1.0, rows=1024, width=1024).report_bytes
    3
    """

    __slots__ = ()
    _family = "hadamard_count_mean_sketch"

    def __init__(self, *, epsilon: float, rows: int, width: int, seed: int = 0) -> None:
        self._native = _native.LocalProtocol.hadamard_count_mean_sketch(epsilon, rows, width, seed)
