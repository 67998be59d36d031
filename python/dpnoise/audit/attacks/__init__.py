"""Known attacks on noise: they try to tell two neighbouring inputs apart by what the proofs on paper do not mention.

- `low_order_bits`: which outcomes an input can have at all shows in the last bits (Mironov 2012).
- `precision`: how many digits the noise has depends on what it was added to (Haney and others 2022).
- `timing`: how long a release takes depends on how large the noise is (Jin and others 2022).
"""

from dpnoise.audit.attacks._low_order_bits import LowOrderBits, low_order_bits
from dpnoise.audit.attacks._precision import Precision, precision
from dpnoise.audit.attacks._timing import Timing, timing

__all__ = ["LowOrderBits", "Precision", "Timing", "low_order_bits", "precision", "timing"]
