"""Partition selection as by PyDP: its probabilities, checks and errors, and thresholds that keep delta."""

import copy
import math
import pickle

import mpmath
import pytest
from host_tests.silence import NUMBERS, check_silent
from pydp.algorithms import partition_selection as host

from dpnoise import ParameterError
from dpnoise_google import pydp as ours

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


def probabilities(budget, most):
    """Return the probabilities of the theorem for up to ``most`` people, by its recurrence."""
    epsilon, delta, partitions = budget
    epsilon, delta = epsilon / partitions, -math.expm1(math.log1p(-delta) / partitions)
    found = [0.0]
    while len(found) <= most:
        last = found[-1]
        found.append(min(math.exp(epsilon) * last + delta, 1 - math.exp(-epsilon) * (1 - last - delta), 1.0))
    return found


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_hosts_probabilities_are_those_of_the_theorem(budget):
    """Ours are as well, which the tests of `TruncatedGeometric` show."""
    theirs, mine = (library.create_truncated_geometric_partition_strategy(*budget) for library in (host, ours))
    drawn = mine._selection
    assert (drawn.epsilon, drawn.delta, drawn.max_partitions_contributed) == budget
    expected = probabilities(budget, 10_000)
    for people in (0, 1, 2, 5, 11, 12, 13, 25, 40, 100, 10_000):
        assert theirs.probability_of_keep(people) == pytest.approx(expected[people], rel=1e-4, abs=1e-300)


@pytest.mark.parametrize("epsilon", [600.0, 3000.0, 1e9, 1e300])
def test_a_large_epsilon(epsilon):
    """Where PyDP's probability for one person becomes NaN."""
    mine = ours.create_truncated_geometric_partition_strategy(epsilon, 1e-12, 1)
    assert [mine.should_keep(people) for people in range(4)] == [False, False, True, True]


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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("least", [None, 3])
def test_no_warning_tells_of_a_number_of_people(name, least):
    check_silent(ours.create_partition_strategy(name, 1.0, 1e-5, 1, least).should_keep, NUMBERS)
