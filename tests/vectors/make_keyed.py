"""Write tests/vectors/keyed.json: draws of keyed noise. Run it as ``python -m tests.vectors.make_keyed``.

Existing vectors must never change: a change of the samplers' words takes another label in rng/noise_key.rs.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpnoise import hazmat, keyed
from tests.vectors.local_spec import crc32c

KEY = bytes(range(32))

BLOCK = 4096

# Distribution, scale, and the exponent of the granularity or the radius.
DISTRIBUTIONS: list[tuple[str, str, int | None, int | None]] = [
    *(
        (kind, scale, None, None)
        for kind in ("discrete_laplace", "geometric")
        for scale in ("1/1000", "3/10", "10", "1000000")
    ),
    *(("discrete_gaussian", scale, None, None) for scale in ("1/1000", "3", "30", "1000000007/3")),
    *(
        (kind, scale, exponent, None)
        for kind in ("laplace", "gaussian")
        for scale, exponent in (("1", -20), ("3/8", -40))
    ),
    *((kind, "10", None, radius) for kind in ("discrete_laplace", "discrete_gaussian") for radius in (15, 70)),
    ("discrete_laplace", "1000000", None, 2_000_000),
]

# The first sample, and how many there are: in a block, whole blocks, across blocks, and in the last one.
RANGES = [(0, 3), (0, 2 * BLOCK), (4090, 5000), ((BLOCK << 32) - 10, 10)]


def ticket(number: int) -> bytes:
    """Give the ticket of a step, with a nonce that is known."""
    fingerprint = keyed.NoiseKey.from_secret_bytes(KEY).fingerprint
    nonce = hashlib.sha256(b"nonce %d" % number).digest()[:16]
    body = b"DPNT\1" + fingerprint + number.to_bytes(8, "little") + nonce + f"domain {number % 3}".encode()
    return body + crc32c(body).to_bytes(4, "little")


def vectors() -> list[dict[str, Any]]:
    """Give all draws."""
    key, made = keyed.NoiseKey.from_secret_bytes(KEY), []
    for distribution, scale, exponent, radius in DISTRIBUTIONS:
        for start, size in RANGES:
            name = ticket(len(made))
            granularity = None if exponent is None else 2.0**exponent
            samples = hazmat.regenerate(
                key,
                keyed.Ticket.from_bytes(name),
                distribution,  # type: ignore[arg-type]
                Fraction(scale),
                size=size,
                start=start,
                granularity=granularity,
                radius=radius,
            )
            made.append(
                {
                    "ticket": name.hex(),
                    "distribution": distribution,
                    "scale": scale,
                    "exponent": exponent,
                    **({} if radius is None else {"radius": radius}),
                    "start": start,
                    "size": size,
                    "first": samples[:4].tolist(),
                    "sha256": hashlib.sha256(samples.tobytes()).hexdigest(),
                }
            )
    return made


def main() -> None:
    """Write the file."""
    path = Path(__file__).with_name("keyed.json")
    draws = ",\n".join(map(json.dumps, vectors()))
    path.write_text(f'{{"key": "{KEY.hex()}", "draws": [\n{draws}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
