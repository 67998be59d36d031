"""Known attacks on noise: they distinguish two neighbouring inputs by effects that textbook proofs ignore.

- `low_order_bits`: the low-order bits reveal which inputs can lead to an outcome (Mironov 2012).
- `precision`: the precision of an outcome depends on the input (Haney and others 2022).
- `timing`: the time of a release depends on the size of the noise (Jin and others 2022).
"""

from dpnoise import _calls
from dpnoise.audit.attacks._low_order_bits import low_order_bits
from dpnoise.audit.attacks._precision import precision
from dpnoise.audit.attacks._timing import Timing, timing

__all__ = ["Timing", "low_order_bits", "precision", "timing"]

_calls.explain(__name__)
