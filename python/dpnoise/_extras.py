"""The packages of the extras, imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(package: str, extra: str) -> Any:
    """Import a package, or raise an ImportError that names the extra to install."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise ImportError(f"this needs {package}: pip install 'dpnoise[{extra}]'") from error
