"""What users of PipelineDP get for one line before their pipeline."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pipeline_dp
import pytest
from pipeline_dp import aggregate_params, dp_computations

from benches import moments
from benches.entrants import LONG, SHORT, entrants
from benches.machine import OURS
from dpnoise_google.pipeline_dp import patched

SCALE = 10.0


@pytest.mark.parametrize("column", ["vector sum", "array", "count by count"])
def test_pipeline_dp(race: Any, column: str) -> None:
    params = dp_computations.AdditiveVectorNoiseParams(
        eps=1 / SCALE,
        delta=0.0,
        max_norm=1.0,
        l0_sensitivity=1,
        linf_sensitivity=1,
        norm_kind=aggregate_params.NormKind.L1,
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
    )

    def noise(size: int) -> Any:
        if column == "vector sum":
            return dp_computations.add_noise_vector(np.zeros(size), params)
        mechanism = dp_computations.LaplaceMechanism.create_from_epsilon(1 / SCALE, 1.0)
        if column == "array":
            return mechanism.add_noise(np.zeros(size))
        return [mechanism.add_noise(0) for _ in range(size)]

    def work(block: Callable[[], Any], size: int) -> tuple[Callable[[], Any], int]:
        def run() -> Any:
            with block():
                return noise(size)

        return run, size

    pairs = {OURS: work(patched, SHORT if column == "count by count" else LONG), "": work(nullcontext, SHORT)}
    race("PipelineDP, Laplace", column, "ns per sample", entrants("pipeline-dp", pairs, moments.laplace(SCALE)))
