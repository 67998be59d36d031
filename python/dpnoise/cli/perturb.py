"""``dpnoise perturb``: the work of the clients, for a file with the private values of one person per row."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import pyarrow as pa
import typer

from dpnoise import ParameterError, local
from dpnoise._display import progress
from dpnoise._domain import Domain, listing
from dpnoise._files import atomic_write, locked
from dpnoise._numbers import share_of
from dpnoise.cli import completion, kinds, tables
from dpnoise.cli.console import InputError, check_target, guarantee, is_occupied, quantity, say, suffix_of, to_json
from dpnoise.cli.options import (
    AsJson,
    DecimalMark,
    Delimiter,
    MissingWords,
    Quiet,
    QuotedLines,
    Source,
    Threads,
    read_domains,
    two_numbers,
)
from dpnoise.cli.protocols import (
    MEANS,
    PROTOCOLS,
    ProtocolName,
    build,
    keeps_memo,
    name_of,
    protocol_of,
    with_parameters,
)
from dpnoise.cli.reports import report_writer
from dpnoise.cli.sources import check_stdin


@with_parameters(memo=False)
def perturb(
    source: Source,
    columns: Annotated[
        list[str],
        typer.Option(
            "--column",
            metavar="NAME",
            help="The column to randomise. Several of these options are for several attributes of each person.",
            autocompletion=completion.columns,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="REPORTS", help="Where the reports go: .parquet.")],
    protocol: ProtocolName = None,
    spec: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The protocol, by the specification that specify wrote.")
    ] = None,
    domain: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VALUES",
            help="The public list of possible values, separated by commas as in CSV; one list for each --column.",
        ),
    ] = None,
    domain_file: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="The same, one value per line; an empty line is the empty text."),
    ] = None,
    bounds: Annotated[
        tuple[float, float] | None,
        two_numbers(
            "LOW HIGH",
            f"{', '.join(MEANS)}: the public bounds that -1 and 1 stand for, to which values are clamped.",
        ),
    ] = None,
    split: Annotated[
        bool,
        typer.Option(
            "--split",
            help="Several columns: let each person report all, with a share of epsilon each. Without it a person "
            "reports one, drawn at random, with all of epsilon, which is nearly always more accurate.",
        ),
    ] = False,
    missing: Annotated[
        str | None, typer.Option(metavar="VALUE", help="The value that stands for a missing one; one of the domain.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file of reports; every person has spent epsilon on that, too.")
    ] = False,
    delimiter: Delimiter = None,
    decimal: DecimalMark = ".",
    missing_words: MissingWords = None,
    quoted_lines: QuotedLines = False,
    threads: Threads = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    **parameters: float | int | str | None,
) -> None:
    """Randomise a column so that every row is differentially private on its own.

    Example: `dpnoise perturb people.csv --column colour --domain red,green,blue --protocol oue --epsilon 1 -o
    reports.parquet`

    The protocols, by what the column holds:

    - whole numbers: hierarchical (ranges of numbers below --k), pem (frequent numbers below 2**bits)

    - texts of an open domain: cms, hcms

    - numbers from -1 to 1, or within --bounds, for their mean: duchi, pm, hm, laplace, gaussian

    - numbers from 0 to 1, for their distribution: sw

    - values of --domain, or numbers below --k: all others, such as rr (yes or no), grr (few values) and oue (many)

    Several columns of values are several attributes of each person, whom epsilon protects as a whole; each has its own
    --domain, in the order of the columns, and all have the same protocol.

    Private is IN alone: no message shows a value of it. The reports, how many there are, and the domain are not. The
    domain has to be public and fixed before the data are seen.

    Every run on the same data spends epsilon anew, so a file of reports is not replaced unless --force is given. In CSV
    a row is a line, and an empty field is the empty text, or with --missing and in columns of numbers a missing value,
    unless it is quoted. Only the randomisation is constant-time; reading the file and looking values up are not.
    """
    started = perf_counter()
    files = domain_file or []
    check_stdin([source, spec, *files])
    domains = read_domains(columns, domain or [], files)
    if protocol is not None and (spec, domains, parameters["k"]) == (None, [None], None):
        _refuse_to_guess(PROTOCOLS[protocol])
    schemes = [protocol_of(protocol, spec, parameters, labels) for labels in domains]
    if not isinstance(schemes[0], local.Protocol):
        raise InputError("--spec must be of one attribute; several are given by several of --column")
    domains = [getattr(one, "domain", None) for one in schemes]  # a specification may bring its own
    needed = list(map(_kind_of, schemes))
    several = len(columns) > 1 or split
    scheme: Any = _of_several(columns, domains, schemes, parameters, split) if several else schemes[0]
    if bounds is not None:
        if not isinstance(scheme, local.MeanProtocol):
            raise InputError(f"--bounds applies to the protocols {', '.join(MEANS)} alone")
        scheme = _within(scheme, bounds, spec)
    for labels in domains:
        if missing is not None and labels is not None and missing not in labels:
            raise InputError(f"--missing must be a value of the domain ({listing(labels)}), got {missing!r}")
    suffix_of(output, (".parquet",), "the output")
    check_target(output, [source, *files, *filter(None, (spec,))])

    batch_rows = tables.batch_rows(scheme.report_bytes)
    opened = tables.open_columns(
        source,
        [tables.Column(*one) for one in zip(columns, needed, domains, strict=True)],
        strict=False,  # a value in no label is refused later, and one label may stand for missing values
        empty_is_missing=missing is not None,
        layout=tables.Layout(quoted_lines, delimiter, decimal, missing_words or ()),
        batch_rows=batch_rows,
    )
    fill = None if missing is None else needed[0].parsed(pa.array([missing], pa.large_string()), "--missing")[0]
    rows = 0
    with locked(output):
        if is_occupied(output) and not force:
            raise InputError(
                f"{str(output)!r} is there already: its reports have cost everybody in it epsilon, and new ones would "
                f"cost it again; give another name, or --force to replace it"
            )
        with (
            progress("perturbing", opened.total, opened.unit) as advance,
            atomic_write(output) as file,
            report_writer(file, scheme) as write,
        ):
            for batch, amount in opened.batches:
                values = [
                    _filled(column, fill, labels, name)
                    for column, labels, name in zip(batch, domains, columns, strict=True)
                ]
                write(_perturbed(scheme, dict(zip(columns, values, strict=True)), threads))
                rows += len(values[0])
                advance(amount)

    name = name_of(scheme)
    record = {
        "command": "perturb",
        "input": str(source),
        "column": columns[0] if len(columns) == 1 else columns,
        "output": str(output),
        "rows": rows,
        "protocol": name,
        "spec_id": scheme.spec_id,
        "epsilon": scheme.epsilon,
        "requested_epsilon": parameters["epsilon"] if several else schemes[0].requested_epsilon,
        "delta": scheme.delta,
        "p": getattr(scheme, "p", None),
        "q": getattr(scheme, "q", None),
        "domain": _listed(scheme),
        "bounds": getattr(scheme, "bounds", None),
        "report_bytes": scheme.report_bytes,
        "seconds": perf_counter() - started,
    }
    if as_json:
        print(to_json(record))
        return
    over = "" if domains[0] is None else f" over {len(domains[0])} values"
    over = f" of {name_of(schemes[0])} about {len(columns)} columns" if several else over
    size = f"{quantity(scheme.report_bytes, 'byte')} per report"
    say(
        f"{quantity(rows, 'report')} in {output}: {name}{over}, "
        f"{guarantee(scheme.epsilon, scheme.delta)} (achieved), {size}, {record['seconds']:.2f} s"
    )


def _of_several(
    columns: Sequence[str],
    domains: Sequence[Domain | None],
    schemes: Sequence[local.Protocol],
    parameters: Mapping[str, Any],
    split: bool,
) -> local.AttributesProtocol:
    """Return the protocol of several columns, whose protocols have been checked with all of epsilon."""
    if len(set(columns)) < max(2, len(columns)):
        raise InputError(f"--split and several of --column are for different columns, got {listing(columns)}")
    if not split:
        return local.Sampled(attributes=dict(zip(columns, schemes, strict=True)))
    if parameters["epsilon"] is None:
        raise InputError("--split shares --epsilon, which must be given")
    shared = {**parameters, "epsilon": share_of(parameters["epsilon"], len(columns))}
    parts = [build(name_of(schemes[0]), shared, labels) for labels in domains]
    return local.Split(attributes=dict(zip(columns, parts, strict=True)))


def _within(protocol: local.MeanProtocol, bounds: tuple[float, float], spec: Path | None) -> local.MeanProtocol:
    """Return the protocol for numbers within these bounds, which those of a specification must be."""
    bounded = protocol.about(bounds=bounds)
    if spec is not None and bounded.to_json() != protocol.to_json():
        raise InputError(f"--bounds must be those of {str(spec)!r}: {protocol!r}")
    return bounded


def _listed(protocol: Any) -> Any:
    """Return the labels of each attribute, or of one."""
    if isinstance(protocol, local.AttributesProtocol):
        return {name: _listed(one) for name, one in protocol.attributes.items()}
    return getattr(protocol, "domain", None)


def _kind_of(protocol: local.Protocol) -> kinds.Kind:
    """Return what a column must hold for a protocol; refuse protocols that need more than a column."""
    if keeps_memo(type(protocol)):
        raise InputError(
            f"{name_of(protocol)} needs a secret that each person keeps from one report to the next, and a file of "
            f"rows does not say whose row is whose: use {type(protocol).__name__} and ClientMemo from Python"
        )
    if isinstance(protocol, local.NumberProtocol):
        return kinds.NUMBERS
    if isinstance(protocol, local.Sketch):
        return kinds.TEXTS
    if isinstance(protocol, local.FrequencyProtocol) and protocol.domain is not None:
        return kinds.LABELS
    if isinstance(protocol, local.RandomizedResponse):
        _refuse_to_guess(local.RandomizedResponse)
    return kinds.INTEGERS


def _refuse_to_guess(protocol: type[local.Protocol]) -> None:
    """Refuse a protocol that needs the domain of the values."""
    if issubclass(protocol, local.FrequencyProtocol):
        numbers = "" if issubclass(protocol, local.RandomizedResponse) else ", or with --k for the numbers below k"
        raise InputError(
            f"give the domain with either --domain or --domain-file{numbers}: it must be public and fixed beforehand, "
            f"for a domain taken from the data would reveal which values occur in them"
        )


def _filled(values: pa.Array, fill: pa.Scalar | None, labels: Sequence[str] | None, column: str) -> pa.Array:
    """Return the values with missing values replaced."""
    if fill is not None:
        return values.fill_null(fill)
    if values.null_count:
        one = "a value" if labels is None else f"one of the domain ({listing(labels)})"
        raise InputError(f"column {column!r} has a missing value; name {one} to stand for it with --missing")
    return values


def _perturbed(protocol: Any, values: dict[str, pa.Array], threads: int | None) -> Any:
    """Return a report for each row; the error for a value that the protocol does not take does not show it."""
    several, (first, *_) = isinstance(protocol, local.AttributesProtocol), values.values()
    try:
        return protocol.perturb(values if several else first, threads=threads)
    except ParameterError as error:
        message = str(error)
        for name in values:
            plain = f"columns[{name!r}]: values" if several else "values"
            message = message.replace(plain, f"the values of column {name!r}", 1)
        hint = "; for empty fields of CSV --missing names a value"
        raise InputError(message + hint * ("must all be in the domain" in message)) from None
