#!/usr/bin/env bash
# Runs every kernel once under Miri, portable and with AVX2, which finds reads and writes out of bounds and of memory that
# nobody wrote. It has no AVX-512.
set -euo pipefail

rustup toolchain install nightly --profile minimal --component miri,rust-src >/dev/null 2>&1 && cargo +nightly miri setup ||
    { echo "SKIPPED, nothing was tested: no Miri for the nightly toolchain"; exit 0; }

# Instruction sets are found at run time, which sees what is declared here.
export RUSTFLAGS="-C target-feature=+avx2,+fma,+aes" CARGO_TARGET_DIR=target/miri
cargo +nightly miri test --package dpnoise-kernels --test miri --locked
