"""Every sampler is tested, checked, measured and described wherever the others are: docs/adding_a_sampler.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpnoise import samplers

ROOT = Path(__file__).parents[2]
NAMES = [name for name in samplers.__all__ if name != "random_bytes"]
PLACES = [
    "CHANGELOG.md",
    "benches/bench_single_calls.py",
    "benches/noise.py",
    "docs/guide/central.md",
    "python/dpnoise/samplers/__init__.py",
    "rust/core/benches/cases/mod.rs",
    "rust/core/src/samplers/mod.rs",
    "rust/core/tests/any_rng.rs",
    "rust/core/tests/constant_time/checks/noise.rs",
    "rust/core/tests/parameters.rs",
    "rust/core/tests/toy_enumeration.rs",
    "tests/api/test_samplers.py",
    "tests/statistical/test_noise.py",
    "tests/vectors/test_instruction_sets.py",
    "tests/vectors/test_noise.py",
]
# These are about the histogram. Coins do not use it, and real noise is integer noise in steps of a grid.
EXCEPT = {("bernoulli", "tests/vectors/test_noise.py")}
EXCEPT |= {(name, "rust/core/tests/toy_enumeration.rs") for name in ("bernoulli", "gaussian", "laplace")}


def is_in(name: str, text: str) -> bool:
    """Find ``samplers.name`` or its name in quotes, and in Rust the type or the constructor of `GridNoise`."""
    in_rust = name.title().replace("_", "")
    return bool(re.search(rf'[.`"]{name}\b|\b{in_rust}::|GridNoise::{name}\b|\[`{in_rust}`\]', text))


def missing(names: list[str]) -> list[tuple[str, str]]:
    texts = {place: (ROOT / place).read_text(encoding="utf-8") for place in PLACES}
    return [(name, place) for place, text in texts.items() for name in names if not is_in(name, text)]


def test_every_sampler_is_in_every_place() -> None:
    assert set(missing(NAMES)) == EXCEPT


@pytest.mark.parametrize("name", ["cauchy", "two_sided_geometric"])
def test_a_sampler_that_is_nowhere_is_noticed(name: str) -> None:
    assert missing([name]) == [(name, place) for place in PLACES]
