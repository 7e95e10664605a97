#!/bin/sh
# Compares the API of the public crates with the last release (`v1.2.3`).
set -eu
cd "$(dirname "$0")/.."
tag=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null) || {
    echo "no release has been tagged, so there is nothing to compare with"
    exit 0
}
scripts/need.sh cargo-semver-checks "install it with: cargo install cargo-semver-checks --locked"
set --
for name in $(python3 scripts/package_check.py --order); do
    # The command is a program, and has no API.
    [ "$name" = maskwright-cli ] || set -- "$@" -p "$name"
done
echo "comparing with $tag"
"${CARGO:-cargo}" semver-checks --baseline-rev "$tag" "$@"
