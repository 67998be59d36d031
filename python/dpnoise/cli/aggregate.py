"""``dpnoise aggregate``: what the server does, reports in and an estimated histogram out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from dpnoise import plots
from dpnoise.cli import tables
from dpnoise.cli.console import InputError, atomic_write, check_target, print_table, progress, suffix_of, to_json
from dpnoise.cli.options import AsJson, Threads

_SHOWN = 40


def aggregate(
    sources: Annotated[list[Path], typer.Argument(metavar="REPORTS...", help="Files that perturb wrote: .parquet.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="Where the estimates go: .csv, .json, .parquet."),
    ] = None,
    level: Annotated[float, typer.Option(help="The confidence level of the intervals.")] = 0.95,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Let all intervals hold together at the level (Bonferroni).")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Also draw a bar chart: .png, .svg or .pdf.")] = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Estimate from reports how often every value of the domain occurs.

    The files must have been made with the same protocol and domain. A malformed report is counted as rejected, with
    the reason, and does not stop the others.
    """
    started = perf_counter()
    suffix = None if output is None else suffix_of(output, (".csv", ".json", ".parquet"), "the output")
    if plot is not None:
        suffix_of(plot, plots.SUFFIXES, "the plot")
        plots.require_matplotlib()
    for target in filter(None, (output, plot)):
        check_target(target, sources)
    files = _open_all(sources)
    domain, protocol = files[0].domain, files[0].protocol
    accumulator = protocol.accumulator()
    accumulator.estimate(level=level, simultaneous=simultaneous)  # refuses a bad level before any report is read

    unreadable: Counter[str] = Counter()
    with progress("aggregating", sum(file.rows for file in files)) as advance:
        for file in files:
            for reports, reasons in tables.read_reports(file):
                accumulator.add(reports, threads=threads)
                unreadable.update(reasons)
                advance(len(reports) + sum(reasons.values()))
    estimate = accumulator.estimate(level=level, simultaneous=simultaneous)

    columns = {
        "value": domain,
        "estimate": estimate.counts.tolist(),
        "standard_error": estimate.standard_errors.tolist(),
        "lower": estimate.lower.tolist(),
        "upper": estimate.upper.tolist(),
    }
    about = {
        "n": estimate.n,
        "rejected": estimate.rejected + sum(unreadable.values()),
        "rejected_reasons": dict(Counter(accumulator.rejected_reasons) + unreadable),
        "level": level,
        "simultaneous": simultaneous,
        "epsilon": protocol.epsilon,
        "spec_id": protocol.spec_id,
    }
    if output is not None and suffix is not None:
        with atomic_write(output) as opened:
            tables.write_estimate(opened, suffix, columns, about)
    if plot is not None:
        series = {f"estimate with {100 * level:g} % intervals": (estimate.counts, estimate.lower, estimate.upper)}
        plots.histogram(plot, domain, series, title=f"{estimate.n:,} reports, epsilon = {protocol.epsilon:.4g}")

    if as_json:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        files_made = {"output": output and str(output), "plot": plot and str(plot)}
        seconds = perf_counter() - started
        print(to_json({"command": "aggregate", **about, "estimates": rows, **files_made, "seconds": seconds}))
        return
    _print_summary(columns, about)


def _open_all(sources: Sequence[Path]) -> list[tables.ReportsFile]:
    """Open every file; refuse files that do not go together, and one given twice, which would count people twice."""
    files = [tables.open_reports(path) for path in sources]
    first = files[0]
    seen: set[tuple[int, int]] = set()
    for file in files:
        if file.protocol.spec_id != first.protocol.spec_id:
            raise InputError(f"{str(first.path)!r} and {str(file.path)!r} were made with different protocols")
        if file.domain != first.domain:
            raise InputError(f"{str(first.path)!r} and {str(file.path)!r} have different domains")
        status = file.path.stat()
        identity = (status.st_dev, status.st_ino)  # the same for every link to a file
        if identity in seen:
            raise InputError(f"{str(file.path)!r} is given twice; its reports would be counted twice")
        seen.add(identity)
    return files


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
