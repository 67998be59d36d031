"""Arguments of a wrong kind, and numbers without end: every answer names the parameter, and comes at once."""

import io
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpnoise import Gaussian, Laplace, ParameterError, PrivacyCost, local, sensitivity, stability
from dpnoise.accounting import (
    Accountant,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    LaplaceLoss,
    Ledger,
    RenyiCost,
    ZcdpCost,
    amplify_by_poisson_sampling,
    amplify_by_sampling_without_replacement,
    amplify_by_shuffling,
    compose_advanced,
    compose_parallel,
    compose_sequential,
    group_privacy,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
)

PROTOCOL = local.OptimizedUnaryEncoding(k=4, epsilon=1.0)
SEVERAL = local.Sampled(attributes={"a": PROTOCOL, "b": PROTOCOL})
SAMPLED = local.SampleAndThreshold(epsilon=1.0, delta=1e-6, sample_rate=0.5)
LOSSES = [BoundedRangeLoss(0.5), LaplaceLoss(0.5, 1), DiscreteLaplaceLoss(0.5, 2), DiscreteGaussianLoss(2.0, 1.0)]
LOSSES += [loss.sampled(0.5) for loss in LOSSES] + [loss.repeated(2) for loss in LOSSES]
# An array has no truth value, and a class is not one of its objects.
OBJECTS = [None, 3, 1.5, "x", b"x", [], {}, object(), np.ones(2), np.array(1.0), Laplace, PrivacyCost]


@pytest.mark.parametrize(("call", "name"), [
    (lambda x: group_privacy(x, 2), "cost"),
    (lambda x: amplify_by_poisson_sampling(x, sample_rate=0.1), "cost"),
    (lambda x: amplify_by_sampling_without_replacement(x, size=2, population=10), "cost"),
    (lambda x: amplify_by_shuffling(x, n=1000, delta=1e-6), "cost"),
    (lambda x: compose_advanced(x, 10, delta=1e-6), "cost"),
    (lambda x: compose_sequential([x]), "costs"),
    (lambda x: compose_parallel([x]), "costs"),
    (lambda x: Accountant().compose(x), "mechanism"),
    (lambda x: local.read_messages(io.BytesIO(), "json-lines", x), "protocol"),
    (lambda x: local.read_messages(x, "json-lines", PROTOCOL), "stream"),
    (lambda x: local.Accumulator(x), "protocol"),
    (lambda x: local.AttributesAccumulator(x), "protocol"),
    (lambda x: local.ThresholdAccumulator(x), "protocol"),
    (lambda x: PROTOCOL.accumulator().merge(x), "other"),
    (lambda x: SEVERAL.accumulator().merge(x), "other"),
    (lambda x: SAMPLED.accumulator().merge(x), "other"),
    (lambda x: local.Sampled(attributes={"a": x}), "attributes"),
])  # fmt: skip
@pytest.mark.parametrize("given", OBJECTS, ids=lambda one: f"{one!r:.12}")
def test_objects(call: Callable[[Any], object], name: str, given: Any) -> None:
    if name == "mechanism":
        pytest.importorskip("dp_accounting", reason="the extra `accounting` is not installed")
    if name in ("cost", "costs") and isinstance(given, int | float):
        given = bool(given)  # other numbers are epsilons
    with pytest.raises((TypeError, ParameterError), match=rf"^(a value of )?{name}\b.* (must|needs) "):
        call(given)


