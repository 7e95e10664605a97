"""Judges documents with the package jsonschema, for `mwbench walk`.

Reads lines {"schema": ..., "documents": [...]} and answers each with a line: a list with true for every valid
document, the reason for every invalid one, and null where the schema itself cannot be read.
"""

import json
import sys

try:
    from jsonschema import validators
except ImportError:
    print("missing", flush=True)
    sys.exit(1)

sys.setrecursionlimit(100_000)
print("ready", flush=True)
for line in sys.stdin:
    question = json.loads(line)
    schema = question["schema"]
    answers = []
    try:
        kind = validators.validator_for(schema, default=validators.Draft202012Validator)
        judge = kind(schema, format_checker=kind.FORMAT_CHECKER)
    except Exception:
        judge = None
    for document in question["documents"]:
        if judge is None:
            answers.append(None)
            continue
        try:
            error = next(judge.iter_errors(document), None)
            answers.append(True if error is None else error.message[:300])
        except Exception:
            answers.append(None)
    print(json.dumps(answers), flush=True)
