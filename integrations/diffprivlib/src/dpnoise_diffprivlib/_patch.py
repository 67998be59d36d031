"""Replacement of the mechanisms in the host's tools and models."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import wraps
from types import ModuleType
from typing import Any, Final

import numpy as np
from diffprivlib import mechanisms, models, tools
from diffprivlib.models.forest import RandomForestClassifier
from diffprivlib.utils import check_random_state

from dpnoise.bit_generator import SecureBitGenerator
from dpnoise.extend import Patch
from dpnoise_diffprivlib import _geometric, _laplace, _selection
from dpnoise_diffprivlib._mechanism import SEEDS, UNSEEDED, is_secure

_REPLACED: Final = (
    _selection.Binary,
    _selection.Exponential,
    _geometric.Gaussian,
    _geometric.GaussianAnalytic,
    _geometric.GaussianDiscrete,
    _geometric.Geometric,
    _geometric.GeometricFolded,
    _geometric.GeometricTruncated,
    _laplace.Laplace,
    _laplace.LaplaceBoundedDomain,
    _laplace.LaplaceFolded,
    _laplace.LaplaceTruncated,
    _selection.PermuteAndFlip,
    _laplace.Snapping,
)
# Not in the modules that define the host's mechanisms, which refer to each other.
_PLACES: Final = ("diffprivlib.mechanisms", "diffprivlib.tools", "diffprivlib.models")


def patched() -> AbstractContextManager[None]:
    """Let diffprivlib's tools and models use the mechanisms of this module, within a ``with`` block.

    `diffprivlib.mechanisms` has them under its names then, too. Names that were imported before are not replaced. The
    patch holds for the whole process until the last block in any thread ends, also by an exception. It does not hold
    for other processes: `LogisticRegression` raises an error if ``n_jobs`` asks for several.

    The tools' and models' own draws, and the noise of mechanisms that are not replaced, then use secure bits
    (`dpnoise.SecureBitGenerator`), but stay the host's floating point. A tool or a model with a seed raises a
    ValueError.

    Examples
    --------
    >>> import diffprivlib
    >>> from dpnoise_diffprivlib import patched
    >>> with patched():
    ...     mean = diffprivlib.tools.mean([1.0, 2.0, 4.0], epsilon=1.0, bounds=(0.0, 5.0))
    """
    return _PATCH.within()


def install() -> None:
    """Do what `patched` does, for as long as the process runs. Calling it again changes nothing."""
    _PATCH.enter()


def _silent(function: Any) -> Any:
    """Let the host's arithmetic on private numbers give no warning, which would tell of a single number."""

    @wraps(function)
    def silent(*arguments: Any, **more: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments, **more)

    return silent


_SILENT_TOOLS: Final = {id(tool): _silent(tool) for tool in vars(tools).values() if callable(tool)}
_SILENT_MODELS: Final = [
    (kind, name, _silent(getattr(kind, name)))
    for kind in vars(models).values()
    for name in ("fit", "fit_transform", "partial_fit")
    if hasattr(kind, name)
]


def _replacements() -> list[tuple[Any, str, Any]]:
    by_original: dict[int, Any] = {id(getattr(mechanisms, kind.__name__)): kind for kind in _REPLACED}
    by_original[id(check_random_state)] = _secure_random_state
    by_original |= _SILENT_TOOLS
    return [
        *(
            (module, name, by_original[id(value)])
            for module in _modules()
            for name, value in list(module.__dict__.items())
            if id(value) in by_original
        ),
        *_SILENT_MODELS,
        (RandomForestClassifier, "_make_estimator", _make_tree),
    ]


_PATCH: Final = Patch(_replacements)


def _modules() -> list[ModuleType]:
    # A copy, since other threads may import modules meanwhile.
    names = (name for name in list(sys.modules) if name == _PLACES[0] or name.startswith(_PLACES[1:]))
    return [sys.modules[name] for name in sorted(names)]


def _secure_random_state(seed: Any, secure: bool = False) -> Any:
    """Return a generator with secure bits in place of the host's, and refuse seeds."""
    if seed is None or seed is UNSEEDED:
        return np.random.RandomState(SecureBitGenerator())
    if not is_secure(seed):
        raise ValueError(
            f"random_state must be None, {SEEDS}, got {type(seed).__name__}; for tests, only a mechanism itself takes "
            "a generator of dpnoise.hazmat"
        )
    return check_random_state(seed, secure)


def _make_tree(forest: Any, append: bool = True, random_state: Any = None) -> Any:
    """Make a tree as the host does, without a seed for the trees of a forest without one."""
    make = super(RandomForestClassifier, forest)._make_estimator
    return make(append, random_state if forest.random_state is not None else None)