@pytest.mark.parametrize("given", [None, 3, b"x", object], ids=repr)
def test_texts_bytes_and_paths(given: Any) -> None:
    for call, name in (
        (local.protocol_from_json, "text"),
        (local.OptimizedUnaryEncoding.from_json, "text"),
        (local.AttributesProtocol.from_json, "text"),
        (lambda x: SEVERAL.variance(x, 10), "attribute"),
        (Ledger, "path"),
        (Ledger.open_readonly, "path"),
        (local.open_reports, "path"),
        (lambda x: PROTOCOL.accumulator().add_parquet(x), "path"),
        (lambda x: compose_sequential(-x if x == 3 else x), "costs"),
        (lambda x: PROTOCOL.accumulator().add_messages(x), "messages"),
        (lambda x: SEVERAL.accumulator().add_messages(x), "messages"),
    ):
        with pytest.raises((TypeError, ParameterError), match=rf"^{name} must be "):
            call(given)
    for orders in (3, object(), np.array(1)):
        with pytest.raises(TypeError, match=r"^orders must be an iterable of integers, got"):
            Ledger("/nowhere/ledger", epsilon=1.0, delta=1e-6, orders=orders)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^memo must be bytes, got"):
        local.ClientMemo.from_bytes(str(given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given", [None, 3, "x", b"x", np.array(["add/remove", "tight"]), {}], ids=lambda x: f"{x!r:.9}"
)
def test_words(given: Any) -> None:
    for call, name in (
        (lambda x: zcdp_delta(0.5, epsilon=1.0, method=x), "method"),
        (lambda x: zcdp_epsilon(0.5, delta=1e-6, method=x), "method"),
        (lambda x: zcdp_rho(epsilon=1.0, delta=1e-6, method=x), "method"),
        (lambda x: compose_advanced(PrivacyCost(0.1), 10, delta=1e-6, method=x), "method"),
        (lambda x: Gaussian(epsilon=1.0, delta=1e-6, method=x), "method"),
        (lambda x: PrivacyCost(1.0, relation=0 if x is None else x), "relation"),
        (lambda x: ZcdpCost(1.0, relation=0 if x is None else x), "relation"),  # type: ignore[arg-type]
        (lambda x: RenyiCost({2: 1.0}, relation=0 if x is None else x), "relation"),  # type: ignore[arg-type]
        (lambda x: sensitivity.check_relation(x), "relation"),
        (lambda x: local.SampleAndThreshold(epsilon=1.0, delta=1e-6, sample_rate=0.5, relation=x), "relation"),
        (lambda x: local.read_messages(io.BytesIO(), x, PROTOCOL), "framing"),
        (lambda x: PROTOCOL.accumulator().estimate(post=0 if x is None else x), "post"),
        (lambda x: stability.StableBootstrap(f=x, epsilon=1.0, delta=1e-6), "f"),
    ):
        with pytest.raises((TypeError, ParameterError), match=rf"^{name} must be "):
            call(given)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_orders_and_counts_of_a_loss(loss: Any) -> None:
    for order in (None, "x", b"x", 1j, np.ones(2), np.array(2.0), {}):
        with pytest.raises(TypeError, match=r"^order must be a number, got"):
            loss.divergence(order)
    for order in (1, 0.5, -2, math.nan, math.inf, 10**400):
        with pytest.raises(ParameterError, match=r"^order must be "):
            loss.divergence(order)
    assert loss.divergence(2) == loss.divergence(np.int64(2)) == loss.divergence(np.float32(2)) > 0
    pytest.importorskip("dp_accounting", reason="the extra `accounting` is not installed")
    for count in (None, "x", 2.5, math.nan, np.ones(2), {}):
        with pytest.raises(TypeError, match=r"^count must be an int, got"):
            loss.pld(count)
    for count in (0, -1, 2**53, 2**63 - 1, 10**400):  # of which the large ones did not come to an end
        with pytest.raises(ParameterError, match=r"^count must be "):
            loss.pld(count)


def test_a_loss_that_needs_too_many_points() -> None:
    pytest.importorskip("dp_accounting", reason="the extra `accounting` is not installed")
    for loss in (
        BoundedRangeLoss(1e6),
        LaplaceLoss(1e300, 1),
        DiscreteLaplaceLoss(1e6, 2),
        DiscreteGaussianLoss(0.01, 1),
    ):
        with pytest.raises(ParameterError, match=r"^count must be smaller, or the loss .* have more noise, got 1$"):
            loss.pld(1)


def test_what_a_file_of_reports_takes(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="the extra `arrow` is not installed")
    import pyarrow.parquet as pq

    path = tmp_path / "reports.parquet"
    pq.write_table(pa.Table.from_batches([
        PROTOCOL.to_arrow(PROTOCOL.perturb([0, 1]))
    ]), path)  # fmt: skip
    file = local.open_reports(path)
    for rows in (None, "x", 2.5, math.nan, np.ones(2)):
        with pytest.raises(TypeError, match=r"^rows must be an int, got"):
            list(file.batches(rows))
    for rows in (0, -1, 10**30):
        with pytest.raises(ParameterError, match=r"^rows must be an integer from 1"):
            list(file.batches(rows))


def test_odometers() -> None:
    for delta in (math.nan, -1.0, 0.0, 1.0, math.inf):
        with pytest.raises(ParameterError, match=r"^odometer_delta must be above 0 and below 1 - delta, got"):
            Ledger("/nowhere/ledger", rho=1.0, odometer_delta=delta)


def test_paths_that_no_file_has(tmp_path: Path) -> None:
    loop, pipe = tmp_path / "loop", tmp_path / "pipe"
    loop.symlink_to("loop")
    os.mkfifo(pipe)
    with pytest.raises(ParameterError, match=r"^path must have no NUL character, got '.*a\\x00b'"):
        local.open_reports(tmp_path / "a\0b")
    with pytest.raises(OSError, match="symbolic links"):
        local.open_reports(loop)
    with pytest.raises(ParameterError, match="must be a file, got a pipe or a device: write that to a file first"):
        local.open_reports(pipe)
    assert sorted(tmp_path.iterdir()) == [loop, pipe]
