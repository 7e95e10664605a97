#!/bin/sh
# Says what is missing for the feature `llama-cpp`, which builds llama.cpp from its sources: before a long build fails at the end.
#
#   scripts/llama_cpp_needs.sh
set -eu

fail() {
    printf '%s\n' "llama-cpp: $*" >&2
    exit 1
}

WAY_OUT="on Debian and Ubuntu: apt-get install cmake g++ libclang-dev"

command -v cmake >/dev/null 2>&1 || fail "cmake is not installed; $WAY_OUT"
command -v "${CXX:-c++}" >/dev/null 2>&1 || fail "there is no C++ compiler (${CXX:-c++}); $WAY_OUT"
[ -n "${LIBCLANG_PATH:-}" ] && exit 0
for folder in /usr/lib /usr/lib64 /usr/local/lib /usr/lib/llvm*/lib /usr/lib/*-linux-gnu /opt/homebrew/opt/llvm/lib \
    /usr/local/opt/llvm/lib /Library/Developer/CommandLineTools/usr/lib; do
    for library in "$folder"/libclang.so* "$folder"/libclang-*.so* "$folder"/libclang.dylib; do
        [ -e "$library" ] && exit 0
    done
done
fail "libclang was not found; $WAY_OUT, or set LIBCLANG_PATH to the folder that has it"
