#!/usr/bin/env bash
# Counts instructions per sample on aarch64, emulated by QEMU, which counts with a plugin.
set -euo pipefail
source "$(dirname "$0")/../aarch64.sh"

[[ "$(qemu-aarch64 --version)" =~ version\ [4-8]\. ]] || skip "the plugin is for QEMU 4.2 to 8.2"
mkdir -p "${CARGO_TARGET_DIR:=target}"
DPNOISE_COUNT_PLUGIN=$(realpath "$CARGO_TARGET_DIR")/count_instructions.so
export DPNOISE_COUNT_PLUGIN
cc -O2 -shared -fPIC -o "$DPNOISE_COUNT_PLUGIN" tools/instructions/plugin.c
cargo bench --package dpnoise-core --bench instructions --locked --target "$target"
