"""What tests of refusals share."""

import re
from collections.abc import Callable
from typing import Any

import pytest


def refuses(kind: type[Exception], message: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Check that a call raises this error, with a message that contains this text."""
    with pytest.raises(kind, match=re.escape(message)):
        call(*args, **kwargs)
