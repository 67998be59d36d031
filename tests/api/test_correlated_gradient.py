"""Runs with correlated noise: parameters, cost, state, and what is refused."""

from __future__ import annotations

import copy
import pickle
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpnoise import HaltedError, ParameterError, RandomnessError
from dpnoise.accounting import Accountant, zcdp_epsilon
from dpnoise.hazmat import ScriptedRng, SeededRng
from dpnoise.keyed import NoiseKey
from dpnoise.sgd import (
    BandedToeplitz,
    CorrelatedGradient,
    CyclicPoisson,
    MinSeparation,
    NoisyGradient,
    SingleEpoch,
    epsilon_spent,
    noise_multiplier_for,
)

STRATEGY = BandedToeplitz([1.0, 0.5, 0.375], steps=8)
GRADIENTS = np.random.default_rng(4).normal(size=(6, 5))


def made(**changes: Any) -> CorrelatedGradient:
    given = {
        "strategy": STRATEGY,
        "clip_norm": 1.0,
        "noise_multiplier": 1.5,
        "expected_batch_size": 4.0,
        "participation": MinSeparation(3),
    }
    return CorrelatedGradient(**{**given, **changes})


def test_the_parameters_are_kept() -> None:
    mechanism = made(delta=1e-6)
    assert mechanism.strategy == STRATEGY
    assert mechanism.participation == MinSeparation(3)
    assert (mechanism.clip_norm, mechanism.noise_multiplier, mechanism.expected_batch_size) == (1.0, 1.5, 4.0)
    assert mechanism.granularity == 2.0**-22
    assert Fraction(mechanism.rho) >= 1 / (2 * Fraction(3, 2) ** 2)
    assert mechanism.rho == pytest.approx(1 / 4.5, rel=1e-15)
    assert mechanism.epsilon == zcdp_epsilon(mechanism.rho, delta=1e-6)
    assert made(noise_multiplier=Fraction(1, 3)).noise_multiplier >= Fraction(1, 3)


def test_a_run_costs_as_much_as_its_events() -> None:
    one = NoisyGradient(clip_norm=1.0, noise_multiplier=1.5, expected_batch_size=1.0)
    for participation in (SingleEpoch(), MinSeparation(1), MinSeparation(4, max_participations=2)):
        spent = Accountant().compose(made(participation=participation)).epsilon(1e-5)
        assert spent == Accountant().compose(one).epsilon(1e-5)
    cyclic = CyclicPoisson(3, sample_rate=0.1)
    mechanism = made(participation=cyclic, delta=1e-5)
    # Eight steps of three groups: a group has at most three.
    assert mechanism.epsilon == epsilon_spent(noise_multiplier=1.5, sample_rate=0.1, steps=3, delta=1e-5)
    for method in ("pld", "rdp"):
        twice = Accountant(method=method).compose(mechanism, 2).epsilon(1e-5)
        assert twice == Accountant(method=method).compose(one, 6, sample_rate=0.1).epsilon(1e-5)
    assert mechanism.rho == pytest.approx(3 / 4.5, rel=1e-15)
    everybody = made(participation=CyclicPoisson(3, sample_rate=1.0), delta=1e-5)
    assert everybody.epsilon == zcdp_epsilon(everybody.rho, delta=1e-5)
    with pytest.raises(ParameterError, match=r"^sample_rate must be 1 for a whole run, got 0\.5$"):
        Accountant().compose(mechanism, sample_rate=0.5)


def test_the_multiplier_for_an_epsilon_is_found() -> None:
    cyclic = CyclicPoisson(4, sample_rate=0.25)
    wanted = {"sample_rate": cyclic.sample_rate, "steps": cyclic.events(STRATEGY.steps)}
    multiplier = noise_multiplier_for(epsilon=1.0, delta=1e-5, **wanted)
    epsilon = made(noise_multiplier=multiplier, participation=cyclic, delta=1e-5).epsilon
    assert epsilon is not None
    assert 0.99 < epsilon <= 1.0


def test_a_run_ends_after_its_steps_and_keeps_to_its_width() -> None:
    run = made().start()
    assert run.next_step == 0
    with pytest.raises(ParameterError, match=r"^gradients must be of shape \(examples, parameters\)"):
        run.step(np.ones(3))
    for step in range(8):
        assert run.next_step == step
        dtype = np.float32 if step % 2 else np.float64
        out = np.empty(5, dtype)
        assert run.step(GRADIENTS.astype(dtype), out=out) is out
        if not step:
            with pytest.raises(ParameterError, match=r"^gradients must be of 5 parameters as before, got 4$"):
                run.step(np.ones((3, 4)))
    with pytest.raises(HaltedError, match=r"^all 8 steps of the strategy have been made$"):
        run.step(GRADIENTS)
    assert repr(run) == "<CorrelatedGradientRun, next step 8>"


