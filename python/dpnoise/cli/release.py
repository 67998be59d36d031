"""``dpnoise release``: the answers to questions about the columns of a table, paid for from a ledger."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from dpnoise import local, plots, queries
from dpnoise._files import atomic_write, locked
from dpnoise._numbers import checked_level, integer
from dpnoise.accounting import BudgetExceeded
from dpnoise.cli import answers, completion, tables
from dpnoise.cli.console import (
    InputError,
    check_target,
    is_occupied,
    suffix_of,
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
    two_numbers,
    whole_number,
)
from dpnoise.cli.payment import Purse, Sale
from dpnoise.cli.questions import NAMES, Question, Scope, read_questions, read_scope
from dpnoise.cli.sources import check_stdin
from dpnoise.sensitivity import Relation

_RESERVE: Final = 1 << 20  # bytes, more than the answers of most questions need


def _names(incomplete: str) -> list[str]:
    return [name for name in NAMES if name.startswith(incomplete)]


def release(
    source: Source,
    query: Annotated[
        list[str],
        typer.Option(
            metavar="QUESTION",
            autocompletion=_names,
            help=f"What to ask: {', '.join(NAMES)}. It may say all at once, as count:age, mean:age:0,100, "
            "quantiles:age:0,100:.1,.5,.9, histogram:age:0,18,65,inf or histogram:city:Rome,Oslo; --query count "
            "without a column counts rows, beside other questions or with --by or --person. Give it again for several "
            "answers that are paid together.",
        ),
    ],
    epsilon: Annotated[
        float,
        typer.Option(metavar="NUMBER", help="The privacy parameter of all answers together; each has an equal share."),
    ],
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of which column.", autocompletion=completion.columns)
    ] = None,
    bounds: Annotated[
        tuple[float, float] | None,
        two_numbers(
            "LOW HIGH",
            "The public bounds to which values are clamped, for all but counts; for median and quantiles also dates, "
            "such as 1990-01-31, or times.",
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
            help="keys, and histogram without edges and domain: the probability that a value of one person shows; "
            "frequent: the privacy parameter delta.",
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
    person: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The column that says whose a row is, where people have several: the privacy of each person is "
            "counted. If not given, each row is a person.",
            autocompletion=completion.columns,
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="NUMBER",
            help="With --person: the most rows of a person that an answer uses, drawn at random. The noise grows with "
            "it.",
        ),
    ] = None,
    missing_person: Annotated[
        Literal["drop", "own"],
        typer.Option(
            metavar="WORD",
            help="With --person: drop leaves out rows without a person, own makes each a person of its own.",
        ),
    ] = "drop",
    by: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Answer for each group of rows: those with one value in this column. The public values are in --keys, "
            "or behind a colon, as in region:North,South.",
            autocompletion=completion.columns,
        ),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --by: the public values that are groups, one on each line."),
    ] = None,
    other: Annotated[
        bool,
        typer.Option("--other", help="With --by: all other rows are one more group, other; else they are left out."),
    ] = False,
    rows_per_group: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="NUMBER",
            help="With --person and --by: the most rows of a person in each group.",
        ),
    ] = None,
    groups: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="NUMBER",
            help="With --person and --by: the most groups with rows of one person.",
        ),
    ] = None,
    relation: RelationOption = "add/remove",
    level: Annotated[
        float,
        typer.Option(metavar="NUMBER", help="The probability with which noise stays within the error that is shown."),
    ] = 0.95,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check everything but the rows, and show what the answers would cost and their errors; nothing is "
            "read, spent or drawn.",
        ),
    ] = False,
    error_rows: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="NUMBER",
            help="With --dry-run: a public number of rows for which the error of means and variances is shown.",
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
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw the answers, to a new .png, .svg or .pdf.")
    ] = None,
    delimiter: Delimiter = None,
    decimal: DecimalMark = ".",
    missing_words: MissingWords = None,
    quoted_lines: QuotedLines = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Answer questions about a table with differential privacy.

    Example: `dpnoise release people.csv --query mean --column age --bounds 0 100 --epsilon 0.5 --ledger people.db
    --budget 2 0`

    One row is one person, unless --person names the column of their ids: then at most --rows rows of each person are
    used, and epsilon is that of a person with all rows. Rows that a question leaves out anyway are left out before the
    choice; so are rows without a person. Of ids, equal texts are one person: an empty one is none, nor are words of
    --na.

    Several questions share epsilon equally, and are paid together or not at all. --by answers each of them for each
    group, in the order of the keys, also for groups without rows; all groups together cost what one does. How many rows
    have another value, as after a misspelled key, is private: ask for it with --other, or `--query count --by
    region:North,South --other`. In the text of histogram, numbers and dates are edges, and other words are values:
    values that are numbers need --domain.

    The question keys finds the values of a column that many people have, and how many rows have each. The question
    frequent finds values that nobody has listed: each row takes part at random, and the values of at least --threshold
    of those rows are released, with an estimate of how many people have each. Give two of --delta, --threshold and
    --sample-rate. The error is that of the sample, by the normal approximation.

    Answers are in the unit of the column, variances in its square, counts in rows. A count of a column is of the rows
    that are neither missing nor false there, whatever else they hold, 0 too: for flags of 0 and 1 ask for the sum with
    `--bounds 0 1`, or count one `--value`. Beside an answer stands the error that its noise does not exceed with the
    probability --level, where that is known. A table shows both with the decimals that two digits of the error need,
    and without any where it is 10 or more; --json and files have all digits. What clamping to --bounds does to the
    answer is private, and not in the error; nor is what leaving out rows of a person does.

    Private are IN and, by add/remove and of reports, the number of its rows; of these two only the progress on a
    terminal shows the latter. All options are public: choose bounds, edges, keys and domain without looking at the
    data.

    The cost is taken from the ledger, if one is given, before noise is drawn; if the remaining budget does not suffice,
    nothing is spent or released. In CSV a row is a line, and an empty field is a missing value, unless it is quoted.
    Labels of --domain, --value and --keys are read as values of the column; what cannot be one is refused.

    The exit code 6 means that the ledger has paid and that the answer has not arrived everywhere: a second run would
    pay again. With --output the file is created, with reserved space for the answer, before anything is spent.
    """
    sources = [source, *filter(None, (domain_file, keys, ledger))]
    check_stdin(sources)
    suffix = None if output is None else _check_output(output, (".csv", ".json", ".parquet"), "the output", sources)
    if plot is not None:
        _check_output(plot, plots.SUFFIXES, "the plot", sources)
        plots.require_matplotlib()
    level = checked_level(level)
    if error_rows is not None:
        integer(error_rows, "--error-rows", range(1, 2**53))
        if not dry_run:
            raise InputError("--error-rows is for --dry-run: an answer has an error of its own")
    given = {"--column": column, "--bounds": bounds, "--q": q, "--value": value, "--edges": edges, "--delta": delta,
             "--domain": domain, "--domain-file": domain_file, "--threshold": threshold,
             "--sample-rate": sample_rate, "--sampled": sampled or None}  # fmt: skip
    scope = read_scope(person, rows, missing_person, by, keys, other, rows_per_group, groups)
    asked = read_questions(query, given, epsilon, relation, scope)
    of_table = _is_of_table(asked, scope, relation, plot)
    if budget is not None and ledger is None:
        raise InputError("--budget is for a new --ledger")
    if ledger is not None and not ledger.exists():
        if budget is None:
            raise InputError(f"there is no ledger at {str(ledger)!r}: --budget makes one")
        with suppress(OSError):  # which the ledger will name
            check_target(ledger)

    columns = list(dict.fromkeys([*scope.columns, *(question.column for question in asked if question.column)]))
    layout = tables.Layout(quoted_lines, delimiter, decimal, missing_words or ())
    try:
        opened = tables.open_columns(
            source, columns, strict=True, empty_is_missing=True, layout=layout, batch_rows=tables.BATCH_ROWS
        )
    except InputError as error:
        if keys is None or ":" not in str(by) or f"has no column {by!r}" not in str(error):
            raise
        raise InputError(f"with --keys all of --by is the name of a column: {error}") from None
    title = ", ".join(question.title for question in asked) + (f", by {scope.by}" if scope.by else "")
    if of_table:
        scope.check(asked, level, label or title)
    about = {"command": "release", "input": str(source), **answers.about(asked, scope, level)}
    if dry_run:
        trial = ":memory:" if ledger is not None and not ledger.exists() else ledger
        purse = _purse(trial, relation, person, budget)
        with _budget_named():
            paid = None if purse is None else purse.check([question.mechanism for question in asked])
        answers.show_costs(title, about, asked, error_rows, paid, as_json)
        return
    frame = tables.read(opened, columns)
    data: Any = frame[asked[0].column] if asked[0].column else None
    if sampled:
        data = asked[0].mechanism.accumulator()
        data.add(frame[columns[0]])
    purse = _purse(ledger, relation, person, budget)

    def draw() -> Any:
        if of_table:
            return scope.release(asked, frame, purse, level=level, label=label or title)
        mechanism = asked[0].mechanism
        return mechanism.release(data) if purse is None else purse.release(mechanism, data, label or title)

    with Sale(purse) as sale, ExitStack() as held:
        check_stdout()
        file = None
        if output is not None:
            held.enter_context(locked(output))
            _check_free(output)  # another process may have taken the name since the first check
            file = held.enter_context(atomic_write(output, reserve=_RESERVE))
        with _budget_named():
            answer = sale.release(draw)
        if of_table:
            record = answers.record_of_table(title, about, asked, answer)
        else:
            record = answers.record_of_column(title, about, asked[0], answer, len(frame[columns[0]]))

        def write() -> None:
            if file is not None and suffix is not None:
                with held:
                    tables.write_table(file, suffix, record.columns, record.about, "answers")
                sale.arrived.append(f"is in {str(output)!r}")

        def draw_chart() -> None:
            if plot is not None:
                answer.plot(plot)
                sale.arrived.append(f"is in {str(plot)!r}")

        def show() -> None:
            record.show(as_json)
            sys.stdout.flush()
            sale.arrived.append("was printed")

        chart = f"the chart {str(plot)!r}"
        deliver({f"the file {str(output)!r}": write, chart: draw_chart, "the printed answer": show})


