"""A small real model, run by llama-cpp-python, writes JSON that satisfies a schema.

    python examples/python/llama_cpp_model.py [FILE.gguf]

'make assets' fetches the file that is taken otherwise.
"""

# needs: llama_cpp
# needs: numpy

import json
import sys

import maskwright as mw
from llama_cpp import Llama, LogitsProcessorList
from maskwright.llama_cpp import LogitsProcessor

DEFAULT = "target/assets/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "maximum": 150}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def main() -> None:
    file = sys.argv[1] if len(sys.argv) > 1 else DEFAULT
    model = Llama(file, n_ctx=512, verbose=False)

    # Once for each model.
    compiler = mw.Compiler(mw.Vocabulary.from_tokenizer(model))
    person = compiler.compile(mw.json_schema(PERSON, whitespace="tidy"))

    # The budget makes sure that the text is complete when generation stops.
    processors = LogitsProcessorList([LogitsProcessor(person, budget=60)])
    for question in ("Who wrote Faust?", "Who was Ada Lovelace?"):
        prompt = [{"role": "user", "content": f"{question} Answer in JSON."}]
        answer = model.create_chat_completion(prompt, logits_processor=processors, max_tokens=60, temperature=0.8, seed=7)
        print(json.loads(answer["choices"][0]["message"]["content"]))


if __name__ == "__main__":
    main()
