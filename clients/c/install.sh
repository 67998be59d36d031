#!/bin/sh
# Builds the C library on Linux, and installs it as packages do. Called by `make ffi`:
#   install.sh PREFIX FEATURES
# DESTDIR goes before PREFIX in the paths that are written, and in no file.
set -eu
cd "$(dirname "$0")/../.."
prefix=$1
features=$2

if [ "$(uname -s)" != Linux ]; then
    echo "dpnoise installs its C library on Linux only. Elsewhere 'cargo build --release --package dpnoise-ffi'" \
        "makes it in target/release; its header is clients/c/dpnoise.h" >&2
    exit 1
fi

# The soname changes with the interface, and the name of the file with the release.
abi=$(sed -n 's/^pub const DPNOISE_ABI_VERSION: u32 = \([0-9]*\);$/\1/p' clients/c/src/lib.rs)
version=$(sed -n 's/^version *= *"\([^"]*\)".*/\1/p' Cargo.toml)
cargo rustc --release --package dpnoise-ffi --lib --locked --no-default-features --features "$features" -- \
    -C link-arg="-Wl,-soname,libdpnoise.so.$abi"

built=${CARGO_TARGET_DIR:-target}/release
to=${DESTDIR:-}$prefix
mkdir -p "$to/lib/pkgconfig" "$to/include" "$to/share/licenses/dpnoise"
# -C leaves files alone that are the same.
install -C -m 755 "$built/libdpnoise.so" "$to/lib/libdpnoise.so.$version"
install -C -m 644 "$built/libdpnoise.a" "$to/lib"
ln -sf "libdpnoise.so.$version" "$to/lib/libdpnoise.so.$abi"
ln -sf "libdpnoise.so.$abi" "$to/lib/libdpnoise.so"
install -C -m 644 clients/c/dpnoise.h clients/c/dpnoise.hpp "$to/include"
install -C -m 644 LICENSE-* "$to/share/licenses/dpnoise"
sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" clients/c/dpnoise.pc.in > "$to/lib/pkgconfig/dpnoise.pc"
echo "installed libdpnoise $version in $to"
