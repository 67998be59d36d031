"""Doubtful input: what honest people's reports never look like, and what is said of it.

The false alarms of each rule are computed from exact laws, and each rule has planted faults that these checks find.
"""

from __future__ import annotations

import itertools
import json
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import reduce
from typing import Any

import numpy as np
import pytest
from local_families import EXAMPLES, OF_TEXTS, perturbed, values_for
from scipy.stats import binom

from dpnoise import DoubtfulInputWarning, ParameterError, local
from dpnoise.local import _categories, _doubt, _frequency, _numbers

PROTOCOL = local.OptimizedUnaryEncoding(k=15, epsilon=1.0)
MANY = 3000
MALFORMED, COUNTS, BITS = "are malformed", "some counts are far larger or smaller", "far more or fewer set bits"
ALARM = 1e-12
OF_RAPPOR = {"p", "q"}
"""Parameters that mean something else there."""


def estimate(protocol: Any, collected: Any) -> Any:
    return protocol.estimate(collected, *([["tea"]] if isinstance(protocol, OF_TEXTS) else []))


def said(protocol: Any, collected: Any) -> list[str]:
    """Return what is said of doubtful input."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with suppress(ParameterError):  # of a mean of malformed reports alone
            estimate(protocol, collected)
    assert all(one.category is DoubtfulInputWarning for one in caught)
    return [str(one.message) for one in caught]


# --- the bounds, against exact laws ----------------------------------------------------------------------------------

CHANCES = [(0.27, 0.5), (1e-4, 0.5), (0.01, 0.999), (0.5, 0.5), (0.4999, 0.5), (1e-9, 1 - 1e-9)]


def false_alarms(low: float, high: float, n: int) -> float:
    """Return the largest probability of a warning about one count of honest people, few or all of whom have a value."""
    is_unlikely = np.array([_doubt.are_unlikely(np.array([count]), n, low, high) for count in range(n + 1)])
    laws = [
        np.convolve(binom.pmf(range(own + 1), own, high), binom.pmf(range(n - own + 1), n - own, low))
        for own in {0, n // 10, n}
    ]
    return max(float(law[is_unlikely].sum()) for law in laws)


def misses(low: float, high: float, n: int) -> bool:
    """Tell whether no warning is given of a count that is a hundred million times less likely than it may be."""
    counts = np.arange(n + 1)
    rare = (binom.sf(counts - 1, n, high) < 1e-20) | (binom.cdf(counts, n, low) < 1e-20)
    return not all(_doubt.are_unlikely(counts[[count]], n, low, high) for count in np.flatnonzero(rare))


@pytest.mark.parametrize("n", [1, 2, 30, 1000])
@pytest.mark.parametrize(("low", "high"), CHANCES)
def test_counts_of_honest_people_cause_no_warning(low: float, high: float, n: int) -> None:
    assert false_alarms(low, high, n) < ALARM
    assert not misses(low, high, n)


def test_many_counts_have_smaller_chances_each() -> None:
    n, counts = 400, np.full(10**4, 100)
    for count in range(401):
        counts[-1] = count
        unlikely = _doubt.are_unlikely(counts, n, 0.25, 0.25)
        assert not unlikely or min(binom.sf(count - 1, n, 0.25), binom.cdf(count, n, 0.25)) < ALARM / 2e4


def test_counts_of_more_reports_than_anybody_has_cause_no_warning() -> None:
    n = 2**63
    for p in (0.1, 1 / 3, 0.5, 1 - 2.0**-30):
        assert not _doubt.are_unlikely(np.array([int(n * p)], np.uint64), n, p, p)
    assert _doubt.are_unlikely(np.array([n // 2 + 2**40], np.uint64), n, 0.5, 0.5)


FAULTS: dict[str, Callable[[Any], Any]] = {
    "divergence of the chance from the share": lambda right: lambda share, chance: right(chance, share),
    "no limit for too few": lambda right: lambda share, chance: right(np.maximum(share, chance), chance),
    "no limit for too many": lambda right: lambda share, chance: right(np.minimum(share, chance), chance),
    "twice the divergence": lambda right: lambda share, chance: 2 * right(share, chance),
    "a tenth of the divergence": lambda right: lambda share, chance: right(share, chance) / 10,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setattr(_doubt, "_divergence", FAULTS[fault](_doubt._divergence))
    assert any(false_alarms(*chances, n) >= ALARM or misses(*chances, n) for chances in CHANCES for n in (30, 400))


def test_the_limits_the_wrong_way_round_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = _doubt.are_unlikely
    monkeypatch.setattr(_doubt, "are_unlikely", lambda counts, n, low, high: right(counts, n, high, low))
    assert false_alarms(0.27, 0.5, 400) >= ALARM


@pytest.mark.parametrize(("epsilon", "unit", "n"), [(1.0, 1, 12), (4.0, 2, 40), (16.0, 1, 40), (0.5, 4, 3)])
def test_sums_of_laplace_noise_against_their_exact_law(epsilon: float, unit: int, n: int) -> None:
    stays = np.exp(-epsilon / (2 * unit))
    reach = int(60 / -np.log(stays))
    law = (1 - stays) / (1 + stays) * stays ** np.abs(np.arange(-reach, reach + 1))
    tails = np.cumsum(reduce(np.convolve, [law] * n)[::-1])[::-1]
    middle = len(tails) // 2
    for excess in np.unique(np.linspace(1, min(reach, middle), 50).astype(int)):
        tail = tails[middle + excess]
        if tail > 1e-30:  # beyond, the law is cut off and rounded
            bound = np.exp(-n * _doubt.laplace_exponent(excess / (n * unit), epsilon, unit))
            assert tail <= bound * (1 + 1e-9)
            assert tail > 1e-3 * bound**1.5, "the bound is not far above"


@pytest.mark.parametrize(("k", "p", "q"), [(2, 0.75, 0.25), (15, 0.5, 0.27), (15, 0.5, 1e-4), (4, 0.999, 0.01)])
@pytest.mark.parametrize("n", [1, 10, 1000])
@pytest.mark.parametrize("empty", [0, 0.1, 1], ids="share of rows without a bit: {}".format)
def test_set_bits_of_honest_people_cause_no_warning(k: int, p: float, q: float, n: int, empty: float) -> None:
    ones = n - round(empty * n)
    zeros = n * k - ones
    law = np.convolve(binom.pmf(range(ones + 1), ones, p), binom.pmf(range(zeros + 1), zeros, q))
    alarms = [chance for total, chance in enumerate(law) if _doubt.has_unlikely_bits(total, n, k, p, q)]
    assert sum(alarms) < ALARM
    assert n < 1000 or alarms


# --- all families ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_honest_reports_cause_no_warning(name: str) -> None:
    """Chance of a false alarm: 1e-12 for each of the rules, so 8e-12."""
    protocol = EXAMPLES[name]
    for n in (1, 30, MANY):
        values = values_for(protocol, n)
        assert said(protocol, perturbed(protocol, values)) == []
        assert said(protocol, perturbed(protocol, np.repeat(values[:1], n))) == []
        assert said(protocol, perturbed(protocol, np.repeat(values[-1:], n))) == []


def drawn(name: str, rng: np.random.Generator) -> Any:
    """Return a protocol of a family with other parameters than those of the example."""
    epsilon = float(np.exp(rng.uniform(-3, 2)))
    others = {"k": int(rng.integers(4, 300)), "epsilon": epsilon, "epsilon_first": epsilon / 2, "delta": 10.0**-6}
    others |= {"epsilon_permanent": epsilon, "p": rng.uniform(0.5, 0.99), "q": rng.uniform(0.01, 0.5)}
    names = {parameter.name for parameter in local.FAMILIES[name].parameters} - (
        OF_RAPPOR if name == "rappor" else set()
    )
    return local.FAMILIES[name].example(**{name: other for name, other in others.items() if name in names})


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_honest_collections_of_all_kinds_cause_no_warning(name: str) -> None:
    """Chance of a false alarm: 3e-12 for each collection, so 3e-8 for the 10,000 of all families."""
    rng = np.random.default_rng()
    for _ in range(10_000 // len(EXAMPLES) + 1):
        protocol, n = drawn(name, rng), int(10 ** rng.uniform(0, 4))
        values = values_for(protocol, n)
        shares = rng.dirichlet(np.full(n, 10 ** rng.uniform(-3, 1)))  # from one value for all to a person for each
        assert said(protocol, perturbed(protocol, rng.choice(values, n, p=shares))) == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_one_report_many_times_is_noticed(name: str) -> None:
    """Sums of noise may be any number, but their mean is not far beyond [-1, 1]."""
    protocol = EXAMPLES[name]
    reports = [perturbed(protocol, values_for(protocol, 1))]
    if name in ("laplace_mean", "gaussian_mean"):
        fields = json.loads(protocol.to_json())
        numbers = [fields["bound"] + sign * fields["unit"] * 3 // 2 for sign in (-1, 1)]
        reports = [np.array([number], "<u4").view(np.uint8)[np.newaxis] for number in numbers]
    elif name == "summation_histogram_encoding":
        # One report in 27 has four numbers from 0 to 1: none of 20 has others with a probability below 1e-28.
        rows = np.split(perturbed(protocol, np.repeat(values_for(protocol, 1), 20)), 20)
        reports = [next(report for report in rows if said(protocol, np.repeat(report, MANY, axis=0)))]
    for report in reports:
        [message] = said(protocol, np.repeat(report, MANY, axis=0))
        assert COUNTS in message
        assert said(protocol, report) == [], "one might be honest"


WITHOUT_LIMITS = ("laplace_mean", "gaussian_mean", "summation_histogram_encoding")


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in WITHOUT_LIMITS])
def test_honest_people_with_one_value_reach_both_limits(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Chance of a false alarm: below 1e-11 for each of at most 8,192 z-scores."""
    protocol, extremes = EXAMPLES[name], []

    def spy(counts: Any, trials: Any, low: Any, high: Any) -> bool:
        counted = np.broadcast_arrays(counts, trials, low, high)
        counts, trials, low, high = (one[counted[1] > 0].astype(float) for one in counted)
        limits = np.array([low, high])
        below, above = (counts - trials * limits) / np.sqrt(trials * limits * (1 - limits))
        extremes.append((below.min(), above.max()))
        return False

    for module in (_categories, _doubt, _frequency, _numbers):
        monkeypatch.setattr(module, "are_unlikely", spy)
    values = values_for(protocol, 2)
    for value in (values[:1], values[-1:]):
        estimate(protocol, perturbed(protocol, np.repeat(value, 100_000)))
    lowest, highest = np.array(extremes).T
    assert -8 < lowest.min() < 8
    assert -8 < highest.max() < 8


