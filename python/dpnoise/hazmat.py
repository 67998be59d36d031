"""Reproducible generators, for tests only.

Whoever knows the seed or the script knows the noise and can subtract it: a release made with one of these is not
private at all. They are passed as ``rng=`` to samplers, mechanisms and protocols.
"""

from dpnoise._native import ScriptedRng, SeededRng

__all__ = ["ScriptedRng", "SeededRng"]
