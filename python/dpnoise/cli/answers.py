"""The answers of ``dpnoise release``, and what they would cost: as they are written and printed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import NormalDist
from typing import Any

from dpnoise import NoErrorBound, local, queries
from dpnoise._display import rounded
from dpnoise.accounting import compose_sequential
from dpnoise.cli import tables
from dpnoise.cli.console import guarantee, print_table, quantity, say, to_json
from dpnoise.cli.questions import Question, Scope
from dpnoise.mechanisms import Mechanism
from dpnoise.tables import Release


def about(asked: Sequence[Question], scope: Scope, level: float) -> dict[str, Any]:
    """Return what is asked, and on which terms."""
    columns, names = [one.column and one.column.name for one in asked], [one.name for one in asked]
    several = len(asked) > 1
    cost = compose_sequential([one.mechanism.cost for one in asked]) if several else asked[0].mechanism
    counted = {"counted": asked[0].counted} if names == ["count"] else {}
    return {
        "column": columns if several else columns[0],
        "query": names if several else names[0],
        **{name: value for name, value in vars(scope).items() if name != "keys"},
        "epsilon": cost.epsilon,
        "delta": cost.delta,
        "relation": cost.relation,
        "level": level,
        **counted,
    }


@dataclass(frozen=True)
class Record:
    """Answers as they are written and printed."""

    title: str
    about: dict[str, Any]
    columns: dict[str, list[Any]]
    answers: dict[str, str]
    """The columns of answers, and those of their errors, which only answers with errors have."""
    notes: list[str]
    """What is said of the answers at last."""

    def show(self, as_json: bool) -> None:
        if as_json:
            print(to_json({**self.about, "answers": tables.records(self.columns)}))
            return
        names = list(self.columns)
        heads = names[: names.index(next(iter(self.answers)))]
        cells = [list(map(str, self.columns[name])) for name in heads]
        for name, error in self.answers.items():
            errors = self.columns.get(error, [None] * len(self.columns[name]))
            heads.append(name)
            cells.append(list(map(rounded, self.columns[name], errors)))
            if any(one is not None for one in errors):
                heads.append("error")
                cells.append(["" if one is None else rounded(one, one) for one in errors])
        print_table(self.title, heads, zip(*cells, strict=True))
        if "counted" in self.about:
            say(f"counted: {self.about['counted']}")
        within = "each answer within its" if "visible_from" in self.about else "noise within the"
        has_errors = f"; {within} error {_likely(self.about['level'])}" if "error" in heads else ""
        say(_promise(self.about) + has_errors)
        for note in self.notes:
            say(note)


def _likely(level: float) -> str:
    return f"with a probability of {100 * level:.10g} %"


def _promise(about: Mapping[str, Any]) -> str:
    """Return what the answers cost whom."""
    found = guarantee(about["epsilon"], about["delta"])
    if about["person"] is not None:
        found += f" for each person ({about['person']}), at most {quantity(about['rows'], 'row')} of each"
        found += ", and for each row without a person" if about["missing_person"] == "own" else ""
    return f"{found}, neighbours by {about['relation']}"


def _bounds(question: Question, level: float, rows: int | None) -> dict[str, Any]:
    """Return the bounds on errors that are known beforehand, for a number of rows that is public, if it is given."""
    query = question.mechanism
    query = query.row_level if isinstance(query, queries.PerPerson) else query
    error, rank_error, unknown = None, None, None
    try:
        if isinstance(query, local.SampleAndThreshold):
            unknown = "the error of frequent values depends on their counts"
        elif isinstance(query, queries.Mean | queries.Variance):
            error = query.error(level, rows=rows)
        else:
            error = query.error(level)
    except NoErrorBound as reason:
        unknown = str(reason).replace("error(rows=...)", "--error-rows")
    if isinstance(query, queries.Quantile | queries.Quantiles):
        rank_error = query.rank_error(level)
    return {"error": error, "rank_error": rank_error, "no_error_bound": unknown}


def _ranks(about: Mapping[str, Any], question: Question, rank_error: float | None) -> str:
    """Say how far quantiles may be off, if these are any."""
    if rank_error is None:
        return ""
    several = about["by"] is not None or isinstance(question.query, queries.Quantiles)
    whose = f"{question.title}: each is" if isinstance(about["query"], list) else "each is" if several else "it is"
    name = question.name.removesuffix("s")
    return f"{whose} at most {rank_error:,.6g} rows from the {name} {_likely(about['level'])}"


def record_of_table(title: str, about: Mapping[str, Any], asked: Sequence[Question], release: Release) -> Record:
    """Describe what a table has released."""
    found = list(release.answers.values())
    if len(asked) == 1 and release.by is None:
        groups = list(map(str, found[0].labels)) or ["all"]
        answers = list(zip(groups if found[0].values else [], map(_plain, found[0].values), strict=True))
        return _record_of_one(title, about, asked[0], answers, found[0].errors)
    columns = {name: list(map(_plain, column)) for name, column in release.to_arrow().to_pydict().items()}
    errors = {question.key: "error" if len(asked) == 1 else f"{question.key}_error" for question in asked}
    if not errors.keys() <= columns.keys():  # each number has a row
        errors = {"value": "error"}
    notes = [_ranks(about, question, answer.rank_error) for question, answer in zip(asked, found, strict=True)]
    return Record(title, dict(about), columns, errors, list(filter(None, notes)))


def record_of_column(title: str, about: Mapping[str, Any], question: Question, answer: Any, rows: int) -> Record:
    """Describe what a mechanism has made of a column of so many rows, which is public by "substitute"."""
    mechanism, level = question.mechanism, about["level"]
    if not isinstance(mechanism, local.SampleAndThreshold):
        return _record_of_one(title, about, question, _answers(mechanism, answer), None, rows)
    quantile = NormalDist().inv_cdf(0.5 + level / 2)
    visible = mechanism.visible_from(level)
    sample = {"threshold": mechanism.threshold, "sample_rate": mechanism.sample_rate, "visible_from": visible}
    answers = list(zip(answer.values, answer.counts.tolist(), strict=True))
    errors = (quantile * answer.standard_errors).tolist()
    found = _record_of_one(title, {**about, **sample}, question, answers, errors)
    found.about["error"] = None
    found.notes.append(f"a value of {visible:,} people or more is here {_likely(level)}")
    return found


def _record_of_one(
    title: str,
    about: Mapping[str, Any],
    question: Question,
    answers: Sequence[tuple[str, Any]],
    errors: Sequence[float] | None,
    rows: int | None = None,
) -> Record:
    """Describe the answer to one question, not by group; its numbers may have errors of their own."""
    bounds = _bounds(question, about["level"], rows)
    if errors is not None:
        bounds |= {"error": next(iter(errors), bounds["error"]), "no_error_bound": None}
    columns = {
        "group": [group for group, _ in answers],
        "answer": [number for _, number in answers],
        "error": [bounds["error"]] * len(answers) if errors is None else list(errors),
    }
    notes = [bounds["no_error_bound"], _ranks(about, question, bounds["rank_error"])]
    return Record(title, {**about, **bounds}, columns, {"answer": "error"}, list(filter(None, notes)))


def _plain(one: Any) -> Any:
    return one.isoformat() if isinstance(one, date) else one


def _answers(question: Mechanism, answer: Any) -> list[tuple[str, Any]]:
    if isinstance(question, queries.Histogram) and question.edges is not None:
        return list(zip(question.labels, answer.tolist(), strict=True))
    if isinstance(answer, dict):
        return list(answer.items())
    names, found = ["all"], [answer]
    if isinstance(question, queries.Quantiles):
        names, found = list(map(repr, question.q)), getattr(answer, "tolist", lambda: answer)()
    return list(zip(names, map(_plain, found), strict=True))


def show_costs(
    title: str,
    about: Mapping[str, Any],
    asked: Sequence[Question],
    rows: int | None,
    paid: Mapping[str, str | None] | None,
    as_json: bool,
) -> None:
    """Show what answers would cost, also in a ledger's measure, and how far noise would be off for so many rows."""
    found = [(question, _bounds(question, about["level"], rows)) for question in asked]
    if as_json:
        questions = [{"question": one.title, "epsilon": one.query.epsilon, **bounds} for one, bounds in found]
        paid = paid or {"spend": None, "remaining": None}
        print(to_json({**about, "error_rows": rows, **paid, "dry_run": True, "questions": questions}))
        return
    cells = [
        (one.title, f"{one.query.epsilon:.6g}", "" if (error := bounds["error"]) is None else rounded(error, error))
        for one, bounds in found
    ]
    print_table(f"Dry run: {title}", ["question", "epsilon", "error"], cells)
    noise = ""
    if any(bounds["error"] is not None for _, bounds in found):
        of_rows = "" if rows is None else f" for {quantity(rows, 'row')}"
        noise = f"; noise within the error{of_rows} {_likely(about['level'])}"
    say(f"this would cost {_promise(about)}{noise}")
    for question, bounds in found:
        if line := _ranks(about, question, bounds["rank_error"]) or bounds["no_error_bound"]:
            say(line)
    if paid is not None:
        say(f"the ledger would spend {paid['spend']}, and has {paid['remaining']} left, which suffices")
    say("no row was read, and nothing was spent or drawn")
