"""What Opacus and PyTorch warn of whenever they are used, on the page, too."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    for message in ("Full backward hook is firing", "Secure RNG turned off", "Optimal order is the largest alpha"):
        config.addinivalue_line("filterwarnings", f"ignore:{message}")
