"""What ``dpnoise demo FILE`` does: a question about a table at three epsilons, as one page of noisy answers."""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final

from dpnoise._files import atomic_write
from dpnoise.accounting import compose_sequential
from dpnoise.cli import answers, tables
from dpnoise.cli.console import InputError, check_target, is_occupied, print_table, say, suffix_of, to_json
from dpnoise.cli.delivery import deliver
from dpnoise.cli.page import page, shown
from dpnoise.cli.questions import read_questions, read_scope

_SHARES: Final = (Decimal("0.05"), Decimal("0.2"), Decimal("0.75"))
_LEVEL: Final = 0.95
_WORDS: Final = {"count": 1, "histogram": 2, "mean": 2, "sum": 2}
"""The questions that may be asked, and what the text of each must say behind its name."""


def answer(
    source: Path, query: str | None, epsilon: float, output: Path, layout: tables.Layout, *, as_json: bool
) -> None:
    """Answer a question at three epsilons, which add up to `epsilon`, and write the page."""
    name, *words = (query or "").split(":", 2)
    if query is None or len(words) < _WORDS.get(name, 3):
        raise InputError(
            f"say with --query what to ask, all of it: {', '.join(_WORDS)}, as in histogram:age:0,18,65,inf, "
            "histogram:city:Rome,Oslo, mean:age:0,100 or count:city:Rome. Bins, values and bounds are public: choose "
            "them without looking at the data"
        )
    suffix_of(output, (".html",), "the page")
    check_target(output, [source])
    if is_occupied(output):
        raise InputError(f"{str(output)!r} is there already, and answers replace no file: give another name with -o")
    scope = read_scope(None, None, "drop", None, None, False, None, None)
    [whole] = read_questions([query], {}, epsilon, "add/remove", scope)
    # As decimal numbers, as the sum is, the shares of 0.3 are 0.015, 0.06 and 0.225.
    shares = [float(share * Decimal(repr(epsilon))) for share in _SHARES]
    asked = [read_questions([query], {}, share, "add/remove", scope) for share in shares]
    columns = [whole.column] if whole.column else []
    opened = tables.open_columns(
        source, columns, strict=True, empty_is_missing=True, layout=layout, batch_rows=tables.BATCH_ROWS
    )
    for one in asked:
        scope.check(one, _LEVEL, whole.title)
    frame = tables.read(opened, columns)
    records = []
    for one in asked:
        released = scope.release(one, frame, None, _LEVEL, whole.title)
        records.append(answers.record_of_table(whole.title, answers.about(one, scope, _LEVEL), one, released))
    cost = compose_sequential([one[0].mechanism.cost for one in asked])

    def write() -> None:
        with atomic_write(output) as file:
            file.write(page(records, epsilon).encode())

    def show() -> None:
        if as_json:
            about = {"command": "demo", "input": str(source), "query": query, "level": _LEVEL, "page": str(output)}
            spent = {"epsilon": cost.epsilon, "delta": cost.delta, "relation": cost.relation}
            releases = [{"epsilon": one.about["epsilon"], "answers": tables.records(one.columns)} for one in records]
            print(to_json({**about, **spent, "releases": releases}))
            return
        _print(records)
        say(f"Spent in all: epsilon {epsilon:g}, where each row is one person. Another run spends as much again.")
        say(f"Page: {output}. It may be shown to others if epsilon {epsilon:g} is small enough.")

    deliver({"the printed table": show, "the page": write})


def _print(records: Sequence[answers.Record]) -> None:
    cells = [list(map(shown, one.columns["answer"], one.columns["error"])) for one in records]
    heads = ["", *(f"epsilon {one.about['epsilon']:g}" for one in records)]
    groups = records[0].columns["group"]
    print_table(f"{records[0].title}, with {100 * _LEVEL:g} % intervals", heads, zip(groups, *cells, strict=True))
    for one in records:
        for note in one.notes:
            say(f"epsilon {one.about['epsilon']:g}: {note}")
