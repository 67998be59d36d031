"""Privacy costs of releases: guarantees, their composition, and budgets that cannot be overspent.

- `PrivacyCost`: a guarantee of (epsilon, delta)-differential privacy.
- `compose_sequential`, `compose_parallel`, `compose_advanced`: the joint cost of several releases.
- `zcdp_epsilon`, `zcdp_delta`, `zcdp_rho`, `pure_zcdp_rho`: zero-concentrated differential privacy.
- `group_privacy`, `amplify_by_poisson_sampling`, `amplify_by_sampling_without_replacement`, `amplify_by_shuffling`:
  groups, samples and shuffled reports, whose cost is a `ShuffledCost`.
- `Accountant`: tight composition of many releases, on the dp-accounting package.
- `PrivacyLoss`: what it composes: `LaplaceLoss`, `DiscreteLaplaceLoss`, `DiscreteGaussianLoss`, `BoundedRangeLoss`.
- `RandomStoppingLoss`: the loss of the best of a random number of runs.
- `Ledger`: a durable budget that many processes spend from, and whose releases may depend on the answers so far.
- `ZcdpCost`, `RenyiCost`: guarantees in the other measures of a ledger.
"""

from typing import TYPE_CHECKING

from dpnoise import _calls, _errors
from dpnoise._errors import LedgerError
from dpnoise.accounting._amplification import (
    ShuffledCost,
    amplify_by_poisson_sampling,
    amplify_by_sampling_without_replacement,
    amplify_by_shuffling,
    group_privacy,
)
from dpnoise.accounting._composition import compose_advanced, compose_parallel, compose_sequential
from dpnoise.accounting._concentrated import pure_zcdp_rho, zcdp_delta, zcdp_epsilon, zcdp_rho
from dpnoise.accounting._cost import PrivacyCost, RenyiCost, ZcdpCost

__all__ = [
    "Accountant",
    "BoundedRangeLoss",
    "BudgetExceeded",
    "DiscreteGaussianLoss",
    "DiscreteLaplaceLoss",
    "LaplaceLoss",
    "Ledger",
    "LedgerEntry",
    "LedgerError",
    "PrivacyCost",
    "PrivacyLoss",
    "RandomStoppingLoss",
    "RenyiCost",
    "ShuffledCost",
    "ZcdpCost",
    "amplify_by_poisson_sampling",
    "amplify_by_sampling_without_replacement",
    "amplify_by_shuffling",
    "compose_advanced",
    "compose_parallel",
    "compose_sequential",
    "group_privacy",
    "pure_zcdp_rho",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]

if TYPE_CHECKING:
    from dpnoise.accounting._accountant import Accountant
    from dpnoise.accounting._ledger import BudgetExceeded, Ledger, LedgerEntry
    from dpnoise.accounting._losses import (
        BoundedRangeLoss,
        DiscreteGaussianLoss,
        DiscreteLaplaceLoss,
        LaplaceLoss,
        PrivacyLoss,
    )
    from dpnoise.accounting._random_stopping import RandomStoppingLoss
else:  # mechanisms import this package for their costs, and most programs use no accountant or ledger
    __getattr__, __dir__ = _errors.lazily(
        __name__,
        __all__,
        _accountant="Accountant",
        _ledger="BudgetExceeded Ledger LedgerEntry",
        _losses="BoundedRangeLoss DiscreteGaussianLoss DiscreteLaplaceLoss LaplaceLoss PrivacyLoss",
        _random_stopping="RandomStoppingLoss",
    )

_calls.explain(__name__)
