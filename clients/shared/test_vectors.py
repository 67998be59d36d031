"""What the clients of all languages answer: the vectors byte for byte, and noise as Python makes it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from clients.shared import cases
from dpnoise import local

Ask = Callable[[str], str]

ACCEPTED = cases.accepted()


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_the_answer_is_that_of_python(ask: Ask, case: cases.Case) -> None:
    assert cases.problem(case, ask(case.line)) is None


def test_all_vectors_are_asked_for() -> None:
    names = [case.name for case in ACCEPTED]
    assert len(set(names)) == len(names)
    for kind in ("reports", "messages", "one", "state", "estimate", "mean", "facts"):
        assert sum(name.startswith(f"{kind}-") for name in names) == len(cases.VECTORS) == 33


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_another_byte_is_found(case: cases.Case) -> None:
    """The positive control: any one digit of an answer is another one, or missing."""
    places = [place for place, digit in enumerate(case.expected) if digit.isdigit() and place > 2]
    if case.expected.startswith("error"):
        assert cases.problem(case, "ok 00") is not None
    for place in places[:: max(1, len(places) // 20)]:
        digit = str((int(case.expected[place]) + 1) % 10)
        assert cases.problem(case, case.expected[:place] + digit + case.expected[place + 1 :]) is not None
        assert cases.problem(case, case.expected[:place] + case.expected[place + 1 :]) is not None


def test_rounded_values_are_found() -> None:
    """The positive control of clients that make a double of an integer, or a float of a double."""
    wide, close = int(float(cases.WIDE[0])), [float(np.float32(number)) for number in cases.CLOSE]
    rounded = [cases.answered(f"wide-integer-{i}", cases.OF_WIDE, [wide]) for i in range(8)]
    rounded += [cases.answered(f"close-number-{i}", cases.OF_CLOSE, close[i : i + 1]) for i in range(8)]
    right = {case.name: case for case in ACCEPTED}
    found = [case.name.rsplit("-", 1)[0] for case in rounded if cases.problem(right[case.name], case.expected)]
    assert set(found) == {"wide-integer", "close-number"}


@pytest.mark.parametrize("vector", cases.VECTORS, ids=cases.name_of)
def test_the_generator_is_the_systems_unless_one_is_given(ask: Ask, vector: dict[str, object]) -> None:
    kind, answer = ask(cases.asked(vector, "messages", random=None)).split(" ")
    assert kind == "ok"
    protocol = local.protocol_from_json(str(vector["specification"]))
    messages = np.frombuffer(bytes.fromhex(answer), np.uint8).reshape(8, -1)
    accumulator = protocol.accumulator()
    accumulator.add_messages([message.tobytes() for message in messages])
    assert (accumulator.n, accumulator.rejected) == (8, 0)


ONE = cases.double(1.0)


@pytest.mark.parametrize(
    "line",
    [
        # Two answers are equal with a probability below 2^-100 each.
        cases.perturb("reports", "integers", local.SubsetSelection(k=15, epsilon=1.0).to_json(), [3] * 64, random=None),
        cases.perturb("messages", "numbers", local.LaplaceMean(epsilon=0.01).to_json(), [0.5] * 64, random=None),
        f"fill laplace {cases.double(100.0)} - 64",
        f"fill gaussian {cases.double(100.0)} - 64",
        f"release laplace {ONE} {ONE} - {' '.join([ONE] * 64)}",
        f"release gaussian {ONE} {cases.double(1e-6)} {ONE} - {' '.join([ONE] * 64)}",
        f"release discrete-laplace {ONE} 1000 - {' '.join(['7'] * 64)}",
        f"release discrete-gaussian {ONE} {cases.double(1e-6)} {cases.double(100.0)} - {' '.join(['7'] * 64)}",
    ],
    ids=lambda line: " ".join(line.split(" ")[:3]),
)
def test_the_systems_generator_never_repeats_itself(ask: Ask, line: str) -> None:
    answers = {ask(line) for _ in range(3)}
    assert len(answers) == 3
    assert len({len(answer.split(" ")) for answer in answers}) == 1
    assert all(answer.startswith("ok ") for answer in answers)


@pytest.mark.parametrize("command", ["time 10", "filltime 10 laplace", "filltime 10 gaussian"])
def test_the_time_is_told(ask: Ask, command: str) -> None:
    last = cases.HADAMARD.encode().hex() if command == "time 10" else ONE
    kind, nanoseconds = ask(f"{command} {last}").split(" ")
    assert kind == "ok"
    assert float(nanoseconds) >= 0
