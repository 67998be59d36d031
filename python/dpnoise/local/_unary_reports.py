"""What the protocols have in common whose reports are rows of bits, each flipped by itself."""

from __future__ import annotations

from dpnoise._interchange import Values
from dpnoise.local._arrow import in_blocks
from dpnoise.local._frequencies import FrequencyProtocol
from dpnoise.local._popcounts import PopcountCheck, check


class UnaryReports(FrequencyProtocol):
    """A protocol whose reports have a bit for each value, flipped independently of the others."""

    __slots__ = ()

    def check_popcounts(self, reports: Values) -> PopcountCheck:
        """Check whether the numbers of set bits of reports are those of honest people.

        One bit of an honest report is set with probability p and each of the others with probability q, whatever the
        value. So the number of set bits has one known distribution, and the check needs to know nothing about the
        values. Attackers who craft their reports rather than randomise a value tend to deviate from it.

        Parameters
        ----------
        reports : ndarray of uint8, shape (n, report_bytes), or Arrow data
            As for `Accumulator.add`. The more, the smaller the share of attackers that is noticed.

        Returns
        -------
        PopcountCheck
            If several batches are checked, each by itself, the smallest of m p-values is to be multiplied by m.

        Raises
        ------
        ParameterError
            When the shape is another, or the metadata of Arrow data name another protocol.
        TypeError
            When the dtype is another.
        ImportError
            When reports are Arrow data and pyarrow is not installed.

        Notes
        -----
        It cannot notice people who run the protocol on a false value, nor attackers who draw the number of set bits
        from the right distribution before they choose which. It says that something is wrong, not which reports are.
        Reports of `SubsetSelection` need no check: they always have ``omega`` set bits, others are rejected.

        References
        ----------
        Cao, Jia and Gong (2021), "Data poisoning attacks to local differential privacy protocols".

        Examples
        --------
        >>> from dpnoise import local
        >>> protocol = local.OptimizedUnaryEncoding(k=15, epsilon=1.0)
        >>> reports = protocol.perturb([3] * 10_000)
        >>> protocol.check_popcounts(reports).p_value > 1e-9
        True
        >>> reports[:1000] = protocol.encode([7] * 1000)  # a tenth sends bit 7 and nothing else
        >>> protocol.check_popcounts(reports).p_value > 1e-9
        False
        """
        blocks = ((self._rows(rows), rejected) for rows, rejected in in_blocks(reports, self))
        return check(blocks, self.k, self.p, self.q)
