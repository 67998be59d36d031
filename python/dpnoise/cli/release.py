"""``dpnoise release``: the answer to a question about a column, paid for from a ledger."""

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import date
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

import pyarrow as pa
import pyarrow.compute as pc
import typer

from dpnoise import NoErrorBound, local, queries
from dpnoise._display import progress
from dpnoise._files import atomic_write, locked
from dpnoise._numbers import checked_level, integer
from dpnoise.accounting import BudgetExceeded
from dpnoise.cli import completion, kinds, tables
from dpnoise.cli.console import (
    InputError,
    check_target,
    guarantee,
    is_occupied,
    print_table,
    rounded,
    say,
    suffix_of,
    to_json,
)
from dpnoise.cli.delivery import check_stdout, deliver
from dpnoise.cli.options import (
    AsJson,
    DecimalMark,
    Delimiter,
    MissingWords,
    Quiet,
    QuotedLines,
    RelationOption,
    Source,
    numbers_or_dates,
    read_domain,
    two_numbers,
    whole_number,
)
from dpnoise.cli.payment import Purse, Sale
from dpnoise.mechanisms import Mechanism

_BATCH_ROWS: Final = 1 << 18
_RESERVE: Final = 1 << 20  # bytes, more than the answers of most questions need


QueryName: TypeAlias = Literal[
    "count", "sum", "mean", "variance", "median", "quantile", "quantiles", "histogram", "frequent"
]

_BOUNDED: Final[dict[str, Callable[..., queries.Query]]] = {
    "sum": queries.Sum,
    "mean": queries.Mean,
    "variance": queries.Variance,
    "median": queries.Median,
    "quantile": queries.Quantile,
    "quantiles": queries.Quantiles,
}


