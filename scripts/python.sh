#!/bin/sh
# The Python package, built and tried.
#
#   scripts/python.sh test     build the wheel as the tests want it, install it into target/python, run the tests
#   scripts/python.sh wheel    build the wheel that people install, into target/wheels
#   scripts/python.sh sdist    pack the source, into target/sdist
#   scripts/python.sh test-sdist
#                              the same, and install it into a fresh environment far from this repository
#
# PYTHON names the interpreter; for one without the GIL, such as python3.14t, the wheel is for that version alone.
# What is needed besides Cargo and Python 3.11 is fetched by pip into a virtual environment of its own.
set -eu

cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
ENVIRONMENT=target/python
TOOLS="maturin>=1.9,<2"
# What the tests compare with, or borrow tokenizers from. All of them are optional for the package.
BESIDES="numpy pytest prometheus_client pydantic>=2 tokenizers transformers>=5 tiktoken sentencepiece outlines-core==0.2.14 llguidance==1.9.1"

say() { printf '%s\n' "python: $*"; }

fail() {
    printf '%s\n' "python: $*" >&2
    exit 1
}

environment() {
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "Python 3.11 or newer is needed; this is $("$PYTHON" --version)"
    # One that was made by another interpreter is made anew.
    if [ "$("$ENVIRONMENT/bin/python" -VV 2>/dev/null)" != "$("$PYTHON" -VV)" ]; then
        rm -rf "$ENVIRONMENT"
        "$PYTHON" -m venv "$ENVIRONMENT" || fail "a virtual environment cannot be made; on Debian install python3-venv"
    fi
    "$ENVIRONMENT/bin/python" -m pip install --quiet --disable-pip-version-check "$@" || fail "pip could not install $*; is this machine offline?"
}

# build FOLDER ARGUMENTS: the wheel, alone in a folder.
build() {
    folder=$PWD/$1
    shift
    mkdir -p "$folder"
    # .cargo/config.toml keeps PyO3 from asking the interpreter, which for the stable ABI has nothing to say. One without the GIL has.
    free=$("$ENVIRONMENT/bin/python" -c 'import sys, sysconfig; print("%d.%d" % sys.version_info[:2] if sysconfig.get_config_var("Py_GIL_DISABLED") else "")')
    if [ -n "$free" ]; then
        set -- --no-default-features "$@"
        PYO3_CONFIG_FILE=$folder/pyo3.txt
        export PYO3_CONFIG_FILE
        printf '%s\n' implementation=CPython "version=$free" shared=false "target_abi=CPython-free_threaded-$free" build_flags=Py_GIL_DISABLED \
            suppress_build_script_link_lines=false >"$PYO3_CONFIG_FILE"
    fi
    rm -f "$folder"/*.whl
    # Cargo must find the same target folder from wherever maturin calls it.
    (
        CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
        export CARGO_TARGET_DIR
        cd python
        "../$ENVIRONMENT/bin/maturin" build --quiet --interpreter "../$ENVIRONMENT/bin/python" --out "$folder" "$@"
    )
}

case "${1:-}" in
test)
    # shellcheck disable=SC2086 # several words
    environment "$TOOLS" $BESIDES
    build target/wheels/test --profile dev
    "$ENVIRONMENT/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps target/wheels/test/*.whl
    say "running the tests"
    MASKWRIGHT_WHEEL=$(echo "$PWD"/target/wheels/test/*.whl) "$ENVIRONMENT/bin/python" -m pytest --quiet -p no:cacheprovider --ignore python/tests/engines python/tests
    # The plug-ins for engines, with stand-ins for those that are not installed; 'make test-engines' has the real ones.
    "$ENVIRONMENT/bin/python" -m pytest --quiet -p no:cacheprovider python/tests/engines
    ;;
wheel)
    environment "$TOOLS"
    build target/wheels --release
    ls -l target/wheels/*.whl
    ;;
sdist | test-sdist)
    environment "$TOOLS"
    rm -rf target/sdist
    (cd python && "../$ENVIRONMENT/bin/maturin" sdist --out ../target/sdist)
    ls -l target/sdist/*.tar.gz
    [ "$1" = test-sdist ] || exit 0
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cp target/sdist/*.tar.gz "$work/"
    "$PYTHON" -m venv "$work/environment"
    # What was built for it before is used again, if the caller says where; a user's pip has no such folder.
    (
        cd "$work"
        environment/bin/python -m pip install --quiet --disable-pip-version-check ./maskwright-*.tar.gz || fail "the package does not build from its source"
        environment/bin/python -c '
import maskwright as mw
vocabulary = mw.Vocabulary.from_tokens([b"yes", b"no", b"n", b"o", b"maybe", b"<end>"], eos=5)
matcher = mw.Compiler(vocabulary).compile(mw.regex("yes|no")).matcher()
assert matcher.allowed_tokens() == [0, 1, 2]
print("python: installed from source, version", mw.__version__)'
    )
    ;;
*)
    fail "say 'test', 'wheel', 'sdist' or 'test-sdist'"
    ;;
esac
