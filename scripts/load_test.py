"""Puts load on a live server, and says what it measured. Nothing but Python is needed; with the package jsonschema
schemas are checked by it, without it by their keys.

    python scripts/load_test.py answers --count 10000       constrained answers at temperature 1.5: is every one right?
    python scripts/load_test.py speed --start PROGRAM       tokens a second, constrained against free, with the mask alone and with jump-forward
    python scripts/load_test.py compiles                    a stream beside constraints that take long to compile: how much later do its tokens come?
    python scripts/load_test.py schemas --count 300         different schemas at once: who waits for whose compile?
    python scripts/load_test.py first                       the first byte of an answer to a cold schema of 100 KB
    python scripts/load_test.py open --connections 1000     slow readers and dropped connections: who is lost, what leaks?
    python scripts/load_test.py gaps                        a stream beside a hostile constraint: how long does it stand still?
    python scripts/load_test.py masks                       what single constraints cost: masks in microseconds, tokens a second against free
    python scripts/load_test.py prompts                     a prompt of 1,500 tokens beside a stream: how long do both wait?
    python scripts/load_test.py hostile --count 5000        everything wrong that can be sent, in every field of every endpoint, so many at random: does each refusal name its field?
    python scripts/load_test.py peer --peer LLAMA_SERVER    tokens a second beside llama.cpp's server with the same file, free and with a schema

The server is at --url (http://127.0.0.1:8000), or `--start PROGRAM` starts one for the time of the test; `--pid` names its process, whose memory is then watched. Exit code 1
says that something was lost, wrong or stuck; speed never does.
"""

import argparse
import asyncio
import glob
import json
import os
import random
import re
import socket
import subprocess
import sys
import time
import urllib.parse

try:
    import jsonschema
except ImportError:
    jsonschema = None

# ----- A client -----


class Failed(Exception):
    """What a server answered that should not have."""


