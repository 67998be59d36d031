"""The packaged data set against the figures that its source states."""

import csv
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpnoise import datasets

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


def test_compact_copy_depends_on_the_data_only(tmp_path: Path) -> None:
    codes, labels = datasets.adult_occupations()
    source = tmp_path / "adult.csv"
    with source.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "occupation"])
        writer.writerows([39, labels[code].replace("(missing)", "")] for code in codes)
    script = ROOT / "scripts" / "make_adult_occupations.py"
    spec = importlib.util.spec_from_file_location("make_adult_occupations", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    packed = module.compact(source)
    os.utime(source, (0, 0))
    assert module.compact(source) == packed
    packaged = (Path(datasets.__file__).parent / "data" / "adult_occupations.csv.gz").read_bytes()
    assert module.gzip.decompress(packed) == module.gzip.decompress(packaged)


def test_attribution_travels_with_the_data() -> None:
    readme = (Path(datasets.__file__).parent / "data" / "README.md").read_text(encoding="utf-8")
    for words in ("Becker", "Kohavi", "10.24432/C5XW20", "CC BY 4.0"):
        assert words in readme
        assert words in datasets.ADULT_ATTRIBUTION


def test_example_runs() -> None:
    script = ROOT / "examples" / "adult_occupations.py"
    if not script.exists():
        pytest.skip("the examples are not part of this installation")
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=120)
    assert "Armed-Forces" in run.stdout
    assert "root-mean-square error" in run.stdout
    assert run.stderr == ""
