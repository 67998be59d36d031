"""Tables: several questions about the columns of a table, for persons and by group, in one release.

`Table` is a front for `dpnoise.queries`: it takes data frames of any library that Narwhals reads, keeps a bounded
number of rows of each person, pays once for a whole answer, and gives `Release` objects, which show what was asked,
what it cost, and how far the noise may be off. It needs Narwhals, which the extra
``tables`` brings.
"""

from dpnoise import _calls
from dpnoise.tables._questions import Questions
from dpnoise.tables._release import Answer, Release
from dpnoise.tables._table import Table

__all__ = ["Answer", "Questions", "Release", "Table"]

_calls.explain(__name__)
