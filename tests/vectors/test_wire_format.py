"""The page on the wire format: its examples, the ratios of its table, and its exact draws."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest

from dpnoise import ParameterError, local
from tests.vectors import local_spec, make_local, make_wire_examples

PAGE = make_wire_examples.PAGE.read_text(encoding="utf-8")


# --- the page --------------------------------------------------------------------------------------------------------


def test_the_examples_are_those_of_this_release() -> None:
    assert make_wire_examples.filled(PAGE) == PAGE
    assert len(make_wire_examples.BLOCK.findall(PAGE)) == 8


def test_the_page_has_the_report_of_every_protocol() -> None:
    reports = PAGE.partition("\n## Reports\n")[2].partition("\n## ")[0]
    described = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", reports, re.MULTILINE)))
    assert [name for name in local.FAMILIES if name not in described] == []


def test_another_example_is_noticed() -> None:
    """The positive control: one digit of the worked message is another, and is mended."""
    assert PAGE.count("`25 03`") == 1
    assert make_wire_examples.filled(PAGE.replace("`25 03`", "`25 04`")) == PAGE


@pytest.mark.parametrize(("protocol", "value"), make_wire_examples.EXAMPLES, ids=repr)
def test_the_library_counts_the_messages_of_the_page(protocol: Any, value: Any) -> None:
    example = make_wire_examples.drawn(protocol, value)
    message = bytes.fromhex(example["message"])
    assert message == local_spec.message_header(protocol.to_json()) + bytes.fromhex(example["report"])
    accumulator = protocol.accumulator()
    accumulator.add_messages([message])
    assert (accumulator.n, accumulator.rejected) == (1, 0)


def test_a_message_with_the_id_of_a_specification_written_again_is_rejected() -> None:
    protocol = local.HadamardResponse(k=15, epsilon=1.0)
    header = local_spec.message_header(protocol.to_json())
    again = local_spec.message_header(json.dumps(json.loads(protocol.to_json())))
    accumulator = protocol.accumulator()
    accumulator.add_messages([header + b"\5", again + b"\5"])
    assert (accumulator.n, accumulator.rejected_reasons["wrong header"]) == (1, 1)


@pytest.mark.parametrize("protocol", make_local.PROTOCOLS, ids=repr)
def test_the_ratio_of_the_page_is_the_epsilon_of_the_library(protocol: Any) -> None:
    spec = json.loads(protocol.to_json())
    if spec["protocol"] == "laplace_mean":
        assert spec["epsilon"] * (spec["k"] - 1) / (2 * spec["unit"]) == protocol.epsilon
    elif spec["protocol"] == "summation_histogram_encoding":
        assert spec["epsilon"] == protocol.epsilon
    elif spec["protocol"] == "gaussian_mean":
        assert (spec["epsilon"], spec["delta"], spec["k"]) == (protocol.epsilon, protocol.delta, 2 * spec["unit"] + 1)
        # The positive control: 1 less does not do.
        assert (
            local_spec.gaussian_delta(spec, spec["sigma"])
            <= spec["delta"]
            < local_spec.gaussian_delta(spec, spec["sigma"] - 1)
        )
    else:
        assert math.log(local_spec.ratio(spec)) == pytest.approx(protocol.epsilon, rel=1e-12)


@pytest.mark.parametrize("protocol", make_local.PROTOCOLS, ids=repr)
def test_specifications_are_in_the_ranges_of_the_page(protocol: Any) -> None:
    spec = json.loads(protocol.to_json())
    for name, value in spec.items():
        prefix, _, last = name.rpartition("_")
        if last == "planes":
            assert 1 <= value <= 62
        elif last in ("p", "q", "keep") and not name.startswith("prob_"):
            one = 2 ** spec[f"{prefix}_planes" if prefix else "planes"]
            assert 0 <= value < one
            assert last != "p" or spec[name[:-1] + "q"] <= value
        elif name == "alpha":
            assert 0 <= value < 2**24
        elif isinstance(value, int) and name != "seed":
            most = {"k": 2**24, "omega": spec.get("k", 0) - 1, "d": spec.get("k"), "bound": 2**31 - 1, "rows": 2**16}
            least = 2 if spec["protocol"] == "projective_geometry_response" and name in ("prime", "dimension") else 1
            assert least <= value <= most.get(name, 2**62)
    if spec["protocol"] == "projective_geometry_response":
        assert spec["k"] <= local_spec.points(spec, spec["dimension"]) <= 2**27
    assert spec["epsilon"] >= 2**-20


# --- the exact draws of the page -------------------------------------------------------------------------------------


class Undecided(Exception):
    """One more choice is needed, between so many results with these probabilities."""


Probability = Fraction | float
Choose = Callable[[Sequence[Probability]], int]


def distribution(run: Callable[[Choose], Any], least: float) -> tuple[Counter[Any], Probability]:
    """Give the probabilities of what a program returns, from all paths that are at least so probable, and the rest."""
    found: Counter[Any] = Counter()
    rest: Probability = Fraction(0)
    paths: list[tuple[list[int], Probability]] = [([], Fraction(1))]
    while paths:
        path, probability = paths.pop()
        left = iter(path)

        def choose(probabilities: Sequence[Probability], left: Iterator[int] = left) -> int:
            chosen = next(left, None)
            if chosen is None:
                raise Undecided(probabilities)
            return chosen

        if probability < least:
            rest += probability
            continue
        try:
            found[run(choose)] += probability
        except Undecided as more:
            paths += [([*path, i], probability * p) for i, p in enumerate(more.args[0])]
    return found, rest


class Compared:
    """A uniform number below n of which only one comparison is ever known."""

    def __init__(self, n: int, choose: Choose) -> None:
        self.n, self.choose = n, choose

    def __lt__(self, u: int) -> bool:
        return self.choose([1 - Fraction(u, self.n), Fraction(u, self.n)]) == 1

    def __eq__(self, number: object) -> bool:
        return self.choose([1 - Fraction(1, self.n), Fraction(1, self.n)]) == 1

    __hash__ = None  # type: ignore[assignment]


def ends_of_coin(page: str, u: int, t: int) -> tuple[Counter[Any], Probability]:
    """Give the exact probabilities of `exp_coin(u, t)`."""
    functions = make_wire_examples.page_functions(page)

    def run(choose: Choose) -> Any:
        functions["uniform"] = lambda n: Compared(n, choose)
        return functions["exp_coin"](u, t)

    return distribution(run, 1e-15)


def misses(page: str, s: int, t: int) -> bool:
    """Tell whether the page's noise has another distribution than discrete Laplace, as far as this can be seen."""
    for u in range(t + 1):
        found, rest = ends_of_coin(page, u, t)
        if abs(found[True] - math.exp(-u / t)) > float(rest) + 1e-14:
            return True
    functions = make_wire_examples.page_functions(page)

    def run(choose: Choose) -> Any:
        functions["uniform"] = lambda n: choose([1 / n] * n)
        functions["exp_coin"] = lambda u, t: choose([-math.expm1(-u / t), math.exp(-u / t)]) == 1
        return functions["discrete_laplace"](s, t)

    found, rest = distribution(run, 1e-5)
    assert rest < 0.05
    assert sum(found.values()) + rest == pytest.approx(1)
    q = math.exp(-s / t)
    expected = {y: (1 - q) / (1 + q) * q ** abs(y) for y in range(-5, 6)}
    return any(not found[y] - 1e-12 <= p <= found[y] + rest + 1e-12 for y, p in expected.items())


