"""Answers to calls and names that do not fit: what was probably meant."""

from __future__ import annotations

import inspect
import re
import sys
from ast import literal_eval
from collections.abc import Callable, Iterable
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any, Final, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

REQUIRED: Final[Any] = object()
"""What a `hot` function has for a parameter that is not given and has no default."""

_NOT_SEEDED: Final = "noise is not seeded; for tests, pass rng=dpnoise.hazmat.SeededRng(1) to the method that draws"
_CENTRED: Final = "noise has mean 0, and is added to the value that release takes"
_NO_LOCATION: Final = "there is no location, noise has mean 0"
_DERIVED: Final = "the scale of the noise follows from the privacy parameters and the sensitivity"
_SPREADS: Final = ("noise_multiplier", "stddev", "sigma", "scale", _DERIVED)
_SEEDS: Final = ("rng", _NOT_SEEDED)

_SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "adjacency": ("relation",),
    "b": _SPREADS,
    "batch_size": ("expected_batch_size",),
    "bins": ("edges",),
    "budget": ("epsilon",),
    "categories": ("domain", "k"),
    "eps": ("epsilon",),
    "labels": ("domain",),
    "loc": (_CENTRED,),
    "lower": ("bounds",),
    "max_grad_norm": ("clip_norm",),
    "mean": (_CENTRED,),
    "mu": (_CENTRED,),
    "neighbors": ("relation",),
    "neighbours": ("relation",),
    "num_categories": ("k",),
    "output": ("candidates",),
    "outputs": ("candidates",),
    "possible_outputs": ("candidates",),
    "quantile": ("q",),
    "random_state": _SEEDS,
    "range": ("bounds",),
    "rng": _SEEDS,
    "scale": _SPREADS,
    "seed": _SEEDS,
    "shape": ("size",),
    "sigma": _SPREADS,
    "std": _SPREADS,
    "upper": ("bounds",),
}
"""Names that other libraries have: the parameters that are meant, of which the first that there is counts, or why there
is none."""


def explain(module: str) -> None:
    """Answer wrong calls of all that is in the ``__all__`` of a module; what it imports later is for `explained`."""
    members = vars(sys.modules[module])
    members |= {name: explained(members[name]) for name in members["__all__"] if name in members}


def explained(thing: Any) -> Any:
    """Return a function, or a class with its methods, that says of a wrong call what to write.

    A function is wrapped, also in its own module, where pickles look for it; the methods of a class and of its bases
    are wrapped in place. Other things are returned as they are.
    """
    if isinstance(thing, FunctionType):
        thing = _answering(thing)
        setattr(sys.modules[thing.__module__], thing.__name__, thing)
    for kind in thing.__mro__ if isinstance(thing, type) else ():
        own = vars(kind) if kind.__module__.partition(".")[0] == "dpnoise" else {}
        for name, member in [*own.items()]:
            if name.startswith("_") and name != "__init__":
                continue
            if isinstance(member, FunctionType):
                setattr(kind, name, _answering(member))
            elif isinstance(member, classmethod | staticmethod):
                setattr(kind, name, type(member)(_answering(cast("FunctionType", member.__func__))))
    return thing


def _answering(function: FunctionType) -> FunctionType:
    if hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return function
    answer = _misfit

    def call(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named) if named else function(*given)  # the latter is faster
        except BaseException as error:
            inside = error.__traceback__ and error.__traceback__.tb_next
            if inside is None and isinstance(error, TypeError):  # of the call itself, which no frame of it has raised
                error.args = (answer(function, given, named),)
            error.__traceback__ = inside  # tracebacks have no frame of this module
            del inside  # a circle with this frame would keep the arguments, which are private, until they are collected
            raise

    # With the globals of the function, of which doctest asks where it belongs.
    wrapper = FunctionType(call.__code__, function.__globals__, closure=call.__closure__)
    return cast("FunctionType", wraps(function)(wrapper))


