#!/bin/sh
# Builds the public crates with the oldest dependencies that their manifests allow. A nightly Cargo picks the versions; the stable compiler builds.
set -eu
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
"$CARGO" +nightly --version >/dev/null 2>&1 || {
    echo "only a nightly Cargo can pick the oldest versions: rustup toolchain install nightly --profile minimal" >&2
    exit 1
}

# The lock file of the repository stays as it is.
kept=$(mktemp)
cp Cargo.lock "$kept"
trap 'mv "$kept" Cargo.lock' EXIT
rm Cargo.lock
"$CARGO" +nightly generate-lockfile -Zdirect-minimal-versions
set --
for name in $(python3 scripts/package_check.py --order); do set -- "$@" -p "$name"; done
"$CARGO" check --locked "$@" --target-dir "${CARGO_TARGET_DIR:-target}/minimal"
