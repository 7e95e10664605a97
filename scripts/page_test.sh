#!/bin/sh
# The page in a real browser: starts a server of the built command, runs scripts/page_test.mjs against it, and stops it again.
#
#   scripts/page_test.sh target/serve/maskwright
#
# Needs node, npm and a Chromium (Debian: apt-get install chromium nodejs npm); CHROMIUM names one that is not /usr/bin/chromium. Screenshots are in
# target/page-test afterwards.
set -eu

cd "$(dirname "$0")/.."
SERVER=${1:?"which command? for example target/serve/maskwright"}
PORT=${PORT:-8765}
FOLDER=target/page-test

fail() {
    printf '%s\n' "page: $*" >&2
    exit 1
}

for tool in node npm "${CHROMIUM:-/usr/bin/chromium}"; do
    command -v "$tool" >/dev/null 2>&1 || fail "$tool is not here; Debian: apt-get install chromium nodejs npm"
done
mkdir -p "$FOLDER"
[ -d "$FOLDER/node_modules/playwright-core" ] ||
    PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm install --silent --no-fund --no-audit --prefix "$FOLDER" playwright-core@1

"$SERVER" serve --port "$PORT" >"$FOLDER/server.log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT INT TERM
tries=0
until curl --silent --fail --output /dev/null "http://127.0.0.1:$PORT/health"; do
    kill -0 "$server" 2>/dev/null || fail "the server ended: $(tail -n 3 "$FOLDER/server.log")"
    tries=$((tries + 1))
    [ "$tries" -lt 120 ] || fail "the server did not answer within a minute; see $FOLDER/server.log"
    sleep 0.5
done
node scripts/page_test.mjs "http://127.0.0.1:$PORT" "$FOLDER"
