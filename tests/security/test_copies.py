"""What may be used once is not used again by a copy: none can be made, or it starts afresh, or shares what is used."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpnoise import ParameterError, SecureBitGenerator, hazmat, keyed, local, mechanisms, sgd
from dpnoise.accounting import Accountant, Ledger

KEY = keyed.NoiseKey.generate()
SAMPLED = local.SampleAndThreshold(epsilon=1.0, delta=0.01, threshold=5)
GRADIENTS = sgd.CorrelatedGradient(
    strategy=sgd.BandedToeplitz([1.0, 0.5], steps=4),
    clip_norm=1.0,
    noise_multiplier=1.0,
    expected_batch_size=1,
    participation=sgd.SingleEpoch(),
)
COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{f"pickle {n}": lambda x, n=n: pickle.loads(pickle.dumps(x, n)) for n in range(pickle.HIGHEST_PROTOCOL + 1)},  # type: ignore[misc] # noqa: S301
}
ONCE: dict[str, Callable[[], Any]] = {
    "AboveThresholdRun": lambda: mechanisms.AboveThreshold(epsilon=1.0, threshold=1.0).start(),
    "CorrelatedGradientRun": lambda: GRADIENTS.start(key=KEY),
    "NoiseKey": lambda: KEY,
    "SecureBitGenerator": SecureBitGenerator,
    "SeededRng": lambda: hazmat.SeededRng(1),
    "ScriptedRng": lambda: hazmat.ScriptedRng(b"words"),
}


@pytest.mark.parametrize("name", ONCE)
def test_they_cannot_be_copied(name: str) -> None:
    for make in COPIES.values():
        with pytest.raises(TypeError):
            make(ONCE[name]())


def test_an_accumulator_that_is_to_be_released_once_cannot_be_copied() -> None:
    collected = SAMPLED.accumulator()
    collected.add(["tea"] * 30)
    for name in ("copy", "deepcopy"):
        with pytest.raises(TypeError, match="a ThresholdAccumulator cannot be copied, since reports in two"):
            COPIES[name](collected)
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.deepcopy({"one of several": [collected]})
    moved = pickle.loads(pickle.dumps(collected))  # noqa: S301
    assert SAMPLED.release(moved).reports.tolist() == [30]
    ended = pickle.loads(pickle.dumps(moved))  # noqa: S301
    for one in (moved, ended):
        with pytest.raises(ParameterError, match="has been released"):
            one.add(["tea"])


def test_an_accumulator_has_ended_before_its_counts_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    collected = SAMPLED.accumulator()
    collected.add(["tea"] * 30)
    monkeypatch.setattr("dpnoise.local._sample_and_threshold.normal_quantile", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        SAMPLED.release(collected)
    with pytest.raises(ParameterError, match="has been released"):
        collected.add(["tea"])


def test_copies_of_tickets_are_not_fresh() -> None:
    for make in COPIES.values():
        ticket = KEY.ticket(0)
        assert not make(ticket).is_fresh
        assert ticket.is_fresh


def test_copies_of_a_buffer_share_its_noise() -> None:
    buffer = mechanisms.NoiseBuffer(mechanisms.Laplace(epsilon=1.0))
    other = copy.copy(buffer)
    assert len({one.add_noise(0.0) for _ in range(200) for one in (buffer, other)}) == 400
    for name in COPIES.keys() - {"copy"}:
        with pytest.raises(TypeError):
            COPIES[name](buffer)


def test_copies_of_a_ledger_are_of_one_budget(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", epsilon=1.0)
    for number, make in enumerate(COPIES.values(), 1):
        make(ledger).spend(mechanisms.Laplace(epsilon=0.125))
        assert len(ledger.entries()) == number


@pytest.mark.parametrize("method", ["pld", "rdp"])
@pytest.mark.parametrize("name", sorted(COPIES.keys() - {"pickle 0", "pickle 1"}))  # which know no slots
def test_a_copy_of_an_accountant_counts_for_itself(method: Any, name: str) -> None:
    pytest.importorskip("dp_accounting", reason="the extra `accounting` is not installed")
    one = Accountant(method=method).compose(mechanisms.Laplace(epsilon=0.5))
    before = one.epsilon(1e-6)
    other = COPIES[name](one)
    assert other.epsilon(1e-6) == before
    other.compose(mechanisms.Laplace(epsilon=2.0))
    assert "of 1 releases" in repr(one)
    assert one.epsilon(1e-6) == before < other.epsilon(1e-6)
    one.compose(mechanisms.Laplace(epsilon=0.5))
    assert before < one.epsilon(1e-6) < other.epsilon(1e-6)
