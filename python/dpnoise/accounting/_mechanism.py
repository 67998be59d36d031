"""What accounts of costs ask of a mechanism. They know no mechanism, so that mechanisms may know them."""

from __future__ import annotations

from typing import Any, Protocol

from dpnoise.accounting._cost import PrivacyCost
from dpnoise.accounting._losses import Loss
from dpnoise.sensitivity import Relation


class Mechanism(Protocol):
    """What a ledger and an accountant need of a mechanism."""

    @property
    def relation(self) -> Relation | None:
        """Which data sets are neighbours; None where that follows from the sensitivity that was given."""

    @property
    def cost(self) -> PrivacyCost:
        """What a release costs."""

    def release(self, x: Any) -> Any:
        """Release a value."""

    def _check(self, x: Any) -> None:
        """Refuse what cannot be released."""

    def _loss(self) -> Loss:
        """Give what is known of the privacy loss of a release."""
