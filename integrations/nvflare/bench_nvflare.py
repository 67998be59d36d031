"""What the filter of a site takes for an update, beside one of the same form with NumPy's noise, and `SVTPrivacy`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benches import moments
from benches.entrants import entrants
from benches.machine import OURS

NUMBERS = 7_000_000


def test_an_update(race: Any, tmp_path: Path) -> None:
    from nvflare.apis.dxo import DXO, DataKind
    from nvflare.apis.dxo_filter import DXOFilter
    from nvflare.apis.fl_constant import FLContextKey
    from nvflare.apis.fl_context import FLContext
    from nvflare.app_common.filters.svt_privacy import SVTPrivacy

    from dpnoise_nvflare import GaussianPrivacy

    class NumPyPrivacy(DXOFilter):
        """The same in floating point: no grid, no ledger."""

        def process_dxo(self, dxo: Any, shareable: Any, fl_ctx: Any) -> Any:
            (update,) = dxo.data.values()
            scale = min(1.0, 1.0 / np.linalg.norm(update))
            noise = np.random.normal(0.0, 4.0, update.size)  # noqa: NPY002
            return DXO(dxo.data_kind, {"w": (scale * update + noise).astype(update.dtype)})

    context = FLContext()
    workspace = SimpleNamespace(get_root_dir=lambda: tmp_path)
    context.set_prop(FLContextKey.WORKSPACE_OBJECT, workspace, private=True, sticky=False)
    update = np.full(NUMBERS, 1e-6, np.float32)

    def work(privacy: Any) -> tuple[Callable[[], Any], int]:
        def process() -> Any:
            result = DXO(DataKind.WEIGHT_DIFF, {"w": update}).to_shareable()
            return privacy.process(result, context)["DXO"]["data"]["w"]

        return process, NUMBERS

    ours = GaussianPrivacy(clip_norm=1.0, noise_multiplier=4.0, ledger="budget.db", epsilon=1e6, delta=1e-6)
    gaussian = {OURS: work(ours), "NumPy, np.random.normal": work(NumPyPrivacy(None, None))}
    runners = entrants("", gaussian, moments.normal(4.0)) + entrants(
        "nvflare, SVTPrivacy", {"": work(SVTPrivacy())}, None
    )
    race("NVFlare: an update", "7 million float32", "ns per parameter", runners, 9)
