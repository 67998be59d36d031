"""Other people's testers of differential privacy on our mechanisms: the tables of docs/benchmarks/judges.md.

``python -m benches.judges FOLDER [JUDGE ...]`` keeps outcomes and verdicts in the folder, and prints what it has. The
judges exclude each other: run it in the environment of each one, with the same folder, which can be a new one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache, partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpnoise import Laplace
from dpnoise.audit._cases import CASES, Case
from dpnoise.audit._check import claim_of
from dpnoise.audit._outcomes import releases_of

ALARM = 1e-6
"""The probability that a judge refutes a true claim, if it keeps its promise."""
FACTORS = (2, 4, 8, 16)
"""A planted fault: the mechanism was made for so many times the epsilon that it claims."""
FEW = 64  # different outcomes


class Evidence(NamedTuple):
    """What judges take, of two neighbouring inputs: functions of the outcome that other outcomes chose."""

    epsilon: float
    delta: float
    numbers: list[NDArray[Any]]
    """The number that was released; else the rank of the outcome, or its score."""
    scores: list[NDArray[Any]]
    """The logarithm of the ratio of frequencies, summed over the parts of the outcome."""
    features: list[NDArray[Any]]
    """A row for each outcome: which one, if they are few; else the bits of its bytes, or its numbers."""


class Verdict(NamedTuple):
    found: str
    refuted: bool


Judge = Callable[[Evidence], Verdict]


def statdp() -> Judge:
    from pystatdp import hypothesis_test, select_event

    def judge(evidence: Evidence) -> Verdict:
        streams = [iter(part.tolist()) for part in evidence.numbers]
        run, count = (lambda index: next(streams[index])), len(evidence.numbers[0])
        with ThreadPool(1) as pool:  # both runs draw one more
            event = select_event(run, [(0, 1, {})], evidence.epsilon, count // 4 - 1, pool, quiet=True)
            p = 2 * min(hypothesis_test(run, *event, evidence.epsilon, 3 * count // 4 - 1, pool))
        return Verdict(f"p = {min(p, 1.0):.2g}", p < ALARM)

    return judge


def smartnoise() -> Judge:
    from opendp.smartnoise.evaluation.evaluator._dp_evaluator import DPEvaluator
    from opendp.smartnoise.evaluation.params._eval_params import EvaluatorParams
    from opendp.smartnoise.evaluation.params._privacy_params import PrivacyParams

    def judge(evidence: Evidence) -> Verdict:
        reports = [SimpleNamespace(res={"number": part.astype(np.float64)}) for part in evidence.numbers]
        reports.append(SimpleNamespace(res={"number": 0.0}))
        mechanism = SimpleNamespace(
            prepare=lambda *_: None, release=reports.__getitem__, actual_release=lambda _: reports[2]
        )
        claim, options = PrivacyParams(epsilon=evidence.epsilon, delta=evidence.delta), EvaluatorParams(alpha=ALARM)
        passed = bool(DPEvaluator().evaluate(0, 1, mechanism, None, claim, options)["number"].dp_res)
        return Verdict("passed" if passed else "failed", not passed)

    return judge


def jax_privacy() -> Judge:
    from jax_privacy.auditing import CanaryScoreAuditor, Split

    def judge(evidence: Evidence) -> Verdict:
        auditor = CanaryScoreAuditor(*evidence.scores)
        bound = auditor.epsilon_clopper_pearson(
            ALARM, evidence.delta, one_sided=False, threshold_strategy=Split(0.25, seed=1)
        )
        return Verdict(f"ε ≥ {bound:.2f}", bool(bound > evidence.epsilon))

    return judge


def dp_sniper() -> Judge:
    from dpsniper.attack.dpsniper import DPSniper
    from dpsniper.classifiers.classifier_factory import LogisticRegressionFactory
    from dpsniper.classifiers.torch_optimizer_factory import SGDOptimizerFactory
    from dpsniper.probability.estimators import EpsEstimator, PrEstimator
    from dpsniper.search.ddconfig import DDConfig
    from dpsniper.utils.paths import set_output_directory
    from dpsniper.utils.torch import torch_initialize

    set_output_directory(tempfile.mkdtemp())
    torch_initialize(torch_threads=1)

    def bound(first: NDArray[Any], second: NDArray[Any], epsilon: float) -> float:
        rest = {0: first, 1: second}

        def draw(index: int, n_samples: int = 1) -> NDArray[Any]:
            drawn, rest[index] = rest[index][:n_samples], rest[index][n_samples:]
            return drawn

        quarter, mechanism = len(first) // 4, SimpleNamespace(m=draw)
        config = DDConfig(
            0.02 if quarter >= 10_000 else 0.05,
            quarter,
            quarter,
            2 * quarter,
            training_batch_size=500,
            confidence=1 - ALARM / 2,
        )
        classifier = LogisticRegressionFactory(in_dimensions=first.shape[1], optimizer_factory=SGDOptimizerFactory())
        attack = DPSniper(mechanism, classifier, config).best_attack(0, 1)
        estimator = EpsEstimator(PrEstimator(mechanism, config.n_check, config))
        return float(estimator.compute_eps_estimate(0, 1, attack)[1])

    def judge(evidence: Evidence) -> Verdict:
        first, second = (part[:40_000].astype(np.float64) for part in evidence.features)
        best = max(bound(first, second, evidence.epsilon), bound(second, first, evidence.epsilon))
        return Verdict(f"ε ≥ {max(best, 0.0):.2f}", bool(best > evidence.epsilon))

    return judge


def dp_auditorium(hockey_stick: bool) -> Judge:
    from dp_auditorium import testers
    from dp_auditorium.configs import property_tester_config as configs
    from dp_auditorium.configs.privacy_property import ApproximateDp

    def judge(evidence: Evidence) -> Verdict:
        claim, tester, samples = ApproximateDp(evidence.epsilon, evidence.delta), None, evidence.scores
        if hockey_stick:
            defaults = testers.hockey_stick_tester
            config = configs.HockeyStickPropertyTesterConfig(defaults.make_default_hs_training_config(), claim)
            tester = testers.HockeyStickPropertyTester(config, defaults.make_default_hs_base_model())
            samples = [part[:20_000].astype(np.float32) for part in evidence.features]
        else:
            tester = testers.HistogramTester(configs.HistogramPropertyTesterConfig(False, 8, -4.0, 4.0, claim))
        delta = max(float(tester.estimate_lower_bound(*pair, ALARM / 2)) for pair in (samples, samples[::-1]))
        return Verdict(f"δ ≥ {max(delta, 0.0):.2f}", bool(tester.reject_property(delta)))

    return judge


JUDGES: dict[str, tuple[Callable[[], Judge], bool]] = {  # and whether it judges claims with a delta
    "StatDP": (statdp, False),
    "SmartNoise": (smartnoise, True),
    "JAX Privacy": (jax_privacy, True),
    "DP-Sniper": (dp_sniper, False),
    "DP-Auditorium, histogram": (partial(dp_auditorium, False), True),
    "DP-Auditorium, hockey stick": (partial(dp_auditorium, True), True),
}


def _off_the_grid(*, epsilon: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
    return lambda x: x + np.random.default_rng().laplace(0, 1 / epsilon, x.shape)


def _left_out(*, epsilon: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
    noise = Laplace(epsilon=epsilon)
    return lambda x: np.where(np.random.default_rng().random(len(x)) < 0.01, x, noise.release(x))


def _cut_off(*, epsilon: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
    return lambda x: x + np.clip(np.random.default_rng().laplace(0, 1 / epsilon, x.shape).round(), -4, 4)


def _same_noise(*, epsilon: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
    return lambda x: x + np.random.default_rng().laplace(0, 1 / epsilon, (len(x), 1)).round(2)


def _above(*, epsilon: float, noises: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Say which answer is the first above the threshold; a noise of the answers, if any, is the same for all."""

    def release(x: NDArray[Any]) -> NDArray[Any]:
        noise = np.random.default_rng().laplace(0, 4 / epsilon, (len(x), 2)) * [0.5, noises]
        above = x + noise[:, 1:] >= noise[:, :1]
        return np.where(above.any(axis=1), above.argmax(axis=1), -1)

    return release


