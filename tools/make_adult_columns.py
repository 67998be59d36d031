"""Make the compact copies of columns of Adult that the package ships.

Usage: ``python tools/make_adult_columns.py ADULT.csv [FOLDER]``

``ADULT.csv`` is the UCI *Adult* training set with a header line, blanks trimmed, and a missing value as an empty field.
"""

import argparse
import csv
import gzip
from collections.abc import Sequence
from pathlib import Path

DEFAULT_FOLDER = Path(__file__).parents[1] / "python" / "dpnoise" / "data"

FILES = {
    "adult_occupations.csv.gz": ["occupation"],
    "adult_numbers.csv.gz": ["age", "hours_per_week"],
    "adult_incomes.csv.gz": ["education_num", "marital_status", "sex", "capital_gain", "capital_loss", "income"],
}


def compact(source: Path, columns: Sequence[str]) -> bytes:
    """Return these columns of `source`, gzipped, with their header, in the original row order.

    The result depends on the data only: no time stamp and no file name.
    """
    with source.open(encoding="utf-8", newline="") as file:
        rows = [",".join(row[column] for column in columns) for row in csv.DictReader(file)]
    text = "\n".join([",".join(columns), *rows, ""])
    return gzip.compress(text.encode("ascii"), compresslevel=9, mtime=0)


def main() -> None:
    """Read the source named on the command line and write the compact copies."""
    parser = argparse.ArgumentParser(description="Make the compact copies of columns of Adult.")
    parser.add_argument("source", type=Path, help="the Adult training set as CSV with a header line")
    parser.add_argument("folder", type=Path, nargs="?", default=DEFAULT_FOLDER, help="where to write the .csv.gz files")
    arguments = parser.parse_args()
    for name, columns in FILES.items():
        (arguments.folder / name).write_bytes(compact(arguments.source, columns))


if __name__ == "__main__":
    main()
