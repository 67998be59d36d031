"""Comparisons of protocols: measured errors against theory, and what is refused."""

import math

import numpy as np
import pytest

from dpnoise import ParameterError, local
from dpnoise.local import _compare

ANSWERS = 600 * ["tea"] + 300 * ["coffee"] + 100 * ["water"]
MAKERS = {
    **{name: local.FAMILIES[name].protocol for name in ("generalized_randomized_response", "subset_selection")},
    "LOLOHA": lambda k, epsilon: local.LOLOHA(k=k, epsilon_permanent=epsilon, epsilon_first=epsilon / 2),
}


@pytest.fixture
def hardly_ever_wrong(monkeypatch):
    """Let an interval miss the truth by chance once in 10^12."""
    monkeypatch.setattr(_compare, "_LEVEL", 1 - 1e-12)


def reversed_domain(k, epsilon):
    return local.OptimizedUnaryEncoding(domain=range(k)[::-1], epsilon=epsilon)


def agrees(one):
    return one.lower <= one.theory <= one.upper


def test_the_errors_are_those_of_theory(hardly_ever_wrong):
    comparison = local.compare(MAKERS, [1.0, 3.0], ANSWERS, runs=300)
    assert [(one.name, one.epsilon) for one in comparison] == [(name, at) for name in MAKERS for at in (1.0, 3.0)]
    assert all(map(agrees, comparison))
    truth = np.array([600, 300, 100])
    for one in comparison:
        variances = [one.protocol.variance(1000, share) for share in truth / 1000]
        assert one.theory == pytest.approx(np.sqrt(np.mean(variances)), rel=1e-12)
        assert one.report_bytes == one.protocol.report_bytes


def test_a_wrong_theory_is_noticed(hardly_ever_wrong, monkeypatch):
    right = local.FrequencyProtocol.variance
    monkeypatch.setattr(local.FrequencyProtocol, "variance", lambda *arguments: right(*arguments) / 2)
    assert not any(map(agrees, local.compare(MAKERS, [1.0, 3.0], ANSWERS, runs=300)))


@pytest.mark.parametrize("runs", [2, 5, 100])
@pytest.mark.parametrize(("k", "rank"), [(2, 1), (3, 3), (15, 15)])
def test_intervals_hold_as_often_as_they_say(k, rank, runs):
    """Two counts that are opposite have the same squared error: that of one."""
    normal = np.random.default_rng(1).normal(size=(2000, runs, rank))
    held = [
        lower <= 1 <= upper
        for squares in (normal**2).mean(axis=2).tolist()
        for _, lower, upper in [_compare.root_with_interval(squares, k, 0.95)]
    ]
    assert 0.935 < np.mean(held) < 0.99


def test_equal_errors_in_all_runs_tell_nothing():
    assert _compare.root_with_interval([4.0, 4.0], 3, 0.95) == (2.0, 0.0, math.inf)


def test_two_values_by_name():
    comparison = local.compare(["RR", "OptimizedUnaryEncoding"], [1], [True, False, True], runs=2)
    assert [type(one.protocol) for one in comparison] == [local.RandomizedResponse, local.OptimizedUnaryEncoding]
    assert (comparison.n, comparison.k, comparison.runs) == (3, 2, 2)
    assert comparison.to_pandas()["protocol"].tolist() == ["RandomizedResponse", "OptimizedUnaryEncoding"]


def test_the_domain_may_have_more_values_than_the_data():
    [one] = local.compare([local.SubsetSelection], [1.0], [4, 7], domain=range(10), runs=2)
    assert one.protocol.k == 10


def test_the_chart_has_a_line_and_points_for_each_protocol():
    pytest.importorskip("matplotlib", reason="draws a chart, and Matplotlib is not installed")
    makers = {name: local.SubsetSelection for name in ("$1_$", "_2", "3")}
    axes = local.compare(makers, [2.0, 1.0], ANSWERS, runs=3).plot()
    axes.figure.draw_without_rendering()  # a "$" would start a formula
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(makers)
    assert all(line.get_xdata().tolist() == [1.0, 2.0] for line in axes.lines)
    assert axes.get_title(loc="left") == "1,000 people, 3 values, 3 collections each"
    [one] = local.compare(["oue"], [1.0], ANSWERS, runs=3)
    [theory, *_] = local.Comparison((one,), 1000, 3, 3).plot().lines
    assert (theory.get_marker(), theory.get_ydata().tolist()) == ("_", [one.theory])


@pytest.mark.parametrize(
    ("protocols", "epsilons", "data", "message"),
    [
        (["olive"], [1.0], ANSWERS, "protocols must be of rr, .*, got 'olive'"),
        ([local.LaplaceMean], [1.0], ANSWERS, "protocols must be classes or names of protocols that count values"),
        ({"mine": 1}, [1.0], ANSWERS, r"protocols\['mine'\] must be callable"),
        ({1: local.SubsetSelection}, [1.0], ANSWERS, "a name in protocols must be a str, got int"),
        ({"mine": lambda k, epsilon: 1}, [1.0], ANSWERS, "must make protocols of the values 0 to 2, got 1"),
        ({"mine": reversed_domain}, [1.0], ANSWERS, r"of the values 0 to 2, got .*domain=\(2, 1, 0\)"),
        (["DBitFlip"], [1.0], ANSWERS, "protocols must map a name to a function that makes DBitFlip with d$"),
        (["rr"], [1.0], ANSWERS, "RandomizedResponse takes 2 values, and the data have 3"),
        (["oue"], 1.0, ANSWERS, "epsilons must be an iterable"),
        (["oue"], [], ANSWERS, "protocols and epsilons must each have at least one"),
        (["oue"], [0.0], ANSWERS, "epsilon must be between"),
        (["oue"], [None], ANSWERS, "epsilon must be a number, got NoneType"),
        (["oue"], [1.0], [0.5, 1.5], "data must be of texts, of integers or of booleans"),
        (["oue"], [1.0], ["tea"], "data must have at least 2 values"),
    ],
)
def test_what_cannot_be_compared_is_refused(protocols, epsilons, data, message):
    with pytest.raises((ParameterError, TypeError), match=message):
        local.compare(protocols, epsilons, data)


def test_nobody_and_a_single_run_are_refused():
    with pytest.raises(ParameterError, match="data must have at least one person"):
        local.compare(["oue"], [1.0], [], domain=["a", "b"])
    with pytest.raises(ParameterError, match="runs must be an integer from 2"):
        local.compare(["oue"], [1.0], ANSWERS, runs=1)
