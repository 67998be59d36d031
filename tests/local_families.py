"""The table of local protocols, for tests of what all of them have in common: a new family is in each by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnoise import local

EXAMPLES: dict[str, Any] = {name: family.example() for name, family in local.FAMILIES.items()}
"""A protocol of each family, by its name in specifications."""

OF_TEXTS = (local.CountMeanSketch, local.HadamardCountMeanSketch, local.Rappor)
TEXTS = ("tea", "coffee", "", "Wasser", "\N{HOT BEVERAGE}")


def values_for(protocol: Any, n: int) -> NDArray[Any]:
    """Return values of n people, some of each."""
    if isinstance(protocol, OF_TEXTS):
        return np.array([TEXTS[i % 5] for i in range(n)], object)
    least, most = protocol._limits()
    if isinstance(protocol, local.MeanProtocol | local.SquareWave):
        return np.linspace(least, most, n)
    values = np.arange(n) * 5 % (int(most) + 1)
    return values == 1 if isinstance(protocol, local.RandomizedResponse) else values


def perturbed(protocol: Any, values: Any, memo: local.ClientMemo | None = None, **options: Any) -> NDArray[np.uint8]:
    """Return reports, of people with a new memo if they need one and have none."""
    if local.FAMILIES[protocol._family].keeps_memo:
        memo = local.ClientMemo.generate(len(values)) if memo is None else memo
        question = f"beverage of {protocol.bare_digest.hex()}"  # which a memo answers with one randomiser
        return np.asarray(protocol.perturb(values, memo, question=question, **options))
    return np.asarray(protocol.perturb(values, **options))
