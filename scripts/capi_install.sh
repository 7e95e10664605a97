#!/bin/sh
# Puts the C library where a C compiler looks for one.
#
#   scripts/capi_install.sh target/release target/capi
#
# The first folder is Cargo's; the second gets include, lib, lib/pkgconfig and lib/cmake. It can be moved: nothing in it has an absolute path.
set -eu

FROM=$1
TO=$2
cd "$(dirname "$0")/.."
VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

mkdir -p "$TO/include" "$TO/lib/pkgconfig" "$TO/lib/cmake/maskwright"
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
cat >"$TO/lib/cmake/maskwright/maskwright-config.cmake" <<'CMAKE'
# find_package(maskwright) gives maskwright::maskwright, the shared library, and maskwright::static.
get_filename_component(_maskwright_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(_maskwright_shared "${_maskwright_prefix}/lib/${CMAKE_SHARED_LIBRARY_PREFIX}maskwright${CMAKE_SHARED_LIBRARY_SUFFIX}")
if(EXISTS "${_maskwright_shared}" AND NOT TARGET maskwright::maskwright)
    add_library(maskwright::maskwright SHARED IMPORTED)
    set_target_properties(maskwright::maskwright PROPERTIES
        IMPORTED_LOCATION "${_maskwright_shared}"
        IMPORTED_NO_SONAME TRUE
        INTERFACE_INCLUDE_DIRECTORIES "${_maskwright_prefix}/include")
endif()
if(NOT TARGET maskwright::static)
    find_package(Threads REQUIRED)
    add_library(maskwright::static STATIC IMPORTED)
    set_target_properties(maskwright::static PROPERTIES
        IMPORTED_LOCATION "${_maskwright_prefix}/lib/libmaskwright.a"
        INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m"
        INTERFACE_INCLUDE_DIRECTORIES "${_maskwright_prefix}/include")
    if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
        set_property(TARGET maskwright::static APPEND PROPERTY INTERFACE_LINK_LIBRARIES gcc_s)
    endif()
endif()
if(NOT TARGET maskwright::maskwright)
    set(maskwright_FOUND FALSE)
    set(maskwright_NOT_FOUND_MESSAGE "there is no shared library in ${_maskwright_prefix}/lib; use maskwright::static")
endif()
CMAKE
cat >"$TO/lib/cmake/maskwright/maskwright-config-version.cmake" <<CMAKE
set(PACKAGE_VERSION "$VERSION")
# While the version begins with 0, the second number says what is compatible.
string(REGEX MATCH "^[0-9]+\\\\.[0-9]+" _maskwright_ours "$VERSION")
string(REGEX MATCH "^[0-9]+\\\\.[0-9]+" _maskwright_wanted "\${PACKAGE_FIND_VERSION}")
if(PACKAGE_FIND_VERSION VERSION_GREATER "$VERSION" OR NOT _maskwright_ours STREQUAL _maskwright_wanted)
    set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
    if(PACKAGE_FIND_VERSION VERSION_EQUAL "$VERSION")
        set(PACKAGE_VERSION_EXACT TRUE)
    endif()
endif()
CMAKE
cp LICENSE-APACHE LICENSE-MIT docs/c.md "$TO/"
printf "%s\n" "capi: headers and libraries are in $TO"
