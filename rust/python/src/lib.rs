//! The native module behind the Python package dpnoise: conversion and error mapping, no logic.
//!
//! | module | what |
//! | --- | --- |
//! | `errors` | errors of the core as Python exceptions |
//! | `numbers` | exact numbers from Python's |
//! | `buffers` | NumPy arrays as slices |
//! | `runtime` | releasing the GIL, threads, Ctrl-C |
//! | `hazmat` | reproducible generators |
//! | `keyed` | noise that a secret brings back |
//! | `samplers`, `mechanisms`, `local` | the areas of the library |
//! | `objects` | columns of Python objects |
//! | `selection` | the mechanisms that choose or compare |
//! | `partitions` | partition selection |
//! | `persons` | the rows of each person |
//! | `distances`, `stability` | distances to instability, and their test |
//! | `bootstrap` | votes of random subsets |
//! | `sgd` | clipped gradients, and their noise |
//! | `accumulator` | accumulators of local reports |
//! | `memo` | the memos of clients of longitudinal protocols |
//! | `bit_generator` | NumPy's interface to a bit generator |

use pyo3::prelude::*;

mod accumulator;
mod arguments;
mod bit_generator;
mod bootstrap;
mod buffers;
mod distances;
mod errors;
mod hazmat;
mod keyed;
mod local;
mod mechanisms;
mod memo;
mod numbers;
mod objects;
mod partitions;
mod persons;
mod runtime;
mod samplers;
mod selection;
mod sgd;
mod stability;

#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // By PEP 440, as in the metadata of the distribution.
    let version = env!("CARGO_PKG_VERSION").replace("-dev.", ".dev").replace("-rc.", "rc");
    module.add("__version__", version)?;
    hazmat::register(module)?;
    samplers::register(module)?;
    keyed::register(module)?;
    mechanisms::register(module)?;
    objects::register(module)?;
    selection::register(module)?;
    partitions::register(module)?;
    persons::register(module)?;
    distances::register(module)?;
    stability::register(module)?;
    bootstrap::register(module)?;
    sgd::register(module)?;
    local::register(module)?;
    accumulator::register(module)?;
    bit_generator::register(module)
}
