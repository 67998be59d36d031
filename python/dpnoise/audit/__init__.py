"""Experiments that can refute a claim of differential privacy: of these mechanisms, and of any others.

- `epsilon_lower_bound`: how much privacy a mechanism loses at least.
- `check`: the same held against a claim; takes two databases and makes sure that they are neighbours.
- `self_audit`: that for the mechanisms of the installed build; ``dpnoise audit`` on the command line.
- `dpnoise.audit.attacks`: low-order bits, precision and time.
- `Database`, `histogram_distance`, `are_neighbours`: what neighbouring data sets are.

An experiment can show that a mechanism loses more than it claims. That it loses no more takes a proof.
"""

from dpnoise.audit import attacks
from dpnoise.audit._check import Check, check
from dpnoise.audit._databases import Database, are_neighbours, histogram_distance
from dpnoise.audit._lower_bound import EpsilonLowerBound, epsilon_lower_bound
from dpnoise.audit._self_audit import SelfAudit, self_audit

__all__ = [
    "Check",
    "Database",
    "EpsilonLowerBound",
    "SelfAudit",
    "are_neighbours",
    "attacks",
    "check",
    "epsilon_lower_bound",
    "histogram_distance",
    "self_audit",
]
