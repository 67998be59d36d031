//! Bytes, for all that reads bytes: see `bytes` in the library of this crate.

#![no_main]

libfuzzer_sys::fuzz_target!(init: dpnoise_ffi_fuzz::bytes::start(), |input: &[u8]| dpnoise_ffi_fuzz::bytes::run(input));