@pytest.mark.parametrize("name", ["randomized_response", "rappor", "piecewise_mean", "prefix_extension"])
def test_random_bytes_are_noticed(name: str) -> None:
    protocol = EXAMPLES[name]
    rows = np.random.default_rng().integers(0, 256, (MANY, protocol.report_bytes), np.uint8)
    assert "of 3,000 reports (" in said(protocol, rows)[0]


@pytest.mark.parametrize(
    "others",
    [
        local.SymmetricUnaryEncoding(k=15, epsilon=1.0),
        local.OptimizedUnaryEncoding(k=15, epsilon=2.0),
        local.SubsetSelection(k=15, epsilon=3.0),
    ],
    ids=repr,
)
def test_set_bits_of_others_are_noticed(others: Any) -> None:
    [message] = said(PROTOCOL, others.perturb(np.arange(10_000) % 15))
    assert BITS in message
    assert "another protocol than OptimizedUnaryEncoding(k=15, epsilon=1.0)" in message


OF_VALUES = ["symmetric_unary_encoding", "optimized_unary_encoding", "threshold_histogram_encoding"]
OF_VALUES += ["subset_selection", "generalized_randomized_response", "local_hashing", "hadamard_response"]
OF_VALUES += [
    "projective_geometry_response",
    "hierarchical_range",
    "longitudinal_unary_encoding",
    "loloha",
    "d_bit_flip",
]
OTHERS = ["duchi_mean", "piecewise_mean", "hybrid_mean", "laplace_mean", "randomized_response"]


