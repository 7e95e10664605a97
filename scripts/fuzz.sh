#!/bin/sh
# Runs every fuzz target for a while, with the stable compiler, and prints a table.
#
#   scripts/fuzz.sh 60                 all targets, sixty seconds each
#   scripts/fuzz.sh 600 regex lark     only these
#
# An input that breaks something is kept in fuzz/artifacts/TARGET; what was learnt stays in fuzz/corpus/TARGET for the next time.
# `cargo fuzz run TARGET` does the same with a nightly compiler and the sanitizer of addresses.
set -eu
cd "$(dirname "$0")/.."
SECONDS_EACH=${1:-60}
[ $# -gt 0 ] && shift
TARGETS=${*:-$(sed -n 's/^name = "\([a-z_]*\)"/\1/p' fuzz/Cargo.toml)}
CARGO=${CARGO:-cargo}

command -v c++ >/dev/null || { echo "fuzz: libFuzzer is C++, and there is no c++; on Debian: apt-get install g++" >&2; exit 1; }
host=$("$CARGO" -vV | sed -n 's/^host: //p')

# The flags of cargo-fuzz that a stable compiler has: coverage of edges, and debug assertions.
RUSTFLAGS="${RUSTFLAGS:-} -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=16"
export RUSTFLAGS
set --
for target in $TARGETS; do set -- "$@" --bin "$target"; done
# `--target` keeps the flags away from build scripts and macros.
"$CARGO" build --release --manifest-path fuzz/Cargo.toml --target "$host" "$@"
python3 scripts/fuzz_corpus.py $TARGETS

failed=0
printf '%-15s %14s %10s %10s  %s\n' target executions "per second" coverage result
for target in $TARGETS; do
    mkdir -p "fuzz/artifacts/$target" "fuzz/corpus/$target"
    log=fuzz/artifacts/$target.log
    result=clean
    "fuzz/target/$host/release/$target" -max_total_time="$SECONDS_EACH" -timeout=20 -rss_limit_mb=4096 -max_len=2048 -print_final_stats=1 \
        -artifact_prefix="fuzz/artifacts/$target/" "fuzz/corpus/$target" "fuzz/seeds/$target" >"$log" 2>&1 || result="FAILED, see $log"
    [ "$result" = clean ] || failed=1
    executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    speed=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
    coverage=$(sed -n 's/^#[0-9]*.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    printf '%-15s %14s %10s %10s  %s\n' "$target" "${executed:-?}" "${speed:-?}" "${coverage:-?}" "$result"
done
exit $failed
