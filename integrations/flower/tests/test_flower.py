"""Flower's central and local privacy with noise of dpnoise: what a wrapped strategy sees is exact, and all it sees."""

from __future__ import annotations

import doctest
import logging
import runpy
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import mod as host_mods
from flwr.serverapp import strategy as host
from flwr.serverapp.exception import InconsistentMessageReplies, PrivacyBudgetExhausted
from flwr.supercore.privacy_accounting import NeighboringRelation, PrivacyConfig, SamplingMethod
from flwr.supercore.privacy_accounting.rdp_accountant import RdpAccountant
from flwr.supercore.task_identity import TaskIdentity
from host_tests.errors import error_of
from host_tests.silence import check_silent, columns
from scipy import stats

import dpnoise_flower as ours
from dpnoise import DiscreteGaussian, ParameterError, RandomnessError, hazmat
from dpnoise.sgd import NoisyGradient, epsilon_spent

LITTLE = 2.0**-20
CLIENTS = 4
MODEL = {"w": np.zeros((2, 3), np.float32), "b": np.zeros((), np.float32)}
ALARM = 1e-12


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let messages be made here, as in the process of a ServerApp."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
    monkeypatch.setattr(logging.getLogger("flwr"), "level", logging.CRITICAL)


class Grid:
    def get_node_ids(self) -> list[int]:
        return list(range(CLIENTS))


class Seen(host.FedAvg):
    """What a wrapped strategy sees."""

    replies: list[Message]

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        self.replies = list(replies)
        return super().aggregate_train(server_round, self.replies)


def record(arrays: dict[str, Any]) -> ArrayRecord:
    return ArrayRecord({key: Array(np.asarray(array)) for key, array in arrays.items()})


def wrapped(library: Any = ours, multiplier: float = LITTLE, clip: float = 1.0, inner: Any = None, **more: Any) -> Any:
    inner = host.FedAvg() if inner is None else inner
    return library.DifferentialPrivacyServerSideFixedClipping(inner, multiplier, clip, CLIENTS, **more)


def replies_to(messages: Iterable[Message], contents: Iterable[Any], **metrics: Any) -> list[Message]:
    """Give a reply for each content: arrays, an error, or None for a client that does not answer."""
    found = []
    for message, given in zip(messages, contents, strict=True):
        if isinstance(given, Error):
            found.append(Message(given, reply_to=message))
        elif given is not None:
            values = MetricRecord({"num-examples": 1, **metrics})
            found.append(Message(RecordDict({"arrays": record(given), "metrics": values}), reply_to=message))
    return found


def round_of(strategy: Any, contents: list[Any], model: dict[str, Any] = MODEL, **metrics: Any) -> dict[str, Any]:
    messages = list(strategy.configure_train(1, record(model), ConfigRecord(), Grid()))
    arrays, _ = strategy.aggregate_train(1, replies_to(messages, contents, **metrics))
    return {key: array.numpy() for key, array in arrays.items()}


def rows(count: int = CLIENTS, scale: float = 0.1, seed: int = 1) -> list[dict[str, Any]]:
    generator = np.random.default_rng(seed)
    return [
        {key: (scale * generator.normal(size=array.shape)).astype(array.dtype) for key, array in MODEL.items()}
        for _ in range(count)
    ]


def flat(arrays: dict[str, Any]) -> np.ndarray:
    return np.concatenate([np.ravel(arrays[key]) for key in MODEL])


