"""What JAX Privacy's own functions warn of, which its page calls."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore:optax.global_norm is deprecated")
