"""``dpnoise audit``: the claims of the installed build, tested by experiments."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dpnoise import plots
from dpnoise._display import floored
from dpnoise.audit import SelfAudit, self_audit
from dpnoise.cli.console import check_target, complain, message_of, print_table, say, suffix_of, to_json
from dpnoise.cli.delivery import OutputError, deliver
from dpnoise.cli.options import AsJson, Quiet, whole_number

_REFUTED = 4


def audit(
    epsilon: Annotated[
        float, typer.Option(metavar="NUMBER", help="The privacy parameter that the mechanisms are made for.")
    ] = 1.0,
    n: Annotated[
        int, typer.Option("--n", parser=whole_number, metavar="NUMBER", help="How many times each input is released.")
    ] = 100_000,
    level: Annotated[
        float,
        typer.Option(
            metavar="NUMBER", help="The probability that no true claim is refuted, for all mechanisms together."
        ),
    ] = 0.999999,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw a bar chart: .png, .svg or .pdf.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Audit the mechanisms of this installation: bound their privacy loss from below.

    Example: `dpnoise audit --n 1e5 --plot audit.png`

    Each one releases two neighbouring inputs many times. The frequencies of an event bound epsilon from below. A bound
    above the claimed epsilon refutes the claim: the exit code is 4 then. The inputs are made up; no data is read.
    """
    if plot is not None:
        suffix_of(plot, plots.SUFFIXES, "the plot")
        plots.require_matplotlib()
        check_target(plot)
    report = self_audit(epsilon=epsilon, n=n, level=level)

    def show() -> None:
        if as_json:
            about = {name: getattr(report, name) for name in ("epsilon", "n", "level", "refuted")}
            print(to_json({"command": "audit", **about, "mechanisms": _rows(report), "plot": plot and str(plot)}))
        else:
            _print_summary(report)

    try:
        deliver({"the printed table": show, "the chart": lambda: None if plot is None else report.plot(plot)})
    except OutputError as error:
        if not report.refuted:
            raise
        complain(message_of(error))
    if report.refuted:
        raise typer.Exit(_REFUTED)


def _rows(report: SelfAudit) -> list[dict[str, Any]]:
    return [
        {
            "mechanism": name,
            "claimed_epsilon": check.claimed_epsilon,
            "delta": check.bound.delta,
            "epsilon_lower_bound": check.bound.epsilon,
            "refuted": check.refuted,
            "event": check.bound.event,
            "seconds": seconds,
        }
        for name, check, seconds in zip(report.names, report.checks, report.seconds, strict=True)
    ]


def _print_summary(report: SelfAudit) -> None:
    print_table(
        f"Epsilon, claimed and shown by {report.n:,} releases of each of two neighbouring inputs",
        ("mechanism", "claimed", "delta", "shown at least", "seconds", "verdict"),
        [
            (
                row["mechanism"],
                f"{row['claimed_epsilon']:.4f}",
                f"{row['delta']:g}",
                floored(row["epsilon_lower_bound"]),
                f"{row['seconds']:.1f}",
                "REFUTED" if row["refuted"] else "not refuted",
            )
            for row in _rows(report)
        ],
    )
    say(f"All bounds together hold with a probability of {100 * report.level:.10g} %.")
