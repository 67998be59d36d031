"""The table of noise, for tests of what all mechanisms that add it have in common: a new kind is in each by itself."""

from __future__ import annotations

from typing import Any

import dpnoise
from dpnoise import _native, mechanisms


def class_of(kind: str) -> type[mechanisms.Mechanism]:
    """Return the class of a kind of the core."""
    name = kind.title().replace("_", "")
    for module in (mechanisms, dpnoise):
        assert name in module.__all__, f"{module.__name__} has no {name}, the class of the core's {kind}"
    return getattr(mechanisms, name)


EXAMPLES: dict[str, Any] = {
    class_of(kind).__name__: class_of(kind)(**example) for kind, example in _native.noise_examples().items()
}
"""A mechanism of each kind, by the name of its class."""