class Server:
    def __init__(self, url, pid):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.pid = parts.hostname, parts.port or 80, pid

    async def send(self, path, body):
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=1 << 20)
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        writer.write(head.encode() + data)
        await writer.drain()
        return reader, writer

    async def ask(self, path, body):
        """The answer as JSON; waits and asks again while the server says that it is busy."""
        while True:
            reader, writer = await self.send(path, body)
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                text = await reader.read()
            finally:
                writer.close()
            status = int(head.split(" ", 2)[1])
            if status == 429:
                await asyncio.sleep(0.2 + random.random())
                continue
            if status != 200:
                raise Failed(f"{status}: {text[:300]!r}")
            return json.loads(dechunked(head, text))

    async def get(self, path):
        """The text of a page."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        text = await reader.read()
        writer.close()
        return dechunked(head, text).decode()

    def processor_seconds(self):
        """Seconds that the processors have worked for the process."""
        if self.pid is None:
            return float("nan")
        with open(f"/proc/{self.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self):
        """Megabytes that the process holds."""
        if self.pid is None:
            return float("nan")
        with open(f"/proc/{self.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) / 1024


def dechunked(head, text):
    if "transfer-encoding: chunked" not in head.lower():
        return text
    out, at = b"", 0
    while True:
        end = text.index(b"\r\n", at)
        size = int(text[at:end], 16)
        if size == 0:
            return out
        out += text[end + 2 : end + 2 + size]
        at = end + 4 + size


def chat(text, **more):
    return {"messages": [{"role": "user", "content": text}], **more}


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


# ----- What is asked -----

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "email": {"type": "string", "format": "email", "maxLength": 30},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "maxItems": 3},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
        "lines": {
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "items": {
                "type": "object",
                "properties": {"sku": {"enum": ["apple", "pear"]}, "count": {"type": "integer", "minimum": 1, "maximum": 9}},
                "required": ["sku", "count"],
                "additionalProperties": False,
            },
        },
        "paid": {"type": "boolean"},
    },
    "required": ["id", "lines", "paid"],
    "additionalProperties": False,
}
POINT = {"type": "array", "items": {"type": "number", "minimum": -1, "maximum": 1, "multipleOf": 0.25}, "minItems": 2, "maxItems": 2}
WHICH = {"oneOf": [{"type": "null"}, {"const": {"a": [1, 2]}}, {"type": "string", "format": "date"}]}


def right_json(schema):
    def check(text):
        value = json.loads(text)
        if jsonschema is not None:
            jsonschema.validate(value, schema, format_checker=jsonschema.FormatChecker())
        elif "required" in schema and not set(schema["required"]) <= set(value):
            raise Failed(f"a key is missing in {text}")

    return check


def right_regex(pattern):
    def check(text):
        if not re.fullmatch(pattern, text):
            raise Failed(f"{pattern} does not match {text!r}")

    return check


def with_schema(schema):
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": False, "schema": schema}}}


# The small set: what is asked for, and whether an answer is right.
CASES = [
    ({**with_schema(PERSON), "maskwright": {"whitespace": "compact"}}, right_json(PERSON)),
    (with_schema(ORDER), right_json(ORDER)),
    ({**with_schema(POINT), "maskwright": {"whitespace": "spaced"}}, right_json(POINT)),
    (with_schema(WHICH), right_json(WHICH)),
    ({"structured_outputs": {"regex": "[0-9]{4}-(0[1-9]|1[0-2])"}}, right_regex("[0-9]{4}-(0[1-9]|1[0-2])")),
    ({"structured_outputs": {"choice": ["yes", "no", "maybe"]}}, right_regex("yes|no|maybe")),
    ({"grammar": 'root ::= "(" [a-c]{1,3} ("+" [0-9])? ")"'}, right_regex(r"\([a-c]{1,3}(\+[0-9])?\)")),
]


# ----- The loads -----


async def answers(server, args):
    """Every constrained answer that ends with `stop` is right."""
    counts = {"stop": 0, "length": 0}
    tokens, begin = 0, time.monotonic()

    async def some(numbers):
        nonlocal tokens
        for number in numbers:
            fields, check = CASES[number % len(CASES)]
            own = {**fields.get("maskwright", {}), "finish": number % 2 == 0}
            body = chat("Answer.", temperature=1.5, seed=number, max_tokens=160, **{**fields, "maskwright": own})
            answer = await server.ask("/v1/chat/completions", body)
            choice = answer["choices"][0]
            counts[choice["finish_reason"]] += 1
            tokens += answer["usage"]["completion_tokens"]
            if own["finish"] and choice["finish_reason"] != "stop":
                raise Failed(f"an answer that had to finish did not: {choice}")
            if choice["finish_reason"] == "stop":
                try:
                    check(choice["message"]["content"])
                except Exception as error:
                    raise Failed(f"case {number % len(CASES)}, seed {number}: {choice['message']['content']!r}: {error}") from error
            done = sum(counts.values())
            if done % 500 == 0:
                print(f"  {done} answers, {time.monotonic() - begin:.0f} s", flush=True)

    await asyncio.gather(*(some(range(first, args.count, args.parallel)) for first in range(args.parallel)))
    time_taken = time.monotonic() - begin
    print(f"{counts['stop']} answers ended with stop and are right, {counts['length']} were cut at max_tokens (allowed where finish is not asked for)")
    print(f"{tokens} tokens in {time_taken:.1f} s: {tokens / time_taken:.1f} tokens a second")


async def speed(server, args):
    """Tokens a second, free and constrained, with the mask alone and with jump-forward, in turn. Of each round the quotient counts, so that what else the machine does cancels out; then the
    median of the quotients. The processor's time for a token is told as well: it does not depend on what else runs."""
    # The same number of tokens for all: a long list that never ends by itself, and text that may not end.
    limited = {"max_tokens": args.tokens, "maskwright": {"tokens": True, "finish": False, "whitespace": "compact"}}
    constrained = {**limited, **with_schema({"type": "array", "items": PERSON, "minItems": 1000})}
    ways = {"free": (server, {**limited, "logit_bias": {str(token): -100 for token in args.end}})}
    if args.masks_alone is not None:
        ways["mask alone"] = (args.masks_alone, constrained)
    ways["jump-forward"] = (server, constrained)

    async def batch(size, way, seed):
        """Tokens a second while answers are written, the processor's time for a token in ms, and the share of forced tokens."""
        where, fields = ways[way]
        before = where.processor_seconds()
        bodies = [chat("Describe some people.", temperature=1, seed=seed * 100 + number, **fields) for number in range(size)]
        found = await asyncio.gather(*(where.ask("/v1/chat/completions", body) for body in bodies))
        tokens = sum(one["usage"]["completion_tokens"] for one in found)
        told = [one["maskwright"] for one in found]
        decode = sum(one["decode_micros"] for one in told) / 1e6 / size
        return tokens / decode, 1000 * (where.processor_seconds() - before) / tokens, sum(one["forced_tokens"] for one in told) / tokens

    for way in ways:
        await batch(1, way, 0)
    print(f"{'':22} {'tokens/s':>8}   {'constrained : free':>26}   {'processor time':>14}   forced")
    print(f"{'':22} {'p50':>8}   {'p10':>8} {'p50':>8} {'p90':>8}   {': free, p50':>14}")
    for size in (1, 16):
        seen = {way: [] for way in ways}
        for number in range(1, args.rounds + 1):
            # Nobody is always the first.
            for at in range(len(ways)):
                way = list(ways)[(number + at) % len(ways)]
                seen[way].append(await batch(size, way, number))
        for way, measured in seen.items():
            rates = [one[0] / free[0] for one, free in zip(measured, seen["free"])]
            costs = [one[1] / free[1] for one, free in zip(measured, seen["free"])]
            shown = " ".join(f"{percentile(rates, share):8.3f}" for share in (0.1, 0.5, 0.9))
            print(f"{size:2} × {way:17} {percentile([one[0] for one in measured], 0.5):8.1f}   {shown}   {percentile(costs, 0.5):14.3f}   {100 * percentile([one[2] for one in measured], 0.5):4.0f} %", flush=True)


def numbered(number, width):
    names = [f"field_{number}_{index}" for index in range(width)]
    kinds = [{"type": "integer", "minimum": number}, {"type": "string", "maxLength": 5 + number}, {"enum": [f"v{number}", "w"]}]
    return {
        "type": "object",
        "properties": {name: kinds[index % 3] for index, name in enumerate(names)},
        "required": names[:3],
        "additionalProperties": False,
    }


