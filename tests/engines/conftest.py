"""Reports, malformed ones among them, and what one process makes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from dpnoise import local
from dpnoise.hazmat import SeededRng

PROTOCOLS = [
    local.OptimizedUnaryEncoding(k=15, epsilon=1.0),
    local.SymmetricUnaryEncoding(k=104, epsilon=2.0),
    local.GeneralizedRandomizedResponse(k=1000, epsilon=5.0),
    local.RandomizedResponse.coin_flips(),
]


@dataclass(frozen=True)
class Collection:
    """Reports of one protocol, some of them malformed where rows can be, and their state as of one process."""

    protocol: local.Protocol
    reports: NDArray[np.uint8]
    state: bytes

    @property
    def column(self) -> pa.Array:
        """The reports as Arrow has them, and some that are missing or of a wrong length."""
        return pa.array([*map(bytes, self.reports), None, b"", bytes(1000), None], pa.binary())

    @property
    def column_state(self) -> bytes:
        """The state of `column` as of one process."""
        total = local.Accumulator.from_bytes(self.state)
        total.add(self.column[-4:])
        assert total.rejected == local.Accumulator.from_bytes(self.state).rejected + 4
        return total.to_bytes()

    def parts(self, count: int) -> list[NDArray[np.uint8]]:
        """Return the reports in parts of different sizes, one of them empty."""
        cuts = np.random.default_rng(count).integers(0, len(self.reports), count - 2)
        return np.split(self.reports, [0, *sorted(cuts)])


def collect(protocol: local.Protocol) -> Collection:
    """Make some thousand reports, and count them in one process."""
    values = np.arange(5_000) % protocol.k
    answers = values.astype(bool) if isinstance(protocol, local.RandomizedResponse) else values
    reports = protocol.perturb(answers, rng=SeededRng(7)).view(np.uint8).reshape(len(values), -1)
    reports[::100] = 0xFF  # for k = 104 every byte can be that
    total = protocol.accumulator()
    total.add(reports)
    assert total.rejected == (0 if protocol.k % 8 == 0 and protocol.k < 1000 else 50)
    return Collection(protocol, reports, total.to_bytes())


# By module: for a fixture of the session pytest would mix the modules, and only one of them can have Spark.
@pytest.fixture(scope="module", params=PROTOCOLS, ids=lambda protocol: type(protocol).__name__)
def collection(request: pytest.FixtureRequest) -> Collection:
    """Return reports of each protocol."""
    return collect(request.param)


@pytest.fixture(scope="session")
def unary() -> Collection:
    """Return reports of a unary encoding."""
    return collect(PROTOCOLS[0])
