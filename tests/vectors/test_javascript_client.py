"""The client in JavaScript of the examples, which takes all that it does from the page on the wire format."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpnoise import local
from tests.vectors import local_spec, make_wire_examples

CLIENT = Path(__file__).parents[2] / "examples/report.mjs"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node, which runs the client in JavaScript, is not installed")

DRIVER = """
const { Client, Draws } = await import(process.argv[1]);
const { readFileSync } = await import("node:fs");
const scripted = (script) => ({
  uniform: () => BigInt(script.uniform.shift()),
  coin: () => script.coin.shift(),
  noise: () => BigInt(script.noise),
});
const taking = (left) => (count) => {
  const taken = left[0].slice(0, 2 * count);
  left[0] = left[0].slice(2 * count);
  return Buffer.from(taken, "hex");
};
const of = {
  messages: ({ announcement, values, options }) => {
    const client = Client.announced(announcement, options);
    return values.map((value) => client.message(value).toString("hex"));
  },
  scripted: ({ specification, value, script }) =>
    Client.announced(specification, { draws: scripted(script) }).message(value).toString("hex"),
  drawn: ({ specification, value, bytes }) =>
    new Client(specification, { draws: new Draws(taking([bytes])) }).message(value).toString("hex"),
  noise: ({ epsilon, unit, bytes }) => {
    const left = [bytes];
    return [Number(new Draws(taking(left)).noise(epsilon, BigInt(unit))), left[0].length];
  },
  inherited: ({ specification, n }) => {
    Object.prototype.draws = new Draws((count) => Buffer.alloc(count));
    try {
      return Array.from({ length: n }, () => new Client(specification).message(0).toString("hex"));
    } finally {
      delete Object.prototype.draws;
    }
  },
  laplace: ({ n }) => Array.from({ length: n }, () => Number(new Draws().discreteLaplace(1n, 1n))),
};
const answers = JSON.parse(readFileSync(0, "utf-8")).map(([job, given]) => {
  try {
    return of[job](given);
  } catch (error) {
    return { error: error.message };
  }
});
console.log(JSON.stringify(answers));
"""


def in_node(*jobs: tuple[str, Any], client: Path = CLIENT) -> list[Any]:
    """Have a client in JavaScript do some jobs."""
    assert NODE is not None
    command = [NODE, "--input-type=module", "--eval", DRIVER, client.as_uri()]
    done = subprocess.run(command, input=json.dumps(jobs), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers


N = 600
LIMIT = 27.0
"""No check of this file is above it with a probability of more than 2 exp(-27) < 4e-12, and there are below 100."""

CLIENTS: dict[str, tuple[Any, list[Any]]] = {
    type(protocol).__name__: (protocol, values)
    for protocol, values in (
        (local.RandomizedResponse(p=0.8), [1, 1, 1, 0]),
        (local.SymmetricUnaryEncoding(k=9, epsilon=3.0), [0, 0, 0, 8]),
        (local.OptimizedUnaryEncoding(k=9, epsilon=3.0), [0, 0, 0, 8]),
        (local.UnaryEncoding(k=9, p=0.75, q=0.1), [0, 0, 0, 8]),
        (local.ThresholdHistogramEncoding(k=9, epsilon=3.0), [0, 0, 0, 8]),
        (local.GeneralizedRandomizedResponse(k=9, epsilon=6.0), [1, 1, 1, 8]),
        (local.LocalHashing(k=9, epsilon=3.0), [1, 1, 1, 8]),
        (local.HadamardResponse(k=9, epsilon=3.0), [1, 1, 1, 8]),
        (local.LaplaceMean(epsilon=3.3), [-1.0, -0.5, -0.4]),
        (local.SummationHistogramEncoding(k=3, epsilon=3.3), [0, 0, 0, 2]),
    )
}


def of_counts(count: float, n: int, mean: float) -> float:
    """Give -log of a bound on the probability of such a sum of n independent bits (Chernoff and Hoeffding)."""
    x = count / n
    return n * sum(a * math.log(a / b) for a, b in ((x, mean), (1 - x, 1 - mean)) if a > 0)


def of_noise(total: float, n: int, scale: float) -> float:
    """Give the same for a sum of n noises, and of rounding by less than 1 of each.

    E exp(x noise / scale) <= 1 / (1 - x^2), as for continuous noise; E exp(x rounding / scale) <= exp(x^2 / 8 scale^2).
    """
    far, points = abs(total) / scale, np.linspace(0, 0.9, 91)
    return float(np.max(points * far + n * (np.log1p(-(points**2)) - points**2 / (8 * scale**2))))


def surprise(protocol: Any, values: list[Any], messages: list[str]) -> float:
    """Give the largest of these for messages about values."""
    accumulator, n = protocol.accumulator(), len(values)
    accumulator.add_messages(list(map(bytes.fromhex, messages)))
    if accumulator.n < n:
        return math.inf
    counters, _, _ = accumulator._state.counters()
    spec = json.loads(protocol.to_json())
    if spec["protocol"] in local_spec.SUMS:
        unit, columns = (
            spec["unit"],
            [sum(map(Fraction, values))] if "mean" in spec["protocol"] else map(values.count, range(3)),
        )
        totals = [
            float(counter) - n * spec["bound"] - float(exact) * unit
            for counter, exact in zip(counters, columns, strict=True)
        ]
        return max(of_noise(total, n, 2 * unit / spec["epsilon"]) for total in totals)
    own = [1] if spec["protocol"] == "randomized_response" else range(spec["k"])
    shares = [values.count(v) / n for v in own]
    means = [share * protocol.p + (1 - share) * protocol.q for share in shares]
    return max(of_counts(counter, n, mean) for counter, mean in zip(counters, means, strict=True))


def job(name: str, n: int = N) -> tuple[str, Any]:
    """Have messages made about the values of a protocol, n in all."""
    protocol, values = CLIENTS[name]
    given = [values[i % len(values)] for i in range(n)]
    return "messages", {"announcement": protocol.to_json(), "values": given}


@needs_node
def test_the_library_counts_what_the_client_sends() -> None:
    jobs = [job(name) for name in CLIENTS]
    for (protocol, _), (_, given), messages in zip(CLIENTS.values(), jobs, in_node(*jobs), strict=True):
        assert surprise(protocol, given["values"], messages) < LIMIT, protocol


@needs_node
def test_the_client_draws_discrete_laplace_noise() -> None:
    n = 3000
    ((drawn),) = in_node(("laplace", {"n": n}))
    for y in range(-5, 6):
        assert of_counts(drawn.count(y), n, math.tanh(0.5) * math.exp(-abs(y))) < LIMIT


@needs_node
@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("GeneralizedRandomizedResponse", "kept ? symbol : other", "kept ? other : symbol"),
        ("LocalHashing", "(g * ((a * v + b) % prime)) / prime", "((a * v + b) % prime) % g"),
        ("HadamardResponse", "parity(v & j)", "parity(v | j)"),
        ("OptimizedUnaryEncoding", "BigInt(i) === v ? p : q", "BigInt(i) === v ? q : p"),
        ("SymmetricUnaryEncoding", "<< (i & 7)", "<< (7 - (i & 7))"),
        ("LaplaceMean", "(v < 0 ? -1n : 1n)", "1n"),
        ("SummationHistogramEncoding", "noisy(BigInt(i) === v", "noisy(BigInt(i) !== v"),
    ],
)
def test_another_client_is_noticed(name: str, right: str, wrong: str, tmp_path: Path) -> None:
    code = CLIENT.read_text(encoding="utf-8")
    assert right in code
    (tmp_path / "report.mjs").write_text(code.replace(right, wrong), encoding="utf-8")
    one = job(name)
    (messages,) = in_node(one, client=tmp_path / "report.mjs")
    assert surprise(CLIENTS[name][0], one[1]["values"], messages) > LIMIT


@needs_node
def test_only_own_options_count() -> None:
    specification = local.OptimizedUnaryEncoding(k=20, epsilon=1.0).to_json()
    (messages,) = in_node(("inherited", {"specification": specification, "n": 100}))
    assert len(set(messages)) > 1  # equal by chance with a probability below 1e-100


@needs_node
def test_the_client_makes_the_messages_of_the_page() -> None:
    examples = [make_wire_examples.drawn(*example) for example in make_wire_examples.EXAMPLES]
    jobs = []
    for example in examples:
        draws, spec = example["draws"], json.loads(example["specification"])
        bits = draws.get("bits that are 1", [])
        match spec["protocol"]:
            case "randomized_response":
                script: dict[str, Any] = {"coin": [bool(draws["answer"])]}
            case "optimized_unary_encoding":
                script = {"coin": [i in bits for i in range(spec["k"])]}
            case "laplace_mean":
                script = {"uniform": [str(draws["u"])], "noise": str(draws["noise"])}
            case _:
                script = {"uniform": list(draws.values()), "coin": [False]}
        jobs.append(("scripted", {**example, "script": script}))
    assert in_node(*jobs) == [example["message"] for example in examples]


@needs_node
def test_the_client_draws_the_noise_of_the_page() -> None:
    vectors = make_wire_examples.noise_vectors()
    jobs = [("noise", {"epsilon": e, "unit": unit, "bytes": taken.hex()}) for e, unit, taken, _ in vectors]
    assert in_node(*jobs) == [[noise, 0] for *_, noise in vectors]


@needs_node
def test_the_client_keeps_the_bytes() -> None:
    """Of each specification on the page that it knows, and of one with white space around it."""
    page = make_wire_examples.PAGE.read_text(encoding="utf-8")
    listed = [line.split(" ") for line in page.split("```text\n")[-1].split("```")[0].splitlines()]
    known = [
        (id_, text) for id_, _, text in listed if json.loads(text)["protocol"] in CLIENT.read_text(encoding="utf-8")
    ]
    assert len(known) == 10
    known.append((known[0][0], f" {known[0][1]}\r\n"))
    jobs = [("messages", {"announcement": text, "values": [0]}) for _, text in known]
    for (id_, text), (message,) in zip(known, in_node(*jobs), strict=True):
        assert message[8:24] == id_ == sha256(text.strip().encode()).hexdigest()[:16]


@needs_node
def test_the_client_reads_numerators_exactly() -> None:
    keep = 2_131_000_000_000_000_001  # JSON.parse makes another number of it
    specification = local.HadamardResponse(k=15, epsilon=1.0).to_json().replace('"keep":473', f'"keep":{keep}')
    specification = specification.replace('"planes":10', '"planes":62')
    draws = [(b"\5" + coin.to_bytes(8, "little") + b"\1").hex() for coin in (keep - 1, keep)]
    jobs = [("drawn", {"specification": specification, "value": 0, "bytes": drawn}) for drawn in draws]
    assert [message[24:] for message in in_node(*jobs)] == ["0a", "0b"]


@needs_node
def test_the_client_reads_labels() -> None:
    protocol = local.GeneralizedRandomizedResponse(domain=["red", "caf\u00e9", "1"], epsilon=32.0)
    announced = {"dpnoise.protocol": protocol.to_json(), "dpnoise.domain": protocol.domain}
    again, plain = json.dumps(announced, indent=2), json.dumps(announced, ensure_ascii=False)
    texts = ["1", "caf\u00e9", "cafe\u0301", "red"]

    def jobs(announcement: str, values: list[Any]) -> list[tuple[str, Any]]:
        return [("messages", {"announcement": announcement, "values": [value]}) for value in values]

    refused = {"error": "the value must be a label"}
    answers = in_node(*jobs(plain, texts), *jobs(again, texts), *jobs(plain, ["blue", 1, None]))
    # A report is another value with a probability of 2 exp(-32), which is below 1e-13.
    header = local_spec.message_header(protocol.to_json())
    one, cafe, red = ([(header + bytes([number])).hex()] for number in (2, 1, 0))
    assert answers == [one, cafe, refused, red, one, cafe, refused, red, refused, refused, refused]


@needs_node
def test_the_client_takes_numbers_within_bounds() -> None:
    script = {"uniform": ["0"], "noise": "0"}
    for bounds in [(0, 100), (-0.0, 1e16), (-1.5e-6, 1e-5), (0.1, 123456.789), (-1e300, 1e300)]:
        protocol = local.LaplaceMean(epsilon=1.0).about(bounds=bounds)
        spec, (lower, upper) = json.loads(protocol.to_json()), bounds
        values = [lower, lower / 2 + upper / 2, upper, 2 * lower - upper, upper * 1.5]
        jobs = [("scripted", {"specification": protocol.to_document(), "value": v, "script": script}) for v in values]
        for message, sign in zip(in_node(*jobs), (-1, 0, 1, -1, 1), strict=True):
            report = (spec["bound"] + sign * spec["unit"]).to_bytes(4, "little")
            assert bytes.fromhex(message) == local_spec.message_header(protocol.to_json()) + report


@needs_node
def test_the_client_reads_what_reports_are_about() -> None:
    protocol = local.GeneralizedRandomizedResponse(k=9, epsilon=32.0)
    texts = [
        "gr\u00f6\u00dftenteils",
        'a "\\" \N{GRAPES}',
        "\u0645\u06cc\u200c\u062e",
        "\u00e9" * 127,
        ',"k":10',
        "\u00a0a",
    ]
    collections = [protocol.about(question=text, period="2026-W48", domain=list("abcdefghi")) for text in texts]
    jobs = [("messages", {"announcement": each.to_json(), "values": [7]}) for each in collections]
    for each, (message,) in zip(collections, in_node(*jobs), strict=True):
        assert bytes.fromhex(message) == local_spec.message_header(each.to_json()) + b"\7"


LAPLACE = local.LaplaceMean(epsilon=1.0).to_json()
HADAMARD = local.HadamardResponse(k=15, epsilon=1.0).to_json()
UNARY = local.OptimizedUnaryEncoding(k=15, epsilon=1.0).to_json()
OUT_OF_RANGE = "the specification has a number that is out of range"
OTHER_DOMAIN = "the domain must be that of the specification, in its order"

COLOURS = local.OptimizedUnaryEncoding(domain=["red", "green", "blue"], epsilon=1.0).about(
    question="colour", period="1"
)
RIGHT = json.loads(COLOURS.to_document())
WRONG_DOMAINS = [
    (["yes", "no", "red"], OTHER_DOMAIN),
    (["green", "red", "blue"], OTHER_DOMAIN),
    (["red", "green"], "the domain must have 3 different labels"),
    (["red", "green", 1], "the domain must have 3 different labels"),
    ("red", "the document must have"),
]
# Of each range that texts must not have the ends, and what is beside a text or too long.
HIDING = [
    json.dumps(f"a{chr(code)}b")[1:-1] for code in (0, 0x1F, 0x7F, 0x9F, 0x200B, 0x200E, 0x200F, 0x2028, 0x202E, 0x2060)
]
HIDING += [json.dumps(f"a{chr(code)}b")[1:-1] for code in (0x206F, 0xFEFF, 0xFFF9, 0xFFFB, 0xE0000, 0xE007F)]
HIDING += ["", " a", "a ", "a" * 256, "\\ud83c", "\\u006f", "\\u00F6", "\u00f6", "\\/"]
UNKNOWN = ['"a":1', '"a":"b"', '"__proto__":1']
ALL = [protocol.to_json() for protocol, _ in CLIENTS.values()]


def announced(domain: Any) -> str:
    """Announce the colours with another domain."""
    return json.dumps({**RIGHT, "dpnoise.domain": domain})


REFUSED = [
    (HADAMARD, 15, "the value must be from 0 to 14"),
    (HADAMARD, -1, "the value must be from 0 to 14"),
    (HADAMARD, 0.5, "the value must be from 0 to 14"),
    (HADAMARD, "0", "the value must be from 0 to 14"),
    (LAPLACE, 1.01, "the value must be from -1 to 1"),
    (LAPLACE, "0", "the value must be a number"),
    (LAPLACE, None, "the value must be a number"),
    (local.LaplaceMean(epsilon=1.0).about(bounds=(0, 9)).to_json(), 0.5, "the bounds must be known"),
    (HADAMARD.replace("473", "474"), 0, "the reports must be 1-differentially private"),
    (
        local.LaplaceMean(epsilon=1.0).to_json().replace('"k":2', '"k":3'),
        0,
        "the reports must be 1-differentially private",
    ),
    (UNARY.replace("551", "550"), 0, "the reports must be 1-diff"),
    (local.RandomizedResponse.coin_flips().to_json().replace("1.09", "1.08"), 0, "the reports must be 1.08"),
    (HADAMARD.replace("473", "1024"), 0, OUT_OF_RANGE),
    (HADAMARD.replace("473", "3072"), 0, OUT_OF_RANGE),
    (HADAMARD.replace("473", "-473"), 0, OUT_OF_RANGE),
    (HADAMARD.replace('"k":15', '"k":0'), 0, OUT_OF_RANGE),
    (HADAMARD.replace('"planes":10', '"planes":99'), 0, OUT_OF_RANGE),
    (UNARY.replace('"p":1024', '"p":1').replace('"q":551', '"q":2047'), 0, OUT_OF_RANGE),
    (HADAMARD.replace("1.0", "6.0"), 0, "the reports must be 5-differentially private"),
    (HADAMARD.replace('version":1', 'version":2'), 0, "this client knows version 1 of"),
    (HADAMARD.replace("hadamard_response", "constructor"), 0, "this client knows version 1 of"),
    (local.SubsetSelection(k=5, epsilon=1.0).to_json(), 0, "this client knows version 1 of"),
    (json.dumps({"dpnoise.protocol": HADAMARD, "dpnoise.domain": ["a", "b"]}), "a", "the domain must have 15"),
    (json.dumps({"dpnoise.protocol": HADAMARD, "dpnoise.domain": ["a"] * 15}), "a", "the domain must have 15"),
    (json.dumps({"dpnoise.protocol": HADAMARD}), 0, "the document must have"),
    (json.dumps({"dpnoise.protocol": HADAMARD, "dpnoise.domain": [], "more": 0}), 0, "the document must have"),
    (json.dumps({"dpnoise.protocol": HADAMARD, "dpnoise.domain": list("abcdefghijklmno")}), "a", OTHER_DOMAIN),
    *((announced(domain), "red", message) for domain, message in WRONG_DOMAINS),
    *((COLOURS.to_json().replace("colour", text), 0, "the specification ") for text in HIDING),
    *(
        (specification.replace("{", f"{{{field},"), 0, "the specification must ")
        for field in UNKNOWN
        for specification in ALL
    ),
    (json.dumps(json.loads(HADAMARD)), 0, "the specification must be as it was announced"),
    (HADAMARD.replace("1.0", "1"), 0, "the specification must be as it was announced"),  # as JavaScript writes it
    (HADAMARD[:-1], 0, ""),
]


@needs_node
def test_the_client_refuses() -> None:
    options = {"maxEpsilon": 5}
    jobs = [
        ("messages", {"announcement": announcement, "values": [value], "options": options})
        for announcement, value, _ in REFUSED
    ]
    for answer, (_, _, message) in zip(in_node(*jobs), REFUSED, strict=True):
        assert answer["error"].startswith(message)


@needs_node
def test_the_command_of_the_client(tmp_path: Path) -> None:
    protocol, _ = CLIENTS["LocalHashing"]
    (tmp_path / "specification.json").write_text(protocol.to_json() + "\n", encoding="utf-8")

    def run(values: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(NODE), str(CLIENT), *arguments]
        return subprocess.run(command, cwd=tmp_path, input=values, capture_output=True, text=True, check=False)

    done = run("1\n8\n", "specification.json")
    assert (done.returncode, done.stderr) == (0, "")
    accumulator = protocol.accumulator()
    accumulator.add_messages(list(map(bytes.fromhex, done.stdout.split())))
    assert (accumulator.n, accumulator.rejected) == (2, 0)
    for values, arguments, message in (
        ("1\nsecret\n", ["specification.json"], "every line must be a value in JSON"),
        ("1\n19\n", ["specification.json"], "the value must be from 0 to 8"),
        ("1\n", [], "usage: node report.mjs ANNOUNCEMENT < VALUES"),
    ):
        done = run(values, *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", message + "\n")