def sums_of(strategy: Any, contents: list[Any], model: dict[str, Any] = MODEL) -> np.ndarray:
    """Give the sum that gets the noise, in steps of the grid."""
    with pytest.MonkeyPatch.context() as patch:
        sums = []

        def add_noise(mechanism: Any, given: np.ndarray, **_: Any) -> np.ndarray:
            sums.append(given.copy())
            return np.zeros(len(given))

        patch.setattr(NoisyGradient, "add_noise", add_noise)
        round_of(strategy, contents, model)
    (found,) = sums
    return found


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_model_is_the_hosts_with_its_shapes_and_dtypes(dtype: Any) -> None:
    model = {"w": np.full((2, 3), 0.5, dtype), "b": np.array(-1, dtype)}
    contents = [{key: array + 0.25 * each[key].astype(dtype) for key, array in model.items()} for each in rows(scale=1)]
    expected = round_of(wrapped(host, 0.0), [dict(each) for each in contents], model)
    found = round_of(wrapped(), contents, model)
    assert list(found) == list(expected)
    for key, array in found.items():
        assert (array.shape, array.dtype) == (model[key].shape, dtype)
        np.testing.assert_allclose(array, expected[key], atol=2e-3 if dtype is np.float16 else 1e-5)


def test_arrays_are_matched_by_their_keys() -> None:
    turned = [dict(reversed(each.items())) for each in rows()]
    np.testing.assert_array_equal(sums_of(wrapped(), turned), sums_of(wrapped(), rows()))


class Seeded(NoisyGradient):
    __slots__ = ()

    def add_noise(self, sums: Any, **more: Any) -> Any:
        return super().add_noise(sums, rng=hazmat.SeededRng(3), **more)


def test_a_round_is_a_step_of_noisy_gradient_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "NoisyGradient", Seeded)
    found = flat(round_of(wrapped(ours, 1.3, 0.2), rows()))
    mechanism = NoisyGradient(clip_norm=0.2, noise_multiplier=1.3, expected_batch_size=CLIENTS)
    sums = mechanism.clipped_sum([np.stack([flat(each) for each in rows()])])
    expected = mechanism.add_noise(sums, dtype=np.float64, rng=hazmat.SeededRng(3))
    np.testing.assert_array_equal(found, expected.astype(np.float32))


GOING_ON = {
    "FedAvg": host.FedAvg,
    "FedAvgM": lambda: host.FedAvgM(server_learning_rate=0.5, server_momentum=0.9),
    "FedProx": lambda: host.FedProx(proximal_mu=0.1),
    "FedAdagrad": host.FedAdagrad,
    "FedAdam": host.FedAdam,
    "FedYogi": host.FedYogi,
}


INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]


def counted(arrays: dict[str, Any], counters: Any) -> dict[str, Any]:
    return {"n": np.array(counters), **arrays, "mask": np.array([True, False])}


