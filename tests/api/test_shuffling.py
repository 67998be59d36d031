"""Amplification by shuffling against enumeration, and against the bounds of the literature."""

import itertools
import json
import math
import re
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from local_families import EXAMPLES
from scipy.stats import binom

from dpnoise import ParameterError, local
from dpnoise.accounting import PrivacyCost, amplify_by_shuffling


def shuffled(epsilon0: float, n: int, delta: float) -> float:
    """The epsilon of reports that are epsilon0-differentially private each."""
    return amplify_by_shuffling(PrivacyCost(epsilon0), n=n, delta=delta).epsilon


# --- any randomiser ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "delta", "epsilon0", "expected"),
    [
        (10**3, 1e-6, 0.5, 0.0705235),
        (10**4, 1e-6, 1.0, 0.0530053),
        (10**5, 1e-8, 2.0, 0.0587629),
        (10**6, 1e-8, 4.0, 0.0641968),
        (10**7, 1e-9, 5.0, 0.0367446),
    ],
)
def test_known_values(n, delta, epsilon0, expected):
    assert shuffled(epsilon0, n, delta) == pytest.approx(expected, abs=6e-8)


def delta_of_clones(epsilon0: float, n: int, epsilon: float) -> mpmath.mpf:
    """The delta of the two laws that the proof compares, with 50 digits, summed over all outcomes."""
    e, grown = mpmath.exp(epsilon0), mpmath.exp(epsilon)
    total = mpmath.mpf(0)
    for c in range(n):
        clones = mpmath.binomial(n - 1, c) * e**-c * (1 - 1 / e) ** (n - 1 - c)
        for x in range(c + 2):
            having, without = (mpmath.binomial(c, y) / mpmath.mpf(2) ** c for y in (x - 1, x))
            total += clones * max((e * having + without - grown * (having + e * without)) / (e + 1), 0)
    return total


@pytest.mark.parametrize("epsilon0", [2.0**-20, 0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("n", [1, 2, 5, 40])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-12, 1e-60])
def test_it_is_the_least_epsilon_of_the_two_laws_from_above(epsilon0, n, delta):
    found = shuffled(epsilon0, n, delta)
    with mpmath.workdps(50):
        if found < epsilon0:
            assert delta_of_clones(epsilon0, n, found) <= delta
        if found > epsilon0 * 2.0**-49:
            # Positive control: a little less is too little.
            assert delta_of_clones(epsilon0, n, found * (1 - 1e-7)) > delta


