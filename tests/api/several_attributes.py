"""Attributes of every kind, with people, for the tests of several attributes."""

import numpy as np

from dpnoise import local

BOTH = [local.Sampled, local.Split]
CERTAIN = 32.0  # at this epsilon a report differs from the value with a probability below 1e-11
COLOURS = ["red", "green", "blue"]


def mixed(make=local.Sampled, epsilon: float = CERTAIN, **others):
    """Give attributes of every kind that there is."""
    protocols = {
        "colour": local.OptimizedUnaryEncoding(domain=COLOURS, epsilon=epsilon),
        "size": local.GeneralizedRandomizedResponse(k=300, epsilon=epsilon),
        "smokes": local.RandomizedResponse(epsilon=epsilon),
        "height": local.SquareWave(k=16, epsilon=epsilon),
        "mood": local.HybridMean(epsilon=epsilon),
        "debt": local.LaplaceMean(epsilon=epsilon),
        "wealth": local.GaussianMean(epsilon=epsilon, delta=1e-3),
        "age": local.HierarchicalRange(k=100, epsilon=epsilon),
        "word": local.CountMeanSketch(epsilon=epsilon, rows=64, width=64),
        "place": local.PrefixExtension(bits=16, epsilon=epsilon, rows=64, width=64),
    }
    return make(attributes=protocols | others)


def people(n: int) -> dict:
    i = np.arange(n)
    return {
        "colour": [COLOURS[j % 3] for j in i],
        "size": i % 300,
        "smokes": i % 4 == 0,
        "height": np.full(n, 0.5),
        "mood": np.where(i % 2 == 0, 1.0, -0.5),
        "debt": np.full(n, 0.25),
        "wealth": np.full(n, -0.25),
        "age": i % 50,
        "word": ["plum" if j % 2 else "pear" for j in i],
        "place": np.full(n, 4711),
    }


def counted(protocol, reports):
    accumulator = protocol.accumulator()
    accumulator.add(reports)
    return accumulator


def small(make=local.Sampled, epsilon=1.0):
    protocols = {
        "a": local.GeneralizedRandomizedResponse(domain=COLOURS, epsilon=epsilon),
        "b": local.GeneralizedRandomizedResponse(k=300, epsilon=epsilon),
    }
    return make(attributes=protocols)