def test_each_step_has_its_own_noise_and_empty_batches_have_some() -> None:
    run = made().start()
    steps = [run.step(np.empty((0, 40))) for _ in range(8)]
    other = made().start().step(np.empty((0, 40)))
    assert len(np.unique([*steps, other], axis=0)) == 9
    assert np.std(steps) == pytest.approx(made().noise_multiplier * STRATEGY.sensitivity(MinSeparation(3)) / 4, rel=0.5)


def test_a_failed_step_is_made_again() -> None:
    run, twin = made().start(), made().start()
    for _ in range(4):
        run.step(GRADIENTS, rng=SeededRng(1))
        twin.step(GRADIENTS, rng=SeededRng(1))
    with pytest.raises(RandomnessError, match="the scripted generator has no bytes left"):
        run.step(GRADIENTS, rng=ScriptedRng(b"1234"))
    assert run.next_step == 4
    for _ in range(4):
        assert (run.step(GRADIENTS, rng=SeededRng(2)) == twin.step(GRADIENTS, rng=SeededRng(2))).all()


def test_a_run_is_resumed_from_any_state() -> None:
    key = NoiseKey.generate()
    mechanism = made()
    run = mechanism.start(key=key)
    states, steps = [], []
    for _ in range(8):
        states.append(run.state())
        steps.append(run.step(GRADIENTS))
    for done, state in enumerate([*states, run.state()]):
        again = pickle.loads(pickle.dumps(mechanism)).resume(state, key=key, threads=1)  # noqa: S301
        assert again.next_step == done
        assert again.state() == state
        if done < 8:
            step = again.step(GRADIENTS)
            assert (step != steps[done]).all(), "another ticket: independent noise"


def test_a_resumed_run_has_the_noise_of_the_steps_before() -> None:
    """With the history w_1 = z_1 - w_0, so that the sum of both steps is z_1 and shows nothing of w_0."""
    key, mechanism = NoiseKey.generate(), made(strategy=BandedToeplitz([1.0, 1.0], steps=2))
    deviation = mechanism.noise_multiplier * mechanism.strategy.sensitivity(MinSeparation(3)) / 4
    first, zeros = np.zeros(1), np.zeros((1, 1))
    while abs(first) < deviation:
        run = mechanism.start(key=key)
        first = run.step(zeros)
    sums = [first + mechanism.resume(run.state(), key=key).step(zeros) for _ in range(400)]
    assert abs(np.mean(sums)) < 7 * deviation / 20
    forgetful = [first + mechanism.start(key=key).step(zeros) for _ in range(400)]
    assert abs(np.mean(forgetful)) > deviation - 7 * deviation / 20, "the control: a run that begins anew"


def test_a_state_has_nothing_secret() -> None:
    key = NoiseKey.generate()
    run = made().start(key=key)
    step = run.step(GRADIENTS)
    state = run.state()
    assert len(state) == 4 + 1 + 8 + 32 + 16 + 8 + 16 + 32, "the key does not fit in"
    assert step.tobytes() not in state
    assert key.to_secret_bytes()[:8] not in state
    with pytest.raises(ParameterError, match=r"^key must be given to start\(\)"):
        made().start().state()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="holds secret noise and cannot be pickled"):
            copied(run)


def test_a_run_has_an_id_of_its_own() -> None:
    key = NoiseKey.generate()
    run, other = made().start(key=key), made().start(key=key)
    assert run.run_id is not None
    assert len(run.run_id) == 16
    assert run.run_id != other.run_id
    assert made().resume(run.state(), key=key).run_id == run.run_id
    assert made().start().run_id is None


@pytest.mark.parametrize(
    "changes",
    [
        {"strategy": BandedToeplitz([1.0, 0.5, 0.3752], steps=8)},
        {"strategy": BandedToeplitz([1.0, 0.5, 0.375], steps=9)},
        {"clip_norm": 1.0000000000000002},
        {"noise_multiplier": 1.5000000000000002},
        {"expected_batch_size": 5},
        {"participation": MinSeparation(4)},
        {"participation": SingleEpoch()},
        {"participation": MinSeparation(3, max_participations=3)},
    ],
    ids=str,
)
def test_states_of_other_parameters_are_refused(changes: dict[str, Any]) -> None:
    key = NoiseKey.generate()
    state = made().start(key=key).state()
    with pytest.raises(ParameterError, match="state must be that of a run with these parameters, got that of others"):
        made(**changes).resume(state, key=key)
    made(delta=1e-7).resume(state, key=key)


