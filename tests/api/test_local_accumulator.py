"""Accumulators and estimates: counting, splitting, merging, serialising, and everything that cannot be counted."""

import copy
import json
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses

from dpnoise import ParameterError, local
from dpnoise.hazmat import SeededRng
from tests.vectors import local_spec

PROTOCOL = local.OptimizedUnaryEncoding(k=15, epsilon=1.0)
RESPONSE = local.RandomizedResponse.coin_flips()
ENCODINGS = [
    local.UnaryEncoding(k=2, p=0.75, q=0.25),
    PROTOCOL,
    local.SymmetricUnaryEncoding(k=104, epsilon=2.0),
    local.OptimizedUnaryEncoding(k=128, epsilon=0.5),
    local.OptimizedUnaryEncoding(k=1001, epsilon=3.0),
]


DIRECT = [
    local.GeneralizedRandomizedResponse(k=2, epsilon=0.5),
    local.GeneralizedRandomizedResponse(k=15, epsilon=1.0),
    local.GeneralizedRandomizedResponse(k=1001, epsilon=3.0),
    local.GeneralizedRandomizedResponse(k=70_000, epsilon=3.0),
]
HASHED = [
    local.LocalHashing(k=15, epsilon=1.0),
    local.LocalHashing(k=130, epsilon=3.0),
    local.HadamardResponse(k=2, epsilon=1.0),
    local.HadamardResponse(k=130, epsilon=1.0),
    local.SubsetSelection(k=15, epsilon=1.0),
    local.SubsetSelection(k=130, epsilon=1.0),
]
PROJECTIVE = [
    local.ProjectiveGeometryResponse(k=15, epsilon=1.0),
    local.ProjectiveGeometryResponse(k=130, epsilon=3.0),
]
PROTOCOLS = [*ENCODINGS, *DIRECT, *HASHED, *PROJECTIVE]


def reports_of(protocol: local.Protocol, n: int) -> np.ndarray:
    return protocol.perturb(np.arange(n) % protocol.k, rng=SeededRng(n))


def counted(protocol: local.Protocol, reports: np.ndarray) -> local.Accumulator:
    accumulator = protocol.accumulator()
    accumulator.add(reports)
    return accumulator


def supported(protocol: local.Protocol, reports: np.ndarray) -> np.ndarray:
    """How many reports count for each value, counted without the library."""
    if protocol in HASHED:
        spec = json.loads(protocol.to_json())
        return np.sum([local_spec.supports(spec, row.tobytes()) for row in reports], axis=0, dtype=int)
    if protocol in PROJECTIVE:
        spec = json.loads(protocol.to_json())
        points = [local_spec.digits_of(spec, i, protocol.dimension) for i in range(local_spec.counters_of(spec))]
        counts = np.bincount(reports.astype(int) @ 256 ** np.arange(protocol.report_bytes), minlength=len(points))
        meets = np.array(points)[: protocol.k] @ np.array(points)[:, ::-1].T % protocol.prime == 0
        return meets @ counts
    if isinstance(protocol, local.GeneralizedRandomizedResponse):
        return np.bincount(reports.astype(int) @ 256 ** np.arange(protocol.report_bytes), minlength=protocol.k)
    return np.unpackbits(reports, axis=1, bitorder="little", count=protocol.k).sum(axis=0)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
@pytest.mark.parametrize("n", [0, 1, 7, 128, 5000])
def test_estimates_follow_the_definition(protocol, n):
    reports = reports_of(protocol, n)
    p, q = protocol.p, protocol.q
    counts = (supported(protocol, reports) - n * q) / (p - q)
    estimate = protocol.estimate(reports)
    assert np.allclose(estimate.counts, counts, rtol=1e-12, atol=1e-9 * max(n, 1))
    frequencies = np.clip(counts / n, 0.0, 1.0) if n else np.zeros(protocol.k)
    variances = n * (q * (1 - q) / (p - q) ** 2 + frequencies * (1 - p - q) / (p - q))
    assert np.allclose(estimate.standard_errors, np.sqrt(variances), rtol=1e-9)
    assert np.allclose(estimate.upper - estimate.lower, 2 * 1.959963984540054 * estimate.standard_errors)
    assert (estimate.n, estimate.rejected, estimate.level, estimate.simultaneous) == (n, 0, 0.95, False)


def test_randomised_response_counts_no_and_yes():
    reports = RESPONSE.perturb(np.arange(10_000) < 3000, rng=SeededRng(3))
    yes = (reports.sum() - 2500) / 0.5
    estimate = RESPONSE.estimate(reports)
    assert np.allclose(estimate.counts, [10_000 - yes, yes])
    assert np.allclose(estimate.standard_errors, np.sqrt(10_000 * 0.75))
    as_bytes = RESPONSE.estimate(reports.view(np.uint8).reshape(-1, 1))
    assert np.array_equal(as_bytes.counts, estimate.counts)
    wider = RESPONSE.estimate(reports, level=0.99)
    assert (wider.lower < estimate.lower).all()
    assert wider.level == 0.99


