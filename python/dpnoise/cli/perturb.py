"""``dpnoise perturb``: the work of the clients, for a file with one private value per row."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import pyarrow as pa
import typer

from dpnoise import ParameterError, local
from dpnoise._display import progress
from dpnoise._files import atomic_write, locked
from dpnoise._parameters import listing
from dpnoise.cli import completion, tables
from dpnoise.cli.console import InputError, check_target, guarantee, is_occupied, quantity, suffix_of, to_json
from dpnoise.cli.options import AsJson, Quiet, Threads, read_domain
from dpnoise.cli.protocols import PROTOCOLS, ProtocolName, keeps_memo, name_of, protocol_of, with_parameters


@with_parameters(memo=False)
def perturb(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The private data: .parquet, .csv or .csv.gz.")],
    column: Annotated[
        str, typer.Option(metavar="NAME", help="The column to randomise.", autocompletion=completion.columns)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="REPORTS", help="Where the reports go: .parquet.")],
    protocol: ProtocolName = None,
    spec: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The protocol, by the specification that specify wrote.")
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(metavar="VALUES", help="The public list of possible values, separated by commas as in CSV."),
    ] = None,
    domain_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The same, one value per line; an empty line is the empty text.")
    ] = None,
    missing: Annotated[
        str | None, typer.Option(metavar="VALUE", help="The value that stands for a missing one; one of the domain.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file of reports; every person has spent epsilon on that, too.")
    ] = False,
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

    - numbers from -1 to 1, for their mean: duchi, pm, hm, laplace, gaussian

    - numbers from 0 to 1, for their distribution: sw

    - values of --domain, or numbers below --k: all others, such as rr (yes or no), grr (few values) and oue (many)

    Private is IN alone: no message shows a value of it. The reports, how many there are, and the domain are not. The
    domain has to be public and fixed before the data are seen.

    Every run on the same data spends epsilon anew, so a file of reports is not replaced unless --force is given. In CSV
    an empty field is the empty text, or with --missing and in columns of numbers a missing value, unless it is quoted.
    Only the randomisation is constant-time; reading the file and looking values up are not.
    """
    started = perf_counter()
    labels = read_domain(domain, domain_file)
    if protocol is not None and (spec, labels, parameters["k"]) == (None, None, None):
        _refuse_to_guess(PROTOCOLS[protocol])
    scheme = protocol_of(protocol, spec, parameters, labels)
    kind = _kind_of(scheme)
    if missing is not None and labels is not None and missing not in labels:
        raise InputError(f"--missing must be a value of the domain ({listing(labels)}), got {missing!r}")
    suffix_of(output, (".parquet",), "the output")
    check_target(output, [source, *filter(None, (domain_file, spec))])

    batch_rows = tables.batch_rows(scheme.report_bytes)
    data = tables.open_column(source, column, kind, empty_is_missing=missing is not None, batch_rows=batch_rows)
    fill = None if missing is None else kind.of(pa.array([missing], pa.large_string()), "--missing")[0]
    rows = 0
    with locked(output):
        if is_occupied(output) and not force:
            raise InputError(
                f"{str(output)!r} is there already: its reports have cost everybody in it epsilon, and new ones would "
                f"cost it again; give another name, or --force to replace it"
            )
        with (
            progress("perturbing", data.total, data.unit) as advance,
            atomic_write(output) as file,
            tables.report_writer(file, scheme, labels) as write,
        ):
            for values, amount in data.batches:
                write(_perturbed(scheme, _filled(values, fill, labels, column), column, threads))
                rows += len(values)
                advance(amount)

    name = name_of(scheme)
    record = {
        "command": "perturb",
        "input": str(source),
        "column": column,
        "output": str(output),
        "rows": rows,
        "protocol": name,
        "spec_id": scheme.spec_id,
        "epsilon": scheme.epsilon,
        "requested_epsilon": scheme.requested_epsilon,
        "delta": scheme.delta,
        "p": getattr(scheme, "p", None),
        "q": getattr(scheme, "q", None),
        "domain": labels,
        "report_bytes": scheme.report_bytes,
        "seconds": perf_counter() - started,
    }
    if as_json:
        print(to_json(record))
        return
    over = "" if labels is None else f" over {len(labels)} values"
    size = f"{quantity(scheme.report_bytes, 'byte')} per report"
    print(
        f"{quantity(rows, 'report')} in {output}: {name}{over}, "
        f"{guarantee(scheme.epsilon, scheme.delta)} (achieved), {size}, {record['seconds']:.2f} s"
    )


def _kind_of(protocol: local.Protocol) -> tables.Kind:
    """Return what a column must hold for a protocol; refuse protocols that need more than a column."""
    if keeps_memo(type(protocol)):
        raise InputError(
            f"{name_of(protocol)} needs a secret that each person keeps from one report to the next, and a file of "
            f"rows does not say whose row is whose: use {type(protocol).__name__} and ClientMemo from Python"
        )
    if isinstance(protocol, local.NumberProtocol):
        return tables.NUMBERS
    if isinstance(protocol, local.Sketch):
        return tables.TEXTS
    if isinstance(protocol, local.FrequencyProtocol) and protocol.domain is not None:
        return tables.TEXTS
    if isinstance(protocol, local.RandomizedResponse):
        _refuse_to_guess(local.RandomizedResponse)
    return tables.INTEGERS


def _refuse_to_guess(protocol: type[local.Protocol]) -> None:
    """Refuse a protocol that needs the domain of the values."""
    if issubclass(protocol, local.FrequencyProtocol):
        numbers = "" if issubclass(protocol, local.RandomizedResponse) else ", or with --k for the numbers below k"
        raise InputError(
            f"give the domain with either --domain or --domain-file{numbers}: it must be public and fixed beforehand, "
            f"for a domain taken from the data would reveal which values occur in them"
        )


def _filled(values: pa.Array, fill: pa.Scalar | None, labels: Sequence[str] | None, column: str) -> pa.Array:
    """Return the values with another one in place of missing ones."""
    if fill is not None:
        return values.fill_null(fill)
    if values.null_count:
        one = "a value" if labels is None else f"one of the domain ({listing(labels)})"
        raise InputError(f"column {column!r} has a missing value; name {one} to stand for it with --missing")
    return values


def _perturbed(protocol: Any, values: pa.Array, column: str, threads: int | None) -> Any:
    """Return a report for each value; the error for a value that the protocol does not take does not show it."""
    try:
        return protocol.perturb(values, threads=threads)
    except ParameterError as error:
        raise InputError(str(error).replace("values", f"the values of column {column!r}", 1)) from None
