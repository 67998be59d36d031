"""Estimate the occupations of 32,561 people with every local protocol: errors beside theory, sizes and times.

Run it with ``python examples/compare_protocols.py``; it needs ``dpnoise[decode]``, and prints Markdown.
"""

import timeit
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnoise import datasets, local

EPSILONS = (0.5, 1.0, 2.0, 4.0)
REPETITIONS = 100
TRIALS = 7
"""How often a time is taken, of which the best counts."""

SIZES = (15, 128, 1024)
PEOPLE = 50_000


def three_quarters(k: int, epsilon: float) -> local.UnaryEncoding:
    """Make the unary encoding that keeps a set bit with probability 3/4."""
    return local.UnaryEncoding(k=k, p=0.75, q=0.75 / (0.75 + 0.25 * np.exp(epsilon)))


PROTOCOLS: dict[str, Callable[..., local.Protocol]] = {
    "GeneralizedRandomizedResponse": local.GeneralizedRandomizedResponse,
    "SymmetricUnaryEncoding": local.SymmetricUnaryEncoding,
    "OptimizedUnaryEncoding": local.OptimizedUnaryEncoding,
    "UnaryEncoding, p = 3/4": three_quarters,
    "LocalHashing": local.LocalHashing,
    "HadamardResponse": local.HadamardResponse,
    "ProjectiveGeometryResponse": local.ProjectiveGeometryResponse,
    "SubsetSelection": local.SubsetSelection,
    "ThresholdHistogramEncoding": local.ThresholdHistogramEncoding,
    "SummationHistogramEncoding": local.SummationHistogramEncoding,
}


# One of several reports on the same answer, all of which together achieve epsilon.
REMEMBERING: dict[str, Callable[[int, float], local.Protocol]] = {
    "LongitudinalUnaryEncoding`, a report at ε/2": lambda k, epsilon: local.LongitudinalUnaryEncoding(
        k=k, epsilon_permanent=epsilon, epsilon_first=epsilon / 2
    ),
    "LOLOHA`, a report at ε/2": lambda k, epsilon: local.LOLOHA(
        k=k, epsilon_permanent=epsilon, epsilon_first=epsilon / 2
    ),
    "DBitFlip`, d = 4": lambda k, epsilon: local.DBitFlip(k=k, epsilon=epsilon, d=4),
}

# For what is not one of k values: here the labels are texts of an open domain, or the codes are taken to have an order.
SKETCHES: dict[str, Callable[[float], local.Protocol]] = {
    "CountMeanSketch": lambda epsilon: local.CountMeanSketch(epsilon=epsilon, rows=1024, width=256),
    "HadamardCountMeanSketch": lambda epsilon: local.HadamardCountMeanSketch(epsilon=epsilon, rows=1024, width=256),
}


def rappor(epsilon: float) -> local.Rappor:
    """Make the one with a single hash function whose reports on a text achieve epsilon, and each of them half of it.

    A pair of bits that deviate from a coin toss by factors of d and -d has a likelihood ratio of e^(4 artanh d).
    """
    permanent, both = np.tanh(epsilon / 4), np.tanh(epsilon / 8)
    p = (1 - both / permanent) / 2
    return local.Rappor(num_bloombits=32, num_hashes=1, num_cohorts=64, f=1 - permanent, p=p, q=1 - p)


def errors(protocol: local.Protocol, answers: NDArray[np.generic], truth: NDArray[np.float64]) -> str:
    """Give the root-mean-square error of the counts over all repetitions, and what theory says."""
    estimates = [protocol.estimate(protocol.perturb(answers)).counts for _ in range(REPETITIONS)]
    return beside_theory(estimates, truth, [protocol.variance(answers.size, share) for share in truth / answers.size])


def errors_remembering(protocol: local.Protocol, codes: NDArray[np.int64], truth: NDArray[np.float64]) -> str:
    """Give the same for people who keep a memo, new people each time."""
    memos = (local.ClientMemo.generate(codes.size) for _ in range(REPETITIONS))
    estimates = [protocol.estimate(protocol.perturb(codes, memo, question="colour")).counts for memo in memos]
    return beside_theory(estimates, truth, [protocol.variance(codes.size, share) for share in truth / codes.size])


def errors_of_texts(sketch: local.Protocol, texts: list[str], labels: list[str], truth: NDArray[np.float64]) -> str:
    """Give the same for texts, of which the estimate says how accurate it is."""
    found = [sketch.estimate(sketch.perturb(texts), candidates=labels) for _ in range(REPETITIONS)]
    return beside_theory([estimate.counts for estimate in found], truth, found[0].standard_errors ** 2)