def test_simultaneous_intervals_are_wider():
    accumulator = counted(PROTOCOL, reports_of(PROTOCOL, 1000))
    one, all_of_them = accumulator.estimate(), accumulator.estimate(simultaneous=True)
    assert (all_of_them.lower < one.lower).all()
    assert all_of_them.simultaneous
    # Bonferroni: each of the 15 at 1 - 0.05 / 15.
    each = accumulator.estimate(level=1 - 0.05 / 15)
    assert np.allclose(all_of_them.upper, each.upper)
    answers = RESPONSE.accumulator()
    answers.add(np.ones(9, bool))
    assert np.array_equal(answers.estimate(simultaneous=True).lower, answers.estimate().lower), "one count, told twice"
    for level in (0.0, 1.0, 2.0, float("nan")):
        refuses(ParameterError, "level must be between 0 and 1, exclusive, got", accumulator.estimate, level=level)


def test_estimates_do_not_change():
    estimate = PROTOCOL.estimate(reports_of(PROTOCOL, 10))
    with pytest.raises(AttributeError):
        estimate.n = 3
    with pytest.raises(ValueError, match="read-only"):
        estimate.counts[0] = 3.0


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_the_split_does_not_show(protocol):
    for size, parts in ((7, 40), (128, 20), (1024, 3)):
        reports = reports_of(protocol, size * parts - 5)
        whole, streamed, merged = counted(protocol, reports), protocol.accumulator(), protocol.accumulator()
        for first in range(0, len(reports), size)[::-1]:
            part = reports[first : first + size]
            streamed.add(part, threads=2)
            merged.merge(local.Accumulator.from_bytes(counted(protocol, part).to_bytes()))
        assert streamed.to_bytes() == merged.to_bytes() == whole.to_bytes()
    assert copy.deepcopy(whole) == pickle.loads(pickle.dumps(whole)) == whole  # noqa: S301