@pytest.mark.parametrize("epsilon0", [0.01, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("delta", [1e-200, 1e-12, 1e-6, 0.25])
def test_it_is_never_above_the_closed_form(epsilon0, delta):
    least = math.ceil(16 * math.exp(epsilon0) * math.log(2 / delta))
    for n in (least, 2 * least, 10 * least):
        clones = 8 * math.sqrt(math.exp(epsilon0) * math.log(4 / delta) / n) + 8 * math.exp(epsilon0) / n
        assert shuffled(epsilon0, n, delta) < math.log1p(math.tanh(epsilon0 / 2) * clones)


def test_it_falls_with_people_and_delta_and_grows_with_epsilon():
    values = [shuffled(1.0, n, 1e-9) for n in (10**3, 10**4, 10**6, 10**8)]
    assert values == sorted(set(values), reverse=True)
    values = [shuffled(1.0, 10**6, delta) for delta in (1e-200, 1e-12, 1e-6, 0.25)]
    assert values == sorted(set(values), reverse=True)
    values = [shuffled(epsilon, 10**6, 1e-9) for epsilon in (0.01, 0.5, 1.0, 4.0, 7.0)]
    assert values == sorted(set(values))


def test_more_reports_than_people_are_as_private_as_2_to_the_33():
    assert shuffled(1e-4, 2**64 - 1, 1e-9) == shuffled(1e-4, 2**33, 1e-9)


def test_deltas_that_need_no_epsilon():
    for epsilon0, n, delta in [(3.0758115319545376, 1, 0.9117677886129659), (1.0, 10, 0.99)]:
        assert shuffled(epsilon0, n, delta) <= epsilon0 * 2.0**-49


def test_it_is_never_more_than_the_local_epsilon():
    assert shuffled(5.0, 2, 1e-9) == 5.0
    assert shuffled(5e-324, 10**6, 1e-9) == 5e-324
    assert local.RandomizedResponse(epsilon=2.0**-20).shuffled_cost(n=10**6, delta=1e-9).epsilon < 2.0**-30
    assert shuffled(1.0, 10**6, 5e-324) == 1.0


# --- protocols ---------------------------------------------------------------------------------------------------


def reports_of(protocol: local.Protocol) -> list[dict[object, Fraction]]:
    """The exact law of a report on each value, from the definition of the protocol."""
    spec = json.loads(protocol.to_json())
    one = 2 ** spec["planes"]
    values = range(protocol.k)
    if "keep" not in spec:
        of_bit = [Fraction(spec["q"], one), Fraction(spec["p"], one)]
        rows = [(x,) for x in values] if spec["protocol"] == "randomized_response" else np.eye(protocol.k, dtype=int)
        outcomes = list(itertools.product((0, 1), repeat=len(rows[0])))
        return [
            {
                y: math.prod(of_bit[bit] if set_ else 1 - of_bit[bit] for bit, set_ in zip(row, y, strict=True))
                for y in outcomes
            }
            for row in rows
        ]
    if spec["protocol"] == "hadamard_response":
        outcomes = list(itertools.product(range(spec["order"]), (0, 1)))
        supported = [[(j, s) for j, s in outcomes if (j & x).bit_count() % 2 == s] for x in values]
    elif spec["protocol"] == "subset_selection":
        outcomes = list(itertools.combinations(values, spec["omega"]))
        supported = [[y for y in outcomes if x in y] for x in values]
    else:
        outcomes = list(values)
        supported = [[x] for x in values]
    keep = Fraction(spec["keep"], one)
    return [
        {y: (1 - keep) / len(outcomes) + (keep / len(own) if y in own else 0) for y in outcomes} for own in supported
    ]


def delta_by_enumeration(laws: list[dict[object, Fraction]], n: int, grown: Fraction) -> Fraction:
    """The largest delta over all inputs of n people and both orders."""

    def of_people(values: tuple[int, ...]) -> Counter[tuple[object, ...]]:
        found = Counter({(): Fraction(1)})
        for value in values:
            added: Counter[tuple[object, ...]] = Counter()
            for seen, weight in found.items():
                for y, p in laws[value].items():
                    added[tuple(sorted((*seen, y)))] += weight * p
            found = added
        return found

    worst = Fraction(0)
    for others in itertools.combinations_with_replacement(range(len(laws)), n - 1):
        found = [of_people((*others, x)) for x in range(len(laws))]
        for first, second in itertools.permutations(found, 2):
            worst = max(worst, sum(max(p - grown * second[y], Fraction(0)) for y, p in first.items()))
    return worst


SMALL = [
    (local.RandomizedResponse(epsilon=1.0), (2, 5, 10)),
    (local.GeneralizedRandomizedResponse(k=2, epsilon=1.0), (2, 5, 10)),
    (local.GeneralizedRandomizedResponse(k=3, epsilon=math.log(3)), (2, 4, 7)),
    (local.OptimizedUnaryEncoding(k=2, epsilon=1.0), (2, 3)),
    (local.OptimizedUnaryEncoding(k=3, epsilon=2.0), (2, 3)),
    (local.SymmetricUnaryEncoding(k=2, epsilon=1.0), (2, 3)),
    (local.HadamardResponse(k=3, epsilon=1.0), (2, 3)),
    (local.SubsetSelection(k=4, epsilon=0.1), (2, 3)),
]


@pytest.mark.parametrize(("protocol", "sizes"), SMALL, ids=str)
def test_no_input_has_a_larger_delta(protocol, sizes):
    laws = reports_of(protocol)
    for n in sizes:
        for grown in (Fraction(101, 100), Fraction(3, 2), Fraction(5, 2)):
            if grown >= Fraction(math.exp(protocol.epsilon)):
                continue
            exact = delta_by_enumeration(laws, n, grown)
            for factor in (1, 10):
                # At the exact delta the epsilon cannot be smaller; at a tenth of it neither.
                found = protocol.shuffled_cost(n=n, delta=float(exact / factor)).epsilon
                assert found >= math.log(grown) * (1 - 1e-12)


def three_points(n: int, ratio: Fraction, k: int, grown: Fraction) -> Fraction:
    """The delta of the pair of Feldman, McMillan and Talwar 2023, theorem 3.2, for k-ary randomised response."""
    p = 1 / (ratio + k - 1)
    laws = [{0: ratio * p, 1: p, 2: 1 - (ratio + 1) * p}, {0: p, 1: ratio * p, 2: 1 - (ratio + 1) * p}]
    other = {0: p, 1: p, 2: 1 - 2 * p}
    first, second = (sum_of(law, other, n) for law in laws)
    return sum(max(weight - grown * second[y], Fraction(0)) for y, weight in first.items())


def sum_of(person: dict[int, Fraction], other: dict[int, Fraction], n: int) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for ys in itertools.product(range(3), repeat=n):
        found[tuple(sorted(ys))] += person[ys[0]] * math.prod(other[y] for y in ys[1:])
    return found


def test_the_pair_of_three_points_would_be_found():
    laws = [{y: Fraction(3 if x == y else 1, 5) for y in range(3)} for x in range(3)]
    exact = delta_by_enumeration(laws, 2, Fraction(5, 2))
    assert exact == Fraction(3, 50)
    assert three_points(2, Fraction(3), 3, Fraction(5, 2)) == Fraction(1, 50)


def delta_of_blanket(k: int, epsilon0: float, n: int, epsilon: float) -> float:
    """The formula of the claim for k-ary randomised response: over reports for both values, and for others."""
    e, grown = math.exp(epsilon0), math.exp(epsilon)
    g, total = k / (e + k - 1), 0.0
    for telling in range(n + 1):
        a, o = np.arange(telling + 1)[:, None], np.arange(n - telling + 1)
        weights = binom.pmf(telling, n, 2 * g / k) * binom.pmf(a, telling, 0.5)
        weights = weights * binom.pmf(o, n - telling, g * (k - 2) / k / (1 - 2 * g / k))
        total += (weights * np.maximum((e - grown) * a + (1 - grown * e) * (telling - a) - (grown - 1) * o, 0)).sum()
    return total / n


@pytest.mark.parametrize(("k", "n"), [(3, 60), (10, 100), (50, 80)])
@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-7])
def test_it_is_the_blanket_to_one_part_in_a_thousand(k, n, delta):
    protocol = local.GeneralizedRandomizedResponse(k=k, epsilon=1.0)
    found = protocol.shuffled_cost(n=n, delta=delta).epsilon
    assert delta_of_blanket(k, protocol.epsilon, n, found) <= delta * (1 + 1e-9)
    assert delta_of_blanket(k, protocol.epsilon, n, found * 0.999) > delta


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_protocol_has_a_cost_of_at_most_that_of_any_randomiser(name):
    protocol = EXAMPLES[name]
    if protocol.delta:
        with pytest.raises(ParameterError, match=f'protocol must be one with a delta of 0, got "?{name}"?'):
            protocol.shuffled_cost(n=1000, delta=1e-6)
        return
    of_any = amplify_by_shuffling(protocol.cost, n=1000, delta=1e-6)
    cost = protocol.shuffled_cost(n=1000, delta=1e-6)
    assert cost.epsilon <= of_any.epsilon
    assert cost == PrivacyCost(cost.epsilon, 1e-6, "substitute")
    with pytest.raises(ParameterError, match="n must be an integer from 1"):
        protocol.shuffled_cost(n=0, delta=1e-6)
    with pytest.raises(ParameterError, match=r"delta must be between 0 and 1, both excluded, got 1\.0"):
        protocol.shuffled_cost(n=1, delta=1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 1000, 0.1), "cost must have an epsilon above 0 and at most 32, got 0.0"),
        ((-1, 1000, 0.1), "epsilon must be zero or more and finite, got -1.0"),
        ((32.1, 1000, 0.1), "cost must have an epsilon above 0 and at most 32, got 32.1"),
        ((math.nan, 1000, 0.1), "epsilon must be zero or more and finite, got nan"),
        ((10**400, 1000, 0.1), "epsilon must be in the range of a float, got an integer beyond the largest"),
        ((1.0, 1000, 0.0), "delta must be between 0 and 1, both excluded, got 0.0"),
        ((1.0, 1000, 1.0), "delta must be between 0 and 1, both excluded, got 1.0"),
        ((1.0, 1000, math.nan), "delta must be between 0 and 1, both excluded, got NaN"),
        ((1.0, 0, 0.1), "n must be an integer from 1 to 18446744073709551615, got 0"),
        ((1.0, 2**64, 0.1), "n must be an integer from 1 to 18446744073709551615, got 18446744073709551616"),
    ],
)
def test_parameters_out_of_range(arguments, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        shuffled(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("1", 1000, 0.1), "epsilon must be a number, got str"),
        ((1j, 1000, 0.1), "epsilon must be a number, got complex"),
        ((1.0, 1000, None), "delta must be a number, got NoneType"),
        ((1.0, 1000.0, 0.1), "n must be an int, got float"),
        ((1.0, True, 0.1), "n must be an int, got bool"),
        ((1.0, np.array([1000]), 0.1), "n must be an int, got ndarray"),
    ],
)
def test_parameters_of_a_wrong_type(arguments, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        shuffled(*arguments)


def test_numpy_numbers():
    expected = shuffled(1.0, 10**6, 0.25)
    assert shuffled(np.float32(1.0), np.int64(10**6), np.float64(0.25)) == expected


def test_a_cost_that_is_of_no_local_report():
    for cost, message in (
        (PrivacyCost(1.0, 1e-9), "cost must have a delta of 0, got 1e-09"),
        (PrivacyCost(1.0, relation="add/remove"), "cost must be for the neighbouring relation of the shuffled reports"),
    ):
        with pytest.raises(ParameterError, match="^" + message):
            amplify_by_shuffling(cost, n=10**6, delta=1e-9)


def test_the_cost_is_for_a_person_who_is_substituted():
    cost = amplify_by_shuffling(PrivacyCost(1.0, relation="substitute"), n=10**6, delta=1e-9)
    assert cost == PrivacyCost(shuffled(1.0, 10**6, 1e-9), 1e-9, "substitute")
