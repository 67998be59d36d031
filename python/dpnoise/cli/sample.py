"""``dpnoise sample``: what devices do before a collector counts, for a file with one person per row."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from dpnoise import local
from dpnoise._display import progress
from dpnoise._files import atomic_write, locked
from dpnoise.cli import completion, tables
from dpnoise.cli.console import InputError, check_target, guarantee, is_occupied, suffix_of, to_json
from dpnoise.cli.options import AsJson, Quiet, RelationOption, SampleRate, Threads, Threshold

_BATCH_ROWS = 1 << 18


def sample(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The private data: .parquet, .csv or .csv.gz.")],
    column: Annotated[
        str, typer.Option(metavar="NAME", help="The column with the values.", autocompletion=completion.columns)
    ],
    epsilon: Annotated[float, typer.Option(metavar="NUMBER", help="The privacy parameter of the release.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="REPORTS", help="Where the reports go: .csv or .parquet.")
    ],
    delta: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="The probability that the release fails to protect somebody.")
    ] = None,
    threshold: Threshold = None,
    sample_rate: SampleRate = None,
    relation: RelationOption = "add/remove",
    threads: Threads = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Let each row take part at random, before `release --query frequent` counts the values of those who do.

    Example: `dpnoise sample people.csv --column colour --epsilon 1 --delta 1e-8 --threshold 20 -o reports.csv`

    Give two of --delta, --threshold and --sample-rate: the third one is the best that they and epsilon allow. Give the
    same ones to `release`.

    Reports are values as they are: **they are private**, as is their number. Only what `release` answers is
    differentially private. They are sorted, so that their order says nothing. Each run is a sample of its own, for a
    release of its own.
    """
    started = perf_counter()
    protocol = local.SampleAndThreshold(
        epsilon=epsilon, delta=delta, threshold=threshold, sample_rate=sample_rate, relation=relation
    )
    suffix = suffix_of(output, (".csv", ".parquet"), "the output")
    check_target(output, [source])
    data = tables.open_column(source, column, tables.TEXTS, empty_is_missing=True, batch_rows=_BATCH_ROWS)
    with locked(output):
        if is_occupied(output):
            raise InputError(f"{str(output)!r} is there already, and reports replace no file: give another name")
        reports: list[str] = []
        with progress("sampling", data.total, data.unit) as advance:
            for values, amount in data.batches:
                reports += protocol.sample(values, threads=threads)
                advance(amount)
        about = {
            "command": "sample",
            "input": str(source),
            "column": column,
            **{name: getattr(protocol, name) for name in ("epsilon", "delta", "relation", "threshold", "sample_rate")},
        }
        with atomic_write(output) as file:
            tables.write_table(file, suffix, {column: sorted(reports)}, about, "reports")
    if as_json:
        print(to_json({**about, "output": str(output), "seconds": perf_counter() - started}))
        return
    print(
        f"reports in {output}, private: sample rate {protocol.sample_rate:.6g}, threshold {protocol.threshold}, "
        f"{guarantee(protocol.epsilon, protocol.delta)}, neighbours by {relation}"
    )
