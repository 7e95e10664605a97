#!/bin/sh
# Puts the C library where a C compiler looks for one.
#
#   scripts/capi_install.sh target/release target/capi
#
# The first folder is Cargo's; the second gets include, lib and lib/pkgconfig.
set -eu

FROM=$1
TO=$2
cd "$(dirname "$0")/.."
VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

mkdir -p "$TO/include" "$TO/lib/pkgconfig"
cp crates/capi/include/*.h "$TO/include/"
cp "$FROM/libmaskwright_c.a" "$TO/lib/libmaskwright.a"
for extension in so dylib; do
    if test -f "$FROM/libmaskwright_c.$extension"; then
        cp "$FROM/libmaskwright_c.$extension" "$TO/lib/libmaskwright.$extension"
    fi
done
cat >"$TO/lib/pkgconfig/maskwright.pc" <<PC
prefix=\${pcfiledir}/../..
Name: maskwright
Description: Which tokens may come next, so that a language model writes valid output
Version: $VERSION
Libs: -L\${prefix}/lib -lmaskwright
Libs.private: -lpthread -ldl -lm -lgcc_s
Cflags: -I\${prefix}/include
PC
printf "%s\n" "capi: headers and libraries are in $TO"
