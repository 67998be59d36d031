#!/usr/bin/env bash
# Writes what the code computes, for the proofs, into the folder of the first argument: on this machine, or with a second
# argument on an emulated one for aarch64.
set -euo pipefail
folder=$(realpath "$1")
options=(--locked --quiet)
if (($# > 1)); then
    source "$(dirname "$0")/aarch64.sh"
    options+=(--target "$target")
fi
DPNOISE_PROOFS=$folder/Exponentials.v cargo test --package dpnoise-kernels --lib "${options[@]}" \
    -- --ignored --exact arch::exp2::tests::results_for_the_proofs >/dev/null
cargo run --package dpnoise-core --example proof_data "${options[@]}" -- "$folder"
