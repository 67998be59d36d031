#!/bin/sh
# Publishes those crates that crates.io lacks in this version, each after what it depends on, so that a second run goes on
# where the first one stopped. Needs a token, from `cargo login` or in CARGO_REGISTRY_TOKEN.
set -eu
cd "$(dirname "$0")/../.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
case $version in *-dev.*) echo "$version is in development: nothing is published" >&2; exit 1 ;; esac

published() { # is this crate in the index? Asked outside of the workspace, which has crates of these names itself.
    (cd / && cargo info --quiet --registry crates-io "$1@$version" >/dev/null 2>&1)
}

for crate in dpnoise-kernels dpnoise-core dpnoise-prio; do
    if published $crate; then
        echo "$crate $version is published already"
        continue
    fi
    cargo publish --package $crate --locked
    # cargo waits for the index for a minute only, and then says that all is well.
    tries=60
    until published $crate; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { echo "$crate $version is still not in the index: run this again later" >&2; exit 1; }
        sleep 10
    done
done
