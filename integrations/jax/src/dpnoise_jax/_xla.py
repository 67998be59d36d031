"""Functions on NumPy arrays as custom calls of XLA: they read and write arrays in place.

JAX copies the arguments of a Python callback, which takes longer than a step of DP-SGD. XLA's foreign function
interface hands over pointers instead. The structures follow ``xla/ffi/api/c_api.h``, version 0.3, which jaxlib 0.10.2
ships. They are the same in version 0.5 of jaxlib 0.12.0, which accepts handlers of any version from 0.1 to 0.5.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_void_p
from functools import partial
from typing import Any, Final

import numpy as np
from jax import ffi
from numpy.typing import NDArray

_VERSION: Final = 0, 3
_EXECUTE: Final = 3
_METADATA: Final = 1
_INTERNAL: Final = 13
_ARRAY: Final = 1
_DTYPES: Final = {4: np.int32, 5: np.int64, 8: np.uint32, 11: np.float32, 12: np.float64}


class _Extension(Structure):
    _fields_ = (("struct_size", c_size_t), ("type", c_int), ("next", c_void_p))


class _ApiVersion(Structure):
    _fields_ = (("struct_size", c_size_t), ("extension", c_void_p), ("major", c_int), ("minor", c_int))


class _Metadata(Structure):
    # XLA's further fields remain as XLA made them.
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


class _ByteSpan(Structure):
    _fields_ = (("bytes", c_void_p), ("size", c_size_t))


class _Scalar(Structure):
    _fields_ = (("dtype", c_int), ("data", c_void_p))


class _Array(Structure):
    _fields_ = (("dtype", c_int), ("size", c_size_t), ("data", c_void_p))


class _Buffers(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("size", c_int64),
        ("types", c_void_p),
        ("items", POINTER(POINTER(_Buffer))),
    )


class _Attributes(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("size", c_int64),
        ("types", POINTER(c_int)),
        ("names", POINTER(POINTER(_ByteSpan))),
        ("items", POINTER(c_void_p)),
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


Function = Callable[..., None]
"""A function of a list of argument arrays, a list of result arrays, which it writes, and attributes by name."""


# Handlers by their targets, kept because XLA may call them for as long as the process lives.
_HANDLERS: Final[dict[str, Any]] = {}


class CustomCall:
    """A function for programs that XLA compiles for one CPU.

    Parameters
    ----------
    target : str
        The name of the function in XLA, which no other function has.
    function : Function
        What a call does. An error that it raises ends the program.
    """

    def __init__(self, target: str, function: Function) -> None:
        self._target = target
        _HANDLERS[target] = ctypes.CFUNCTYPE(c_void_p, POINTER(_CallFrame))(partial(_handle, function))
        ffi.register_ffi_target(target, ffi.pycapsule(_HANDLERS[target]), platform="cpu")

    def __call__(self, shapes: Any, arguments: Sequence[Any], aliases: Mapping[int, int], **attributes: Any) -> Any:
        """Add a call to the program that is traced.

        Parameters
        ----------
        shapes : sequence of jax.ShapeDtypeStruct
            The shapes and dtypes of the results.
        arguments : sequence of jax.Array
            Arrays of float32, float64, int32, int64 or uint32.
        aliases : mapping of int to int
            Results that are in the memory of an argument, by the index of the argument: they begin with its values.
        **attributes : float, int or ndarray of int64
            Part of the compiled program, which may be stored: no attribute may be secret.
        """
        # A side effect, so that XLA neither drops, moves nor repeats the call.
        call = ffi.ffi_call(
            self._target, shapes, has_side_effect=True, vmap_method="sequential", input_output_aliases=dict(aliases)
        )
        sized = {float: np.float64, int: np.int64}  # of 64 bits, whatever JAX takes by default
        return call(*arguments, **{name: sized.get(type(one), np.asarray)(one) for name, one in attributes.items()})


def _handle(function: Function, pointer: Any) -> Any:
    frame = pointer.contents
    if frame.extension and frame.extension.contents.type == _METADATA:
        extension = ctypes.cast(frame.extension, POINTER(_MetadataExtension)).contents
        version = extension.metadata.contents.api_version
        version.major, version.minor = _VERSION
        return None
    try:
        if frame.stage == _EXECUTE:
            function(_arrays(frame.arguments), _arrays(frame.results), **_named(frame.attributes))
    except BaseException as error:
        message = f"{type(error).__name__}: {error}".encode()
        arguments = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, message, _INTERNAL)
        return frame.api.contents.make_error(ctypes.byref(arguments))
    return None


def _arrays(buffers: Any) -> list[NDArray[Any]]:
    found = []
    for index in range(buffers.size):
        buffer = buffers.items[index].contents
        found.append(_array(buffer.dtype, buffer.data, tuple(buffer.dims[axis] for axis in range(buffer.rank))))
    return found


def _named(attributes: Any) -> dict[str, Any]:
    """Return the attributes by name: Python numbers, and arrays of one axis."""
    found = {}
    for index in range(attributes.size):
        name, kind = attributes.names[index].contents, attributes.types[index]
        item = ctypes.cast(attributes.items[index], POINTER(_Array if kind == _ARRAY else _Scalar)).contents
        values = _array(item.dtype, item.data, (item.size,) if kind == _ARRAY else ())
        found[ctypes.string_at(name.bytes, name.size).decode()] = values if kind == _ARRAY else values.item()
    return found


def _array(dtype: int, address: int | None, shape: tuple[int, ...]) -> NDArray[Any]:
    of = np.dtype(_DTYPES[dtype])
    size = int(np.prod(shape, dtype=np.int64)) * of.itemsize
    # An array without numbers may have no address.
    memory: Any = (ctypes.c_char * size).from_address(address) if size and address else bytearray()
    return np.ndarray(shape, of, memory)
