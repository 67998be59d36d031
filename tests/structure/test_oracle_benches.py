"""The benchmark of frequency oracles measures what it says, and refuses wrong errors and endless work."""

from __future__ import annotations

import multiprocessing
import time
from types import SimpleNamespace

import numpy as np
import pytest

from benches import oracle_cases, oracles, page
from benches.oracle_cases import (
    BYTES,
    LAW,
    LDP3,
    MAXIMUM,
    MSE,
    MSE_ERROR,
    NO_POST,
    ORACLES,
    POSTS,
    Case,
    Oracle,
    by_post_title,
)
from benches.published import FELDMAN_2022, FELDMAN_2022_BY_EPSILON
from benches.record import Record
from dpnoise import local

SMALL = Case("zipf 1.0", 40, 2000, 2.0)
ALL = float("inf")
"""Seconds for all 300 collections: then even the square of one normal error in each is within a factor of 2 of the law,
except with a probability of 1e-12. Three are enough for many values."""


@pytest.fixture
def record():
    return Record("oracles", "2026-01-01", "a CPU", 2, "dpnoise, avx512", {"dpnoise": "1"})


def test_inputs_are_those_of_their_definitions():
    n = 40_000
    harmonic = sum(1 / rank for rank in range(1, 41))
    expected = n / harmonic / np.arange(1, 41)
    zipf = np.bincount(Case("zipf 1.0", 40, n, 1.0).values(), minlength=40)
    assert (np.abs(zipf - expected) < 6 * np.sqrt(expected)).all()
    assert np.bincount(Case("junta 16", 40, 1000, 1.0).values()).tolist() == [63] * 8 + [62] * 8
    assert np.bincount(Case("spike", 40, 1000, 1.0).values()).tolist() == [1000]
    gaussian = Case("gaussian", 40, n, 1.0).values()
    assert (gaussian.min(), gaussian.max()) == (0, 39)
    assert abs(gaussian.mean() - 19.5) < 6 * 40 / 6 / n**0.5
    assert abs(gaussian.std() / (40 / 6) - 1) < 0.03


@pytest.mark.parametrize("case", [*oracle_cases.PUBLISHED.values(), *oracle_cases.LARGE, *LDP3], ids=str)
def test_every_case_has_as_many_people_as_it_says_with_values_below_k(case):
    values = case.values()
    assert values.shape == (case.n,)
    assert 0 <= values.min() <= values.max() < case.k


def test_every_published_figure_has_a_case_and_a_protocol():
    assert FELDMAN_2022.keys() == oracle_cases.PUBLISHED.keys()
    assert {name for figures in (*FELDMAN_2022.values(), FELDMAN_2022_BY_EPSILON) for name in figures} <= ORACLES.keys()


@pytest.mark.parametrize("name", ORACLES)
def test_the_law_is_the_mean_variance_of_all_values(name):
    protocol = ORACLES[name].make(k=SMALL.k, epsilon=SMALL.epsilon)
    frequencies = np.bincount(SMALL.values(), minlength=SMALL.k) / SMALL.n
    variances = [protocol.variance(SMALL.n, frequency) for frequency in frequencies]
    assert oracles.law(protocol, SMALL.n) == pytest.approx(np.mean(variances) / SMALL.n, rel=1e-12)


def test_errors_are_those_of_counts():
    assert oracles.errors_of(np.array([1.0, 5.0, -2.0]), np.array([1, 3, 1]), 4) == ((4 + 9) / 3 / 4, 3.0)


def test_every_protocol_is_measured_or_left_out_with_a_reason(record):
    oracles.measure(record, SMALL, seconds=ALL)
    assert record.tables[str(SMALL)].amounts.keys() == {f"dpnoise {name}" for name in ORACLES}
    assert not record.tables[str(SMALL)].missing
    many = SMALL._replace(k=(1 << 16) + 1)
    oracles.measure(record, many, seconds=0)
    table = record.tables[str(many)]
    assert {name for name in ORACLES if ORACLES[name].reason} == {name.split()[1] for name in table.missing}
    assert table.amounts.keys() | table.missing.keys() == {f"dpnoise {name}" for name in ORACLES}
    assert f"dpnoise LocalHashing: {ORACLES['LocalHashing'].reason}." in page.report(record)


