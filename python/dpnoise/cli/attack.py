"""``dpnoise attack``: an attack on NumPy's noise and on ours, for a count of one's own data."""

import math
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from numpy.typing import NDArray

from dpnoise import Laplace, audit, datasets
from dpnoise._display import floored, one_line, progress
from dpnoise.cli import completion
from dpnoise.cli.console import InputError, print_table, say, to_json
from dpnoise.cli.options import AsJson, Delimiter, MissingWords, Quiet, QuotedLines

_N: Final = 20_000
_LEVEL: Final = 1 - 1e-9
_EASY: Final = 10  # epsilon times a count at which many releases reveal it
_REFUTABLE: Final = 1.0  # an epsilon far below the largest, near 6, that so many draws can refute


def attack(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="IN",
            help="Your data: .parquet, .csv, .tsv, .csv.gz, .tsv.gz; - is CSV from stdin. The ages of the Adult census "
            "if not given.",
        ),
    ] = None,
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of IN.", autocompletion=completion.columns)
    ] = None,
    epsilon: Annotated[
        float, typer.Option(metavar="NUMBER", help="The privacy parameter that the noise is made for.")
    ] = 0.1,
    delimiter: Delimiter = None,
    missing_words: MissingWords = None,
    quoted_lines: QuotedLines = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Attack the noise of NumPy, and that of dpnoise, on a count of your own data.

    Example: `dpnoise attack people.csv --column age`

    Somebody counts the rows with the rarest value of the column, and releases the count with Laplace noise. The
    attacker wants to know whether one person with this value is among the rows. The low-order bits of NumPy's sum of
    count and noise often tell, since only one of the two counts can lead to them (Mironov 2012). Of dpnoise the same
    attack learns no more than epsilon allows.

    Each noise is drawn 20,000 times for each of the two counts. An attack needs a count that is not much larger than
    the noise: epsilon times the count of at most about 30. So many draws refute no epsilon above about 6.

    What is printed is true of your data and not private: it is for you alone. Nothing is written or sent.
    """
    if (source is None) != (column is None):
        raise InputError("IN and --column go together: a file, and which of its columns to attack")
    ours = Laplace(epsilon=epsilon)
    layout = (quoted_lines, delimiter, ".", missing_words or ())
    counts, rows = _adult() if source is None or column is None else _values(source, column, layout)
    value, count = min(counts.items(), key=lambda item: (item[1], item[0]))
    rng = np.random.default_rng()

    def numpy_noise(counts: NDArray[np.float64]) -> NDArray[np.float64]:
        return counts + rng.laplace(0.0, ours.scale, counts.size)

    about: dict[str, Any] = {"epsilon": ours.epsilon, "scale": ours.scale, "n": _N, "level": _LEVEL, "vectorized": True}
    checks = {
        name: audit.attacks.low_order_bits(mechanism, count, count - 1, **about)
        for name, mechanism in (("NumPy", numpy_noise), ("dpnoise", ours))
    }
    record = {
        "command": "attack",
        "input": None if source is None else str(source),
        "column": column or "age",
        "rows": rows,
        "value": value,
        "count": count,
        "epsilon": ours.epsilon,
        "level": _LEVEL,
        "best_honest_guess": _honest(ours.epsilon),
        "noise": [{"name": name, **_found(check)} for name, check in checks.items()],
    }
    if as_json:
        print(to_json(record))
    else:
        _print(record)


def _adult() -> tuple[Counter[str], int]:
    ages = datasets.adult_ages()
    return Counter(map(str, ages.tolist())), len(ages)


def _values(source: Path, column: str, layout: tuple[Any, ...]) -> tuple[Counter[str], int]:
    """Count the values of a column, as a histogram reads them, and all rows."""
    from dpnoise.cli import kinds, tables

    asked = [tables.Column(column, kinds.LABELS)]
    opened = tables.open_columns(
        source, asked, strict=True, empty_is_missing=True, layout=tables.Layout(*layout), batch_rows=tables.BATCH_ROWS
    )
    counts: Counter[Any] = Counter()
    rows = 0
    with progress("reading", opened.total, opened.unit) as advance:
        for (values,), amount in opened.batches:
            counts.update({one["values"]: one["counts"] for one in values.value_counts().to_pylist()})
            rows += len(values)
            advance(amount)
    del counts[None]  # a missing value
    if not counts:
        raise InputError(f"column {column!r} has no values to count")
    return counts, rows


def _honest(epsilon: float) -> float:
    """Return the probability with which the best guess is right, if the noise keeps its promise."""
    return 1 / (1 + math.exp(-epsilon))


def _found(check: audit.Check) -> dict[str, Any]:
    bound = check.bound
    return {
        "right_guesses": 0.5 + abs(bound.hits - bound.hits_prime) / (2 * bound.trials),
        "trials": bound.trials,
        "event": bound.event,
        "event_with": bound.hits,
        "event_without": bound.hits_prime,
        "epsilon_lower_bound": bound.epsilon,
        "broken": check.refuted,
    }


def _print(record: dict[str, Any]) -> None:
    count, noises = record["count"], record["noise"]
    of = one_line(record["column"])
    print_table(
        f"How many of {record['rows']:,} rows have {of} = {one_line(record['value'])}?  "
        f"{count:,} with one person, {count - 1:,} without",
        ("noise by", "right guesses", "epsilon claimed", "shown at least", "verdict"),
        [
            (
                one["name"],
                f"{100 * one['right_guesses']:.1f} %",
                f"{record['epsilon']:g}",
                floored(one["epsilon_lower_bound"]),
                "BROKEN" if one["broken"] else "not broken",
            )
            for one in noises
        ],
    )
    say(
        f"An attacker guesses from one noisy answer whether the person is there. At epsilon {record['epsilon']:g} no "
        f"more than {100 * record['best_honest_guess']:.1f} % of guesses may be right; 50 % are by chance."
    )
    for one in noises:
        if one["broken"]:
            often, seldom = sorted((one["event_with"], one["event_without"]), reverse=True)
            say(
                f"{one['name']}: the low-order bits alone gave the person away in {often:,} of {one['trials']:,} "
                f"answers, and misled in {seldom:,} (Mironov 2012)."
            )
    if not noises[0]["broken"]:
        better = min(_REFUTABLE, _EASY / count)
        say(
            f"NumPy: the count is too large beside the noise for low-order bits to tell, or epsilon too large for "
            f"{_N:,} draws to refute; take a column with rarer values, or --epsilon {better:.1g}."
        )
    say(
        "All of this is true of your data and not private: it is for you alone."
        if record["input"]
        else datasets.ADULT_ATTRIBUTION
    )