FIRST, SECOND = [0.0, 0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0, 0.0]
FAULTS = (
    Case("Laplace noise of NumPy, on no grid", _off_the_grid, 0.0, 1.0, vectorized=True),
    Case("Laplace, left out once in a hundred", _left_out, 0.0, 1.0, vectorized=True),
    Case("rounded Laplace, cut off at ±4, without a delta", _cut_off, 0.0, 1.0, vectorized=True),
    Case("two numbers with the same noise", _same_noise, [0.0, 0.0], [1.0, 0.0], vectorized=True),
    Case("sparse vector without noise of the answers", partial(_above, noises=0), FIRST, SECOND, vectorized=True),
    Case(
        "sparse vector that re-uses the noise of an answer", partial(_above, noises=1), FIRST, SECOND, vectorized=True
    ),
)


def draw(case: Case, mechanism: Any, kept: Path) -> list[dict[str, NDArray[Any]]]:
    """Return the numbers and codes of the outcomes of both inputs, from the file if it is there."""
    if not kept.exists():
        n = 200_000 if case.vectorized or hasattr(mechanism, "perturb") else 20_000
        outcomes = [releases_of(mechanism, case.vectorized)(x, 5 * n // 4) for x in (case.x, case.x_prime)]
        arrays = {f"{name}{i}": getattr(part, name) for i, part in enumerate(outcomes) for name in ("numbers", "codes")}
        np.savez_compressed(partly := kept.with_suffix(f".{os.getpid()}.npz"), **arrays)
        partly.replace(kept)
    with np.load(kept) as arrays:
        return [{name: arrays[f"{name}{i}"] for name in ("numbers", "codes")} for i in range(2)]


def _lowest_bits(numbers: NDArray[Any]) -> NDArray[np.float64]:
    """Return the exponents of the lowest bits that are set, where the attacks on floating-point noise look."""
    fractions, exponents = np.frexp(np.nan_to_num(numbers))
    whole = (fractions * 2.0**53).astype(np.int64)
    return np.where(whole == 0, -1100.0, exponents + np.log2(np.maximum(whole & -whole, 1)))


def _log_ratios(train: list[NDArray[Any]], bins: int) -> NDArray[np.float64]:
    first, second = (np.bincount(part, minlength=bins) + 1.0 for part in train)
    return np.log(first / second)


def evidence_of(drawn: list[dict[str, NDArray[Any]]], epsilon: float, delta: float) -> Evidence:
    """Choose the numbers, scores and features by a fifth of the outcomes, and return those of the others."""
    fifth = len(drawn[0]["codes"]) // 5
    known = np.unique(np.concatenate([part["codes"][:fifth] for part in drawn]))
    if len(known) <= FEW:
        rank = {code: place for place, code in enumerate(known.tolist())}
        places = [np.array([rank.get(code, len(known)) for code in part["codes"].tolist()]) for part in drawn]
        ratios = _log_ratios([place[:fifth] for place in places], len(known) + 1)
        tables = (np.argsort(np.argsort(ratios)), ratios, np.eye(len(known) + 1, dtype=np.uint8))
        return Evidence(epsilon, delta, *([table[place[fifth:]] for place in places] for table in tables))
    is_bytes = drawn[0]["numbers"].dtype == np.uint8
    numbers: list[NDArray[Any]] = [
        np.unpackbits(part["numbers"], axis=1) if is_bytes else part["numbers"] * 1.0 for part in drawn
    ]
    plain = np.concatenate([np.nan_to_num(part[:fifth]) for part in numbers])
    features = [(np.nan_to_num(part) - plain.mean(0)) / (plain.std(0) + 1e-9) for part in numbers]
    if any(np.isnan(part).any() for part in numbers):
        features = [np.hstack([row, np.isnan(part)]) for row, part in zip(features, numbers, strict=True)]
    scores = [np.zeros(len(part)) for part in numbers]
    parts = (
        features
        if is_bytes
        else [np.hstack([row, _lowest_bits(part)]) for row, part in zip(features, numbers, strict=True)]
    )
    for pair in zip(parts[0].T, parts[1].T, strict=True):
        edges = np.unique(np.quantile(np.concatenate([part[:fifth] for part in pair]), np.linspace(0, 1, 65)[1:-1]))
        places = [np.searchsorted(edges, part) for part in pair]
        ratios = _log_ratios([place[:fifth] for place in places], len(edges) + 1)
        scores = [score + ratios[place] for score, place in zip(scores, places, strict=True)]
    chosen = [part[:, 0] for part in numbers] if features[0].shape[1] == 1 else scores
    return Evidence(epsilon, delta, *([part[fifth:] for part in table] for table in (chosen, scores, features)))


def judged(case: Case, judge: Judge, evidence: Callable[[int], Evidence]) -> dict[str, Any]:
    """Return what a judge finds in a mechanism, and the smallest planted fault that it finds."""
    started = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict = judge(evidence(1))
        factors = () if case in FAULTS else FACTORS
        fault = next((factor for factor in factors if judge(evidence(factor)).refuted), None)
    n = len(evidence(1).numbers[0])
    return {**verdict._asdict(), "fault": fault, "n": n, "seconds": perf_counter() - started}


def main(folder: Path, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    judges: dict[str, Judge] = {}
    for name in names or JUDGES:
        try:
            judges[name] = JUDGES[name][0]()
        except ImportError as error:
            print(f"{name} is not installed here: {error}", file=sys.stderr)
    for index, case in reversed(list(enumerate((*CASES, *FAULTS)))):  # the quickest ones first
        mechanism = case.make(epsilon=1.0)
        claim = claim_of(mechanism, getattr(mechanism, "epsilon", 1.0), None)

        @cache
        def evidence(factor: int, case: Case = case, claim: Any = claim, index: int = index) -> Evidence:
            drawn = draw(case, case.make(epsilon=float(factor)), folder / f"{index}-{factor}.npz")
            return evidence_of(drawn, claim.epsilon, claim.delta)

        for name, judge in judges.items():
            kept = folder / f"{name}.json"
            results = json.loads(kept.read_text()) if kept.exists() else {}
            if case.name not in results and (JUDGES[name][1] or not claim.delta):
                results[case.name] = judged(case, judge, evidence)
                kept.write_text(json.dumps(results, ensure_ascii=False, indent=1))
                print(name, case.name, results[case.name], file=sys.stderr, flush=True)
    kept_by = {name: folder / f"{name}.json" for name in JUDGES}
    print("\n".join(tables({name: json.loads(kept.read_text()) for name, kept in kept_by.items() if kept.exists()})))


def tables(results: dict[str, dict[str, Any]]) -> list[str]:
    """Return Markdown: what each judge finds, and the smallest planted fault, in epsilons, that it finds."""

    def cell(name: str, case: Case) -> str:
        if (result := results[name].get(case.name)) is None:
            return ""
        if case in FAULTS:
            return f"{result['found']}: {'found' if result['refuted'] else 'missed'}"
        fault = f"{result['fault']} ε" if result["fault"] else "missed"
        return f"{result['found']}{', **REFUTED**' if result['refuted'] else ''}; {fault}"

    lines = []
    for title, cases in (("mechanism", CASES), ("planted fault", FAULTS)):
        lines += ["", f"| {title} | n | {' | '.join(results)} |", "| --- | ---: |" + " --- |" * len(results)]
        for case in cases:
            n = max(results[name].get(case.name, {"n": 0})["n"] for name in results)
            lines.append(f"| {case.name} | {n:,} | " + " | ".join(cell(name, case) for name in results) + " |")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where outcomes and verdicts are kept")
    parser.add_argument("judges", nargs="*", metavar="JUDGE", help=f"all, or some of: {'; '.join(JUDGES)}")
    given = parser.parse_args()
    if unknown := [name for name in given.judges if name not in JUDGES]:
        parser.error(f"JUDGE must be one of {'; '.join(JUDGES)}, got {unknown[0]!r}")
    main(given.folder, *given.judges)
