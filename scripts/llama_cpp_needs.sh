#!/bin/sh
# Runs a command that builds llama.cpp from its sources, as the feature `llama-cpp` does, or says what is missing for that: before a long build fails at the end.
#
#   scripts/llama_cpp_needs.sh cargo build --features llama-cpp
#
# If nothing but libclang is missing, it is fetched from PyPI. That one has no headers of its own, so it is told where those of the C compiler are.
set -eu

fail() {
    printf '%s\n' "llama-cpp: $*" >&2
    exit 1
}

WAY_OUT="on Debian and Ubuntu: apt-get install cmake g++ libclang-dev"

command -v cmake >/dev/null 2>&1 || fail "cmake is not installed; $WAY_OUT"
command -v "${CXX:-c++}" >/dev/null 2>&1 || fail "there is no C++ compiler (${CXX:-c++}); $WAY_OUT"
[ -z "${LIBCLANG_PATH:-}" ] || exec "$@"
for folder in /usr/lib /usr/lib64 /usr/local/lib /usr/lib/llvm*/lib /usr/lib/*-linux-gnu /opt/homebrew/opt/llvm/lib \
    /usr/local/opt/llvm/lib /Library/Developer/CommandLineTools/usr/lib; do
    for library in "$folder"/libclang.so* "$folder"/libclang-[0-9]*.so* "$folder"/libclang.dylib; do
        [ ! -e "$library" ] || exec "$@"
    done
done

cd "$(dirname "$0")/.."
folder=${ASSETS_DIR:-target/assets}/libclang
if [ ! -e "$folder/clang/native/libclang.so" ] && [ ! -e "$folder/clang/native/libclang.dylib" ]; then
    python3 -m pip install --quiet --no-deps --only-binary :all: --target "$folder" libclang >&2 ||
        fail "libclang was not found, and could not be fetched; $WAY_OUT, or set LIBCLANG_PATH to the folder that has it"
fi
LIBCLANG_PATH=$(cd "$folder" && pwd)/clang/native
BINDGEN_EXTRA_CLANG_ARGS="${BINDGEN_EXTRA_CLANG_ARGS:-} -isystem $("${CC:-cc}" -print-file-name=include)"
export LIBCLANG_PATH BINDGEN_EXTRA_CLANG_ARGS
exec "$@"
