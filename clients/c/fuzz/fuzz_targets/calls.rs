//! Sequences of calls of the C interface: see the library of this crate.

#![no_main]

libfuzzer_sys::fuzz_target!(init: dpnoise_ffi_fuzz::start(), |input: &[u8]| dpnoise_ffi_fuzz::run(input));
