"""``dpnoise perturb``: the work of the clients, for a file with one private value per row."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from dpnoise import ParameterError
from dpnoise._domain import Domain, listing
from dpnoise._files import atomic_write, locked
from dpnoise._progress import progress
from dpnoise.cli import tables
from dpnoise.cli.console import InputError, check_target, is_occupied, quantity, suffix_of, to_json
from dpnoise.cli.options import AsJson, ProtocolName, Quiet, Threads, build_protocol, perturb_codes, read_domain
from dpnoise.local import _arrow

_PRIVATE = "which value it is and where are private and not shown"


def perturb(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The private data: .parquet, .csv or .csv.gz.")],
    column: Annotated[str, typer.Option(help="The column to randomise.")],
    protocol: Annotated[
        ProtocolName,
        typer.Option(
            help="rr: randomised response, for two values. grr: generalised randomised response, for few values. "
            "sue, oue: symmetric or optimised unary encoding. ue: unary encoding with --p and --q. lh: local hashing. "
            "hr: Hadamard response. ss: subset selection."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="REPORTS", help="Where the reports go: .parquet.")],
    epsilon: Annotated[float | None, typer.Option(help="The privacy parameter of one report.")] = None,
    p: Annotated[float | None, typer.Option(help="For ue: the probability that a bit that is set stays so.")] = None,
    q: Annotated[
        float | None, typer.Option(help="For ue: the probability that a bit that is not set becomes so.")
    ] = None,
    domain: Annotated[
        str | None, typer.Option(help="The public list of possible values, separated by commas as in CSV.")
    ] = None,
    domain_file: Annotated[
        Path | None, typer.Option(help="The same as a file with one value per line; an empty line is the empty text.")
    ] = None,
    missing: Annotated[
        str | None, typer.Option(metavar="VALUE", help="The value of the domain that stands for a missing one.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file of reports; every person has spent epsilon on that, too.")
    ] = False,
    threads: Threads = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Randomise a column so that every row is differentially private on its own.

    The domain has to be public and fixed before the data are seen. In CSV an empty field is the empty text, which may
    belong to the domain; with --missing it is a missing value instead, unless it is quoted.

    Every run on the same data spends epsilon anew, so a file of reports is not replaced unless --force is given. Only
    the randomisation is constant-time; reading the file and looking values up are not.
    """
    started = perf_counter()
    labels = read_domain(domain, domain_file)
    scheme = build_protocol(protocol, len(labels), epsilon, p, q)
    if missing is not None and missing not in labels:
        raise InputError(f"--missing must be a value of the domain ({listing(labels)}), got {missing!r}")
    suffix_of(output, (".parquet",), "the output")
    check_target(output, [source, *filter(None, (domain_file,))])

    batch_rows = _arrow.rows_per_block(scheme.report_bytes)
    data = tables.open_column(source, column, empty_is_missing=missing is not None, batch_rows=batch_rows)
    rows = 0
    with locked(output):
        if is_occupied(output) and not force:
            raise InputError(
                f"{str(output)!r} is there already: its reports have cost everybody in it epsilon, and new ones would "
                f"cost it again; give another name, or --force to replace it"
            )
        with (
            progress("perturbing", data.rows) as advance,
            atomic_write(output) as file,
            tables.report_writer(file, scheme, labels) as write,
        ):
            for batch in data.batches:
                write(perturb_codes(scheme, _codes(batch, labels, missing, column), threads))
                rows += len(batch)
                advance(len(batch))

    record = {
        "command": "perturb",
        "input": str(source),
        "column": column,
        "output": str(output),
        "rows": rows,
        "protocol": protocol.value,
        "spec_id": scheme.spec_id,
        "epsilon": scheme.epsilon,
        "requested_epsilon": scheme.requested_epsilon,
        "p": scheme.p,
        "q": scheme.q,
        "domain": labels,
        "report_bytes": scheme.report_bytes,
        "seconds": perf_counter() - started,
    }
    if as_json:
        print(to_json(record))
        return
    size = f"{quantity(scheme.report_bytes, 'byte')} per report"
    print(
        f"{quantity(rows, 'report')} in {output}: {protocol.value} over {len(labels)} values, "
        f"epsilon {scheme.epsilon:.6g} (achieved), {size}, {record['seconds']:.2f} s"
    )


def _codes(values: pa.Array, domain: Domain, missing: str | None, column: str) -> NDArray[np.int64]:
    """Return the index of every value in the domain; the error for a value outside does not show the value."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    values = values.cast(pa.large_string())
    if values.null_count and missing is None:
        raise InputError(
            f"column {column!r} has a missing value; name one of the domain ({listing(domain)}) "
            f"to stand for it with --missing"
        )
    try:
        return domain.of_texts(values if missing is None else values.fill_null(missing), column)
    except ParameterError:
        raise InputError(f"column {column!r} has a value outside the domain {listing(domain)}; {_PRIVATE}") from None
