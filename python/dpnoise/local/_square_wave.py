"""The square wave: a number is moved at random within a window, so that its distribution can be found."""

from __future__ import annotations

import numpy as np

from dpnoise import _native
from dpnoise._errors import ParameterError
from dpnoise._interchange import Values
from dpnoise.local._accumulator import Accumulator
from dpnoise.local._density_estimate import DensityEstimate, likeliest
from dpnoise.local._numbers import NumberProtocol
from dpnoise.local._windows import Window


class SquareWave(NumberProtocol):
    """The square wave mechanism: numbers in [0, 1] are moved at random, so that their distribution can be found.

    A number is put into one of k bins. A report is one of ``k + 2 b`` bins, b more at either end; those at most b away
    from the true one are ``exp(epsilon)`` times as likely as the others. The distribution is the one that makes the
    reports likeliest.

    Parameters
    ----------
    k : int
        The number of bins, from 2 to 4096. More people can support more; the paper has 256 to 1024 for 10**5 to 10**6
        people, and with smoothing too many do little harm.
    epsilon : float
        The privacy parameter, from 2**-20 to 32. A report is epsilon-locally differentially private.

    Raises
    ------
    ParameterError
        When a parameter is out of range.

    Notes
    -----
    ``b / k`` is, rounded down to whole bins, ``(epsilon e - e + 1) / (2 e (e - 1 - epsilon))`` with
    ``e = exp(epsilon)``, which makes the mutual information of number and report largest.

    References
    ----------
    Li, Wang, Lopuhaä-Zwakenberg, Skoric and Li (2020), "Estimating numerical distributions under local differential
    privacy", section 5; numbers are put into bins before they are randomised.

    Examples
    --------
    >>> from dpnoise import local
    >>> protocol = local.SquareWave(k=64, epsilon=1.0)
    >>> found = protocol.estimate(protocol.perturb([0.2, 0.3, 0.9] * 1000))
    >>> round(float(found.probabilities.sum()), 9)
    1.0
    """

    __slots__ = ()
    _family = "square_wave"
    _parameters = ("k", "requested_epsilon")

    def __init__(self, *, k: int, epsilon: float) -> None:
        self._native = _native.LocalProtocol.square_wave(k, epsilon)

    @property
    def k(self) -> int:
        """The number of bins."""
        return self._native.k

    def estimate(
        self, collected: Accumulator | Values, *, smoothing: bool = True, threads: int | None = None
    ) -> DensityEstimate:
        """Estimate how people's numbers are distributed.

        Parameters
        ----------
        collected : Accumulator or ndarray of uint8, shape (n, report_bytes)
            An accumulator of this protocol, or reports as `perturb` made them.
        smoothing : bool
            Whether to smooth neighbouring bins with weights 1/4, 1/2, 1/4 after each step, as the authors recommend.
            Without it, noise is fitted, too, but a distribution with peaks of single bins keeps them.
        threads : int, optional
            How many threads count reports; all cores that the process may use when not given.

        Returns
        -------
        DensityEstimate

        Raises
        ------
        ParameterError
            When no report was counted, or what was collected is of another protocol or shape.
        TypeError
            When the dtype is another, or ``smoothing`` is not a bool.

        Notes
        -----
        Expectation and maximisation alternate until the logarithm of the likelihood changes by less than 0.001, or
        0.001 exp(epsilon) without smoothing (as in the paper, with the epsilon of its experiments, up to 2.5), at most
        10000 times. The result is always the same for the same counts.
        """
        if not isinstance(smoothing, bool | np.bool_):
            raise TypeError(f"smoothing must be a bool, got {type(smoothing).__name__}")
        counters, n, rejected = self._collected(collected, threads)._state.counters()
        if n == 0:
            raise ParameterError("collected must have at least one report, got none")
        window = Window.of_specification(self._specified())
        probabilities = likeliest(window, counters, bool(smoothing), self.epsilon)
        edges = np.linspace(0.0, 1.0, self.k + 1)
        for array in (probabilities, edges):
            array.flags.writeable = False
        return DensityEstimate(probabilities, edges, n, rejected, bool(smoothing))
