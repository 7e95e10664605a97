"""Runs OpenAI's SDK for Python against a live server, the frameworks of sdk_frameworks.py, and the Python examples of docs/start/server.md and docs/server.md.

Every answer, and every event of a stream, must be of the SDK's own type: the client is told to validate strictly.

    python scripts/sdk_test.py --start                      starts target/serve/maskwright itself
    python scripts/sdk_test.py --url http://127.0.0.1:8000  uses one that runs

Needs the packages openai and pydantic, and for the frameworks instructor, langchain, langchain-openai, pydantic-ai-slim[openai] and openai-agents; `make test-sdk` installs them into target/sdk.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Literal

import openai
from openai import OpenAI
from openai.types import Completion
from pydantic import BaseModel

from sdk_frameworks import FRAMEWORKS

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
QUESTION = [{"role": "user", "content": "Describe a cat."}]


class Cat(BaseModel):
    name: str
    legs: int
    colour: Literal["black", "white", "grey"]


def models(client):
    names = [model.id for model in client.models.list()]
    assert names, "no model is served"
    assert client.models.retrieve(names[0]).id == names[0]


def chat(client):
    answer = client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=8, temperature=0, seed=1)
    choice = answer.choices[0]
    assert choice.message.role == "assistant" and choice.message.content, answer
    assert choice.message.refusal is None and choice.finish_reason in ("stop", "length"), answer
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens, answer


def chat_stream(client):
    options = dict(model=MODEL, messages=QUESTION, max_tokens=8, temperature=0)
    whole = client.chat.completions.create(**options).choices[0].message.content
    chunks = list(client.chat.completions.create(**options, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == whole
    assert chunks[-1].usage.completion_tokens > 0 and not chunks[-1].choices


def chat_parse(client):
    answer = client.chat.completions.parse(model=MODEL, messages=QUESTION, response_format=Cat, temperature=1, seed=3, max_tokens=400)
    assert isinstance(answer.choices[0].message.parsed, Cat), answer


def chat_parse_stream(client):
    with client.chat.completions.stream(model=MODEL, messages=QUESTION, response_format=Cat, temperature=1, seed=4, max_tokens=400) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds, kinds
    assert isinstance(final.choices[0].message.parsed, Cat), final


def constraints(client):
    for extra, pattern in [
        ({"structured_outputs": {"regex": "19[0-9]{2}"}}, "19[0-9]{2}"),
        ({"structured_outputs": {"choice": ["red", "blue"]}}, "red|blue"),
        ({"guided_regex": "[ab]{3}"}, "[ab]{3}"),
        ({"ebnf": 'root ::= "a" [0-9]'}, "a[0-9]"),
        ({"grammar": 'root ::= "b" [0-9]'}, "b[0-9]"),
    ]:
        answer = client.chat.completions.create(model=MODEL, messages=QUESTION, extra_body=extra, temperature=1.5)
        assert re.fullmatch(pattern, answer.choices[0].message.content), (extra, answer)


def logprobs(client):
    answer = client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=3, logprobs=True, top_logprobs=2)
    content = answer.choices[0].logprobs.content
    assert content and all(len(entry.top_logprobs) == 2 and entry.logprob <= 0 for entry in content), answer


def completions(client):
    answer = client.completions.create(model=MODEL, prompt="1, 2, 3, 4, 5,", max_tokens=4, temperature=0)
    assert "6" in answer.choices[0].text, answer
    # The SDK has one type for answers and for pieces of them, in which the reason is never null; OpenAI's API says null until the last piece, and so do we.
    loose = OpenAI(base_url=client.base_url, api_key="none", max_retries=0)
    pieces = [piece.to_dict() for piece in loose.completions.create(model=MODEL, prompt="1, 2, 3, 4, 5,", max_tokens=4, temperature=0, stream=True)]
    assert "".join(piece["choices"][0]["text"] for piece in pieces) == answer.choices[0].text
    reasons = [piece["choices"][0].pop("finish_reason") for piece in pieces]
    assert reasons[-1] == "length" and not any(reasons[:-1]), reasons
    for piece in pieces:
        piece["choices"][0]["finish_reason"] = "stop"
        Completion.model_validate(piece, strict=True)
    echoed = client.completions.create(model=MODEL, prompt="1, 2,", max_tokens=2, echo=True)
    assert echoed.choices[0].text.startswith("1, 2,"), echoed


def responses(client):
    answer = client.responses.create(model=MODEL, input="Say hello.", instructions="Be brief.", max_output_tokens=8)
    assert answer.status in ("completed", "incomplete") and answer.output_text, answer
    after = client.responses.create(model=MODEL, input="Again.", previous_response_id=answer.id, max_output_tokens=4)
    assert after.previous_response_id == answer.id and client.responses.retrieve(after.id).id == after.id
    client.responses.delete(after.id)
    parsed = client.responses.parse(model=MODEL, input="Describe a cat.", text_format=Cat, max_output_tokens=400)
    assert isinstance(parsed.output_parsed, Cat), parsed


def responses_stream(client):
    events = list(client.responses.create(model=MODEL, input="Say hello.", max_output_tokens=8, temperature=0, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created"
    last = events[-1]
    assert last.type in ("response.completed", "response.incomplete"), last
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == last.response.output_text
    with client.responses.stream(model=MODEL, input="Describe a cat.", text_format=Cat, max_output_tokens=400) as stream:
        for _ in stream:
            pass
        assert isinstance(stream.get_final_response().output_parsed, Cat)


WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}


def valid(arguments):
    arguments = json.loads(arguments)
    return set(arguments) == {"city", "days"} and arguments["city"] in ("Oslo", "Rome") and 1 <= arguments["days"] <= 9


def tools(client):
    tool = {"type": "function", "function": {"name": "weather", "description": "The weather", "strict": True, "parameters": WEATHER}}
    messages = [{"role": "user", "content": "Is it warm in Oslo?"}]
    options = dict(model=MODEL, tools=[tool], tool_choice="required", parallel_tool_calls=False, temperature=1, seed=1)
    message = client.chat.completions.create(messages=messages, **options).choices[0].message
    call = message.tool_calls[0]
    assert call.function.name == "weather" and valid(call.function.arguments), message
    chunks = list(client.chat.completions.create(messages=messages, stream=True, **options))
    deltas = [delta for chunk in chunks for delta in (chunk.choices[0].delta.tool_calls or [])]
    assert deltas[0].id and valid("".join(delta.function.arguments or "" for delta in deltas)), chunks
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    result = {"role": "tool", "tool_call_id": call.id, "content": "12 degrees"}
    after = client.chat.completions.create(model=MODEL, messages=[*messages, message, result], tools=[tool], tool_choice="none", max_tokens=8)
    assert after.choices[0].message.content, after
    pattern = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[a-c]{4}"}}
    custom = {"type": "custom", "custom": {"name": "code", "format": pattern}}
    choice = {"type": "custom", "custom": {"name": "code"}}
    call = client.chat.completions.create(model=MODEL, messages=messages, tools=[custom], tool_choice=choice).choices[0].message.tool_calls[0]
    assert re.fullmatch("[a-c]{4}", call.custom.input), call


def response_tools(client):
    tool = {"type": "function", "name": "weather", "description": "The weather", "strict": True, "parameters": WEATHER}
    options = dict(model=MODEL, input="Is it warm in Oslo?", tools=[tool], tool_choice="required", parallel_tool_calls=False)
    answer = client.responses.create(**options)
    assert answer.output[-1].type == "function_call" and valid(answer.output[-1].arguments), answer
    events = list(client.responses.create(stream=True, **options))
    done = [event for event in events if event.type == "response.function_call_arguments.done"]
    assert len(done) == 1 and valid(done[0].arguments), events


def errors(client):
    def refused(kind, **request):
        try:
            client.chat.completions.create(**{"model": MODEL, "messages": QUESTION, "max_tokens": 4, **request})
        except kind as error:
            return error
        raise AssertionError(f"{request} was not refused")

    assert refused(openai.NotFoundError, model="gpt-5").code == "model_not_found"
    assert refused(openai.BadRequestError, temperature=9).param == "temperature"
    assert refused(openai.BadRequestError, extra_body={"regex": "a", "ebnf": "b"}).code == "conflicting_parameters"
    error = refused(openai.BadRequestError, extra_body={"json_schema": {"properties": {"a": {"minimum": "x"}}}})
    assert "/properties/a/minimum" in error.message, error


def frameworks(_client):
    for name, test in FRAMEWORKS.items():
        if importlib.util.find_spec(name) is None:
            print(f"--  {name} is not installed, and was not tried", flush=True)
            continue
        test(URL, MODEL)
        print(f"ok  {name}", flush=True)


def documented(client):
    count = 0
    for page in ("docs/start/server.md", "docs/server.md"):
        for number, code in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S), 1):
            if "http://127.0.0.1:8000" not in code:
                continue
            code = code.replace("http://127.0.0.1:8000", URL).replace('"smollm2"', json.dumps(MODEL))
            exec(compile(code, f"{page}, example {number}", "exec"), {"__name__": "example"})
            count += 1
    assert count >= 4, count


TESTS = [models, chat, chat_stream, chat_parse, chat_parse_stream, constraints, logprobs, completions, responses, responses_stream, tools, response_tools, errors, documented, frameworks]


def start(program):
    command = [program, "serve", "--port", "0", "--log", "off"]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    found = re.search(r"http://\S+", line)
    if not found:
        sys.exit(f"the server did not start: {line!r}")
    return server, found.group()


def main():
    global URL, MODEL
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--url", default="http://127.0.0.1:8000")
    arguments.add_argument("--start", action="store_true", help="start a server for the tests")
    arguments.add_argument("--program", default=TARGET / "serve/maskwright", help="which program to start")
    arguments.add_argument("tests", nargs="*", help="only these")
    arguments = arguments.parse_args()
    server, URL = start(arguments.program) if arguments.start else (None, arguments.url)
    try:
        client = OpenAI(base_url=f"{URL}/v1", api_key="none", max_retries=0, timeout=300, _strict_response_validation=True)
        MODEL = client.models.list().data[0].id
        chosen = [test for test in TESTS if not arguments.tests or test.__name__ in arguments.tests]
        for test in chosen:
            test(client)
            print(f"ok  {test.__name__}", flush=True)
    finally:
        if server:
            server.terminate()
            assert server.wait(timeout=60) == 0, "the server did not end well"


if __name__ == "__main__":
    main()