async def schemas(server, args):
    """Different schemas at once: how long each compile waited for the compiles of others, and how long all of it took, in the crowd and alone."""
    seed = random.randrange(1 << 30)

    async def one(number):
        begin = time.monotonic()
        answer = await server.ask("/v1/chat/completions", chat("x", max_tokens=1, maskwright={"tokens": True, "finish": False}, **with_schema(numbered(number, 12))))
        told = answer["maskwright"]
        return told["compile_wait_micros"] / 1000, told["compile_micros"] / 1000, 1000 * (time.monotonic() - begin)

    alone = [await one(seed + number) for number in range(20)]
    crowd = await asyncio.gather(*(one(seed + 1000 + number) for number in range(args.count)))
    show = lambda values: f"p50 {percentile(values, 0.5):6.2f}, p90 {percentile(values, 0.9):6.2f}, p99 {percentile(values, 0.99):6.2f}, max {max(values):6.2f} ms"
    for name, some in (("one after the other", alone), (f"{args.count} at once", crowd)):
        for what, values in zip(("the wait for a worker", "the wait and the compile", "the answer, one token"), zip(*some)):
            print(f"{name:20} {what:25} {show(values)}")


async def first(server, args):
    """The first streamed byte of an answer, with a schema that nobody has seen and without one."""
    width = 1
    while len(json.dumps(numbered(10**9, width))) < 100_000:
        width += 50

    async def once(fields):
        begin = time.monotonic()
        reader, writer = await server.send("/v1/chat/completions", chat("x", max_tokens=1, stream=True, maskwright={"finish": False}, **fields))
        await reader.readuntil(b"\r\n\r\n")
        await reader.readuntil(b"data: ")
        seconds = time.monotonic() - begin
        await reader.read()
        writer.close()
        return 1000 * seconds

    free, cold = [], []
    for _ in range(args.rounds):
        free.append(await once({}))
        cold.append(await once(with_schema(numbered(random.randrange(1 << 40), width))))
    print(f"first byte without a constraint p50 {percentile(free, 0.5):.1f} ms, with a cold schema of 100 KB p50 {percentile(cold, 0.5):.1f}, max {max(cold):.1f} ms: "
          f"{percentile(cold, 0.5) - percentile(free, 0.5):.1f} ms more")


async def opened(server, args):
    """Many connections: some read slowly, some go away in the middle. Nobody else may notice."""
    failures, memory = [], []
    for round_number in range(3):
        ended, dropped, deadline = 0, 0, time.monotonic() + args.seconds

        async def visitor(number):
            nonlocal ended, dropped
            chance = random.Random(number)
            await asyncio.sleep(chance.random() * args.seconds / 2)
            while time.monotonic() < deadline:
                fields, _ = CASES[number % len(CASES)]
                # So few tokens complete few answers.
                own = {**fields.get("maskwright", {}), "finish": False}
                body = chat("x", max_tokens=4 + chance.randrange(8), stream=True, temperature=1, **{**fields, "maskwright": own})
                try:
                    reader, writer = await server.send("/v1/chat/completions", body)
                    text = b""
                    goes = chance.random() < 0.3
                    while True:
                        part = await asyncio.wait_for(reader.read(64), timeout=args.seconds * 4)
                        text += part
                        if not part or (goes and len(text) > 100):
                            break
                        await asyncio.sleep(chance.random() * 0.05)
                    writer.close()
                    if goes:
                        dropped += 1
                    elif b" 200 " in text[:20] and b"[DONE]" in text:
                        ended += 1
                    elif b" 429 " in text[:20]:
                        await asyncio.sleep(0.5 + chance.random())
                    else:
                        failures.append(text[:200])
                except Exception as error:
                    failures.append(repr(error))

        await asyncio.gather(*(visitor(number) for number in range(args.connections)))
        reader, writer = await server.send("/v1/chat/completions", chat("x", max_tokens=2))
        await asyncio.wait_for(reader.read(), timeout=60)
        writer.close()
        # What was freed goes back to the system after a while.
        await asyncio.sleep(5)
        memory.append(server.memory())
        print(f"round {round_number + 1}: {ended} streams were read to the end, {dropped} dropped, {len(failures)} lost; memory {memory[-1]:.1f} MB", flush=True)
    if failures:
        raise Failed(f"{len(failures)} requests were lost, such as {failures[0]!r}")
    # The first round warms up. Without a process to look at, nothing is known.
    if any(abs(later / memory[0] - 1) > 0.05 for later in memory[1:]):
        raise Failed(f"memory is not within 5 % of {memory[0]:.1f} MB: {', '.join(f'{one:.1f}' for one in memory[1:])} MB")


# Constraints with many readings: nested counts, ambiguous grammars.
HOSTILE = {
    "regex ([A-Za-z]{1,20} ?){1,50}": {"structured_outputs": {"regex": "([A-Za-z]{1,20} ?){1,50}"}},
    r"regex (\w+\s?){1,10}": {"structured_outputs": {"regex": r"(\w+\s?){1,10}"}},
    r"regex (\w+\s?){5,50}": {"structured_outputs": {"regex": r"(\w+\s?){5,50}"}},
    "regex ([^,]{1,30},?){1,10}": {"structured_outputs": {"regex": "([^,]{1,30},?){1,10}"}},
    r"regex (.{0,80}\n?){1,20}": {"structured_outputs": {"regex": r"(.{0,80}\n?){1,20}"}},
    r"regex (.{1,100}\n?){1,20}": {"structured_outputs": {"regex": r"(.{1,100}\n?){1,20}"}},
    "Lark expressions, %ignore": {
        "structured_outputs": {
            "grammar": 'start: expr\nexpr: expr "+" expr | expr "*" expr | expr expr | "(" expr ")" | WORD | NUMBER\n'
            "WORD: /[a-z]+/\nNUMBER: /[0-9]+/\nWS: /[ \\t\\n]+/\n%ignore WS\n"
        }
    },
    'EBNF root "+" root': {"structured_outputs": {"grammar": 'root ::= root "+" root | [0-9]+'}},
    "EBNF root root": {"structured_outputs": {"grammar": 'root ::= root root | "a"'}},
    "EBNF r in r in r": {"structured_outputs": {"grammar": 'root ::= r\nr ::= ([ab] ("ba" | r) (r | "b")){0,4}'}},
}


