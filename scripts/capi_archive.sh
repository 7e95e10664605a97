#!/bin/sh
# Packs an installed C library for a release, and tries the package where it was unpacked: with pkg-config, and with CMake if that is installed.
#
#   scripts/capi_archive.sh target/capi        gives target/maskwright-c-VERSION-MACHINE.tar.gz
set -eu
cd "$(dirname "$0")/.."
FROM=$1
VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
NAME=maskwright-c-$VERSION-$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/pack"
cp -R "$FROM" "$work/pack/$NAME"
# Line tables are two thirds of the libraries, and help only those who have the source and build it anyway.
if command -v strip >/dev/null; then
    find "$work/pack/$NAME/lib" \( -name '*.a' -o -name '*.so' -o -name '*.dylib' \) -exec strip -S {} +
fi
# The same files give the same archive, whoever packs them.
if tar --version 2>/dev/null | grep -q GNU; then
    tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$work/pack" -cf - "$NAME" | gzip -n >"target/$NAME.tar.gz"
else
    tar -C "$work/pack" -cf - "$NAME" | gzip -n >"target/$NAME.tar.gz"
fi

# As somebody who downloads it: elsewhere, with a small program.
mkdir "$work/there"
tar -xzf "target/$NAME.tar.gz" -C "$work/there"
prefix=$work/there/$NAME
cat >"$work/there/program.c" <<'C'
#include <stdio.h>
#include "maskwright.h"
int main(void) { printf("%s\n", mw_version()); return 0; }
C
try() {
    said=$("$work/there/$1") || { echo "capi: the program of $1 does not run" >&2; exit 1; }
    [ "$said" = "$VERSION" ] || { echo "capi: the library of $1 says it is $said" >&2; exit 1; }
    echo "capi: $1 works"
}
if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$prefix/lib/pkgconfig
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046 # several words
    cc "$work/there/program.c" -o "$work/there/pkg-config" $(pkg-config --cflags --libs maskwright) -Wl,-rpath,"$prefix/lib"
    try pkg-config
else
    echo "capi: pkg-config is not installed, so its file was not tried"
fi
if command -v cmake >/dev/null; then
    cat >"$work/there/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(program C)
find_package(maskwright ${WANTED} REQUIRED)
add_executable(shared program.c)
target_link_libraries(shared PRIVATE maskwright::maskwright)
add_executable(static program.c)
target_link_libraries(static PRIVATE maskwright::static)
CMAKE
    cmake -S "$work/there" -B "$work/there/build" -DCMAKE_PREFIX_PATH="$prefix" -DWANTED="$VERSION" >"$work/log" && cmake --build "$work/there/build" >>"$work/log" || { cat "$work/log" >&2; exit 1; }
    try build/shared
    try build/static
else
    echo "capi: cmake is not installed, so its file was not tried"
fi
ls -l "target/$NAME.tar.gz"
