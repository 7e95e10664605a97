#!/usr/bin/env python3
"""What constraints do to the answers of a small model: tasks with known answers, answered freely, under a mask, by exact draws, and behind a draft.

    maskwright serve --port 8000 &
    python3 bench/quality/tasks.py --url http://127.0.0.1:8000 --count 40 > table.md

Tasks are made by a seed, so that everybody has the same. Before the question stand a few others with their right answers. An answer is right if it has the right value in every field; of a free
answer the first JSON object in it counts. Only the standard library is needed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import itertools
import json
import math
import random
import sys
import time
import urllib.error
import urllib.request

NAMES = ["Maria Lopez", "John Smith", "Aiko Tanaka", "Omar Haddad", "Eva Novak", "Liam Byrne", "Nina Berg", "Carlos Diaz"]
CITIES = ["Oslo", "Paris", "Lima", "Cairo", "Dublin", "Tokyo", "Madrid", "Vienna"]
JOBS = ["baker", "pilot", "nurse", "teacher", "painter", "lawyer"]
GOOD = ["I loved every minute of it.", "What a wonderful film!", "The best meal I have had in years.", "Brilliant acting, and a moving story.",
        "I would go there again at once.", "The staff were kind and helpful.", "It works perfectly, and it was cheap.", "A great book from start to end."]
BAD = ["I hated every minute of it.", "What a terrible film.", "The worst meal I have had in years.", "Wooden acting, and a boring story.",
       "I would never go there again.", "The staff were rude and slow.", "It broke on the first day, and it was expensive.", "An awful book from start to end."]


def fields(**properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def arithmetic(chance):
    a, b = chance.randint(2, 9), chance.randint(2, 9)
    question, thought, value, unit = chance.choice([
        (f"A cyclist rides {a} km every day. How far does she ride in {b} days?", f"{a} * {b} = {a * b}", a * b, "km"),
        (f"A box weighs {a} kg and another one weighs {b} kg. How much do they weigh together?", f"{a} + {b} = {a + b}", a + b, "kg"),
        (f"A ticket costs {a} EUR. How much do {b} tickets cost?", f"{a} * {b} = {a * b}", a * b, "EUR"),
        (f"A rope is {a + b} m long. {a} m are cut off. How long is the rest?", f"{a + b} - {a} = {b}", b, "m"),
    ])
    schema = fields(value={"type": "integer", "minimum": 0, "maximum": 999}, unit={"enum": ["km", "m", "kg", "EUR"]})
    return question, f"{thought}, so it is {value} {unit}.", schema, {"value": value, "unit": unit}


def extraction(chance):
    name, city, age, job = chance.choice(NAMES), chance.choice(CITIES), chance.randint(20, 69), chance.choice(JOBS)
    text = chance.choice([
        f"{name} is a {job} from {city} and turned {age} this year.",
        f"In {city} I met {name}, a {age}-year-old {job}.",
        f"The {job} {name}, aged {age}, lives in {city}.",
    ])
    short = {"type": "string", "minLength": 1, "maxLength": 20}
    schema = fields(name=short, age={"type": "integer", "minimum": 0, "maximum": 120}, city=short)
    return f"Who is this about? {text}", f"It is about {name}, {age} years old, in {city}.", schema, {"name": name, "age": age, "city": city}


def classification(chance):
    label, texts = chance.choice([("positive", GOOD), ("negative", BAD)])
    schema = fields(label={"enum": ["positive", "negative"]})
    return f"Is this review positive or negative? {chance.choice(texts)}", f"It sounds {label}.", schema, {"label": label}


def calls(chance):
    city, number = chance.choice(CITIES), chance.randint(2, 59)
    question, name, argument = chance.choice([
        (f"What is the weather in {city}?", "weather", city),
        (f"Wake me in {number} minutes.", "timer", str(number)),
        (f"Book a table in {city}.", "book", city),
    ])
    schema = fields(function={"enum": ["weather", "timer", "book"]}, argument={"type": "string", "minLength": 1, "maxLength": 12})
    about = "Functions: weather(city), timer(minutes), book(city)."
    thought = f"The function is {name}, and its argument is {argument}."
    return f"{about} Which function fits, with which argument? {question}", thought, schema, {"function": name, "argument": argument}


TASKS = {"arithmetic": arithmetic, "extraction": extraction, "classification": classification, "function calls": calls}


def prompt(question, schema):
    keys = ", ".join(f'"{key}"' for key in schema["properties"])
    return f"{question}\nAnswer with a JSON object with the keys {keys} and nothing else."


def examples(name):
    """Three questions with different answers where there is a list of answers; two of classification."""
    chosen, kinds, number = [], set(), 0
    while len(chosen) < (2 if name == "classification" else 3):
        made = TASKS[name](random.Random(f"{name}, example {number}"))
        _, _, schema, truth = made
        kind = tuple(truth[key] for key, value in schema["properties"].items() if "enum" in value) or number
        if kind not in kinds:
            kinds.add(kind)
            chosen.append(made)
        number += 1
    return chosen


def made(name, count):
    """Questions that are none of the examples."""
    known = {question for question, *_ in examples(name)}
    tasks = (TASKS[name](random.Random(f"{name} {number}")) for number in range(1000 * count + 1000))
    return list(itertools.islice((task for task in tasks if task[0] not in known), count))


def found(text):
    """The first JSON object in a text."""
    decoder = json.JSONDecoder()
    for at, char in enumerate(text):
        if char == "{":
            try:
                return decoder.raw_decode(text, at)[0]
            except ValueError:
                continue
    return None


def is_right(value, truth):
    if not isinstance(value, dict):
        return False
    same = lambda left, right: left == right or str(left).strip().lower() == str(right).strip().lower()
    return all(same(value.get(key), wanted) for key, wanted in truth.items())


def messages(name, task, order, has_draft):
    def turned(schema):
        return {**schema, "properties": dict(reversed(schema["properties"].items())), "required": schema["required"][::-1]} if order == "reversed" else schema
    def asked(question, schema):
        return {"role": "user", "content": f"{question}\nThink first, in a sentence." if has_draft else prompt(question, turned(schema))}
    talk = []
    for question, thought, schema, truth in examples(name):
        talk.append(asked(question, schema))
        if has_draft:
            talk += [{"role": "assistant", "content": thought}, {"role": "user", "content": "And as JSON?"}]
        answer = {key: truth[key] for key in turned(schema)["properties"]}
        talk.append({"role": "assistant", "content": json.dumps(answer)})
    question, _, schema, _ = task
    return [*talk, asked(question, schema)], turned(schema)


def ask(url, name, task, own, order, seed):
    talk, schema = messages(name, task, order, bool(own) and "draft" in own)
    body = {"messages": talk, "temperature": TEMPERATURE, "seed": seed, "max_tokens": 48}
    if own is not None:
        body |= {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}, "maskwright": own}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        sys.exit(f"the server refused: {error.read().decode()}")


TEMPERATURE = 0.5
MODES = {
    "free": None,
    "masked": {},
    "exact": {"sampling": "exact", "tries": 24},
    "draft, then masked": {"draft": {"max_tokens": 32, "then": "\n\nAnd as JSON: "}},
}
STYLES = {f"{white}, {order}": ({"whitespace": white}, order) for white in ("compact", "spaced", "tidy") for order in ("schema", "reversed")}


def interval(right, count):
    """Wilson's interval of 95 %."""
    z = 1.96
    share = right / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return f"{100 * share:.0f} ({abs(100 * (middle - half)):.0f}–{100 * (middle + half):.0f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--count", type=int, default=40, help="questions for each task")
    parser.add_argument("--at-a-time", type=int, default=4)
    parser.add_argument("--styles", type=int, default=None, help="questions for each task in the second table; as many as in the first unless told otherwise")
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--styles-alone", action="store_true", help="the second table alone")
    parser.add_argument("--answers", type=argparse.FileType("w"), help="a file for all answers, a line of JSON each")
    args = parser.parse_args()
    questions = {name: made(name, args.count) for name in args.tasks}
    pool = concurrent.futures.ThreadPoolExecutor(args.at_a_time)

    def run(own, order, name, count):
        """How many are right, and what the answers said about how they were written."""
        def one(item):
            number, task = item
            answer = ask(args.url, name, task, own, order, number)
            text, told = answer["choices"][0]["message"]["content"], answer.get("maskwright", {})
            right = is_right(found(text), task[3])
            if args.answers:
                line = {"task": name, "way": own, "order": order, "question": task[0], "truth": task[3], "answer": text, "right": right, "told": told}
                print(json.dumps(line), file=args.answers, flush=True)
            return right, told
        begin = time.monotonic()
        results = list(pool.map(one, enumerate(questions[name][:count])))
        print(f"{name}, {own}, {order}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
        return sum(right for right, _ in results), [told for _, told in results]

    if not args.styles_alone:
        print(f"Right answers in per cent, of {args.count} questions each; in brackets the interval of 95 %.\n")
        print("| task | " + " | ".join(MODES) + " | draws that were exact, mean tries |")
        print("|---|" + "---|" * (len(MODES) + 1))
        for name in args.tasks:
            cells, note = [], ""
            for mode, own in MODES.items():
                right, told = run(own, "schema", name, args.count)
                cells.append(interval(right, args.count))
                draws = [one["sampling"] for one in told if "sampling" in one]
                if draws:
                    exact = sum(one["exact"][0] for one in draws)
                    note = f"{exact} of {len(draws)}, {sum(one['tries'] for one in draws) / len(draws):.1f}"
            print(f"| {name} | " + " | ".join(cells) + f" | {note} |", flush=True)
    count = args.count if args.styles is None else min(args.styles, args.count)
    if count:
        print(f"\nUnder a mask, by white space and by the order of keys, of {count} questions each.\n")
        print("| task | " + " | ".join(STYLES) + " |")
        print("|---|" + "---|" * len(STYLES))
        for name in args.tasks:
            cells = [interval(run(own, order, name, count)[0], count) for own, order in STYLES.values()]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
