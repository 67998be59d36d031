"""Collect three attributes of 32,561 people at once: each person reports one of them, or all with a third of epsilon.

Run it with ``python examples/adult_attributes.py``; it needs nothing but dpnoise itself.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpnoise import datasets, local

EPSILON = 1.0
COLLECTIONS = 100

AGE_BANDS = ["17-24", "25-34", "35-44", "45-54", "55-64", "65-74", "75-84", "85+"]


def adult() -> dict[str, list[str]]:
    """Return the occupation, age band and income of each person."""
    codes, occupations = datasets.adult_occupations()
    is_high = datasets.adult_incomes()[1]
    return {
        "occupation": [occupations[code] for code in codes],
        "age": [AGE_BANDS[max(age - 15, 0) // 10] for age in datasets.adult_ages()],
        "income": [">50K" if high else "<=50K" for high in is_high],
    }


def protocols(epsilon: float) -> dict[str, local.FrequencyProtocol]:
    """Return the most accurate protocol for each attribute, as ``local.plan_attributes`` finds it."""
    return {
        "occupation": local.SubsetSelection(domain=datasets.adult_occupations()[1], epsilon=epsilon),
        "age": local.SubsetSelection(domain=AGE_BANDS, epsilon=epsilon),
        "income": local.RandomizedResponse(domain=["<=50K", ">50K"], epsilon=epsilon),
    }


def errors(
    protocol: local.AttributesProtocol, people: Mapping[str, list[str]], truth: Mapping[str, NDArray[np.float64]]
) -> dict[str, tuple[float, float, float]]:
    """Return for each attribute the observed and predicted errors of counts, and the mean square of z-scores."""
    n = len(people["occupation"])
    squares: dict[str, list[NDArray[np.float64]]] = {name: [] for name in truth}
    scores: dict[str, list[NDArray[np.float64]]] = {name: [] for name in truth}
    for _ in range(COLLECTIONS):
        for name, estimate in protocol.estimate(protocol.perturb(people)).items():
            squares[name].append((estimate.counts - truth[name]) ** 2)
            scores[name].append(((estimate.counts - truth[name]) / estimate.standard_errors) ** 2)
    found = {}
    for name, counts in truth.items():
        predicted = np.mean([protocol.variance(name, n, count / n) for count in counts])
        found[name] = (float(np.mean(squares[name]) ** 0.5), float(predicted**0.5), float(np.mean(scores[name])))
    return found


def main() -> None:
    """Print the errors of both beside those that theory predicts."""
    people = adult()
    asked = {
        "Sampled": local.Sampled(attributes=protocols(EPSILON)),
        "Split": local.Split(attributes=protocols(EPSILON / 3)),
    }
    truth = {
        name: np.array([people[name].count(value) for value in protocol.domain or ()], np.float64)
        for name, protocol in protocols(EPSILON).items()
    }
    print(f"{COLLECTIONS} collections; errors of counts are root mean squares, in people")
    print(f"{'':<20}{'attribute':<12}{'error':>8}{'theory':>8}{'z squared':>11}")
    for kind, protocol in asked.items():
        for name, (observed, predicted, score) in errors(protocol, people, truth).items():
            title = f"{kind}, {protocol.epsilon:.4f}"
            print(f"{title:<20}{name:<12}{observed:>8.1f}{predicted:>8.1f}{score:>11.3f}")
    print(datasets.ADULT_ATTRIBUTION)


if __name__ == "__main__":
    main()
