"""Partition selection as by PyDP: probabilities that keep the promise exactly."""

import copy
import math
import pickle
from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import pairwise

import mpmath
import pytest

pytest.importorskip("pydp", reason="needs PyDP: pip install 'dpnoise[pydp]'")

from pydp.algorithms import partition_selection as host

from dpnoise import ParameterError, _native
from dpnoise.backends import pydp as ours
from dpnoise.mechanisms._partition_selection import _law

NAMES = ["truncated_geometric", "laplace", "gaussian"]
BUDGETS = [
    (1.0, 1e-5, 1),
    (1.0, 1e-5, 7),
    (0.1, 1e-3, 3),
    (5.0, 0.3, 2),
    (0.5, 0.9, 2),
    (1e-4, 1e-2, 1),
    (40.0, 1e-12, 1),
    (2.0**-20, 0.1, 1),
    (2.0**-19, 1e-200, 2),
]
LEAST_DELTA = (12.0, 3 * 2.0**-800, 3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", BUDGETS)
def test_properties_and_probabilities(name, budget):
    theirs, mine = (library.create_partition_strategy(name, *budget) for library in (host, ours))
    assert (mine.epsilon, mine.delta, mine.max_partitions_contributed) == budget
    assert isinstance(mine, host.PartitionSelectionStrategy)
    assert [mine.probability_of_keep(n) for n in range(9)] == [theirs.probability_of_keep(n) for n in range(9)]
    if name != "truncated_geometric":
        assert theirs.threshold < mine.threshold < theirs.threshold + 3e-4 * mine._noise.scale or budget[0] < 1e-5
        assert type(mine.noised_value_if_should_keep(10**12)) is float
        assert mine.noised_value_if_should_keep(-(10**12)) is None


@lru_cache
def selection(budget):
    return ours.create_truncated_geometric_partition_strategy(*budget)._selection._native


def of_coin(budget, people):
    """Return the probabilities to keep and to drop, of what is really drawn."""
    probability, drops = selection(budget).coin(people)
    smaller = Decimal(probability)
    return (1 - smaller, smaller) if drops else (smaller, 1 - smaller)


def private(coins, epsilon, delta):
    """Whether neighbouring numbers of people, from none to as many as there are coins, keep the promise."""
    grown = epsilon.exp()
    return all(
        p <= grown * q + delta
        for first, second in pairwise(coins)
        for p, q in [*zip(first, second, strict=True), *zip(second, first, strict=True)]
    )


@pytest.mark.parametrize("budget", [*BUDGETS[:-1], LEAST_DELTA])
def test_coins_keep_the_promise_exactly(budget):
    epsilon, delta, partitions = budget
    with localcontext() as context:
        context.prec = 400
        # For one of the groups; the product over all of them is what delta allows.
        delta = 1 - ((1 - Decimal(delta)).ln() / partitions).exp()
        epsilon = Decimal(epsilon) / partitions
        coins = [of_coin(budget, people) for people in range(1500)]
        assert coins[0] == (0, 1)
        assert 0.99999 * float(delta) < coins[1][0] < delta
        assert coins[-1] == (1, 0) or epsilon < 1e-3
        assert private(coins, epsilon, delta)
        assert not private(coins, epsilon, delta * Decimal("0.99999"))
        assert not private(coins, epsilon * Decimal("0.99999"), delta * Decimal("0.999999")) or delta > 0.5


def numbers(budget):
    """Return numbers of people where something changes, with those around them, and some between."""
    law = _law(*budget)
    turn, last = int(law["turn"][0]), int(law["last"][0])
    places = {0, turn // 2, turn, (turn + last) // 2, last, *(last * i // 29 for i in range(29))}
    return sorted({n for place in places for n in range(max(place - 2, 0), place + 4)})


def error_of_probabilities(law, budget):
    """Return the largest relative error, beside the solved recurrences of the theorem with 400 digits."""
    found = _native.TruncatedGeometric(**law)
    with mpmath.workdps(400):
        epsilon = mpmath.mpf(law["epsilon"])
        share = (1 - mpmath.mpf(2) ** -20) * -mpmath.expm1(mpmath.log1p(-mpmath.mpf(budget[1])) / budget[2])
        step = share / mpmath.expm1(epsilon)
        first = 1 + int(mpmath.log1p(mpmath.tanh(epsilon / 2) * (1 / share - 1)) / epsilon)
        dropped = 1 - step * mpmath.expm1(first * epsilon)
        errors = []
        for n in numbers(budget):
            drop = 1 - step * mpmath.expm1(n * epsilon)
            if n > first:
                drop = max(mpmath.exp((first - n) * epsilon) * (dropped + step) - step, 0)
            probability, drops = found.coin(n)
            exact = drop if drops else 1 - drop
            errors.append(float(abs(probability - exact) / (exact or 1)))
    return max(errors)


@pytest.mark.parametrize("budget", [*BUDGETS, LEAST_DELTA])
def test_probabilities_are_those_of_the_theorem(budget):
    law = _law(*budget)
    turn, height = law["turn"]
    planted = law | {"turn": (turn, height * (1 + 2.0**-41))} if turn else law | {"start": (1, 1.0)}
    assert error_of_probabilities(law, budget) < 2.0**-42 < error_of_probabilities(planted, budget)


@pytest.mark.parametrize("budget", [*BUDGETS, LEAST_DELTA])
def test_neighbours_keep_the_promise_wherever_something_changes(budget):
    epsilon, delta, partitions = budget
    with localcontext() as context:
        context.prec = 400
        delta = 1 - ((1 - Decimal(delta)).ln() / partitions).exp()
        epsilon = Decimal(epsilon) / partitions
        places = numbers(budget)
        coins = {n: of_coin(budget, n) for n in places}
        pairs = [[coins[n], coins[n + 1]] for n in places if n + 1 in coins]
        assert all(private(pair, epsilon, delta) for pair in pairs)
        assert not all(private(pair, epsilon * Decimal("0.99999"), delta * Decimal("0.99999")) for pair in pairs)


@pytest.mark.parametrize("budget", BUDGETS)
def test_coins_are_the_hosts(budget):
    theirs = host.create_truncated_geometric_partition_strategy(*budget)
    for people in (0, 1, 2, 5, 11, 12, 13, 25, 40, 100, 10_000):
        kept, _ = of_coin(budget, people)
        assert float(kept) == pytest.approx(theirs.probability_of_keep(people), rel=1e-4, abs=1e-300)
        assert float(kept) <= theirs.probability_of_keep(people)


@pytest.mark.parametrize("epsilon", [600.0, 3000.0, 1e9, 1e300])
def test_a_large_epsilon(epsilon):
    """Where PyDP's probability for one person becomes NaN."""
    kept = [float(of_coin((epsilon, 1e-5, 1), people)[0]) for people in range(4)]
    assert kept == pytest.approx([0, 1e-5, 1, 1], rel=1e-5)


@pytest.mark.parametrize("budget", [*BUDGETS, LEAST_DELTA])
@pytest.mark.parametrize("name", NAMES[1:])
def test_thresholds_keep_delta(name, budget):
    mine = ours.create_partition_strategy(name, *budget)
    share = mine.delta if name == "laplace" else mine.delta / 2

    def chance(threshold):
        """Return a bound of the probability that one person's group is kept, in one of all groups."""
        with mpmath.workprec(1300):
            scale, step = mpmath.mpf(mine._noise.scale), mpmath.mpf(mine._noise.granularity)
            # The number 1 is rounded to the grid.
            distance = (mpmath.mpf(threshold) - 1) / step - (0 if step <= 1 else 1)
            if name == "laplace":
                ratio = mpmath.exp(-step / scale)
                steps = mpmath.ceil(distance)
                one = ratio**steps / (1 + ratio) if steps > 0 else 1 - ratio ** (1 - steps) / (1 + ratio)
            else:
                one = mpmath.erfc((distance - 1) * step / scale / mpmath.sqrt(2)) / 2
            return 1 - (1 - one) ** mine.max_partitions_contributed

    assert chance(mine.threshold) <= share
    assert chance(mine.threshold - 2.0**-19 * mine._noise.scale) > share


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("delta", [0.0, 1.0])
def test_the_ends_of_delta(name, delta):
    if (name, delta) == ("gaussian", 0.0):
        with pytest.raises(RuntimeError, match="Delta must be"):
            ours.create_partition_strategy(name, 1.0, delta, 1)
        return
    mine = ours.create_partition_strategy(name, 1.0, delta, 1)
    if name != "gaussian":
        assert {mine.should_keep(10) for _ in range(100)} == {bool(delta)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pre_threshold", [1, 5])
def test_pre_thresholding(name, pre_threshold):
    budget = 2.0, 0.2, 1
    theirs, mine = (library.create_partition_strategy(name, *budget, pre_threshold) for library in (host, ours))
    assert mine.pre_threshold == theirs.pre_threshold == pre_threshold
    assert (mine.epsilon, mine.delta, mine.max_partitions_contributed) == budget
    assert not any(mine.should_keep(pre_threshold - 1) for _ in range(200))
    assert {mine.should_keep(pre_threshold) for _ in range(400)} == {True, False}
    assert mine.should_keep(pre_threshold + 1000)
    assert not hasattr(theirs, "noised_value_if_should_keep")
    assert not hasattr(mine, "noised_value_if_should_keep")
    inner = ours.create_partition_strategy(name, *budget)
    asked = []
    inner.should_keep = lambda people: asked.append(people) or True
    mine._inner = inner
    assert mine.should_keep(pre_threshold + 2)
    assert asked == [3]
    assert theirs.probability_of_keep(pre_threshold + 2) == pytest.approx(inner.probability_of_keep(3))


WRONG = [
    ((0, 1e-5, 1), {}),
    ((math.inf, 1e-5, 1), {}),
    ((math.nan, 1e-5, 1), {}),
    ((1, -1, 1), {}),
    ((1, 2, 1), {}),
    ((1, 1e-5, 0), {}),
    ((1, 1e-5, -2), {}),
    ((1, 1e-5, 1.5), {}),
    (("a", 1e-5, 1), {}),
    ((1, 1e-5, 1), {"pre_threshold": 0}),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("arguments", "more"), WRONG, ids=repr)
def test_errors_are_the_hosts(name, arguments, more):
    with pytest.raises((RuntimeError, TypeError)) as theirs:
        host.create_partition_strategy(name, *arguments, **more)
    with pytest.raises((RuntimeError, TypeError)) as mine:
        ours.create_partition_strategy(name, *arguments, **more)
    assert (type(mine.value), str(mine.value)) == (type(theirs.value), str(theirs.value))


@pytest.mark.parametrize("pre_threshold", [None, 2])
def test_an_unknown_strategy_is_refused(pre_threshold):
    for library in (host, ours):
        with pytest.raises(ValueError, match="Strategy 'magic' is not supported"):
            library.create_partition_strategy("magic", 1.0, 1e-5, 1, pre_threshold)


def test_what_is_out_of_reach_is_refused():
    with pytest.raises(ParameterError, match=r"epsilon must be at least 2\*\*-20 \* max_partitions_contributed"):
        ours.create_truncated_geometric_partition_strategy(2.0**-19, 1e-5, 3)
    with pytest.raises(ParameterError, match="epsilon must be such that"):
        ours.create_laplace_partition_strategy(1e300, 1e-5, 1)


@pytest.mark.parametrize("pre_threshold", [None, 5])
@pytest.mark.parametrize("name", NAMES)
def test_a_delta_of_too_few_digits_is_refused(name, pre_threshold):
    for delta, partitions in [(5e-324, 1), (1e-322, 3), (1e-315, 2**31 - 1), (2.0**-800, 2)]:
        with pytest.raises(ParameterError, match=r"delta must be 0, or at least 2\*\*-800"):
            ours.create_partition_strategy(name, 1.0, delta, partitions, pre_threshold)
    assert not ours.create_partition_strategy(name, 1.0, 2.0**-800, 1, pre_threshold).should_keep(1)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_numbers_of_people(name):
    mine = ours.create_partition_strategy(name, 1.0, 1e-5, 1)
    for wrong in ("17", None):
        with pytest.raises(TypeError, match="num_users must be a number") as caught:
            mine.should_keep(wrong)
        assert "17" not in str(caught.value)
    if name == "truncated_geometric":
        for wrong in (17.5, math.nan, math.inf):
            with pytest.raises(ParameterError, match="num_users must be a whole number") as caught:
                mine.should_keep(wrong)
            assert "17" not in str(caught.value)
    else:
        assert mine.should_keep(math.inf)
        assert not mine.should_keep(math.nan)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pre_threshold", [None, 4])
def test_pickling_and_copying(name, pre_threshold):
    mine = ours.create_partition_strategy(name, 0.5, 1e-5, 2, pre_threshold)
    for other in (pickle.loads(pickle.dumps(mine)), copy.deepcopy(mine)):  # noqa: S301
        assert type(other) is type(mine)
        assert (other.epsilon, other.delta, other.max_partitions_contributed) == (0.5, 1e-5, 2)
        assert getattr(other, "pre_threshold", None) == pre_threshold
        assert getattr(other, "threshold", None) == getattr(mine, "threshold", None)
