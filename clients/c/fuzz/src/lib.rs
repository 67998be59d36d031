//! Fuzzing of the C interface: an input is a sequence of calls, with handles that are right, wrong, freed or numbers at
//! random, and with memory of exactly the size that a call is told, so that AddressSanitizer sees every byte too many.
//! And fuzzing of what reads bytes in Rust, which is `bytes`.
//!
//! | module | what |
//! | --- | --- |
//! | `input` | the bytes of an input as numbers |
//! | `vectors` | what inputs are made from |
//! | `checks` | what must hold after every call |
//! | `mechanisms` | what makes mechanisms, a table of the tests |
//! | `memory` | memory of exactly one size, which a failed call leaves as it was or zero |
//! | `world` | the objects that exist, and the calls |
//! | `planted` | faults that the checks must find |
//! | `seeds` | the first inputs |
//! | `bytes` | specifications, states, messages, memos, tickets and runs, read from bytes |
//! | `repair` | checksums and what else protects bytes, made right |
//! | `heap` | how much memory a call asks for |

pub mod bytes;
mod checks;
mod heap;
mod input;
#[path = "../../tests/mechanisms.rs"]
mod mechanisms;
mod memory;
mod planted;
mod repair;
mod seeds;
mod vectors;
mod world;

use std::path::Path;

use input::Input;
use world::World;

/// Prepares a run: with a folder in `DPNOISE_FUZZ_SEEDS` writes the seeds there, and ends the program.
pub fn start() {
    prepare(seeds::write);
}

fn prepare(write_seeds: fn(&Path) -> std::io::Result<()>) {
    if let Some(folder) = std::env::var_os("DPNOISE_FUZZ_SEEDS") {
        write_seeds(folder.as_ref()).expect("the folder of the seeds can be written");
        std::process::exit(0);
    }
    checks::count_at_exit();
}

/// Makes the calls of an input.
pub fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let mut world = World::default();
    let mut calls = 0;
    while !input.is_empty() && calls < 32 {
        world.call(&mut input);
        calls += 1;
    }
    world.end();
}
