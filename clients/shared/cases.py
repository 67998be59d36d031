"""What is asked of every client, and what it must answer, without a process.

`accepted` and `refused` give all cases; `problem` judges an answer. Whoever runs clients elsewhere, such as in a
browser, imports these three.

The clients of a language are tested by a runner, a small program over their public functions. It reads a command from
each line of its standard input, and answers with one line: ``ok RESULT`` or ``error STATUS MESSAGE``, with a status of
`STATUSES`. Fields are separated by one space. Bytes are hexadecimal, and ``-`` stands for none; a double is its 8
bytes, the lowest one first; an integer is decimal.

``perturb FORM KIND SPECIFICATION RANDOM MEMO QUESTION VALUE...``
    All rows, joined. FORM is ``reports`` or ``messages``; KIND is ``integers``, ``numbers`` or ``texts``, in UTF-8.
``about SPECIFICATION QUESTION PERIOD``
    The specification for another question or period, of which ``-`` stays as it is; its bare digest.
``collect SPECIFICATION MESSAGE...``
    The state of a collector.
``merge SPECIFICATION OTHER MESSAGE...``
    The state of a collector to which an empty accumulator of OTHER is added, or, for ``-``, itself.
``estimate SPECIFICATION MESSAGE...``
    k counts and k standard errors, joined.
``mean SPECIFICATION MESSAGE...``
    The mean and its standard error, joined. For one of several attributes, ``SPECIFICATION@NAME`` is here and for
    ``estimate`` the specification of all.
``density SPECIFICATION SMOOTHING MESSAGE...``
    k shares, joined; SMOOTHING is 1, or 0 for none.
``ranges SPECIFICATION FIRST LAST Q MESSAGE...``
    The count of the range and its standard error, joined; the quantile at Q, which is a double.
``candidates SPECIFICATION N TEXT... MESSAGE...``
    The counts of N texts and their standard errors, joined.
``prefixes SPECIFICATION LEVEL MESSAGE...``
    1 if all significant prefixes were extended, and else 0; the counts of the frequent values and their standard
    errors, joined; these values.
``memo BYTES [SPECIFICATION QUESTION]...``, ``newmemo``
    The bytes of the memo that was read from these, after these protocols were made with it; ``different`` for two new
    ones, if they can be read back.
``facts SPECIFICATION LIMIT``
    KIND; 1 if people keep a memo, and else 0; k; the bytes of a report, and those of the counters, of which there may
    be LIMIT; epsilon and delta; the header of messages.
``fill laplace|gaussian SCALE RANDOM N``
    N samples.
``release laplace EPSILON SENSITIVITY RANDOM VALUE...``, ``release gaussian EPSILON DELTA SENSITIVITY RANDOM VALUE...``
    The released values; the same with integers for ``discrete-laplace``, whose sensitivity is an integer, too, and
    ``discrete-gaussian``.
``freed protocol|memo|accumulator|sampler|mechanism``
    The error of using what was freed.
``time N SPECIFICATION``, ``filltime N laplace|gaussian SCALE``
    Nanoseconds for each of N messages that are made one by one; for each of N samples in the best of 5 calls.

RANDOM are bytes that the generator gives once, and then fails; ``-`` asks for the system's generator.
"""

from __future__ import annotations

import json
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpnoise import DoubtfulInputWarning, local, mechanisms, samplers
from dpnoise.hazmat import ScriptedRng, SeededRng
from tests.vectors import local_spec
from tests.vectors.make_local import random_bytes

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "tests/vectors/local.json").read_text(encoding="utf-8")
)
STATUSES = ("parameter", "data", "state", "randomness", "handle", "memory", "internal", "allocation")


class Case(NamedTuple):
    """A line for a runner, and the answer."""

    name: str
    line: str
    expected: str
    """All of the answer where it begins with ``ok``; otherwise ``error STATUS``, or ``error`` for any status."""
    secrets: tuple[str, ...] = ()
    """What no message may contain."""


ESTIMATES = ("density", "ranges", "candidates", "prefixes")


def part_of(line: str) -> str:
    """Name the part of the C library that answers a line: ``client``, ``collector`` or ``noise``."""
    command, what, *_ = [*line.split(" "), ""]
    if command in ("collect", "merge", "estimate", "mean", *ESTIMATES) or (command, what) == ("freed", "accumulator"):
        return "collector"
    return "noise" if command in ("fill", "filltime", "release") or what in ("sampler", "mechanism") else "client"


def problem(case: Case, answer: str) -> str | None:
    """Say what is wrong with an answer, or None."""
    if case.expected.startswith("ok"):
        return None if answer == case.expected else f"answered {answer[:200]!r}, expected {case.expected[:200]!r}"
    kind, status, message = [*answer.split(" ", 2), "", ""][:3]
    if kind != "error" or status not in STATUSES or not message.strip():
        return f"answered {answer[:200]!r}, expected an error"
    if not f"error {status}".startswith(case.expected):
        return f"answered {answer[:200]!r}, expected {case.expected!r}"
    shown = [secret for secret in case.secrets if secret.lower() in message.lower()]
    return f"showed private data: {answer[:200]!r}" if shown else None


# --- fields of lines -------------------------------------------------------------------------------------------------


def hexed(data: bytes) -> str:
    """Write bytes."""
    return data.hex() or "-"


def double(number: float) -> str:
    """Write a double."""
    return struct.pack("<d", number).hex()


def kind_of(protocol: Any) -> str:
    """Give the kind of values that a protocol takes."""
    if isinstance(protocol, local.MeanProtocol | local.SquareWave):
        return "numbers"
    is_of_texts = isinstance(protocol, local.CountMeanSketch | local.HadamardCountMeanSketch | local.Rappor)
    return "texts" if is_of_texts else "integers"


def words(kind: str, values: list[Any]) -> list[str]:
    """Write values."""
    if kind == "texts":
        return [hexed(text.encode()) for text in values]
    return [double(value) if kind == "numbers" else str(value) for value in values]


