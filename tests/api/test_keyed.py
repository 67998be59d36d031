"""Keyed noise: what brings it back, what gives other noise, and what is refused before anything is drawn."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from refusals import refuses

from dpnoise import ParameterError, hazmat, keyed, samplers

KEY = keyed.NoiseKey.from_secret_bytes(bytes(range(32)))
KINDS: list[tuple[keyed.Distribution, float]] = [
    ("discrete_laplace", 10.0),
    ("discrete_gaussian", 10.0),
    ("geometric", 10.0),
    ("laplace", 0.3),
    ("gaussian", 0.3),
]


@pytest.mark.parametrize(("distribution", "scale"), KINDS)
def test_noise_comes_back_in_any_parts(distribution: keyed.Distribution, scale: float) -> None:
    ticket = KEY.ticket(1, domain="parts")
    whole = KEY.draw(ticket, distribution, scale, size=(4, 5000), threads=2).ravel()
    assert whole.dtype == getattr(samplers, distribution)(scale, size=1).dtype
    other_place = keyed.NoiseKey.from_secret_bytes(KEY.to_secret_bytes())
    received = keyed.Ticket.from_bytes(ticket.to_bytes())
    for start, end in ((0, 20_000), (0, 1), (4095, 4098), (4096, 8192), (19_999, 20_000), (7, 7)):
        part = hazmat.regenerate(other_place, received, distribution, scale, size=end - start, start=start, threads=1)
        assert np.array_equal(part, whole[start:end])
    out = np.empty(20_000, whole.dtype)
    assert hazmat.regenerate(KEY, ticket, distribution, scale, size=20_000, out=out) is out
    assert np.array_equal(out, whole)


def agreement(x: NDArray[Any], y: NDArray[Any]) -> float:
    return float(np.abs(np.corrcoef(x, y)[0, 1]))


def test_everything_that_is_bound_gives_independent_noise() -> None:
    """Correlations of 100,000 samples: 7 standard errors, which are exceeded with a probability below 1e-11."""
    n, bound = 100_000, 7 / np.sqrt(100_000)
    ticket = KEY.ticket(1)
    noise = KEY.draw(ticket, "discrete_gaussian", 1000.0, size=n)
    others = {
        "step": KEY.draw(KEY.ticket(2), "discrete_gaussian", 1000.0, size=n),
        "nonce": KEY.draw(KEY.ticket(1), "discrete_gaussian", 1000.0, size=n),
        "domain": KEY.draw(KEY.ticket(1, domain="x"), "discrete_gaussian", 1000.0, size=n),
        "scale": hazmat.regenerate(KEY, ticket, "discrete_gaussian", 2000.0, size=n),
        "exact scale": hazmat.regenerate(KEY, ticket, "discrete_gaussian", Fraction(1000) + Fraction(1, 2**60), size=n),
        "distribution": hazmat.regenerate(KEY, ticket, "discrete_laplace", 1000.0, size=n),
        "grid": hazmat.regenerate(KEY, ticket, "gaussian", 1000.0, size=n, granularity=1.0),
        "place": hazmat.regenerate(KEY, ticket, "discrete_gaussian", 1000.0, size=n, start=n),
    }
    for name, other in others.items():
        assert agreement(noise, other) < bound, name
    # Positive control: two scales from the same words, as they would be without the binding.
    scales = (1000, Fraction(1000) + Fraction(1, 2**60))
    one, other = (samplers.discrete_gaussian(scale, size=n, rng=hazmat.SeededRng(1)) for scale in scales)
    assert agreement(one, other) > 0.9


def test_a_ticket_releases_once() -> None:
    ticket = KEY.ticket(3)
    assert ticket.is_fresh
    for bad in ({"scale": -1.0}, {"size": -1}, {"start": 2**44}, {"start": -1}, {"granularity": 0.3}, {"threads": 0}):
        arguments: dict[str, Any] = {"distribution": "laplace", "scale": 1.0, "size": 2, **bad}
        with pytest.raises(ParameterError):
            KEY.draw(ticket, **arguments)
        assert ticket.is_fresh  # nothing was drawn
    first = KEY.draw(ticket, "laplace", 1.0, size=2)
    assert not ticket.is_fresh
    again = "ticket must be a new ticket, of which nothing has been released"
    refuses(ParameterError, again, lambda: KEY.draw(ticket, "laplace", 1.0, size=2))
    assert np.array_equal(hazmat.regenerate(KEY, ticket, "laplace", 1.0, size=2), first)
    regenerated = KEY.ticket(3)
    hazmat.regenerate(KEY, regenerated, "laplace", 1.0, size=2)
    refuses(ParameterError, again, lambda: KEY.draw(regenerated, "laplace", 1.0, size=2))
    for copied in (
        keyed.Ticket.from_bytes(KEY.ticket(4).to_bytes()),
        pickle.loads(pickle.dumps(KEY.ticket(4))),  # noqa: S301
        copy.deepcopy(KEY.ticket(4)),
        copy.copy(KEY.ticket(4)),
    ):
        refuses(ParameterError, again, lambda copied=copied: KEY.draw(copied, "laplace", 1.0, size=2))  # type: ignore[misc]


def test_tickets_are_public_names() -> None:
    ticket = KEY.ticket(2**64 - 1, domain="layer ä")
    assert (ticket.step, ticket.domain, len(ticket.nonce)) == (2**64 - 1, "layer ä", 16)
    assert pickle.loads(pickle.dumps(ticket)) == ticket  # noqa: S301
    assert keyed.Ticket.from_bytes(ticket.to_bytes()) == ticket
    assert len({ticket, KEY.ticket(2**64 - 1, domain="layer ä")}) == 2
    assert ticket.nonce.hex() in repr(ticket)
    for step in (-1, 2**64):
        refuses(ParameterError, "step must be an integer from 0 to 2**64 - 1", lambda step=step: KEY.ticket(step))  # type: ignore[misc]
    refuses(TypeError, "step must be an int", lambda: KEY.ticket(1.5))  # type: ignore[arg-type]
    refuses(TypeError, "domain must be a str, got bytes", lambda: KEY.ticket(1, domain=b"x"))  # type: ignore[arg-type]
    refuses(ParameterError, "domain must be text that UTF-8 can encode", lambda: KEY.ticket(1, domain="\ud800"))
    for own in ("dpnoise.", "dpnoise.sgd.CorrelatedGradient"):
        message = f'domain must be one that does not begin with "dpnoise.", got "{own}"'
        refuses(ParameterError, message, lambda own=own: KEY.ticket(0, domain=own))  # type: ignore[misc]
    refuses(TypeError, "ticket must be bytes, got str", lambda: keyed.Ticket.from_bytes("a"))  # type: ignore[arg-type]
    refuses(TypeError, "secret must be bytes, got str", lambda: keyed.NoiseKey.from_secret_bytes("a"))  # type: ignore[arg-type]
    refuses(
        ParameterError, "domain must be at most 1024 bytes, got 1026 bytes", lambda: KEY.ticket(1, domain="ä" * 513)
    )
    damaged = bytearray(ticket.to_bytes())
    damaged[20] ^= 1
    refuses(ParameterError, "it is damaged", lambda: keyed.Ticket.from_bytes(bytes(damaged)))
    refuses(ParameterError, "not a ticket", lambda: keyed.Ticket.from_bytes(b""))
    refuses(TypeError, "make one by NoiseKey.ticket()", keyed.Ticket)


def test_keys_are_secret() -> None:
    key = keyed.NoiseKey.generate()
    assert key.to_secret_bytes() != keyed.NoiseKey.generate().to_secret_bytes()
    assert keyed.NoiseKey.from_secret_bytes(key.to_secret_bytes()) == key != KEY
    assert len({key, KEY, keyed.NoiseKey.from_secret_bytes(KEY.to_secret_bytes())}) == 2
    assert repr(key) == f"<NoiseKey {key.fingerprint.hex()}>"
    for copying in (pickle.dumps, copy.copy, copy.deepcopy):
        refuses(TypeError, "a NoiseKey cannot be pickled", lambda copying=copying: copying(key))  # type: ignore[misc]
    for length in (0, 16, 31, 33):
        secret = bytes(length)
        message = f"secret must be 32 bytes, got {length} bytes"
        refuses(ParameterError, message, lambda secret=secret: keyed.NoiseKey.from_secret_bytes(secret))  # type: ignore[misc]
    refuses(TypeError, "make one by NoiseKey.generate()", keyed.NoiseKey)
    refuses(
        ParameterError, "ticket must be a ticket of this key", lambda: key.draw(KEY.ticket(1), "laplace", 1.0, size=2)
    )


def test_wrong_arguments_are_named() -> None:
    ticket: Any = KEY.ticket(1)
    draw: Any = partial(KEY.draw, size=2)
    refuses(ParameterError, "distribution must be one of 'discrete_laplace'", lambda: draw(ticket, "cauchy", 1.0))
    refuses(ParameterError, "distribution must be one of", lambda: draw(ticket, ["laplace"], 1.0))
    refuses(
        ParameterError,
        "granularity must be None for 'geometric'",
        lambda: draw(ticket, "geometric", 1.0, granularity=1.0),
    )
    refuses(TypeError, "ticket must be a Ticket, got bytes", lambda: draw(b"", "laplace", 1.0))
    regenerate: Any = hazmat.regenerate
    refuses(TypeError, "key must be a NoiseKey, got bytes", lambda: regenerate(b"", ticket, "laplace", 1.0, size=2))
    refuses(TypeError, "out must", lambda: draw(ticket, "laplace", 1.0, out=np.empty(2, np.int64)))
    refuses(TypeError, "start must be an int", lambda: draw(ticket, "laplace", 1.0, start=1.0))
    assert ticket.is_fresh
