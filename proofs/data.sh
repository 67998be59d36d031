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
while read -r package module file; do
    DPNOISE_PROOFS=$folder/$file cargo test --package "$package" --lib "${options[@]}" \
        -- --ignored --exact "$module::tests::results_for_the_proofs" >/dev/null
done <<END
dpnoise-kernels arch::exp2 Exponentials.v
dpnoise-core samplers::histogram Decisions.v
END
cargo run --profile test --package dpnoise-proofs "${options[@]}" -- "$folder"
