"""Amplification by shuffling against enumeration, and against the bounds of the literature."""

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from local_families import EXAMPLES
from scipy.stats import binom

from dpnoise import ParameterError, local
from dpnoise.accounting import PrivacyCost, ShuffledCost, amplify_by_shuffling

Reports = tuple[object, ...]


def shuffled(epsilon0: float, n: int, delta: float) -> float:
    """The epsilon of reports that are epsilon0-differentially private each."""
    return amplify_by_shuffling(PrivacyCost(epsilon0), n=n, delta=delta).epsilon


# --- any randomiser ----------------------------------------------------------------------------------------------


PAGE = Path(__file__).parents[2] / "docs/proofs/shuffling.md"
ROWS = re.findall(r"^\| (1e\d) \| (\S+) \| (\S+) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_page_has_rows():
    assert len(ROWS) == 7


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(row[:3]))
def test_the_rows_of_the_page(row):
    n, delta, epsilon = int(float(row[0])), float(row[1]), float(row[2])
    protocols = [
        local.SummationHistogramEncoding(k=2, epsilon=epsilon),
        local.OptimizedUnaryEncoding(k=10, epsilon=epsilon),
        local.SymmetricUnaryEncoding(k=10, epsilon=epsilon),
        local.GeneralizedRandomizedResponse(k=10, epsilon=epsilon),
        local.GeneralizedRandomizedResponse(k=100, epsilon=epsilon),
    ]
    shown = row[3].split(" | ")
    found = [f"{closed_form(epsilon, n, delta):.6g}", f"{shuffled(epsilon, n, delta):.6g}"]
    for protocol, bound in zip(protocols, ["binary", *["blanket"] * 4], strict=True):
        if n > 10**4 and protocol in protocols[1:3]:  # these take a second
            found.append(shown[len(found)])
            continue
        cost = protocol.shuffled_cost(n=n, delta=delta)
        assert cost.bound == bound
        found.append(f"{cost.epsilon:.6g}")
    assert found == shown


def delta_of_clones(epsilon0: float, n: int, epsilon: float, *, binary: bool = False) -> mpmath.mpf:
    """The delta of the two laws that the proof compares, with 50 digits, summed over all outcomes."""
    e, grown = mpmath.exp(epsilon0), mpmath.exp(epsilon)
    g = 2 / (e + 1) if binary else 1 / e
    total = mpmath.mpf(0)
    for c in range(n):
        clones = mpmath.binomial(n - 1, c) * g**c * (1 - g) ** (n - 1 - c)
        for x in range(c + 2):
            having, without = (mpmath.binomial(c, y) / mpmath.mpf(2) ** c for y in (x - 1, x))
            total += clones * max((e * having + without - grown * (having + e * without)) / (e + 1), 0)
    return total


@pytest.mark.parametrize("epsilon0", [2.0**-20, 0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("n", [1, 2, 5, 40])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-12, 1e-60])
@pytest.mark.parametrize("binary", [False, True])
def test_it_is_the_least_epsilon_of_the_two_laws_from_above(epsilon0, n, delta, binary):
    if binary:  # this protocol has no blanket of its own
        protocol = local.SummationHistogramEncoding(k=2, epsilon=epsilon0)
        cost = protocol.shuffled_cost(n=n, delta=delta)
    else:
        cost = amplify_by_shuffling(PrivacyCost(epsilon0), n=n, delta=delta)
    found = cost.epsilon
    least = shuffled(epsilon0, n, delta)
    assert cost.bound == ("binary" if found < least else "clones" if found < epsilon0 else "local")
    with mpmath.workdps(50):
        if found < epsilon0:
            assert delta_of_clones(epsilon0, n, found, binary=binary) <= delta
        if found > epsilon0 * 2.0**-49:
            # Positive control: a little less is too little.
            assert delta_of_clones(epsilon0, n, found * (1 - 1e-7), binary=binary) > delta


def closed_form(epsilon0: float, n: int, delta: float) -> float:
    """The epsilon of Feldman, McMillan and Talwar 2021, theorem 3.1."""
    assert n >= math.floor(16 * math.exp(epsilon0) * math.log(2 / delta))
    clones = 8 * math.sqrt(math.exp(epsilon0) * math.log(4 / delta) / n) + 8 * math.exp(epsilon0) / n
    return math.log1p(math.tanh(epsilon0 / 2) * clones)


