"""Correlated noise as a short, slow specification, for Python ints and, as long as they fit, for int64 arrays.

It is written from docs/proofs/correlated_noise.md and shares no code with the implementation. Numbers are in units of
the fine grid of the noise, 2**-bits of the grid of the gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

BITS = 12

Rounding = Callable[..., Any]


def half_up(v: Any, bits: int = BITS) -> Any:
    """R(v) = floor(v / 2**bits + 1/2)."""
    return (v + (1 << bits - 1)) >> bits


def half_to_even(v: Any, bits: int = BITS) -> Any:
    """A planted fault: it does not commute with multiples of 2**bits."""
    floor = v >> bits
    rest = v - (floor << bits)
    return floor + (2 * rest + (floor & 1) > 1 << bits)


def past(numerators: Sequence[int], w: Sequence[Any], t: int) -> Any:
    """Give the sum over j >= 1 of m_j w_(t-j), the argument of R."""
    return sum(numerators[j] * w[t - j] for j in range(1, min(t + 1, len(numerators))))


def noise(numerators: Sequence[int], z: Sequence[Any], rounding: Rounding = half_up, bits: int = BITS) -> list[Any]:
    """Give w_0, ..., w_(n-1), what the steps add, from the fresh noise of the steps."""
    w: list[Any] = []
    for t, fresh in enumerate(z):
        w.append(fresh - rounding(past(numerators, w, t), bits))
    return w


def fresh_noise(numerators: Sequence[int], w: Sequence[Any], rounding: Rounding = half_up) -> list[Any]:
    """Give z, the inverse of `noise`."""
    return [w[t] + rounding(past(numerators, w, t)) for t in range(len(w))]


def query(
    numerators: Sequence[int], sums: Sequence[Any], x: Sequence[Any], rounding: Rounding = half_up, bits: int = BITS
) -> Any:
    """Give q_t of the release x_t = q_t + z_t after the releases x: a function of the data and of what was released.

    ``sums`` are g_0, ..., g_t, one more than the releases.
    """
    history = [release - own for release, own in zip(x, sums, strict=False)]
    return sums[-1] - rounding(past(numerators, [*history, 0], len(x)), bits)


def shifts(numerators: Sequence[int], rows: Sequence[Any]) -> list[Any]:
    """Give the vectors by which neighbours' q_t differ: the sum over j >= 0 of m_j u_(t-j)."""
    return [numerators[0] * rows[t] + past(numerators, rows, t) for t in range(len(rows))]
