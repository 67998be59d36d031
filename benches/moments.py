"""The moments that samples must have: how a benchmark tells a fast wrong answer."""

from __future__ import annotations

from typing import Any

import numpy as np

Moments = tuple[float, float]
"""The mean and the mean square."""

STANDARD_ERRORS = 8


def discrete_laplace(scale: float) -> Moments:
    return 0, 2 * np.exp(-1 / scale) / np.expm1(-1 / scale) ** 2


def discrete_gaussian(sigma: float) -> Moments:
    if sigma > 5:
        return 0, sigma**2  # but for a relative error below exp(-2 pi^2 25)
    x = np.arange(-60, 61)
    density = np.exp(-(x**2) / (2 * sigma**2))
    return 0, (x**2 * density).sum() / density.sum()


def skellam(mu: float) -> Moments:
    return 0, 2 * mu


def staircase_of_20(epsilon: float) -> Moments:
    x = np.arange(-40_000, 40_001)
    density = np.exp(-epsilon * ((np.abs(x) + 15) // 20))
    return 0, (x**2 * density).sum() / density.sum()


def share_of_10(scale: float) -> Moments:
    mean, mean_square = discrete_laplace(scale)
    return mean, mean_square / 10


def geometric(scale: float) -> Moments:
    q, p = np.exp(-1 / scale), -np.expm1(-1 / scale)
    return q / p, q * (1 + q) / p**2


def geometric_from_one(scale: float) -> Moments:
    mean, mean_square = geometric(scale)
    return mean + 1, mean_square + 2 * mean + 1


def laplace(scale: float) -> Moments:
    return 0, 2 * scale**2


def normal(sigma: float) -> Moments:
    return 0, sigma**2


def bernoulli(p: float) -> Moments:
    return p, p


def check(samples: Any, expected: Moments) -> None:
    """Refuse samples whose mean or mean square is off by eight standard errors."""
    x = np.asarray(samples, np.float64)
    for powers, moment in zip((x, x**2), expected, strict=True):
        tolerance = STANDARD_ERRORS * powers.std() / np.sqrt(x.size)
        assert abs(powers.mean() - moment) <= tolerance + 1e-12, f"{powers.mean()} where {moment} is expected"