@pytest.mark.parametrize("epsilon0", [0.01, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("delta", [1e-200, 1e-12, 1e-6, 0.25])
def test_it_is_never_above_the_closed_form(epsilon0, delta):
    least = math.ceil(16 * math.exp(epsilon0) * math.log(2 / delta))
    for n in (least, 2 * least, 10 * least):
        assert shuffled(epsilon0, n, delta) < closed_form(epsilon0, n, delta)


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
    for epsilon0 in (5.0, 32.0):
        alone = amplify_by_shuffling(PrivacyCost(epsilon0), n=2, delta=1e-9)
        assert (alone.epsilon, alone.bound) == (epsilon0, "local")
    assert shuffled(5e-324, 10**6, 1e-9) == 5e-324
    assert local.RandomizedResponse(epsilon=2.0**-20).shuffled_cost(n=10**6, delta=1e-9).epsilon < 2.0**-30
    assert shuffled(1.0, 10**6, 5e-324) == 1.0
    assert shuffled(1.0, 10**6, 2.0**-900) < 1.0 == shuffled(1.0, 10**6, 2.0**-901)


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
    if spec["protocol"] == "local_hashing":
        g, prime = spec["g"], spec["prime"]
        outcomes = list(itertools.product(range(prime), range(prime), range(g)))
        supported = [[(a, b, y) for a, b, y in outcomes if g * ((a * x + b) % prime) // prime == y] for x in values]
    elif spec["protocol"] == "projective_geometry_response":
        prime = spec["prime"]
        vectors = itertools.product(range(prime), repeat=spec["dimension"])
        outcomes = [y for y in vectors if next(filter(None, y), 0) == 1]
        supported = [[y for y in outcomes if np.dot(x, y) % prime == 0] for x in outcomes[: protocol.k]]
    elif spec["protocol"] == "hadamard_response":
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


class Enumeration:
    """The laws of the reports of n people, in any order, for all values of the others and of one person."""

    def __init__(self, laws: list[dict[object, Fraction]], n: int) -> None:
        one = math.lcm(*(p.denominator for law in laws for p in law.values()))
        self.one = one**n
        weights = [{y: int(p * one) for y, p in law.items()} for law in laws]

        def with_one_more(found: Mapping[Reports, int], value: int) -> Counter[Reports]:
            added: Counter[Reports] = Counter()
            for seen, weight in found.items():
                for y, p in weights[value].items():
                    added[tuple(sorted((*seen, y)))] += weight * p
            return added

        others: dict[tuple[int, ...], Mapping[Reports, int]] = {(): {(): 1}}
        for _ in range(n - 1):
            others = {
                (*values, x): with_one_more(found, x)
                for values, found in others.items()
                for x in range(values[-1] if values else 0, len(laws))
            }
        self.laws = [[with_one_more(found, x) for x in range(len(laws))] for found in others.values()]

    def delta(self, grown: Fraction) -> Fraction:
        """Return the largest delta for e^epsilon of all inputs and of both orders."""
        over, under = grown.as_integer_ratio()
        pairs = itertools.chain.from_iterable(itertools.permutations(found, 2) for found in self.laws)
        worst = max(sum(max(under * p - over * second[y], 0) for y, p in first.items()) for first, second in pairs)
        return Fraction(worst, under * self.one)

    def refutes(self, epsilon: float, delta: float | Fraction) -> bool:
        """Say whether the reports on some values have a larger delta at this epsilon."""
        return self.delta(Fraction(math.exp(epsilon) * (1 + 1e-15))) > delta


SMALL = [
    (local.RandomizedResponse(epsilon=1.0), range(1, 11)),
    (local.GeneralizedRandomizedResponse(k=2, epsilon=3.0), range(1, 11)),
    (local.GeneralizedRandomizedResponse(k=3, epsilon=math.log(3)), range(1, 11)),
    (local.SubsetSelection(k=3, epsilon=0.1), range(1, 11)),
    (local.SubsetSelection(k=4, epsilon=0.1), range(1, 5)),
    (local.HadamardResponse(k=3, epsilon=1.0), range(1, 5)),
    (local.ProjectiveGeometryResponse(k=3, epsilon=1.0, prime=2), range(1, 5)),
    (local.LocalHashing(k=2, epsilon=1.0), range(1, 5)),
    (local.LocalHashing(k=3, epsilon=2.0, g=2), range(1, 4)),
    (local.OptimizedUnaryEncoding(k=2, epsilon=1.0), range(1, 7)),
    (local.OptimizedUnaryEncoding(k=3, epsilon=2.0), range(1, 5)),
    (local.SymmetricUnaryEncoding(k=2, epsilon=1.0), range(1, 7)),
]


@pytest.mark.parametrize(("protocol", "sizes"), SMALL, ids=str)
def test_no_input_has_a_larger_delta(protocol, sizes):
    laws = reports_of(protocol)
    for n in sizes:
        truth = Enumeration(laws, n)
        for delta in (0.1, 0.01, 1e-4):
            # The epsilon for any randomiser is never smaller.
            found = protocol.shuffled_cost(n=n, delta=delta).epsilon
            assert not truth.refutes(found, delta)
            if (n, delta) == (2, 1e-4):  # positive control: here the bound is not far from the truth
                assert truth.refutes(0.8 * found, delta)


def delta_of_three_points(n: int, ratio: Fraction, k: int, grown: Fraction) -> Fraction:
    """The delta of the pair of Feldman, McMillan and Talwar 2023, theorem 3.2, for k-ary randomised response."""
    p = 1 / (ratio + k - 1)
    other = {0: p, 1: p, 2: 1 - 2 * p}
    laws = [{0: ratio * p, 1: p, 2: 1 - (ratio + 1) * p}, {0: p, 1: ratio * p, 2: 1 - (ratio + 1) * p}]
    first, second = (sum_of(law, other, n) for law in laws)
    return sum(max(weight - grown * second[y], Fraction(0)) for y, weight in first.items())


def sum_of(person: dict[int, Fraction], other: dict[int, Fraction], n: int) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for ys in itertools.product(range(3), repeat=n):
        found[tuple(sorted(ys))] += person[ys[0]] * math.prod(other[y] for y in ys[1:])
    return found


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_pair_of_three_points_is_refuted(n):
    truth = Enumeration([{y: Fraction(3 if x == y else 1, 5) for y in range(3)} for x in range(3)], n)
    found = delta_of_three_points(n, Fraction(3), 3, Fraction(5, 2))
    assert truth.refutes(math.log(2.5), found)
    if n == 2:  # as the proof says
        assert (found, truth.delta(Fraction(5, 2))) == (Fraction(1, 50), Fraction(3, 50))


def shares_of(protocol: local.Protocol) -> tuple[Fraction, Fraction, Fraction]:
    """The likelihood ratio of a protocol, and the shares of reports that support one and two given values."""
    first, second = reports_of(protocol)[:2]
    ratio = max(p / second[y] for y, p in first.items())
    if isinstance(protocol, local.OptimizedUnaryEncoding | local.SymmetricUnaryEncoding):
        q = Fraction(protocol.q)
        return ratio, q, q**2
    most = max(first.values())
    ones, twos = sum(p == most for p in first.values()), sum(p == second[y] == most for y, p in first.items())
    return ratio, Fraction(ones, len(first)), Fraction(twos, len(first))


def delta_of_blanket(protocol: local.Protocol, n: int, epsilon: float) -> mpmath.mpf:
    """The delta of the claim of the proof, with 50 digits, summed over how many reports support which values."""
    e, one, two = (mpmath.mpf(share.numerator) / share.denominator for share in shares_of(protocol))
    grown, g = mpmath.exp(epsilon), 1 / (1 + one * (e - 1))
    # The first value alone, the second alone, both, none; and reports that are not of the common part.
    law = [g * (one - two), g * (one - two), g * two, g * (1 - 2 * one + two), 1 - g]
    worth = [e - grown, 1 - grown * e, e * (1 - grown), 1 - grown, 0]
    total = mpmath.mpf(0)
    for numbers in itertools.product(range(n + 1), repeat=4):
        if (rest := n - sum(numbers)) < 0:
            continue
        numbers += (rest,)
        orders = math.factorial(n) // math.prod(map(math.factorial, numbers))
        weight = math.prod((p**i for p, i in zip(law, numbers, strict=True)), start=orders)
        total += weight * max(sum(w * i for w, i in zip(worth, numbers, strict=True)), 0)
    return total / n


@pytest.mark.parametrize(
    ("protocol", "near"),
    [
        (local.RandomizedResponse(epsilon=1.0), 1e-7),
        (local.GeneralizedRandomizedResponse(k=3, epsilon=2.0), 1e-7),
        (local.GeneralizedRandomizedResponse(k=50, epsilon=4.0), 1e-7),
        (local.OptimizedUnaryEncoding(k=3, epsilon=1.0), 0.25),
        (local.SymmetricUnaryEncoding(k=3, epsilon=4.0), 0.25),
        (local.HadamardResponse(k=4, epsilon=1.0), 0.25),
        (local.SubsetSelection(k=6, epsilon=1.0), 0.25),
        (local.ProjectiveGeometryResponse(k=7, epsilon=1.0, prime=2), 0.25),
        (local.LocalHashing(k=5, epsilon=2.0, g=3), 0.25),
    ],
    ids=str,
)
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
def test_it_is_the_blanket_from_above(protocol, near, delta):
    n = 8
    found = protocol.shuffled_cost(n=n, delta=delta)
    with mpmath.workdps(50):
        if found.bound == "blanket":
            assert delta_of_blanket(protocol, n, found.epsilon) <= delta
        # Positive control: a little less is too little.
        assert delta_of_blanket(protocol, n, found.epsilon * (1 - near)) > delta


def delta_of_many(k: int, epsilon0: float, n: int, epsilon: float) -> float:
    """The delta of the claim for k-ary randomised response, summed over windows of 8 standard deviations."""

    def around(mean: float) -> np.ndarray:
        return np.arange(int(mean - 8 * math.sqrt(mean)), int(mean + 8 * math.sqrt(mean)) + 1)

    e, grown = math.exp(epsilon0), math.exp(epsilon)
    telling, neutral = 2 / (e + k - 1), (k - 2) / (e + k - 1)
    o = around(n * neutral)
    total = 0.0
    for s in around(n * telling):
        weights = binom.pmf(s, n, telling) * binom.pmf(o, n - s, neutral / (1 - telling))
        # Of the telling reports, at least `least` are for the first value where it is the likelier one.
        cost, slope = s * (grown * e - 1) + (grown - 1) * o, (e - 1) * (grown + 1)
        least = np.minimum(np.floor(cost / slope).astype(int), s) + 1
        point = binom.pmf(np.arange(-1, s + 1), s - 1, 0.5)
        tail = np.append(np.cumsum(point[::-1])[::-1], 0.0)
        at, above = point[least], tail[least + 1]
        total += (weights * (slope * s / 2 * (at + above) - cost * (at / 2 + above))).sum()
    return total / n


@pytest.mark.parametrize("delta", [1e-4, 1e-7])
def test_it_is_the_blanket_of_many_people_to_one_part_in_a_thousand(delta):
    n, k = 20_000, 100
    protocol = local.GeneralizedRandomizedResponse(k=k, epsilon=1.0)
    found = protocol.shuffled_cost(n=n, delta=delta).epsilon
    assert delta_of_many(k, protocol.epsilon, n, found) <= delta * (1 + 1e-6)
    assert delta_of_many(k, protocol.epsilon, n, found * 0.999) > delta


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
    assert cost == ShuffledCost(cost.epsilon, 1e-6, "substitute", bound=cost.bound)
    assert cost.bound == ("clones" if cost.epsilon == of_any.epsilon else "blanket")
    with pytest.raises(ParameterError, match="n must be an integer from 1"):
        protocol.shuffled_cost(n=0, delta=1e-6)
    with pytest.raises(ParameterError, match=r"delta must be between 0 and 1, both excluded, got 1\.0"):
        protocol.shuffled_cost(n=1, delta=1.0)


def test_the_bound_of_two_values_is_for_protocols_that_take_two_values():
    found = {}
    for name, family in local.FAMILIES.items():
        sized = {"k": 2} if any(parameter.name == "k" for parameter in family.parameters) else {}
        if not (protocol := family.example(**sized)).delta:
            found[name] = protocol.shuffled_cost(n=1000, delta=1e-6).bound
    of_two = {"d_bit_flip", "loloha", "longitudinal_unary_encoding", "summation_histogram_encoding"}
    assert {name for name, bound in found.items() if bound == "binary"} == of_two
    assert {found["square_wave"], found["hierarchical_range"], found["count_mean_sketch"]} == {"clones"}


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
    assert cost == ShuffledCost(shuffled(1.0, 10**6, 1e-9), 1e-9, "substitute", bound="clones")
