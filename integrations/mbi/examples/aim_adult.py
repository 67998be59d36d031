"""Make a model of the marginals of the UCI "Adult" data by AIM, with exact noise, and by AIM with NumPy's noise.

Run it with ``JAX_ENABLE_X64=1 python examples/aim_adult.py 20`` for 20 runs of each.

AIM begins with the marginals of single attributes. In each round it chooses the marginal that the model approximates
worst, measures it, and fits the model again; when a measurement taught it less than the noise of the measurement, the
rounds that follow get four times the budget. From McKenna, Mullins, Sheldon and Miklau (2022), "AIM: an adaptive and
iterative mechanism for differentially private synthetic data", algorithms 2 and 4.
"""

import itertools
import math
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import mbi
import numpy as np
from mbi.clique_utils import downward_closure
from mbi.junction_tree import hypothetical_model_size

import dpnoise_mbi as exact
from dpnoise import datasets
from dpnoise.accounting import Ledger, zcdp_epsilon, zcdp_rho

EPSILON = 1.0
DELTA = 1e-9
MEASURING = 0.9
"""The share of the budget for measurements; the rest is for choices."""
LARGEST_MODEL = 0.02
"""In megabytes."""
ROUNDS = 32
"""The most rounds. The paper takes 16 for each attribute."""

_floats = np.random.default_rng()


def adult() -> mbi.Dataset:
    """Return five attributes of 32,561 people; ages are in tens."""
    features, is_high, names = datasets.adult_incomes()
    marital = [number for number, name in enumerate(names) if name.startswith("marital_status")]
    columns = {
        "age": datasets.adult_ages() // 10,
        "marital": features[:, marital].argmax(axis=1),
        "sex": features[:, names.index("sex: Male")].astype(int),
        "occupation": datasets.adult_occupations()[0],
        "income": is_high.astype(int),
    }
    return mbi.Dataset(columns, mbi.Domain(columns, [10, len(marital), 2, 15, 2]))


def fit(domain: mbi.Domain, candidates: Sequence[Any], measurements: Sequence[Any], model: Any = None) -> Any:
    """Return the model that mbi fits to measurements, with the joint distribution as its only clique.

    What is not measured gets an infinite deviation, and several measurements of a clique become one: each call has
    arrays of the same shapes, so that JAX compiles one program for all.
    """
    combined = []
    for clique in [*candidates, domain.attributes]:
        same = [one for one in measurements if one.clique == clique]
        precision = sum(1 / one.stddev**2 for one in same)
        weighted = sum((one.noisy_measurement / one.stddev**2 for one in same), np.zeros(domain.size(clique)))
        deviation = 1 / math.sqrt(precision) if same else math.inf
        combined.append(mbi.LinearMeasurement(weighted / (precision or 1), clique, deviation))
    return mbi.estimation.MirrorDescent().estimate(domain, combined, iters=500, warm_start=model)


def aim(data: mbi.Dataset, workload: Sequence[Any], rho: float, measure: Any, choose: Any, rounds: int) -> Any:
    """Return a model for a workload of marginals, with a budget of rho and at most so many rounds."""
    candidates = downward_closure(workload)
    weights = {clique: sum(len({*clique} & {*query}) for query in workload) for clique in candidates}
    single = [clique for clique in candidates if len(clique) == 1]
    step = rho / rounds
    used = MEASURING * step * len(single)
    measurements = measure(data, single, rho=used)
    model = fit(data.domain, candidates, measurements)
    while used < rho:
        if rho - used <= 2 * step:
            step = rho - used
        used += step
        stddev, limit = 1 / math.sqrt(2 * MEASURING * step), LARGEST_MODEL * used / rho
        measured = [one.clique for one in measurements]
        small = {c: w for c, w in weights.items() if hypothetical_model_size(data.domain, [*measured, c]) <= limit}
        clique = choose(data, small, model, epsilon=math.sqrt(8 * (1 - MEASURING) * step), stddev=stddev)
        measurements += measure(data, [clique], rho=MEASURING * step)
        before, model = model, fit(data.domain, candidates, measurements, model)
        change = np.abs(model.project(clique).datavector() - before.project(clique).datavector()).sum()
        if change <= math.sqrt(2 / math.pi) * stddev * data.domain.size(clique):
            step *= 4
    return model


def measure_in_floats(data: mbi.Dataset, cliques: Sequence[Any], *, rho: float) -> list[mbi.LinearMeasurement]:
    """Add NumPy's noise to the counts of the host, as programs do; this is not private in floating point."""
    stddev = math.sqrt(len(cliques) / (2 * rho))
    counts = [np.asarray(data.project(clique).datavector()) for clique in cliques]
    noisy = [each + _floats.normal(0, stddev, each.size) for each in counts]
    return [mbi.LinearMeasurement(each, clique, stddev) for each, clique in zip(noisy, cliques, strict=True)]


def choose_in_floats(data: mbi.Dataset, candidates: dict, model: Any, *, epsilon: float, stddev: float) -> Any:
    """Choose by NumPy's generator and exponentials, as programs do."""
    scores = []
    for clique, weight in candidates.items():
        difference = np.asarray(data.project(clique).datavector() - model.project(clique).datavector())
        scores.append(weight * (np.abs(difference).sum() - math.sqrt(2 / math.pi) * stddev * difference.size))
    odds = np.exp(epsilon / (2 * max(candidates.values())) * (np.array(scores) - max(scores)))
    return [*candidates][_floats.choice(len(odds), p=odds / odds.sum())]


def error(data: mbi.Dataset, workload: Sequence[Any], model: Any) -> float:
    """Return the mean over the workload of the L1 distance of two marginals, as a share of the people."""
    pairs = ((data.project(query).datavector(), model.project(query).datavector()) for query in workload)
    return float(np.mean([np.abs(a - b).sum() for a, b in pairs])) / data.records


def main(runs: int) -> None:
    """Compare both noises in turns."""
    data, rho = adult(), zcdp_rho(epsilon=EPSILON, delta=DELTA)
    workload = list(itertools.combinations(data.domain.attributes, 3))
    names = ("dpnoise", "NumPy in floats")
    errors: dict[str, list[float]] = {name: [] for name in names}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(runs):
        # What AIM asks next, and at which cost, depends on earlier answers: the ledger is a filter for that.
        ledger = Ledger(":memory:", rho=rho)
        paid = (partial(exact.measure, spend=ledger.spend), partial(exact.choose, spend=ledger.spend))
        for name, way in zip(names, (paid, (measure_in_floats, choose_in_floats)), strict=True):
            start = time.perf_counter()
            # Parts of the budget in floats may add up to a little more than it.
            model = aim(data, workload, (1 - 1e-12) * rho, *way, rounds=ROUNDS)
            seconds[name].append(time.perf_counter() - start)
            errors[name].append(error(data, workload, model))
    print(f"{len(ledger.entries())} spends of the last run, {ledger.remaining.rho / rho:.1e} of its budget remains")
    print(f"epsilon = {zcdp_epsilon(rho, delta=DELTA):.4f}, delta = {DELTA}, {runs} runs, {len(workload)} marginals")
    for name in names:
        deviation = np.std(errors[name], ddof=1) if runs > 1 else math.nan
        print(f"{name}: error {np.mean(errors[name]):.4f} (± {deviation:.4f}), {np.median(seconds[name]):.1f} s a run")
    print(datasets.ADULT_ATTRIBUTION)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
