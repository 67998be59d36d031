"""The generators for tests: what they take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpnoise import ParameterError, hazmat


@pytest.mark.parametrize("seed", [-1, 2**64, 2**70])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(ParameterError, match=rf"seed must be an integer from 0 to 2\*\*64 - 1, got {seed}"):
        hazmat.SeededRng(seed)


@pytest.mark.parametrize("seed", [None, 1.0, "1", True])
def test_a_seed_of_another_type_is_refused(seed: Any) -> None:
    with pytest.raises(TypeError, match="seed must be an int, got "):
        hazmat.SeededRng(seed)


def test_any_integer_is_a_seed() -> None:
    for seed in (0, np.int64(7), 2**64 - 1):
        hazmat.SeededRng(seed)


def test_a_script_is_made_of_bytes() -> None:
    assert hazmat.ScriptedRng(b"abc").remaining == hazmat.ScriptedRng(bytearray(b"abc")).remaining == 3
    for script in ("abc", [1, 300], None):
        with pytest.raises(TypeError):
            hazmat.ScriptedRng(script)  # type: ignore[arg-type]
