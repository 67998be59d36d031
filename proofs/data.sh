#!/usr/bin/env bash
# Writes what the code computes, for the proofs, into the folder of the first argument: on this machine, or with a second
# argument on an emulated one for aarch64.
set -euo pipefail
folder=$(realpath "$1")
options=(--locked --quiet)
if (($# > 1)); then
    source "$(dirname "$0")/../tools/aarch64.sh"
    options+=(--target "$target")
fi
# What `make test` compiles, too.
DPNOISE_PROOFS=$folder cargo test --package dpnoise-kernels --package dpnoise-core --lib "${options[@]}" \
    -- --ignored results_for_the_proofs >/dev/null
cargo run --profile test --package dpnoise-proofs "${options[@]}" -- "$folder"
