"""The audit of the installed build: the claims of dpnoise, compared with experiments on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from dpnoise._display import caption_of, floored, html_table
from dpnoise._types import Integer, Number
from dpnoise.audit._cases import CASES
from dpnoise.audit._check import Check, claim_of, held_against
from dpnoise.audit._lower_bound import open_share
from dpnoise.audit._report import Report


@dataclass(frozen=True)
class SelfAudit(Report):
    """The claim and the result for each mechanism.

    Attributes
    ----------
    epsilon : float
        The requested epsilon of every mechanism. The claimed one may be slightly smaller.
    n : int
        The number of releases of each input.
    level : float
        The probability that no true claim is refuted is at least this, for all mechanisms together.
    refuted : bool
        Whether any claim is refuted.
    names : tuple of str
        The names of the mechanisms.
    checks : tuple of Check
        The claim and the bound of each mechanism.
    seconds : tuple of float
        The time that each mechanism took, in seconds.
    """

    epsilon: float
    n: int
    level: float
    refuted: bool
    names: tuple[str, ...]
    checks: tuple[Check, ...]
    seconds: tuple[float, ...]

    def __str__(self) -> str:
        """List the claim and the bound of each mechanism."""
        rows = [
            f"{name}: {check.claimed_epsilon:.4f} claimed, {floored(check.bound.epsilon)} shown at least"
            + (", REFUTED" if check.refuted else "")
            for name, check in zip(self.names, self.checks, strict=True)
        ]
        return "\n".join([f"epsilon of {len(rows)} mechanisms, {self.n:,} releases of each input", *rows])

    def _repr_html_(self) -> str:
        return html_table(
            caption_of(self),
            {
                "mechanism": self.names,
                "claimed_epsilon": [check.claimed_epsilon for check in self.checks],
                "epsilon at least": [check.bound.epsilon for check in self.checks],
                "refuted": [check.refuted for check in self.checks],
            },
        )

    def _draw(self, axes: Any) -> None:
        places = np.arange(len(self.names))[::-1]
        axes.barh(places, [check.bound.epsilon for check in self.checks], label="shown at least")
        claimed = [check.claimed_epsilon for check in self.checks]
        axes.vlines(claimed, places - 0.45, places + 0.45, color="#222222", linewidth=2.0, label="claimed")
        axes.set_yticks(places, self.names)
        axes.set_xlabel(f"epsilon; {self.n:,} releases of each input")
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False)


def self_audit(*, epsilon: Number = 1.0, n: Integer = 100_000, level: Number = 0.999999) -> SelfAudit:
    """Audit the installed mechanisms of dpnoise, by `epsilon_lower_bound` for each one.

    Parameters
    ----------
    epsilon : float, default 1.0
        The epsilon of the mechanisms: positive, and in the range of all of them.
    n : int, default 100000
        The number of releases of each input, from 100 to 2**40 - 1, for each mechanism.
    level : float, default 0.999999
        The probability with which no true claim is refuted, for all mechanisms together: between 0 and 1, both
        excluded.

    Returns
    -------
    SelfAudit
        The claims and the results; as text, as JSON (``to_json``) and as a picture (``plot``).

    Examples
    --------
    >>> from dpnoise import audit
    >>> audit.self_audit(n=1000, level=1 - 1e-9).refuted
    False
    """
    alarm = (1.0 - open_share(level, "level")) / len(CASES)
    checks, seconds = [], []
    made = [case.make(epsilon=epsilon) for case in CASES]  # a bad epsilon is refused before anything is drawn
    for case, mechanism in zip(CASES, made, strict=True):
        started = perf_counter()
        claimed = claim_of(mechanism, getattr(mechanism, "epsilon", epsilon), None)
        checks.append(
            held_against(
                claimed,
                mechanism,
                case.x,
                case.x_prime,
                n=n,
                level=1.0 - alarm,
                vectorized=case.vectorized,
                task=f"auditing {case.name}",
            )
        )
        seconds.append(perf_counter() - started)
    refuted = any(check.refuted for check in checks)
    names = tuple(case.name for case in CASES)
    return SelfAudit(float(epsilon), int(n), float(level), refuted, names, tuple(checks), tuple(seconds))
