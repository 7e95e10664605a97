"""vLLM in a program, with maskwright as the backend of its structured outputs.

    python examples/python/vllm_offline.py MODEL

MODEL is a folder or a name that vLLM can load. Without one, the small model of 'make test-engines' is taken.
"""

# needs: vllm
# needs: torch

import json
import os
import sys


def main() -> None:
    # vLLM starts a process for its engine, which must be told as well; a call of maskwright.vllm.install() would only be for this one.
    os.environ["MASKWRIGHT_VLLM"] = "1"

    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    llm = LLM(sys.argv[1] if len(sys.argv) > 1 else "target/engines/smollm2", max_model_len=512, enforce_eager=True)
    schema = {"type": "object", "properties": {"answer": {"type": "integer", "multipleOf": 7, "minimum": 0, "maximum": 1000}}, "required": ["answer"], "additionalProperties": False}
    params = [
        SamplingParams(max_tokens=60, structured_outputs=StructuredOutputsParams(json=schema, disable_any_whitespace=True)),
        SamplingParams(max_tokens=60, structured_outputs=StructuredOutputsParams(grammar='start: "yes" | "no" " "? "thanks"')),
    ]
    number, word = (out.outputs[0].text for out in llm.generate(["How many?", "Tea?"], params))
    assert json.loads(number)["answer"] % 7 == 0
    print(number, word)


if __name__ == "__main__":
    main()
