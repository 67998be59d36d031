"""Options of several commands, and the objects that are built from them."""

import csv
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import numpy as np
import typer
from numpy.typing import NDArray

from dpnoise import local
from dpnoise._domain import Domain
from dpnoise._progress import silent
from dpnoise.cli.console import InputError

Threads: TypeAlias = Annotated[
    int | None, typer.Option(min=1, max=4096, help="Threads to use; all cores when not given.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]


def _silence(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.with_resource(silent())


Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", callback=_silence, help="Show no progress and no notes on stderr; errors stay.")
]

Scheme: TypeAlias = (
    local.RandomizedResponse
    | local.GeneralizedRandomizedResponse
    | local.SymmetricUnaryEncoding
    | local.OptimizedUnaryEncoding
    | local.UnaryEncoding
    | local.LocalHashing
    | local.HadamardResponse
    | local.SubsetSelection
)


_MOST_DIGITS: Final = 30  # an exponent is short to write, and its number may not be


def whole_number(text: str | int) -> int:
    """Read a count: digits, also with an exponent as in 1e6, if the number is whole."""
    try:
        number = Decimal(text)
        if number.is_finite() and number.adjusted() < _MOST_DIGITS and number == number.to_integral_value():
            return int(number)
    except ArithmeticError:
        pass
    raise typer.BadParameter(f"{text!r} is not a whole number, such as 1000000 or 1e6.")


class ProtocolName(str, Enum):
    """The local protocols as the command line names them."""

    rr = "rr"
    grr = "grr"
    sue = "sue"
    oue = "oue"
    ue = "ue"
    lh = "lh"
    hr = "hr"
    ss = "ss"


_BY_EPSILON: dict[ProtocolName, Callable[..., Scheme]] = {
    ProtocolName.grr: local.GeneralizedRandomizedResponse,
    ProtocolName.sue: local.SymmetricUnaryEncoding,
    ProtocolName.oue: local.OptimizedUnaryEncoding,
    ProtocolName.lh: local.LocalHashing,
    ProtocolName.hr: local.HadamardResponse,
    ProtocolName.ss: local.SubsetSelection,
}


def build_protocol(name: ProtocolName, k: int, epsilon: float | None, p: float | None, q: float | None) -> Scheme:
    """Return the protocol `name` over `k` values; refuse parameters of other protocols."""
    if name is ProtocolName.ue:
        if p is None or q is None or epsilon is not None:
            raise InputError("--protocol ue takes --p and --q, and no --epsilon because that follows from them")
        return local.UnaryEncoding(k=k, p=p, q=q)
    if epsilon is None or p is not None or q is not None:
        raise InputError(f"--protocol {name.value} takes --epsilon, and no --p or --q because they follow from it")
    if name is ProtocolName.rr:
        if k != 2:
            raise InputError(f"--protocol rr asks a yes-no question: the domain must have 2 values, got {k}")
        return local.RandomizedResponse(epsilon=epsilon)
    return _BY_EPSILON[name](k=k, epsilon=epsilon)


def name_of(protocol: local.Protocol) -> str:
    """Return the command line's name of a protocol with parameters k and epsilon."""
    names: dict[object, ProtocolName] = {make: name for name, make in _BY_EPSILON.items()}
    return names.get(type(protocol), ProtocolName.rr).value


def perturb_codes(protocol: Scheme, codes: NDArray[np.int64], threads: int | None) -> NDArray[np.uint8]:
    """Return one report per code as the rows of a matrix, for every protocol."""
    if isinstance(protocol, local.RandomizedResponse):
        return protocol.perturb(codes == 1, threads=threads).view(np.uint8).reshape(-1, 1)
    return protocol.perturb(codes, threads=threads)


def read_domain(text: str | None, file: Path | None) -> Domain:
    """Return the domain given as comma-separated `text` or as the lines of `file`."""
    if text is not None and file is None:
        # By the rules of CSV, so a value may contain a comma: --domain '"a, b",c'.
        labels = next(csv.reader([text], skipinitialspace=True), [])
    elif file is not None and text is None:
        try:
            labels = file.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
        except UnicodeDecodeError:
            raise InputError(f"{str(file)!r} is not UTF-8 text") from None
    else:
        raise InputError(
            "give the domain with either --domain or --domain-file: it must be public and fixed beforehand, "
            "for a domain taken from the data would reveal which values occur in them"
        )
    return Domain(labels, "the domain")
