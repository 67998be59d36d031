"""Make the examples of docs/reference/wire_format.md, from what the library does; a test compares them with the page.

Run by ``python -m tests.vectors.make_wire_examples``.
"""

import json
import re
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np

from dpnoise import local
from dpnoise.hazmat import ScriptedRng
from tests.vectors import local_spec
from tests.vectors.make_local import PROTOCOLS, random_bytes

PAGE = Path(__file__).parents[2] / "docs/reference/wire_format.md"
BLOCK = re.compile(r"(?<=<!-- made by tests/vectors/make_wire_examples\.py: )(\w+) -->\n.*?(?=<!-- end -->)", re.DOTALL)

EXAMPLES: list[tuple[Any, Any]] = [
    (local.RandomizedResponse.coin_flips(), 1),
    (local.OptimizedUnaryEncoding(k=15, epsilon=1.0), 7),
    (local.GeneralizedRandomizedResponse(k=15, epsilon=1.0), 11),
    (local.LocalHashing(k=15, epsilon=1.0), 7),
    (local.HadamardResponse(k=15, epsilon=1.0), 13),
    (local.LaplaceMean(epsilon=1.0), -0.3),
]
"""One protocol of each kind of report that a client needs first, and a value."""
HASHING = EXAMPLES[3]
COLOURS = local.OptimizedUnaryEncoding(domain=["red", "green", "blue"], epsilon=2.0).about(
    question="favourite colour", period="2026-W48"
)
TEXTS = ["", "plum", "caf\u00e9", "cafe\u0301"]
SKETCH = local.CountMeanSketch(epsilon=2.0, rows=3, width=16, seed=1)
RAPPOR = local.Rappor(num_bloombits=16, num_hashes=2, num_cohorts=3, f=0.3, p=0.5, q=0.75)


def table(header: str, rows: list[tuple[Any, ...]]) -> str:
    """Return a table of Markdown."""
    names = header.split(" | ")
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def report_of(protocol: Any, value: Any) -> bytes:
    """Return the report that the library makes of a value with public random bytes."""
    given = np.array([value == 1]) if isinstance(protocol, local.RandomizedResponse) else [value]
    return bytes(protocol.perturb(given, rng=ScriptedRng(random_bytes(protocol.to_json(), 4096))).tobytes())


def message_of(protocol: Any, report: bytes) -> bytes:
    """Return the message that the library makes of a report."""
    (message,) = protocol.messages(np.frombuffer(report, np.uint8).reshape(1, -1))
    return bytes(message)


def drawn(protocol: Any, value: Any) -> dict[str, Any]:
    """Return what a client drew to get this report, with the report: it is read from the report's bytes."""
    spec, report = json.loads(protocol.to_json()), report_of(protocol, value)
    number = int.from_bytes(report, "little")
    found: dict[str, Any] = {"specification": protocol.to_json(), "protocol": spec["protocol"], "value": value}
    match spec["protocol"]:
        case "randomized_response":
            found["draws"] = {"answer": number}
        case "optimized_unary_encoding":
            found["draws"] = {"bits that are 1": [i for i in range(spec["k"]) if number >> i & 1]}
        case "generalized_randomized_response":
            found["draws"] = {"r": number}
        case "local_hashing":
            seed, told = divmod(number, spec["g"])
            a, b = divmod(seed, spec["prime"])
            found["draws"] = {"a": a, "b": b, "h": told}
        case "hadamard_response":
            column, told = divmod(number, 2)
            found["draws"] = {"j": column, "s": told}
        case "laplace_mean":
            u = int.from_bytes(random_bytes(protocol.to_json(), 8), "little") >> 1
            whole = 2**62 + int(abs(value) * 2**62) * (1 if value >= 0 else -1)
            position = (whole * (spec["k"] - 1) + u) // 2**63
            noise = number - spec["bound"] - (position - spec["unit"])
            found |= {"draws": {"u": u, "noise": noise}, "position": position}
    return found | {"report": report.hex(), "message": message_of(protocol, report).hex()}