def writer(server, args):
    """Somebody who has a long answer written, and tells the times between its tokens in milliseconds."""

    async def stream():
        bias = {str(token): -100 for token in args.end}
        body = chat("Tell a long story.", stream=True, temperature=1, seed=1, max_tokens=args.tokens, logit_bias=bias)
        reader, connection = await server.send("/v1/chat/completions", body)
        times, rest = [], b""
        await reader.readuntil(b"\r\n\r\n")
        while part := await reader.read(1 << 16):
            now = time.monotonic()
            rest += part
            times += [now] * rest.count(b'"delta"')
            rest = rest[rest.rfind(b"\n") + 1 :]
        connection.close()
        # The first chunk has no token, and some tokens no text.
        if len(times) < args.tokens // 2:
            raise Failed(f"a stream ended after {len(times)} chunks: {rest[:300]!r}")
        return [1000 * (after - before) for before, after in zip(times[1:], times[2:])]

    return stream


async def gaps(server, args):
    """The longest time between two tokens of a stream: alone, beside a free answer, and beside each of the hostile constraints."""
    bias = {"logit_bias": {str(token): -100 for token in args.end}}
    stream = writer(server, args)

    async def others(fields, ends):
        """One answer after the other, until it is enough. What became of them."""
        seed = 0
        while True:
            seed += 1
            body = chat("Tell a long story.", temperature=1.5, seed=seed, max_tokens=4 * args.tokens, **fields)
            try:
                answer = await server.ask("/v1/chat/completions", body)
                end = f"{answer['usage']['completion_tokens']} tokens"
            except Failed as failure:
                code = re.search(r'"code":\s*"(\w+)"', str(failure))
                end = code[1] if code else str(failure)
                if end != "constraint_limit":
                    raise
                # A client that asks for the same again and again is another test.
                await asyncio.sleep(0.05)
            ends.append(end)

    async def measure(fields):
        """The gaps of some rounds, the longest one of each, and what became of the others."""
        found, longest, ends = [], [], []
        for _ in range(args.rounds):
            beside = asyncio.create_task(others(fields, ends)) if fields is not None else None
            try:
                round_gaps = await stream()
            finally:
                if beside is not None:
                    beside.cancel()
                    result = (await asyncio.gather(beside, return_exceptions=True))[0]
            if beside is not None and isinstance(result, Failed):
                raise result
            found += round_gaps
            longest.append(max(round_gaps))
        return found, longest, ends

    async def waited():
        """Seconds that the model's thread has waited for constraints, and steps of the model."""
        text = await server.get("/metrics")
        numbers = [re.search(rf"^maskwright_{name} (\S+)$", text, re.MULTILINE) for name in ("mask_wait_seconds_total", "model_steps_total")]
        return [float(number[1]) for number in numbers]

    await measure(None)
    # Alone before each of them, and the longest gap as the median of the rounds, because a machine has other things to do now and then.
    print(f"{'beside':32} {'alone: p50':>10} {'longest':>8}   {'p50':>6} {'p99':>7} {'longest':>8} {'more':>8}   {'wait a step':>11}   what became of the others")
    for name, fields in {"a free answer": bias, **HOSTILE}.items():
        alone, alone_longest, _ = await measure(None)
        before = await waited()
        found, longest, ends = await measure(fields)
        wait, steps = (after - first for first, after in zip(before, await waited()))
        counted = ", ".join(f"{ends.count(end)} × {end}" for end in sorted(set(ends))[:4]) or "none ended in time"
        usual, now = percentile(alone_longest, 0.5), percentile(longest, 0.5)
        print(f"{name:32} {percentile(alone, 0.5):10.1f} {usual:8.1f}   {percentile(found, 0.5):6.1f} {percentile(found, 0.99):7.1f} {now:8.1f} {now - usual:+8.1f} ms "
              f"{1000 * wait / max(steps, 1):8.3f} ms   {counted}", flush=True)


def slow_to_compile(number):
    """Constraints that are known to take long, or to be refused late; other ones for each number, so that none is known already."""
    names = [f"n{number}_{index}" for index in range(10_000)]
    open_objects = [{"properties": {name: {"type": "integer"}, "kind": {"pattern": f"^{name}"}}} for name in names[:50]]
    schema = lambda body: {"type": "json_schema", "json_schema": {"name": "x", "schema": body}}
    regex = lambda pattern: {"type": "regex", "pattern": pattern}
    return {
        "a small pattern": regex(f"{number}[a-z]+"),
        "12 unanchored patternProperties": schema({"type": "object", "patternProperties": {f"a{number}.*{chr(98 + index)}": {"type": "integer"} for index in range(12)}}),
        "10,000 properties": schema({"type": "object", "properties": {name: {"type": "integer"} for name in names}}),
        "10,000 required names": schema({"type": "object", "required": names}),
        "10 times contains": schema({"type": "array", "allOf": [{"contains": {"const": name}} for name in names[:10]]}),
        "oneOf 50 open objects": schema({"oneOf": open_objects}),
        "20,000 rules in a chain": {"type": "ebnf", "grammar": f'root ::= r0\n' + "\n".join(f"r{i} ::= r{i + 1}" for i in range(20_000)) + f'\nr20000 ::= "{number}"'},
        "10 look-aheads": regex("".join(f"(?=.*{number}{chr(97 + index)})" for index in range(10)) + ".*"),
        "a{0,1000000} before b{0,1000000}": regex(f"{number}a{{0,1000000}}b{{0,1000000}}"),
        "pattern of many states": regex(f"{number}.*[ab].{{14}}c"),
    }


