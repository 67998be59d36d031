"""Prefix extension: parameters, values, what is found, and every input that cannot be used."""

import numpy as np
import pytest
from refusals import refuses

from dpnoise import ParameterError, RandomnessError, local
from dpnoise.hazmat import ScriptedRng, SeededRng

PROTOCOL = local.PrefixExtension(epsilon=4.0, bits=20, step=8, rows=256, width=64, seed=3)


def test_parameters_out_of_range():
    def refused(message, **parameters):
        good = {"epsilon": 1.0, "bits": 20, "rows": 4, "width": 16}
        refuses(ParameterError, message, local.PrefixExtension, **{**good, **parameters})

    message = "bits, step, rows and width must be such that levels * rows is at most 65536 and levels * rows * width"
    refused(f"{message} at most 2**24, got 3 levels of rows = 30000 and width = 8", rows=30_000, width=8)
    refused(message, rows=1024, width=2**13)


def test_a_protocol_is_a_value():
    assert (PROTOCOL.bits, PROTOCOL.step, PROTOCOL.rows, PROTOCOL.width, PROTOCOL.seed) == (20, 8, 256, 64, 3)
    assert 0.999 * 4.0 <= PROTOCOL.epsilon <= PROTOCOL.requested_epsilon == 4.0
    assert PROTOCOL.report_bytes == 3  # 2 * 3 levels * 256 rows * 64 columns


def test_values_that_cannot_be_used():
    message = "values must be integers in [0, 2**bits) with bits = 20"
    for bad in (2**20, -1, -(2**63), 2**63 - 1):
        refuses(ParameterError, message, PROTOCOL.perturb, [3, bad, 4], rng=ScriptedRng(b""))
    refuses(ParameterError, message, PROTOCOL.perturb, np.array([2**64 - 1], np.uint64))
    refuses(TypeError, "values must be integers, got dtype float64", PROTOCOL.perturb, [0.5])
    refuses(TypeError, "values must be integers, got dtype str", PROTOCOL.perturb, ["plum"])
    refuses(ParameterError, "out must have the shape", PROTOCOL.perturb, [1, 2], out=np.empty((3, 3), np.uint8))
    out = np.ones((2, 3), np.uint8)
    refuses(RandomnessError, "nothing was released", PROTOCOL.perturb, [1, 2], out=out, rng=ScriptedRng(b""))
    assert not out.any()
    assert PROTOCOL.perturb([]).shape == (0, 3)


@pytest.mark.parametrize(("bits", "step"), [(20, 7), (63, 16)])
def test_frequent_values_are_found_whatever_the_lengths(bits, step):
    protocol = local.PrefixExtension(epsilon=8.0, bits=bits, step=step, rows=256, width=64)
    values = sorted({2**bits - 1, 2**bits // 3})
    truth = [100_000, 50_000][: len(values)]
    reports = protocol.perturb(np.repeat(np.array(values), truth))
    found = protocol.estimate(reports, level=1 - 1e-9)
    assert found.values.tolist() == values
    assert np.all(np.abs(found.counts - truth) < 7 * found.standard_errors)
    assert np.all((found.lower <= truth) & (truth <= found.upper))
    assert (found.n, found.rejected) == (sum(truth), 0)
    assert found.to_arrow().column_names == ["value", "count", "standard_error", "lower", "upper"]
    refuses(ValueError, "read-only", found.values.fill, 0)


def test_texts_are_numbers():
    protocol = local.PrefixExtension(epsilon=8.0, bits=56, rows=256, width=64)
    words = [b"plum", b"quince", b"fig"] * 40_000
    reports = protocol.perturb([int.from_bytes(word.ljust(7, b"\0"), "big") for word in words])
    found = protocol.estimate(reports, level=1 - 1e-9)
    assert {value.to_bytes(7, "big").rstrip(b"\0") for value in found.values.tolist()} == set(words)


def test_values_that_few_have_are_not_found():
    """Each of a thousand people has a value of their own; a result is wrong with a probability of 1e-9."""
    protocol = local.PrefixExtension(epsilon=1.0, bits=63, step=9, rows=256, width=64)
    found = protocol.estimate(protocol.perturb(np.arange(1000) * 2**52), level=1 - 1e-9)
    assert found.values.size == found.to_pandas().shape[0] == 0
    assert protocol.estimate(protocol.accumulator()).values.size == 0


def test_states_merge():
    values = np.repeat([123_456, 1], [3000, 5000])
    reports = PROTOCOL.perturb(values, rng=SeededRng(1))
    whole, first, second = PROTOCOL.accumulator(), PROTOCOL.accumulator(), PROTOCOL.accumulator()
    whole.add(reports)
    first.add(reports[:1234])
    second.add_messages(PROTOCOL.messages(reports[1234:]))
    first.merge(local.Accumulator.from_bytes(second.to_bytes()))
    assert first == whole
    assert np.array_equal(PROTOCOL.estimate(first).counts, PROTOCOL.estimate(reports).counts)
    refuses(TypeError, "use PrefixExtension.estimate(accumulator", whole.estimate)
    refuses(
        ParameterError, "collected must be of", PROTOCOL.estimate, local.RandomizedResponse(epsilon=1).accumulator()
    )
    for level in (0.0, 1.0, float("nan")):
        refuses(ParameterError, "level must be between 0 and 1, exclusive", PROTOCOL.estimate, whole, level=level)


def test_reports_that_support_everything_cost_no_more_than_seconds() -> None:
    """The first column of a Hadamard matrix has the same entry for all values."""
    protocol = local.PrefixExtension(epsilon=4.0, bits=32, step=8, rows=512, width=256)
    honest = protocol.perturb(np.repeat([123456789, 987654321], [20_000, 10_000]))
    numbers = np.arange(4 * 512) * 256 * 2
    crafted = np.tile(numbers, 8).astype("<u4").view(np.uint8).reshape(-1, 4)[:, : protocol.report_bytes]
    found = protocol.estimate(np.vstack([honest, crafted]))
    assert not found.complete
    assert found.tested <= 2**20
    assert protocol.estimate(honest).complete
