"""Does bounded white space leave arrays empty? A small real model fills arrays that may be empty, under each option for white space.

    python bench/python/whitespace.py [http://127.0.0.1:8000] [--topics 40] [--tokens 200] [--temperature 0.7]

There are three schemas, each asked about every topic, with the same seed under every option. An array counts as soon as it is begun, whether the text ends in time or not: those of texts that do not would be missing exactly where a model
writes white space for ever. The server is that of 'make serve'. What is complete is checked with the package jsonschema.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import statistics
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import jsonschema

# What a request says about it. 'any' is what JSON allows, without a bound.
OPTIONS = {"compact": "compact", "spaced": "spaced", "tidy": "tidy", "flexible": "flexible", "any": {"pattern": r"[ \t\n\r]*"}}
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


# An array comes first, so that a few tokens already tell whether it is empty.
SCHEMAS = [
    record(tags=array(text(20)), name=text(40)),
    record(facts=array(text(60)), title=text(40), numbers=array({"type": "integer", "minimum": 0, "maximum": 9999})),
    record(examples=array(record(name=text(30), year={"type": "integer", "minimum": 1000, "maximum": 2100})), topic=text(40)),
]


def arrays(written: str) -> tuple[int, int]:
    """How many arrays are begun, less one of which nothing is known yet, and how many of them are empty."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"?', '""', written)
    return len(re.findall(r"\[\s*\S", bare)), len(re.findall(r"\[\s*\]", bare))


def ask(server: str, topic: str, schema: dict, seed: int, wanted: object, options: argparse.Namespace) -> tuple[str, bool, int]:
    """An answer, whether it is complete, and its tokens."""
    body = {
        "messages": [{"role": "user", "content": f"Tell me about {topic}. Answer in JSON, with the keys {', '.join(schema['properties'])}."}],
        "max_tokens": options.tokens, "temperature": options.temperature, "seed": seed,
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
        "maskwright": {"whitespace": wanted, "finish": False},
    }
    request = urllib.request.Request(f"{server}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=1800) as answer:
        got = json.load(answer)
    choice = got["choices"][0]
    text, is_complete = choice["message"]["content"], choice["finish_reason"] == "stop"
    if is_complete:
        jsonschema.validate(json.loads(text), schema)
    return text, is_complete, got["usage"]["completion_tokens"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", nargs="?", default="http://127.0.0.1:8000")
    parser.add_argument("--options", nargs="+", choices=OPTIONS, default=list(OPTIONS))
    parser.add_argument("--topics", type=int, default=len(TOPICS))
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--temperature", type=float, default=0.7)
    options = parser.parse_args()
    asked = list(itertools.product(SCHEMAS, TOPICS[: options.topics]))
    print(f"{len(asked)} answers for each option, at most {options.tokens} tokens, temperature {options.temperature}")
    print("| white space | complete | empty arrays | tokens of a complete answer, median | white space, of all characters |")
    print("|---|---:|---:|---:|---:|")
    for name in options.options:
        with ThreadPoolExecutor(16) as threads:
            answers = list(threads.map(lambda at: ask(options.server, asked[at][1], asked[at][0], at, OPTIONS[name], options), range(len(asked))))
        complete = [tokens for _, is_complete, tokens in answers if is_complete]
        begun, empty = (sum(numbers) for numbers in zip(*(arrays(text) for text, _, _ in answers)))
        characters = sum(len(text) for text, _, _ in answers)
        blanks = sum(len(re.sub(r'"(?:[^"\\]|\\.)*"?|\S', "", text)) for text, _, _ in answers)
        median = statistics.median(complete) if complete else float("nan")
        print(f"| {name} | {len(complete)} of {len(answers)} | {empty} of {begun} ({100 * empty / max(begun, 1):.1f} %) | {median:.0f} | {100 * blanks / characters:.0f} % |", flush=True)


if __name__ == "__main__":
    main()