def test_what_is_no_state_is_refused() -> None:
    key = NoiseKey.generate()
    run, other = made().start(key=key), made().start(key=key)
    for either in (run, other):
        for _ in range(2):
            either.step(GRADIENTS)
    state = run.state()

    def refused(state: Any, key: Any = key) -> str:
        with pytest.raises((ParameterError, TypeError)) as caught:
            made().resume(state, key=key)
        return str(caught.value)

    for wrong in (b"", b"{}", b"DPNT" + state[4:], *(state[:length] for length in range(len(state)))):
        assert refused(wrong).startswith("not the state of a run: it ")
    width, tickets = 4 + 1 + 8 + 32 + 16, 4 + 1 + 8 + 32 + 16 + 8
    first, second, seal = state[tickets:-48], state[tickets + 16 : -32], state[-32:]
    for wrong in (
        state[:width] + (6).to_bytes(8, "little") + state[tickets:],
        state[:width] + (2**63).to_bytes(8, "little") + state[tickets:],
        state[:tickets] + second + first + seal,
        state[:tickets] + first + seal,
        state[:tickets] + first + second + first + seal,
        state[:tickets] + first + key.ticket(1).nonce + seal,
        state[:tickets] + other.state()[tickets:],
        other.state()[:tickets] + state[tickets:],
        state[:-32] + other.state()[-32:],
        state[:-1] + bytes([state[-1] ^ 1]),
    ):
        assert refused(wrong) == ("not the state of a run: it is damaged, or not as the run gave it: the seal is wrong")
    assert refused(state, NoiseKey.generate()) == "state must be that of a run with this key, got that of another key"
    assert refused(state, b"1" * 32) == "key must be a NoiseKey, got bytes"
    assert refused(bytearray(state)) == "state must be bytes, got bytearray"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strategy": [1.0, 0.5]}, "strategy must be a BandedToeplitz, got list"),
        ({"participation": 3}, "participation must be a SingleEpoch, MinSeparation or CyclicPoisson, got int"),
        (
            {"participation": CyclicPoisson(2, sample_rate=0.1)},
            "strategy must have no more bands than the cycle of CyclicPoisson, 2, got 3",
        ),
        ({"noise_multiplier": 0.0}, "noise_multiplier must be from 2**-20 to 2**11, got 0.0"),
        ({"noise_multiplier": 1000.0}, "noise_multiplier must be at most "),
        ({"noise_multiplier": float("nan")}, "noise_multiplier must be from"),
        ({"clip_norm": 0.0}, "clip_norm must be from 2**-80 to 2**80, got 0.0"),
        ({"expected_batch_size": -1}, "expected_batch_size must be from 2**-32 to 2**53, got -1.0"),
        ({"delta": 0.0}, "delta must be"),
    ],
    ids=str,
)
def test_parameters_out_of_range_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ParameterError, TypeError)) as caught:
        made(**changes)
    assert str(caught.value).startswith(message)


def test_noise_that_fits_into_64_bits_is_allowed_up_to_the_limit_that_errors_name() -> None:
    with pytest.raises(ParameterError) as caught:
        made(noise_multiplier=1000.0)
    most = float(str(caught.value).split("at most ")[1].split()[0])
    made(noise_multiplier=most)
    with pytest.raises(ParameterError):
        made(noise_multiplier=most * 1.001)


@pytest.mark.parametrize(
    ("coefficients", "documented"),
    [([1.0], "910 over"), ([1.0, 0.5, 0.375], "910 over"), ([1.0] * 9, "0.157 for nine")],
)
def test_the_documented_limits_of_the_noise_multiplier(coefficients: list[float], documented: str) -> None:
    assert documented in str(CorrelatedGradient.__doc__)
    strategy = BandedToeplitz(coefficients, steps=2**20)
    with pytest.raises(ParameterError) as caught:
        made(strategy=strategy, participation=SingleEpoch(), noise_multiplier=2000.0)
    most = float(str(caught.value).split("at most ")[1].split()[0])
    over = strategy.sensitivity(SingleEpoch()) if documented.endswith("over") else 1.0
    assert most * over == pytest.approx(float(documented.split()[0]), rel=2e-3)


def test_arguments_of_runs_are_checked() -> None:
    with pytest.raises(TypeError, match=r"^key must be a NoiseKey or None, got bytes$"):
        made().start(key=b"1" * 32)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"^rng must be left out: the noise comes from the key, got a generator$"):
        made().start(key=NoiseKey.generate()).step(GRADIENTS, rng=SeededRng(1))
    with pytest.raises(ParameterError, match=r"^batches must be from 1 to 8 arrays with as many columns each, got 9"):
        made().release(np.ones((9, 2, 2)))
    with pytest.raises(ParameterError, match="got 2 arrays"):
        made().release([np.ones((3, 2)), np.ones((3, 1))])
    assert made().release(np.ones((8, 2, 2))).shape == (8, 2)


def test_two_threads_do_not_make_one_step() -> None:
    """A second thread is refused, or makes the next step: never is the noise of a step used twice."""
    strategy = BandedToeplitz([1.0, 0.5], steps=64)
    run = made(strategy=strategy).start()
    made_steps: list[Any] = []

    def work() -> None:
        for _ in range(20):
            try:
                made_steps.append(run.step(np.zeros((0, 20_000)), threads=1))
            except HaltedError as error:
                assert "another thread" in str(error)  # noqa: PT017

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert run.next_step == len(made_steps) > 0
    assert len(np.unique([step[:4] for step in made_steps], axis=0)) == len(made_steps)
