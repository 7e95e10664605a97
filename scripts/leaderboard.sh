#!/bin/sh
# Installs every engine by name, runs the leaderboard, and says where the page is.
#
#   scripts/leaderboard.sh [ARGUMENTS of bench/python/leaderboard.py]
#
# MASKWRIGHT=maskwright==1.2.3 takes a release of ours from the package index instead of the wheel that 'make wheel' built here.
# An engine that cannot be installed is left out, and the page says so. XGrammar brings PyTorch, several gigabytes; ENGINES="llguidance glrmask" installs only some.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
HOME_OF_RUN=target/leaderboard
ENVIRONMENT=$HOME_OF_RUN/environment
ENGINES=${ENGINES:-"llguidance==1.9.1 xgrammar==0.2.8 outlines-core==0.2.14 glrmask==0.5.0"}

say() { printf '%s\n' "leaderboard: $*"; }

install() { "$ENVIRONMENT/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }

[ -x "$ENVIRONMENT/bin/python" ] || "$PYTHON" -m venv "$ENVIRONMENT" || {
    say "a virtual environment cannot be made; on Debian install python3-venv" >&2
    exit 1
}
install "tokenizers>=0.22" numpy || {
    say "pip could not install the tokenizer; is this machine offline?" >&2
    exit 1
}
# shellcheck disable=SC2086 # one wheel, or a name with a version
install --force-reinstall --no-deps ${MASKWRIGHT:-target/wheels/*.whl} || {
    say "ours could not be installed; 'make wheel' builds it" >&2
    exit 1
}
for engine in $ENGINES; do
    say "installing $engine"
    install "$engine" || say "$engine could not be installed, and is left out" >&2
done
"$ENVIRONMENT/bin/python" bench/python/leaderboard.py --out "$HOME_OF_RUN" "$@"
