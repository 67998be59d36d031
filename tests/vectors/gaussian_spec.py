"""How private Gaussian noise is, by the formulas as they stand in the papers, with 50 digits or more."""

from __future__ import annotations

import mpmath
from mpmath import mpf


def digits(delta: float) -> int:
    """Give how many digits leave 50 when numbers near 1 are subtracted to get delta."""
    return 60 + max(0, int(-mpmath.log10(min(delta, 1 - delta))))


def continuous_delta(epsilon: float, sigma: mpf) -> mpf:
    """Balle and Wang (2018), Theorem 8, for a sensitivity of 1."""
    a, b = mpf(epsilon) * sigma, 1 / (2 * sigma)

    def tail(x: mpf) -> mpf:
        return mpmath.erfc(x / mpmath.sqrt(2)) / 2

    return tail(a - b) - mpmath.exp(epsilon) * tail(a + b)


def sum_from(start: int, sigma: mpf) -> mpf:
    """Sum exp(-k^2 / (2 sigma^2)) over k >= start."""

    def density(k: mpf) -> mpf:
        return mpmath.exp(-(mpf(k) ** 2) / (2 * sigma**2))

    if sigma < 100:
        # One term follows from the last one by two products, which cost less than an exponential.
        total, term, ratio, square = mpf(0), density(start), density(start + 1) / density(start), density(1) ** 2
        for _ in range(start, max(start, 0) + int(25 * sigma) + 30):
            total, term, ratio = total + term, term * ratio, ratio * square
        return total
    x = start / sigma
    total = sigma * mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(x / mpmath.sqrt(2)) + density(start) / 2
    for n in range(1, 60, 2):  # Euler and Maclaurin; hermite is the physicists' polynomial
        hermite = mpf(2) ** (-mpf(n) / 2) * mpmath.hermite(n, x / mpmath.sqrt(2))
        total += mpmath.bernoulli(n + 1) / mpmath.factorial(n + 1) * hermite / sigma**n * density(start)
    return total


def discrete_delta(epsilon: float, sigma: mpf, shift: int) -> mpf:
    """Canonne, Kamath and Steinke (2020), Theorem 7."""
    threshold = mpf(epsilon) * sigma**2 / shift - mpf(shift) / 2
    first = int(mpmath.floor(threshold)) + 1
    above, further = sum_from(first, sigma), sum_from(first + shift, sigma)
    return (above - mpmath.exp(epsilon) * further) / (sum_from(0, sigma) + sum_from(1, sigma))
