"""A site without a network: NVFlare's own runner carries out tasks, and what it sends is kept here."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import FLContextKey, ReservedTopic, ReturnCode
from nvflare.apis.fl_context import FLContext, FLContextManager
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.utils.event import fire_event_to_components
from nvflare.apis.workspace import Workspace
from nvflare.private.fed.client.client_engine_executor_spec import TaskAssignment
from nvflare.private.fed.client.client_runner import ClientRunner, ClientRunnerConfig, TaskRouter

from dpnoise_nvflare import GaussianPrivacy

GIVEN = {"clip_norm": 1.0, "noise_multiplier": 4.0, "ledger": "budget.db", "epsilon": 8.0, "delta": 1e-6}


def privacy(**parameters: Any) -> GaussianPrivacy:
    return GaussianPrivacy(**{**GIVEN, **parameters})


def update(arrays: dict[str, Any], **meta: Any) -> Shareable:
    return DXO(DataKind.WEIGHT_DIFF, arrays, meta).to_shareable()


class Site(Executor):
    """A site whose program gives the results of ``train``; it is the engine of NVFlare's runner, too."""

    def __init__(self, root: Path, *filters: Any, tasks: tuple[str, ...] = ("train",), **stickers: Any) -> None:
        super().__init__()
        for folder in ("startup", "local"):
            (root / folder).mkdir(exist_ok=True)
        self.sent: list[Shareable] = []
        self.tries = 1
        router = TaskRouter()
        router.add_executor(["train"], self)
        by_task = {f"{task}/out": list(filters) for task in tasks}
        self.runner = ClientRunner({}, ClientRunnerConfig(router, {}, by_task), "job-1", self)
        context = {FLContextKey.WORKSPACE_OBJECT: Workspace(str(root)), FLContextKey.RUNNER: self.runner, **stickers}
        self.contexts = FLContextManager(self, "site-1", "job-1", private_stickers=context)
        self.handlers = [self.runner, *filters]

    def train(self, result: Shareable, task_id: str = "task-1") -> Shareable:
        """Carry out a task, and give what the server gets."""
        self.result, self.task_id = result, task_id
        with self.contexts.new_context() as context:
            context.set_peer_context(self.contexts.new_context())
            self.runner.fetch_and_run_one_task(context)
        return self.sent[-1]

    def execute(self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Any) -> Shareable:
        return copy.deepcopy(self.result)

    def get_task_assignment(self, fl_ctx: FLContext, timeout: Any) -> TaskAssignment:
        return TaskAssignment("train", self.task_id, Shareable())

    def send_task_result(self, result: Shareable, fl_ctx: FLContext, timeout: Any) -> bool:
        self.sent.append(copy.deepcopy(result))
        self.tries -= 1
        return self.tries <= 0

    def send_aux_request(self, targets: list[str], topic: str, request: Shareable, **_: Any) -> dict[str, Shareable]:
        if topic == ReservedTopic.DO_TASK:
            self.sent.append(copy.deepcopy(request))
        return {targets[0]: make_reply(ReturnCode.OK)}

    def validate_targets(self, targets: list[str]) -> tuple[list[str], list[str]]:
        return targets, []

    def register_aux_message_handler(self, **_: Any) -> None:
        """Messages are not sent here."""

    def fire_event(self, event_type: str, fl_ctx: FLContext) -> None:
        fire_event_to_components(event_type, self.handlers, fl_ctx)
