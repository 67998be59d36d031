"""What the project set out to reach. A target is judged in every column of its table, unless it names one."""

from __future__ import annotations

from typing import NamedTuple

INSTRUCTION_SETS = {name: f"dpnoise, {name}" for name in ("avx512", "avx2", "neon", "portable")}
BEST, BEST_ON_TWO_THREADS = "dpnoise", "dpnoise, 2 threads"
"""Who must reach a target: ours, with the best instruction set of the machine that a record is of."""


OF_VALUES = "dpnoise, of values"
"""Ours for the same people's values, beside those for rows of bits."""
OF_K = "dpnoise, of k values"
"""Ours for 0, 1, ..., k - 1, beside those for labels."""
PLAIN = "plain answer"
"""The answer without noise, by the library of the column, or by NumPy for numbers and pandas for objects."""


class Target(NamedTuple):
    """How good an entrant of a table must be."""

    table: str
    against: str | float
    """The entrant to compare with in the same column, or an amount."""
    factor: float = 1
    """How many times as good as that it must be."""
    unit: str = ""
    """That of an amount."""
    entrant: str = BEST
    column: str | None = None

    def of(self, ours: str) -> Target:
        """Return the target for a machine on which `ours` is the best of ours."""
        names = {BEST: ours, BEST_ON_TWO_THREADS: f"{ours}, 2 threads"}
        against = names.get(self.against, self.against) if isinstance(self.against, str) else self.against
        return self._replace(entrant=names.get(self.entrant, self.entrant), against=against)

    def __str__(self) -> str:
        return f"{self.factor:g} x {self.against}" if isinstance(self.against, str) else f"{self.against:g} {self.unit}"


BULK = (
    "Discrete Laplace",
    "Discrete Gaussian",
    "Float Laplace",
    "Float Gaussian",
    "Laplace mechanism",
    "Gaussian mechanism",
    "Discrete Gaussian mechanism",
    "Geometric",
    "Bernoulli",
    "Unary encoding, client",
    "Unary encoding, server, from memory",
    "Generalised randomised response, client",
    "Generalised randomised response, server",
    "Local hashing, client",
    "Local hashing, server",
    "Hadamard response, client",
    "Hadamard response, server",
    "Projective geometry response, client",
    "Projective geometry response, server",
    "Subset selection, client",
    "Subset selection, server",
    "Longitudinal unary encoding, client",
    "Longitudinal unary encoding, server",
    "LOLOHA, client",
    "LOLOHA, server",
    "dBitFlip, client",
    "dBitFlip, server",
    "Stable bootstrap",
    "Clip and sum",
)

TARGETS = (
    Target("Discrete Laplace", "NumPy difference of geometrics, PCG64", 5),
    Target("Discrete Laplace", "NumPy laplace, PCG64", 3),
    Target("Discrete Gaussian", "NumPy normal, PCG64", 2),
    Target("Float Laplace", "NumPy laplace, PCG64", 2.5),
    Target("Float Gaussian", "NumPy normal, PCG64", 1.7),
    Target("Calls: Laplace mechanism", 900, unit="ns", column="scalar"),
    Target("Calls: float Laplace", 1000, unit="ns", column="scalar"),
    Target("Calls: float Laplace", 2000, unit="ns", column="n = 1"),
    Target("Random bytes", 15, unit="GB/s", entrant=INSTRUCTION_SETS["avx512"], column="1 MiB"),
    Target("Random bytes", 12, unit="GB/s", entrant=INSTRUCTION_SETS["avx2"], column="1 MiB"),
    Target("NumPy's generator", "NumPy, PCG64"),
    Target("Unary encoding, client", 0.25, unit="ns per bit"),
    Target("Unary encoding, client", 0.13, unit="ns per bit", column="k = 128"),
    Target("Unary encoding, client", "NumPy, PCG64", 6),
    *(Target("Unary encoding, client, of rows", OF_VALUES, column=f"packed, k = {k}") for k in (15, 128, 1024)),
    Target("Unary encoding, client, of rows", 0.2, unit="ns per bit", column="bytes, k = 128"),
    Target("Unary encoding, server, from cache", 0.006, unit="ns per bit"),
    Target("Unary encoding, server, from memory", "reading the memory", 0.77),
    Target("Peak memory", 48, unit="MiB"),
    *(Target(table, BEST, 1.8, entrant=BEST_ON_TWO_THREADS) for table in BULK),
    Target("Generalised randomised response, client", 3, unit="ns per report"),
    Target("Generalised randomised response, server", 0.7, unit="ns per report"),
    Target("Projective geometry response, client", 60, unit="ns per report"),
    Target("Local hashing, server", 35, unit="ns per report", column="k = 128"),
    *(
        Target("Selection over 10^5 scores", against, unit="ms", column=column)
        for column in ("exponential", "report noisy max")
        for against in (0.46, "NumPy, exponential, PCG64")
    ),
    # 10^7 subsets in less than two minutes.
    Target("Stable bootstrap", 0.1, unit="million subsets/s"),
    Target("Stable bootstrap", "NumPy, PCG64", 2),
    Target("IQR distance of 10^7 sorted values", "NumPy sort", 10),
    Target("Distances to instability of sorted normal values", "NumPy sort", 10),
    Target("Clip and sum", "reading the memory", column="128 x 1 000 000 float32"),
    Target("Clip and sum", "NumPy, einsum twice", 3, column="128 x 1 000 000 float32"),
    *(Target("Column: count", 1, unit="ns", column=f"{library} texts") for library in ("Arrow", "polars", "pandas")),
    Target("Column: count", 3, unit="ns", column="pandas categories"),
    Target("Column: count", 5, unit="ns", column="objects"),
    *(
        Target(f"Column: {query}", PLAIN, factor, column=column)
        for query in ("sum", "mean")
        for column, factor in (("float64", 0.77), ("int64", 0.5))
    ),
    *(Target("Column: sum", 60, unit="ns", column=column) for column in ("list of floats", "list(array)")),
    Target("Column: variance", PLAIN, 1.7),
    Target("Column: median", PLAIN, 1.7),
    Target("Column: median, epsilon = 0.01", PLAIN, 1.7),
    Target("Column: histogram of 10 bins", PLAIN, 3.3),
    Target("Column: histogram of 100 bins", PLAIN, 0.67),
    Target("Column: histogram of 4 texts", PLAIN, column="pandas texts"),
    Target("Column: histogram of 4 texts", 25, unit="ns", column="objects"),
    Target("Column: stability histogram", PLAIN, 0.67),
    # About 5 ns more, which labels may take.
    Target("Integer labels, client", OF_K, 0.4, column="GeneralizedRandomizedResponse"),
    Target("Integer labels, client", OF_K, 0.8, column="OptimizedUnaryEncoding"),
)