def release(
    source: Source,
    query: Annotated[
        QueryName, typer.Option(metavar="QUESTION", help=f"What to ask: {', '.join(get_args(QueryName))}.")
    ],
    column: Annotated[str, typer.Option(metavar="NAME", help="Of which column.", autocompletion=completion.columns)],
    epsilon: Annotated[float, typer.Option(metavar="NUMBER", help="The privacy parameter of the answer.")],
    bounds: Annotated[
        tuple[float, float] | None,
        two_numbers(
            "LOW HIGH",
            "The public bounds to which values are clamped, for all but count and histogram; for median and quantile "
            "also dates, such as 1990-01-31, or times.",
            or_dates=True,
        ),
    ] = None,
    q: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="quantile: which one, between 0 and 1; quantiles: which ones, separated by commas.",
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE",
            help="count: count the rows that have this value; those that are neither missing nor false, if not given.",
        ),
    ] = None,
    edges: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="histogram: the edges of bins, increasing numbers separated by commas; the last may be inf.",
        ),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(metavar="VALUES", help="histogram: the public list of values, separated by commas as in CSV."),
    ] = None,
    domain_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The same, one value per line; an empty line is the empty text.")
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="histogram without edges and domain: the probability that a value of one person shows; frequent: the "
            "privacy parameter delta.",
        ),
    ] = None,
    threshold: Annotated[
        int | None,
        typer.Option(
            parser=whole_number, metavar="NUMBER", help="frequent: the smallest number of reports that is released."
        ),
    ] = None,
    sample_rate: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="frequent: the probability with which a person takes part.")
    ] = None,
    sampled: Annotated[
        bool,
        typer.Option("--sampled", help="frequent: each row is the report of a person whose device chose to take part."),
    ] = False,
    relation: RelationOption = "add/remove",
    level: Annotated[
        float,
        typer.Option(metavar="NUMBER", help="The probability with which noise stays within the error that is shown."),
    ] = 0.95,
    rows: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="NUMBER",
            help="mean, variance: the public number of rows for which the error is shown.",
        ),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The ledger that pays; an existing one, or with --budget.")
    ] = None,
    budget: Annotated[
        tuple[float, float] | None,
        two_numbers("EPSILON DELTA", "The budget of a new ledger. An existing one must have the same."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the ledger calls this; the question, if not given.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="Also write the answer, to a new .csv, .json or .parquet."),
    ] = None,
    delimiter: Delimiter = None,
    decimal: DecimalMark = ".",
    missing_words: MissingWords = None,
    quoted_lines: QuotedLines = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Answer a question about a column with differential privacy.

    Example: `dpnoise release people.csv --query mean --column age --bounds 0 100 --epsilon 0.5 --ledger people.db
    --budget 2 0`

    The question frequent finds values that nobody has listed: each row takes part at random, and the values of at least
    --threshold of those rows are released, with an estimate of how many people have each. Give two of --delta,
    --threshold and --sample-rate. The error is that of the sample, by the normal approximation.

    One row is one person. Answers are in the unit of the column, variances in its square, counts in rows. A count is of
    the rows that are neither missing nor false, whatever else they hold, 0 too: for flags of 0 and 1 ask for the sum
    with `--bounds 0 1`, or count one `--value`. Beside an answer stands the error that its noise does not exceed with
    the probability --level, where that is known. A table shows both with the decimals that two digits of the error
    need, and without any where it is 10 or more; --json and files have all digits. What clamping to --bounds does to
    the answer is private, and not in the error.

    Private are IN and, by add/remove and of reports, the number of its rows; of these two only the progress on a
    terminal shows the latter. All options are public: choose bounds, edges and domain without looking at the data.

    The cost is taken from the ledger, if one is given, before noise is drawn; if the remaining budget does not suffice,
    nothing is spent or released. In CSV a row is a line, and an empty field is a missing value, unless it is quoted.
    Labels of --domain and --value are read as values of the column; what cannot be one is refused.

    The exit code 6 means that the ledger has paid and that the answer has not arrived everywhere: a second run would
    pay again. With --output the file is created, with reserved space for the answer, before anything is spent.
    """
    suffix = None if output is None else _check_output(output, [source, *filter(None, (domain_file, ledger))])
    groups = _groups(edges, domain, domain_file, delta) if query == "histogram" else {}
    given = {"--bounds": bounds, "--q": q, "--value": value, "--edges": edges, "--delta": delta, "--rows": rows,
             "--domain": domain, "--domain-file": domain_file, "--threshold": threshold,
             "--sample-rate": sample_rate, "--sampled": sampled or None}  # fmt: skip
    _refuse_others(query, given)
    level = checked_level(level)
    if rows is not None:
        integer(rows, "--rows", range(1, 2**53))
    if query == "frequent":
        groups = {"delta": delta, "threshold": threshold, "sample_rate": sample_rate}
    question = _question(query, groups | {"epsilon": epsilon, "relation": relation}, bounds, q)
    if budget is not None and ledger is None:
        raise InputError("--budget is for a new --ledger")
    if ledger is not None and budget is None and not ledger.exists():
        raise InputError(f"there is no ledger at {str(ledger)!r}: --budget makes one")

    kind = kinds.PRESENT if query == "count" and value is None else kinds.LABELS
    if public := bounds or groups.get("edges"):
        kind = kinds.times(public[0]) if isinstance(public[0], date) else kinds.NUMBERS
    labels = groups.get("domain") if value is None else [value]
    read = _read(source, column, kind, labels, tables.Layout(quoted_lines, delimiter, decimal, missing_words or ()))
    data: Any = read if value is None else pc.equal(read, value)
    if sampled and isinstance(question, local.SampleAndThreshold):
        data = question.accumulator()
        data.add(read)
    amounts: dict[str, Any] = {} if budget is None else dict(zip(("epsilon", "delta"), budget, strict=True))
    purse = None if ledger is None else Purse(ledger, relation=relation, **amounts)
    with Sale(purse) as sale, ExitStack() as opened:
        check_stdout()
        file = None
        if output is not None:
            opened.enter_context(locked(output))
            _check_free(output)  # another process may have taken the name since the first check
            file = opened.enter_context(atomic_write(output, reserve=_RESERVE))
        try:
            answer = sale.release(question, data, label or f"{query} of {column}")
        except BudgetExceeded as error:
            raise InputError(f"{error}; nothing was spent or released") from None
        about, columns = _record(question, answer, level, source, column, query, rows, len(read))
        if query == "count":
            condition = "that are neither missing nor false" if value is None else f"with the value {value!r}"
            about["counted"] = f"rows {condition}"

        def write() -> None:
            if file is not None and suffix is not None:
                with opened:
                    tables.write_table(file, suffix, columns, about, "answers")
                sale.arrived.append(f"is in {str(output)!r}")

        def show() -> None:
            _show(question, about, columns, as_json)
            sys.stdout.flush()
            sale.arrived.append("was printed")

        deliver(write, show)


def _check_output(output: Path, sources: list[Path]) -> str:
    """Return the suffix of a file that can be written and would not replace an answer."""
    suffix = suffix_of(output, (".csv", ".json", ".parquet"), "the output")
    check_target(output, sources)
    _check_free(output)
    return suffix


def _check_free(output: Path) -> None:
    if is_occupied(output):
        raise InputError(f"{str(output)!r} is there already, and an answer replaces no file: give another name")


# The options of each question, besides epsilon and the relation.
_TAKES: Final[dict[str, frozenset[str]]] = {
    "count": frozenset({"--value"}),
    "sum": frozenset({"--bounds"}),
    "mean": frozenset({"--bounds", "--rows"}),
    "variance": frozenset({"--bounds", "--rows"}),
    "median": frozenset({"--bounds"}),
    "quantile": frozenset({"--bounds", "--q"}),
    "quantiles": frozenset({"--bounds", "--q"}),
    "histogram": frozenset({"--edges", "--delta", "--domain", "--domain-file"}),
    "frequent": frozenset({"--delta", "--threshold", "--sample-rate", "--sampled"}),
}


def _refuse_others(query: QueryName, given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value is not None and option not in _TAKES[query]:
            raise InputError(f"--query {query} takes no {option}")
        if value is None and option in _TAKES[query] & {"--bounds", "--q"}:
            raise InputError(f"--query {query} takes {option}")


def _groups(edges: str | None, domain: str | None, domain_file: Path | None, delta: float | None) -> dict[str, Any]:
    if sum((edges is not None, domain is not None or domain_file is not None, delta is not None)) != 1:
        raise InputError("--query histogram takes either --edges, or --domain or --domain-file, or --delta")
    if edges is not None:
        if (found := numbers_or_dates(edges.split(","))) is None:
            raise InputError(f"--edges must be numbers separated by commas, got {edges!r}; dates are as 2020-01-31")
        return {"edges": found}
    return {"delta": delta} if delta is not None else {"domain": read_domain(domain, domain_file)}


def _numbers(given: str, option: str) -> list[float]:
    try:
        return [float(number) for number in given.split(",")]
    except ValueError:
        raise InputError(f"{option} must be numbers separated by commas, got {given!r}") from None


def _question(
    query: QueryName, parameters: dict[str, Any], bounds: tuple[float, float] | None, q: str | None
) -> Mechanism:
    if query == "count":
        return queries.Count(**parameters)
    if query == "frequent":
        return local.SampleAndThreshold(**parameters)
    if query == "histogram":
        return (queries.StabilityHistogram if "delta" in parameters else queries.Histogram)(**parameters)
    if query not in ("median", "quantile", "quantiles") and bounds is not None and isinstance(bounds[0], date):
        raise InputError(f"--query {query} takes --bounds of numbers, got {bounds[0]} and {bounds[1]}")
    if q is not None:
        parameters["q"] = _numbers(q, "--q")
    if query == "quantile":
        if len(parameters["q"]) > 1:
            raise InputError(f"--q must be one number for --query quantile, got {q!r}: --query quantiles takes several")
        (parameters["q"],) = parameters["q"]
    return _BOUNDED[query](bounds=bounds, **parameters)


def _read(
    source: Path, column: str, kind: kinds.Kind, labels: Sequence[str] | None, layout: tables.Layout
) -> pa.ChunkedArray:
    data = tables.open_columns(
        source,
        [tables.Column(column, kind, labels)],
        strict=True,
        empty_is_missing=True,
        layout=layout,
        batch_rows=_BATCH_ROWS,
    )
    chunks = []
    with progress("reading", data.total, data.unit) as advance:
        for [values], amount in data.batches:
            chunks.append(values)
            advance(amount)
    return pa.chunked_array(chunks, type=chunks[0].type if chunks else kind.type)


def _record(
    question: Mechanism,
    answer: Any,
    level: float,
    source: Path,
    column: str,
    query: str,
    rows: int | None,
    size: int,
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    answers = _answers(question, answer)
    cost: dict[str, Any] = {"epsilon": question.epsilon, "delta": question.delta, "relation": question.relation}
    if isinstance(question, local.SampleAndThreshold):
        quantile = NormalDist().inv_cdf(0.5 + level / 2)
        error, errors, unknown = None, (quantile * answer.standard_errors).tolist(), None
        cost |= {name: getattr(question, name) for name in ("threshold", "sample_rate")}
        cost["visible_from"] = question.visible_from(level)
    else:
        public = size if rows is None and question.relation == "substitute" else rows
        error, unknown = _error_of(question, level, public)
        errors = [error] * len(answers)
    about = {"command": "release", "input": str(source), "column": column, "query": query}
    columns: dict[str, list[Any]] = {
        "group": [group for group, _ in answers],
        "answer": [number for _, number in answers],
        "error": errors,
    }
    rank_error = question.rank_error(level) if isinstance(question, queries.Quantile | queries.Quantiles) else None
    bounds = {"error": error, "rank_error": rank_error, "no_error_bound": unknown}
    return {**about, **cost, "level": level, "rows": rows, **bounds}, columns


def _error_of(question: Mechanism, level: float, rows: int | None) -> tuple[float | None, str | None]:
    """Return the error of each number from the noise, or why it is unknown; the number of rows is public."""
    try:
        if isinstance(question, queries.Mean | queries.Variance):
            return question.error(level, rows=rows), None
        return question.error(level), None
    except NoErrorBound as reason:
        return None, str(reason).replace("error(rows=...)", "--rows")


def _show(question: Mechanism, about: dict[str, Any], columns: dict[str, list[Any]], as_json: bool) -> None:
    if as_json:
        print(to_json({**about, "answers": tables.records(columns)}))
        return
    sampled = isinstance(question, local.SampleAndThreshold)
    shown = 2 if sampled or about["error"] is not None else 1
    rows = zip(*columns.values(), strict=True)
    texts = [(group, *(rounded(number, numbers[1]) for number in numbers[:shown])) for group, *numbers in rows]
    print_table(f"{about['query']} of {about['column']}", list(columns)[: 1 + shown], texts)
    if "counted" in about:
        say(f"counted: {about['counted']}")
    promise = f"{guarantee(question.epsilon, question.delta)}, neighbours by {question.relation}"
    likely = f"with a probability of {100 * about['level']:.10g} %"
    of_rows = "" if about["rows"] is None else f" of {about['rows']:,} rows"
    if sampled:
        say(f"{promise}; each answer within its error {likely}")
        say(f"a value of {about['visible_from']:,} people or more is here {likely}")
        return
    if shown == 2:
        say(f"{promise}; noise within the error{of_rows} {likely}")
    else:
        say(promise)
        say(about["no_error_bound"])
    if about["rank_error"] is not None:
        whose = "each is" if isinstance(question, queries.Quantiles) else "it is"
        name = about["query"].removesuffix("s")
        say(f"{whose} at most {about['rank_error']:,.6g} rows from the {name} {likely}")


def _answers(question: Mechanism, answer: Any) -> list[tuple[str, Any]]:
    if isinstance(question, queries.Histogram) and question.edges is not None:
        edges = (str(edge).removesuffix(".0") for edge in question.edges)  # in full: two bins might round to one name
        names = [f"[{low}, {high})" for low, high in pairwise(edges)]
        names[-1] = f"{names[-1][:-1]}]"  # only the last bin has its upper edge
        return list(zip(names, answer.tolist(), strict=True))
    if isinstance(question, local.SampleAndThreshold):
        return list(zip(answer.values, answer.counts.tolist(), strict=True))
    if isinstance(answer, dict):
        return list(answer.items())
    names, found = ["all"], [answer]
    if isinstance(question, queries.Quantiles):
        names, found = list(map(repr, question.q)), getattr(answer, "tolist", lambda: answer)()
    return [(name, one.isoformat() if isinstance(one, date) else one) for name, one in zip(names, found, strict=True)]
