"""The backend for vLLM, driven as vLLM's manager drives it.

Where vLLM is installed these tests run with its own classes (``make test-engines``), otherwise with those in ``fakes``, which have the same methods
and walk the same way.
"""

import json
import os
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
import torch

import maskwright as mw
import maskwright.vllm as plugin
from maskwright import _plugins
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_types import StructuredOutputGrammar, StructuredOutputOptions
from vllm.v1.structured_output.request import StructuredOutputRequest

# The model is wider than the tokenizer, as models are, and not by whole words.
WIDTH = 128_300
MANAGER = "vllm.v1.structured_output.cached_tokenizer_from_config"


@pytest.fixture(scope="module", autouse=True)
def installed():
    plugin.install()
    plugin.install()


def options(**changed):
    plain = dict(
        backend="auto", disable_any_whitespace=False, disable_additional_properties=False, reasoning_parser="",
        reasoning_parser_plugin="", enable_in_reasoning=False,
    )
    return SimpleNamespace(**{**plain, **changed})


def manager(tokenizer, monkeypatch, drafts=0, max_num_seqs=8, method=None, async_scheduling=False, **changed):
    monkeypatch.setattr(MANAGER, lambda model_config: tokenizer)
    model = SimpleNamespace(skip_tokenizer_init=False, get_vocab_size=lambda: WIDTH, is_diffusion=False)
    return StructuredOutputManager(
        SimpleNamespace(
            parallel_config=SimpleNamespace(distributed_executor_backend=None),
            scheduler_config=SimpleNamespace(max_num_seqs=max_num_seqs, async_scheduling=async_scheduling),
            speculative_config=None if method is None else SimpleNamespace(method=method),
            model_config=model,
            structured_outputs_config=options(**changed),
            num_speculative_tokens=drafts,
        )
    )


class Request:
    """As much of a request as the manager looks at."""

    use_structured_output = True

    num_output_tokens = 0

    def __init__(self, name, stops=(), max_tokens=16, **params):
        self.request_id = name
        self.sampling_params = SamplingParams(
            structured_outputs=StructuredOutputsParams(**params), stop_token_ids=list(stops), max_tokens=max_tokens
        )
        self.structured_output_request = StructuredOutputRequest.from_sampling_params(self.sampling_params)
        self.prompt_token_ids = [1]
        self.all_token_ids = [1]

    @property
    def grammar(self):
        return self.structured_output_request.grammar


def ready(manager, *requests):
    for request in requests:
        manager.grammar_init(request)
        # The scheduler looks once in every step.
        while not request.structured_output_request.is_grammar_ready:
            pass
    return {request.request_id: request for request in requests}


def masks(manager, requests, drafts=None):
    """A set of tokens for each row."""
    rows = manager.grammar_bitmask(requests, list(requests), drafts or {})
    assert rows.dtype.name == "int32" and rows.shape[1] == (WIDTH + 31) // 32
    return [tokens_of(row) for row in rows]


def tokens_of(row):
    return {word * 32 + bit for word, bits in enumerate(row.tolist()) if bits for bit in range(32) if bits >> bit & 1}