def test_threads_may_share_an_accumulator():
    reports = reports_of(PROTOCOL, 200_000)
    shared = PROTOCOL.accumulator()
    parts = np.array_split(reports, 8)
    threads = [threading.Thread(target=shared.add, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared == counted(PROTOCOL, reports)


def test_no_accumulator_is_merged_into_itself():
    accumulator = counted(PROTOCOL, reports_of(PROTOCOL, 10))
    message = "other must be another accumulator, got this one, whose reports would count twice"
    refuses(ParameterError, message, accumulator.merge, accumulator)
    assert accumulator.n == 10


@pytest.mark.filterwarnings("ignore::dpnoise.DoubtfulInputWarning")
def test_malformed_reports_are_counted_as_rejected():
    reports = reports_of(PROTOCOL, 100)
    reports[[3, 50, 51], 1] |= 0x80
    accumulator = counted(PROTOCOL, reports)
    assert (accumulator.n, accumulator.rejected) == (97, 3)
    assert accumulator.rejected_reasons == {"tail bits set": 3}
    good = np.delete(reports, [3, 50, 51], axis=0)
    assert np.array_equal(accumulator.estimate().counts, PROTOCOL.estimate(good).counts)
    assert accumulator.estimate().rejected == 3
    assert "97 reports (3 rejected)" in repr(accumulator)
    answers = RESPONSE.accumulator()
    answers.add(np.array([[0], [1], [2], [255]], np.uint8))
    assert (answers.n, answers.rejected_reasons) == (2, {"tail bits set": 2})


def test_no_reports():
    empty = PROTOCOL.estimate(np.empty((0, 2), np.uint8))
    assert not empty.counts.any()
    assert not empty.upper.any()
    assert PROTOCOL.accumulator().rejected_reasons == {}


def test_reports_that_cannot_be_counted():
    accumulator = PROTOCOL.accumulator()
    refuses(ParameterError, "reports must have shape (n, 2), got (10, 3)", accumulator.add, np.zeros((10, 3), np.uint8))
    refuses(ParameterError, "reports must have shape (n, 2), got (10,)", accumulator.add, np.zeros(10, np.uint8))
    message = "reports must be a NumPy array of dtype uint8 and shape (n, 2), got dtype"
    refuses(TypeError, f"{message} int64", accumulator.add, np.zeros((10, 2), int))
    refuses(TypeError, f"{message} float64", accumulator.add, [[0.0, 1.0]])
    masked = np.ma.masked_array(np.zeros((1, 2), np.uint8), [[True, False]])
    refuses(ParameterError, "reports must have no masked values", accumulator.add, masked)
    message = "reports must have dtype bool and shape (n,), or dtype uint8 and shape (n, 1); got dtype"
    refuses(TypeError, f"{message} int64", RESPONSE.accumulator().add, np.zeros(10, int))
    refuses(ParameterError, f"{message} uint8 and shape (10,)", RESPONSE.accumulator().add, np.zeros(10, np.uint8))
    refuses(ParameterError, f"{message} bool and shape (5, 2)", RESPONSE.estimate, np.zeros((5, 2), bool))
    assert accumulator == PROTOCOL.accumulator()


def test_non_contiguous_reports_are_handled():
    reports = reports_of(PROTOCOL, 1000)
    expected = counted(PROTOCOL, reports[::3])
    assert counted(PROTOCOL, np.asfortranarray(reports[::3])) == expected
    assert counted(PROTOCOL, reports[::3].copy()) == expected


def test_a_state_of_another_protocol():
    other = local.SymmetricUnaryEncoding(k=15, epsilon=1.0)
    message = f"other must be of the same protocol, {PROTOCOL.to_json()}, got {other.to_json()}"
    refuses(ParameterError, message, PROTOCOL.accumulator().merge, other.accumulator())
    refuses(TypeError, "other must be an Accumulator, got bytes", PROTOCOL.accumulator().merge, b"")
    refuses(TypeError, "protocol must be a protocol of dpnoise.local for one attribute, got int", local.Accumulator, 3)


# --- States --------------------------------------------------------------------------------------------------------

STATE = counted(PROTOCOL, reports_of(PROTOCOL, 100)).to_bytes()


def test_a_state_reads_back():
    for protocol in (*PROTOCOLS, RESPONSE):
        accumulator = protocol.accumulator()
        state = local.Accumulator.from_bytes(accumulator.to_bytes())
        assert state == accumulator
        assert state.protocol == protocol
    assert local.Accumulator.from_bytes(STATE).to_bytes() == STATE


def test_a_truncated_state():
    for length in range(len(STATE)):
        refuses(ParameterError, "truncated", local.Accumulator.from_bytes, STATE[:length])


def test_other_files():
    for other in (b"PAR1" * 100, b"{}" * 20, b"\x89PNG\r\n\x1a\n" * 10):
        refuses(ParameterError, "it does not begin with DPNA", local.Accumulator.from_bytes, other)
    newer = STATE[:5] + b"\x02" + STATE[6:]
    message = "the state has serial version 2; this release reads up to 1: upgrade dpnoise"
    refuses(ParameterError, message, local.Accumulator.from_bytes, newer)
    refuses(ParameterError, "the state is damaged", local.Accumulator.from_bytes, STATE + b"\x00")


@given(st.integers(0, 8 * len(STATE) - 1))
def test_a_flipped_bit_is_noticed(bit):
    damaged = bytearray(STATE)
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ParameterError, match="state"):
        local.Accumulator.from_bytes(bytes(damaged))


@given(st.integers(0, len(STATE)), st.integers(0, len(STATE)), st.binary(max_size=20))
@settings(max_examples=500)
def test_a_replaced_part_is_noticed(first, last, part):
    damaged = STATE[:first] + part + STATE[last:]
    if damaged != STATE:
        with pytest.raises(ParameterError, match="state"):
            local.Accumulator.from_bytes(damaged)


@given(st.binary(max_size=300))
def test_noise_is_not_a_state(noise):
    for state in (noise, STATE[:16] + noise):
        with pytest.raises(ParameterError, match="state"):
            local.Accumulator.from_bytes(state)


def test_messages_are_counted_or_rejected_with_the_reason():
    reports = reports_of(PROTOCOL, 100)
    messages = PROTOCOL.messages(reports)
    accumulator = PROTOCOL.accumulator()
    accumulator.add_messages(iter(messages), threads=2)
    assert accumulator == counted(PROTOCOL, reports)
    other = local.OptimizedUnaryEncoding(k=15, epsilon=2.0).messages(reports[:3])
    bad = [*other, b"", messages[0][:-1], messages[0] + b"0", messages[0][:-1] + b"\xff"]
    accumulator.add_messages(bad)
    assert accumulator.rejected_reasons == {"tail bits set": 1, "wrong length": 2, "wrong header": 4}
    before = accumulator.to_bytes()
    malformed = "reports must all be well-formed when strict is true, got malformed: wrong header: 3"
    refuses(ParameterError, malformed, accumulator.add_messages, [*messages, *other], strict=True)
    refuses(TypeError, "messages must be bytes, got str", accumulator.add_messages, [*messages, "no"])
    refuses(ParameterError, "threads must be", accumulator.add_messages, messages, threads=0)
    assert accumulator.to_bytes() == before
