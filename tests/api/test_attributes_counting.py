"""Several attributes: counting reports and messages, states, and threads."""

import io
import pickle
import zlib
from threading import Event, Thread

import numpy as np
import pytest
from api.several_attributes import BOTH, COLOURS, counted, mixed, people, small
from refusals import refuses
from vectors.local_spec import crc32c

from dpnoise import ParameterError, local


@pytest.mark.filterwarnings("ignore::dpnoise.DoubtfulInputWarning")
def test_malformed_reports_of_sampled_are_counted_by_reason():
    protocol = small()
    good = [[0, 2, 0], [1, 43, 1]]
    bad = [[2, 0, 0], [255, 0, 0], [0, 1, 1], [0, 3, 0], [1, 44, 1], [1, 255, 255]]
    found = counted(protocol, np.array(good + bad, np.uint8))
    assert (found.n, found.n_by_attribute, found.rejected) == (2, {"a": 1, "b": 1}, 6)
    reasons = found.rejected_reasons
    assert (reasons.pop("unknown attribute"), reasons.pop("padding set"), sum(reasons.values())) == (2, 1, 3)
    estimate = protocol.estimate(found)
    assert (estimate["a"].n, estimate["a"].rejected, estimate["b"].rejected) == (2, 1, 2)
    before = found.to_bytes()
    refuses(ParameterError, "strict is true, got malformed: ", found.add, np.array(good + bad, np.uint8), strict=True)
    assert found.to_bytes() == before


@pytest.mark.filterwarnings("ignore::dpnoise.DoubtfulInputWarning")
def test_a_malformed_part_of_split_costs_that_part():
    protocol = small(local.Split)
    found = counted(protocol, np.array([[2, 43, 1], [3, 43, 1], [1, 44, 1], [3, 44, 1]], np.uint8))
    assert (found.n, found.n_by_attribute, found.rejected) == (4, {"a": 2, "b": 2}, 4)
    estimate = protocol.estimate(found)
    assert (estimate["a"].n, estimate["a"].rejected) == (2, 2)


@pytest.mark.parametrize("make", BOTH)
def test_messages(make):
    protocol, other = small(make), small(make, epsilon=2.0)
    columns = {"a": ["red", "blue", "red"], "b": [1, 299, 3]}
    reports = protocol.perturb(columns)
    messages = protocol.messages(reports)
    assert {message[:12] for message in messages} == {
        b"DP\x01" + bytes([128 + BOTH.index(make)]) + bytes.fromhex(protocol.spec_id)
    }
    found = protocol.accumulator()
    foreign = [*other.messages(other.perturb(columns)), *protocol.attributes["b"].messages(reports[:, 1:3])]
    found.add_messages([*messages, *foreign, messages[0] + b"\0", messages[1][:-1], messages[2][:12], b"", b"DP"])
    assert found.rejected_reasons == {"wrong header": len(foreign) + 2, "wrong length": 3}
    well_formed = protocol.accumulator()
    stream = io.BytesIO(b"".join(len(message).to_bytes(4, "little") + message for message in messages))
    well_formed.add_messages(local.read_messages(stream, "length-prefixed", protocol), strict=True)
    assert (found.n, found.n_by_attribute) == (well_formed.n, well_formed.n_by_attribute)
    found = well_formed
    assert found == counted(protocol, reports)
    refuses(TypeError, "messages must be bytes, got str", found.add_messages, ["DP"])
    refuses(ParameterError, "wrong header: 1", found.add_messages, [*messages, b""], strict=True)
    assert found == counted(protocol, reports)


@pytest.mark.parametrize("make", BOTH)
def test_states_merge_to_the_same_bytes(make):
    protocol = mixed(make, epsilon=1.0)
    reports = protocol.perturb(people(500))
    reports[::7] ^= 255
    whole, total = counted(protocol, reports), protocol.accumulator()
    for part in np.array_split(reports, 3):
        total.merge(local.AttributesAccumulator.from_bytes(counted(protocol, part).to_bytes()))
    assert total == whole
    assert (whole.rejected > 0, whole.n_by_attribute == total.n_by_attribute) == (True, True)
    copy = pickle.loads(pickle.dumps(whole))  # noqa: S301
    assert (copy, copy.protocol, copy.rejected_reasons) == (whole, protocol, whole.rejected_reasons)
    refuses(ParameterError, "other must be another accumulator, got this one", total.merge, total)
    assert total == whole
    assert whole != reports
    assert f"{whole.n} reports ({whole.rejected} rejected) of {make.__name__}" in repr(whole)


@pytest.mark.parametrize("make", BOTH)
def test_states_of_other_attributes_are_named_and_nothing_is_lost(make):
    protocol = small(make)
    found = counted(protocol, protocol.perturb({"a": ["red"] * 90, "b": [3] * 90}))
    before = found.to_bytes()
    renamed = make(attributes=dict(zip("ac", protocol.attributes.values(), strict=True)))
    relabelled = make(attributes={**protocol.attributes, "a": protocol.attributes["a"].about(domain=["x", "y", "z"])})
    for other, message in (
        (small(make, epsilon=2.0), "other must be of the same protocol, "),
        (renamed, "other must be of the same protocol, "),
        (small(BOTH[make is BOTH[0]]), "other must be of the same protocol, "),
        (relabelled, "other must be of the same collection, got one about other labels ("),
        (protocol.about(period="2026-W48"), 'other must be of the same collection, got one about another period ("'),
    ):
        refuses(ParameterError, message, found.merge, other.accumulator())
    for other in (protocol.attributes["a"].accumulator(), before):
        refuses(TypeError, "other must be an AttributesAccumulator", found.merge, other)
    refuses(TypeError, "other must be an Accumulator", protocol.attributes["a"].accumulator().merge, found)
    assert found.to_bytes() == before
    without_labels = local.AttributesAccumulator.from_bytes(before)
    assert protocol.estimate(without_labels)["a"].domain == tuple(COLOURS)
    refuses(TypeError, "protocol must be Sampled or Split", local.AttributesAccumulator, protocol.attributes["a"])
    refuses(TypeError, f"for one attribute, got {make.__name__}", local.Accumulator, protocol)


