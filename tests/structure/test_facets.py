"""A sampler is tested, measured and described wherever the others are, as docs/adding_a_sampler.md says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpnoise import local, samplers
from dpnoise.local._specification import CLASSES

ROOT = Path(__file__).parents[2]
SAMPLERS = [name for name in samplers.__all__ if name != "random_bytes"]
OF_SAMPLERS = [
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
    "tests/api/test_samplers.py",
    "tests/statistical/test_noise.py",
    "tests/vectors/test_noise.py",
]
# One is about integer noise, and the other about calls, which are the same for all of it.
EXCEPT = {("bernoulli", "tests/vectors/test_noise.py")} | {
    (name, "benches/bench_single_calls.py") for name in ("skellam", "staircase", "negative_binomial_share")
}
# Places that go through this table of the core have all its samplers.
TABLE = "INTEGER_NOISE"
IN_TABLE = re.findall(r' name: "(\w+)"', (ROOT / "rust/core/src/samplers/mod.rs").read_text(encoding="utf-8"))


def missing(names: list[str], places: list[str]) -> set[tuple[str, str]]:
    """List the names, and the places that lack them, or are not there."""
    found = set()
    for name in names:
        word, in_rust = name.replace("_", "[-_]"), name.title().replace("_", "")
        pattern = re.compile(rf'(?m)([./`"[( ]|^){word}\b|\b{in_rust}::|(Grid|Table)Noise::{name}\b|\[`{in_rust}`\]')
        for place in places:
            path = ROOT / place.format(name)
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            if not (pattern.search(text) or (name in IN_TABLE and TABLE in text)):
                found.add((name, place))
    return found


def test_every_sampler_is_in_every_place() -> None:
    assert missing(SAMPLERS, OF_SAMPLERS) == EXCEPT


@pytest.mark.parametrize("name", ["cauchy", "two_sided_geometric"])
def test_one_that_is_nowhere_is_noticed(name: str) -> None:
    assert missing([name], OF_SAMPLERS) == {(name, place) for place in OF_SAMPLERS}


def without_class(families: list[str]) -> list[str]:
    return [name for name in families if name not in CLASSES]


def test_every_family_of_protocols_has_a_class() -> None:
    assert without_class(list(local.FAMILIES)) == [], "dpnoise.local lacks a class with such a `_family`"
    assert without_class(["toy_response"]) == ["toy_response"]


def unused(header: str, wrapper: str) -> set[str]:
    """List the functions of a header in C that a header in C++ does not use."""
    functions = set(re.findall(r"\bdpnoise_\w+(?=\()", header))
    return (
        functions - set(re.findall(r"\bdpnoise_\w+", wrapper)) - {"dpnoise_abi_version"}
    )  # for languages that load the library


def test_cpp_has_every_function_of_c() -> None:
    header, wrapper = ((ROOT / "clients/c" / name).read_text(encoding="utf-8") for name in ("dpnoise.h", "dpnoise.hpp"))
    assert unused(header, wrapper) == set()
    assert unused(f"{header}\ndpnoise_toy_mechanism(", wrapper) == {"dpnoise_toy_mechanism"}
