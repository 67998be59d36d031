"""Private selection: how many runs are made, what is released and paid, and what nothing shows."""

from __future__ import annotations

import itertools
import logging
import math
import re
import signal
import traceback
import warnings
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dpnoise import Error, Gaussian, Laplace, ParameterError, PrivacyCost, PrivateSelection
from dpnoise.accounting import Accountant, BudgetExceeded, Ledger, RandomStoppingLoss, RenyiCost, ZcdpCost
from dpnoise.hazmat import SeededRng
from dpnoise.mechanisms import _private_selection

STOPPINGS = ("logarithmic", "geometric", "poisson")


def scored(score=0.0):
    return score, "an output"


class Runs:
    """Runs with given scores, which count how many were made; an exception is raised."""

    def __init__(self, *scores):
        self.scores, self.made = itertools.cycle(scores), 0

    def __call__(self):
        self.made += 1
        score = next(self.scores)
        if isinstance(score, BaseException):
            raise score
        return score, self.made


def drive(monkeypatch, *words):
    """Make the coins of the library the bits of given words."""
    left = list(words)

    def coins(p, *, size, rng):
        assert p == 0.5
        word = left.pop(0)
        return np.array([word >> place & 1 for place in reversed(range(size))], bool)

    monkeypatch.setattr(_private_selection, "bernoulli", coins)
    return left


@pytest.mark.parametrize("stopping", STOPPINGS)
def test_all_words_together_give_the_law_exactly(stopping, monkeypatch):
    selection = PrivateSelection(run_cost=PrivacyCost(1.0), mean=1.25, stopping=stopping, most=2)
    weights = RandomStoppingLoss(PrivacyCost(1.0), 1.25, stopping, 2).weights
    total, found = sum(weights), [0, 0]
    bits = total.bit_length()
    assert bits < 16
    for word in range(2**bits):
        left = drive(monkeypatch, word, total - 1)
        runs = Runs(0.0)
        selection.release(runs)
        if word < total:
            found[runs.made - 1] += 1
        assert len(left) == (word < total)  # a word of the total or more is drawn again
    assert tuple(Fraction(count, total) for count in found) == selection.law


def test_random_words_give_the_law_about():
    """A correct sampler fails with a probability below 1e-9, at 6.2 standard deviations of a binomial law."""
    selection = PrivateSelection(run_cost=PrivacyCost(1.0), mean=3, most=20)
    rng, n, ones = SeededRng(7), 4000, 0
    for _ in range(n):
        runs = Runs(0.0)
        selection.release(runs, rng=rng)
        ones += runs.made == 1
    p = float(selection.law[0])
    assert abs(ones - n * p) < 6.2 * math.sqrt(n * p * (1 - p)) + 1
    assert abs(ones - n * p * 1.25) > 6.2 * math.sqrt(n * p * (1 - p)) + 1  # the control: another law


@pytest.mark.parametrize(("padded", "made"), [(False, 3), (True, 5)])
def test_the_first_of_the_best_runs_is_released_and_padding_runs_do_not_count(padded, made, monkeypatch):
    selection = PrivateSelection(run_cost=PrivacyCost(1.0), mean=2, most=5, padded=padded)
    weights = RandomStoppingLoss(PrivacyCost(1.0), 2, most=5).weights
    for scores, best in (
        ((1.0, 4.0, 4.0, 9.0, 9.0), (4.0, 2)),
        ((np.float32(2), 1, Fraction(1, 3), 9.0, 9.0), (2, 1)),
        ((1, np.array(2.0), np.zeros(1), 9.0, 9.0), (2, 2)),
        ((np.zeros(2), -1, np.array("3"), 9.0, 9.0), (-1, 2)),
        ((math.nan, ValueError("private"), -math.inf, 9.0, 9.0), (-math.inf, 3)),
        (("text", 1.0, None, 9.0, 9.0), (1.0, 2)),
    ):
        drive(monkeypatch, sum(weights[:2]))  # the first word of K = 3
        runs = Runs(*scores)
        assert selection.release(runs) == best
        assert runs.made == made


def test_no_error_tells_the_number_of_runs_or_their_exceptions(monkeypatch):
    selection, shown = PrivateSelection(run_cost=PrivacyCost(1.0), mean=2, most=5), set()
    for word in (0, sum(RandomStoppingLoss(PrivacyCost(1.0), 2, most=5).weights) - 1):  # K = 1, K = 5
        for failure in (ValueError("private"), math.nan):
            drive(monkeypatch, word)
            runs = Runs(failure)
            with pytest.raises(Error, match=r"^no run returned a pair of a number") as caught:
                selection.release(runs)
            lines = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
            frames = [
                dict(frame.locals or {}) for frame in lines.stack if frame.filename == _private_selection.__file__
            ]
            shown.add(repr([{name: value for name, value in one.items() if name != "run"} for one in frames]))
            assert caught.value.__context__ is None
            assert runs.made == (5 if word else 1)
    assert len(shown) == 1