def specifications() -> list[Any]:
    """Return the protocols whose pairs docs/proofs/doubtful_input.md counts."""
    made = []
    for epsilon in (1.0, 2.0):
        both = {"epsilon": epsilon, "epsilon_permanent": 2 * epsilon, "epsilon_first": epsilon}
        shapes = [(name, {"k": k, "d": 4}) for k in (8, 15, 16, 128) for name in OF_VALUES]
        shapes += [("generalized_randomized_response", {"k": 256}), *((name, {}) for name in OTHERS)]
        shapes += [("square_wave", {"k": k}) for k in (16, 64)]
        shapes += [("hadamard_count_mean_sketch", {"rows": 16, "width": 8})]
        for name, shape in shapes:
            family, given = local.FAMILIES[name], both | shape
            needed = [one.name for one in family.parameters if one.required]
            made.append(family.protocol(**{one: given[one] for one in needed if one in given}))
    return made


def test_most_pairs_of_protocols_are_told_apart() -> None:
    """The share is 0.89; it moves by less than 0.02 from one run to the next."""
    people, found = 20_000, Counter[str]()
    ranks = np.minimum(np.random.default_rng(7).geometric(0.15, people) - 1, 40)
    reports = {}
    for protocol in specifications():
        values = np.unique(values_for(protocol, 128))
        reports[protocol] = perturbed(protocol, values[ranks % len(values)]).view(np.uint8).reshape(people, -1)
    for sender, reader in itertools.permutations(reports, 2):
        if sender.report_bytes == reader.report_bytes:
            message = "".join(said(reader, reports[sender]))
            found[next((rule for rule in (MALFORMED, BITS, COUNTS) if rule in message), "nothing")] += 1
    print(
        f"{len(reports)} specifications:", {rule: count / found.total() for rule, count in found.items()}, found.total()
    )
    assert found["nothing"] < 0.15 * found.total()
    assert min(found[rule] for rule in (MALFORMED, BITS, COUNTS)) > 0.1 * found.total(), "each rule tells some"


