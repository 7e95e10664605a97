#!/bin/sh
# Builds every fuzz target with the stable compiler, guided by coverage, and runs each for a while.
#
#   scripts/fuzz.sh 60                 all targets, sixty seconds each
#   scripts/fuzz.sh 600 regex lark     only these
#   scripts/fuzz.sh --pack FILE.tar.xz build all, and pack them with their first inputs and fuzz/run.py, for another machine
#
# `cargo fuzz run TARGET` does the same with a nightly compiler and the sanitizer of addresses.
set -eu
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
ALL=$(sed -n 's/^name = "\([a-z_]*\)"/\1/p' fuzz/Cargo.toml)
PACK=
if [ "${1:-}" = --pack ]; then
    PACK=${2:?say where to write the archive}
    set --
fi
EACH=${1:-60}
[ $# -gt 0 ] && shift
TARGETS=${*:-$ALL}

command -v c++ >/dev/null || {
    echo "fuzz: libFuzzer is C++, and there is no c++; on Debian: apt-get install g++" >&2
    exit 1
}
host=$("$CARGO" -vV | sed -n 's/^host: //p')

# The flags of cargo-fuzz that a stable compiler has: coverage of edges, and comparisons.
RUSTFLAGS="${RUSTFLAGS:-} -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=16"
export RUSTFLAGS
set --
for target in $TARGETS; do
    set -- "$@" --bin "$target"
    [ "$target" != http ] || set -- "$@" --features server
done
# `--target` keeps the flags away from build scripts and macros.
"$CARGO" build --release --manifest-path fuzz/Cargo.toml --target "$host" "$@"
# shellcheck disable=SC2086 # several names
python3 scripts/fuzz_corpus.py $TARGETS
binaries=fuzz/target/$host/release
if [ -n "$PACK" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$work/fuzz/bin"
    cp -R fuzz/seeds fuzz/run.py "$work/fuzz/"
    for target in $TARGETS; do strip -o "$work/fuzz/bin/$target" "$binaries/$target"; done
    tar -C "$work" -cJf "$PACK" fuzz
    ls -l "$PACK"
else
    # shellcheck disable=SC2086 # several names
    exec python3 fuzz/run.py --seconds "$EACH" --binaries "$binaries" $TARGETS
fi