@pytest.mark.parametrize("name", GOING_ON)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_and_booleans_stay_those_of_the_model(name: str, dtype: Any) -> None:
    counters = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    model = counted(MODEL, counters)
    contents = [{**counted(each, counters // 2), "mask": np.array([False, True])} for each in rows()]
    (local_reply,) = sent_by(local(), contents[0], model).content.array_records.values()
    for found in (
        round_of(wrapped(inner=GOING_ON[name]()), contents, model),
        {key: array.numpy() for key, array in local_reply.items()},
    ):
        assert list(found) == list(model)
        for key in ("n", "mask"):
            np.testing.assert_array_equal(found[key], model[key])
            assert found[key].dtype == model[key].dtype
        assert (found["w"] != 0).all()


def test_integers_and_booleans_are_no_part_of_the_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """So they change neither what is released, nor its sensitivity; and one that took part would be noticed."""
    model, contents = counted(MODEL, 5), [counted(each, 1000) for each in rows()]
    released = [lambda: sums_of(wrapped(), contents, model), lambda: steps_of(local(), contents[0], model)]
    for found, expected in zip(released, [sums_of(wrapped(), rows()), steps_of(local(), rows()[0])], strict=True):
        np.testing.assert_array_equal(found(), expected)
        with monkeypatch.context() as patch:
            patch.setattr(ours, "_moves", lambda array: array.dtype.kind in "fi")
            assert not np.array_equal(found(), expected)
            assert np.linalg.norm(found()[1:]) < 0.01 * np.linalg.norm(expected), "the counter took the norm"


@pytest.mark.parametrize("name", GOING_ON)
def test_strategies_go_on_from_the_noisy_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrapped strategy does what it does to one client that has the noisy model."""
    monkeypatch.setattr(ours, "NoisyGradient", Seeded)
    noisy = round_of(wrapped(), rows())
    found = round_of(wrapped(inner=GOING_ON[name]()), rows())
    expected = round_of(GOING_ON[name](), [noisy, *[None] * (CLIENTS - 1)])
    for key in MODEL:
        np.testing.assert_array_equal(found[key], expected[key])


@pytest.mark.parametrize(
    "inner",
    [
        host.Bulyan(),
        host.FedMedian(),
        host.FedTrimmedAvg(),
        host.FedXgbBagging(),
        host.FedXgbCyclic(),
        host.Krum(),
        host.MultiKrum(),
        host.QFedAvg(client_learning_rate=0.1),
        wrapped(host),
        None,
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_strategies_that_need_each_reply_are_refused(inner: Any) -> None:
    with pytest.raises(ParameterError, match=f"^strategy must be FedAvg or .* got {type(inner).__name__}$"):
        ours.DifferentialPrivacyServerSideFixedClipping(inner, 1.0, 1.0, CLIENTS)


def test_every_strategy_of_the_host_is_either_taken_or_refused() -> None:
    """A new one is noticed here."""
    known = {*GOING_ON, *(kind.__name__ for kind in ours._NEED_EACH_REPLY), "Krum", "Strategy", "Result"}
    assert {name for name in host.__all__ if not name.startswith("DifferentialPrivacy")} == known


BAD = {
    "no noise below zero": lambda library: wrapped(library, -1.0),
    "no norm": lambda library: wrapped(library, 1.0, 0.0),
    "a text": lambda library: wrapped(library, "1"),
    "no clients": lambda library: library.DifferentialPrivacyServerSideFixedClipping(host.FedAvg(), 1.0, 1.0, 0),
    "an accountant of samples": lambda library: wrapped(library, accountant=accountant(SamplingMethod.POISSON)),
    "another strategy to account for": lambda library: wrapped(library, inner=host.FedAdam(), accountant=accountant()),
    "local: no norm": lambda library: local(library, clipping_norm=0.0),
    "local: a sensitivity below zero": lambda library: local(library, sensitivity=-1.0),
    "local: epsilon": lambda library: local(library, epsilon=-1.0),
    "local: delta": lambda library: local(library, delta=-1.0),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_are_the_hosts(name: str) -> None:
    theirs = host_mods if name.startswith("local") else host
    expected = error_of(lambda: BAD[name](theirs))
    assert expected is not None
    assert error_of(lambda: BAD[name](ours)) == expected


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: wrapped(multiplier=0.0), r"^noise_multiplier must be from 2\*\*-20 to 2\*\*11, got 0.0"),
        (lambda: wrapped(clip=2.0**81), r"^clipping_norm must be from 2\*\*-80 to 2\*\*80, got "),
        (lambda: wrapped(clip=np.nan), "^clipping_norm must be from"),
        (
            lambda: ours.DifferentialPrivacyServerSideFixedClipping(host.FedAvg(), 1.0, 1.0, np.inf),
            r"^num_sampled_clients must be from",
        ),
        (lambda: local(sensitivity=1.5), r"^sensitivity must be finite and at least 2 \* clipping_norm, 2.0, .* 1.5$"),
        (lambda: local(sensitivity=np.inf), "^sensitivity must be finite"),
        (lambda: local(epsilon=0.0), "^epsilon must be positive and finite, got 0.0"),
        (lambda: local(delta=0.0), "^delta must be between 0 and 1"),
        (lambda: local(clipping_norm=2.0**-81), "^clipping_norm must be from"),
    ],
)
def test_parameters_that_cannot_be_honoured_are_refused(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        call()


ODD = {
    "long doubles": {**MODEL, "v": np.zeros(3, np.longdouble)},
    "integers alone": {"n": np.array(3), "m": np.zeros(3, bool)},
    "nothing": {"w": np.zeros((0, 3))},
    "no arrays": {},
}


@pytest.mark.parametrize("name", ODD)
def test_models_that_cannot_be_clipped_are_refused_before_they_are_sent(name: str) -> None:
    strategy = wrapped()
    with pytest.raises(
        ParameterError, match=r"^arrays must (be float16, float32, float64, integers or booleans, got |have at least)"
    ):
        strategy.configure_train(1, record(ODD[name]), ConfigRecord(), Grid())
    with pytest.raises(ParameterError, match=r"^arrays must have at least one number of .* configure_train$"):
        strategy.aggregate_train(1, [])


SECRET = 0.123456


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"w": np.full((2, 3), SECRET, np.float32), "b": np.zeros(1)}, "the keys and shapes of those of the model"),
        ({"w": np.full((2, 3), SECRET, np.float32), "b": np.zeros((), int)}, "of floating point, integers"),
    ],
)
def test_replies_that_do_not_fit_the_model_are_refused_without_showing_them(wrong: Any, text: str) -> None:
    with pytest.raises(ParameterError, match=text) as caught:
        round_of(wrapped(), [*rows(3), wrong])
    assert str(SECRET) not in str(caught.value)


def test_replies_without_a_weight_are_refused_as_by_the_host() -> None:
    def replies(strategy: Any) -> Any:
        messages = strategy.configure_train(1, record(MODEL), ConfigRecord(), Grid())
        contents = [RecordDict({"arrays": record(each), "metrics": MetricRecord({"loss": 1.0})}) for each in rows()]
        return strategy.aggregate_train(
            1, [Message(each, reply_to=message) for each, message in zip(contents, messages, strict=True)]
        )

    expected = error_of(lambda: replies(wrapped(host)))
    assert expected is not None
    assert expected[0] is InconsistentMessageReplies
    assert error_of(lambda: replies(wrapped())) == expected


def test_weights_that_differ_are_refused() -> None:
    """Each client moves the mean by a tenth of its norm, for which the noise is."""
    clients = 10
    update = {"w": np.full((2, 3), 6**-0.5, np.float32)}
    examples = [1000, *[10] * (clients - 1)]

    def mean(examples: list[int]) -> Any:
        strategy = ours.DifferentialPrivacyServerSideFixedClipping(host.FedAvg(), LITTLE, 1.0, clients)
        strategy.current_arrays = record({"w": np.zeros((2, 3), np.float32)})
        replies = [
            Message(
                RecordDict({"arrays": record(arrays), "metrics": MetricRecord({"num-examples": count})}),
                dst_node_id=0,
                message_type=MessageType.TRAIN,
            )
            for arrays, count in zip([update, *[{"w": np.zeros((2, 3))}] * (clients - 1)], examples, strict=True)
        ]
        return strategy.aggregate_train(1, replies)[0]["w"].numpy()

    assert np.linalg.norm(mean([7] * clients)) == pytest.approx(0.1, rel=1e-4)
    with pytest.raises(ParameterError, match=r"^'num-examples' must be the same in all replies") as caught:
        mean(examples)
    assert "1000" not in str(caught.value)


def test_the_wrapped_strategy_sees_nothing_else_of_the_clients() -> None:
    def reply_seen(contents: list[Any], **metrics: Any) -> Message:
        inner = Seen()
        round_of(wrapped(inner=inner), contents, **metrics)
        (seen,) = inner.replies
        return seen

    seen = reply_seen(rows(), loss=SECRET, **{"num-examples": 260})
    assert {name: dict(metrics) for name, metrics in seen.content.metric_records.items()} == {
        "metrics": {"num-examples": 1.0}
    }
    assert list(seen.content.array_records) == ["arrays"]
    assert seen.content.config_records == {}
    # Neither the arrays nor the metadata say how many replies there were, or whose.
    fewer = reply_seen([None] * CLIENTS)
    differ = {
        name
        for name in vars(seen.metadata)
        if getattr(seen.metadata, name.lstrip("_")) != getattr(fewer.metadata, name.lstrip("_"))
    }
    assert {name.lstrip("_") for name in differ} <= {"created_at"}
    strategy = wrapped()
    assert list(strategy.configure_evaluate(1, record(MODEL), ConfigRecord(), Grid())) == []
    assert strategy.aggregate_evaluate(1, []) is None


def test_a_reply_that_fails_or_is_missing_counts_as_zeros_and_the_round_goes_on() -> None:
    others = rows(3)
    expected = sums_of(wrapped(), [*others, {key: np.zeros_like(array) for key, array in MODEL.items()}])
    bad = [
        None,
        Error(1, "a failure"),
        *({**others[0], "b": np.array(value, np.float32)} for value in (np.nan, np.inf, -np.inf)),
        {**others[0], "w": np.full((2, 3), 3e38, np.float32)},
        {"w": np.full((2, 3), 1e308), "b": np.array(0.0)},
    ]
    for each in bad[:5]:
        np.testing.assert_array_equal(sums_of(wrapped(), [*others, each]), expected)
    for each in bad[5:]:  # clipped, or zeros where the square overflows, and never an error
        sums_of(wrapped(), [*others, each])
    np.testing.assert_array_equal(sums_of(wrapped(), [None] * CLIENTS), np.zeros(7))
    np.testing.assert_array_equal(sums_of(wrapped(), [Error(1, "a failure")] * CLIENTS), np.zeros(7))
    # The divisor stays.
    quarter = flat(round_of(wrapped(), [others[0], None, None, None]))
    np.testing.assert_allclose(quarter, flat(others[0]) / CLIENTS, atol=1e-5)


def test_updates_of_zeros_leave_the_model_as_it_is() -> None:
    zeros = [{key: np.zeros_like(array) for key, array in MODEL.items()}] * CLIENTS
    np.testing.assert_allclose(flat(round_of(wrapped(), zeros)), 0, atol=1e-5)


def square(numbers: Iterable[Any]) -> Fraction:
    return sum((Fraction(float(number)) ** 2 for number in numbers), Fraction(0))


@pytest.mark.parametrize("weight", [0.0, 100.0])
def test_no_client_changes_the_sum_by_more_than_the_sensitivity(weight: float) -> None:
    """In integers; the positive control is a clip in float32, which is too long for many updates."""
    d, clip = 50, np.float32(1e-3).item()
    generator = np.random.default_rng(5)
    model = {"w": np.full(d, weight, np.float32)}
    mechanism = NoisyGradient(clip_norm=clip, noise_multiplier=1.0, expected_batch_size=1)
    limit = Fraction(mechanism.sensitivity(d)) / Fraction(mechanism.granularity)
    assert limit <= (Fraction(clip) + Fraction(clip) / 10**8) / Fraction(mechanism.granularity)
    others = [{"w": model["w"] + generator.normal(size=d).astype(np.float32)} for _ in range(CLIENTS - 1)]
    without = sums_of(wrapped(clip=clip), [*others, None], model)
    above = 0
    for _ in range(200):
        reply = model["w"] + generator.normal(size=d).astype(np.float32)
        change = sums_of(wrapped(clip=clip), [*others, {"w": reply}], model) - without
        assert square(change) <= limit**2
        assert square(change) > (limit * Fraction(999, 1000)) ** 2
        update = reply - model["w"]
        above += square(update * np.float32(clip / np.linalg.norm(update))) > Fraction(clip) ** 2
    assert above > 50


def test_a_sum_in_floating_point_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def float_sum(mechanism: Any, gradients: Any, **_: Any) -> Any:
        return np.concatenate([np.ravel(array) for array in gradients]) / mechanism.granularity

    monkeypatch.setattr(NoisyGradient, "clipped_sum", float_sum)
    with pytest.raises(TypeError, match="Cannot cast ufunc 'add' output"):
        round_of(wrapped(), rows())


def test_the_order_of_replies_does_not_matter() -> None:
    """As it does for a sum in floating point."""
    contents = rows(scale=3)
    assert np.array_equal(sums_of(wrapped(), contents), sums_of(wrapped(), contents[::-1]))
    sums = [flat(round_of(host.FedAvg(), rows(scale=3, seed=seed)[::turn])) for turn in (1, -1) for seed in range(20)]
    assert not np.array_equal(sums[:20], sums[20:])


D = 20_000
SIGMA = 1.5


def noise_seen(clip: float = 1.0) -> np.ndarray:
    """Give the noise in the model that the wrapped strategy sees, in units of its standard deviation."""
    inner, model = Seen(), {"w": np.zeros(D)}
    zeros = [{"w": np.zeros(D)}] * CLIENTS
    round_of(wrapped(multiplier=SIGMA, clip=clip, inner=inner), zeros, model)
    (seen,) = inner.replies
    sensitivity = NoisyGradient(clip_norm=clip, noise_multiplier=SIGMA, expected_batch_size=1).sensitivity(D)
    return seen.content["arrays"]["w"].numpy() * CLIENTS / (SIGMA * sensitivity)


def p_value(noise: np.ndarray) -> float:
    """Give the chance of so large or so small a sum of squares, of normal noise."""
    total = float(noise @ noise)
    return 2 * min(stats.chi2.cdf(total, len(noise)), stats.chi2.sf(total, len(noise)))


def test_the_noise_that_arrives_has_the_scale() -> None:
    assert p_value(noise_seen()) > ALARM
    assert stats.kstest(noise_seen(0.3), "norm").pvalue > ALARM


class TooSmall(NoisyGradient):
    __slots__ = ()

    def add_noise(self, sums: Any, **more: Any) -> Any:
        return 0.9 * super().add_noise(sums, **more)


class BeforeClipping(NoisyGradient):
    """Each update gets its noise, and is clipped then."""

    __slots__ = ()

    def clipped_sum(self, gradients: Any, **more: Any) -> Any:
        noisy = [
            array + self.noise_multiplier * np.random.default_rng().normal(size=array.shape) for array in gradients
        ]
        return super().clipped_sum(noisy, **more)

    def add_noise(self, sums: Any, **more: Any) -> Any:
        return sums * self.granularity / self.expected_batch_size


@pytest.mark.parametrize("fault", [TooSmall, BeforeClipping])
def test_faults_of_the_scale_are_found(fault: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "NoisyGradient", fault)
    assert p_value(noise_seen()) < 1e-12


def rounds() -> set[bytes]:
    """Give what two rounds and two wrappers release, where the host's generator begins anew for each."""
    strategy, found = wrapped(multiplier=2000.0), set()
    for each in (strategy, strategy, wrapped(multiplier=2000.0)):
        np.random.seed(1)  # noqa: NPY002
        found.add(flat(round_of(each, rows())).tobytes())
    return found


def test_every_round_draws_fresh_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(rounds()) == 3
    monkeypatch.setattr(ours, "NoisyGradient", Seeded)
    assert len(rounds()) == 1, "noise of a seed is noticed"


def test_nothing_is_released_without_randomness_and_the_round_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RandomnessError("no randomness")

    inner, paid = host.FedAvg(), accountant()
    strategy = wrapped(multiplier=1.0, inner=inner, accountant=paid)
    with monkeypatch.context() as patch:
        patch.setattr(NoisyGradient, "add_noise", fail)
        patch.setattr(inner, "_check_and_log_replies", lambda *_, **__: pytest.fail("something was released"))
        with pytest.raises(RandomnessError):
            round_of(strategy, rows())
    assert paid.num_releases == 1
    replies = replies_to(strategy.configure_train(1, record(MODEL), ConfigRecord(), Grid()), rows())
    replies[0].content["metrics"]["num-examples"] = 2
    with pytest.raises(ParameterError, match="must be the same"):
        strategy.aggregate_train(1, replies)
    assert paid.num_releases == 1, "what is refused costs nothing"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_no_warning_tells_of_a_client(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = {"w": np.full(4, np.finfo(dtype).max / 2, dtype)}
    replies = [{"w": column} for column in columns(4, [np.float16, np.float32, np.float64])]

    def check() -> None:
        check_silent(lambda reply: round_of(wrapped(), [reply, *[model] * (CLIENTS - 1)], model), replies)
        check_silent(lambda reply: sent_by(local(), reply, model), replies)

    check()
    monkeypatch.setattr(np, "errstate", lambda **_: nullcontext())
    with pytest.raises(AssertionError, match="is warned of"):
        check()


def accountant(sampling: Any = SamplingMethod.NO_AMPLIFICATION) -> Any:
    return RdpAccountant(
        PrivacyConfig(
            target_delta=1e-5,
            population_size=CLIENTS,
            neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
            sampling_method=sampling,
            max_epsilon=20.0,
        )
    )


def test_the_hosts_accountant_counts_rounds_and_ends_them() -> None:
    strategy = wrapped(multiplier=1.0, accountant=accountant())
    for _ in range(3):
        round_of(strategy, [*rows(2), None, Error(1, "a failure")])
    spent = strategy.privacy_spent()
    assert spent.num_releases == 3
    exact = epsilon_spent(noise_multiplier=1.0, sample_rate=1.0, steps=3, delta=1e-5)
    assert exact <= spent.epsilon <= 1.2 * exact
    with pytest.raises(PrivacyBudgetExhausted):
        list(map(round_of, [strategy] * 20, [rows()] * 20))
    idle = wrapped(inner=host.FedAvg(fraction_train=0.0), multiplier=1.0, accountant=accountant())
    assert list(idle.configure_train(1, record(MODEL), ConfigRecord(), Grid())) == []
    assert idle.aggregate_train(1, []) == (None, None)
    assert idle.privacy_spent().num_releases == 0


def local(library: Any = ours, **parameters: float) -> Any:
    return library.LocalDpMod(**{"clipping_norm": 1.0, "sensitivity": 2.0, "epsilon": 4.0, "delta": 1e-6, **parameters})


CONTEXT = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})


def sent_by(mod: Any, given: Any, model: dict[str, Any] = MODEL) -> Message:
    message = Message(RecordDict({"arrays": record(model)}), dst_node_id=1, message_type=MessageType.TRAIN)
    return mod(message, CONTEXT, lambda message, _: replies_to([message], [given], loss=0.5)[0])


def steps_of(mod: Any, given: Any, model: dict[str, Any] = MODEL) -> np.ndarray:
    """Give what gets the noise, in steps of the grid."""
    with pytest.MonkeyPatch.context() as patch:
        found = []
        patch.setattr(DiscreteGaussian, "release", lambda _, steps: found.append(steps) or np.zeros(len(steps), int))
        sent_by(mod, given, model)
    return found[0]


def test_a_client_sends_its_update_with_the_noise_of_the_mechanism_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    release = DiscreteGaussian.release
    monkeypatch.setattr(DiscreteGaussian, "release", lambda self, x: release(self, x, rng=hazmat.SeededRng(4)))
    (update,) = rows(1)
    reply = sent_by(local(clipping_norm=0.1, sensitivity=0.2), update)
    clipping = NoisyGradient(clip_norm=0.1, noise_multiplier=1.0, expected_batch_size=1)
    steps = clipping.clipped_sum([flat(update)[np.newaxis]])
    noise = DiscreteGaussian(
        epsilon=4.0, delta=1e-6, sensitivity=2 * clipping.sensitivity(len(steps)) / clipping.granularity
    )
    expected = (noise.release(steps) * clipping.granularity).astype(np.float32)
    arrays = {key: array.numpy() for key, array in reply.content["arrays"].items()}
    np.testing.assert_array_equal(flat(arrays), expected)
    assert {key: (array.shape, array.dtype) for key, array in arrays.items()} == {
        key: (array.shape, array.dtype) for key, array in MODEL.items()
    }
    assert reply.content["metrics"] == {"num-examples": 1, "loss": 0.5}  # as the page says


def test_two_updates_are_no_further_apart_than_the_noise_is_for() -> None:
    """In integers: an update and the opposite one; the noise is that of twice the norm, and of no less."""
    d = 50
    mod, model = local(), {"w": np.zeros(d)}
    clipping, noise = mod._mechanisms(d)
    generator = np.random.default_rng(6)
    for _ in range(100):
        update = 100 * generator.normal(size=d)
        a, b = (steps_of(mod, {"w": sign * update}, model) for sign in (1, -1))
        assert (
            Fraction(9999, 10000) * Fraction(noise.sensitivity) ** 2 < square(a - b) <= Fraction(noise.sensitivity) ** 2
        )
    assert noise.sensitivity == 2 * clipping.sensitivity(d) / clipping.granularity
    assert noise.delta_for(4.0) <= 1e-6 < noise.delta_for(3.999)
    _, wider = local(sensitivity=3.0)._mechanisms(d)
    assert wider.sensitivity == 3 / clipping.granularity
    np.testing.assert_array_equal(steps_of(mod, {"w": np.full(d, np.nan)}, model), np.zeros(d))
    np.testing.assert_array_equal(steps_of(mod, {"w": np.zeros(d)}, model), np.zeros(d))


def test_every_reply_has_fresh_noise() -> None:
    mod, found = local(), set()
    for each in (mod, mod, local()):
        np.random.seed(1)  # noqa: NPY002
        found.add(sent_by(each, rows()[0]).content["arrays"]["w"].numpy().tobytes())
    assert len(found) == 3


def failure_of(library: Any, message: Message, reply: Any) -> Any:
    return local(library)(message, CONTEXT, lambda message, _: reply(message)).error


def test_failures_of_the_modifier_are_the_hosts() -> None:
    message = Message(RecordDict({"arrays": record(MODEL)}), dst_node_id=1, message_type=MessageType.TRAIN)
    two = RecordDict({"a": record(MODEL), "b": record(MODEL)})
    replies = {
        "an error": lambda message: Message(Error(7, "a failure"), reply_to=message),
        "two records": lambda message: Message(two, reply_to=message),
        "other keys": lambda message: Message(RecordDict({"a": record({"v": 1.0})}), reply_to=message),
    }
    for reply in replies.values():
        assert failure_of(ours, message, reply) == failure_of(host_mods, message, reply)
    message = Message(two, dst_node_id=1, message_type=MessageType.TRAIN)
    assert failure_of(ours, message, None) == failure_of(host_mods, message, None)
    with pytest.raises(ParameterError, match=r"got \w+ for 'v': cast it, or leave it out of the record$"):
        sent_by(local(), {}, ODD["long doubles"])
    with pytest.raises(ParameterError, match="the keys and shapes of those of the model"):
        sent_by(local(), {**MODEL, "b": np.zeros(2)})


def test_the_older_strategies_and_secure_aggregation_cannot_take_the_wrapper() -> None:
    """`SecAggPlusWorkflow` calls the methods of the older strategies, which the wrapper does not have."""
    assert not {"configure_fit", "aggregate_fit"} & set(dir(wrapped()))


def test_the_example_learns() -> None:
    script = Path(__file__).parents[1] / "examples/federated_adult.py"
    if not script.exists():
        pytest.skip("the examples are not part of this installation")
    example = runpy.run_path(str(script))
    people = example["split"](0)
    nobody = np.mean(~people[1][1].astype(bool))
    found = [example["train"](strategy, people, 10) for strategy in (example["plain"](), example["private"](ours, 1.0))]
    assert min(found) > nobody + 0.02
    assert abs(found[0] - found[1]) < 0.02


def test_examples_of_the_docstrings_run() -> None:
    result = doctest.testmod(ours)
    assert result.attempted > 3
    assert result.failed == 0
