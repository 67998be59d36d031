"""``dpnoise estimate``: what the server does, reports in and estimates out."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Final, get_args

import typer

from dpnoise import local, plots
from dpnoise._domain import listing
from dpnoise._files import atomic_write, locked
from dpnoise.cli import results, tables
from dpnoise.cli.agreement import LIMIT, Agreement, read_agreements
from dpnoise.cli.collect import Collection, collected
from dpnoise.cli.collection import INBOX, SPECIFICATIONS
from dpnoise.cli.console import InputError, check_target, complain, is_occupied, note, quantity, suffix_of, to_json
from dpnoise.cli.delivery import deliver
from dpnoise.cli.options import AsJson, Quiet, Threads, ranges, read_texts, whole_number
from dpnoise.cli.sources import STDIN, check_stdin, expand
from dpnoise.cli.state import StateFile

_NOTHING_USABLE: Final = 2
_PARTLY_USABLE: Final = 3
_DOUBTFUL: Final = 7

_HEADER_BYTES: Final = 12
_STRANGERS: Final = 5
"""How many other specifications of messages are named."""


def estimate(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="REPORTS...",
            help="Files that perturb wrote (.parquet), directories of them, or quoted patterns. With --messages files "
            "of messages, or - for stdin.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="Where the estimates go: .csv, .json, .parquet."),
    ] = None,
    level: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="The confidence level of the intervals; 0.95 if not given.")
    ] = None,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Let all intervals hold together at the level (Bonferroni).")
    ] = False,
    post: Annotated[
        local.Post | None,
        typer.Option(
            metavar="METHOD",
            help=f"Make the counts consistent, by {', '.join(get_args(local.Post))}. All but norm are biased, and "
            "intervals stay those of the unbiased counts.",
        ),
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option(metavar="TEXTS", help="cms, hcms, rappor: the texts to look for, separated by commas as in CSV."),
    ] = None,
    candidates_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The same as a file with one text per line.")
    ] = None,
    of_ranges: Annotated[
        Any,
        typer.Option("--ranges", metavar="RANGES", parser=ranges, help="hierarchical: what to count, as 0:17,18:64."),
    ] = None,
    no_smoothing: Annotated[
        bool, typer.Option("--no-smoothing", help="sw: keep peaks of single bins, and more of the noise.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw a bar chart of counts: .png, .svg or .pdf.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Go on from what an earlier run has counted, and keep the sum there."),
    ] = None,
    messages: Annotated[
        local.Framing | None,
        typer.Option(
            metavar="FORMAT",
            help=f"REPORTS are messages of devices, as {' or '.join(get_args(local.Framing))}, of the protocol of "
            "--spec or the state.",
        ),
    ] = None,
    spec: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Count only reports of this specification: what specify wrote. Several of these options are for "
            "several collections, each with its estimates.",
        ),
    ] = None,
    limit: Annotated[
        Any,
        typer.Option(
            metavar="BYTES",
            parser=whole_number,
            help="The most memory of the counters of a protocol that --spec or REPORTS name; 4194304, which is 4 MiB, "
            "if not given.",
            show_default=False,
        ),
    ] = LIMIT,
    threads: Threads = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Estimate counts, a mean or a distribution from reports.

    Example: `dpnoise estimate reports/ -o estimate.csv`

    The protocol of the reports decides which. Counts are in people, and unbiased: those of rare values may be negative.
    Reports are differentially private, and so is all that is computed from them.

    The files must be of one specification: that of --spec, of the state, or else of most of the files. A malformed
    report is counted as rejected, with the reason, and does not stop the others. Nor does a file that cannot be used:
    it is named, all of it is left out, and the exit code is 3. A file whose content has been counted already is named
    and skipped. Reports that no device of the protocol makes, such as malformed ones, make the estimates doubtful:
    stderr says why, and the exit code is 7.

    In a folder that `dpnoise collection` made, no options are needed.

    With --state the counts are kept in a file, also when the run is interrupted. A later run adds to them; without
    REPORTS it only gives the estimates.
    """
    started = perf_counter()
    suffix = None if output is None else suffix_of(output, (".csv", ".json", ".parquet"), "the output")
    if plot is not None:
        suffix_of(plot, plots.SUFFIXES, "the plot")
        plots.require_matplotlib()
    sources, spec = sources or [], spec or []
    if not (sources or spec or state or messages) and SPECIFICATIONS.is_dir():
        sources, spec, messages = _of_folder()
    if not sources and (state is None or not state.exists()):
        raise InputError("give files of reports, or with --state what an earlier run has counted")
    files, failed = expand(sources, messages is not None)
    check_stdin([*files, *spec, candidates_file])
    agreements = read_agreements(spec, limit)
    if len(agreements) > 1 and ((output, plot, state) != (None, None, None) or STDIN in files):
        raise InputError("several of --spec go with files alone, and with no --output, --plot or --state")
    changed = state if sources else None
    _check_targets(output, plot, state, changed, [*files, *spec])
    options = {
        "level": level,
        "simultaneous": simultaneous or None,
        "post": post,
        "candidates": read_texts(candidates, candidates_file, "--candidates"),
        "smoothing": False if no_smoothing else None,
    }
    options = {name: value for name, value in options.items() if value is not None}
    # A bad level is refused before any report is read.
    local.RandomizedResponse.coin_flips().accumulator().estimate(level=0.95 if level is None else level)

    kept = None if state is None else StateFile(state)
    records: list[dict[str, Any]] = []
    failures: dict[str, str] = {}

    def of_one(agreement: Agreement) -> int:
        """Count and estimate the reports of one specification, and return an exit code."""
        with (
            nullcontext() if changed is None else locked(changed),
            collected(files, dict(failed), kept, agreement, messages, threads) as collection,
        ):
            _print_problems(collection, failures)
            failures.update(collection.failed)
            counted = collection.state
            if counted is None or not counted.sources:
                if len(agreements) > 1:
                    note(f"no reports of {agreement.protocol!r}")
                return _NOTHING_USABLE
            estimated, doubts = results.estimated(counted, options)
            for doubt in doubts:
                complain(doubt)
            columns = results.columns_of(estimated, of_ranges)
            about = {**results.about(estimated, counted, 0.95 if level is None else level), "failed": collection.failed}
            if plot is not None and (isinstance(estimated, dict) or not {"count", "lower"} <= set(columns)):
                kind = type(counted.accumulator.protocol).__name__
                raise InputError(f"--plot draws counts of one column with intervals, which {kind} does not have")

            def show() -> None:
                if not as_json:
                    results.print_summary(columns if counted.accumulator.n or len(agreements) == 1 else {}, about)
                    return
                made = {"output": output and str(output), "plot": plot and str(plot), "state": state and str(state)}
                run = {"files_added": collection.counted, "repeated": collection.repeated}
                timed = {**made, **run, "seconds": perf_counter() - started}
                records.append({"command": "estimate", **about, "estimates": tables.records(columns), **timed})
                if len(agreements) == 1:
                    print(to_json(records[0]))

            def write() -> None:
                if output is not None and suffix is not None:
                    with atomic_write(output) as opened:
                        tables.write_table(opened, suffix, columns, about, "estimates")

            def draw() -> None:
                if plot is not None:
                    name = f"estimate with {100 * estimated.level:g} % intervals"
                    series = {name: (columns["count"], columns["lower"], columns["upper"])}
                    title = f"{quantity(estimated.n, 'report')}, epsilon = {about['epsilon']:.4g}"
                    plots.histogram(list(map(str, next(iter(columns.values())))), series, title=title, path=plot)

            deliver({"the state": collection.save, "the printed table": show, "the file": write, "the chart": draw})
        return _DOUBTFUL if doubts else 0

    codes = [of_one(agreement) for agreement in agreements]
    if as_json and len(agreements) > 1:
        print(to_json({"command": "estimate", "collections": records, "failed": failures}))
    if set(codes) == {_NOTHING_USABLE}:
        raise typer.Exit(_NOTHING_USABLE)
    if _DOUBTFUL in codes or failures:
        raise typer.Exit(_DOUBTFUL if _DOUBTFUL in codes else _PARTLY_USABLE)


