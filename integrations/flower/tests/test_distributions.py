"""The noise of Flower against that of ours: in the model after a round, and in a client's reply."""

import logging

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import mod as host_mods
from flwr.serverapp import strategy as host
from flwr.supercore.task_identity import TaskIdentity
from host_tests.two_samples import ALARM, N, p_value, planted

import dpnoise_flower as ours

# Both draw arrays, so that a million samples take no time.
N = max(N, 1_000_000)
CLIENTS = 4


@pytest.fixture(autouse=True)
def server(monkeypatch):
    """Let messages be made here, as in the process of a ServerApp."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
    monkeypatch.setattr(logging.getLogger("flwr"), "level", logging.CRITICAL)


def message(numbers):
    content = {"arrays": ArrayRecord({"w": Array(numbers)}), "metrics": MetricRecord({"num-examples": 1})}
    return Message(RecordDict(content), dst_node_id=1, message_type=MessageType.TRAIN)


def of_a_round(library, noise_multiplier):
    """Give the noise of a round with tiny updates."""
    strategy = library.DifferentialPrivacyServerSideFixedClipping(host.FedAvg(), noise_multiplier, 0.3, CLIENTS)
    strategy.current_arrays = ArrayRecord({"w": Array(np.zeros(N, np.float32))})
    replies = [message(np.full(N, 1e-15, np.float32)) for _ in range(CLIENTS)]
    return strategy.aggregate_train(1, replies)[0]["w"].numpy()


def of_a_reply(library, epsilon):
    mod = library.LocalDpMod(clipping_norm=0.5, sensitivity=1.0, epsilon=epsilon, delta=1e-6)
    context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})
    reply = mod(message(np.zeros(N)), context, lambda _, __: message(np.full(N, 1e-15)))
    return reply.content["arrays"]["w"].numpy()


def test_distribution_of_a_round_is_the_same():
    expected = of_a_round(host, 1.1)
    assert p_value(of_a_round(ours, 1.1), expected) > ALARM
    assert p_value(of_a_round(ours, 1.1 * planted(N)), expected) < ALARM


def test_distribution_of_a_reply_is_the_same_up_to_the_scale():
    mechanism = ours.LocalDpMod(0.5, 1.0, 1.0, 1e-6)._mechanisms(N)[1]
    ratio = mechanism.scale / mechanism.sensitivity / np.sqrt(2 * np.log(1.25 / 1e-6))
    expected = ratio * of_a_reply(host_mods, 1.0)
    assert p_value(of_a_reply(ours, 1.0), expected) > ALARM
    assert p_value(of_a_reply(ours, 1.0) * planted(N), expected) < ALARM
