"""Arrays of JAX, in a process of their own: JAX warns of every fork of a process that has imported it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PROGRAM = """
import jax, jax.experimental
import numpy as np
from dpnoise._parameters import array_of
from interchange.calls import MATRICES, REALS, VECTORS
from interchange.test_same_bits import others

def make(values):
    with (jax if hasattr(jax, "enable_x64") else jax.experimental).enable_x64(True):
        return jax.device_put(values, jax.devices("cpu")[0])

for name, call in [*VECTORS.items(), *MATRICES.items()]:
    assert name == "StableBootstrap" or others(call, {"JAX": make}) == {}, name

array = make(REALS)
assert array_of(array, "x").ctypes.data == array.unsafe_buffer_pointer()

for dtype in (jax.numpy.bfloat16, jax.numpy.float8_e4m3fn):
    try:
        array_of(jax.numpy.ones(3, dtype), "x")
    except TypeError as error:
        assert str(error).startswith("x must be data that NumPy or pyarrow can read, got ArrayImpl of dtype"), error
    else:
        raise AssertionError(dtype)
print("done")
"""


@pytest.mark.skipif(not find_spec("jax"), reason="JAX is not installed")
def test_arrays_of_jax():
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout == "done\n", done.stderr
