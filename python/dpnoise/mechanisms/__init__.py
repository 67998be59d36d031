"""Mechanisms of the central model: a query's value in, a differentially private release out.

A mechanism is immutable and checks its parameters when it is made. Every one has ``epsilon``, ``delta``, ``cost`` and
``release``.
"""

from dpnoise.mechanisms._discrete_laplace import DiscreteLaplace
from dpnoise.mechanisms._laplace import Laplace

__all__ = ["DiscreteLaplace", "Laplace"]
