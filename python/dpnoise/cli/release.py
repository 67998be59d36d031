"""``dpnoise release``: the answer to a question about a column, paid for from a ledger."""

from collections.abc import Callable
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import typer

from dpnoise import queries
from dpnoise._progress import progress
from dpnoise.accounting import BudgetExceeded, Ledger
from dpnoise.cli import tables
from dpnoise.cli.console import InputError, print_table, to_json
from dpnoise.cli.options import AsJson, read_domain

_BATCH_ROWS = 1 << 18


class QueryName(Enum):
    """The questions as the command line names them."""

    count = "count"
    sum = "sum"
    mean = "mean"
    variance = "variance"
    median = "median"
    quantile = "quantile"
    histogram = "histogram"


class RelationName(Enum):
    """The neighbour relations."""

    add_remove = "add/remove"
    substitute = "substitute"


_BOUNDED: dict[QueryName, Callable[..., queries.Query]] = {
    QueryName.sum: queries.Sum,
    QueryName.mean: queries.Mean,
    QueryName.variance: queries.Variance,
    QueryName.median: queries.Median,
    QueryName.quantile: queries.Quantile,
}


def release(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The private data: .parquet, .csv or .csv.gz.")],
    query: Annotated[QueryName, typer.Option(help="What to ask.")],
    column: Annotated[str, typer.Option(help="Of which column.")],
    epsilon: Annotated[float, typer.Option(help="The privacy parameter of the answer.")],
    bounds: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LOW HIGH", help="The public bounds of values, for all but count and histogram."),
    ] = None,
    q: Annotated[float | None, typer.Option(help="For quantile: which one, between 0 and 1.")] = None,
    value: Annotated[str | None, typer.Option(help="For count: count the rows that have this value.")] = None,
    edges: Annotated[
        str | None, typer.Option(help="For histogram: the edges of bins, increasing numbers separated by commas.")
    ] = None,
    domain: Annotated[
        str | None, typer.Option(help="For histogram: the public list of values, separated by commas as in CSV.")
    ] = None,
    domain_file: Annotated[
        Path | None, typer.Option(help="The same as a file with one value per line; an empty line is the empty text.")
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="For histogram without edges and domain: the probability that a value of one person shows."),
    ] = None,
    relation: Annotated[
        RelationName, typer.Option(help="Neighbours: a row more or less, or another row in its place.")
    ] = RelationName.add_remove,
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger that pays; an existing one, or with --budget.")
    ] = None,
    budget: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="EPSILON DELTA", help="The budget of a new ledger. An existing one must have the same."),
    ] = None,
    label: Annotated[str | None, typer.Option(help="What the ledger calls this; the question, if not given.")] = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question about a column with differential privacy.

    One row is one person. The cost is taken from the ledger, if one is given, before noise is drawn; if the budget does
    not suffice, nothing is spent or released. In CSV an empty field is a missing value, unless it is quoted.
    """
    groups = _groups(edges, domain, domain_file, delta) if query is QueryName.histogram else {}
    given = {"--bounds": bounds, "--q": q, "--value": value, "--edges": edges, "--delta": delta,
             "--domain": domain, "--domain-file": domain_file}  # fmt: skip
    _refuse_others(query, given)
    question = _question(query, groups | {"epsilon": epsilon, "relation": relation.value}, bounds, q)
    if budget is not None and ledger is None:
        raise InputError("--budget is for a new --ledger")
    if ledger is not None and budget is None and not ledger.exists():
        raise InputError(f"there is no ledger at {str(ledger)!r}: --budget makes one")

    rows = _numbers(source, column) if bounds is not None or edges is not None else _labels(source, column)
    data = rows if value is None else pc.equal(rows, value)
    if ledger is None:
        answer = question.release(data)
    else:
        amounts: dict[str, Any] = {} if budget is None else dict(zip(("epsilon", "delta"), budget, strict=True))
        try:
            answer = Ledger(ledger, **amounts).release(question, data, label or f"{query.value} of {column}")
        except BudgetExceeded as error:
            raise InputError(f"{error}; nothing was spent or released") from None
    _show(question, answer, source, column, query, as_json)


# What each question takes, beside epsilon and the relation.
_TAKES: dict[QueryName, frozenset[str]] = {
    QueryName.count: frozenset({"--value"}),
    QueryName.sum: frozenset({"--bounds"}),
    QueryName.mean: frozenset({"--bounds"}),
    QueryName.variance: frozenset({"--bounds"}),
    QueryName.median: frozenset({"--bounds"}),
    QueryName.quantile: frozenset({"--bounds", "--q"}),
    QueryName.histogram: frozenset({"--edges", "--delta", "--domain", "--domain-file"}),
}


def _refuse_others(query: QueryName, given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value is not None and option not in _TAKES[query]:
            raise InputError(f"--query {query.value} takes no {option}")
        if value is None and option in _TAKES[query] & {"--bounds", "--q"}:
            raise InputError(f"--query {query.value} takes {option}")


def _groups(edges: str | None, domain: str | None, domain_file: Path | None, delta: float | None) -> dict[str, Any]:
    """Return what says which groups a histogram has."""
    if sum((edges is not None, domain is not None or domain_file is not None, delta is not None)) != 1:
        raise InputError("--query histogram takes either --edges, or --domain or --domain-file, or --delta")
    if edges is not None:
        try:
            return {"edges": [float(edge) for edge in edges.split(",")]}
        except ValueError:
            raise InputError(f"--edges must be numbers separated by commas, got {edges!r}") from None
    return {"delta": delta} if delta is not None else {"categories": read_domain(domain, domain_file)}


def _question(
    query: QueryName, parameters: dict[str, Any], bounds: tuple[float, float] | None, q: float | None
) -> queries.Query:
    if query is QueryName.count:
        return queries.Count(**parameters)
    if query is QueryName.histogram:
        return (queries.StabilityHistogram if "delta" in parameters else queries.Histogram)(**parameters)
    if query is QueryName.quantile:
        parameters["q"] = q
    return _BOUNDED[query](bounds=bounds, **parameters)


def _labels(source: Path, column: str) -> pa.ChunkedArray:
    data = tables.open_column(source, column, empty_is_missing=True, batch_rows=_BATCH_ROWS)
    return _collected(data, lambda batch: batch.cast(pa.large_string()), pa.large_string())


def _numbers(source: Path, column: str) -> pa.ChunkedArray:
    data = tables.open_column(source, column, empty_is_missing=True, batch_rows=_BATCH_ROWS, numeric=True)

    def to_numbers(batch: pa.Array) -> pa.Array:
        try:
            return (pc.utf8_trim_whitespace(batch) if pa.types.is_large_string(batch.type) else batch).cast(
                pa.float64(), safe=False
            )
        except pa.ArrowException:
            raise InputError(f"column {column!r} has a text that is no number; which one is private") from None

    return _collected(data, to_numbers, pa.float64())


def _collected(data: tables.Column, convert: Callable[[pa.Array], pa.Array], kind: pa.DataType) -> pa.ChunkedArray:
    chunks = []
    with progress("reading", data.rows) as advance:
        for batch in data.batches:
            values = batch.dictionary_decode() if pa.types.is_dictionary(batch.type) else batch
            chunks.append(convert(values))
            advance(len(batch))
    return pa.chunked_array(chunks, type=kind)


def _show(question: queries.Query, answer: Any, source: Path, column: str, query: QueryName, as_json: bool) -> None:
    rows = _rows(question, answer)
    # What the noise may have done to each number, where that is known beforehand.
    error = question.error(0.95) if hasattr(question, "error") else None
    if as_json:
        answers = [dict(zip(("group", "answer"), row, strict=True)) for row in rows]
        about = {"command": "release", "input": str(source), "column": column, "query": query.value}
        cost = {"epsilon": question.epsilon, "delta": question.delta, "relation": question.relation}
        print(to_json({**about, **cost, "error_95": error, "answers": answers}))
        return
    print_table(
        f"{query.value} of {column}", ("group", "answer"), [(group, f"{number:,.10g}") for group, number in rows]
    )
    privacy = f"epsilon {question.epsilon:g}" + (f", delta {question.delta:g}" if question.delta else "")
    noise = "" if error is None else f"; noise within {error:,.6g} with a probability of 95 %"
    print(f"{privacy}, neighbours by {question.relation}{noise}")


def _rows(question: queries.Query, answer: Any) -> list[tuple[str, float]]:
    if isinstance(question, queries.Histogram):
        edges = question.edges
        names = question.categories or [f"{low} to {high}" for low, high in pairwise(map(_plain, edges or ()))]
        return list(zip(names, answer.tolist(), strict=True))
    return list(answer.items()) if isinstance(answer, dict) else [("all", answer)]


def _plain(edge: float) -> str:
    """Write a number in full, as rounding would give two bins one name."""
    return repr(edge).removesuffix(".0")
