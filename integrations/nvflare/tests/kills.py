"""Kill a site at random moments, and print how many updates the server got unpaid, how many it got, how many are paid.

The arguments are a folder, the number of kills, and ``late`` for a site that pays for an update after it was sent.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from nvflare.apis.event_type import EventType
from runner import Site, update

from dpnoise.accounting import Ledger
from dpnoise_nvflare import GaussianPrivacy


class Late(GaussianPrivacy):
    """A planted fault."""

    def _pay(self, fl_ctx: Any) -> None:
        """Leave it to the event."""

    def handle_event(self, event_type: str, fl_ctx: Any) -> None:
        if event_type == EventType.AFTER_SEND_TASK_RESULT:
            super()._pay(fl_ctx)


class Connected(Site):
    """A site that sends the number of each task with its update, and waits for an answer."""

    def __init__(self, root: Path, privacy: GaussianPrivacy, answers: int, updates: int) -> None:
        super().__init__(root, privacy)
        self.answers, self.updates = answers, updates

    def send_task_result(self, result: Any, fl_ctx: Any, timeout: Any) -> bool:
        assert "DXO" in result
        os.write(self.updates, int(self.task_id).to_bytes(4, "big"))
        self.sent.append(result)
        return len(os.read(self.answers, 1)) == 1


def main(folder: str, kills: str, kind: str = "") -> None:
    """Kill as many sites, each of which goes on with the ledger of the one before."""
    root, chance, got = Path(folder), random.Random(1), []
    privacy = (Late if kind == "late" else GaussianPrivacy)(1.0, 4.0, "budget.db", epsilon=1e6, delta=1e-6)
    result = update({"w": np.full(100_000, 0.001, np.float32)})
    for kill in range(int(kills)):
        (answers, server_answers), (server_updates, updates) = os.pipe(), os.pipe()
        process = os.fork()
        if process == 0:
            site = Connected(root, privacy, answers, updates)
            for number in range(1000):
                site.train(result, str(1000 * kill + number))
        os.close(answers), os.close(updates)
        for _ in range(chance.randrange(4)):
            got.append(os.read(server_updates, 4))
            os.write(server_answers, b"!")
        if chance.random() < 0.5:
            got.append(os.read(server_updates, 4))
        else:
            time.sleep(chance.uniform(0, 0.05))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        got.append(os.read(server_updates, 4))  # empty, or what was sent just before
        os.close(server_answers), os.close(server_updates)
    sent = {int.from_bytes(number, "big") for number in got if number}
    paid = {int(entry.label.split()[-1]) for entry in Ledger.open_readonly(root / "budget.db").entries()}
    print(len(sent - paid), len(sent), len(paid))


main(*sys.argv[1:])
