"""The backend for SGLang, driven as SGLang's manager and its speculative decoding drive it.

Where SGLang is installed these tests run with its own classes (``make test-engines``), otherwise with those in ``fakes``.
"""

import json
import time
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
import torch

import maskwright as mw
import maskwright.sglang as plugin
from maskwright import _plugins
from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES
from sglang.srt.constrained import base_grammar_backend as base

WIDTH = 128_300
needs_tensors = pytest.mark.skipif(not hasattr(torch, "nn"), reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def backend(tokenizer, vocabulary):
    return plugin.Backend(tokenizer, WIDTH, set(vocabulary.eos))


def tokens_of(row):
    return {word * 32 + bit for word, bits in enumerate(row.tolist()) if bits for bit in range(32) if bits >> bit & 1}


def mask_of(grammar):
    mask = grammar.allocate_vocab_mask(WIDTH, 3, "cpu")
    assert mask.dtype == torch.int32 and mask.shape == (3, (WIDTH + 31) // 32) and (mask == -1).all()
    grammar.fill_vocab_mask(mask, 1)
    assert (mask[[0, 2]] == -1).all()
    return tokens_of(mask[1])


def get(backend, key):
    """As the manager does: from the cache, or compiled on a thread and then cached."""
    value, hit = backend.get_cached_or_future_value(key, False)
    if isinstance(value, Future):
        assert not hit
        value = value.result()
        backend.set_cache(key, value.copy())
    return value


KEYS = [
    (("json", json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})), '{"a": 12}', "x"),
    (("json", "$$ANY$$"), '[1, "two", null]', "x"),
    (("regex", "[0-9]{3}-[a-f]+"), "123-abc", "z"),
    (("ebnf", 'root ::= "(" root ")" | "x"'), "((x))", ")"),
    (("full_assistant_ebnf", 'root ::= "y"+'), "yyy", "x"),
    (("ebnf", 'start: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]+/'), "1+22", "+"),
    (
        ("structural_tag", json.dumps({"structures": [{"begin": "<f>", "schema": {"type": "integer"}, "end": "</f>"}],
                                       "triggers": ["<f>"]})),
        "I call <f>7</f> now",
        None,
    ),
    (
        # A tool without parameters.
        ("structural_tag", json.dumps({"type": "structural_tag", "format": {
            "type": "tag", "begin": "<t>", "content": {"type": "json_schema", "json_schema": None}, "end": "</t>"}})),
        "<t>[1]</t>",
        "x",
    ),
    (
        ("structural_tag", json.dumps({"structures": [{"begin": "<f>", "schema": None, "end": "</f>"}], "triggers": ["<f>"]})),
        "<f>7</f>",
        None,
    ),
]


@pytest.mark.parametrize(("key", "text", "not_first"), KEYS, ids=[f"{key[0]}-{text}" for key, text, _ in KEYS])
def test_every_kind_of_request(backend, vocabulary, key, text, not_first):
    grammar = get(backend, key)
    assert isinstance(grammar, base.BaseGrammarObject) and grammar.current_token is None and not grammar.finished
    if not_first is not None:
        assert vocabulary.encode(not_first)[0] not in mask_of(grammar)
    tokens = vocabulary.encode(text)
    for token in tokens:
        assert token in mask_of(grammar)
        grammar.accept_token(token)
        assert grammar.current_token == token
    assert set(vocabulary.eos) <= mask_of(grammar)
    grammar.accept_token(vocabulary.eos[0])
    assert grammar.is_terminated()
    # Nothing counts behind the end, which can be undone like any token.
    grammar.accept_token(7)
    grammar.rollback(1)
    assert not grammar.is_terminated() and set(vocabulary.eos) <= mask_of(grammar)
    # The next request with this key begins at the beginning.
    again, hit = backend.get_cached_or_future_value(key, False)
    assert hit and again.grammar_stats.is_cache_hit and tokens[0] in mask_of(again)
    assert again.grammar_stats.dispatch_type in key[0]