def perturb(
    form: str,
    kind: str,
    specification: str | bytes,
    values: list[Any],
    *,
    random: bytes | None,
    memo: bytes | None = None,
    question: str | None = None,
) -> str:
    """Write the line that asks for reports or messages."""
    given = specification.encode() if isinstance(specification, str) else specification
    fields = [given, random or b"", memo or b"", (question or "").encode()]
    return " ".join(["perturb", form, kind, *map(hexed, fields), *words(kind, values)])


# --- what must be answered -------------------------------------------------------------------------------------------


def name_of(vector: dict[str, Any]) -> str:
    """Name a vector: some protocols have two."""
    return f"{json.loads(vector['specification'])['protocol']}-{vector['spec_id'][:4]}"


def asked(vector: dict[str, Any], form: str, cut: int = 0, **changes: Any) -> str:
    """Write the line of a vector, with a generator that has `cut` bytes too few."""
    random = bytes.fromhex(vector["random"])
    given: dict[str, Any] = {
        "random": random[: len(random) - cut],
        "memo": bytes.fromhex(vector["memo"]) if "memo" in vector else None,
        "question": vector.get("question"),
    }
    kind = kind_of(local.protocol_from_json(vector["specification"]))
    given = {"specification": vector["specification"], "values": vector["values"], "kind": kind, **given, **changes}
    return perturb(form, **given)


def remembered(memo: bytes | None, question: str | None) -> dict[str, Any]:
    """Give the arguments that Python's `perturb` has besides the values."""
    return {} if memo is None else {"memo": local.ClientMemo.from_bytes(memo), "question": question}


def answered(name: str, specification: str, values: list[Any], memo: bytes | None = None, question: str = "") -> Case:
    """Compare the messages with those that Python makes of the same random bytes."""
    protocol: Any = local.protocol_from_json(specification)
    rng, stream = scripted(name)
    given = np.array(values, bool) if isinstance(protocol, local.RandomizedResponse) else values
    reports = protocol.perturb(given, **remembered(memo, question), rng=rng)
    messages = protocol.messages(np.asarray(reports).view(np.uint8).reshape(len(values), -1))
    used = stream[: len(stream) - rng.remaining]
    options: dict[str, Any] = {"random": used, "memo": memo, "question": question}
    line = perturb("messages", kind_of(protocol), specification, values, **options)
    return Case(name, line, f"ok {hexed(b''.join(messages))}")


def scripted(label: str, length: int = 1 << 16) -> tuple[ScriptedRng, bytes]:
    """Give a generator, and its bytes."""
    stream = random_bytes(label, length)
    return ScriptedRng(stream), stream


def facts(vector: dict[str, Any]) -> Case:
    """Ask for the facts of a protocol."""
    protocol: Any = local.protocol_from_json(vector["specification"])
    keeps = int("memo" in vector)
    spec = json.loads(vector["specification"])
    columns = spec.get("k") or spec.get("width") or spec.get("num_bloombits")
    header = local_spec.message_header(vector["specification"]).hex()
    sizes = f"{protocol.report_bytes} {protocol.counter_bytes}"
    expected = (
        f"ok {kind_of(protocol)} {keeps} {columns} {sizes} {double(protocol.epsilon)} {double(protocol.delta)} {header}"
    )
    line = f"facts {hexed(vector['specification'].encode())} {protocol.counter_bytes}"
    return Case(f"facts-{name_of(vector)}", line, expected)


def estimate(vector: dict[str, Any]) -> Case:
    """Ask for the estimate from the messages of a vector."""
    protocol: Any = local.protocol_from_json(vector["specification"])
    line = " ".join(["estimate", hexed(vector["specification"].encode()), *vector["messages"]])
    name = f"estimate-{name_of(vector)}"
    if kind_of(protocol) != "integers" or isinstance(protocol, local.HierarchicalRange | local.PrefixExtension):
        return Case(name, line, "error parameter")
    accumulator = protocol.accumulator()
    accumulator.add_messages([bytes.fromhex(message) for message in vector["messages"]])
    estimated = protocol.estimate(accumulator)
    numbers = [*estimated.counts, *estimated.standard_errors]
    return Case(name, line, f"ok {''.join(map(double, numbers))}")


def mean(vector: dict[str, Any]) -> Case:
    """Ask for the mean from the messages of a vector."""
    protocol: Any = local.protocol_from_json(vector["specification"])
    line = " ".join(["mean", hexed(vector["specification"].encode()), *vector["messages"]])
    name = f"mean-{name_of(vector)}"
    if not isinstance(protocol, local.MeanProtocol):
        return Case(name, line, "error parameter")
    accumulator = protocol.accumulator()
    accumulator.add_messages([bytes.fromhex(message) for message in vector["messages"]])
    estimated = protocol.estimate(accumulator)
    return Case(name, line, f"ok {double(estimated.mean)}{double(estimated.standard_error)}")


def asked_of(command: str, protocol: Any, given: list[str], messages: list[str], expected: str, name: str) -> Case:
    """Ask for an estimate with further arguments."""
    specification = hexed(protocol.to_json().encode())
    return Case(f"{command}-{name}", " ".join([command, specification, *given, *messages]), expected)


def joined(*columns: Any) -> str:
    """Write columns of doubles."""
    return hexed(b"".join(np.asarray(column, "<f8").tobytes() for column in columns))


CANDIDATES = ["plum", "fig", "na\N{LATIN SMALL LETTER I WITH DIAERESIS}ve", ""]
LEVELS = [0.95, 0.01]