def _check_output(output: Path, suffixes: Sequence[str], what: str, sources: list[Path]) -> str:
    """Return the suffix of a file that can be written and would not replace an answer."""
    suffix = suffix_of(output, suffixes, what)
    check_target(output, sources)
    _check_free(output)
    return suffix


def _check_free(output: Path) -> None:
    if is_occupied(output):
        raise InputError(f"{str(output)!r} is there already, and an answer replaces no file: give another name")


def _is_of_table(asked: Sequence[Question], scope: Scope, relation: Relation, plot: Path | None) -> bool:
    """Return whether a `Table` answers, rather than a mechanism alone, and refuse what neither does."""
    first = asked[0]
    is_frequent = isinstance(first.query, local.SampleAndThreshold)
    if relation == "add/remove" and not is_frequent:
        if scope.by is not None and isinstance(first.query, queries.StabilityHistogram):
            raise InputError(f"--query {first.name} takes no --by: its groups are the values that it finds")
        if first.column is None and len(asked) == 1 and not scope.columns:
            raise InputError(
                "--query count takes --column, and counts the rows with a value there; all rows with --person or --by"
            )
        return True
    what = "--query frequent" if is_frequent else "--relation substitute"
    if len(asked) > 1 or plot is not None or scope.by is not None or scope.person is not None:
        why = "" if is_frequent else ": how many rows a person or a group has is private"
        raise InputError(f"{what} takes one --query, and no --person, --by or --plot{why}")
    if first.column is None:
        raise InputError(f"{what} takes --column")
    return False


@contextmanager
def _budget_named() -> Iterator[None]:
    try:
        yield
    except BudgetExceeded as error:
        raise InputError(f"{error}; nothing was spent or released") from None


def _purse(
    ledger: str | Path | None, relation: Relation, person: str | None, budget: tuple[float, float] | None
) -> Purse | None:
    """Open the ledger that pays, if one is given, and refuse one for others."""
    if ledger is None:
        return None
    amounts: dict[str, Any] = {} if budget is None else dict(zip(("epsilon", "delta"), budget, strict=True))
    purse = Purse(ledger, relation=relation, person=person, **amounts)
    if purse.person != person:
        raise InputError(
            f"{str(ledger)!r} is a ledger for persons ({purse.person}), not for rows: ask with --person "
            f"{purse.person} and --rows"
        )
    return purse
