"""The step of DP-SGD as a custom call of XLA: it reads the gradients, and writes the release, where they are.

JAX copies the arguments of a Python callback, which takes longer than the step. XLA's foreign function interface hands
over pointers instead. The structures are those of ``xla/ffi/api/c_api.h``, version 0.3, which jaxlib ships.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_void_p
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpnoise._extras import require
from dpnoise.backends import _gradients

_ffi: Final = require("jax.ffi", "optax")

_TARGET: Final = "dpnoise_noisy_mean"
_VERSION: Final = 0, 3
_EXECUTE: Final = 3
_METADATA: Final = 1
_INTERNAL: Final = 13
_DTYPES: Final = {11: np.float32, 12: np.float64}


class _Extension(Structure):
    _fields_ = (("struct_size", c_size_t), ("type", c_int), ("next", c_void_p))


class _ApiVersion(Structure):
    _fields_ = (("struct_size", c_size_t), ("extension", c_void_p), ("major", c_int), ("minor", c_int))


class _Metadata(Structure):
    # What follows is left as XLA made it.
    _fields_ = (("struct_size", c_size_t), ("api_version", _ApiVersion))


class _MetadataExtension(Structure):
    _fields_ = (("base", _Extension), ("metadata", POINTER(_Metadata)))


class _ErrorArguments(Structure):
    _fields_ = (("struct_size", c_size_t), ("extension", c_void_p), ("message", c_char_p), ("code", c_int))


class _Api(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("api_version", _ApiVersion),
        ("internal", c_void_p),
        ("make_error", ctypes.CFUNCTYPE(c_void_p, POINTER(_ErrorArguments))),
    )


class _Buffer(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("dtype", c_int),
        ("data", c_void_p),
        ("rank", c_int64),
        ("dims", POINTER(c_int64)),
    )


class _Scalar(Structure):
    _fields_ = (("dtype", c_int), ("value", POINTER(ctypes.c_double)))


class _Buffers(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("size", c_int64),
        ("types", c_void_p),
        ("items", POINTER(POINTER(_Buffer))),
    )


class _Attributes(Structure):
    # Sorted by name.
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("size", c_int64),
        ("types", c_void_p),
        ("names", c_void_p),
        ("items", POINTER(POINTER(_Scalar))),
    )


class _CallFrame(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", POINTER(_Extension)),
        ("api", POINTER(_Api)),
        ("context", c_void_p),
        ("stage", c_int),
        ("arguments", _Buffers),
        ("results", _Buffers),
        ("attributes", _Attributes),
    )


def noisy_mean(shape: Any, leaves: list[Any], clip_norm: float, noise_multiplier: float) -> Any:
    """Give the noisy mean of clipped gradients, in a program that is compiled for one CPU.

    Parameters
    ----------
    shape : jax.ShapeDtypeStruct
        Of the result: one axis.
    leaves : list of jax.Array, of float32 or float64
        All of the dtype of the result.
    clip_norm, noise_multiplier : float
        In the range of `mechanism`. They become part of the compiled program, which may be stored; no secret does.
    """
    # A side effect, so that XLA neither drops, moves nor repeats the call.
    call = _ffi.ffi_call(_TARGET, shape, has_side_effect=True, vmap_method="sequential")
    return call(*leaves, clip_norm=np.float64(clip_norm), noise_multiplier=np.float64(noise_multiplier))


def _handle(pointer: Any) -> Any:
    frame = pointer.contents
    if frame.extension and frame.extension.contents.type == _METADATA:
        extension = ctypes.cast(frame.extension, POINTER(_MetadataExtension)).contents
        version = extension.metadata.contents.api_version
        version.major, version.minor = _VERSION
        return None
    try:
        if frame.stage == _EXECUTE:
            _execute(frame)
    except BaseException as error:
        message = f"{type(error).__name__}: {error}".encode()
        arguments = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, message, _INTERNAL)
        return frame.api.contents.make_error(ctypes.byref(arguments))
    return None


def _execute(frame: Any) -> None:
    leaves = [_array(frame.arguments.items[i].contents) for i in range(frame.arguments.size)]
    out = _array(frame.results.items[0].contents)
    clip_norm, multiplier = (frame.attributes.items[i].contents.value.contents.value for i in range(2))
    sums = _gradients.clipped_sum(leaves, clip_norm=clip_norm)
    total = _gradients.noisy(sums, clip_norm=clip_norm, noise_multiplier=multiplier, dtype=out.dtype)
    np.divide(total, len(leaves[0]), out=out)


def _array(buffer: Any) -> NDArray[Any]:
    """Give the array that a buffer is."""
    dtype = np.dtype(_DTYPES[buffer.dtype])
    shape = tuple(buffer.dims[axis] for axis in range(buffer.rank))
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    # An array without numbers may have no address.
    memory: Any = (ctypes.c_char * size).from_address(buffer.data) if size else b""
    return np.ndarray(shape, dtype, memory)


# Kept for as long as XLA may call it.
_HANDLER: Final = ctypes.CFUNCTYPE(c_void_p, POINTER(_CallFrame))(_handle)
_ffi.register_ffi_target(_TARGET, _ffi.pycapsule(_HANDLER), platform="cpu")