@pytest.mark.parametrize(("s", "t"), [(1, 1), (1, 2), (3, 2)])
def test_the_noise_of_the_page_is_discrete_laplace(s: int, t: int) -> None:
    assert not misses(PAGE, s, t)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("return k % 2 == 1", "return k % 2 == 1 or k == 4"),
        ("and uniform(k) == 0", "and uniform(k + 1) == 0"),
        ("if size > 0 or not negative", "if True"),
        ("size, negative = (u + t * v) // s", "size, negative = (u + t * v + 1) // s"),
        ("            continue", "            pass"),
    ],
)
def test_other_noise_is_noticed(right: str, wrong: str) -> None:
    assert PAGE.count(right) == 1
    assert misses(PAGE.replace(right, wrong), 1, 2)


def misses_gaussian(page: str, sigma: int) -> bool:
    """Tell whether the page's Gaussian noise has another distribution, as far as this can be seen."""
    functions = make_wire_examples.page_functions(page)
    q = math.exp(-1 / sigma)
    laplace = {y: (1 - q) / (1 + q) * q ** abs(y) for y in range(-9 * sigma, 9 * sigma + 1)}

    def run(choose: Choose) -> Any:
        functions["discrete_laplace"] = lambda s, t: list(laplace)[choose(list(laplace.values()))]
        functions["exp_coin"] = lambda u, t: choose([-math.expm1(-u / t), math.exp(-u / t)]) == 1
        return functions["discrete_gaussian"](sigma)

    found, rest = distribution(run, 1e-5)
    assert rest < 0.1
    total = sum(math.exp(-0.5 * (y / sigma) ** 2) for y in laplace)
    expected = {y: math.exp(-0.5 * (y / sigma) ** 2) / total for y in range(-3 * sigma, 3 * sigma + 1)}
    return any(not found[y] - 1e-12 <= p <= found[y] + rest + 1e-12 for y, p in expected.items())


