"""Experiments that can refute a claim of differential privacy, of dpnoise or of any other library.

- `epsilon_lower_bound`: a lower bound on the privacy loss of a mechanism.
- `check`: the same, compared with a claim.
- `one_run`: a lower bound from one run, of which many secret coins are guessed; `one_run_of_sgd` for DP-SGD.
- `self_audit`: a check of all mechanisms of the installed build; ``dpnoise audit`` on the command line.
- `dpnoise.audit.attacks`: low-order bits, precision and time.

An experiment can show that a mechanism loses more than it claims. Only a proof can show that it does not.
"""

from dpnoise import _calls
from dpnoise.audit import attacks
from dpnoise.audit._check import Check, check
from dpnoise.audit._lower_bound import EpsilonLowerBound, epsilon_lower_bound
from dpnoise.audit._one_run import OneRun, one_run, one_run_of_sgd
from dpnoise.audit._self_audit import SelfAudit, self_audit

__all__ = [
    "Check",
    "EpsilonLowerBound",
    "OneRun",
    "SelfAudit",
    "attacks",
    "check",
    "epsilon_lower_bound",
    "one_run",
    "one_run_of_sgd",
    "self_audit",
]

_calls.explain(__name__)