async def compiles(server, args):
    """The time between two tokens of a stream, alone and while constraints are compiled that take long, in turn."""
    stream = writer(server, args)
    first = random.randrange(1 << 30)

    async def others(pick, ends, times):
        number = first
        while True:
            number += 1
            all_of_them = slow_to_compile(number)
            for name in pick or all_of_them:
                begin = time.monotonic()
                body = chat("Tell a long story.", max_tokens=1, response_format=all_of_them[name], maskwright={"finish": False})
                try:
                    await server.ask("/v1/chat/completions", body)
                    ends.append("compiled")
                except Failed as failure:
                    if not str(failure).startswith("400: "):
                        raise
                    ends.append("refused")
                times.append(1000 * (time.monotonic() - begin))
                # A client that asks again and again is another test.
                await asyncio.sleep(0.05)

    print(f"{'':34} {'alone, ms':>31}   {'beside it, ms':>31}   {'more, ms':>31}")
    print(f"{'beside':34}" + 3 * f"{'p50':>8} {'p90':>7} {'p99':>7} {'longest':>7}  " + "  compiles")
    await stream()
    # What the machine does besides can be seen where there is nobody beside the stream.
    kinds = {"nobody": ([], 0)} | {name: ([name], 1) for name in slow_to_compile(0)} | {"all of them, 4 clients": (None, 4)}
    for name, (pick, clients) in kinds.items():
        ends, times, alone, beside = [], [], [], []
        for _ in range(args.rounds):
            alone += await stream()
            working = [asyncio.create_task(others(pick, ends, times)) for _ in range(clients)]
            try:
                beside += await stream()
            finally:
                for one in working:
                    one.cancel()
                results = await asyncio.gather(*working, return_exceptions=True)
            failures = [result for result in results if isinstance(result, Failed)]
            if failures:
                raise failures[0]
        shares = (0.5, 0.9, 0.99, 1)
        usual, now = [percentile(alone, share) for share in shares], [percentile(beside, share) for share in shares]
        counted = ", ".join(f"{ends.count(end)} {end}" for end in sorted(set(ends))) or "none ended in time"
        show = lambda values, sign="": " ".join(f"{value:{sign}7.1f}" for value in values)
        compiled = f"{counted}, answered in {percentile(times, 0.5):.0f} ms" if times else counted if clients else ""
        print(f"{name:34} {show(usual)}   {show(now)}   {show([b - a for a, b in zip(usual, now)], '+')}   {compiled}", flush=True)


RECIPE = {
    "type": "object",
    "properties": {
        "dish": {"type": "string", "maxLength": 40},
        "minutes": {"type": "integer", "multipleOf": 5, "minimum": 5, "maximum": 180},
        "ingredients": {"type": "array", "minItems": 2, "maxItems": 5, "uniqueItems": True, "items": {"type": "string", "maxLength": 20}},
    },
    "required": ["dish", "minutes", "ingredients"],
    "additionalProperties": False,
}


async def masks(server, args):
    """What single constraints cost, with one client and with eight: masks, and tokens a second beside free answers, alternating. Forced tokens are not counted."""
    kinds = {
        "recipe, uniqueItems": with_schema(RECIPE),
        "json_object": {"response_format": {"type": "json_object"}},
        "person": with_schema(PERSON),
    }
    free = {"logit_bias": {str(token): -100 for token in args.end}}

    async def batch(size, fields, tokens, seed):
        bodies = [
            chat("Give me a simple recipe for pancakes as JSON.", temperature=1, seed=seed * 100 + number, max_tokens=tokens,
                 maskwright={"tokens": True, "finish": False}, **fields)
            for number in range(size)
        ]
        begin = time.monotonic()
        found = await asyncio.gather(*(server.ask("/v1/chat/completions", body) for body in bodies))
        seconds = time.monotonic() - begin
        told = [one["maskwright"] for one in found]
        asked = sum(one["usage"]["completion_tokens"] for one in found) - sum(one["forced_tokens"] for one in told)
        each = [token["mask_micros"] for one in told for token in one["tokens"][0] if token.get("mask_micros") is not None]
        busy = sum(one["decode_micros"] for one in told) / 1e6
        return asked / max(busy, 1e-9), asked / seconds, each

    for name, fields in kinds.items():
        for size in (1, 8):
            ratios, each, cold = [], [], None
            for number in range(args.rounds):
                usual, _, _ = await batch(size, free, args.tokens, number)
                rate, _, micros = await batch(size, fields, args.tokens, number)
                ratios.append(rate / usual)
                each += micros
                cold = cold if cold is not None else max(micros, default=0)
            print(f"{name:20} {size} clients: {percentile(ratios, 0.5):.3f} of free (from {min(ratios):.3f} to {max(ratios):.3f}); masks in µs: "
                  f"mean {sum(each) / max(len(each), 1):.1f}, p50 {percentile(each, 0.5):.1f}, p99 {percentile(each, 0.99):.1f}, max {max(each, default=0):.0f}, the coldest {cold:.0f}", flush=True)