def others(protocol: Any, messages: list[str], name: str) -> Iterator[Case]:
    """Ask for all estimates that are not of values or means."""
    accumulator = protocol.accumulator()
    accumulator.add_messages([bytes.fromhex(message) for message in messages])
    refused = "error parameter"
    for smoothing in (True, False):
        found = refused
        if isinstance(protocol, local.SquareWave):
            found = f"ok {joined(protocol.estimate(accumulator, smoothing=smoothing).probabilities)}"
        yield asked_of("density", protocol, [str(int(smoothing))], messages, found, f"{name}-{smoothing}")
    ranges = protocol.estimate(accumulator) if isinstance(protocol, local.HierarchicalRange) else None
    for first, last, q in [(0, 0, 0.0), (1, 3, 0.5), (0, 1, 1.0)]:
        found = refused
        if ranges:
            part = ranges.range(first, last)
            found = f"ok {joined([part.count, part.standard_error])} {ranges.quantile(q)}"
        given = [str(first), str(last), double(q)]
        yield asked_of("ranges", protocol, given, messages, found, f"{name}-{first}-{last}")
    found = refused
    if isinstance(protocol, local.CountMeanSketch | local.HadamardCountMeanSketch):
        texts = protocol.estimate(accumulator, CANDIDATES)
        found = f"ok {joined(texts.counts, texts.standard_errors)}"
    yield asked_of("candidates", protocol, [str(len(CANDIDATES)), *words("texts", CANDIDATES)], messages, found, name)
    for level in LEVELS:
        found = refused
        if isinstance(protocol, local.PrefixExtension):
            hitters = protocol.estimate(accumulator, level=level)
            numbers = joined(hitters.counts, hitters.standard_errors)
            found = " ".join(["ok", str(int(hitters.complete)), numbers, *map(str, hitters.values.tolist())])
        yield asked_of("prefixes", protocol, [double(level)], messages, found, f"{name}-{level}")


def of_people() -> Iterator[Case]:
    """Ask for the estimates from the reports of more people than a vector has."""
    numbers = np.arange(400) % 97
    for protocol, values in (
        (local.SquareWave(k=30, epsilon=2.0), numbers / 96),
        (local.HierarchicalRange(k=77, epsilon=2.0, branching=4), numbers % 77),
        (local.CountMeanSketch(epsilon=4.0, rows=4, width=16), ["plum", "fig"] * 200),
        (local.HadamardCountMeanSketch(epsilon=4.0, rows=4, width=16), ["plum", "fig"] * 200),
        (local.PrefixExtension(epsilon=16.0, bits=20, step=8, rows=8, width=64), [987_654, 321] * 200),
    ):
        messages = protocol.messages(protocol.perturb(values, rng=SeededRng(7)))
        yield from others(protocol, [message.hex() for message in messages], f"people-{type(protocol).__name__}")
    # Reports that support all values, more of which are frequent than clients have room for at first.
    every = local.PrefixExtension(epsilon=4.0, bits=10, step=10, rows=16, width=8)
    reports = np.repeat(np.arange(16) * 8 * 2, 4).astype(np.uint8)[:, None]
    yield from others(every, [message.hex() for message in every.messages(reports)], "people-supporting-all")


def of_vector(vector: dict[str, Any]) -> Iterator[Case]:
    """Ask for all that a vector has."""
    name = name_of(vector)
    yield Case(f"reports-{name}", asked(vector, "reports"), f"ok {''.join(vector['reports'])}")
    made = vector["messages"][: len(vector["reports"])]
    yield Case(f"messages-{name}", asked(vector, "messages"), f"ok {''.join(made)}")
    memo = local_spec.memo([bytes.fromhex(vector["memo"])[16:48]]) if "memo" in vector else None
    yield answered(f"one-{name}", vector["specification"], vector["values"][1:2], memo, vector.get("question", ""))
    specification = hexed(vector["specification"].encode())
    yield Case(f"state-{name}", " ".join(["collect", specification, *vector["messages"]]), f"ok {vector['state']}")
    yield estimate(vector)
    yield mean(vector)
    yield from others(local.protocol_from_json(vector["specification"]), vector["messages"], name)
    yield facts(vector)


SCALES = {"laplace": [0.25, 1.0, 10.1, 1e9 / 3], "gaussian": [0.3, 1.0, 25.5, 1e9 / 3]}


def fill(kind: str, scale: float, n: int) -> Case:
    """Ask for samples."""
    name = f"fill-{kind}-{scale}-{n}"
    rng, stream = scripted(name, 64 * n + 65536)
    sample = {"laplace": samplers.discrete_laplace, "gaussian": samplers.discrete_gaussian}[kind]
    numbers = sample(scale, size=n, rng=rng)
    used = stream[: len(stream) - rng.remaining]
    return Case(name, f"fill {kind} {double(scale)} {hexed(used)} {n}", f"ok {' '.join(map(str, numbers))}")


NUMBERS = [0.0, 1.5, -2.25, 1e9, 1 / 3]
INTEGERS = [0, 1, -7, 10**12, 3]


def release(mechanism: Any, parameters: list[str], values: list[Any]) -> Case:
    """Ask for a release of values."""
    kind = {
        mechanisms.Laplace: "laplace",
        mechanisms.Gaussian: "gaussian",
        mechanisms.DiscreteLaplace: "discrete-laplace",
        mechanisms.DiscreteGaussian: "discrete-gaussian",
    }[type(mechanism)]
    name = f"release-{kind}-{mechanism.epsilon}"
    rng, stream = scripted(name)
    released = mechanism.release(np.array(values), rng=rng).tolist()
    used = stream[: len(stream) - rng.remaining]
    are_integers = isinstance(values[0], int)
    write = words("integers" if are_integers else "numbers", values)
    answer = " ".join(words("integers" if are_integers else "numbers", released))
    return Case(name, " ".join(["release", kind, *parameters, hexed(used), *write]), f"ok {answer}")


