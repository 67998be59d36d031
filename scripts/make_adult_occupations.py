"""Make the compact copy of the Adult occupations that the package ships.

Usage: ``python scripts/make_adult_occupations.py ADULT.csv [TARGET.csv.gz]``

``ADULT.csv`` is the UCI *Adult* training set with a header line, blanks trimmed, and a missing value as an empty field.
"""

import argparse
import csv
import gzip
from pathlib import Path

DEFAULT_TARGET = Path(__file__).parents[1] / "python" / "dpnoise" / "data" / "adult_occupations.csv.gz"


def compact(source: Path) -> bytes:
    """Return the gzipped column ``occupation`` of `source`, with its header, in the original row order.

    The result depends on the data only: no time stamp and no file name.
    """
    with source.open(encoding="utf-8", newline="") as file:
        occupations = [row["occupation"] for row in csv.DictReader(file)]
    text = "\n".join(["occupation", *occupations, ""])
    return gzip.compress(text.encode("ascii"), compresslevel=9, mtime=0)


def main() -> None:
    """Read the source named on the command line and write the compact copy."""
    parser = argparse.ArgumentParser(description="Make the compact copy of the Adult occupations.")
    parser.add_argument("source", type=Path, help="the Adult training set as CSV with a header line")
    parser.add_argument("target", type=Path, nargs="?", default=DEFAULT_TARGET, help="where to write the .csv.gz")
    arguments = parser.parse_args()
    arguments.target.write_bytes(compact(arguments.source))


if __name__ == "__main__":
    main()
