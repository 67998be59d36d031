# Sourced by scripts that run Rust programs for aarch64, emulated. Without what that needs it ends them, and says so.
target=aarch64-unknown-linux-gnu

skip() {
    echo "SKIPPED, nothing was tested: $1"
    exit 0
}

command -v aarch64-linux-gnu-gcc >/dev/null || skip "no aarch64-linux-gnu-gcc (Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross)"
command -v qemu-aarch64 >/dev/null || skip "no qemu-aarch64 (Debian: qemu-user)"
[[ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]] || rustup target add "$target" || skip "no Rust standard library for $target"

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