def noise() -> Iterator[Case]:
    """Ask for samples and releases, and compare with those of Python."""
    for kind, scales in SCALES.items():
        for scale in scales:
            yield fill(kind, scale, 1)
            yield fill(kind, scale, 500)
    for epsilon in (0.01, 1.0):
        laplace = mechanisms.Laplace(epsilon=epsilon, sensitivity=0.5)
        yield release(laplace, [double(epsilon), double(0.5)], NUMBERS)
        gaussian = mechanisms.Gaussian(epsilon=epsilon, delta=1e-6, sensitivity=2.0)
        yield release(gaussian, [double(epsilon), double(1e-6), double(2.0)], NUMBERS)
        yield release(mechanisms.DiscreteLaplace(epsilon=epsilon, sensitivity=3), [double(epsilon), "3"], INTEGERS)
        discrete = mechanisms.DiscreteGaussian(epsilon=epsilon, delta=1e-6, sensitivity=1.0)
        yield release(discrete, [double(epsilon), double(1e-6), double(1.0)], INTEGERS)


# Texts that some languages count, cut or write in another way, and integers that a double cannot hold.
TEXTS = ["", "a", "a\0b", "naïve", "nai\u0308ve", "\N{GRAPES}\N{ZERO WIDTH JOINER}\N{CHERRIES}", "ß" * 200, "\ufeff"]
OF_WIDE = local.PrefixExtension(epsilon=20.0, bits=63, step=16, rows=10, width=1024).to_json()
WIDE = [2**53 + 1, 2**62 + 1, 2**55 - 1, 2**53, 2**63 - 1, 0, 1]
# Numbers just below a bin of 16, which a float of 32 bits is not.
OF_CLOSE = local.SquareWave(k=16, epsilon=20.0).to_json()
CLOSE = [i / 16 - 2.0**-40 for i in range(1, 16)]


ATTRIBUTES = {"smokes": local.RandomizedResponse(epsilon=1.0), 'm\u00f6d "\U0001f600': local.DuchiMean(epsilon=1.0)}


def several() -> Iterator[Case]:
    """Ask for estimates of each of two attributes, from reports on one of them or on both."""
    for make in (local.Sampled, local.Split):
        protocol, name = make(attributes=ATTRIBUTES), make.__name__.lower()
        reports = np.array([[0, 1], [1, 0], [1, 1], [0, 0], [0, 1], [1, 1], [2, 0], [1, 7]], np.uint8)
        messages = [message.hex() for message in [*protocol.messages(reports), b"DP"]]
        accumulator = protocol.accumulator()
        accumulator.add_messages([bytes.fromhex(message) for message in messages])
        specification = protocol.to_json().encode().hex()
        line = " ".join([specification, *messages])
        yield Case(f"several-state-{name}", f"collect {line}", f"ok {accumulator.to_bytes().hex()}")
        header = protocol.messages(reports)[0][:12].hex()
        asked = f"facts {specification} {protocol.counter_bytes}"
        sizes = f"2 2 {protocol.counter_bytes} {double(protocol.epsilon)} {double(protocol.delta)} {header}"
        yield Case(f"several-facts-{name}", asked, f"ok attributes 0 {sizes}")
        estimates = protocol.estimate(accumulator)
        count, mean = estimates.values()
        for (attribute, found), command, numbers in [
            (("smokes", count), "estimate", [*count.counts, *count.standard_errors]),
            ((list(ATTRIBUTES)[1], mean), "mean", [mean.mean, mean.standard_error]),
        ]:
            assert found.n > 0
            asked = f"{command} {specification}@{attribute.encode().hex()} {' '.join(messages)}"
            yield Case(f"several-{command}-{name}", asked, f"ok {''.join(map(double, numbers))}")


COLOURS = local.OptimizedUnaryEncoding(domain=["red", "green", "blue"], epsilon=2.0)
WEEK = COLOURS.about(question="favourite colour", period="2026-W48")
DAYS = local.LOLOHA(k=8, epsilon_permanent=2.0, epsilon_first=1.0).about(question="days on foot")
QUESTIONS = {
    "accents": "größtenteils",
    "persian": "\u0645\u06cc\u200c\u062e",
    "signs": '"\\" \N{GRAPES}',
    "long": "é" * 127,
}


def sent(protocol: Any) -> list[str]:
    """Make the messages of six people."""
    bare: Any = local.protocol_from_json(protocol.to_json())  # whose values are numbers
    return [message.hex() for message in bare.messages(bare.perturb([0, 1, 2] * 2, rng=SeededRng(7)))]


def text_of(protocol: Any) -> str:
    """Write the specification of a protocol."""
    return hexed(protocol.to_json().encode())


AGES = local.PiecewiseMean(epsilon=2.0).about(bounds=(18, 90))


