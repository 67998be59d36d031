"""``dpnoise aggregate``: what the server does, reports in and an estimated histogram out."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from dpnoise import local, plots
from dpnoise.cli import tables
from dpnoise.cli.collect import Collection, collect
from dpnoise.cli.console import InputError, atomic_write, check_target, listing, print_table, suffix_of, to_json
from dpnoise.cli.options import AsJson, Threads
from dpnoise.cli.sources import expand
from dpnoise.cli.state import StateFile

_SHOWN = 40
_NOTHING_USABLE = 2
_PARTLY_USABLE = 3


def aggregate(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="REPORTS...", help="Files that perturb wrote (.parquet), directories of them, or quoted patterns."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="Where the estimates go: .csv, .json, .parquet."),
    ] = None,
    level: Annotated[float, typer.Option(help="The confidence level of the intervals.")] = 0.95,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Let all intervals hold together at the level (Bonferroni).")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Also draw a bar chart: .png, .svg or .pdf.")] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Go on from what an earlier run has counted, and keep the sum there."),
    ] = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Estimate from reports how often every value of the domain occurs.

    The files must have been made with the same protocol and domain. A malformed report is counted as rejected, with
    the reason, and does not stop the others. Nor does a file that cannot be used: it is named, all of it is left out,
    and the exit code is 3. A file whose content has been counted already is named and skipped.

    With --state the counts are kept in a file, also when the run is interrupted. A later run adds to them; without
    REPORTS it only gives the estimates.
    """
    started = perf_counter()
    suffix = None if output is None else suffix_of(output, (".csv", ".json", ".parquet"), "the output")
    if plot is not None:
        suffix_of(plot, plots.SUFFIXES, "the plot")
        plots.require_matplotlib()
    sources = sources or []
    if not sources and (state is None or not state.exists()):
        raise InputError("give files of reports, or with --state what an earlier run has counted")
    files, failed = expand(sources)
    if state is not None:
        check_target(state, files)
    for target in filter(None, (output, plot)):
        check_target(target, files if state is None else [*files, state])
    # A bad level is refused before any report is read.
    local.RandomizedResponse.coin_flips().accumulator().estimate(level=level, simultaneous=simultaneous)

    collection = collect(files, failed, None if state is None else StateFile(state), threads)
    _print_problems(collection)
    counted = collection.state
    if counted is None:
        raise typer.Exit(_NOTHING_USABLE)
    domain, protocol = counted.domain, counted.accumulator.protocol
    estimate = counted.accumulator.estimate(level=level, simultaneous=simultaneous)

    columns = {
        "value": domain,
        "estimate": estimate.counts.tolist(),
        "standard_error": estimate.standard_errors.tolist(),
        "lower": estimate.lower.tolist(),
        "upper": estimate.upper.tolist(),
    }
    about = {
        "n": estimate.n,
        "rejected": estimate.rejected,
        "rejected_reasons": counted.accumulator.rejected_reasons,
        "level": level,
        "simultaneous": simultaneous,
        "epsilon": protocol.epsilon,
        "spec_id": protocol.spec_id,
        "files": len(counted.sources),
        "failed": collection.failed,
    }
    if output is not None and suffix is not None:
        with atomic_write(output) as opened:
            tables.write_estimate(opened, suffix, columns, about)
    if plot is not None:
        series = {f"estimate with {100 * level:g} % intervals": (estimate.counts, estimate.lower, estimate.upper)}
        plots.histogram(plot, domain, series, title=f"{estimate.n:,} reports, epsilon = {protocol.epsilon:.4g}")

    if as_json:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        files_made = {"output": output and str(output), "plot": plot and str(plot), "state": state and str(state)}
        run = {"files_added": collection.counted, "repeated": collection.repeated, "seconds": perf_counter() - started}
        print(to_json({"command": "aggregate", **about, "estimates": rows, **files_made, **run}))
    else:
        _print_summary(columns, about)
    if collection.failed:
        raise typer.Exit(_PARTLY_USABLE)


def _print_problems(collection: Collection) -> None:
    """Name on stderr what was not counted, and why."""
    for problem in collection.failed.values():
        print("dpnoise:", problem, file=sys.stderr)
    if len(collection.failed) > 1 or (collection.failed and collection.state):
        print(f"dpnoise: {len(collection.failed):,} of the files could not be used and are left out", file=sys.stderr)
    if collection.repeated:
        names = listing(list(collection.repeated))
        print(f"dpnoise: counted before, so skipped this time: {names}", file=sys.stderr)


def _print_summary(columns: Mapping[str, Sequence[Any]], about: Mapping[str, Any]) -> None:
    """Print the largest estimates, how many reports they are made from, and how many were rejected and why."""
    k = len(columns["value"])
    largest = sorted(range(k), key=lambda i: columns["estimate"][i], reverse=True)[:_SHOWN]
    rows = [
        (
            columns["value"][i],
            *(f"{columns[name][i]:,.1f}" for name in ("estimate", "standard_error", "lower", "upper")),
        )
        for i in largest
    ]
    kind = "simultaneous " if about["simultaneous"] else ""
    title = f"Estimated counts with {kind}{100 * about['level']:g} % intervals"
    if len(rows) < k:
        title += f", the {len(rows)} largest of {k:,}"
    print_table(title, ("value", "estimate", "standard error", "lower", "upper"), rows)
    reasons = ", ".join(f"{reason}: {count:,}" for reason, count in about["rejected_reasons"].items())
    rejected = f"{about['rejected']:,} rejected" + (f" ({reasons})" if reasons else "")
    print(f"{about['n']:,} reports, {rejected}; epsilon {about['epsilon']:.6g}")
    if about["files"] > 1:
        print(f"{about['files']:,} files")
