"""The noise of an update against NumPy's: NVFlare has no filter of Gaussian noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from host_tests.two_samples import ALARM, N, p_value, planted
from runner import Site, privacy, update

N = max(N, 1_000_000)


def test_the_noise_of_an_update_is_gaussian(tmp_path: Path) -> None:
    site = Site(tmp_path, privacy(clip_norm=0.5, noise_multiplier=4.0))
    found = site.train(update({"w": np.zeros(N)}))["DXO"]["data"]["w"]
    expected = np.random.default_rng(1).normal(0.0, 2.0, N)
    assert p_value(found, expected) > ALARM
    assert p_value(planted(N) * found, expected) < ALARM
