#!/bin/sh
# Prints what CHANGELOG.md says about a version: scripts/release_notes.sh 0.1.0
set -eu
cd "$(dirname "$0")/.."
notes=$(awk -v version="$1" '/^## / { on = index($2, version) == 1 || index($2, "[" version "]") == 1; next } on' CHANGELOG.md)
[ -n "$notes" ] || {
    printf '%s\n' "CHANGELOG.md says nothing about $1" >&2
    exit 1
}
printf '%s\n' "$notes"
