"""Exact, constant-time, bulk randomness for differential privacy.

The areas:

- `dpnoise.samplers`: noise over the integers and over grids of real numbers, coins and bytes.
- `dpnoise.keyed`: noise that a secret brings back.
- `dpnoise.Laplace`, `dpnoise.Gaussian` and, for integers, `dpnoise.DiscreteLaplace`, `dpnoise.DiscreteGaussian`:
  mechanisms of the central model that add noise; `dpnoise.TruncatedDiscreteLaplace` and
  `dpnoise.TruncatedDiscreteGaussian` bound it; `dpnoise.Staircase` is for one integer, and `dpnoise.Skellam` and
  `dpnoise.NegativeBinomialShares` are for several parties.
- `dpnoise.Exponential`, `dpnoise.ReportNoisyMax`, `dpnoise.TopK`: mechanisms that choose the best of many.
- `dpnoise.AboveThreshold`: which of a stream of values are above a threshold.
- `dpnoise.PrivateSelection`: the best of several private runs, for little more than one of them costs.
- `dpnoise.Table`: questions about a table, for persons with several rows and by group, in one release.
- `dpnoise.queries`: counts, sums, means, histograms and quantiles of columns, with proved sensitivities.
- `dpnoise.sensitivity`: the most that one person can change an answer.
- `dpnoise.stability`: exact answers where no neighbour would have another one.
- `dpnoise.sgd`: stochastic gradient descent: clipped gradients with noise, batches, and their privacy cost.
- `dpnoise.local`: local differential privacy: protocols, accumulators, estimates.
- `dpnoise.engines`: counting reports on many cores or machines, with processes, Dask or Spark.
- `dpnoise.accounting`: privacy costs of releases, and budgets that cannot be overspent.
- `dpnoise.audit`: experiments and attacks that can refute a claim of privacy.
- `dpnoise.SecureBitGenerator`: secure random bits for NumPy's generator.
- `dpnoise.datasets`, `dpnoise.plots`: example data and pictures.
- `dpnoise.hazmat`: reproducible generators, for tests only.
- `dpnoise.extend`: what packages that build on dpnoise need beside its mechanisms.

All arguments are checked before anything is drawn or spent: a `ParameterError` is raised for values, a TypeError for
types. https://dpnoise.github.io/dpnoise/reference/conventions/ has the details, and the terms that hold everywhere.
"""

from dpnoise import _errors
from dpnoise._errors import DoubtfulInputWarning, Error, HaltedError, NoErrorBound, ParameterError, RandomnessError
from dpnoise._native import __version__, generator, instruction_set

# False. Type checkers assume True, and editors cannot tell; importing typing takes as long as all else.
TYPE_CHECKING = not __name__

__all__ = [
    "AboveThreshold",
    "BudgetExceeded",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DoubtfulInputWarning",
    "Error",
    "Exponential",
    "Gaussian",
    "HaltedError",
    "Laplace",
    "NegativeBinomialShares",
    "NoErrorBound",
    "ParameterError",
    "PermuteAndFlip",
    "PrivacyCost",
    "PrivateSelection",
    "RandomnessError",
    "ReportNoisyMax",
    "SecureBitGenerator",
    "Skellam",
    "Staircase",
    "Table",
    "TopK",
    "TruncatedDiscreteGaussian",
    "TruncatedDiscreteLaplace",
    "__version__",
    "accounting",
    "audit",
    "datasets",
    "engines",
    "extend",
    "generator",
    "hazmat",
    "instruction_set",
    "keyed",
    "local",
    "plots",
    "queries",
    "samplers",
    "sensitivity",
    "sgd",
    "stability",
    "tables",
]

if TYPE_CHECKING:
    from dpnoise import (
        accounting,
        audit,
        datasets,
        engines,
        extend,
        hazmat,
        keyed,
        local,
        plots,
        queries,
        samplers,
        sensitivity,
        sgd,
        stability,
        tables,
    )
    from dpnoise.accounting import BudgetExceeded, PrivacyCost
    from dpnoise.bit_generator import SecureBitGenerator
    from dpnoise.mechanisms import (
        AboveThreshold,
        DiscreteGaussian,
        DiscreteLaplace,
        Exponential,
        Gaussian,
        Laplace,
        NegativeBinomialShares,
        PermuteAndFlip,
        PrivateSelection,
        ReportNoisyMax,
        Skellam,
        Staircase,
        TopK,
        TruncatedDiscreteGaussian,
        TruncatedDiscreteLaplace,
    )
    from dpnoise.tables import Table
else:
    __getattr__, __dir__ = _errors.lazily(
        __name__,
        __all__,
        accounting="BudgetExceeded PrivacyCost",
        bit_generator="SecureBitGenerator",
        mechanisms="AboveThreshold DiscreteGaussian DiscreteLaplace Exponential Gaussian Laplace "
        "NegativeBinomialShares PermuteAndFlip PrivateSelection ReportNoisyMax Skellam Staircase TopK "
        "TruncatedDiscreteGaussian TruncatedDiscreteLaplace",
        tables="Table",
    )

del TYPE_CHECKING  # which editors would complete