def worked_message() -> str:
    """Return one message, field by field."""
    protocol, value = HASHING
    example, spec = drawn(protocol, value), json.loads(protocol.to_json())
    draws, message = example["draws"], bytes.fromhex(example["message"])
    (a, b, h), report, digest = draws.values(), message[12:], sha256(protocol.to_json().encode()).hexdigest()
    number = int.from_bytes(report, "little")
    residue = (a * value + b) % spec["prime"]
    own = local_spec.symbol(spec, a * spec["prime"] + b, value)
    fields = [
        (0, 2, message[:2], "`DP`"),
        (2, 1, message[2:3], "version 1"),
        (3, 1, message[3:4], f"protocol {message[3]}, `local_hashing`"),
        (4, 8, message[4:12], "id of the specification"),
        (12, len(report), report, f"report: {number}, little-endian"),
    ]
    rows = [(offset, length, f"`{part.hex(' ')}`", what) for offset, length, part, what in fields]
    return f"""\
A device receives these {len(protocol.to_json())} bytes:

```json
{protocol.to_json()}
```

Their SHA-256 is `{digest}`, and its first 8 bytes,
`{protocol.spec_id}`, are the id. The value is v = {value}. The device draws a = {a} and b = {b}. The hash of v is
floor({spec["g"]} (({a} · {value} + {b}) mod {spec["prime"]}) / {spec["prime"]}) = floor({spec["g"]} · {residue} / \
{spec["prime"]}) = {own}. It draws h = {h}{" as well" * (h == own)}. The report is the number
({a} · {spec["prime"]} + {b}) · {spec["g"]} + {h} = {number}. The largest possible report is {spec["prime"]}² · \
{spec["g"]} - 1 = {spec["prime"] ** 2 * spec["g"] - 1}, so it takes {len(report)} bytes. The message has \
{len(message)}:

{table("offset | length | bytes | field", rows)}"""


def labels() -> str:
    """Return the bytes that a digest of labels is made of, and a specification with it."""
    hashed = bytes(local_spec.labels_bytes([list(COLOURS.domain)]))
    digest = json.loads(COLOURS.to_json())["labels"]
    listed = ", ".join(f"`{label}`" for label in COLOURS.domain)
    return f"""\
Of {listed} it is `{digest}`, which begins the SHA-256 of these {len(hashed)} bytes:

```
{hashed.hex(" ")}
```

A specification with it has the id `{COLOURS.spec_id}`, and the bare digest
`{COLOURS.bare_digest.hex()}`:

```json
{COLOURS.to_json()}
```"""


def worked_reports() -> str:
    """Return what was drawn for reports of other kinds, and the reports."""
    rows = []
    for example in (drawn(*example) for example in EXAMPLES):
        told = ", ".join(f"{name}: {draw}" for name, draw in example["draws"].items())
        rows.append((f"`{example['protocol']}`", example["value"], told, f"`{example['report']}`"))
    spec, position = json.loads(example["specification"]), example["position"]
    noisy = position - spec["unit"] + example["draws"]["noise"]
    return f"""\
{table("`protocol` | value | drawn | report", rows)}

The last one in full: X = floor(0.3 · 2^62) = {int(0.3 * 2**62)}, and the position is
floor(((2^62 - X) · {spec["k"] - 1} + u) / 2^63) = {position}. Less `unit` that is {position - spec["unit"]},
and {noisy} with the noise; that is not clamped, and with `bound` added it is {noisy + spec["bound"]}."""


def noise_vectors() -> list[tuple[float, int, bytes, int]]:
    """Return epsilon, unit, random bytes and the noise that the algorithm of the page draws from them."""
    functions = page_functions(PAGE.read_text(encoding="utf-8"))
    vectors = []
    for epsilon in (32.0, 1.0, 0.1):
        unit = json.loads(local.LaplaceMean(epsilon=epsilon).to_json())["unit"]
        for seed in range(2):
            stream = Stream(random_bytes(f"noise {epsilon} {seed}", 4096))
            functions["random_bytes"] = stream
            noise = functions["noise"](epsilon, unit)
            vectors.append((epsilon, unit, stream.data[: stream.taken], noise))
    return vectors