async def peer(server, args):
    """Tokens a second as a client sees them, free and with a schema, of this server and of llama.cpp's, in turn. Of each round the quotients count, as in `speed`."""
    people = {"type": "array", "items": PERSON, "minItems": 1000}
    common = {"max_tokens": args.tokens, "temperature": 1, "top_k": 40, "top_p": 0.95, "min_p": 0.05}
    schema = {"response_format": {"type": "json_schema", "json_schema": {"name": "people", "schema": people}}}
    ours = {"free": {"logit_bias": {str(token): -100 for token in args.end}}, "schema": {**schema, "maskwright": {"finish": False}}}
    theirs = {"free": {"ignore_eos": True}, "schema": schema}
    servers = {"maskwright": (server, ours), "llama.cpp": (args.other, theirs)}
    ways = [(name, what) for what in ("free", "schema") for name in servers]

    async def batch(size, name, what, seed):
        where, fields = servers[name]
        bodies = [chat("Describe some people.", seed=seed * 100 + number, **common, **fields[what]) for number in range(size)]
        begin = time.monotonic()
        found = await asyncio.gather(*(where.ask("/v1/chat/completions", body) for body in bodies))
        seconds = time.monotonic() - begin
        tokens = [one["usage"]["completion_tokens"] for one in found]
        if min(tokens) < args.tokens:
            raise Failed(f"{name}, {what}: an answer has {min(tokens)} of {args.tokens} tokens, so that the rates cannot be compared")
        return sum(tokens) / seconds

    for name, what in ways:
        await batch(1, name, what, 0)
    print(f"{'':30} {'tokens/s':>8}   {'maskwright : llama.cpp':>26}   {'schema : free':>26}")
    print(f"{'':30} {'p50':>8}   {'p10':>8} {'p50':>8} {'p90':>8}   {'p10':>8} {'p50':>8} {'p90':>8}")
    for size in args.sizes:
        seen = {way: [] for way in ways}
        for number in range(1, args.rounds + 1):
            # Nobody is always the first.
            for at in range(len(ways)):
                way = ways[(number + at) % len(ways)]
                seen[way].append(await batch(size, *way, number))
        show = lambda over, under: " ".join(f"{percentile([one / other for one, other in zip(seen[over], seen[under])], share):8.2f}" for share in (0.1, 0.5, 0.9))
        for name, what in ways:
            beside = show((name, what), ("llama.cpp", what)) if name == "maskwright" else f"{'':26}"
            free = show((name, what), (name, "free")) if what == "schema" else ""
            print(f"{size:2} × {name:12} {what:12} {percentile(seen[name, what], 0.5):8.1f}   {beside}   {free}", flush=True)


def deep(opening, closing, depth):
    """JSON that Python would not write, as text."""
    return opening * depth + closing * depth


# Values for a field of a request, as JSON. Some are right for some fields.
WRONG = [
    "null", "true", "false", "0", "-1", "1", "3.5", "-0.0", "1e400", "-1e400", "1e-400", "18446744073709551616", "9" * 400, '""', '"x"', '"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"', '"\u202e\\u200b"',
    '"' + "x" * 100_000 + '"', '"' + "(" * 5_000 + '"', '"(a{1,1000}){1,1000}"', '"[[[[^"', '"root ::= root"', "[]", "[null]", "[[]]", '["a", 1, null, {}]', "[1, -1, 99999999]", "[" + ",".join(["1"] * 20_000) + "]",
    "[" + ",".join(['"a"'] * 20_000) + "]", "{}", '{"": 1}', '{"type": "x"}', '{"type": null}', '{"type": {}}', '{"type": "json_schema"}', '{"type": "json_schema", "json_schema": {"schema": 5}}',
    '{"type": "json_schema", "json_schema": {"schema": {"$ref": "#/$defs/no"}}}', '{"type": "regex", "pattern": "("}', '{"type": "grammar", "grammar": "\\u0000"}', '{"type": "choice", "choices": []}', '{"kind": "lark", "source": "start: start"}',
    '{"role": "user"}', '[{"role": "user", "content": null}]', '[{"role": "\\u0000", "content": 5}]', '[{"role": "tool", "content": "x"}]', '[{"role": "user", "content": [{"type": "text"}]}]', '[{"type": "function", "function": {}}]',
    '[{"type": "function", "function": {"name": "\\u0000", "parameters": []}}]', '{"0": 1e400}', '{"x": 1}', '{"-1": 1}', '{"99999999": 1}', deep("[", "]", 120), deep('{"a":', "}", 100).replace("}", "1}", 1), deep("[", "]", 100_000),
    deep('{"items":', "}", 100_000).replace("}", "1}", 1), '{"json": {"type": "object"}, "regex": "a"}', '{"format": {"type": "regex", "pattern": "["}}', '{"effort": 5}', '{"whitespace": "x"}', '{"finish": 5, "tokens": "x"}',
    '{"tries": -1}', '{"draft": {"max_tokens": 1e400}}', '{"sampling": "exact", "tries": 1e9}', '{"max_new_tokens": -1}', '{"include_usage": "yes"}',
]
# What is no JSON, or no object, or not all of it. The flag says whether it is sent as it is.
BODIES = [
    b"", b"{", b"null", b"[]", b"5", b'"x"', b"\x00", b"\xff\xfe\x00{", b'{"a": \xff}', b'{"messages": "\xed\xa0\x80"}', b"{" * 100_000, b"[" * 1_000_000, b'{"messages": []} trailing', b'{"n": 1, "n": 2}', b"\x1f\x8b\x08",
    b'{"\\ud800": 1}', b'{"messages": NaN}', b'{"messages": Infinity}', b"{'messages': 1}", b'{"a": 0x10}', b" " * 1_000_000, b'{"a": 1,}', "\ufeff{}".encode(),
]
# Requests that are not quite HTTP.
RAW = [
    b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x00" * 64 + b"\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5_000 + b"\r\n", b"GET / HTTP/1.1\r\nHost: " + b"h" * 100_000 + b"\r\n\r\n", b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"GET /%ff%00/..%2f..%2fetc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /static/../../Cargo.toml HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /v1/models/%ff HTTP/1.1\r\nHost: localhost\r\n\r\n", b"DELETE /v1/responses/%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \xff\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
]
# The least that each endpoint is content with.
LEAST = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "x"}], "max_tokens": 2},
    "/v1/completions": {"prompt": "x", "max_tokens": 2},
    "/v1/responses": {"input": "x", "max_output_tokens": 2},
    "/generate": {"text": "x", "sampling_params": {"max_new_tokens": 2}},
    "/completion": {"prompt": "x", "n_predict": 2},
    "/v1/grammar/check": {"constraint": {"type": "regex", "pattern": "a"}},
    "/v1/explain": {"constraint": {"type": "regex", "pattern": "a"}, "text": "a"},
    "/v1/tokenize": {"text": "x"},
    "/tokenize": {"text": "x"},
    "/v1/detokenize": {"tokens": [1]},
    "/detokenize": {"tokens": [1]},
}


