"""What is imported when it is first used: modules of packages (PEP 562), and the packages of the extras."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

TYPE_CHECKING = False  # as type checkers have it: importing typing takes as long as all else
if TYPE_CHECKING:
    from typing import Any


def lazily(package: str, names: Sequence[str], **modules: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package with these ``names``.

    Each of the ``modules`` comes with the names, separated by spaces, that the package takes from it. Any other name is
    that of a submodule. The same imports must stand under ``if TYPE_CHECKING``, for type checkers and other tools that
    read the source.
    """
    origins = {name: module for module, text in modules.items() for name in text.split()}

    def __getattr__(name: str) -> Any:
        if name in origins:
            value = getattr(import_module(f"{package}.{origins[name]}"), name)
        elif name in names or name in modules:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names, *modules})

    return __getattr__, __dir__


def require(package: str, extra: str) -> Any:
    """Import a package, or raise an ImportError that names the extra to install."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise ImportError(f"this needs {package}: pip install 'dpnoise[{extra}]'") from error
