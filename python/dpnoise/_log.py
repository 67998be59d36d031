"""The logger of the package: silent until the program configures logging, and imported only by what writes to it.

No line may show data, reports or seeds. What depends on private data is not logged at all, such as the death of a
process that computes a vote.
"""

from __future__ import annotations

import logging
from typing import Final

logger: Final = logging.getLogger("dpnoise")
logger.addHandler(logging.NullHandler())
