#!/bin/sh
# Builds the command, optimised, and says what it is doing and how long it took.
#
#   scripts/build.sh "the server"
#   scripts/build.sh "the server" llama-cpp     # with llama.cpp as a second runtime
set -eu
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
TARGET=${CARGO_TARGET_DIR:-target}
say() { printf '%s\n' "build: $*"; }

if [ -x "$TARGET/serve/maskwright" ]; then
    say "bringing $1 up to date"
else
    say "compiling $1 and everything that it is made of; this takes some minutes, and only the first time"
    mkdir -p "$TARGET"
    free=$(df -Pm "$TARGET" | awk 'NR == 2 { print $4 }')
    [ "$free" -ge 1500 ] || {
        say "only $free MB are free in $TARGET, and 1500 MB are needed; make room, or name another folder with CARGO_TARGET_DIR" >&2
        exit 1
    }
fi
begin=$(date +%s)
if [ "${2:-}" = llama-cpp ]; then
    scripts/llama_cpp_needs.sh "$CARGO" build --profile serve --locked -p maskwright-cli --features llama-cpp
else
    "$CARGO" build --profile serve --locked -p maskwright-cli
fi
say "$1 is ready, after $(($(date +%s) - begin)) s"
