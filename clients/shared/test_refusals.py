"""What the clients of all languages refuse: with the right status, without a report, and without private data."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from clients.shared import cases
from clients.shared.runners import Runner

Ask = Callable[[str], str]

REFUSED = cases.refused()


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_it_is_refused(ask: Ask, case: cases.Case) -> None:
    assert cases.problem(case, ask(case.line)) is None


def test_a_refusal_does_not_stop_the_runner(ask: Ask) -> None:
    assert ask("facts 00 100").startswith("error state ")
    assert ask("newmemo") == "ok different"


def test_names_are_different() -> None:
    names = [case.name for case in REFUSED]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_a_report_a_status_and_a_shown_value_are_found(case: cases.Case) -> None:
    """The positive control."""
    _, status, *_ = [*case.expected.split(" "), ""]
    wrong = ["ok", "ok 00", "", "error", f"error {status}", f"error {status} ", "error failed it failed"]
    if status:
        wrong += [f"error {other} it failed" for other in cases.STATUSES if other != status]
    wrong += [f"error {status or 'handle'} value {secret.upper()} is not allowed" for secret in case.secrets]
    assert [answer for answer in wrong if cases.problem(case, answer) is None] == []
    assert cases.problem(case, f"error {status or 'handle'} it failed") is None


LIAR = """
import sys
from collections.abc import Callable
for line in sys.stdin:
    if line.startswith("stop"):
        break
    print("ok 445001055ad401be485ff7ed00", flush=True)
"""


def test_a_runner_that_lies_or_ends_is_found() -> None:
    liar = Runner((sys.executable, "-c", LIAR))
    case = next(case for case in REFUSED if case.name == "value-too-large-messages")
    try:
        assert cases.problem(case, liar.answer(case.line)) is not None
        with pytest.raises(RuntimeError, match="ended without an answer"):
            liar.answer("stop")
        assert liar.answer("started again").startswith("ok ")
    finally:
        liar.close()