EVERYTHING = set(range((WIDTH + 31) // 32 * 32))


@pytest.mark.parametrize(
    ("params", "text", "not_after"),
    [
        ({"json": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}, '{"a": 12}', "x"),
        ({"json": '{"enum": ["p", "q"]}'}, '"q"', "r"),
        ({"json_object": True}, '{"any": [1, null]}', "["),
        ({"regex": "[0-9]{3}-[a-f]+"}, "123-abc", "z"),
        ({"choice": ["red", "green", "blue sky"]}, "blue sky", "y"),
        ({"grammar": 'root ::= "(" root ")" | "x"'}, "((x))", ")"),
        ({"grammar": 'start: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]+/'}, "1+22", "+"),
        (
            {"structural_tag": json.dumps({"structures": [{"begin": "<f>", "schema": {"type": "integer"}, "end": "</f>"}],
                                           "triggers": ["<f>"]})},
            "I call <f>7</f> now",
            None,
        ),
        (
            {"structural_tag": json.dumps({"type": "structural_tag", "format": {"type": "sequence", "elements": [
                {"type": "const_string", "value": "n="}, {"type": "json_schema", "json_schema": {"type": "boolean"}}]}})},
            "n=true",
            "m",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_every_kind_of_request(tokenizer, vocabulary, monkeypatch, params, text, not_after):
    m = manager(tokenizer, monkeypatch)
    requests = ready(m, request := Request("r", stops=vocabulary.eos, **params))
    assert isinstance(request.grammar, plugin.Grammar) and isinstance(request.grammar, StructuredOutputGrammar)
    if not_after is not None:
        (mask,) = masks(m, requests)
        assert vocabulary.encode(not_after)[0] not in mask
    for token in vocabulary.encode(text):
        (mask,) = masks(m, requests)
        assert token in mask and max(mask) < vocabulary.size
        assert m.accept_tokens(request, [token])
    (mask,) = masks(m, requests)
    assert set(vocabulary.eos) <= mask
    assert not request.grammar.is_terminated()
    assert m.accept_tokens(request, [vocabulary.eos[0]])
    assert request.grammar.is_terminated()
    # A row that is over is free, and what still comes is passed over.
    assert masks(m, requests) == [EVERYTHING]
    assert m.accept_tokens(request, [5, 6, 7])
    m.clear_backend()


def test_a_wrong_token_changes_nothing(tokenizer, vocabulary, monkeypatch):
    m = manager(tokenizer, monkeypatch)
    requests = ready(m, request := Request("r", stops=vocabulary.eos, regex="abc[0-9]"))
    before = masks(m, requests)
    a, seven = vocabulary.encode("a")[0], vocabulary.encode("7")[0]
    assert request.grammar.accept_tokens("r", [a, seven]) is False
    assert masks(m, requests) == before
    assert request.grammar.validate_tokens([a, seven]) == [a]
    assert request.grammar.validate_tokens([-1]) == [] and request.grammar.validate_tokens([WIDTH + 5]) == []
    assert masks(m, requests) == before


def test_stop_tokens_of_a_request(tokenizer, vocabulary, monkeypatch):
    m = manager(tokenizer, monkeypatch)
    other = vocabulary.specials["<|eot_id|>"]
    requests = ready(m, Request("r", stops=[other], regex="[0-9]*"))
    (mask,) = masks(m, requests)
    assert other in mask and not set(vocabulary.eos) - {other} & mask
    # Two requests of one text, with different ends, share what was compiled.
    requests = ready(m, first := Request("1", stops=[other], regex="a"), second := Request("2", stops=[], regex="a"))
    for request in (first, second):
        assert m.accept_tokens(request, vocabulary.encode("a"))
    assert masks(m, requests) == [{other}, set(vocabulary.eos)]


def test_drafts_are_walked_and_undone(tokenizer, vocabulary, monkeypatch):
    m = manager(tokenizer, monkeypatch, drafts=4)
    requests = ready(m, request := Request("r", stops=vocabulary.eos, regex="(ab|cd)[0-9]{2}"))
    tokens = [*(vocabulary.encode(letter)[0] for letter in "cd12"), vocabulary.eos[0]]
    before = masks(m, requests)
    drafts = tokens[:4]
    assert m.validate_tokens(request, drafts) == drafts
    walked = masks(m, requests, {"r": drafts})
    assert len(walked) == 5 and walked[0] == before[0]
    assert masks(m, requests) == before, "the walk was undone"
    # The rows are those that one would see without guessing.
    for at, token in enumerate(drafts):
        assert masks(m, requests) == [walked[at]]
        assert m.accept_tokens(request, [token])
    assert masks(m, requests) == [walked[4]] == [set(vocabulary.eos)]
    # A guess that ends the text, and one that comes too late.
    request.grammar.rollback(2)
    assert m.validate_tokens(request, [*tokens[2:], tokens[0]]) == tokens[2:]
    ends = masks(m, requests, {"r": tokens[2:]})
    assert ends[:2] == walked[2:4] and ends[2] == walked[4] and ends[3] == EVERYTHING
    assert not request.grammar.is_terminated()
    assert masks(m, requests, {"r": [tokens[2], -1, -1]})[:2] == walked[2:4]
    request.grammar.reset()
    assert masks(m, requests) == before


def test_many_rows_are_filled_by_many_threads(tokenizer, vocabulary, monkeypatch):
    m = manager(tokenizer, monkeypatch, max_num_seqs=200)
    requests = ready(m, *(Request(str(n), stops=vocabulary.eos, regex=f"[a-{'bcdef'[n % 5]}]+{n % 7}") for n in range(150)))
    together = masks(m, requests)
    for name, mask in zip(requests, together):
        matcher = requests[name].grammar.matcher
        assert set(matcher.allowed_tokens()) == mask


class Counted:
    """A module's functions that fill masks, counted."""

    def __init__(self, monkeypatch):
        self.batches, self.rows = [], 0
        original, fill_or_end = plugin.fill_masks, plugin.fill_or_end

        def fill_masks(matchers, mask, rows):
            self.batches.append(list(rows))
            return original(matchers, mask, rows)

        def one_row(*given):
            self.rows += 1
            return fill_or_end(*given)

        monkeypatch.setattr(plugin, "fill_masks", fill_masks)
        monkeypatch.setattr(plugin, "fill_or_end", one_row)


def test_the_rows_of_a_step_are_filled_by_one_call(tokenizer, vocabulary, monkeypatch):
    m = manager(tokenizer, monkeypatch, max_num_seqs=200)
    requests = ready(m, *(Request(str(n), stops=vocabulary.eos, regex=f"[a-{'bcdef'[n % 5]}]+") for n in range(9)))
    counted = Counted(monkeypatch)
    rows = masks(m, requests)
    assert counted.batches == [list(range(9))] and counted.rows == 0
    assert rows == [set(request.grammar.matcher.allowed_tokens()) for request in requests.values()]


def test_a_chain_of_drafts_is_filled_by_one_call(tokenizer, vocabulary, monkeypatch):
    m = manager(tokenizer, monkeypatch, drafts=3)
    c, d, one, two = (vocabulary.encode(letter)[0] for letter in "cd12")
    requests = ready(m, Request("plain", stops=vocabulary.eos, regex="[0-9]{2}"), Request("drafts", stops=vocabulary.eos, regex="(ab|cd)[0-9]{2}"))
    counted = Counted(monkeypatch)
    rows = masks(m, requests, {"drafts": [c, d, one]})
    assert counted.batches == [[0]] and counted.rows == 0
    matcher = requests["drafts"].grammar.matcher
    for row, token in zip(rows[1:], [c, d, one, two]):
        assert row == set(matcher.allowed_tokens())
        matcher.accept(token)


def test_a_draft_that_is_refused_leaves_the_row_before_it(tokenizer, vocabulary, monkeypatch):
    m = manager(tokenizer, monkeypatch, drafts=3)
    c, d, x = (vocabulary.encode(letter)[0] for letter in "cdx")
    requests = ready(m, request := Request("r", stops=vocabulary.eos, regex="cd[0-9]"))
    m.backend.step = step = plugin._Step()
    mask = m.backend.allocate_token_bitmask(4)
    request.grammar.fill_bitmask(mask, 0)
    assert request.grammar.accept_tokens("r", [c])
    request.grammar.fill_bitmask(mask, 1)
    assert not request.grammar.accept_tokens("r", [x])
    m.backend.step = None
    # vLLM copies the row at once, so it is filled already.
    assert tokens_of(mask[1]) == set(request.grammar.matcher.allowed_tokens())
    request.grammar.rollback(1)
    step.fill()
    assert tokens_of(mask[0]) == set(request.grammar.matcher.allowed_tokens())
    assert d in tokens_of(mask[1]) and requests


def test_max_tokens_is_a_budget_where_somebody_says_so(tokenizer, vocabulary, monkeypatch):
    schema = {"type": "array", "items": {"type": "integer"}}
    close = vocabulary.encode("]")[0]

    def write(m, **params):
        """A model that never wants to end, until it has to."""
        requests = ready(m, request := Request("r", stops=vocabulary.eos, max_tokens=12, json=params["json"]))
        written = []
        while not request.grammar.is_terminated() and len(written) < 12:
            (mask,) = masks(m, requests)
            wished = [token for token in mask if token not in (*vocabulary.eos, close) and b"]" not in vocabulary.token_bytes(token)]
            written.append(min(wished or mask))
            assert m.accept_tokens(request, written[-1:])
            request.num_output_tokens += 1
        return request.grammar.is_terminated(), written

    assert not write(manager(tokenizer, monkeypatch), json=schema)[0]
    done, written = write(manager(tokenizer, monkeypatch), json={**schema, "x-maskwright": {"finish": True}})
    assert done and len(written) <= 12 and isinstance(json.loads(vocabulary.decode(written)), list)
    monkeypatch.setenv("MASKWRIGHT_FINISH", "1")
    assert write(manager(tokenizer, monkeypatch), json=schema)[0]
    assert not write(manager(tokenizer, monkeypatch), json={**schema, "x-maskwright": {"finish": False}})[0]


def test_a_budget_knows_of_reasoning_and_of_too_little(tokenizer, vocabulary, monkeypatch):
    monkeypatch.setenv("MASKWRIGHT_FINISH", "1")
    m = manager(tokenizer, monkeypatch)
    requests = ready(m, request := Request("r", stops=vocabulary.eos, max_tokens=20, regex="[0-9]+!"))
    request.num_output_tokens = 17
    masks(m, requests)
    assert request.grammar.matcher.budget_left == 3
    ready(m, poor := Request("poor", stops=vocabulary.eos, max_tokens=2, regex="[a-z]{40} [0-9]{40}"))
    assert isinstance(poor.grammar, mw.BudgetError)


def test_a_schema_has_options_of_its_own(tokenizer, vocabulary, monkeypatch):
    m = manager(tokenizer, monkeypatch)
    schema = {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["a", "b"], "additionalProperties": False}

    def accepts(text, **own):
        ready(m, request := Request("r", stops=vocabulary.eos, json={**schema, "x-maskwright": own}))
        assert isinstance(request.grammar, plugin.Grammar), request.grammar
        return m.accept_tokens(request, vocabulary.encode(text)) and request.grammar.matcher.is_accepting()

    assert accepts('{"a": 1, "b": 2}') and not accepts('{"b": 2, "a": 1}')
    assert accepts('{"b": 2, "a": 1}', key_order="any")
    assert not accepts('{"a":   1, "b": 2}') and accepts('{"a":   1, "b": 2}', whitespace="flexible")
    assert not accepts('{"a": 1, "b": 2}', whitespace="compact")
    for own, words in [({"colour": 1}, "/x-maskwright/colour"), ({"finish": "yes"}, "/x-maskwright/finish"), ({"whitespace": "wide"}, "wide")]:
        ready(m, request := Request("r", json={**schema, "x-maskwright": own}))
        assert isinstance(request.grammar, mw.ConstraintError) and words in str(request.grammar)


def test_a_schema_may_say_it_in_the_words_of_llguidance(tokenizer, vocabulary, monkeypatch):
    m = manager(tokenizer, monkeypatch)
    schema = {"type": "array", "items": {"type": "integer"}}

    def accepts(text, theirs, ours=None):
        own = {"x-guidance": theirs} if ours is None else {"x-guidance": theirs, "x-maskwright": ours}
        ready(m, request := Request("r", stops=vocabulary.eos, json={**schema, **own}))
        assert isinstance(request.grammar, plugin.Grammar), request.grammar
        return m.accept_tokens(request, vocabulary.encode(text)) and request.grammar.matcher.is_accepting()

    assert accepts("[1, 2]", {}) and not accepts("[1,    2]", {})
    assert accepts("[1,    2]", {"whitespace_flexible": True})
    assert accepts("[1,2]", {"whitespace_flexible": False}) and not accepts("[1, 2]", {"whitespace_flexible": False})
    spaced = {"item_separator": ", ", "key_separator": ": ", "coerce_one_of": None}
    assert accepts("[1, 2]", spaced) and not accepts("[1,2]", spaced)
    assert accepts("[1,\t2]", {"whitespace_pattern": "\t?"}) and not accepts("[1, 2]", {"whitespace_pattern": "\t?"})
    # Ours counts where both say something.
    assert accepts("[1,    2]", {"whitespace_flexible": False}, {"whitespace": "flexible"})
    assert accepts("[1, 2]", {"whitespace_pattern": "\t?"}, {"whitespace": "spaced"})
    for theirs, words in [({"colour": 1}, "'colour' of `x-guidance`"), ({"lenient": 1}, "must be a bool"), ({"item_separator": ";"}, "separators"), ([1], "/x-guidance: this must be an object")]:
        ready(m, request := Request("r", json={**schema, "x-guidance": theirs}))
        assert isinstance(request.grammar, mw.ConstraintError) and words in str(request.grammar)
        with pytest.raises(VLLMValidationError, match="structured output: .*x-guidance|separators"):
            validate(tokenizer, {"json": {**schema, "x-guidance": theirs}})


def test_what_was_compiled_is_there_after_a_restart(tokenizer, vocabulary, monkeypatch, tmp_path, caplog):
    folder = tmp_path / "cache"
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(folder))
    m = manager(tokenizer, monkeypatch)
    requests = ready(m, Request("r", stops=vocabulary.eos, regex="[0-9]{3}"))
    masks(m, requests)
    m.clear_backend()
    (file,) = folder.glob("*.maskwright")
    again = manager(tokenizer, monkeypatch)
    ready(again, Request("r", stops=vocabulary.eos, regex="[0-9]{3}"))
    # What is loaded is made ready then, and the request finds it.
    assert again.backend.compiler.statistics()["requests"]["hit"] == 1
    again.clear_backend()
    # Whatever lies there, the engine works.
    content = file.read_bytes()
    for damaged, words in [(content[: len(content) // 2], "not used"), (b"foreign", "not used")]:
        file.write_bytes(damaged)
        caplog.clear()
        other = manager(tokenizer, monkeypatch)
        ready(other, request := Request("r", stops=vocabulary.eos, regex="[0-9]{3}"))
        assert isinstance(request.grammar, plugin.Grammar) and words in caplog.text
        # What it has learnt is saved in the place of that.
        other.clear_backend()
        assert len(file.read_bytes()) > len(damaged)
    file.write_bytes(content)
    file.chmod(0o666)
    caplog.clear()
    ready(last := manager(tokenizer, monkeypatch), Request("r", stops=vocabulary.eos, regex="[0-9]{3}"))
    assert "others may write it" in caplog.text
    last.clear_backend()
    assert not file.stat().st_mode & 0o077


def test_processes_share_a_cache(tokenizer, vocabulary, monkeypatch, tmp_path):
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path))
    first, second = manager(tokenizer, monkeypatch), manager(tokenizer, monkeypatch)
    ready(first, Request("a", stops=vocabulary.eos, regex="[0-9]{3}"))
    ready(second, Request("b", stops=vocabulary.eos, regex="[a-f]{3}"))
    # Whoever is last, what the other one has compiled is not lost.
    first.clear_backend()
    second.clear_backend()
    third = manager(tokenizer, monkeypatch)
    ready(third, Request("a", stops=vocabulary.eos, regex="[0-9]{3}"), Request("b", stops=vocabulary.eos, regex="[a-f]{3}"))
    assert third.backend.compiler.statistics()["requests"]["hit"] == 2
    assert [file.suffix for file in tmp_path.iterdir() if not file.name.startswith(".")].count(".maskwright") == 1


def test_what_is_no_file_in_the_cache_is_passed_over(tokenizer, vocabulary, monkeypatch, tmp_path, caplog):
    from maskwright._cache import CacheFile

    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path))
    path = CacheFile(mw.Compiler(mw.Vocabulary.from_tokenizer(tokenizer, size=WIDTH)), tmp_path).path
    # A pipe that nobody writes to must not be waited for, and a folder is no file.
    for make in (os.mkfifo, os.mkdir):
        make(path)
        caplog.clear()
        ready(m := manager(tokenizer, monkeypatch), request := Request("r", stops=vocabulary.eos, regex="[0-9]{3}"))
        assert isinstance(request.grammar, plugin.Grammar) and str(path) in caplog.text
        m.clear_backend()
        path.rmdir() if path.is_dir() else path.unlink()


def test_options_of_the_server_and_of_a_request(tokenizer, vocabulary, monkeypatch):
    schema = {"properties": {"a": {"type": "integer"}}, "type": "object"}
    space, brace, quote, b = (vocabulary.encode(text)[0] for text in (" ", "{", '"', "b"))

    def after_brace(m, then=(), **params):
        requests = ready(m, request := Request("r", stops=vocabulary.eos, json=schema, **params))
        assert m.accept_tokens(request, [brace, *then])
        return masks(m, requests)[0]

    m = manager(tokenizer, monkeypatch)
    assert space in after_brace(m)
    assert space not in after_brace(m, disable_any_whitespace=True)
    assert space not in after_brace(m, whitespace_pattern="\n?")
    assert b in after_brace(m, [quote])
    assert b not in after_brace(m, [quote], disable_additional_properties=True)
    assert space not in after_brace(manager(tokenizer, monkeypatch, disable_any_whitespace=True))


def test_an_error_is_that_request_s_alone(tokenizer, monkeypatch, caplog):
    m = manager(tokenizer, monkeypatch)
    bad, good = Request("bad", regex="(unclosed"), Request("good", regex="a")
    ready(m, bad, good)
    assert isinstance(bad.grammar, ValueError) and "not closed" in str(bad.grammar)
    assert isinstance(good.grammar, plugin.Grammar)
    # Where nobody has validated the request, the client is not told why.
    assert "request bad fails" in caplog.text and "not closed" in caplog.text


HOSTILE = 'root ::= r\nr ::= ([ab] ("ba" | r) (r | "b")){0,4}'


def limited(manager, tokenizer, steps=5):
    """The same engine, with few steps for a mask."""
    manager.backend.compiler = mw.Compiler(mw.Vocabulary.from_tokenizer(tokenizer, size=WIDTH), mask_steps=steps)


def test_a_limit_ends_its_request_and_not_the_batch(tokenizer, vocabulary, monkeypatch, caplog):
    m = manager(tokenizer, monkeypatch)
    good = Request("good", regex="[0-9]{2}")
    ready(m, good)
    limited(m, tokenizer)
    bad = Request("bad", grammar=HOSTILE, stops=vocabulary.eos)
    ready(m, bad)
    with caplog.at_level("ERROR"):
        rows = masks(m, {"good": good, "bad": bad})
    assert "mask_steps" in caplog.text
    assert rows[0] == set(good.grammar.matcher.allowed_tokens())
    assert rows[1] == set(bad.grammar.matcher.stop_tokens)
    a = vocabulary.encode("a")[0]
    assert bad.grammar.validate_tokens([a]) == []
    # The grammar may be empty, so the end is right here; a token that meets the limit is refused, which ends the request.
    assert not bad.grammar.accept_tokens("bad", [a])
    assert bad.grammar.matcher.steps == 0
    assert good.grammar.accept_tokens("good", vocabulary.encode("12"))


def test_a_constraint_that_takes_too_long_fails_and_is_not_asked_for_again(tokenizer, vocabulary, monkeypatch):
    m = manager(tokenizer, monkeypatch)
    ready(m, Request("first", regex="a"))
    patient = m.backend.compiler
    m.backend.compiler = mw.Compiler(patient.vocabulary, timeout=0.001)
    slow = Request("slow", json={"type": "array", "prefixItems": [{"pattern": f"^(a|b)*a(a|b){{{n}}}$", "type": "string"} for n in range(8, 14)]})
    m.grammar_init(slow)
    deadline = time.monotonic() + 60
    while not slow.structured_output_request.is_grammar_ready and time.monotonic() < deadline:
        time.sleep(0.01)
    # A TimeoutError would be taken for "not yet", and the request would wait for ever.
    assert isinstance(slow.grammar, mw.LimitError) and "longer" in str(slow.grammar)
    m.backend.compiler = patient
    ready(m, request := Request("next", stops=vocabulary.eos, regex="b"))
    assert isinstance(request.grammar, plugin.Grammar)


def test_a_tokenizer_that_cannot_be_read_fails_its_requests_and_not_the_engine(monkeypatch):
    m = manager(object(), monkeypatch)
    ready(m, request := Request("r", regex="a"))
    assert isinstance(request.grammar, TypeError) and m.backend is None


def test_a_model_that_is_narrower_than_its_tokenizer(tokenizer, vocabulary):
    backend = plugin.Backend(SimpleNamespace(structured_outputs_config=options()), tokenizer, 1000)
    grammar = backend.compile_grammar(StructuredOutputOptions.REGEX, "[a-z]+")
    mask = backend.allocate_token_bitmask(2)
    grammar.fill_bitmask(mask, 1)
    assert mask.shape == (2, 32) and (mask[0] == -1).all()
    assert tokens_of(mask[1]) == {token for token in grammar.matcher.allowed_tokens() if token < 1024}


VALID = [
    {"json": {"type": "object"}}, {"json_object": True}, {"regex": "a+"}, {"choice": ["a"]}, {"grammar": 'start: "a"'},
    {"structural_tag": json.dumps({"type": "structural_tag", "format": {"type": "any_text"}})},
    # What others refuse.
    {"json": {"type": "array", "uniqueItems": True, "items": {"type": "integer", "multipleOf": 3}}},
]
INVALID = [
    ({"json": '{"type": '}, "structured output"),
    ({"json": {"type": "nonsense"}}, "type"),
    ({"json": {"properties": {"a": {"$ref": "#/nowhere"}}}}, "nowhere"),
    ({"regex": "a("}, "not closed"),
    ({"regex": r"(a)\1"}, "structured output"),
    ({"choice": []}, "empty"),
    ({"grammar": "   "}, "grammar"),
    ({"grammar": "root ::= missing"}, "missing"),
    ({"structural_tag": "{"}, "structured output"),
    ({"structural_tag": '{"type": "structural_tag", "format": {"type": "no such"}}'}, "no such"),
    ({"json_object": False}, "json_object"),
]


def validate(tokenizer, params, **changed):
    sampling = SamplingParams(structured_outputs=StructuredOutputsParams(**params))
    model = SimpleNamespace(is_diffusion=False)
    sampling._validate_structured_outputs(model, options(**changed), tokenizer)
    return sampling


@pytest.mark.parametrize("params", VALID, ids=str)
def test_what_is_right_passes_the_server(tokenizer, params):
    sampling = validate(tokenizer, params)
    # Parameters are used again for the next request.
    sampling._validate_structured_outputs(SimpleNamespace(is_diffusion=False), options(), tokenizer)


@pytest.mark.parametrize(("params", "words"), INVALID, ids=str)
def test_what_is_wrong_is_refused_by_the_server(tokenizer, params, words):
    with pytest.raises(VLLMValidationError, match=words):
        validate(tokenizer, params)


def test_what_vllm_refuses_itself(tokenizer):
    sampling = SamplingParams(structured_outputs=StructuredOutputsParams(regex="a"))
    with pytest.raises(VLLMValidationError, match="tokenizer"):
        sampling._validate_structured_outputs(SimpleNamespace(is_diffusion=False), options(), None)
    with pytest.raises(VLLMValidationError, match="diffusion"):
        sampling._validate_structured_outputs(SimpleNamespace(is_diffusion=True), options(), tokenizer)
    SamplingParams()._validate_structured_outputs(SimpleNamespace(is_diffusion=False), options(), tokenizer)


def test_the_contract_of_the_backend(tokenizer, vocabulary):
    config = SimpleNamespace(structured_outputs_config=options())
    backend = plugin.Backend(config, tokenizer, WIDTH)
    mask = backend.allocate_token_bitmask(3)
    assert mask.dtype == torch.int32 and mask.shape == (3, (WIDTH + 31) // 32) and (mask == -1).all()
    grammar = backend.compile_grammar(StructuredOutputOptions.CHOICE, '["a", "b"]', stop_token_ids={vocabulary.eos[0]})
    grammar.fill_bitmask(mask, 1)
    assert (mask[0] == -1).all() and (mask[2] == -1).all()
    assert tokens_of(mask[1]) == {vocabulary.encode(letter)[0] for letter in "ab"}
    with pytest.raises(ValueError, match="list of strings"):
        backend.compile_grammar(StructuredOutputOptions.CHOICE, '{"a": 1}')
    backend.destroy()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"MASKWRIGHT_VLLM": "1"}, True),
        ({"VLLM_PLUGINS": "other, maskwright"}, True),
        ({"VLLM_PLUGINS": "maskwright", "MASKWRIGHT_VLLM": "0"}, False),
        ({"VLLM_PLUGINS": "maskwrights"}, False),
    ],
)
def test_somebody_has_to_ask(monkeypatch, environment, expected):
    calls = []
    monkeypatch.setattr(plugin, "install", lambda: calls.append(1))
    for name in ("MASKWRIGHT_VLLM", "VLLM_PLUGINS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    _plugins.vllm()
    assert bool(calls) == expected


def test_the_plug_in_is_found():
    plugins = pytest.importorskip("vllm.plugins")
    assert plugins.load_plugins_by_group("vllm.general_plugins")["maskwright"] is _plugins.vllm


def test_a_word_that_is_neither_is_refused(monkeypatch):
    monkeypatch.setenv("MASKWRIGHT_VLLM", "maybe")
    with pytest.raises(ValueError, match="MASKWRIGHT_VLLM"):
        _plugins.vllm()


@pytest.mark.parametrize("said", ["1", "0"])
def test_masks_are_computed_while_the_model_thinks(tokenizer, vocabulary, monkeypatch, said):
    monkeypatch.setenv("MASKWRIGHT_AHEAD", said)
    m = manager(tokenizer, monkeypatch)
    schema = {"type": "object", "properties": {"a": {"enum": ["red", "green", "blue"]}, "b": {"type": "integer"}}, "required": ["a", "b"]}
    requests = ready(m, request := Request("r", stops=vocabulary.eos, json=schema))
    told = m.backend.compiler.statistics
    for token in vocabulary.encode('{"a": "green", "b": 7}'):
        (mask,) = masks(m, requests)
        assert token in mask
        assert m.accept_tokens(request, [token])
    deadline = time.monotonic() + 30
    while said == "1" and told()["matching"]["prepared"] == 0 and time.monotonic() < deadline:
        masks(m, requests)
        time.sleep(0.01)
    assert (told()["matching"]["prepared"] > 0) == (said == "1")


NAMED = {"type": "object", "properties": {"temperature": {"type": "integer"}}, "required": ["temperature"], "x-maskwright": {"whitespace": "compact"}}


@pytest.mark.parametrize("method", ["ngram", "suffix"])
def test_what_must_come_is_drafted(tokenizer, vocabulary, monkeypatch, method):
    m = manager(tokenizer, monkeypatch, drafts=4, method=method)
    requests = ready(m, request := Request("r", stops=vocabulary.eos, json=NAMED))
    whole = vocabulary.encode('{"temperature":')
    forced = m.validate_tokens(request, [])
    # The last token may be longer than what must come, so it is left to the model.
    assert 1 <= len(forced) <= 4 and forced == whole[: len(forced)]
    # Drafts of the engine come first, and what may not come is cut off before.
    assert m.validate_tokens(request, [whole[0], 5])[0] == whole[0]
    assert m.validate_tokens(request, whole[:1])[: len(forced)] == forced
    # Each is a row of the step, and none of them is refused there.
    rows = masks(m, requests, {"r": forced})
    assert len(rows) == 1 + len(forced) and all(token in row for token, row in zip(forced, rows))
    assert m.accept_tokens(request, forced)
    assert request.grammar.taken == forced
    assert m.validate_tokens(request, []) == vocabulary.encode('{"temperature":')[len(forced):][: len(m.validate_tokens(request, []))]
    # Full is full.
    assert len(m.validate_tokens(request, [])) <= 4
    # Reasoning is free.
    request.structured_output_request.reasoning_ended = False
    monkeypatch.setattr(type(m), "_get_constraint_bounds", lambda self, request, tokens: (1, 1))
    assert m.validate_tokens(request, []) == []


def test_what_must_come_is_drafted_behind_an_unusual_spelling(tokenizer, vocabulary, monkeypatch):
    m = manager(tokenizer, monkeypatch, drafts=4, method="ngram")
    text = "The answer to the question is already known to all of them"
    ready(m, request := Request("r", stops=vocabulary.eos, json={"const": text}))
    # A letter at a time, as no tokenizer writes it.
    letters = [token for letter in '"The' for token in vocabulary.encode(letter)]
    assert letters != vocabulary.encode('"The')[: len(letters)]
    assert m.accept_tokens(request, letters)
    assert m.validate_tokens(request, []) == vocabulary.encode(text.removeprefix("The") + '"')[:4]
    # What may not come is no draft, whatever the tokenizer makes of the text.
    monkeypatch.setattr(m.backend, "_encode", lambda text: [vocabulary.encode(" answer")[0], 5, 5])
    assert m.validate_tokens(request, []) == vocabulary.encode(" answer")[:1]


@pytest.mark.parametrize("how", [{"method": "eagle"}, {"method": "ngram", "async_scheduling": True}, {}])
def test_nothing_is_drafted_beside_probabilities(tokenizer, vocabulary, monkeypatch, how):
    m = manager(tokenizer, monkeypatch, drafts=4, **how)
    ready(m, request := Request("r", stops=vocabulary.eos, json=NAMED))
    assert m.validate_tokens(request, []) == []


def test_beams_are_forks(tokenizer, vocabulary):
    from vllm.entrypoints.generate.beam_search.offline import BeamSearchOfflineMixin

    model = SimpleNamespace(get_vocab_size=lambda: WIDTH)
    config = SimpleNamespace(structured_outputs_config=options(), model_config=model, scheduler_config=SimpleNamespace(async_scheduling=False))
    search = BeamSearchOfflineMixin.__new__(BeamSearchOfflineMixin)
    search.llm_engine, search.model_config = SimpleNamespace(vllm_config=config), model
    params = StructuredOutputsParams(choice=["red", "green", "grey"])
    backend, key, bitmask = search._init_beam_search_structured_output(params, tokenizer)
    assert isinstance(backend, plugin.BeamBackend)

    def step(*texts, end=False):
        stop = vocabulary.eos[:1] if end else []
        beams = [SimpleNamespace(orig_prompt={"type": "token", "prompt_token_ids": [1, 2]}, tokens=[1, 2, *vocabulary.encode(text), *stop]) for text in texts]
        base = SamplingParams(max_tokens=1)
        base.logprobs, base.temperature = 4, 0.0
        return search._build_beam_sampling_params(beams, base, backend, key, bitmask)

    def may(entry, text):
        return vocabulary.encode(text)[0] in entry[1]

    (start,) = step("")
    assert may(start, "r") and may(start, "g") and not may(start, "b")
    red, gre = step("r", "g")
    assert may(red, "e") and not may(red, "r") and may(gre, "r")
    # Beams of a step come from those of the one before, some twice and some not at all.
    green, grey = step("gre", "gr")
    assert may(green, "e") and may(green, "y") and may(grey, "e")
    assert len(backend._known) <= 4
    assert step("red", end=True) == [None]
    with pytest.raises(mw.TokenError):
        step("blue")
    backend.destroy()


def test_beams_over_http_are_refused_with_a_structure(monkeypatch):
    class Request:
        def __init__(self, structure):
            self.extract_structured_outputs = lambda: structure

        def to_beam_search_params(self, max_tokens, defaults):
            return max_tokens

    Request.extract_structured_outputs = None
    monkeypatch.setitem(sys.modules, "vllm.entrypoints.openai.completion.protocol", SimpleNamespace(CompletionRequest=Request))
    monkeypatch.setitem(sys.modules, "vllm.entrypoints.openai.chat_completion.protocol", None)
    plugin._refuse_beams_over_http()
    assert Request(None).to_beam_search_params(7, {}) == 7
    with pytest.raises(VLLMValidationError, match="use_beam_search"):
        Request(StructuredOutputsParams(regex="a")).to_beam_search_params(7, {})


def test_counters_are_told_where_somebody_collects_them(tokenizer, vocabulary, monkeypatch, tmp_path, caplog):
    from maskwright import _metrics

    class Metric:
        def __init__(self, name, text, labels, multiprocess_mode=None):
            self.name, self.values, self.at = name, {}, ()
            made[name] = self

        def labels(self, **labels):
            self.at = tuple(labels.items())
            return self

        def inc(self, amount):
            assert amount > 0
            self.values[self.at] = self.values.get(self.at, 0) + amount

        def set(self, value):
            self.values[self.at] = value

    made = {}
    client = SimpleNamespace(Counter=Metric, Gauge=Metric, Histogram=lambda name, text, labels, buckets: Metric(name, text, labels))
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", client)
    monkeypatch.setattr(_metrics.Exporter, "_known", {})
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR", raising=False)
    m = manager(tokenizer, monkeypatch)
    ready(m, Request("a", stops=vocabulary.eos, regex="a+"))
    assert m.backend.exporter is None
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    m = manager(tokenizer, monkeypatch)
    requests = ready(m, request := Request("r", stops=vocabulary.eos, regex="a+"))
    masks(m, requests)
    assert m.accept_tokens(request, vocabulary.encode("a"))
    exporter = m.backend.exporter
    exporter.export(now=exporter._when + 2)
    compiled = made["maskwright_compiles"].values
    assert sum(compiled.values()) == 1 and compiled[("kind", "regex"), ("result", "compiled")] == 1
    # Not twice, and not before it is time.
    exporter.export(now=exporter._when + 2)
    assert sum(compiled.values()) == 1
    ready(m, Request("s", stops=vocabulary.eos, regex="b+"))
    exporter.export(now=exporter._when)
    assert sum(compiled.values()) == 1
    exporter.export(now=exporter._when + 2)
    assert sum(compiled.values()) == 2
    # The stand-in has histograms without cells, which is told once and does not keep the rest from being told.
    assert caplog.text.count("keeps its histograms in another way") == 1 and not exporter._has_failed


# The process that answers `/metrics` is not the one that counts.
COUNTS = """
import sys
import maskwright as mw
from maskwright import _metrics

compiler = mw.Compiler(mw.Vocabulary.from_tokens([b"a", b"b", b"<end>"], eos=2))
exporter = _metrics.exporter(compiler)
for pattern in ("a+", "b+", "(ab)+"):
    compiler.compile(mw.regex(pattern))
    exporter.export(now=exporter._when + 2)
sys.stdout.write(compiler.prometheus())
"""
COLLECTS = """
import sys
from prometheus_client import CollectorRegistry, generate_latest, multiprocess

registry = CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
sys.stdout.write(generate_latest(registry).decode())
"""


def test_another_process_reads_the_same_numbers(tmp_path):
    pytest.importorskip("prometheus_client")

    def run(program):
        environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
        return subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True).stdout

    def samples(page, name):
        found = {}
        for line in page.splitlines():
            if line.startswith((f"{name}_bucket{{", f"{name}_sum", f"{name}_count")) and 'kind="regex"' in line:
                sample, value = line.rsplit(" ", 1)
                bound = re.search('le="([^"]+)"', sample)
                found[sample.partition("{")[0], float(bound[1]) if bound else None] = float(value)
        return found

    name = "maskwright_compile_seconds"
    ours, theirs = samples(run(COUNTS), name), samples(run(COLLECTS), name)
    assert ours[f"{name}_count", None] == ours[f"{name}_bucket", float("inf")] == 3
    assert theirs.keys() == ours.keys() and theirs == pytest.approx(ours)


def test_what_a_constraint_does_not_say_is_logged_once(tokenizer, vocabulary, monkeypatch, caplog):
    m = manager(tokenizer, monkeypatch)
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLenght": 2}}}
    for name in ("a", "b"):
        ready(m, request := Request(name, json=schema))
        assert isinstance(request.grammar, plugin.Grammar)
    assert caplog.text.count("/properties/a/maxLenght constrains nothing; did you mean maxLength?") == 1
    caplog.clear()
    ready(m, Request("c", json={"type": "object", "properties": {f"key{n}": {"format": "phone"} for n in range(30)}}))
    assert len(caplog.records) == 8 and "and 23 more warnings" in caplog.text
    caplog.clear()
    ready(m, Request("d", json={"pattern": r"^(a)\1$", "x-maskwright": {"strictness": "lenient"}}))
    assert "not enforced" in caplog.text and "/pattern" in caplog.text
    caplog.clear()
    ready(m, Request("e", json={"type": "object"}))
    assert not caplog.records
