#!/bin/sh
# Ends with one line that says what to install if a command is missing.
#
#   scripts/need.sh mdbook "the documentation is built with mdBook: cargo install mdbook"
#
# For a subcommand of Cargo give its file: `cargo-deny`.
set -eu
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
command -v "$1" >/dev/null 2>&1 || {
    printf '%s\n' "'$1' is not on the PATH; $2" >&2
    exit 1
}
