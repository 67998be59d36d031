"""Release the scale of data without bounds: how often there is an answer, and how far off it is.

Run it with ``python examples/scale_of_data.py [TRIES]``; it needs nothing but dpnoise itself, and prints Markdown.
"""

import math
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpnoise import datasets, stability

Floats = NDArray[np.float64]

EPSILONS = (0.25, 1.0, 4.0, 16.0)
DELTA = 1e-6
SIZES = (100, 1_000, 10_000, 100_000)

# What is simulated is no secret, so that NumPy's own generator will do.
RNG = np.random.default_rng()

SIMULATED: dict[str, Callable[[int], Floats]] = {
    "normal": lambda n: RNG.normal(size=n),
    "lognormal": lambda n: RNG.lognormal(size=n),
    "Cauchy": lambda n: RNG.standard_cauchy(n),
    "Pareto, shape 1": lambda n: RNG.pareto(1.0, n),
}


def interquartile_range(x: Floats) -> float:
    """Give the exact range, which is not private."""
    first, third = (np.ceil([x.size / 4, 3 * x.size / 4]) - 1).astype(int)
    ordered = np.partition(x, (first, third))
    return float(ordered[third] - ordered[first])


def interval_is_released(x: Floats, epsilon: float) -> bool:
    """Spend the same on the two intervals that the range is in: each to within a factor of 2, and without noise."""
    distances = [stability.iqr_distance(x, discretization) for discretization in (1, 2)]
    stable = stability.StableValue(epsilon=epsilon / 2, delta=DELTA / 2)
    return any(stable.release((True, distance - 1)) for distance in distances)


def cells(draw: Callable[[], Floats], tries: int) -> str:
    """Give the cells of a row."""
    ratios: dict[float, list[float]] = {epsilon: [] for epsilon in EPSILONS}
    intervals = dict.fromkeys(EPSILONS, 0)
    for _ in range(tries):
        x = draw()
        exact = interquartile_range(x)
        for epsilon in EPSILONS:
            released = stability.StableScale(epsilon=epsilon, delta=DELTA).release(x)
            if released is not None:
                ratios[epsilon].append(released / exact)
            intervals[epsilon] += interval_is_released(x, epsilon)
    return " | ".join(cell(np.array(ratios[epsilon]), intervals[epsilon], tries) for epsilon in EPSILONS)


def cell(ratios: Floats, intervals: int, tries: int) -> str:
    """Say how often the range was released, its median relative error and factor, and how often an interval was."""
    text = percent(ratios.size / tries)
    if ratios.size:
        text += f", {np.median(np.abs(ratios - 1)):.2g}, {np.exp2(np.median(np.abs(np.log2(ratios)))):.3g}"
    return f"{text}; {percent(intervals / tries)}"


def cell_of_base(n: int, epsilon: float, base: float, tries: int) -> str:
    """Say of normal data how often the range was released, and its factor in half and in 95 % of all releases."""
    scale = stability.StableScale(epsilon=epsilon, delta=DELTA, base=base)
    simulated = (RNG.normal(size=n) for _ in range(tries))
    released = [(value, interquartile_range(x)) for x in simulated if (value := scale.release(x)) is not None]
    text = percent(len(released) / tries)
    if released:
        half, most = np.exp(np.quantile([abs(math.log(value / exact)) for value, exact in released], [0.5, 0.95]))
        text += f", {half:.3g}, {most:.3g}"
    return text


def print_bases(tries: int) -> None:
    """Print the table of both bases."""
    ways = [(epsilon, name) for epsilon in (1.0, 4.0) for name in ("2", "1 + 1/ln n")]
    print(f"\n{tries} tries with normal data: released, factor in half and in 95 % of all releases\n")
    print("| n | 1 + 1/ln n | " + " | ".join(f"ε = {epsilon:g}, base {name}" for epsilon, name in ways) + " |")
    print("| --- " * (2 + len(ways)) + "|")
    for n in (300, 1_000, 3_000, *SIZES[2:]):
        small = 1 + 1 / math.log(n)
        found = [cell_of_base(n, epsilon, 2.0 if name == "2" else small, tries) for epsilon, name in ways]
        print(f"| {n:,} | {small:.3f} | {' | '.join(found)} |")


def percent(share: float) -> str:
    """Write a share with three digits."""
    return f"{100 * share:.3g} %"


def main() -> None:
    """Print the table."""
    tries = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print(f"{tries} tries: released, median relative error, median factor; interval released\n")
    print("| data | n | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " |")
    print("| --- " * (2 + len(EPSILONS)) + "|")
    for name, column in (("age", datasets.adult_ages()), ("hours per week", datasets.adult_hours_per_week())):
        x = column.astype(np.float64)
        print(f"| Adult, {name} | {x.size:,} | {cells(lambda x=x: x, tries)} |")
    for name, simulate in SIMULATED.items():
        for n in SIZES:
            print(f"| {name} | {n:,} | {cells(lambda simulate=simulate, n=n: simulate(n), tries)} |")
    print(f"\n{datasets.ADULT_ATTRIBUTION}")
    print_bases(tries)


if __name__ == "__main__":
    main()
