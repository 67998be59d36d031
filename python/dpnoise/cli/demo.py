"""``dpnoise demo``: the occupations of the Adult census, local against central differential privacy."""

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import dpnoise
from dpnoise import datasets, local, plots
from dpnoise.cli.console import InputError, check_target, print_table, say, suffix_of, to_json
from dpnoise.cli.delivery import deliver
from dpnoise.cli.options import AsJson, DecimalMark, Delimiter, MissingWords, QuotedLines, Threads

_LEVEL = 0.95


def demo(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="IN", help="Your own data instead of the census: .parquet, .csv, .tsv, .csv.gz, .tsv.gz; - is CSV."
        ),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(
            metavar="QUESTION",
            help="With IN: what to ask, as histogram:age:0,18,65,inf, histogram:city:Rome,Oslo, mean:age:0,100 or "
            "count:city:Rome. Bins, values and bounds are public: choose them without looking at the data.",
        ),
    ] = None,
    epsilon: Annotated[
        float,
        typer.Option(
            metavar="NUMBER", help="The privacy parameter: of both models, or with IN of all three answers together."
        ),
    ] = 1.0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="With IN: where the page goes, a new .html; or demo.html."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Without IN: where the bar chart goes, .png, .svg or .pdf; demo/adult_occupations.png if not given.",
        ),
    ] = None,
    delimiter: Delimiter = None,
    decimal: DecimalMark = ".",
    missing_words: MissingWords = None,
    quoted_lines: QuotedLines = False,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Show what differential privacy does: to the occupations of 32,561 people, or to your own data.

    Example: `dpnoise demo people.csv --query histogram:age:0,18,65,inf -o ages.html`

    Without IN it estimates the occupations in the Adult census, which come with the package and are public, in two
    models, and compares. Local: every person's occupation is randomised on its own (optimised unary encoding) and only
    the reports are counted. Central: a trusted curator counts and releases the counts with Laplace noise.

    With IN it answers a question about your data three times, with 5, 20 and 75 % of epsilon, and writes one page of
    HTML with bars, intervals and the budget. Nothing on it comes from the data but noisy answers, which together are
    differentially private by epsilon; each row is one person. A large epsilon leaves hardly any noise. Every run spends
    epsilon anew.
    """
    for option, value, needed in (("--query", query, True), ("--output", output, True), ("--plot", plot, False)):
        if value is not None and (source is not None) != needed:
            raise InputError(f"{option} goes {'with IN, a file of your data' if needed else 'without IN'}")
    if source is not None:
        from dpnoise.cli import tables, three_answers

        layout = tables.Layout(quoted_lines, delimiter, decimal, missing_words or ())
        three_answers.answer(source, query, epsilon, output or Path("demo.html"), layout, as_json=as_json)
        return
    plot = plot or Path("demo/adult_occupations.png")
    suffix_of(plot, plots.SUFFIXES, "the plot")
    undrawn = _reason_not_to_draw()
    if undrawn is None:
        plot.parent.mkdir(parents=True, exist_ok=True)
        check_target(plot)
    record = compare(epsilon, threads)
    record["plot"] = None if undrawn else str(plot)

    def show() -> None:
        if as_json:
            print(to_json(record))
            return
        _print_comparison(record)
        say(undrawn or f"Chart: {plot}")
        say(datasets.ADULT_ATTRIBUTION)

    title = f"Occupations in the Adult census, epsilon = {epsilon:g}, {100 * _LEVEL:g} % intervals"
    deliver({"the printed table": show, "the chart": lambda: None if undrawn else draw(record, title, path=plot)})


def compare(epsilon: float, threads: int | None) -> dict[str, Any]:
    """Make the local estimate and the central release, and return both beside the true counts."""
    codes, labels = datasets.adult_occupations()
    truth = np.bincount(codes, minlength=len(labels)).astype(np.float64)
    started = perf_counter()
    protocol = local.OptimizedUnaryEncoding(k=len(labels), epsilon=epsilon)
    accumulator = protocol.accumulator()
    accumulator.add(protocol.perturb(codes, threads=threads), threads=threads)
    estimate = accumulator.estimate(level=_LEVEL)
    # One person who changes occupation moves two counts by one: the neighbours that local privacy protects, too.
    curator = dpnoise.Laplace(epsilon=epsilon, sensitivity=2.0)
    released = curator.release(truth)
    lower, upper = curator.confidence_interval(released, level=_LEVEL)
    seconds = perf_counter() - started

    columns = {
        "occupation": labels,
        "true_count": truth.astype(int).tolist(),
        "local_estimate": estimate.counts.tolist(),
        "local_lower": estimate.lower.tolist(),
        "local_upper": estimate.upper.tolist(),
        "central_release": released.tolist(),
        "central_lower": lower.tolist(),
        "central_upper": upper.tolist(),
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    local_error, central_error = _root_mean_square(estimate.counts - truth), _root_mean_square(released - truth)
    return {
        "command": "demo",
        "people": len(codes),
        "epsilon": epsilon,
        "local_epsilon": protocol.epsilon,
        "level": _LEVEL,
        "occupations": sorted(rows, key=lambda row: -row["true_count"]),
        "local_root_mean_square_error": local_error,
        "central_root_mean_square_error": central_error,
        "error_ratio": local_error / central_error if central_error > 0 else float("inf"),
        "local_intervals_that_cover": int(np.sum((estimate.lower <= truth) & (truth <= estimate.upper))),
        "seconds": seconds,
        "attribution": datasets.ADULT_ATTRIBUTION,
    }


def _root_mean_square(errors: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


def _reason_not_to_draw() -> str | None:
    """Return the line that says that matplotlib is missing, if it is: the demo is useful without a chart."""
    try:
        plots.require_matplotlib()
    except ImportError as error:
        return f"No chart was drawn: {error}"
    return None


def draw(record: dict[str, Any], title: str | None = None, **target: Any) -> None:
    """Draw what `compare` returned, on the `path` or `ax` that `dpnoise.plots.histogram` takes."""

    def column(name: str) -> list[Any]:
        return [row[name] for row in record["occupations"]]

    series = {
        "local estimate": (column("local_estimate"), column("local_lower"), column("local_upper")),
        "central release": (column("central_release"), column("central_lower"), column("central_upper")),
    }
    plots.histogram(column("occupation"), series, column("true_count"), title, **target)


def _print_comparison(record: dict[str, Any]) -> None:
    rows = record["occupations"]
    print_table(
        f"Occupations of {record['people']:,} people, epsilon = {record['epsilon']:g}",
        ("occupation", "true", "local estimate", f"{100 * _LEVEL:g} % interval", "error", "central release", "error"),
        [
            (
                row["occupation"],
                f"{row['true_count']:,}",
                f"{row['local_estimate']:,.0f}",
                f"{row['local_lower']:,.0f} to {row['local_upper']:,.0f}",
                f"{row['local_estimate'] - row['true_count']:+,.0f}",
                f"{row['central_release']:,.1f}",
                f"{row['central_release'] - row['true_count']:+,.1f}",
            )
            for row in rows
        ],
    )
    say(
        f"At the same epsilon, the root-mean-square error of a count is {record['local_root_mean_square_error']:,.1f} "
        f"in the local model and {record['central_root_mean_square_error']:,.2f} in the central one: "
        f"{record['error_ratio']:,.0f} times as large."
    )
    say(
        f"That is the price of trusting nobody: in the local model each of the {record['people']:,} reports carries "
        f"noise of its own, in the central model a trusted curator adds noise to each count once."
    )
    covered = f"{record['local_intervals_that_cover']} of the {len(rows)} local {100 * _LEVEL:g} % intervals"
    say(f"{covered} hold the true count. {record['seconds']:.3f} s.")
