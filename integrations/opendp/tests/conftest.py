"""What measurements of OpenDP need before they are made."""

import os

os.environ["RUST_BACKTRACE"] = "0"  # OpenDP's errors take a thousand times as long with one
import opendp.prelude as dp
import pytest


@pytest.fixture(autouse=True)
def features():
    dp.enable_features("contrib", "honest-but-curious")
    yield
    dp.disable_features("contrib", "honest-but-curious")
