"""The noise that arrives in measurements for mbi, and the choices, against their laws; planted faults are found."""

import math

import mbi
import numpy as np
import pytest
from host_tests.two_samples import ALARM, FEW, N
from scipy import stats

import dpnoise
import dpnoise_mbi as ours
from dpnoise import hazmat

# One marginal has as many numbers.
N = max(N, 1_000_000)
CLIQUES = [("cell",)]
# Every tenth cell has a row.
DATA = mbi.Dataset({"cell": np.arange(0, N, 10)}, mbi.Domain(["cell"], [N]))
COUNTS = np.arange(N) % 10 == 0
STDDEV = 2.5


def fits(found, odds):
    """Say whether whole numbers from 0 have a law, whose rare values are taken together."""
    expected = np.asarray(odds) / np.sum(odds) * len(found)
    counts = np.bincount(found, minlength=len(expected))
    common = expected >= 50
    pairs = [np.append(each[common], each[~common].sum()) for each in (counts, expected)]
    kept = pairs[1] > 0
    return stats.chisquare(pairs[0][kept], pairs[1][kept]).pvalue > ALARM


def findings(measure):
    """Name what is wrong with measurements of a standard deviation of `STDDEV`."""
    first, second = (measure(DATA, CLIQUES, rho=1 / (2 * STDDEV**2))[0] for _ in range(2))
    noise = np.asarray(first.noisy_measurement) - COUNTS
    wrong = set()
    if not math.isclose(first.stddev, STDDEV):
        wrong.add("stddev")
    if np.array_equal(first.noisy_measurement, second.noisy_measurement):
        wrong.add("repeated")
    if not np.array_equal(noise, np.rint(noise)):
        return {*wrong, "not whole"}
    most = 60
    law = [math.exp(-(n**2) / (2 * STDDEV**2)) for n in range(-most, most + 1)]
    if not fits(np.clip(noise, -most, most).astype(int) + most, law):
        wrong.add("law")
    return wrong


def with_less_noise(data, cliques, *, rho):
    found = ours.measure(data, cliques, rho=rho / 0.9**2)
    return [mbi.LinearMeasurement(one.noisy_measurement, one.clique, STDDEV) for one in found]


def with_a_seed(data, cliques, *, rho):
    return ours.measure(data, cliques, rho=rho, rng=hazmat.SeededRng(1))


def with_a_float_sum(data, cliques, *, rho):
    noise = np.random.default_rng().normal(0, 1 / math.sqrt(2 * rho), N)
    return [mbi.LinearMeasurement(np.asarray(data.project(cliques[0]).datavector()) + noise, cliques[0], STDDEV)]


def test_the_noise_in_a_measurement_has_its_law():
    assert findings(ours.measure) == set()


@pytest.mark.parametrize(
    ("fault", "found"),
    [(with_less_noise, {"law"}), (with_a_seed, {"repeated"}), (with_a_float_sum, {"not whole"})],
)
def test_faults_of_the_noise_are_found(fault, found):
    assert findings(fault) == found


ERRORS = {("a",): 0, ("b",): 2, ("c",): 5}


class Model:
    """A model with these errors on a data set without rows."""

    def __init__(self, found=0):
        self.found = found

    def project(self, clique):
        return Model(ERRORS[clique])

    def datavector(self):
        return np.array([self.found])


def choices():
    data = mbi.Dataset({name: np.zeros(0, int) for name in "abc"}, mbi.Domain("abc", [1, 1, 1]))
    listed = list(ERRORS)
    return np.array([listed.index(ours.choose(data, listed, Model(), epsilon=0.5)) for _ in range(FEW)])


def law_of_choices(coefficient):
    return [math.exp(coefficient * 0.5 * error) for error in ERRORS.values()]


def test_choices_have_the_law_of_the_exponential_mechanism():
    assert fits(choices(), law_of_choices(1 / 2))


def test_choices_for_a_quarter_of_their_cost_are_found(monkeypatch):
    host = dpnoise.Exponential
    monkeypatch.setattr(dpnoise, "Exponential", lambda **given: host(**given, monotonic=True))
    found = choices()
    assert not fits(found, law_of_choices(1 / 2))
    assert fits(found, law_of_choices(1))