def test_rows_that_are_not_randomised_are_noticed() -> None:
    for values in (np.arange(10_000) % 15, np.zeros(10_000, int)):
        assert COUNTS in said(PROTOCOL, PROTOCOL.encode(values))[0]


# --- what is said, and when ------------------------------------------------------------------------------------------


def test_malformed_reports_are_named_with_their_number_and_share() -> None:
    reports = PROTOCOL.perturb(np.arange(200) % 15)
    reports[:3, 1] |= 0x80
    [message] = said(PROTOCOL, reports)
    assert message == (
        "some reports are of another protocol than OptimizedUnaryEncoding(k=15, epsilon=1.0), not randomised, damaged "
        "or crafted: 3 of 200 reports (1.5 %) are malformed (tail bits set: 3)"
    )


def test_each_estimate_says_it_once_on_the_line_of_the_caller() -> None:
    rows = PROTOCOL.encode(np.zeros(1000, int))
    rows[0, 1] |= 0x80
    counted = PROTOCOL.accumulator()
    counted.add(rows)
    total = local.Accumulator.from_bytes(counted.to_bytes())
    total.merge(counted)
    for call in (lambda: PROTOCOL.estimate(rows), lambda: PROTOCOL.estimate(total), lambda: total.estimate()):
        with pytest.warns(DoubtfulInputWarning, match=f"{MALFORMED}.*; {COUNTS}") as caught:
            call()
        assert [one.filename for one in caught] == [__file__]
        assert caught[0].lineno == call.__code__.co_firstlineno


def test_messages_of_another_collection_are_no_doubt() -> None:
    """Their header says what they are; a message with the header of this collection must have one of its reports."""
    other = local.OptimizedUnaryEncoding(k=15, epsilon=2.0)
    messages = PROTOCOL.messages(PROTOCOL.perturb(np.arange(100) % 15))
    foreign = other.messages(other.perturb(np.arange(100) % 15))
    collected = PROTOCOL.accumulator()
    collected.add_messages([*messages, *foreign, b"?"])
    assert collected.rejected_reasons == {"wrong header": 101}
    assert said(PROTOCOL, collected) == []
    collected.add_messages([messages[0] + b"\0", messages[0][:-1] + b"\xff"])
    [message] = said(PROTOCOL, collected)
    assert "2 of 102 reports (1.96 %) are malformed (tail bits set: 1, wrong length: 1)" in message


@pytest.mark.parametrize("make", [local.Sampled, local.Split])
def test_several_attributes_name_the_one(make: Any) -> None:
    protocol = make(attributes={"a": local.GeneralizedRandomizedResponse(k=300, epsilon=1.0), "b": PROTOCOL})
    reports = protocol.perturb({"a": np.arange(MANY) % 300, "b": np.arange(MANY) % 15})
    assert said(protocol, reports) == []
    wrong = reports.copy()
    about_b = reports[:, 0] == 1 if make is local.Sampled else np.full(MANY, True)
    wrong[about_b, -2:] = PROTOCOL.encode(np.zeros(about_b.sum(), int))
    [message] = said(protocol, wrong)
    assert f"crafted: 'b': {COUNTS}" in message
    reports[0] = 0xFF
    number = "1 of 3,000 reports (" if make is local.Sampled else "2 of 6,000 parts of reports ("
    assert number in said(protocol, reports)[0]
