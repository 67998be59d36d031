#!/bin/sh
# Builds the npm package in clients/web/dist. Called by `make web`:
#   build.sh [PROTOCOL...]
# With names of protocols, as in specifications, the client knows these alone and is smaller.
#
# Two builds of one commit are the same bytes, in whatever folder, if rustc and wasm-opt are of the same versions. So
# wasm-opt is required: without it, the files would differ silently from those of a release.
set -eu
cd "$(dirname "$0")/../.."
target=wasm32-unknown-unknown
dist=clients/web/dist

skip() {
    echo "SKIPPED: the WebAssembly module is not built: $*" >&2
    exit 0
}

[ -d "$(rustc --print target-libdir --target $target)" ] ||
    rustup target add $target ||
    skip "rustc has no $target here, and 'rustup target add $target' failed"
command -v wasm-opt >/dev/null && command -v wasm-metadce >/dev/null ||
    skip "wasm-opt not found: 'apt-get install binaryen' on Debian or Ubuntu"

mkdir -p $dist

# The features that rustc uses by default, which all engines of 2022 have. Others, such as those of --all-features of
# wasm-opt, make files that node 20 refuses.
features="--enable-bulk-memory --enable-multivalue --enable-mutable-globals --enable-nontrapping-float-to-int
    --enable-reference-types --enable-sign-ext"

# No path of this machine is in the module, in messages of panics for example. What only threads use is not compiled in.
sysroot=$(rustc --print sysroot)
flags="--cfg getrandom_backend=\"custom\" --cfg sha2_backend_soft=\"compact\" --allow dead_code
    --remap-path-prefix=$PWD=dpnoise
    --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo --remap-path-prefix=$sysroot=rust"
# Of the lines of the table, those of the chosen protocols: 3 OptimizedUnaryEncoding, for optimized_unary_encoding.
if [ $# -gt 0 ]; then
    flags="$flags --cfg dpnoise_chosen"
    mkdir -p target
    export DPNOISE_CHOSEN="$PWD/target/families.rs"
    {
        echo 'families! { $'
        for protocol in "$@"; do
            type=$(echo "$protocol" | sed 's/^./\u&/; s/_\(.\)/\u\1/g')
            grep "^    [0-9]* $type,$" rust/core/src/local/families/mod.rs || {
                echo "PROTOCOLS must be names of protocols as in specifications, got $protocol" >&2
                exit 1
            }
        done
        echo '}'
    } >"$DPNOISE_CHOSEN"
fi

build() { # build FEATURE FILE
    RUSTFLAGS="$flags" cargo build --package dpnoise-ffi --lib --target $target --no-default-features --features "$1" \
        --profile web --locked
    built=${CARGO_TARGET_DIR:-target}/$target/web
    # getrandom's function, and addresses of the linker, are no business of the host.
    exports=$(sed -n 's/^pub .*extern "C" fn \(dpnoise_[a-z_]*\).*/\1/p' clients/c/src/*.rs)
    {
        echo '[{"name": "host", "root": true, "reaches": ["memory"'
        for name in $exports; do echo ", \"$name\""; done
        echo ']}'
        for name in memory $exports; do echo ", {\"name\": \"$name\", \"export\": \"$name\"}"; done
        echo ']'
    } >"$built/exports.json"
    # shellcheck disable=SC2086 # a list
    wasm-metadce $features --graph-file "$built/exports.json" "$built/dpnoise.wasm" \
        --output "$built/reached.wasm" >/dev/null
    # shellcheck disable=SC2086
    wasm-opt $features -Oz --strip-debug --strip-producers --strip-target-features "$built/reached.wasm" --output "$2"
    if strings -a "$2" | grep -F -e "$PWD" -e "$HOME/"; then
        echo "$2 has a path of this machine" >&2
        exit 1
    fi
    echo "$2: $(wc -c <"$2") bytes, $(gzip -9c "$2" | wc -c) by gzip"
}

cp clients/web/dpnoise.mjs clients/web/dpnoise.d.ts clients/web/package.json clients/web/README.md LICENSE-* $dist
build client $dist/dpnoise.wasm
build collector $dist/dpnoise-collector.wasm