def test_post_processing_is_measured_where_it_is_asked_for(record):
    case = LDP3[0]
    oracles.measure(record, case, seconds=ALL)
    for what in (MSE, MAXIMUM):
        table = record.tables[by_post_title(case, what)]
        assert table.columns == [NO_POST, *POSTS]
        for entrant, errors in table.amounts.items():
            assert errors[NO_POST] == record.tables[str(case)].amounts[entrant][what]
    assert "dpnoise LocalHashing(g=2)" in table.amounts


def test_errors_that_are_not_those_of_the_law_are_refused(record, monkeypatch):
    def lying(k: int, epsilon: float) -> SimpleNamespace:
        honest, better = (local.GeneralizedRandomizedResponse(k=k, epsilon=e) for e in (epsilon, epsilon + 1))
        law = better.variance
        return SimpleNamespace(
            k=k, report_bytes=1, perturb=honest.perturb, accumulator=honest.accumulator, variance=law
        )

    monkeypatch.setitem(oracles.ORACLES, "Lying", Oracle(lying))
    with pytest.raises(AssertionError, match="dpnoise Lying, zipf"):
        oracles.measure(record, SMALL, seconds=ALL)


def ends(send):
    send.send(None)
    for error in (1.0, 2.0):
        send.send(oracles.Collection(1.0, 1.0, {NO_POST: (error, error)}))
    send.send("needs more memory")


def never_ends(send):
    send.send(None)
    time.sleep(600)


def fails(send):
    raise SystemExit(1)


@pytest.mark.parametrize(
    ("work", "limit", "collections", "reason"),
    [
        (ends, 60, 2, "needs more memory"),
        (never_ends, 0.1, 0, "no collection in 0.1 s"),
        (fails, 60, 0, "failed"),
    ],
)
def test_a_library_that_does_not_finish_is_shown_as_such(work, limit, collections, reason):
    found, why = oracles.within_limit(work, limit=limit)
    assert (len(found), why) == (collections, reason)
    assert not multiprocessing.active_children()


def test_the_smallest_law_of_a_column_is_bold(record):
    cases = [SMALL, SMALL._replace(epsilon=4.0)]
    for case, better in zip(cases, "AB", strict=True):
        table = record.table(str(case), "")
        table.missing["dpnoise C"] = "it is slow"
        for name in "AB":
            oracles.put(table, f"dpnoise {name}", {MSE: 10.0, LAW: 9.5 if name == better else 10.5, MAXIMUM: 20.0})
    assert page.by_epsilon(record, cases).splitlines()[4:] == [
        "| `A` | 10.0 (**9.50**), 20.0 | 10.0 (10.5), 20.0 |",
        "| `B` | 10.0 (10.5), 20.0 | 10.0 (**9.50**), 20.0 |",
        "| `C` | it is slow |  |",
    ]


def test_a_library_that_changes_its_counts_is_set_beside_ours_of_that_kind(record):
    table = record.table(str(SMALL), "")
    ours = oracles.Collection(30.0, 0.5, {NO_POST: (4.0, 9.0), "norm-mul": (3.0, 8.0)})
    oracles.put(table, "dpnoise A", oracles.amounts([ours, ours]) | {BYTES: 2})
    oracles.put(
        table, "multi-freq-ldpy A", oracles.amounts([oracles.Collection(2000.0, 7.0, {"norm-mul": (3.5, 8.0)})])
    )
    assert page.costs(table).splitlines()[2:] == [
        "|  | MSE/n | MSE/n, norm-mul | bytes | client, ns per report | collector, ms |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        "| `A` | 4.00 | 3.00 | 2 | 30 | 0.500 |",
        "| multi-freq-ldpy, A |  | 3.50 |  | 2,000 | 7.00 |",
    ]


def test_errors_are_shown_with_the_digits_that_are_known(record):
    for case in oracle_cases.PUBLISHED.values():
        table = record.table(str(case), "")
        for name in FELDMAN_2022["zipf 1.0"]:
            oracles.put(table, f"dpnoise {name}", {MSE: 0.02746, MSE_ERROR: 3.1e-5, LAW: 0.02741})
    rows = page.published(record, MSE, MSE_ERROR).splitlines()[4:]
    assert len(rows) == len(FELDMAN_2022)
    ours = "0.02746 ± 0.00003 | 0.02741"
    assert rows[2] == f"| zipf 1.0 | {ours} | 0.02725 ± 0.00002 | {ours} | 0.02731 ± 0.00002 |"
