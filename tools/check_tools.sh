#!/bin/sh
# Says in one line what is missing before a build starts. Called by make:
#   check_tools.sh PYTHON [python | lint | constant-time]
# The required versions are read from Cargo.toml and pyproject.toml, where they are declared.
set -eu
cd "$(dirname "$0")/.."
python=$1
purpose=${2:-build}

fail() {
    echo "dpnoise needs $*" >&2
    exit 1
}

at_least() { # is VERSION ($1) at least MINIMUM ($2)? Both as MAJOR.MINOR.
    [ "${1%%.*}" -gt "${2%%.*}" ] || { [ "${1%%.*}" -eq "${2%%.*}" ] && [ "${1#*.}" -ge "${2#*.}" ]; }
}

rust_minimum=$(sed -n 's/^rust-version *= *"\([0-9]*\.[0-9]*\).*/\1/p' Cargo.toml)
python_minimum=$(sed -n 's/^requires-python *= *">=\([0-9]*\.[0-9]*\).*/\1/p' pyproject.toml)
install_rust="install it from https://rustup.rs, or 'rustup update' if you have rustup"

if [ "$purpose" != python ]; then
    for tool in cargo rustc; do
        command -v $tool >/dev/null || fail "Rust $rust_minimum or newer ($tool not found): $install_rust"
    done
    rust_found=$(rustc --version 2>/dev/null | sed -n 's/^rustc \([0-9]*\.[0-9]*\).*/\1/p')
    [ -n "$rust_found" ] || fail "Rust $rust_minimum or newer ('rustc --version' fails): $install_rust"
    at_least "$rust_found" "$rust_minimum" || fail "Rust $rust_minimum or newer (found $rust_found): $install_rust"
    command -v cc >/dev/null || fail "a C linker for Rust (cc not found): 'apt-get install gcc libc6-dev' on Debian or Ubuntu"
fi

command -v "$python" >/dev/null ||
    fail "CPython $python_minimum or newer ($python not found): install it, or say which one: make PYTHON=python3.12 ..."
python_found=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) ||
    fail "CPython $python_minimum or newer ($python does not start): say which one: make PYTHON=python3.12 ..."
at_least "$python_found" "$python_minimum" ||
    fail "CPython $python_minimum or newer (found $python_found): install it, or say which one: make PYTHON=python3.12 ..."
"$python" -c 'import sys; sys.exit(sys.implementation.name != "cpython")' ||
    fail "CPython ($python is another implementation): say which one: make PYTHON=python3.12 ..."
# Debian ships both modules outside the interpreter's own package.
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    fail "Python's venv and pip: 'apt-get install python3-venv python3-pip' on Debian or Ubuntu"

if [ "$purpose" = lint ]; then
    cargo fmt --version >/dev/null 2>&1 || fail "rustfmt: 'rustup component add rustfmt'"
    cargo clippy --version >/dev/null 2>&1 || fail "clippy: 'rustup component add clippy'"
fi

# Elsewhere than on x86-64 the check says itself that it is skipped.
if [ "$purpose" = constant-time ] && [ "$(uname -m)" = x86_64 ]; then
    command -v valgrind >/dev/null || fail "valgrind: 'apt-get install valgrind' on Debian or Ubuntu"
    command -v objdump >/dev/null || fail "objdump: 'apt-get install binutils' on Debian or Ubuntu"
fi
