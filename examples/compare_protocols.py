"""Estimate the occupations of 32,561 people with every local protocol: errors beside theory, sizes and times.

Run it with ``python examples/compare_protocols.py``; it needs nothing but dpnoise itself, and prints Markdown.
"""

import timeit
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpnoise import datasets, local

EPSILONS = (0.5, 1.0, 2.0, 4.0)
REPETITIONS = 200

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
    "SubsetSelection": local.SubsetSelection,
}


def errors(protocol: local.Protocol, answers: NDArray[np.generic], truth: NDArray[np.float64]) -> str:
    """Give the root-mean-square error of the counts over all repetitions, and what theory says."""
    estimates = [protocol.aggregate(protocol.perturb(answers)).counts for _ in range(REPETITIONS)]
    found = np.sqrt(np.mean((np.array(estimates) - truth) ** 2))
    expected = np.sqrt(np.mean([protocol.variance(answers.size, share) for share in truth / answers.size]))
    return f"{found:.0f} ({expected:.0f})"


def cost(protocol: local.Protocol) -> str:
    """Give the bytes of a report, and the best times of client and server in nanoseconds per report on one thread."""
    answers = np.arange(PEOPLE) % protocol.k
    reports = protocol.perturb(answers)
    client = timeit.repeat(lambda: protocol.perturb(answers, threads=1), number=1, repeat=7)
    server = timeit.repeat(lambda: protocol.aggregate(reports, threads=1), number=1, repeat=7)
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
    print_table("root-mean-square error (theory)", [f"ε = {epsilon:g}" for epsilon in EPSILONS], rows)

    rows = {f"`{name}`": [cost(make(k=k, epsilon=1.0)) for k in SIZES] for name, make in PROTOCOLS.items()}
    print_table("report, client, server at ε = 1", [f"k = {k}" for k in SIZES], rows)
    print(datasets.ADULT_ATTRIBUTION)


if __name__ == "__main__":
    main()
