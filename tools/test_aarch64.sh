#!/usr/bin/env bash
# Runs the unit tests of the crates for aarch64, emulated: they compare NEON with portable code. Then the tests that pin
# outputs, with each of the two: they are the same as on x86-64.
set -euo pipefail
source "$(dirname "$0")/aarch64.sh"

packages=(--package dpnoise-kernels --package dpnoise-core --locked --target "$target")
# The dearest to emulate: integers alone, the same everywhere, and large samples from kernels that others compare.
dearest=(--skip the_tables_are_sound --skip reports_on_its_hyperplane_once
    --skip candidates_beyond_the_sorted_gaps_are_thinned --skip frequent_values)
cargo test "${packages[@]}" --lib -- "${dearest[@]}"
for instructions in portable neon; do
    DPNOISE_INSTRUCTION_SET=$instructions cargo test "${packages[@]}" --lib --test all -- stable
done