def test_two_requests_share_nothing_that_changes(backend, vocabulary):
    first = get(backend, ("regex", "ab[0-9]"))
    second = get(backend, ("regex", "ab[0-9]"))
    first.accept_token(vocabulary.encode("ab")[0])
    assert mask_of(first) != mask_of(second)


def test_a_wrong_token_is_an_error_and_changes_nothing(backend, vocabulary):
    grammar = get(backend, ("regex", "abc[0-9]"))
    before = mask_of(grammar)
    for wrong in (vocabulary.encode("7")[0], WIDTH + 3, -1):
        with pytest.raises(ValueError):
            grammar.accept_token(wrong)
        assert mask_of(grammar) == before


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (("json", '{"type": '), ""),
        (("json", '{"type": "nonsense"}'), "type"),
        (("regex", "a("), "closed"),
        (("ebnf", "root ::= missing"), "missing"),
        (("ebnf", "no grammar at all"), "grammar"),
        (("structural_tag", "{"), ""),
        (("structural_tag", '{"type": "structural_tag", "format": {"type": "no such"}}'), "no such"),
        (("regex", "a\0b"), "NUL"),
    ],
    ids=str,
)
def test_what_is_wrong_is_told_to_the_client(backend, key, words):
    grammar = get(backend, key)
    assert isinstance(grammar, base.InvalidGrammarObject) and words in grammar.error_message
    again, hit = backend.get_cached_or_future_value(key, False)
    assert hit and isinstance(again, base.InvalidGrammarObject)


def test_a_finish_cannot_be_promised(backend):
    refused = get(backend, ("json", '{"type": "null", "x-maskwright": {"finish": true}}'))
    assert isinstance(refused, base.InvalidGrammarObject) and "/x-maskwright/finish" in refused.error_message
    assert isinstance(get(backend, ("json", '{"type": "null", "x-maskwright": {"finish": false}}')), plugin.Grammar)


def test_what_others_refuse(backend):
    schema = {"type": "array", "uniqueItems": True, "items": {"type": "integer", "multipleOf": 3, "not": {"const": 6}}}
    assert isinstance(get(backend, ("json", json.dumps(schema))), plugin.Grammar)


def test_a_batch_is_filled_at_once(backend):
    grammars = [get(backend, ("regex", f"[a-{'bcdef'[n % 5]}]+{n}")) for n in range(20)]
    mask = grammars[0].allocate_vocab_mask(WIDTH, 41, "cpu")
    grammars[0].fill_vocab_mask_batched([base.GrammarRow(2 * n, one) for n, one in enumerate(grammars)], mask)
    for n, grammar in enumerate(grammars):
        assert tokens_of(mask[2 * n]) == set(grammar.matcher.allowed_tokens())
        assert (mask[2 * n + 1] == -1).all()
    grammars[0].reset_vocab_mask(mask)
    assert (mask == -1).all()


def test_a_model_that_is_narrower_than_its_tokenizer(tokenizer):
    grammar = get(plugin.Backend(tokenizer, 1000), ("regex", "[a-z]+"))
    mask = grammar.allocate_vocab_mask(1000, 3, "cpu")
    grammar.fill_vocab_mask(mask, 1)
    grammar.fill_vocab_mask_batched([base.GrammarRow(2, grammar)], mask)
    expected = {token for token in grammar.matcher.allowed_tokens() if token < 1024}
    assert tokens_of(mask[1]) == tokens_of(mask[2]) == expected and (mask[0] == -1).all()


@needs_tensors
def test_masks_are_applied(backend, vocabulary):
    grammar = get(backend, ("regex", "[0-9]"))
    mask = grammar.allocate_vocab_mask(WIDTH, 2, "cpu")
    grammar.fill_vocab_mask(mask, 0)
    for one in (grammar, backend):
        logits = torch.zeros(2, WIDTH)
        one.apply_vocab_mask(logits=logits, vocab_mask=one.move_vocab_mask(mask, "cpu"))
        assert set(torch.nonzero(torch.isfinite(logits[0])).flatten().tolist()) == tokens_of(mask[0])
        assert torch.isfinite(logits[1]).all()


