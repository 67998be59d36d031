"""The exceptions, under one base, which the native module raises, too; and imports on first use.

`import dpnoise` imports this module alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

TYPE_CHECKING = False  # type checkers assume True; importing typing takes as long as all else
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "DoubtfulInputWarning",
    "Error",
    "HaltedError",
    "LedgerError",
    "NoErrorBound",
    "ParameterError",
    "RandomnessError",
]


class Error(Exception):
    """The base of all exceptions that dpnoise defines."""

    __module__ = "dpnoise"


class ParameterError(Error, ValueError):
    """A parameter or input cannot be used. Nothing was drawn and no budget was spent."""

    __module__ = "dpnoise"


class LedgerError(Error):
    """A ledger cannot be used: the file is no ledger, damaged, of another budget, read-only, locked or gone."""

    __module__ = "dpnoise.accounting"


class RandomnessError(Error, RuntimeError):
    """The source of randomness failed. Nothing was released."""

    __module__ = "dpnoise"


class HaltedError(Error, RuntimeError):
    """An object that allows a limited number of uses, or one process, cannot be used any more."""

    __module__ = "dpnoise"


class NoErrorBound(Error):
    """How far answers are off cannot be bounded beforehand. The message says why, and what can be asked instead."""

    __module__ = "dpnoise"


class DoubtfulInputWarning(UserWarning):
    """Honest devices of the protocol did not make all of these reports. They are estimated as they are."""

    __module__ = "dpnoise"


def lazily(package: str, names: Sequence[str], **modules: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package with these ``names``.

    Each of the ``modules`` comes with the names, separated by spaces, that the package takes from it. Any other name is
    that of a submodule. The same imports must stand under ``if TYPE_CHECKING``, for type checkers and other tools that
    read the source.
    """
    origins = {name: module for module, text in modules.items() for name in text.split()}

    def __getattr__(name: str) -> Any:
        if name in origins:
            from dpnoise._calls import explained  # the classes of accounting and of local that are not imported yet

            value = explained(getattr(import_module(f"{package}.{origins[name]}"), name))
        elif name in names or name in modules:
            value = import_module(f"{package}.{name}")
        else:
            from dpnoise._calls import elsewhere

            place = elsewhere(package, name)
            # An AttributeError is one that an import statement drops, with what it says.
            if place and sys._getframe(1).f_globals.get("__name__") == "importlib._bootstrap":
                raise ImportError(f"cannot import name {name!r} from {package!r}{place}")
            raise AttributeError(f"module {package!r} has no attribute {name!r}{place}")
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return [*names, *(module for module in modules if module not in names and not module.startswith("_"))]

    return __getattr__, __dir__


def require(module: str, extra: str, needs: str = "this needs") -> Any:
    """Import a module, or raise an ImportError that says how to install what an extra brings."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(f"{needs} {module}: {install_command(module, extra)}") from error


def install_command(module: str, extra: str) -> str:
    """Return the command that installs what an extra brings, or a module of it where dpnoise has no metadata.

    It does not name dpnoise, which an index may lack, or have in another version.
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        requirements = [line.partition(";") for line in requires("dpnoise") or ()]
    except PackageNotFoundError:
        requirements = []

    def brought(extra: str) -> list[str]:
        of_extra = [what.strip() for what, _, marker in requirements if marker.split() == ["extra", "==", repr(extra)]]
        nested = [name for what in of_extra if what[:8] == "dpnoise[" for name in what[8:-1].split(",")]
        own = [what for what in of_extra if what[:8] != "dpnoise["]
        return [what for name in nested for what in brought(name)] + own

    packages = brought(extra) or [module.partition(".")[0].replace("_", "-")]
    return "pip install " + " ".join(f'"{one}"' for one in packages)  # cmd of Windows knows no single quotes
