"""Options of several commands, and the objects that are built from them."""

import csv
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import typer

from dpnoise._display import silent
from dpnoise._domain import Domain, listing
from dpnoise.cli.console import InputError
from dpnoise.cli.lines import check_text
from dpnoise.cli.sources import content
from dpnoise.sensitivity import Relation

Source: TypeAlias = Annotated[
    Path,
    typer.Argument(metavar="IN", help="The private data: .parquet, .csv, .tsv, .csv.gz, .tsv.gz; - is CSV from stdin."),
]
Threads: TypeAlias = Annotated[
    int | None, typer.Option(min=1, max=4096, metavar="NUMBER", help="Threads to use; all cores if not given.")
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead of a table, and errors as JSON.")
]

QuotedLines: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--quoted-lines",
        help="CSV: let fields in quotes cross the ends of lines. A row with a quote too many may then take in others.",
    ),
]


def _one_character(text: str) -> str:
    found = {"tab": "\t", r"\t": "\t"}.get(text, text)
    if len(found) != 1 or not found.isascii() or found in '"\r\n':
        raise typer.BadParameter(f"{text!r} is not one ASCII character, such as ';', or tab.")
    return found


Delimiter: TypeAlias = Annotated[
    str | None,
    typer.Option(
        parser=_one_character,
        metavar="CHARACTER",
        help="CSV: what separates fields, such as ';' or tab. If not given: in .tsv tabs, otherwise commas, or the "
        "semicolons or tabs between the names of columns.",
    ),
]
DecimalMark: TypeAlias = Annotated[
    Literal[".", ","],
    typer.Option("--decimal", metavar="CHARACTER", help="CSV: what stands before the decimals of numbers, '.' or ','."),
]

_USUAL_WORDS: Final = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "None", "-", "")


def _words(text: str) -> Sequence[str]:
    return _USUAL_WORDS if text == "usual" else read_texts(text, None, "--na") or ()


MissingWords: TypeAlias = Annotated[
    Any,
    typer.Option(
        "--na",
        parser=_words,
        metavar="WORDS",
        help="CSV: fields that are missing values, separated by commas; the word usual means NA, N/A, NaN, null, NULL, "
        "None, - and others, and empty ones.",
    ),
]


def _silence(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.with_resource(silent())


Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", callback=_silence, help="Show no progress and no notes on stderr; errors stay.")
]

_NEIGHBOURS: Final = typer.Option(
    metavar="RELATION", help="Neighbours: add/remove, a row more or less, or substitute, another in its place."
)
RelationOption: TypeAlias = Annotated[Relation, _NEIGHBOURS]
RelationIfGiven: TypeAlias = Annotated[Relation | None, _NEIGHBOURS]

_MOST_DIGITS: Final = 30  # a short exponent may stand for a long number


def whole_number(text: str | int) -> int:
    """Read a count: digits, also with an exponent as in 1e6, if the number is whole."""
    try:
        number = Decimal(text)
        if number.is_finite() and number.adjusted() < _MOST_DIGITS and number == number.to_integral_value():
            return int(number)
    except ArithmeticError:
        pass
    raise typer.BadParameter(f"{text!r} is not a whole number, such as 1000000 or 1e6.")


def ranges(text: str) -> list[tuple[int, int]]:
    """Read ranges of whole numbers: ``0:17,18:64``."""
    try:
        return [(int(first), int(last)) for first, last in (part.split(":") for part in text.split(","))]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list of ranges, such as 0:17,18:64.") from None


def two_numbers(metavar: str, text: str, *, or_dates: bool = False) -> Any:
    """Return an option that takes two numbers, or on request two dates."""
    return typer.Option(metavar=metavar, parser=str, callback=_two_bounds if or_dates else _two_numbers, help=text)


def _two_numbers(value: tuple[str, str] | None) -> Any:
    """Read the two numbers of an option; the error for an invalid one shows both."""
    if value is None:
        return None
    try:
        return float(value[0]), float(value[1])
    except ValueError:
        raise typer.BadParameter(f"it takes two numbers, got {listing(value)}.") from None


def _two_bounds(value: tuple[str, str] | None) -> Any:
    if value is None:
        return None
    if (found := numbers_or_dates(value)) is None:
        raise typer.BadParameter(f"it takes two numbers, got {listing(value)}. Dates are as 2020-01-31.")
    return tuple(found)


def numbers_or_dates(texts: Sequence[str]) -> list[Any] | None:
    """Read numbers, dates as 2020-01-31, or times as 2020-01-31T12:00, all of one kind; None if they are not."""
    for read in (float, date.fromisoformat, datetime.fromisoformat):
        with suppress(ValueError):
            found = [read(text.strip()) for text in texts]
            zones = {getattr(one, "tzinfo", None) is None for one in found}
            return found if len(zones) == 1 else None
    return None


def read_domains(columns: Sequence[str], texts: Sequence[str], files: Sequence[Path]) -> list[Domain | None]:
    """Return the domain of each column; a single column may lack one."""
    if texts and files:
        raise InputError("give either --domain or --domain-file, not both")
    domains = [*(read_domain(text, None) for text in texts), *(read_domain(None, file) for file in files)]
    if not domains and len(columns) == 1:
        return [None]
    if len(domains) != len(columns):
        raise InputError(
            f"give --domain or --domain-file once for each --column, in the same order: got {len(columns)} of columns "
            f"and {len(domains)} of domains"
        )
    return domains


def read_domain(text: str | None, file: Path | None) -> Domain | None:
    labels = read_texts(text, file, "--domain")
    return None if labels is None else Domain(labels, "the domain")


def read_texts(text: str | None, file: Path | None, option: str) -> list[str] | None:
    """Return the texts of an option, from the comma-separated `text` or the lines of `file`, if either is given."""
    if text is not None and file is not None:
        raise InputError(f"give either {option} or {option}-file, not both")
    if text is not None:
        # By the rules of CSV, so a value may contain a comma: --domain '"a, b",c'.
        try:
            return next(csv.reader([text], skipinitialspace=True, strict=True), [])
        except csv.Error as error:
            raise InputError(f"{option} must be texts separated by commas as in CSV, got {text!r}: {error}") from None
    if file is None:
        return None
    data = content(file)
    if not data:
        raise InputError(f"{str(file)!r} is empty: it has a text on each line; one empty line is the empty text")
    check_text(data, file)
    return StringIO(data.decode("utf-8-sig"), newline=None).read().removesuffix("\n").split("\n")