def test_tokens_are_filtered(backend):
    mask = backend.allocate_vocab_mask(WIDTH, 2, "cpu")
    backend.set_token_filter(mask, [0, 31, 32, 100], 1, is_allowed=True)
    assert tokens_of(mask[1]) == {0, 31, 32, 100} and (mask[0] == -1).all()
    backend.set_token_filter(mask, [31, 100], 1, is_allowed=False, reset_vocab_mask=False)
    assert tokens_of(mask[1]) == {0, 32}
    backend.set_token_filter(mask, [63], 1, is_allowed=False)
    assert tokens_of(mask[1]) == set(range(mask.shape[1] * 32)) - {63}
    assert backend.is_support_token_filter


def test_a_tree_of_drafts(backend, vocabulary):
    """Node 0 was accepted before; it has children 1 and 2, and 3 hangs below 1."""
    traverse_tree = pytest.importorskip("sglang.srt.speculative.spec_utils", exc_type=ImportError).traverse_tree
    grammar = get(backend, ("regex", "x(ab|cd)[0-9]"))
    x, a, c, b, q = (vocabulary.encode(letter)[0] for letter in "xacbq")
    grammar.accept_token(x)
    rows = {}
    for wrong in (False, True):
        mask = grammar.allocate_vocab_mask(WIDTH, 4, "cpu")
        drafts = torch.tensor([x, a, q if wrong else c, b])
        traverse_tree(torch.tensor([1, 3, -1, -1]), torch.tensor([-1, 2, -1, -1]), drafts, grammar, mask, WIDTH)
        rows[wrong] = [tokens_of(row) for row in mask]
    plain = [mask_of(grammar)]
    for path in ([a], [c], [a, b]):
        for token in path:
            grammar.accept_token(token)
        plain.append(mask_of(grammar))
        grammar.rollback(len(path))
    assert rows[False] == plain
    everything = set(range((WIDTH + 31) // 32 * 32))
    assert rows[True] == [plain[0], plain[1], everything, plain[3]]
    assert mask_of(grammar) == plain[0]


def test_masks_are_built_while_drafts_are_verified(backend, vocabulary):
    """The function that SGLang calls behind the launch of a verification: the tokens of the step before are taken by its barrier, and a row is filled for each draft."""
    utils = pytest.importorskip("sglang.srt.speculative.spec_utils", exc_type=ImportError)
    if not hasattr(utils, "build_grammar_vocab_mask"):
        pytest.skip("the stand-in for SGLang does not have it; 'make test-engines' runs it")
    x, a, b, c, d, q = (vocabulary.encode(letter)[0] for letter in "xabcdq")
    end = vocabulary.eos[0]
    chain, short = get(backend, ("regex", "x(ab|cd)[0-9]")), get(backend, ("regex", "xa"))
    reqs = [SimpleNamespace(grammar=chain), SimpleNamespace(grammar=None), SimpleNamespace(grammar=short)]
    drafts = torch.tensor([[x, c, d, q], [a, b, c, d], [x, a, end, q]])

    def barrier():
        chain.accept_token(x)
        short.accept_token(x)

    left_over = object()
    info = SimpleNamespace(vocab_size=WIDTH, grammar_mask=left_over)
    made = utils.build_grammar_vocab_mask(reqs=reqs, tree=utils.GrammarTree.from_linear_chain(drafts), sampling_info=info, device="cpu", barrier=barrier)
    assert info.grammar_mask is None
    rows = [tokens_of(row) for row in made.vocab_mask]
    everything = set(range((WIDTH + 31) // 32 * 32))
    expected = [mask_of(chain)]
    for token in (c, d):
        chain.accept_token(token)
        expected.append(mask_of(chain))
    chain.rollback(2)
    # What is behind a draft that may not come, or behind the end, is never looked at; a request without a grammar is free.
    assert rows[:4] == [*expected, everything] and rows[4:8] == [everything] * 4
    assert rows[8] == mask_of(short) == {a} and rows[9] == set(vocabulary.eos) and rows[11] == everything
    assert not short.is_terminated() and chain.matcher.steps == 1


def test_jumping_forward(backend, vocabulary):
    grammar = get(backend, ("regex", "abc=[0-9]"))
    helper = grammar.try_jump_forward(None)
    assert grammar.jump_forward_str_state(helper) == ("abc=", -1)
    old, new = vocabulary.encode("a") + vocabulary.encode("b"), vocabulary.encode("ab") + vocabulary.encode("c=")
    for token in old:
        grammar.accept_token(token)
    grammar.jump_and_retokenize(old, new, -1)
    assert grammar.try_jump_forward(None) is None and vocabulary.encode("7")[0] in mask_of(grammar)


def test_jumping_forward_completes_a_character_first(backend, vocabulary):
    grammar = get(backend, ("regex", "(é|è) =[0-9]"))
    letter = "é".encode()
    first = next(token for token in range(vocabulary.size) if vocabulary.token_bytes(token) == letter[:1])
    grammar.accept_token(first)
    assert grammar.try_jump_forward(None) is None or grammar.try_jump_forward(None)[0] == []
    other = get(backend, ("regex", "é =[0-9]"))
    other.accept_token(first)
    suffix, text = other.try_jump_forward(None)
    assert vocabulary.decode(suffix) == letter[1:] and " =".startswith(text)


def test_jumping_forward_keeps_no_blank_that_belongs_to_the_next_token(backend, vocabulary, tokenizer):
    grammar = get(backend, ("regex", "name: (Ada|Bob)"))
    suffix, text = grammar.try_jump_forward(tokenizer)
    # ` Ada` and ` Bob` are tokens, so the blank is theirs.
    assert suffix == [] and text == "name:"
    for token in vocabulary.encode(text):
        grammar.accept_token(token)
    assert grammar.try_jump_forward(tokenizer) is None
    for token in vocabulary.encode(" Ada"):
        grammar.accept_token(token)
    assert grammar.try_jump_forward(tokenizer) is None


def test_the_plug_in_is_found():
    plugins = pytest.importorskip("sglang.srt.plugins")
    function, package = plugins.load_plugins_by_group("sglang.srt.plugins")["maskwright"]
    assert package == "maskwright" and function is _plugins.sglang


def test_the_name_is_known_after_registering(tokenizer, vocabulary, serving):
    _plugins.sglang()
    _plugins.sglang()
    assert GRAMMAR_BACKEND_CHOICES.count("maskwright") == 1
    serving(constrained_json_disable_any_whitespace=True)
    made = base.create_grammar_backend(None, tokenizer, WIDTH, set(vocabulary.eos))
    assert isinstance(made, plugin.Backend)
    grammar = get(made, ("json", '{"type": "object"}'))
    grammar.accept_token(vocabulary.encode("{")[0])
    assert vocabulary.encode(" ")[0] not in mask_of(grammar)


def test_the_grammar_waits_for_the_end_of_reasoning(tokenizer, vocabulary, serving):
    plugin.register()
    serving(reasoning_parser="deepseek-r1")
    made = base.create_grammar_backend(None, tokenizer, WIDTH, set(vocabulary.eos))
    assert type(made).__name__ == "ReasonerGrammarBackend"
    value, _ = made.get_cached_or_future_value(("regex", "[0-9]"), True)
    grammar = value.result()
    # Anything may be thought.
    thoughts = [vocabulary.encode(text)[0] for text in ("x", "7", "{")]
    mask = grammar.allocate_vocab_mask(WIDTH, 1, "cpu")
    for token in thoughts:
        grammar.fill_vocab_mask(mask, 0)
        assert (mask == -1).all() and not grammar.is_terminated()
        grammar.accept_token(token)
    for token in made.think_end_ids:
        grammar.accept_token(token)
    grammar.fill_vocab_mask(mask, 0)
    assert tokens_of(mask[0]) == {vocabulary.encode(digit)[0] for digit in "0123456789"}
    # Back into the thoughts, and out again.
    grammar.accept_token(vocabulary.encode("7")[0])
    grammar.rollback(1 + len(made.think_end_ids))
    mask.fill_(-1)
    grammar.fill_vocab_mask(mask, 0)
    assert (mask == -1).all()
    # With strict thinking there may be no grammar, and then the backend is asked for masks.
    grammar = made._make_grammar_object(None, True)
    mask = grammar.move_vocab_mask(grammar.allocate_vocab_mask(WIDTH, 1, "cpu"), "cpu")
    assert (mask == -1).all() and callable(grammar.apply_vocab_mask)


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_limit_ends_its_request_and_not_the_batch(tokenizer, vocabulary, is_batch):
    backend = plugin.Backend(tokenizer, WIDTH, set(vocabulary.eos))
    good = get(backend, ("regex", "[0-9]{2}"))
    backend.compiler = mw.Compiler(backend.compiler.vocabulary, mask_steps=5)
    bad = get(backend, ("ebnf", 'root ::= "x" r\nr ::= ([ab] ("ba" | r) (r | "b")){0,4}'))
    mask = good.allocate_vocab_mask(WIDTH, 2, "cpu")
    entries = [base.GrammarRow(0, bad), base.GrammarRow(1, good)]
    if is_batch:
        plugin.Grammar.fill_vocab_mask_batched(entries, mask)
    else:
        for entry in entries:
            entry.grammar.fill_vocab_mask(mask, entry.row)
    assert tokens_of(mask[0]) == set(vocabulary.eos)
    assert tokens_of(mask[1]) == set(good.matcher.allowed_tokens())
    # SGLang aborts a request whose token is refused with a ValueError, and shows its message.
    with pytest.raises(ValueError, match="mask_steps"):
        bad.accept_token(vocabulary.eos[0])
    assert isinstance(bad._met[0], mw.LimitError) and bad.matcher.steps == 0
    good.accept_token(vocabulary.encode("12")[0])


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("said", ["1", "0"])
def test_masks_are_computed_while_the_model_thinks(tokenizer, vocabulary, monkeypatch, said, batched):
    monkeypatch.setenv("MASKWRIGHT_AHEAD", said)
    backend = plugin.Backend(tokenizer, WIDTH, set(vocabulary.eos))
    schema = {"type": "object", "properties": {"a": {"enum": ["red", "green", "blue"]}, "b": {"type": "integer"}}, "required": ["a", "b"]}
    grammar = get(backend, ("json", json.dumps(schema)))
    mask = grammar.allocate_vocab_mask(WIDTH, 1, "cpu")

    def fill():
        if batched:
            plugin.Grammar.fill_vocab_mask_batched([SimpleNamespace(grammar=grammar, row=0)], mask)
        else:
            grammar.fill_vocab_mask(mask, 0)
        return tokens_of(mask[0])

    for token in vocabulary.encode('{"a": "green", "b": 7}'):
        assert token in fill()
        grammar.accept_token(token)

    def prepared():
        return backend.compiler.statistics()["matching"]["prepared"]

    deadline = time.monotonic() + 30
    while said == "1" and prepared() == 0 and time.monotonic() < deadline:
        fill()
        time.sleep(0.01)
    assert (prepared() > 0) == (said == "1")


@pytest.mark.parametrize("kind", ["json", "regex", "ebnf", "structural_tag"])
@pytest.mark.parametrize("text", ["", "{", "[" * 200_000, '{"a":' * 200_000, "\ud800", "\0", "(" * 200_000, '{"type": "structural_tag", "format": ' + "[" * 200_000], ids=range(8))
def test_whatever_is_asked_for_the_scheduler_lives_on(backend, vocabulary, kind, text):
    # What is raised here would end the scheduler of older versions. SGLang's own look at the text, behind this, raises by itself where JSON nests too deep, and aborts the request.
    answer = getattr(backend, f"dispatch_{kind}")(text)
    assert isinstance(answer, (base.InvalidGrammarObject, plugin.Grammar))
    if isinstance(answer, base.InvalidGrammarObject):
        assert answer.error_message
    assert mask_of(get(backend, ("regex", "[0-9]")))


def test_what_a_constraint_does_not_say_is_logged_once(tokenizer, caplog):
    backend = plugin.Backend(tokenizer, WIDTH)
    for _ in range(2):
        assert isinstance(backend.dispatch_json('{"type": "string", "format": "guid"}'), plugin.Grammar)
    assert caplog.text.count("did you mean uuid?") == 1
