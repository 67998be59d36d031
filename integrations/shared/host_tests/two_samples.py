"""Whether two samples can have the same law.

A test rejects equal distributions with a probability of 1e-9 at most, and is also run on a planted difference that it
must find. Its law is that of large samples: it rejects below 1e-12, which leaves room for the rest.
"""

from __future__ import annotations

import os

import numpy as np
from scipy import stats

ALARM = 1e-12
# The hosts draw one at a time, so `make statistical` draws a million.
N = min(int(os.environ.get("DPNOISE_TEST_SAMPLES", 5_000)), 1_000_000)
# What takes a hundred microseconds to draw from a host is drawn less often.
FEW = min(N, 50_000)


def planted(size, faint=False):
    """Give a factor for a scale that the tests must tell from 1, a larger one where a scale shows only faintly."""
    return 1 + (400 if faint else 100) / np.sqrt(size)


def p_value(a, b):
    """Compare by counts where there are few values, and by Kolmogorov and Smirnov's distance otherwise."""
    values, places = np.unique(np.concatenate([a, b]), return_inverse=True)
    if values.size > 1000:
        return float(stats.ks_2samp(a, b, method="asymp").pvalue)
    counts = np.array([np.bincount(part, minlength=values.size) for part in (places[: a.size], places[a.size :])])
    common = counts.sum(axis=0) >= 50
    counts = np.column_stack([counts[:, common], counts[:, ~common].sum(axis=1)])
    counts = counts[:, counts.sum(axis=0) > 0]
    return float(stats.chi2_contingency(counts, correction=False).pvalue)