class Stream:
    """Given bytes in the place of random ones."""

    def __init__(self, data: bytes) -> None:
        self.data, self.taken = data, 0

    def __call__(self, count: int) -> bytes:
        """Take the next bytes."""
        self.taken += count
        if self.taken > len(self.data):
            raise EOFError("no bytes are left")
        return self.data[self.taken - count : self.taken]


def page_functions(text: str) -> dict[str, Any]:
    """Return what the Python blocks of the page define."""
    functions: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        exec(code, functions)  # noqa: S102
    return functions


def gaussian_noise_vectors() -> list[tuple[int, bytes, int]]:
    """Return sigma, random bytes and the Gaussian noise that the algorithm of the page draws from them."""
    functions = page_functions(PAGE.read_text(encoding="utf-8"))
    vectors = []
    for sigma in (1, 8_859_794):
        for seed in range(2):
            stream = Stream(random_bytes(f"gaussian noise {sigma} {seed}", 4096))
            functions["random_bytes"] = stream
            noise = functions["discrete_gaussian"](sigma)
            vectors.append((sigma, stream.data[: stream.taken], noise))
    return vectors


def noise() -> str:
    """Return the vectors of noise."""
    return table(
        "`epsilon` | `unit` | random bytes | noise",
        [(epsilon, unit, f"`{taken.hex()}`", drawn_) for epsilon, unit, taken, drawn_ in noise_vectors()],
    )


def gaussian_noise() -> str:
    """Return the vectors of Gaussian noise."""
    return table(
        "`sigma` | random bytes | noise",
        [(sigma, f"`{taken.hex()}`", drawn_) for sigma, taken, drawn_ in gaussian_noise_vectors()],
    )


def stops() -> list[Fraction]:
    """Return the probabilities that `exp_coin(1, 2)` ends with k = 1, 2, 3, ..."""
    reached = [Fraction(1, 2**k * factorial(k)) for k in range(7)]
    return [one - other for one, other in pairwise(reached)]


def coin() -> str:
    """Return the probabilities of small cases."""
    probability = [float(np.tanh(0.5) * np.exp(-y)) for y in range(6)]
    return (
        table("k | " + " | ".join(map(str, range(1, 7))), [("probability", *stops())])
        + "\n\n"
        + table("y | " + " | ".join(map(str, range(6))), [("P(y) = P(-y)", *(f"{p:.12f}" for p in probability))])
    )


def texts() -> str:
    """Return the numbers that stand for texts."""
    sketch, rappor = (json.loads(protocol.to_json()) for protocol in (SKETCH, RAPPOR))
    rows = []
    for text in TEXTS:
        x = local_spec.fingerprint(text.encode())
        columns = [local_spec.column_of(sketch, row, x) for row in range(3)]
        bits = [i for i, bit in enumerate(local_spec.bloom_filter(rappor, 1, x)) if bit]
        shown = "".join(c if c.isascii() else f" U+{ord(c):04X}" for c in text)
        listed = (", ".join(map(str, numbers)) for numbers in (columns, bits))
        rows.append((shown or "(empty)", f"`{text.encode().hex(' ')}`" if text else "", x, *listed))
    header = "text | bytes | fingerprint | columns in rows 0, 1, 2 | bits of the Bloom filter in cohort 1"
    given = "The columns are of `seed` 1 and `width` 16, the bits of `num_hashes` 2 and `num_bloombits` 16:"
    return f"{given}\n\n{table(header, rows)}"


def specifications() -> str:
    """Return a specification of each protocol, and its id."""
    first: dict[str, Any] = {}
    for protocol in PROTOCOLS:
        first.setdefault(json.loads(protocol.to_json())["protocol"], protocol)
    lines = [f"{protocol.spec_id} {protocol.report_bytes} {protocol.to_json()}" for protocol in first.values()]
    return "```text\n" + "\n".join(lines) + "\n```"


def filled(page: str) -> str:
    """Return the page with its examples made again."""
    makers = (worked_message, labels, worked_reports, noise, gaussian_noise, coin, texts, specifications)
    named = {maker.__name__: maker for maker in makers}
    return BLOCK.sub(lambda block: f"{block[1]} -->\n{named[block[1]]()}\n", page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