def hot(function: Function) -> Function:
    """Leave out a function whose calls take about a microsecond: a wrapper would make them a tenth slower.

    A function with ``*given`` and ``**named``, which its signature does not show, is called whatever the arguments, and
    raises `misfit` where these hold anything or a parameter is `REQUIRED`; any other keeps the errors of Python.
    """
    shown = inspect.signature(function)
    own = [one for one in shown.parameters.values() if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    function.__signature__ = shown.replace(parameters=own)  # type: ignore[attr-defined]
    if len(own) < len(shown.parameters):
        needed = [one for one in own if one.kind is one.POSITIONAL_OR_KEYWORD and one.name != "self"]
        function.__defaults__ = (REQUIRED,) * len(needed)
    return function


def misfit(function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> TypeError:
    """Return the error for a call of a `hot` function with arguments that do not fit its signature."""
    return TypeError(_misfit(function, tuple(one for one in given if one is not REQUIRED), named))


def _misfit(function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Say how arguments do not fit the parameters of a function; a method's have its object first."""
    name, own = function.__name__, [*inspect.signature(function).parameters.values()]
    if own and own[0].name in ("self", "cls"):
        owner = next((one if isinstance(one, type) else type(one) for one in given), object)
        if not hasattr(owner, name):
            return f"{name} is a method: make an object first, and call its {name}"
        name = owner.__name__ if name == "__init__" else f"{owner.__name__}.{name}"
        own, given = own[1:], given[1:]
    by_position = [one.name for one in own if one.kind is one.POSITIONAL_OR_KEYWORD]
    by_name = [one.name for one in own if one.kind is one.KEYWORD_ONLY]
    parameters = by_position + by_name
    is_centred = parameters[:1] in (["scale"], ["sigma"]) and name != "geometric"
    if len(given) > len(by_position):
        if not by_name:
            return f"{name} takes {' and '.join(by_position) or 'no arguments'}, got {len(given)}"
        if not by_position:
            return f"{name} takes its parameters by name, use {_keywords(by_name)}"
        hint = f": {_NO_LOCATION}" if is_centred else ""
        what = " and ".join(by_position)
        return f"{name} takes {what} by position and the others by name{hint}; use {_keywords(by_name)}"
    for word in named:
        if word not in parameters:
            return f"{name} takes no {word}={_instead_of(word, parameters, is_centred)}"
    twice = [one for one in by_position[: len(given)] if one in named]
    if twice:
        return f"{name} got {_keywords(twice)} by position and by name"
    needed = [one.name for one in own if one.default is one.empty and one.name in parameters and one.name not in named]
    return f"{name} needs {_keywords(one for one in needed if one not in by_position[: len(given)])}"


def _instead_of(word: str, parameters: list[str], is_centred: bool) -> str:
    for meant in _SYNONYMS.get(word.lower(), ()):
        if meant in parameters:
            return f", use {meant}="
        if " " in meant:
            return f": {_NO_LOCATION if is_centred and meant is _CENTRED else meant}; use {_keywords(parameters)}"
    from difflib import get_close_matches  # slow to import, and needed only for errors

    close = get_close_matches(word, parameters, 1) or parameters
    return f", use {_keywords(close)}" if close else " or any other argument"


def outside() -> int:
    """Return the ``stacklevel`` of a warning that shows the line outside dpnoise from which its caller was called."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "dpnoise":
        level, frame = level + 1, frame.f_back
    return level


def elsewhere(package: str, name: str) -> str:
    """Say where dpnoise has a public thing of a name that a package lacks, or of a similar name; "" if nowhere."""
    if name.startswith("_") or find_spec(f"{package}.{name}"):  # a module that is not imported yet
        return ""
    from difflib import get_close_matches

    places = _public_places()
    bare = _bare(name).removesuffix("mechanism")
    found = [bare] if bare in places else get_close_matches(bare, places, 1, 0.8)
    return f", use {' or '.join(places[found[0]])}" if found else ""


def _public_places() -> dict[str, list[str]]:
    """Return where the public things of each name are, near the top if in several modules. Nothing is imported."""
    folder = Path(__file__).parent
    places: dict[str, dict[str, str]] = {}
    for file in sorted(folder.rglob("*.py"), key=lambda file: len(file.parts)):
        parts = file.relative_to(folder.parent).with_suffix("").parts
        module = ".".join(parts).removesuffix(".__init__")
        if re.search(r"\._|\.cli|\.extend", module):  # private, not of Python, not for users
            continue
        listed = re.search(r"(?ms)^__all__ = (\[.*?\])", file.read_text(encoding="utf-8"))
        for name in literal_eval(listed[1]) if listed else ():
            places.setdefault(_bare(name), {}).setdefault(name, f"{module}.{name}")
    return {name: list(where.values()) for name, where in places.items()}


def _bare(name: str) -> str:
    return name.lower().replace("_", "")


def _keywords(names: Iterable[str]) -> str:
    return ", ".join(f"{name}=" for name in names)
