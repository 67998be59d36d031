"""Classes and functions whose failing calls say what to write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

if TYPE_CHECKING:
    from inspect import Signature

Made = TypeVar("Made")

Function = TypeVar("Function", bound=Callable[..., Any])

_NOT_SEEDED: Final = "noise is not seeded; for tests, pass rng=dpnoise.hazmat.SeededRng(1) to the method that draws"
_CENTRED: Final = "noise has mean 0, and is added to the value that release takes"
_DERIVED: Final = "the scale of the noise follows from the privacy parameters and the sensitivity"
_SPREADS: Final = ("noise_multiplier", "stddev", _DERIVED)

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
    "mu": (_CENTRED,),
    "neighbors": ("relation",),
    "neighbours": ("relation",),
    "num_categories": ("k",),
    "quantile": ("q",),
    "random_state": (_NOT_SEEDED,),
    "range": ("bounds",),
    "rng": (_NOT_SEEDED,),
    "scale": _SPREADS,
    "seed": (_NOT_SEEDED,),
    "sigma": _SPREADS,
    "std": _SPREADS,
    "upper": ("bounds",),
}
"""Names that other libraries have: the parameters that are meant, of which the first that there is counts, or why there
is none."""


class _ExplainedCalls(type):
    """The metaclass of `ByName`, which explains failing calls and only passes on all others."""

    def __call__(cls: type[Made], *given: Any, **named: Any) -> Made:
        try:
            made: Made = type.__call__(cls, *given, **named)
            return made
        except TypeError:
            problem = _misfit(cls, given, named)
            if problem is None:
                raise
        raise TypeError(problem)

    @property
    def __signature__(cls) -> Signature:
        """The parameters of the initialiser, where `inspect.signature` would find `__call__`."""
        from inspect import signature

        whole = signature(cls.__init__)  # type: ignore[misc] # that of this very class
        return whole.replace(parameters=list(whole.parameters.values())[1:])


_ExplainedCalls.__name__ = "type"  # as messages call a class that is given in place of its object


class ByName(metaclass=_ExplainedCalls):
    """A class whose parameters are keyword-only; the error for a call that does not fit says what to write."""

    __slots__ = ()


def explained(function: Function) -> Function:
    """Return the function with the errors of `ByName` for calls that do not fit; too slow for calls of microseconds."""

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except TypeError:
            problem = _misfit(function, given, named)
            if problem is None:
                raise
        raise TypeError(problem)

    return cast("Function", call)


def _misfit(call: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> str | None:
    """Say how arguments do not fit the parameters of a call; None if they fit, and the error has another cause."""
    from inspect import Parameter, signature  # slow to import, and needed only for errors

    name, fits = call.__name__, signature(call)
    try:
        fits.bind(*given, **named)
    except TypeError as error:
        reason = error
    else:
        return None
    own = fits.parameters.values()
    by_position = [one.name for one in own if one.kind is Parameter.POSITIONAL_OR_KEYWORD]
    by_name = [one.name for one in own if one.kind is Parameter.KEYWORD_ONLY]
    if by_name and len(given) > len(by_position):
        return f"{name} takes its parameters by name, use {_keywords(by_name)}"
    unknown = [word for word in named if word not in fits.parameters]
    if unknown:
        return f"{name} takes no {unknown[0]}={_instead_of(unknown[0], list(fits.parameters))}"
    needed = [one.name for one in own if one.default is Parameter.empty and one.name not in named]
    missing = [one for one in needed if one not in by_position[: len(given)]]
    return f"{name} needs {_keywords(missing)}" if missing else f"{name}: {reason}"


def _instead_of(word: str, parameters: list[str]) -> str:
    for meant in _SYNONYMS.get(word.lower(), ()):
        if " " in meant:
            return f": {meant}; use {_keywords(parameters)}"
        if meant in parameters:
            return f", use {meant}="
    from difflib import get_close_matches

    return f", use {_keywords(get_close_matches(word, parameters, 1) or parameters)}"


def _keywords(names: Sequence[str]) -> str:
    return ", ".join(f"{name}=" for name in names)
