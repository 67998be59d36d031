"""What JAX Privacy's own functions warn of, which its page calls; the ways of a compiled step."""

import pytest

from dpnoise_jax import _step


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore:optax.global_norm is deprecated")


@pytest.fixture(params=["custom call", "callback"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a compiled step is called: on one CPU, and elsewhere."""
    assert _step.is_one_cpu()
    if request.param == "callback":
        monkeypatch.setattr(_step, "is_one_cpu", lambda: False)
    return str(request.param)
