"""Does bounded white space leave arrays empty? A small real model, run by vLLM, fills arrays that may be empty, under each option for white space.

    python bench/python/whitespace.py MODEL_FOLDER [--topics 40] [--tokens 200] [--temperature 0.7]

There are three schemas, each asked about every topic, with the same seed under every option. An array counts as soon as it is begun, whether the text ends in time or not: those of texts that do not would be missing exactly where a model
writes white space for ever. What is complete is checked with the package jsonschema. It needs the environment of 'scripts/engines.sh install'.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics

# What a request says besides its schema. 'any' is what JSON allows, without a bound.
OPTIONS = {
    "compact": {"whitespace": "compact"},
    "spaced": {"whitespace": "spaced"},
    "tidy": {"whitespace": "tidy"},
    "flexible": {"whitespace": "flexible"},
    "any": {"whitespace_pattern": r"[ \t\n\r]*"},
}
TOPICS = (
    "Norway, bread, the moon, a bicycle, Mozart, tea, the Alps, chess, honey bees, a library, soup, Tokyo, whales, a garden, the piano, rain, football, Rome, a volcano, cheese, the sea, a train, owls, painting, Egypt, "
    "coffee, a castle, winter, dogs, a market, the Sun, running, rice, a bridge, roses, Brazil, a school, salt, horses, a lighthouse"
).split(", ")


def text(limit: int) -> dict:
    return {"type": "string", "maxLength": limit}


def record(**properties: dict) -> dict:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def array(items: dict) -> dict:
    return {"type": "array", "items": items}


SCHEMAS = [
    record(name=text(40), tags=array(text(20))),
    record(title=text(40), facts=array(text(60)), numbers=array({"type": "integer", "minimum": 0, "maximum": 9999})),
    record(topic=text(40), examples=array(record(name=text(30), year={"type": "integer", "minimum": 1000, "maximum": 2100}))),
]


def arrays(written: str) -> tuple[int, int]:
    """How many arrays are begun, less one of which nothing is known yet, and how many of them are empty."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"?', '""', written)
    return len(re.findall(r"\[\s*\S", bare)), len(re.findall(r"\[\s*\]", bare))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--topics", type=int, default=len(TOPICS))
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--temperature", type=float, default=0.7)
    options = parser.parse_args()
    os.environ |= {"MASKWRIGHT_VLLM": "1", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    import jsonschema
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    llm = LLM(options.model, max_model_len=512, max_num_seqs=40, enforce_eager=True, dtype="float32")
    asked = [(topic, schema) for schema in SCHEMAS for topic in TOPICS[: options.topics]]
    prompts = [
        [{"role": "user", "content": f"Tell me about {topic}. Answer in JSON, with the keys {', '.join(schema['properties'])}."}] for topic, schema in asked
    ]
    print(f"{len(asked)} answers for each option, at most {options.tokens} tokens, temperature {options.temperature}")
    print("| white space | complete | empty arrays | tokens of a complete answer, median | white space, of all characters |")
    print("|---|---:|---:|---:|---:|")
    for name, wanted in OPTIONS.items():
        params = [
            SamplingParams(
                max_tokens=options.tokens, temperature=options.temperature, seed=at,
                structured_outputs=StructuredOutputsParams(json={**schema, "x-maskwright": wanted}),
            )
            for at, (_, schema) in enumerate(asked)
        ]
        answers = [answer.outputs[0] for answer in llm.chat(prompts, params, use_tqdm=False)]
        complete = [answer for answer in answers if answer.finish_reason == "stop"]
        for answer, (_, schema) in zip(answers, asked):
            if answer.finish_reason == "stop":
                jsonschema.validate(json.loads(answer.text), schema)
        begun, empty = (sum(numbers) for numbers in zip(*(arrays(answer.text) for answer in answers)))
        characters = sum(len(answer.text) for answer in answers)
        blanks = sum(len(re.sub(r'"(?:[^"\\]|\\.)*"?|\S', "", answer.text)) for answer in answers)
        tokens = statistics.median(len(answer.token_ids) for answer in complete) if complete else float("nan")
        print(f"| {name} | {len(complete)} of {len(answers)} | {empty} of {begun} ({100 * empty / max(begun, 1):.1f} %) | {tokens:.0f} | {100 * blanks / characters:.0f} % |", flush=True)


if __name__ == "__main__":
    main()
