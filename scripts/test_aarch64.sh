#!/usr/bin/env bash
# Runs the unit tests of the crates for aarch64, emulated: they compare NEON with portable code. Then the tests that pin
# outputs, with each of the two: they are the same as on x86-64.
set -euo pipefail
source "$(dirname "$0")/aarch64.sh"

cargo test --package dpnoise-kernels --package dpnoise-core --lib --locked --target "$target"
for instructions in portable neon; do
    DPNOISE_INSTRUCTION_SET=$instructions cargo test --package dpnoise-core --lib --test all --locked --target "$target" -- stable
done