async def hostile(server, args):
    """Wrong values in every field of every endpoint, bodies that are no JSON, and bytes that are no HTTP. Every refusal is a 4xx in the API's shape that names the field; nothing takes long, and the server goes on."""
    seen, wrong, slowest, gate = {}, [], (0, ""), asyncio.Semaphore(args.parallel)

    async def answered(data, what):
        nonlocal slowest
        async with gate:
            begin = time.monotonic()
            try:
                reader, connection = await asyncio.open_connection(server.host, server.port, limit=1 << 22)
                try:
                    connection.write(data)
                    await connection.drain()
                    # Whoever does not ask for the end of the connection may stay.
                    text, until = b"", 1 if b"close" not in data[:200] else 300
                    while part := await asyncio.wait_for(reader.read(1 << 20), timeout=until if text else 300):
                        text += part
                except asyncio.TimeoutError:
                    if not text:
                        raise
                except (ConnectionResetError, BrokenPipeError):
                    # It was answered before all of it was read, and the answer is lost to this side.
                    text = b""
                finally:
                    connection.close()
            except asyncio.TimeoutError:
                wrong.append(f"{what}: no answer within five minutes")
                return None, ""
            slowest = max(slowest, (time.monotonic() - begin, what))
        head, _, body = text.partition(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1]) if head.startswith(b"HTTP/1.1 ") else None
        seen[status] = seen.get(status, 0) + 1
        if status is not None and status >= 500:
            wrong.append(f"{what}: {status} {body[:300]!r}")
        return status, body if b"chunked" not in head.lower() else dechunked(head.decode("latin-1"), body)

    async def post(path, data, what, names=None):
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        status, body = await answered(head.encode() + data, what)
        if status is None or status < 400 or status == 429:
            return
        try:
            error = json.loads(body)["error"]
            told = error["param"], error["code"], error["message"]
        except (ValueError, KeyError, TypeError):
            wrong.append(f"{what}: {status} in another shape: {body[:200]!r}")
            return
        # A field that does not go with another one may be told as the other's fault.
        if names is not None and told[0] is None and not told[1].startswith(("invalid_json", "duplicate_key")):
            wrong.append(f"{what}: {status} names no field: {told}")

    document = json.loads(await server.get("/openapi.json"))
    work = []
    for path, kinds in document["paths"].items():
        if "post" not in kinds:
            continue
        schema = kinds["post"]["requestBody"]["content"]["application/json"]["schema"]
        places = [((), schema)] + [((name,), inner) for name, inner in schema["properties"].items() if "properties" in inner]
        for under, inner in places:
            for name in [*inner["properties"], "no_such_field", ""]:
                for value in WRONG:
                    body = json.loads(json.dumps(LEAST[path]))
                    at = body
                    for step in under:
                        at = at.setdefault(step, {})
                    at[name] = "@here@"
                    data = json.dumps(body).replace('"@here@"', value).encode("utf-8", "surrogatepass")
                    where = ".".join([*under, name])
                    work.append((post, path, data, f"{path} {where} = {value[:60]}", where))
        work += [(post, path, data, f"{path} {data[:40]!r}") for data in BODIES]
    work += [(answered, data, f"{data[:60]!r}") for data in RAW]
    random.shuffle(work)
    work = work[: args.count]
    begin = time.monotonic()
    for first in range(0, len(work), 1_000):
        await asyncio.gather(*(send(*what) for send, *what in work[first : first + 1_000]))
        print(f"  {min(first + 1_000, len(work))} of {len(work)}, {time.monotonic() - begin:.0f} s", flush=True)
    told = ", ".join(f"{count} × {status or 'closed'}" for status, count in sorted(seen.items(), key=lambda one: one[0] or 0))
    print(f"{len(work)} requests: {told}; the slowest answer took {slowest[0]:.1f} s: {slowest[1]}")
    await server.ask("/v1/chat/completions", chat("x", max_tokens=2))
    if wrong:
        raise Failed(f"{len(wrong)} answers are wrong, such as\n  " + "\n  ".join(wrong[:20]))


