"""Draw the pictures of the guide: python examples/guide_pictures.py docs/guide (the default is this folder).

The histogram and the means are of one random run, and the errors of protocols of a hundred; the other pictures are
computed from formulas.
"""

import sys
from pathlib import Path

import _curves
import numpy as np

from dpnoise import DiscreteLaplace, Laplace, Table, datasets, local, plots
from dpnoise.accounting import Accountant, compose_advanced, compose_sequential


def estimated_histogram(path: Path) -> None:
    """Draw the occupations that 32,561 people report, with intervals, and the truth."""
    occupations, names = datasets.adult_occupations()
    protocol = local.OptimizedUnaryEncoding(k=len(names), epsilon=1.0)
    estimate = protocol.estimate(protocol.perturb(occupations))
    series = {"local, epsilon = 1": (estimate.counts, estimate.lower, estimate.upper)}
    with _curves.picture(path, height=6.5) as axes:
        plots.histogram(names, series, true_counts=np.bincount(occupations), ax=axes)
        axes.locator_params(axis="x", nbins=6)


def local_and_central_errors(path: Path) -> None:
    """Draw the error of one count relative to the number of people, by that number."""
    people = np.geomspace(100, 1e8, 25)
    protocol = local.OptimizedUnaryEncoding(k=15, epsilon=1.0)
    ratio = np.exp(-1 / DiscreteLaplace(epsilon=1.0, sensitivity=1).scale)  # of the probabilities of n and n + 1
    central = np.sqrt(2 * ratio) / (1 - ratio)
    with _curves.picture(path) as axes:
        axes.plot(people, [protocol.variance(n=int(n), frequency=0) ** 0.5 / n for n in people], label="local")
        axes.plot(people, central / people, label="central")
        axes.set(xscale="log", yscale="log", xlabel="people", ylabel="error / people")
        axes.grid(color="#dddddd")
        axes.legend(frameon=False)


def errors_of_protocols(path: Path) -> None:
    """Draw the errors of the counts of 15 occupations, measured in 100 collections each, by epsilon."""
    occupations, _ = datasets.adult_occupations()
    protocols = ["grr", "sue", "oue", "lh", "hr", "pgr", "ss", "the", "she"]
    comparison = local.compare(protocols, [0.5, 1, 1.5, 2, 3, 4, 5], occupations)
    with _curves.picture(path, height=6.5) as axes:
        comparison.plot(ax=axes)


def composition(path: Path) -> None:
    """Draw what many Laplace releases with epsilon = 0.1 each cost together, at delta = 1e-6."""
    each = Laplace(epsilon=0.1)
    numbers = range(20, 301, 20)
    curves = {
        "compose_sequential": [compose_sequential([each.cost] * n).epsilon for n in numbers],
        "compose_advanced": [compose_advanced(each.cost, n, delta=1e-6).epsilon for n in numbers],
        "Accountant": [Accountant().compose(each, n).epsilon(1e-6) for n in numbers],
    }
    with _curves.picture(path) as axes:
        for label, epsilons in curves.items():
            axes.plot(numbers, epsilons, linewidth=2, label=label)
        axes.set(xlabel="releases", ylabel="epsilon of all together")
        axes.grid(color="#dddddd")
        axes.legend(frameon=False)


def mean_spend(path: Path) -> None:
    """Draw what 5,000 visits cost on average in four regions, of users who have up to a hundred visits."""
    generator, regions = np.random.default_rng(1), ["North", "South", "East", "West"]
    visits = {
        "user": (2_000 * generator.random(5_000) ** 2).astype(int),
        "region": generator.choice(regions, 5_000, p=[0.4, 0.3, 0.2, 0.1]),
        "spend": generator.gamma(2, 30, 5_000),
    }
    table = Table(visits, person="user", rows=3).by("region", keys=regions)
    with _curves.picture(path, height=2.6) as axes:
        table.mean("spend", bounds=(0, 200), epsilon=0.5).plot(ax=axes)


def main() -> None:
    """Draw all."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    for draw in (estimated_histogram, local_and_central_errors, errors_of_protocols, composition, mean_spend):
        path = folder / f"{draw.__name__}.svg"
        draw(path)
        print(path)
    print(datasets.ADULT_ATTRIBUTION)


if __name__ == "__main__":
    main()
