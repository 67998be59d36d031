"""Errors of a host and of its backend, to compare."""

from __future__ import annotations

from collections.abc import Callable


def error_of(call: Callable[[], object]) -> tuple[type[Exception], str] | None:
    """Give the type and text of what a call raises, or None."""
    try:
        call()
    except Exception as error:
        return type(error), str(error)
    return None
