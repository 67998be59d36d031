#!/usr/bin/env bash
# Runs every kernel once under Miri, which finds reads and writes out of bounds and of memory that nobody wrote: portable,
# with AVX2 and, as far as Miri has it, with AVX-512, whatever this machine is.
set -euo pipefail

cargo +nightly miri --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal --component miri,rust-src ||
    { echo "SKIPPED, nothing was tested: no Miri for the nightly toolchain"; exit 0; }

# Instruction sets are found at run time, which sees what is declared here.
export RUSTFLAGS="-C target-feature=+popcnt,+fma,+aes,+avx512f,+avx512dq,+vaes" CARGO_TARGET_DIR=target/miri
cargo +nightly miri test --target x86_64-unknown-linux-gnu --package dpnoise-kernels --test miri --locked -- --nocapture
