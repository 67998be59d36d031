"""Reproducible generators, for tests only; and noise that is drawn again.

Anybody who knows the seed or the script can compute the noise and subtract it, so a release with one of these
generators is not private. Pass them as ``rng=`` to samplers, mechanisms and protocols.
"""

from dpnoise import _calls
from dpnoise._native import ScriptedRng, SeededRng
from dpnoise._types import Rng
from dpnoise.keyed import regenerate

__all__ = ["Rng", "ScriptedRng", "SeededRng", "regenerate"]

_calls.explain(__name__)
