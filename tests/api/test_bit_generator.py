"""SecureBitGenerator is what NumPy expects of a bit generator, and refuses what would make it repeat itself."""

from __future__ import annotations

import copy
import ctypes
import pickle
from typing import Any

import numpy as np
import pytest

import dpnoise
from dpnoise import SecureBitGenerator, _native


def test_it_is_a_bit_generator() -> None:
    bits = SecureBitGenerator()
    assert isinstance(bits, np.random.BitGenerator)
    for generator in (np.random.Generator(bits), np.random.default_rng(bits)):
        assert generator.bit_generator is bits
        assert repr(generator).startswith("Generator(SecureBitGenerator)")
    assert type(bits.lock) is type(np.random.PCG64().lock)
    assert type(bits.capsule) is type(np.random.PCG64().capsule)
    assert np.random.RandomState(bits).permutation(5).shape == (5,)


def test_raw_words_have_numpys_shapes() -> None:
    bits = SecureBitGenerator()
    assert type(bits.random_raw()) is int
    assert bits.random_raw(5).dtype == np.uint64
    assert bits.random_raw((2, 3)).shape == (2, 3)
    assert bits.random_raw(5, output=False) is None


def test_c_code_can_draw() -> None:
    bits = SecureBitGenerator()
    interface = bits.ctypes
    words = [interface.next_uint64(interface.state) for _ in range(100)]
    assert len(set(words)) == 100
    assert max(words) >= 2**63
    assert 0 <= interface.next_uint32(interface.state) < 2**32
    assert 0 <= interface.next_double(interface.state) < 1
    assert ctypes.cast(interface.bit_generator, ctypes.c_void_p).value


def test_cffi_works_where_numpys_does() -> None:
    try:
        np.random.PCG64().cffi  # noqa: B018
    except ImportError:  # the package is not installed
        with pytest.raises(ImportError):
            SecureBitGenerator().cffi  # noqa: B018
    else:
        bits = SecureBitGenerator()
        interface = bits.cffi
        assert 0 <= interface.next_double(interface.state) < 1


def test_doubles_are_multiples_of_2_to_the_minus_53() -> None:
    doubles = np.random.Generator(SecureBitGenerator()).random(10_000)
    assert 0 <= doubles.min() < 0.01 < 0.99 < doubles.max() < 1
    steps = doubles * 2.0**53
    assert np.all(steps % 1 == 0)
    assert np.any(steps % 2 == 1)


def test_a_generator_keeps_its_words_alive() -> None:
    generator = np.random.Generator(SecureBitGenerator())
    others = [SecureBitGenerator() for _ in range(50)]
    del others
    assert np.unique(generator.integers(0, 2**63, 10_000)).size == 10_000


@pytest.mark.parametrize("arguments", [{"seed": 1}, {"seed": None}])
def test_a_seed_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="seed"):
        SecureBitGenerator(**arguments)
    with pytest.raises(TypeError):
        SecureBitGenerator(*arguments.values())


REFUSED = {
    "read its state": lambda bits: bits.state,
    "set its state": lambda bits: setattr(bits, "state", np.random.PCG64().state),
    "read its seed": lambda bits: bits.seed_seq,
    "spawn": lambda bits: bits.spawn(2),
    "spawn from the generator": lambda bits: np.random.Generator(bits).spawn(2),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "pickle, first protocol": lambda bits: pickle.dumps(bits, 0),
    "pickle the generator": lambda bits: pickle.dumps(np.random.Generator(bits)),
    "deepcopy the generator": lambda bits: copy.deepcopy(np.random.Generator(bits)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_repeat_the_stream_is_refused(what: str) -> None:
    with pytest.raises(TypeError, match=r"a SecureBitGenerator .*: make a new one, it is independent of all others"):
        REFUSED[what](SecureBitGenerator())
    if what not in ("set its state",):
        REFUSED[what](np.random.PCG64())  # a generator of NumPy's own does it


def test_there_is_no_seed_to_ask() -> None:
    with pytest.raises(NotImplementedError):
        SecureBitGenerator()._seed_seq.generate_state(4)


def test_it_is_initialised_once() -> None:
    bits = SecureBitGenerator()
    generator = np.random.Generator(bits)
    with pytest.raises(TypeError, match="only once"):
        bits.__init__()  # type: ignore[misc]
    with pytest.raises(TypeError, match="only once"):
        _native.secure_bit_generator(bits.capsule)
    assert 0 <= generator.random() < 1


def test_other_capsules_are_refused() -> None:
    import datetime

    assert datetime.datetime_CAPI is not None
    with pytest.raises(ValueError, match="PyCapsule_GetPointer"):
        _native.secure_bit_generator(datetime.datetime_CAPI)
    with pytest.raises(TypeError):
        _native.secure_bit_generator(object())  # type: ignore[arg-type]


def test_it_is_public() -> None:
    assert dpnoise.SecureBitGenerator is SecureBitGenerator
    assert "SecureBitGenerator" in dpnoise.__all__
