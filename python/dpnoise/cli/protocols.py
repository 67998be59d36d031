"""The local protocols as the command line names them, and their parameters as options."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from dpnoise import ParameterError, local
from dpnoise._domain import Domain
from dpnoise.cli.console import InputError
from dpnoise.cli.options import whole_number
from dpnoise.cli.sources import content

PROTOCOLS: Final[dict[str, type[local.Protocol]]] = {
    family.abbreviation: family.protocol for family in local.FAMILIES.values()
}
"""The classes by the abbreviations of the literature."""

MEANS: Final = [name for name, make in PROTOCOLS.items() if issubclass(make, local.MeanProtocol)]


def _parameters() -> dict[str, tuple[type, str]]:
    """Return the type and the help of each parameter: what it means for most protocols, and then for others."""
    kinds: dict[str, type] = {}
    helps: dict[str, dict[str, list[str]]] = {}
    for family in local.FAMILIES.values():
        for parameter in family.parameters:
            default = "the most accurate one" if parameter.default is None else parameter.default
            text = parameter.help if parameter.required else f"{parameter.help}; {default} if not given"
            kinds[parameter.name] = parameter.kind
            helps.setdefault(parameter.name, {}).setdefault(text, []).append(family.abbreviation)
    return {name: (kinds[name], " ".join(map(_help, texts, texts.values()))) for name, texts in helps.items()}


def _help(text: str, protocols: list[str]) -> str:
    if len(protocols) > _MANY:
        return f"{text[0].upper()}{text[1:]}."
    return f"{', '.join(protocols)}: {text}."


_MANY: Final = 4
"""The help of a parameter that more protocols share does not name them."""

_HELP: Final = _parameters()


def _name(text: str) -> str:
    for family in local.FAMILIES.values():
        if family.is_named(text):
            return family.abbreviation
    raise typer.BadParameter(f"{text!r} is not one of {', '.join(map(repr, PROTOCOLS))}.")


def _names(incomplete: str) -> Iterator[tuple[str, str]]:
    for name, make in PROTOCOLS.items():
        if name.startswith(incomplete):
            yield name, make.__name__


_LISTED: Final = (
    f"The protocol: {', '.join(PROTOCOLS)}. These are abbreviations; the name of the class, as OptimizedUnaryEncoding, "
    "or of the specification, as optimized_unary_encoding, is taken, too, in upper or lower case."
)
_NAME: Final = typer.Option("--protocol", metavar="NAME", parser=_name, autocompletion=_names, help=_LISTED)
ProtocolName: TypeAlias = Annotated[str | None, _NAME]
RequiredProtocolName: TypeAlias = Annotated[str, _NAME]


def with_parameters(*, memo: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add an option for each parameter of a protocol to a command, which gets them as ``**parameters``.

    Options that only protocols with a `memo` take are hidden on request: they serve the error of a protocol.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        own = [one for one in signature(function).parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
        options = {name: _option(*about, hidden=not memo and name not in shown) for name, about in _HELP.items()}
        added = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=one) for name, one in options.items()]
        function.__signature__ = signature(function).replace(parameters=[*own, *added])  # type: ignore[attr-defined]
        function.__annotations__ |= options
        return function

    shown = {name for make in PROTOCOLS.values() if not keeps_memo(make) for name in signature(make).parameters}
    return add


def keeps_memo(protocol: type[local.Protocol]) -> bool:
    """Return whether people keep something from one report to the next."""
    return next(family.keeps_memo for family in local.FAMILIES.values() if family.protocol is protocol)


def _option(kind: type, text: str, *, hidden: bool) -> Any:
    parser, metavar = (whole_number, "NUMBER") if kind is int else (None, "NUMBER" if kind is float else "ROUND")
    panel = "Parameters of the protocol"
    return Annotated[
        kind | None, typer.Option(parser=parser, metavar=metavar, help=text, hidden=hidden, rich_help_panel=panel)
    ]


def name_of(protocol: object) -> str:
    if isinstance(protocol, local.AttributesProtocol):
        return type(protocol).__name__.lower()
    return next(name for name, make in PROTOCOLS.items() if type(protocol) is make)


def protocol_of(
    name: str | None, specification: Path | None, parameters: Mapping[str, Any], labels: Domain | None
) -> Any:
    """Return the protocol that is given by its name and parameters, or by the file of its specification."""
    if (name is None) == (specification is None):
        raise InputError("give the protocol with either --protocol or --spec")
    if specification is None:
        return build(str(name), parameters, labels)
    others = [parameter for parameter, value in parameters.items() if value is not None]
    if others:
        raise InputError(f"--spec says all of the protocol, so it goes with no {_options(others, 'or')}")
    protocol = read_specification(specification)
    if labels is None:
        return protocol
    try:
        return local.Specification.from_json(protocol.to_json(), domain=labels, limit=None)
    except (ParameterError, TypeError):
        other = f"is {protocol!r}" if is_informed(protocol) else "has none: specify --spec makes one with a domain"
        raise InputError(f"the domain must be that of {str(specification)!r}, which {other}") from None


def build(protocol: str, parameters: Mapping[str, Any], labels: Domain | None) -> local.Protocol:
    """Return a protocol; the protocol checks its parameters, and errors name them as options."""
    make, takes = PROTOCOLS[protocol], dict(signature(PROTOCOLS[protocol]).parameters)
    takes.pop("bounds", None)  # commands that take them give them to `about`
    if "domain" in takes:
        takes.pop("domain" if labels is None else "k", None)
    given = {name: value for name, value in parameters.items() if value is not None}
    if labels is not None:
        given["domain"] = labels
    of_values = {"k", "domain"}  # one of these, which are optional in Python because there are two
    needed = {name for name, one in takes.items() if one.default is Parameter.empty or name in of_values}
    others = given.keys() - takes
    if others or not given.keys() >= needed:
        may = f" and may take {_options(takes.keys() - needed, 'or')}" if takes.keys() - needed else ""
        no = f", and no {_options(others, 'or')}" if others else ""
        raise InputError(f"--protocol {protocol} takes {_options(needed, 'and')}{may}{no}")
    try:
        return make(**given)
    except (ParameterError, TypeError) as error:
        raise InputError(in_options(str(error), takes, labels)) from None


def read_specification(path: Path) -> Any:
    """Read the file of ``--spec``, a specification or a document of any kind, which a collector limits."""
    try:
        return local.Specification.from_json(content(path).decode(), limit=None)
    except (ParameterError, UnicodeDecodeError) as error:
        raise InputError(f"{str(path)!r} is not the specification of a protocol: {error}") from None


def is_informed(protocol: local.Specification) -> bool:
    """Return whether it is known what values stand for, and not a digest of it alone."""
    return protocol.to_document() != protocol.to_json()


def option_of(parameter: str) -> str:
    return "--" + parameter.replace("_", "-")


def in_options(message: str, parameters: Iterable[str], labels: Domain | None = None) -> str:
    """Name the parameters in a message of the library as the options that they come from."""
    names = {name: option_of(name) for name in parameters}
    if labels is not None:
        names |= {"domain": "the domain", "k": "the number of values of the domain"}
    word = "|".join(names)
    subject, must, rest = message.partition(" must ")
    subject = re.sub(rf"\b({word})\b", lambda match: names[match[0]], subject)
    rest = re.sub(rf"\b({word})(?= = )", lambda match: names[match[0]], rest)
    return subject + must + rest


def _options(parameters: Iterable[str], conjunction: str) -> str:
    words = sorted(map(option_of, parameters))
    return f" {conjunction} ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
