"""Memos: what clients of longitudinal protocols keep."""

import hashlib
import pickle
import struct

from refusals import refuses

from dpnoise import ParameterError, local
from tests.vectors import local_spec


def test_bytes_are_as_documented() -> None:
    secrets = [hashlib.sha256(bytes([i])).digest() for i in range(3)]
    whole = struct.pack("<4sB3xQ", b"DPNM", 2, 3) + b"".join(secrets)
    memo = local.ClientMemo.from_bytes(whole + struct.pack("<I", local_spec.crc32c(whole)))
    assert len(memo) == 3
    assert memo.to_bytes()[16:-4] == b"".join(secrets)
    assert memo[1].to_bytes()[16:-4] == secrets[1]


def test_people_can_be_picked() -> None:
    memo = local.ClientMemo.generate(10)
    assert len({person.to_bytes() for person in memo}) == len(memo) == 10
    for part in (slice(2, 5), slice(None, None, -1), slice(-3, None), slice(8, 1, -3), slice(4, 4), slice(50, 60)):
        assert [person.to_bytes() for person in memo[part]] == [memo[i].to_bytes() for i in range(10)[part]]
    assert memo[-1] == memo[9] != memo[0]
    for index in (10, -11):
        message = f"index must be from -10 to 9, for a memo of 10 people, got {index}"
        refuses(IndexError, message, memo.__getitem__, index)
    refuses(TypeError, "str", memo.__getitem__, "0")


def test_memos_are_equal_when_their_secrets_are() -> None:
    memo = local.ClientMemo.generate(3)
    for copy in (local.ClientMemo.from_bytes(memo.to_bytes()), pickle.loads(pickle.dumps(memo)), memo[:]):  # noqa: S301
        assert copy == memo
    assert memo != local.ClientMemo.generate(3)
    assert memo != memo[:2]
    assert memo != memo.to_bytes()
    refuses(TypeError, "unhashable", hash, memo)


def test_secrets_are_not_shown() -> None:
    assert repr(local.ClientMemo.generate()) == str(local.ClientMemo.generate()) == "<ClientMemo of 1 person>"
    assert f"{local.ClientMemo.generate(2)}" == "<ClientMemo of 2 people>"
    assert repr(local.ClientMemo.generate(0)) == "<ClientMemo of 0 people>"


def test_what_is_no_memo_is_refused() -> None:
    whole = local.ClientMemo.generate(2).to_bytes()
    read = local.ClientMemo.from_bytes
    refuses(ParameterError, "not the memo of a client: it does not begin with DPNM", read, b"DPNA" + whole[4:])
    refuses(ParameterError, "not the memo of a client", read, b"")
    refuses(ParameterError, "is of version 1; this release reads version 2", read, whole[:4] + b"\1" + whole[5:])
    refuses(ParameterError, "the memo is truncated: it ends in its preamble", read, whole[:10])
    refuses(ParameterError, "the memo is truncated: 83 bytes instead of 84", read, whole[:-1])
    refuses(ParameterError, "the memo is damaged: 85 bytes instead of 84", read, whole + b"\0")
    refuses(ParameterError, "the memo is damaged: the checksum is wrong", read, whole[:20] + b"\0\0" + whole[22:])
    refuses(TypeError, "str", read, "DPNM")


def test_what_is_no_number_of_people_is_refused() -> None:
    generate = local.ClientMemo.generate
    refuses(ParameterError, "n must be an integer from 0 to 2**64 - 1, got -1", generate, -1)
    refuses(MemoryError, "there is not enough memory", generate, 2**64 - 1)
    refuses(TypeError, "n must be an int, got float", generate, 1.0)
    refuses(TypeError, "make one by ClientMemo.generate()", local.ClientMemo)


def test_empty_and_extreme_slices() -> None:
    memo = local.ClientMemo.generate(5)
    for part, people in (
        (memo[:0][::-1], []),
        (memo[-9::-1], []),
        (memo[-5::-1], [0]),
        (memo[:: 2**70], [0]),
        (memo[3 :: -(2**70)], [3]),
        (memo[::-2], [4, 2, 0]),
    ):
        assert [part[i].to_bytes() for i in range(len(part))] == [memo[i].to_bytes() for i in people]