@pytest.mark.parametrize(("padded", "before"), [(False, 0), (True, 3)])
def test_an_interrupted_run_shows_no_number_either(padded, before, monkeypatch):
    selection, shown = PrivateSelection(run_cost=PrivacyCost(1.0), mean=2, most=5, padded=padded), []
    for word in (0, sum(RandomStoppingLoss(PrivacyCost(1.0), 2, most=5).weights) - 1):
        drive(monkeypatch, word)
        runs = Runs(0.0)
        with pytest.raises(KeyboardInterrupt) as caught:
            selection.release(lambda runs=runs: runs() if runs.made < before else signal.raise_signal(signal.SIGINT))
        assert runs.made == before
        lines = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        frames = [dict(frame.locals or {}) for frame in lines.stack if frame.filename == _private_selection.__file__]
        for one in frames:
            del one["run"]
            one.pop("schedule", None)  # shown as <list_iterator object at ...>
            one.pop("making", None)  # shown as <function interruptible.<locals>.asking at ...>
        shown.append(frames)
    assert shown[0] == shown[1]


class Panic(BaseException):
    """As that of libraries in Rust, which is no Exception."""


@pytest.mark.parametrize("failure", [Panic("private"), SystemExit("private"), KeyboardInterrupt()], ids=repr)
def test_nothing_that_a_run_raises_is_shown(failure):
    selection = PrivateSelection(run_cost=PrivacyCost(1.0), mean=2, most=5)
    with pytest.raises(Error, match=r"^no run returned a pair of a number") as caught:
        selection.release(Runs(failure))
    assert caught.value.__context__ is None


def test_nothing_that_a_run_warns_of_is_shown(recwarn):
    warnings.simplefilter("always")

    def run():
        warnings.warn("private", stacklevel=1)
        return scored(float(np.float64(1.0) / np.float64(0.0)))

    assert PrivateSelection(run_cost=PrivacyCost(1.0)).release(run) == scored(math.inf)
    assert not recwarn.list


def test_a_ledger_pays_once_before_the_first_run(caplog):
    ledger = Ledger(":memory:", epsilon=1.0)
    selection = PrivateSelection(run_cost=Laplace(epsilon=0.2), mean=4)
    caplog.set_level(logging.DEBUG)
    lines = set()
    for seed in range(2):
        runs = Runs(1.0)

        def run(runs=runs):
            assert ledger.entries()
            return runs()

        ledger.release(selection, run, label="tuned")
        lines.add(caplog.messages[-1])
        assert len(ledger.entries()) == len(caplog.messages) == seed + 1
    assert len(lines) == 1  # the same line, however many runs there were
    runs = Runs(1.0)
    with pytest.raises(BudgetExceeded):
        ledger.release(selection, runs)
    for wrong in (3, scored(), Runs, None):
        with pytest.raises(TypeError, match=r"^run must be a function that makes one run, got "):
            ledger.release(selection, wrong)
    assert (runs.made, len(ledger.entries())) == (0, 2)


async def later():
    return scored()


def test_runs_that_can_only_fail_cost_nothing():
    ledger, selection = Ledger(":memory:", epsilon=1.0), PrivateSelection(run_cost=Laplace(epsilon=0.1))
    for wrong, message in (
        (lambda x, y, z=42: scored(x + y + z), "without parameters, got one that needs x, y"),
        (lambda *, x: scored(x), "without parameters, got one that needs x"),
        (later, "that makes one run, got one that is async"),
    ):
        with pytest.raises(TypeError, match=f"^run must be a function {message}$"):
            ledger.release(selection, wrong)
    assert not ledger.entries()
    one = scored(1.0)
    for right in (lambda *given, x=1.0, **named: scored(x), partial(scored, 1.0), itertools.repeat(one).__next__):
        assert ledger.release(selection, right) == one


def test_it_costs_less_than_its_runs_in_every_measure():
    noise = Gaussian(rho=0.05)
    selection = PrivateSelection(run_cost=noise, delta=1e-5)
    alone = Accountant().compose(noise).epsilon(1e-5)
    assert alone < selection.epsilon < 1.81 < Accountant().compose(noise, 10).epsilon(1e-5)
    assert selection.cost == PrivacyCost(selection.epsilon, 1e-5)
    assert Accountant(method="rdp").compose(selection).epsilon(1e-5) < 2.1
    by_rho, by_orders = Ledger(":memory:", rho=5.0), Ledger(":memory:", epsilon=9.0, delta=1e-5, orders=[8])
    for ledger in (by_rho, by_orders):
        ledger.spend(selection)
    assert by_rho.spent.rho == selection.rho < 1.26
    assert by_orders.spent.divergences[8] < 1.26
    pure = PrivateSelection(run_cost=Laplace(epsilon=1.0))
    assert Accountant().compose(pure, 2).epsilon(1e-9) <= 2 * pure.epsilon < 2 * 1.95


