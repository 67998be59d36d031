"""The packaged data set against the figures that its source states."""

import gzip
import os
import runpy
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dpnoise import datasets
from tools import make_adult_columns

ROOT = Path(__file__).parents[2]

COUNTS = {
    "Prof-specialty": 4140,
    "Craft-repair": 4099,
    "Exec-managerial": 4066,
    "Adm-clerical": 3770,
    "Sales": 3650,
    "Other-service": 3295,
    "Machine-op-inspct": 2002,
    "(missing)": 1843,
    "Transport-moving": 1597,
    "Handlers-cleaners": 1370,
    "Farming-fishing": 994,
    "Tech-support": 928,
    "Protective-serv": 649,
    "Priv-house-serv": 149,
    "Armed-Forces": 9,
}


def test_counts_are_those_of_the_source() -> None:
    codes, labels = datasets.adult_occupations()
    assert codes.shape == (32_561,)
    assert codes.dtype == np.int64
    assert labels == tuple(sorted(COUNTS))
    assert dict(zip(labels, np.bincount(codes).tolist(), strict=True)) == COUNTS


def test_rows_are_in_the_original_order() -> None:
    codes, labels = datasets.adult_occupations()
    first = [labels[code] for code in codes[:5]]
    assert first == ["Adm-clerical", "Exec-managerial", "Handlers-cleaners", "Handlers-cleaners", "Prof-specialty"]


@pytest.mark.parametrize(
    ("column", "first", "smallest", "largest", "total"),
    [
        (datasets.adult_ages(), [39, 50, 38, 53, 28], 17, 90, 1_256_257),
        (datasets.adult_hours_per_week(), [40, 13, 40, 40, 40], 1, 99, 1_316_684),
    ],
    ids=["age", "hours_per_week"],
)
def test_numbers_are_those_of_the_source(
    column: NDArray[np.int64], first: list[int], smallest: int, largest: int, total: int
) -> None:
    assert column.shape == (32_561,)
    assert column.dtype == np.int64
    assert column[:5].tolist() == first
    assert (column.min(), column.max(), column.sum()) == (smallest, largest, total)


def test_incomes_are_those_of_the_source() -> None:
    features, is_high, names = datasets.adult_incomes()
    assert features.shape == (32_561, len(names)) == (32_561, 28)
    assert is_high.sum() == 7841
    assert features.min() == 0
    assert features.max() == 1
    column = dict(zip(names, features.T, strict=True))
    np.testing.assert_array_equal(np.rint(column["education_num"][:5] * 16), [13, 13, 9, 7, 13])
    np.testing.assert_array_equal(np.rint(np.expm1(column["capital_gain"][:2] * np.log1p(1e5))), [2174, 0])
    assert column["sex: Male"].sum() == 21_790
    assert column["marital_status: Never-married"].sum() == 10_683
    for kind in ("marital_status", "occupation"):
        np.testing.assert_array_equal(sum(column[name] for name in names if name.startswith(kind)), 1)


def test_compact_copies_depend_on_the_data_only(tmp_path: Path) -> None:
    """Made again of what is packaged, they are the same."""
    folder = Path(datasets.__file__).parent / "data"
    unpacked = {name: gzip.decompress((folder / name).read_bytes()) for name in make_adult_columns.FILES}
    source = tmp_path / "adult.csv"
    lines = zip(*(text.decode("ascii").removesuffix("\n").split("\n") for text in unpacked.values()), strict=True)
    source.write_text("\n".join(map(",".join, lines)), encoding="utf-8")
    for name, columns in make_adult_columns.FILES.items():
        packed = make_adult_columns.compact(source, columns)
        os.utime(source, (0, 0))
        assert make_adult_columns.compact(source, columns) == packed
        assert gzip.decompress(packed) == unpacked[name]


def test_attribution_travels_with_the_data() -> None:
    readme = (Path(datasets.__file__).parent / "data" / "README.md").read_text(encoding="utf-8")
    for words in ("Becker", "Kohavi", "10.24432/C5XW20", "CC BY 4.0"):
        assert words in readme
        assert words in datasets.ADULT_ATTRIBUTION


def test_the_example_of_dp_sgd_learns() -> None:
    script = ROOT / "examples" / "dp_sgd_adult.py"
    if not script.exists():
        pytest.skip("the examples are not part of this installation")
    example = runpy.run_path(str(script))
    features, is_high, _ = datasets.adult_incomes()
    features = np.column_stack([np.ones(len(features)), features])
    always_no = 1 - is_high.mean()
    accuracies = [
        example["accuracy"](weights, features, is_high)
        for weights in (
            example["train_privately"](features, is_high, 60, 1.0),
            example["train_without_privacy"](features, is_high, 60),
        )
    ]
    # The noise moves the first one by some tenths of a percent.
    assert min(accuracies) > always_no + 0.02
    assert max(accuracies) < 0.85