@pytest.mark.parametrize("make", BOTH)
def test_damaged_states_are_refused(make):
    protocol = small(make)
    state = counted(protocol, protocol.perturb({"a": ["red"] * 9, "b": [3] * 9})).to_bytes()
    read = local.AttributesAccumulator.from_bytes

    def sealed(changed: bytes) -> bytes:
        """Make the length and the checksum right again."""
        changed = changed[:8] + (len(changed) + 4).to_bytes(8, "little") + changed[16:]
        return changed + crc32c(changed).to_bytes(4, "little")

    assert read(sealed(state[:-4])).to_bytes() == state
    for i in range(0, len(state), 3):
        for damaged in (state[:i], state[:i] + bytes([state[i] ^ 16]) + state[i + 1 :]):
            with pytest.raises(ParameterError, match=r"state"):
                read(damaged)
    id_at = state.index(bytes.fromhex(protocol.spec_id))
    inner = state.index(b"DPNA", 4)
    for changed, message in [
        (state[:-4] + b"x", "bytes follow the last attribute"),
        (state[:inner], "state"),
        (state[:id_at] + bytes(8) + state[id_at + 8 : -4], "the specification id is not that of the specification"),
        (state[:id_at], "the state is truncated in its specification id"),
        (state[:16] + (2**31).to_bytes(4, "little") + state[20:-4], "the state is truncated in its specification"),
        (state[:20] + b"\xff" + state[21:-4], "the state is damaged"),
        (
            state[:inner] + protocol.attributes["b"].accumulator().to_bytes() * 2,
            'the protocol of attribute "a" is not that',
        ),
    ]:
        refuses(ParameterError, message, read, sealed(changed))
    refuses(ParameterError, "this release reads up to 2: upgrade", read, state[:5] + b"\x03" + state[6:])
    first = state[:5] + b"\x01" + state[6:-4]  # of 0.1's development, which ended with zlib's checksum
    refuses(ParameterError, "count the reports again", read, first + zlib.crc32(first).to_bytes(4, "little"))
    refuses(
        ParameterError,
        "of several attributes, got that of one protocol: use Accumulator.from_bytes",
        read,
        protocol.attributes["a"].accumulator().to_bytes(),
    )
    refuses(ParameterError, "does not begin with DPNA", read, b"PNG\r\n")
    refuses(TypeError, "state must be bytes, got str", read, "DPNA")
    refuses(ParameterError, "use AttributesAccumulator.from_bytes", local.Accumulator.from_bytes, state)


def test_engines_name_what_they_take():
    from dpnoise.engines import multiprocess

    refuses(TypeError, "for one attribute, got Sampled", multiprocess.collect, small(), [])


def total_of(collected):
    total = collected.protocol.accumulator()
    total.merge(collected)
    return total


@pytest.mark.parametrize("make", BOTH)
def test_what_is_read_while_threads_add_is_of_one_moment(make):
    protocol, n = small(make), 40
    reports = protocol.perturb({"a": ["red"] * n, "b": [3] * n})
    once = counted(protocol, reports)
    collected, done = protocol.accumulator(), Event()

    def add():
        while not done.is_set():
            collected.add(reports)

    threads = [Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(300):
            for seen in (total_of(collected), local.AttributesAccumulator.from_bytes(collected.to_bytes())):
                times = seen.n // n  # a state between two calls has seen every report equally often
                assert seen.n == times * n
                assert seen.n_by_attribute == {name: times * count for name, count in once.n_by_attribute.items()}
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert collected.n > 0


def test_two_threads_may_merge_two_accumulators_into_each_other():
    protocol = small()
    reports = protocol.perturb({"a": ["red"] * 50, "b": [3] * 50})
    one, other = counted(protocol, reports), counted(protocol, reports)

    def merge(into, what):
        for _ in range(20):  # counts double each time
            into.merge(what)

    threads = [Thread(target=merge, args=pair, daemon=True) for pair in ((one, other), (other, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert min(one.n, other.n) >= 50 * 21
    assert one.n % 50 == other.n % 50 == 0


@pytest.mark.parametrize("make", BOTH)
def test_the_counters_of_an_attribute_are_for_estimates_alone(make):
    protocol = small(make)
    reports = protocol.perturb({"a": ["red"] * 40, "b": [3] * 40})
    part = counted(protocol, reports)._state.attributes()[0]
    (counts, _, n, _), senders = part.estimate()
    assert n == 40
    assert counts.size == 3
    assert senders == (int((reports[:, 0] == 0).sum()) if make is local.Sampled else 40)
    alone = protocol.attributes["a"]
    for call in (part.to_bytes, lambda: part.add(alone.perturb(["red"]), 1, None)):
        refuses(ParameterError, "the counters of one of several attributes are for estimates alone", call)
    bare = local.GeneralizedRandomizedResponse(k=3, epsilon=1.0)
    refuses(ParameterError, "for estimates alone", bare.accumulator()._state.merge, part)