def test_one_run_costs_what_it_costs():
    for stopping in STOPPINGS:
        for most in (1, 50):
            selection = PrivateSelection(run_cost=PrivacyCost(0.5, 1e-6), mean=1, stopping=stopping, most=most)
            assert selection.cost == PrivacyCost(0.5, 1e-6)
            assert selection.law[0] == 1


def test_the_relation_and_the_person_are_those_of_a_run():
    cost = ZcdpCost(0.05, 1e-9, "add/remove", "user")
    selection = PrivateSelection(run_cost=cost, delta=1e-5)
    assert selection.cost == PrivacyCost(selection.epsilon, 1e-5, "add/remove", "user")
    with pytest.raises(ParameterError, match="must be for rows"):
        Ledger(":memory:", rho=5.0).spend(selection)
    assert repr(selection) == (
        "PrivateSelection(run_cost=ZcdpCost(rho=0.05, delta=1e-09, relation='add/remove', person='user'), mean=10, "
        "stopping='logarithmic', most=1000, padded=False, delta=1e-05)"
    )


def test_repeated_and_sampled_losses_keep_the_relation_and_the_person():
    loss = RandomStoppingLoss(PrivacyCost(0.1, 1e-9, "add/remove", "user"))
    for other in (loss.repeated(2), loss.sampled(0.1), loss.sampled(1), loss.sampled(0.1).repeated(2)):
        assert other.person == "user"
        with pytest.raises(ParameterError, match="must be for rows"):
            Ledger(":memory:", rho=5.0, delta=1e-6).spend(other)
        assert Accountant(method="rdp", person="user").compose(other).epsilon(1e-6) < 1
    assert loss.sampled(0.1).epsilon < loss.epsilon


@pytest.mark.parametrize("cost", [PrivacyCost(0.1, relation="substitute"), ZcdpCost(0.1), RenyiCost({4: 0.1})])
def test_losses_that_cannot_be_sampled_say_so(cost):
    with pytest.raises(ParameterError, match=r"^sample_rate must be 1 for runs under"):
        RandomStoppingLoss(cost).sampled(0.1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mean": 0.5}, "mean must be from 1 to 2000, got 0.5"),
        ({"mean": math.nan}, "mean must be from 1 to 2000, got nan"),
        ({"mean": 300}, 'mean must be from 1 to 235.52 for "logarithmic" and most=2000, got 300'),
        ({"mean": 10, "most": 3}, 'mean must be from 1 to 1.61 for "logarithmic" and most=3, got 10'),
        ({"most": 2001}, "most must be an integer from 1 to 2000, got 2001"),
        ({"stopping": "fixed"}, 'stopping must be "logarithmic" or "geometric" or "poisson", got \'fixed\''),
        ({"delta": 1e-5}, "delta must be None for a run_cost with an epsilon, got 1e-05"),
        ({"run_cost": ZcdpCost(0.1, 1e-3), "delta": 1e-3}, "delta must be larger for .*: no epsilon is known for it"),
        ({"run_cost": ZcdpCost(0.1), "delta": 1.0}, "delta must be between 0 and 1, both excluded, got 1.0"),
        ({"run_cost": PrivacyCost(1.0, 0.2)}, "run_cost must have a smaller delta for 10.0001 expected runs, got "),
        ({"run_cost": 1.0}, "run_cost must be a PrivacyCost or a mechanism, got float"),
        ({"padded": 1}, "padded must be a bool, got int"),
        ({"mean": "ten"}, "mean must be a number, got str"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_wrong_parameters_are_refused(given, message):
    with pytest.raises((ParameterError, TypeError), match=f"^{message}"):
        PrivateSelection(**{"run_cost": PrivacyCost(1.0), **given})


def test_what_has_no_epsilon_says_what_to_do():
    for cost in (ZcdpCost(0.1), RenyiCost({4: 0.1})):
        selection = PrivateSelection(run_cost=cost)
        assert (selection.epsilon, selection.delta) == (None, None)
        with pytest.raises(ParameterError, match=r"^delta must be given for a cost, got None"):
            _ = selection.cost
        with pytest.raises(ParameterError, match=r"for 'pld', .*: Accountant\(method='rdp'\) takes it$"):
            Accountant().compose(selection)
        assert Accountant(method="rdp").compose(selection).epsilon(1e-5) < 60


def test_the_noise_of_the_guide_is_for_its_largest_factor():
    text = (Path(__file__).parents[2] / "docs/guide/private_tuning.md").read_text(encoding="utf-8")
    factors = re.findall(r"\(\d+, ([\d.]+)\)", text.partition("candidates = [")[2].partition("]")[0])
    assert max(map(float, factors)) <= float(re.search(r"sensitivity=([\d.]+)", text)[1])


@pytest.mark.parametrize("stopping", ["logarithmic", "geometric"])
def test_a_smaller_limit_costs_a_little_more(stopping):
    for cost in (PrivacyCost(0.5), PrivacyCost(2.0), ZcdpCost(0.05)):
        limited, default = (RandomStoppingLoss(cost, 10, stopping, most).rho for most in (100, None))
        assert default < limited < 1.015 * default