@pytest.mark.parametrize("sigma", [1, 2])
def test_the_other_noise_of_the_page_is_discrete_gaussian(sigma: int) -> None:
    assert not misses_gaussian(PAGE, sigma)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("whole = 2 * sigma**2", "whole = sigma**2"),
        ("y = discrete_laplace(1, sigma)", "y = abs(discrete_laplace(1, sigma))"),
        ("(abs(y) - sigma) ** 2", "(y - sigma) ** 2"),
        ("for _ in range(times)", "for _ in range(0)"),
    ],
)
def test_another_gaussian_is_noticed(right: str, wrong: str) -> None:
    assert PAGE.count(right) == 1
    assert misses_gaussian(PAGE.replace(right, wrong), 1)


def test_the_coin_of_the_page_ends_with_the_probabilities_of_the_page() -> None:
    found, _ = ends_of_coin(PAGE.replace("return k % 2 == 1", "return k"), 1, 2)
    assert [found[k] for k in range(1, 7)] == make_wire_examples.stops()


@pytest.mark.parametrize("epsilon", [2.0**-20, 1e-5, 0.1, 1.0, 3.3, 32.0])
def test_the_noise_has_the_scale_of_the_specification(epsilon: float) -> None:
    unit = json.loads(local.LaplaceMean(epsilon=epsilon).to_json())["unit"]
    functions = make_wire_examples.page_functions(PAGE)
    functions["discrete_laplace"] = lambda s, t: Fraction(t, s)
    assert functions["noise"](epsilon, unit) == 2 * unit / Fraction(epsilon)


def test_uniform_numbers_of_the_page_are_uniform() -> None:
    functions = make_wire_examples.page_functions(PAGE)
    for n in (1, 2, 3, 200, 256):
        functions["random_bytes"] = make_wire_examples.Stream(bytes(range(256)) if n > 1 else b"")
        times = 256 * n // 2 ** (n - 1).bit_length() if n > 1 else 5
        assert set(Counter(functions["uniform"](n) for _ in range(times)).values()) == {times // n}


@pytest.mark.parametrize(("prime", "dimension"), [(2, 2), (2, 5), (3, 4), (5, 3), (13, 2)])
def test_the_forced_reports_of_the_page_are_those_that_it_defines(prime: int, dimension: int) -> None:
    functions, spec = make_wire_examples.page_functions(PAGE), {"prime": prime, "dimension": dimension}
    points = range(local_spec.points(spec, dimension))
    digits = [functions["digits"](point, prime, dimension) for point in points]
    leading_one = [n for n in range(1, prime**dimension) if n // prime ** int(math.log(n + 0.5, prime)) == 1]
    assert [sum(digit * prime**i for i, digit in enumerate(row)) for row in digits] == leading_one
    for v in points:
        supporting = [
            r for r in points if sum(a * b for a, b in zip(digits[v], digits[r][::-1], strict=True)) % prime == 0
        ]
        forced = [functions["forced"](v, w, prime, dimension) for w in range(len(supporting))]
        assert sorted(forced) == supporting
        assert forced == [local_spec.forced(spec, v, w) for w in range(len(supporting))]
        assert len(supporting) == local_spec.points(spec, dimension - 1)


# --- texts -----------------------------------------------------------------------------------------------------------


def test_the_library_normalises_no_text() -> None:
    composed, decomposed = make_wire_examples.TEXTS[2:]
    assert unicodedata.normalize("NFC", decomposed) == composed != decomposed
    sketch = local.HadamardCountMeanSketch(epsilon=20.0, rows=1, width=2**16)
    counts = sketch.estimate(sketch.perturb([composed] * 500), candidates=[composed, decomposed]).counts
    assert (counts[0] > 490, counts[1] < 490) == (True, True)
    labelled = local.OptimizedUnaryEncoding(domain=[composed, decomposed], epsilon=1.0)
    assert labelled.domain == (composed, decomposed)
    with pytest.raises(ParameterError, match="UTF-8"):
        local.OptimizedUnaryEncoding(domain=["\ud800", "a"], epsilon=1.0)