def of_collections() -> Iterator[Case]:
    """Ask collections that say what they are about, and whose messages are of others."""
    for name, question in QUESTIONS.items():
        for of, given in ((COLOURS, COLOURS.to_json()), (WEEK, WEEK.to_document())):
            told = of.about(question=question, period="2026-W49")
            line = f"about {hexed(given.encode())} {hexed(question.encode())} {hexed(b'2026-W49')}"
            yield Case(f"about-{name}-{of.spec_id}", line, f"ok {text_of(told)} {told.bare_digest.hex()}")
    yield Case("about-the-same", f"about {text_of(WEEK)} - -", f"ok {text_of(WEEK)} {WEEK.bare_digest.hex()}")
    bounded = local.DuchiMean(epsilon=1.0).about(bounds=(-0.0, 100.0))
    several = local.Sampled(attributes={"mood": bounded, "colour": COLOURS}).about(question="all")
    for name, protocol in {"labels": WEEK, "bounds": bounded, "attributes": several}.items():
        document = json.dumps(json.loads(protocol.to_document()), indent=2, ensure_ascii=False)
        answer = f"ok {text_of(protocol)} {protocol.bare_digest.hex()}"
        yield Case(f"document-{name}", f"about {hexed(document.encode())} - -", answer)
    yield answered("of-a-week", WEEK.to_json(), [0, 1, 2])
    yield answered("of-numbers-within-bounds", AGES.to_document(), [-5.0, 18.0, 40.5, 90.0, 1e300])
    counted, messages = AGES.accumulator(), AGES.messages(AGES.perturb([30.0, 50.0, 70.0]))
    counted.add_messages(messages)
    estimated = AGES.estimate(counted)
    line = " ".join(["mean", hexed(AGES.to_document().encode()), *map(hexed, messages)])
    yield Case("bounded-mean", line, f"ok {double(estimated.mean)}{double(estimated.standard_error)}")
    memo = local_spec.memo([random_bytes("person", 32)])
    yield answered("of-a-month", DAYS.about(period="2026-11").to_json(), [7], memo, str(DAYS.question))
    remembering = local.ClientMemo.from_bytes(memo)
    DAYS.perturb([7], remembering, question=str(DAYS.question))
    later = DAYS.about(period="2026-12", domain=list("abcdefgh"))
    asked = " ".join(f"{text_of(each)} {hexed(str(DAYS.question).encode())}" for each in (DAYS, later))
    yield Case("memo-of-a-question", f"memo {hexed(memo)} {asked}", f"ok {remembering.to_bytes().hex()}")
    for name, other in {"itself": WEEK, **OTHERS}.items():
        accumulator = WEEK.accumulator()
        accumulator.add_messages([bytes.fromhex(message) for message in sent(other)])
        assert (accumulator.n, accumulator.rejected) == ((6, 0) if other == WEEK else (0, 6))
        line = f"collect {text_of(WEEK)} {' '.join(sent(other))}"
        yield Case(f"counting-{name}", line, f"ok {accumulator.to_bytes().hex()}")
        if other == WEEK:
            again = line.replace("collect", "merge").replace(text_of(WEEK), f"{text_of(WEEK)} {text_of(WEEK)}")
            yield Case("merge-of-two", again, f"ok {accumulator.to_bytes().hex()}")


OTHERS = {
    "other-labels": WEEK.about(domain=["yes", "no", "unsure"]),
    "another-order": WEEK.about(domain=["green", "red", "blue"]),
    "another-question": WEEK.about(question="favourite color"),
    "another-week": WEEK.about(period="2026-W49"),
    "another-epsilon": local.OptimizedUnaryEncoding(domain=COLOURS.domain, epsilon=2.1).about(
        question=WEEK.question, period=WEEK.period
    ),
    "nothing": local.OptimizedUnaryEncoding(k=3, epsilon=2.0),
}
"""Collections whose reports are as long as those of `WEEK`."""


