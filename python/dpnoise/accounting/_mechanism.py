"""What ledgers and accountants need of a mechanism. They import none, so that mechanisms may import them."""

from __future__ import annotations

from typing import Any, Protocol

from dpnoise.accounting._cost import PrivacyCost
from dpnoise.accounting._losses import PrivacyLoss
from dpnoise.sensitivity import Relation


class Mechanism(Protocol):
    """The interface that a ledger and an accountant need."""

    @property
    def relation(self) -> Relation | None:
        """The neighbouring relation; None for the relation of the given sensitivity."""

    @property
    def cost(self) -> PrivacyCost:
        """The cost of a release."""

    def release(self, x: Any, /) -> Any:
        """Release a value."""

    def _check(self, x: Any, /) -> None:
        """Refuse invalid input."""

    def _loss(self) -> PrivacyLoss | PrivacyCost:
        """Return a bound on the privacy loss of a release."""
