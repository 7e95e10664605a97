"""A small real model, loaded from a GGUF file, writes JSON: one prompt, several prompts with a constraint for each, and with beams.

    python examples/python/transformers_model.py [FILE.gguf]

'make assets' fetches the file that is taken otherwise.
"""

# needs: torch
# needs: transformers
# needs: gguf
# needs: accelerate

import json
import pathlib
import sys

import maskwright as mw
from maskwright.transformers import LogitsProcessor, vocabulary
from transformers import AutoModelForCausalLM, AutoTokenizer

DEFAULT = "target/assets/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def main() -> None:
    file = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else DEFAULT)
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name)

    # Once for each model.
    compiler = mw.Compiler(vocabulary(model, tokenizer))

    person = compiler.compile(
        mw.json_schema(
            {
                "type": "object",
                "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "maximum": 150}},
                "required": ["name", "age"],
                "additionalProperties": False,
            },
            whitespace="compact",
        )
    )
    colour = compiler.compile(mw.choice(["red", "green", "blue"]))

    def write(questions: list[str], constraints, **options) -> list[str]:
        """The answers to some questions."""
        prompts = [
            tokenizer.apply_chat_template([{"role": "user", "content": question}], add_generation_prompt=True, tokenize=False)
            for question in questions
        ]
        inputs = tokenizer(prompts, return_tensors="pt", padding=True)
        # The budget makes sure that the text is complete when generation stops.
        processor = LogitsProcessor(constraints, budget=40)
        out = model.generate(**inputs, logits_processor=[processor], max_new_tokens=40, pad_token_id=tokenizer.eos_token_id, **options)
        return tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)

    (text,) = write(["Who wrote Faust?"], person, do_sample=False)
    print("one prompt:   ", json.loads(text))

    first, second, third = write(
        ["Who was Ada?", "What colour is the sky?", "Say hello."], [person, colour, None], do_sample=True, temperature=0.8
    )
    assert second in ("red", "green", "blue")
    print("three prompts:", json.loads(first), second, repr(third[:40]))

    for text in write(["Who was Alan Turing?"], person, num_beams=3, num_return_sequences=3, do_sample=False):
        print("a beam:       ", json.loads(text))


if __name__ == "__main__":
    main()