def _of_folder() -> tuple[list[Path], list[Path], local.Framing | None]:
    """Return the reports, the specifications and the framing of messages of the folder of a collection."""
    specifications = sorted(SPECIFICATIONS.glob("*.json"))
    found = {suffix: sorted(INBOX.glob(f"*{suffix}")) for suffix in (".bin", ".parquet")}
    if not specifications or all(found.values()) or not any(found.values()):
        numbers = f"{len(specifications)}, {len(found['.bin'])} and {len(found['.parquet'])}"
        raise InputError(
            f"the folder of a collection must have documents in {str(SPECIFICATIONS)!r}, as *.json, and in "
            f"{str(INBOX)!r} either messages, as *.bin, or reports, as *.parquet, got {numbers} of these files"
        )
    return [*found[".bin"], *found[".parquet"]], specifications, "length-prefixed" if found[".bin"] else None


def _check_targets(
    output: Path | None, plot: Path | None, state: Path | None, changed: Path | None, inputs: list[Path]
) -> None:
    """Refuse targets that cannot be written, or replace one another, an input or a file other than an estimate."""
    if changed is not None:
        check_target(changed, inputs)
    taken = [*inputs, *filter(None, (state,))]
    for target in filter(None, (output, plot)):
        check_target(target, taken)
        taken.append(target)
    if output is not None and is_occupied(output) and not tables.is_estimate(output, results.HEADERS):
        raise InputError(f"{str(output)!r} is there already and is no estimate, which is all that may be replaced")


def _print_problems(collection: Collection, named: Mapping[str, str]) -> None:
    """Name on stderr what was not counted, and why, but for what was named before."""
    for path, problem in collection.failed.items():
        if path not in named:
            complain(problem)
    failed, state = len(collection.failed), collection.state
    if failed > 1 or (failed and state is not None and state.sources):
        complain(f"{failed:,} of the files could not be used and {'is' if failed == 1 else 'are'} left out")
    for header, count in collection.strangers.most_common(_STRANGERS):
        if header.startswith(b"DP\x01") and len(header) == _HEADER_BYTES:
            note(f"{quantity(count, 'message')} of the specification {header[4:].hex()}, which is not counted here")
    if collection.repeated:
        note(f"counted before, so skipped this time: {listing(list(collection.repeated))}")
