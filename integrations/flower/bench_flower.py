"""What users of Flower get for changing one line: the aggregation of a round beside the host's, and a reply."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benches import moments
from benches.entrants import LONG, entrants
from benches.machine import OURS

CLIENTS = {"1 client": 1, "10 clients": 10}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let messages be made here, as in the process of a ServerApp."""
    pytest.importorskip("flwr")  # the typer that it holds back warns when it is imported
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
    monkeypatch.setattr(logging.getLogger("flwr"), "level", logging.CRITICAL)


def message(numbers: Any) -> Any:
    from flwr.app import Array, ArrayRecord, Message, MessageType, MetricRecord, RecordDict

    content = {"arrays": ArrayRecord({"w": Array(numbers)}), "metrics": MetricRecord({"num-examples": 1})}
    return Message(RecordDict(content), dst_node_id=1, message_type=MessageType.TRAIN)


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("column", CLIENTS)
def test_a_round(race: Any, column: str) -> None:
    from flwr.serverapp import strategy as host

    import dpnoise_flower

    clients = CLIENTS[column]
    model = message(np.zeros(LONG, np.float32)).content["arrays"]

    def aggregation(library: Any) -> tuple[Callable[[], Any], int]:
        strategy = library.DifferentialPrivacyServerSideFixedClipping(host.FedAvg(), 10.0 * clients, 1.0, clients)
        strategy.current_arrays = model
        # The host writes into the replies, and does not take zeros.
        updates = np.full(LONG, 1e-15, np.float32)

        def work() -> Any:
            return strategy.aggregate_train(1, [message(updates) for _ in range(clients)])[0]["w"].numpy()

        return work, LONG

    pairs = {OURS: aggregation(dpnoise_flower), "flwr": aggregation(host)}
    race("Flower: a round", column, "ns per parameter", entrants("", pairs, moments.normal(10)), 9)


@pytest.mark.usefixtures("server")
def test_a_reply(race: Any) -> None:
    from flwr.app import Context, RecordDict
    from flwr.clientapp import mod as host

    import dpnoise_flower

    context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})
    sent, updates = message(np.zeros(LONG, np.float32)), np.full(LONG, 1e-15, np.float32)

    def reply(library: Any) -> tuple[Callable[[], Any], int]:
        mod = library.LocalDpMod(clipping_norm=1.0, sensitivity=2.0, epsilon=1.0, delta=1e-5)
        return lambda: mod(sent, context, lambda *_: message(updates)).content["arrays"]["w"].numpy(), LONG

    pairs = {OURS: reply(dpnoise_flower), "flwr": reply(host)}
    race("Flower: a reply with local privacy", "float32", "ns per parameter", entrants("", pairs, None), 9)