async def prompts(server, args):
    """A long prompt, alone and beside a stream: how long it is read, and the longest wait between two tokens of the stream."""
    going = {"logit_bias": {str(token): -100 for token in args.end}}

    async def stream(tokens, times):
        reader, writer = await server.send("/v1/chat/completions", chat("Tell a long story.", stream=True, temperature=1, max_tokens=tokens, **going))
        await reader.readuntil(b"\r\n\r\n")
        while part := await reader.read(1 << 16):
            times += [time.monotonic()] * part.count(b'"delta"')
        writer.close()

    async def read(number):
        """Seconds until the first token behind a prompt that nobody has read before."""
        words = " ".join(f"{number}{word}" for word in random.Random(number).choices(["apple", "river", "stone", "cloud", "tree"], k=args.words))
        begin = time.monotonic()
        answer = await server.ask("/v1/chat/completions", chat(words, max_tokens=1))
        return time.monotonic() - begin, answer["usage"]["prompt_tokens"]

    first = random.randrange(100, 900)
    for number in range(args.rounds):
        alone, tokens = await read(first + 2 * number)
        times = []
        writing = asyncio.create_task(stream(4000, times))
        await asyncio.sleep(2)
        known = len(times)
        quiet = max((after - before for before, after in zip(times[2:], times[3:])), default=float("nan"))
        beside, _ = await read(first + 2 * number + 1)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        during = times[max(known - 1, 0) :]
        longest = max((after - before for before, after in zip(during, during[1:])), default=float("nan"))
        print(f"a prompt of {tokens} tokens: read in {alone:.2f} s alone, in {beside:.2f} s beside a stream; longest wait of the stream {1000 * longest:.0f} ms, {1000 * quiet:.0f} ms before; "
              f"{len(during)} tokens of it meanwhile", flush=True)
        await asyncio.sleep(1)


def start(program, *flags):
    """A server on a free port, as a process."""
    process = subprocess.Popen([program, "serve", "--port", "0", "--log", "off", *flags], stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    found = re.search(r"http://\S+", line)
    if not found:
        sys.exit(f"the server did not start: {line!r}")
    return process, Server(found[0], process.pid)


def start_peer(program, model, parallel, threads):
    """llama.cpp's server on a free port, as a process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = ["--model", model, "--port", str(port), "--threads", str(threads), "--parallel", str(parallel), "--ctx-size", str(2048 * parallel)]
    process = subprocess.Popen([program, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = Server(f"http://127.0.0.1:{port}", process.pid)
    for _ in range(600):
        try:
            if '"ok"' in asyncio.run(server.get("/health")):
                return process, server
        except OSError:
            pass
        if process.poll() is not None:
            break
        time.sleep(0.1)
    process.kill()
    sys.exit(f"{program} did not start")


LOADS = {
    "answers": answers,
    "speed": speed,
    "schemas": schemas,
    "first": first,
    "open": opened,
    "gaps": gaps,
    "compiles": compiles,
    "masks": masks,
    "prompts": prompts,
    "hostile": hostile,
    "peer": peer,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("load", choices=list(LOADS))
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--start", metavar="PROGRAM", help="start this program as a server, and stop it in the end")
    parser.add_argument("--flag", action="append", default=[], help="a flag for it, as in --flag=--runtime=llama-cpp")
    parser.add_argument("--pid", type=int, help="the server's process")
    parser.add_argument("--count", type=int, default=300, help="answers or schemas")
    parser.add_argument("--parallel", type=int, default=16, help="answers at the same time")
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60, help="of a round of `open`")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--words", type=int, default=400, help="of a prompt of `prompts`, about four tokens each")
    parser.add_argument("--tokens", type=int, default=48, help="of an answer of `speed`, of a stream of `gaps` and `compiles`")
    parser.add_argument("--end", type=int, nargs="*", default=[0, 2], help="end tokens of the model, for `speed`, `gaps` and `compiles`")
    parser.add_argument("--peer", metavar="PROGRAM", help="llama.cpp's server, for `peer`")
    parser.add_argument("--model", help="the GGUF file for both, for `peer`; target/assets/smollm2 has one")
    parser.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 1) - 1), help="of each server of `peer`")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1, 4], help="how many clients of `peer` ask at the same time")
    args = parser.parse_args()
    server, processes, args.masks_alone = Server(args.url, args.pid), [], None
    if args.load == "peer":
        models = [args.model] if args.model else glob.glob("target/assets/smollm2/*.gguf")
        if not args.peer or not args.start or not models:
            parser.error("`peer` needs --start, --peer and a model")
        args.flag += ["--model", models[0], "--threads", str(args.threads)]
    try:
        if args.start:
            process, server = start(args.start, *args.flag)
            processes.append(process)
        if args.load == "peer":
            process, args.other = start_peer(args.peer, os.path.abspath(models[0]), max(args.sizes), args.threads)
            processes.append(process)
        if args.start and args.load == "speed":
            process, args.masks_alone = start(args.start, "--no-jump-forward", *args.flag)
            processes.append(process)
        asyncio.run(LOADS[args.load](server, args))
    except Failed as failure:
        sys.exit(str(failure))
    finally:
        for process in processes:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