def errors_of_found_texts(
    protocol: local.Rappor, texts: list[str], labels: list[str], truth: NDArray[np.float64]
) -> str:
    """Give the same for those texts that are found, and how many these are, in a quarter of the repetitions."""
    memos = (local.ClientMemo.generate(len(texts)) for _ in range(REPETITIONS // 4))
    found = [protocol.estimate(protocol.perturb(texts, memo, question="occupation"), labels) for memo in memos]
    errors = [estimate.counts - truth[[labels.index(text) for text in estimate.candidates]] for estimate in found]
    variances = np.concatenate([estimate.standard_errors**2 for estimate in found])
    number = variances.size / len(found)
    return f"{beside_theory([np.concatenate(errors)], np.zeros(variances.size), variances)}, {number:.1f} found"


def errors_of_ranges(tree: local.HierarchicalRange, codes: NDArray[np.int64], truth: NDArray[np.float64]) -> str:
    """Give the same for a tree of values."""
    found = [tree.estimate(tree.perturb(codes)) for _ in range(REPETITIONS)]
    variances = [found[0].range(value, value).standard_error ** 2 for value in range(truth.size)]
    return beside_theory([estimate.counts for estimate in found], truth, variances)


def beside_theory(estimates: Sequence[NDArray[np.float64]], truth: NDArray[np.float64], variances: ArrayLike) -> str:
    """Give the root-mean-square error of the counts, and in parentheses what theory says."""
    return f"{np.sqrt(np.mean((np.array(estimates) - truth) ** 2)):.0f} ({np.sqrt(np.mean(variances)):.0f})"


def cost(protocol: local.Protocol) -> str:
    """Give the bytes of a report, and the best times of client and server in nanoseconds per report on one thread."""
    answers = np.arange(PEOPLE) % protocol.k
    reports = protocol.perturb(answers)
    client = timeit.repeat(lambda: protocol.perturb(answers, threads=1), number=1, repeat=TRIALS)
    server = timeit.repeat(lambda: protocol.estimate(reports, threads=1), number=1, repeat=TRIALS)
    client_ns, server_ns = min(client) / PEOPLE * 1e9, min(server) / PEOPLE * 1e9
    return f"{protocol.report_bytes} B, {client_ns:,.1f} ns, {server_ns:,.1f} ns"


def print_table(first: str, columns: list[str], rows: dict[str, list[str]]) -> None:
    """Print a Markdown table."""
    print(f"| {first} | {' | '.join(columns)} |")
    print("| --- " * (len(columns) + 1) + "|")
    for name, cells in rows.items():
        print(f"| {name} | {' | '.join(cells)} |")
    print()


def main() -> None:
    """Print both tables."""
    codes, labels = datasets.adult_occupations()
    truth = np.bincount(codes).astype(np.float64)
    commonest = codes == np.argmax(truth)

    rows = {
        f"`{name}`": [errors(make(k=len(labels), epsilon=epsilon), codes, truth) for epsilon in EPSILONS]
        for name, make in PROTOCOLS.items()
    }
    # It tells yes from no only, so it is asked about one occupation.
    yes_and_no = np.array([np.sum(~commonest), np.sum(commonest)], np.float64)
    rows["`RandomizedResponse`, one occupation"] = [
        errors(local.RandomizedResponse(epsilon=epsilon), commonest, yes_and_no) for epsilon in EPSILONS
    ]
    k, texts = len(labels), [labels[code] for code in codes.tolist()]
    for name, make in REMEMBERING.items():
        rows[f"`{name}"] = [errors_remembering(make(k, epsilon), codes, truth) for epsilon in EPSILONS]
    for name, make in SKETCHES.items():
        rows[f"`{name}`, texts"] = [errors_of_texts(make(epsilon), texts, labels, truth) for epsilon in EPSILONS]
    rows["`Rappor`, texts, a report at ε/2"] = [
        errors_of_found_texts(rappor(epsilon), texts, labels, truth) for epsilon in EPSILONS
    ]
    rows["`HierarchicalRange`, single values"] = [
        errors_of_ranges(local.HierarchicalRange(k=k, epsilon=epsilon), codes, truth) for epsilon in EPSILONS
    ]
    print_table("root-mean-square error (theory)", [f"ε = {epsilon:g}" for epsilon in EPSILONS], rows)

    rows = {f"`{name}`": [cost(make(k=k, epsilon=1.0)) for k in SIZES] for name, make in PROTOCOLS.items()}
    print_table("report, client, server at ε = 1", [f"k = {k}" for k in SIZES], rows)
    print(datasets.ADULT_ATTRIBUTION)


if __name__ == "__main__":
    main()
