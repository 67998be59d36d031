"""Count the occupations of 32,561 people without ever seeing one of them, and with a trusted curator.

Run it with ``python examples/adult_occupations.py``; it needs nothing but dpnoise itself.
"""

import numpy as np

import dpnoise
from dpnoise import datasets, local

EPSILON = 1.0


def main() -> None:
    """Print the true counts beside the local estimates and the central release."""
    codes, labels = datasets.adult_occupations()
    truth = np.bincount(codes).astype(np.float64)

    # Local model: what leaves a person is a report, and the report alone is private.
    protocol = local.OptimizedUnaryEncoding(k=len(labels), epsilon=EPSILON)
    reports = protocol.perturb(codes)
    server = protocol.accumulator()
    server.add(reports)
    estimate = server.estimate(level=0.95)

    # Central model: a curator sees every person and adds noise to the counts. One person who changes occupation
    # moves two counts by one, hence the sensitivity.
    released = dpnoise.Laplace(epsilon=EPSILON, sensitivity=2.0).release(truth)

    print(f"{'occupation':<18}{'true':>7}{'local':>8}{'95 % interval':>18}{'central':>10}")
    for i in np.argsort(-truth):
        interval = f"{estimate.lower[i]:.0f} to {estimate.upper[i]:.0f}"
        print(f"{labels[i]:<18}{truth[i]:>7.0f}{estimate.counts[i]:>8.0f}{interval:>18}{released[i]:>10.1f}")
    local_error = np.sqrt(np.mean((estimate.counts - truth) ** 2))
    central_error = np.sqrt(np.mean((released - truth) ** 2))
    print(f"root-mean-square error: {local_error:.0f} local, {central_error:.1f} central")
    print(datasets.ADULT_ATTRIBUTION)


if __name__ == "__main__":
    main()