def accepted() -> list[Case]:
    """Give all cases that have an answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulInputWarning)  # some reports are to be rejected
        cases = [case for vector in VECTORS for case in of_vector(vector)]
        cases.append(answered("texts", local.CountMeanSketch(epsilon=20.0, rows=9, width=1024).to_json(), TEXTS))
        cases.append(answered("specification-of-a-file", f" {UNARY}\n", [0, 7, 14]))
        cases.append(answered("given-probability", local.RandomizedResponse(p=0.8).to_json(), [0, 1, 1]))
        cases.append(answered("wide-integers", OF_WIDE, WIDE))
        cases += [answered(f"wide-integer-{i}", OF_WIDE, WIDE[:1]) for i in range(8)]
        cases.append(answered("close-numbers", OF_CLOSE, CLOSE))
        cases += [answered(f"close-number-{i}", OF_CLOSE, CLOSE[i : i + 1]) for i in range(8)]
        memo = next(vector["memo"] for vector in VECTORS if "memo" in vector)
        one = local_spec.memo([random_bytes("person", 32)])
        longitudinal = local.LOLOHA(k=15, epsilon_permanent=2.0, epsilon_first=1.0).to_json()
        for name, question in [("empty", ""), ("accents", "Wo wohnst Du, größtenteils?"), ("zero", "a\0b")]:
            cases.append(answered(f"question-{name}", longitudinal, [7], one, question))
        cases += [
            Case("memo", f"memo {memo}", f"ok {memo}"),
            Case("memo-of-one", f"memo {one.hex()}", f"ok {one.hex()}"),
            Case("newmemo", "newmemo", "ok different"),
        ]
        return [*cases, *of_people(), *several(), *of_collections(), *noise()]


# --- what must be refused --------------------------------------------------------------------------------------------

HADAMARD = local.HadamardResponse(k=15, epsilon=1.0).to_json()
UNARY = local.OptimizedUnaryEncoding(k=15, epsilon=1.0).to_json()
SPECIFICATIONS: dict[str, bytes] = {
    "empty": b"",
    "of-white-space": b"  \n",
    "cut": HADAMARD[:-1].encode(),
    "not-json": b"k=15",
    "an-array": f"[{HADAMARD}]".encode(),
    "not-utf-8": HADAMARD.replace("hadamard", "\xff").encode("latin-1"),
    "with-a-zero": HADAMARD.encode() + b"\0",
    "deep": b"[" * 4000,
    "long": b"[" * 100_000,
    "with-spaces": json.dumps(json.loads(HADAMARD)).encode(),
    "as-javascript-writes-it": HADAMARD.replace("1.0", "1").encode(),
    "in-another-order": json.dumps(dict(reversed(json.loads(HADAMARD).items())), separators=(",", ":")).encode(),
    "with-a-field-twice": HADAMARD.replace("{", '{"k":15,').encode(),
    "with-another-field": HADAMARD.replace("{", '{"a":15,').encode(),
    "without-a-field": HADAMARD.replace('"keep":473,', "").encode(),
    "unknown": HADAMARD.replace("hadamard_response", "hadamard").encode(),
    "of-another-version": HADAMARD.replace('version":1', 'version":2').encode(),
    "with-another-probability": HADAMARD.replace("473", "474").encode(),
    "with-another-epsilon": UNARY.replace("1.0", "2.0").encode(),
    "of-another-order": HADAMARD.replace('order":16', 'order":32').encode(),
}

# Values that are in no range, and that no other number of a message resembles.
INTEGER, WIDE_INTEGER, NUMBER, TEXT = 987_654_321, -(2**63), 1.23456789, "a very private plum"
SECRETS = (
    str(INTEGER),
    hex(INTEGER)[2:],
    str(WIDE_INTEGER)[1:],
    str(NUMBER),
    double(NUMBER),
    TEXT,
    TEXT.encode().hex(),
    "1.23",
)
VALUES: dict[str, tuple[Any, str, list[Any], str]] = {
    "too-large": (local.HadamardResponse(k=15, epsilon=1.0), "integers", [INTEGER], "data"),
    "k": (local.HadamardResponse(k=15, epsilon=1.0), "integers", [15], "data"),
    "negative": (local.HadamardResponse(k=15, epsilon=1.0), "integers", [-INTEGER], "data"),
    "smallest": (local.HadamardResponse(k=15, epsilon=1.0), "integers", [WIDE_INTEGER], "data"),
    "largest": (local.HadamardResponse(k=15, epsilon=1.0), "integers", [2**63 - 1], "data"),
    "one-of-many": (local.OptimizedUnaryEncoding(k=15, epsilon=1.0), "integers", [1, 2, INTEGER, 3], "data"),
    "no-answer": (local.RandomizedResponse(epsilon=1.0), "integers", [2], "data"),
    "like-an-answer": (local.RandomizedResponse(epsilon=1.0), "integers", [2**32], "data"),
    "no-prefix": (local.PrefixExtension(epsilon=1.0, bits=20, step=8, rows=2, width=8), "integers", [INTEGER], "data"),
    "no-mean": (local.DuchiMean(epsilon=1.0), "numbers", [NUMBER], "data"),
    "negative-mean": (local.PiecewiseMean(epsilon=1.0), "numbers", [-NUMBER], "data"),
    "no-noisy-mean": (local.LaplaceMean(epsilon=1.0), "numbers", [NUMBER], "data"),
    "nan": (local.HybridMean(epsilon=1.0), "numbers", [float("nan")], "data"),
    "infinite": (local.HybridMean(epsilon=1.0), "numbers", [float("inf")], "data"),
    "no-share": (local.SquareWave(k=15, epsilon=1.0), "numbers", [-0.5], "data"),
    "integers-for-numbers": (local.DuchiMean(epsilon=1.0), "integers", [INTEGER], "parameter"),
    "integers-for-texts": (local.CountMeanSketch(epsilon=1.0, rows=3, width=16), "integers", [INTEGER], "parameter"),
    "numbers-for-integers": (local.HadamardResponse(k=15, epsilon=1.0), "numbers", [NUMBER], "parameter"),
    "numbers-for-texts": (local.CountMeanSketch(epsilon=1.0, rows=3, width=16), "numbers", [NUMBER], "parameter"),
    "texts-for-integers": (local.HadamardResponse(k=15, epsilon=1.0), "texts", [TEXT], "parameter"),
    "texts-for-numbers": (local.DuchiMean(epsilon=1.0), "texts", [TEXT], "parameter"),
}


def of_specifications() -> Iterator[Case]:
    """Give specifications that nobody announced."""
    for name, specification in SPECIFICATIONS.items():
        line = perturb("messages", "integers", specification, [INTEGER], random=None)
        yield Case(f"specification-{name}", line, "error state", SECRETS)
    yield Case("specification-of-facts", f"facts {SPECIFICATIONS['unknown'].hex()} 100", "error state")
    large = local.HadamardCountMeanSketch(epsilon=1.0, rows=16, width=2**20)
    yield Case("limit", f"facts {UNARY.encode().hex()} {8 * 15 - 1}", "error parameter")
    yield Case("limit-by-default", f"collect {large.to_json().encode().hex()}", "error parameter")
    yield Case("specification-of-state", f"collect {SPECIFICATIONS['with-spaces'].hex()}", "error state")
    yield Case("mean-of-nobody", f"mean {local.DuchiMean(epsilon=1.0).to_json().encode().hex()}", "error parameter")
    attributes = local.Sampled(attributes=ATTRIBUTES).to_json().encode().hex()
    yield Case(
        "reports-on-attributes",
        perturb("messages", "integers", bytes.fromhex(attributes), [1], random=None),
        "error parameter",
    )
    yield Case("estimate-of-attributes", f"estimate {attributes}", "error parameter")
    yield Case("mean-of-attributes", f"mean {attributes}", "error parameter")
    yield Case("no-attribute", f"estimate {attributes}@{b'drinks'.hex()}", "error parameter")
    yield Case("attribute-of-one", f"estimate {UNARY.encode().hex()}@{b'smokes'.hex()}", "error parameter")
    yield Case(
        "attributes-written-again", f"facts {attributes.replace(b','.hex(), b', '.hex(), 1)} 1000", "error state"
    )
    yield Case("specification-of-estimate", f"estimate {SPECIFICATIONS['cut'].hex()}", "error state")


def of_values() -> Iterator[Case]:
    """Give values that a protocol does not take."""
    for name, (protocol, kind, values, status) in VALUES.items():
        for form in ("reports", "messages"):
            line = perturb(form, kind, protocol.to_json(), values, random=None)
            yield Case(f"value-{name}-{form}", line, f"error {status}", SECRETS)


def of_memos() -> Iterator[Case]:
    """Give memos that are damaged, missing or of others."""
    secret = random_bytes("a secret", 32)
    good = local_spec.memo([secret])
    secrets = (secret[:4].hex(), good.hex()[:64], str(INTEGER))
    body = good[:-4].replace(b"DPNM\2", b"DPNM\3")
    huge = good[:8] + (2**63).to_bytes(8, "little") + good[16:-4]
    damaged = {
        "empty": b"",
        "cut": good[:-1],
        "without-its-check": good[:-4],
        "longer": good + b"\0",
        "with-another-bit": good[:20] + bytes([good[20] ^ 1]) + good[21:],
        "with-another-check": good[:-1] + bytes([good[-1] ^ 128]),
        "of-another-version": body + struct.pack("<I", local_spec.crc32c(body)),
        "of-too-many": huge + struct.pack("<I", local_spec.crc32c(huge)),
        "of-nobody-knows": bytes(52),
    }
    longitudinal = local.LOLOHA(k=15, epsilon_permanent=2.0, epsilon_first=1.0).to_json()
    for name, memo in damaged.items():
        yield Case(f"memo-{name}", f"memo {hexed(memo)}", "error state", secrets)
        if memo:
            line = perturb("messages", "integers", longitudinal, [7], random=None, memo=memo, question="colour")
            yield Case(f"memo-{name}-of-a-report", line, "error state", secrets)
    line = perturb("messages", "integers", longitudinal, [INTEGER], random=None)
    yield Case("memo-missing", line, "error parameter", secrets)
    line = perturb("messages", "integers", longitudinal, [1, 2], random=None, memo=good, question="colour")
    yield Case("memo-of-one-for-two", line, "error parameter", secrets)
    two = local_spec.memo([secret, secret[::-1]])
    line = perturb("messages", "integers", longitudinal, [1], random=None, memo=two, question="colour")
    yield Case("memo-of-two-for-one", line, "error parameter", secrets)
    line = perturb("messages", "integers", HADAMARD, [INTEGER], random=None, memo=good, question="colour")
    yield Case("memo-of-no-use", line, "error parameter", secrets)
    line = perturb("messages", "integers", longitudinal, [INTEGER], random=None, memo=good, question="colour")
    yield Case("memo-and-a-wrong-value", line, "error data", secrets)


# The first and the last character of each range that texts to be compared must not have.
HIDDEN = "\0\x1f\x7f\x9f\u200b\u200e\u200f\u2028\u202e\u2060\u206f\ufeff\ufff9\ufffb\U000e0000\U000e007f"


def changed(right: str, wrong: str) -> bytes:
    """Change the specification of `WEEK`."""
    assert right in WEEK.to_json()
    return WEEK.to_json().replace(right, wrong).encode()


def document(domain: Any, protocol: Any = WEEK, **more: Any) -> bytes:
    """Write a document with another domain."""
    return json.dumps({"dpnoise.domain": domain, "dpnoise.protocol": protocol.to_json(), **more}).encode()


LABELS = f'"labels":"{json.loads(WEEK.to_json())["labels"]}"'
NOT_ANNOUNCED: dict[str, bytes] = {
    "with-labels-in-capitals": changed(LABELS, LABELS[:10] + LABELS[10:].upper()),
    "with-short-labels": changed(LABELS, LABELS[:-2] + '"'),
    "with-labels-of-a-mean": local.SquareWave(k=4, epsilon=1.0).to_json().replace('"p', f'{LABELS},"p', 1).encode(),
    "with-an-empty-question": changed("favourite colour", ""),
    "with-a-space-before": changed("favourite", " favourite"),
    "with-a-space-behind": changed("2026-W48", "2026-W48 "),
    "with-a-long-question": changed("favourite colour", "a" * 256),
    "with-a-long-period": changed("2026-W48", "2" * 64),
    "with-a-number-for-a-period": changed('"2026-W48"', "2026"),
    "with-an-unescaped-question": changed("colour", "colör"),
    "with-another-escape": changed("colour", "col\\u006fur"),
    "with-capital-escapes": changed("colour", "col\\u00F6r"),
    "with-half-a-pair": changed("colour", "col\\ud83c"),
    **{f"hiding-{ord(c):x}": changed("colour", "col" + json.dumps(c)[1:-1] + "our") for c in HIDDEN},
}
DOCUMENTS: dict[str, tuple[bytes, str]] = {
    "of-other-labels": (document(["yes", "no", "unsure"]), "state"),
    "of-another-order": (document(["green", "red", "blue"]), "state"),
    "of-two-labels": (document(["red", "green"]), "parameter"),
    "of-a-label-twice": (document(["red", "green", "red"]), "parameter"),
    "of-numbers": (document([1, 2, 3]), "state"),
    "of-an-object": (document({"colour": ["red", "green", "blue"]}), "parameter"),
    "of-no-list": (document("red"), "state"),
    "without-labels": (json.dumps({"dpnoise.protocol": WEEK.to_json()}).encode(), "state"),
    "without-a-protocol": (b'{"dpnoise.domain":["red","green","blue"]}', "state"),
    "of-labels-of-nobody": (document(["red", "green", "blue"], OTHERS["nothing"]), "state"),
    "with-more": (document(["red", "green", "blue"], **{"dpnoise.more": ""}), "state"),
    "with-labels-twice": (
        document(["red", "green", "blue"])[:-1] + b',"dpnoise.domain":["red","green","blue"]}',
        "state",
    ),
    "of-other-bounds": (document([0, 1], local.DuchiMean(epsilon=1.0).about(bounds=(0, 100))), "state"),
    "of-a-specification-read": (
        json.dumps(
            {"dpnoise.domain": ["red", "green", "blue"], "dpnoise.protocol": json.loads(WEEK.to_json())}
        ).encode(),
        "state",
    ),
}


def of_other_collections() -> Iterator[Case]:
    """Put together what is not about the same."""
    # Of the bounds the specification alone has a digest, and nobody knows what numbers stand for.
    [message] = AGES.messages(AGES.perturb([30.0]))
    yield Case(
        "numbers-of-unknown-bounds", perturb("messages", "numbers", AGES.to_json(), [0.5], random=None), "error state"
    )
    yield Case("mean-of-unknown-bounds", f"mean {text_of(AGES)} {hexed(message)}", "error state")
    for name, specification in NOT_ANNOUNCED.items():
        yield Case(f"specification-{name}", f"facts {specification.hex()} 1000", "error state")
    for name, (given, status) in DOCUMENTS.items():
        yield Case(f"document-{name}", f"about {given.hex()} - -", f"error {status}")
        yield Case(f"document-{name}-to-collect", f"collect {given.hex()}", f"error {status}")
    messages = " ".join(sent(WEEK))
    for name, other in OTHERS.items():
        yield Case(f"merge-of-{name}", f"merge {text_of(WEEK)} {text_of(other)} {messages}", "error state")
    yield Case("merge-of-itself", f"merge {text_of(WEEK)} - {messages}", "error parameter")
    hidden = [(f"hiding-{ord(c):x}", f"a{c}b") for c in HIDDEN]
    for name, text in [*hidden, ("a-space-before", " a"), ("a-space-behind", "a "), ("much", "a" * 256)]:
        yield Case(f"question-{name}", f"about {text_of(WEEK)} {hexed(text.encode())} -", "error parameter")
        yield Case(f"period-{name}", f"about {text_of(WEEK)} - {hexed(text.encode())}", "error parameter")
    memo, question = hexed(local_spec.memo([random_bytes("person", 32)])), hexed(str(DAYS.question).encode())
    digit = local.LOLOHA(k=8, epsilon_permanent=2.01, epsilon_first=1.0)
    line = f"memo {memo} {text_of(DAYS)} {question} {text_of(digit)} {question}"
    yield Case("memo-of-another-randomiser", line, "error state")
    yield Case("memo-of-another-question", f"memo {memo} {text_of(DAYS)} {hexed(b'days')}", "error parameter")


def of_generators() -> Iterator[Case]:
    """Give generators that fail: at once, or when all but one byte are drawn."""
    for vector in VECTORS:
        name = name_of(vector)
        if vector["random"]:  # the reports of d-bit flipping follow from the memo alone
            yield Case(f"generator-short-{name}", asked(vector, "reports", cut=1), "error randomness", SECRETS)
            line = asked(vector, "messages", random=b"\0")
            yield Case(f"generator-empty-{name}", line, "error randomness", SECRETS)
    for case in noise():
        used = max(case.line.split(" "), key=len)
        for name, left in (("short", used[:-2]), ("empty", "00")):
            if left:
                yield Case(f"generator-{name}-{case.name}", case.line.replace(used, left), "error randomness")
    private = [NUMBER, INTEGER]
    for line in (
        f"release laplace {double(1.0)} {double(1.0)} 00 {double(NUMBER)}",
        f"release gaussian {double(1.0)} {double(1e-6)} {double(1.0)} 00 {double(NUMBER)}",
        f"release discrete-laplace {double(1.0)} 1 00 {INTEGER}",
        f"release discrete-gaussian {double(1.0)} {double(1e-6)} {double(1.0)} 00 {INTEGER}",
    ):
        yield Case(f"generator-of-{line.split(' ')[1]}", line, "error randomness", tuple(map(str, private)))


def of_parameters() -> Iterator[Case]:
    """Give noise parameters and values that are out of range."""
    for kind in SCALES:
        for scale in (0.0, -1.0, float("nan"), float("inf"), 2.0**40 * (1 + 2.0**-50)):
            yield Case(f"scale-{kind}-{scale}", f"fill {kind} {double(scale)} - 3", "error parameter")
    for x in (0.0, -1.0, float("nan"), float("inf")):
        one, wrong, delta = double(1.0), double(x), double(1e-6)
        for name, line in {
            "laplace-epsilon": f"laplace {wrong} {one} - {one}",
            "laplace-sensitivity": f"laplace {one} {wrong} - {one}",
            "gaussian-delta": f"gaussian {one} {wrong} {one} - {one}",
            "gaussian-sensitivity": f"gaussian {one} {delta} {wrong} - {one}",
            "discrete-laplace-epsilon": f"discrete-laplace {wrong} 1 - 7",
            "discrete-gaussian-delta": f"discrete-gaussian {one} {wrong} {one} - 7",
        }.items():
            yield Case(f"{name}-{x}", f"release {line}", "error parameter")
    for x in (float("nan"), float("inf")):
        for name, mechanism in (
            ("laplace", f"{double(1.0)} {double(1.0)}"),
            ("gaussian", f"{double(1.0)} {double(1e-6)} {double(1.0)}"),
        ):
            line = f"release {name} {mechanism} - {double(NUMBER)} {double(x)}"
            yield Case(f"release-{name}-of-{x}", line, "error data", SECRETS)


def of_estimates() -> Iterator[Case]:
    """Estimates of what is not there."""
    ranges, prefixes = (
        local.HierarchicalRange(k=10, epsilon=1.0),
        local.PrefixExtension(epsilon=1.0, bits=8, rows=4, width=8),
    )
    for first, last, q in [(3, 2, 0.5), (0, 10, 0.5), (-1, 3, 0.5), (10, 10, 0.5), (0, 1, 1.5), (0, 1, float("nan"))]:
        given = [str(first), str(last), double(q)]
        yield asked_of("ranges", ranges, given, [], "error parameter", f"wrong-{first}-{last}-{q}")
    for level in (0.0, 1.0, float("nan")):
        yield asked_of("prefixes", prefixes, [double(level)], [], "error parameter", f"level-{level}")
    yield asked_of("density", local.SquareWave(k=4, epsilon=1.0), ["1"], [], "error parameter", "of-nobody")


def refused() -> list[Case]:
    """Give all cases that have an error."""
    freed = [
        Case(f"freed-{what}", f"freed {what}", "error")
        for what in ("protocol", "memo", "accumulator", "sampler", "mechanism")
    ]
    return [
        *of_specifications(),
        *of_values(),
        *of_memos(),
        *of_other_collections(),
        *of_generators(),
        *of_parameters(),
        *of_estimates(),
        *freed,
    ]
