"""The logits processor: alone, with rows as generate makes them, and in generate itself."""

import json
import math

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import maskwright as mw
from maskwright.transformers import LogitsProcessor, WeightedLogitsProcessor, vocabulary

# Tokens 0 to 9 are digits, then letters, brackets and the like; 30 ends a text and 31 is padding.
TEXTS = [*"0123456789", *"abcdefgh", "ab", "12", "{", "}", "[", "]", ",", ":", '"', " "]
END, PAD = 30, 31
WIDTH = 40


@pytest.fixture(scope="module")
def compiler():
    tokens = {number: text.encode() for number, text in enumerate(TEXTS)}
    return mw.Compiler(mw.Vocabulary.from_tokens(tokens, eos=END, specials={END: "<end>", PAD: "<pad>"}, size=WIDTH))


def allowed(out):
    """For each row the tokens that are not ruled out."""
    return [torch.nonzero(torch.isfinite(row)).flatten().tolist() for row in out]


def plain(compiled, text):
    """What a matcher allows behind a text, without any processor."""
    matcher = compiled.matcher()
    for token in text:
        matcher.accept(token)
    return matcher.allowed_tokens()


def ask(processor, rows):
    return allowed(processor(torch.tensor(rows), torch.zeros(len(rows), WIDTH)))


def test_it_advances_by_itself(compiler):
    compiled = compiler.compile(mw.regex("[0-9]{2}"))
    processor = LogitsProcessor(compiled)
    prompt = [5, 5, 11]
    for text in ([], [3], [3, 4]):
        assert ask(processor, [prompt + text]) == [plain(compiled, text)]
    assert plain(compiled, [3, 4]) == [END]


def test_behind_the_end_comes_the_end(compiler):
    processor = LogitsProcessor(compiler.compile(mw.regex("1|23")))
    ask(processor, [[7], [7]])
    ask(processor, [[7, 1], [7, 2]])
    rows = ask(processor, [[7, 1, END], [7, 2, 3]])
    assert rows == [[END], [END]]
    rows = ask(processor, [[7, 1, END, PAD], [7, 2, 3, END]])
    assert rows == [[END], [END]]


def test_constraints_for_each_prompt_and_left_padding(compiler):
    digits, letters = compiler.compile(mw.regex("[0-9]+")), compiler.compile(mw.regex("[a-c]+"))
    processor = LogitsProcessor([digits, None, letters])
    prompts = [[PAD, PAD, 5], [PAD, 10, 11], [1, 2, 3]]
    assert ask(processor, prompts) == [plain(digits, []), list(range(WIDTH)), plain(letters, [])]
    rows = [prompt + [token] for prompt, token in zip(prompts, [4, 28, 10])]
    assert ask(processor, rows) == [plain(digits, [4]), list(range(WIDTH)), plain(letters, [10])]


def test_a_list_has_one_constraint_for_each_prompt(compiler):
    digits, letters = compiler.compile(mw.regex("[0-9]")), compiler.compile(mw.regex("[a-c]"))
    processor = LogitsProcessor([digits, letters])
    # Two beams for each.
    assert ask(processor, [[1], [1], [2], [2]]) == [plain(digits, [])] * 2 + [plain(letters, [])] * 2
    with pytest.raises(ValueError, match="2 constraints and 3 rows"):
        LogitsProcessor([digits, letters])(torch.zeros(3, 1, dtype=torch.long), torch.zeros(3, WIDTH))
    with pytest.raises(ValueError, match="empty"):
        LogitsProcessor([])


def test_beams_are_exchanged_and_forked(compiler):
    compiled = compiler.compile(mw.regex("(ab|12)[0-9]{2}(x|7)?"))
    processor = LogitsProcessor(compiled)
    steps = [
        [[], [], []],
        [[18], [19], [10]],
        # All three go on from the second.
        [[19, 1], [19, 2], [19, 3]],
        # Rows change places; two share a beginning.
        [[19, 3, 0], [19, 1, 5], [19, 3, 4]],
        [[19, 1, 5, 7], [19, 3, 4, END], [19, 3, 0, 7]],
    ]
    for texts in steps:
        expected = [[END] if END in text else plain(compiled, text) for text in texts]
        assert ask(processor, [[9, *text] for text in texts]) == expected


def test_a_beam_without_hope_gets_nothing_and_does_not_stop_the_others(compiler):
    compiled = compiler.compile(mw.regex("1[0-9]"))
    processor = LogitsProcessor(compiled)
    ask(processor, [[9], [9]])
    # There is one way only, and beam search fills the second row with something.
    assert ask(processor, [[9, 1], [9, 17]]) == [plain(compiled, [1]), []]
    assert ask(processor, [[9, 1, 4], [9, 17, 3]]) == [plain(compiled, [1, 4]), []]


def test_what_was_overruled_is_said(compiler):
    processor = LogitsProcessor(compiler.compile(mw.regex("[0-9]+")))
    ask(processor, [[9], [8]])
    with pytest.raises(mw.TokenError, match="overruled"):
        ask(processor, [[9, 1], [8, 17]])


def test_going_back_and_forth(compiler):
    """As in assisted generation: several places are asked for, and some of them are given up."""
    compiled = compiler.compile(mw.json_schema({"type": "array", "items": {"type": "integer"}}, whitespace="compact"))
    processor = LogitsProcessor(compiled)
    path = [22, 1, 24, 4, 5, 24, 6, 23]
    for length in (0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 1, 7, 8, 3):
        assert ask(processor, [[9, *path[:length]]]) == [plain(compiled, path[:length])]
    # Another continuation of a beginning that was passed long ago.
    assert ask(processor, [[9, 22, 1, 1]]) == [plain(compiled, [22, 1, 1])]


def test_it_can_be_used_again(compiler):
    compiled = compiler.compile(mw.regex("[0-9]{2}"))
    processor = LogitsProcessor(compiled)
    # The third and the fourth are conversations that go on behind the prompts before.
    for prompt in ([9, 9], [9, 9], [9, 9, 3, 4, END, 8], [9, 9, 3, 4, END, 8, 3, 4, END, 8], [3]):
        for text in ([], [3], [3, 4]):
            assert ask(processor, [prompt + text]) == [plain(compiled, text)]
    # What was cut off goes on, unless that is not wanted.
    ask(processor, [[3]])
    ask(processor, [[3, 3]])
    assert ask(processor, [[3, 3, 4]]) == [[END]]
    processor.reset()
    assert ask(processor, [[3, 3, 4]]) == [plain(compiled, [])]


def test_stop_tokens_and_budget(compiler):
    digits = compiler.compile(mw.regex("[0-9]*"))
    assert ask(LogitsProcessor(digits, stop_tokens=[PAD]), [[9]]) == [sorted([*plain(digits, [])[:-1], PAD])]
    processor = LogitsProcessor(compiler.compile(mw.regex("1{4}|a")), budget=3)
    assert ask(processor, [[9]]) == [[10]]
    with pytest.raises(mw.BudgetError):
        LogitsProcessor(compiler.compile(mw.regex("1{4}")), budget=2)


def test_scores_are_copied_and_keep_their_dtype(compiler):
    processor = LogitsProcessor(compiler.compile(mw.regex("1")))
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        scores = torch.randn(1, WIDTH + 9).to(dtype)
        before = scores.clone()
        out = processor(torch.tensor([[9]]), scores)
        assert torch.equal(scores, before) and out.dtype == dtype and out.shape == scores.shape
        assert allowed(out) == [[1]]
        processor.reset()


@pytest.fixture(scope="module")
def model():
    """A model that knows nothing: what comes out is right because of the mask alone."""
    torch.manual_seed(7)
    config = transformers.LlamaConfig(
        vocab_size=WIDTH, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=128, bos_token_id=0, eos_token_id=END, pad_token_id=PAD,
    )
    return transformers.LlamaForCausalLM(config).eval()


def texts_of(model, compiled, prompts, **options):
    """Run generate; return what was written for each row."""
    width = max(map(len, prompts))
    ids = torch.tensor([[PAD] * (width - len(prompt)) + prompt for prompt in prompts])
    attention = (ids != PAD).long()
    processor = LogitsProcessor(compiled, budget=24)
    out = model.generate(
        input_ids=ids, attention_mask=attention, logits_processor=[processor], max_new_tokens=24, **options
    )
    texts = []
    for row in out[:, width:].tolist():
        assert END in row, "the text is complete within the budget"
        texts.append("".join(TEXTS[token] for token in row[: row.index(END)]))
    return texts


@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": False},
        {"do_sample": True, "temperature": 3.0},
        {"do_sample": True, "num_return_sequences": 3},
        {"num_beams": 3, "do_sample": False},
        {"num_beams": 4, "do_sample": False, "num_return_sequences": 4, "length_penalty": 0.1},
        {"num_beams": 3, "do_sample": True},
        {"do_sample": False, "repetition_penalty": 1.7},
        {"do_sample": False, "prompt_lookup_num_tokens": 3},
    ],
    ids=lambda options: " ".join(f"{key}={value}" for key, value in options.items()),
)
def test_generate(compiler, model, options):
    if transformers.__version__.startswith("4.") and options.keys() & {"num_beams", "prompt_lookup_num_tokens"}:
        pytest.skip("beams and prompt lookup need transformers 5; see maskwright/transformers.py")
    schema = {"type": "array", "items": {"type": "integer"}, "maxItems": 3}
    arrays = compiler.compile(mw.json_schema(schema, whitespace="compact"))
    words = compiler.compile(mw.choice(["abc", "a1", "gg"]))
    one = "prompt_lookup_num_tokens" in options
    prompts = [[1, 2, 3, 1, 2]] if one else [[1, 2, 3], [4], [22, 5, 24, 5]]
    for text in texts_of(model, arrays, prompts, **options):
        value = json.loads(text)
        assert isinstance(value, list) and len(value) <= 3 and all(isinstance(item, int) for item in value), text
    if not one:
        each = options.get("num_return_sequences", 1)
        texts = texts_of(model, [words, arrays, words], prompts, **options)
        for number, text in enumerate(texts):
            if number // each == 1:
                json.loads(text)
            else:
                assert text in ("abc", "a1", "gg")


def test_vocabulary_of_a_model(model):
    class Tokenizer:
        eos_token_id = 2

        class backend_tokenizer:
            @staticmethod
            def to_str():
                vocab = {**{text: number for number, text in enumerate("abc")}, "<end>": END}
                added = [{"id": END, "content": "<end>", "special": True, "single_word": False, "lstrip": False,
                          "rstrip": False, "normalized": False}]
                return json.dumps({
                    "version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": None, "post_processor": None,
                    "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
                    "model": {"type": "BPE", "vocab": vocab, "merges": []},
                })

    found = vocabulary(model, Tokenizer())
    assert found.size == WIDTH and found.eos == [END]


HOSTILE = 'root ::= "c" r\nr ::= ([ab] ("ba" | r) (r | "b")){0,4}'


def test_a_limit_ends_its_row_alone(compiler):
    small = mw.Compiler(compiler.vocabulary, mask_steps=5)
    good, bad = compiler.compile(mw.regex("[0-9]{3}")), small.compile(mw.ebnf(HOSTILE))
    processor = LogitsProcessor([good, bad])
    with pytest.warns(RuntimeWarning, match="mask_steps"):
        rows = ask(processor, [[7], [7]])
    assert rows == [plain(good, []), [END]]
    assert list(processor.failures) == [1] and isinstance(processor.failures[1], mw.LimitError)
    assert ask(processor, [[7, 1], [7, END]]) == [plain(good, [1]), [END]]
    assert list(processor.failures) == [1]
    # With nobody beside it the error is raised.
    with pytest.raises(mw.LimitError, match="mask_steps"):
        ask(LogitsProcessor(bad), [[7]])
    # Another prompt is another generation.
    processor = LogitsProcessor([good, bad])
    with pytest.warns(RuntimeWarning):
        ask(processor, [[8], [8]])
    with pytest.warns(RuntimeWarning):
        ask(processor, [[9], [9]])


def test_a_token_that_meets_a_limit_ends_its_row_alone(compiler):
    # The mask of the first token takes few steps, and taking it takes many.
    good, bad = compiler.compile(mw.regex("[0-9]{3}")), compiler.compile(mw.ebnf(HOSTILE))
    processor = LogitsProcessor([good, bad])
    ask(processor, [[7], [7]])
    state = processor._generation._groups[1][1]._states[()]
    small = mw.Compiler(compiler.vocabulary, mask_steps=1).compile(mw.ebnf(HOSTILE))
    state.matcher = small.matcher()
    with pytest.warns(RuntimeWarning, match="mask_steps"):
        rows = ask(processor, [[7, 1], [7, TEXTS.index("c")]])
    assert rows == [plain(good, [1]), [END]]


def test_weights_are_added_to_the_best(compiler):
    # a [0.5] or bc [0.25] or 12 [0.25], where 12 may come as one token or as two.
    compiled = compiler.compile(mw.pcfg('S -> "a" [0.5] | "bc" [0.25] | "12" [0.25]'))
    a, b, c, both = (TEXTS.index(text) for text in ("a", "b", "c", "12"))
    scores = torch.zeros(1, WIDTH)
    scores[0, a], scores[0, b], scores[0, both] = 1.0, 3.0, 2.0
    out = WeightedLogitsProcessor(compiled, lambda_=2.0, top_k=3)(torch.tensor([[7]]), scores)
    assert allowed(out) == [sorted([a, b, both])]
    for token, logit, share in ((a, 1.0, 0.5), (b, 3.0, 0.25), (both, 2.0, 0.25)):
        assert math.isclose(out[0, token].item(), logit + 2.0 * math.log(share), rel_tol=1e-5)
    # Rows go their own ways, and behind the end comes the end.
    processor = WeightedLogitsProcessor([compiled, None], lambda_=1.0)
    ask(processor, [[7], [7]])
    rows = ask(processor, [[7, b], [7, 3]])
    assert rows[0] == [c] and len(rows[1]) == WIDTH
    ask(processor, [[7, b, c], [7, 3, 3]])
    assert ask(processor, [[7, b, c, END], [7, 3, 3, 3]])[0] == [END]
    # Without an opinion it is a mask.
    assert ask(WeightedLogitsProcessor(compiled, lambda_=0.0), [[7]]) == [plain(compiled, [])]


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0])
def test_lambda_must_be_a_number(compiler, wrong):
    with pytest.raises(ValueError, match="lambda"):
        WeightedLogitsProcessor(compiler.compile(mw.pcfg("S -> a")), lambda_=wrong)


def test_the_mass_of_each_mask_is_noted(compiler):
    compiled = compiler.compile(mw.regex("[0-9]a"))
    processor = LogitsProcessor([compiled, None], mass=True)
    torch.manual_seed(3)
    texts, scores = [[[], []], [[3], [3]], [[3, 10], [3, 4]]], torch.randn(3, 2, WIDTH)
    for written, row in zip(texts, scores):
        processor(torch.tensor([[9, *text] for text in written]), row)
    assert len(processor.masses) == 3
    for at, (text, _) in enumerate(texts):
        shares = torch.softmax(scores[at, 0].double(), -1)
        expected = math.log(sum(shares[token].item() for token in plain(compiled, text)))
        assert math.isclose(processor.masses[at][0].item(), expected, abs_tol=1e-5)
        assert math.isnan(processor.masses[at][1].item()), "a row without a constraint has no mask"
    # Another prompt is another generation; and without being asked for, nothing is noted.
    processor(torch.tensor([[8], [8]]), scores[0])
    assert len(processor.masses) == 1
    silent = LogitsProcessor(compiled)
    ask(silent, [[9]])
    assert silent.masses == []


def test_masses_in_generate(compiler, model):
    compiled = compiler.compile(mw.choice(["abc", "a1", "gg"]))
    processor = LogitsProcessor(compiled, mass=True)
    ids = torch.tensor([[1, 2, 3], [4, 5, 6]])
    out = model.generate(
        input_ids=ids, attention_mask=torch.ones_like(ids), logits_processor=[processor], max_new_tokens=8, do_sample=False,
        output_logits=True, return_dict_in_generate=True,
    )
    masses = torch.stack(processor.masses)
    assert masses.shape == (len(out.logits), 2)
    for row, tokens in enumerate(out.sequences[:, ids.shape[1]:].tolist()):
        text = tokens[: tokens.index(END)] if END in tokens else tokens
        for at in range(len(text) + 1):
            shares = torch.softmax(out.logits[at][row].double(), -1)
            expected = math.log(sum(shares[token].item() for token in plain(compiled, text[:at])))
            assert math.isclose(masses[at, row].item(), expected, abs_tol=1e-4)
        assert masses[len(text) + 1 :, row].isnan().all(), "behind the end there is no mask"
    assert (masses.nansum(0) < -1.0).all(), "a model that knows nothing is bent by such a constraint"


def test_weights_in_generate(compiler, model):
    # The model knows nothing, so that the grammar decides if it counts a hundredfold.
    compiled = compiler.compile(mw.pcfg('S -> D [0.4] | D "," S [0.6]\nD -> "ab" [0.9] | "12" [0.1]'))
    ids = torch.tensor([[1, 2, 3], [4, 5, 6]])
    options = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 12, "do_sample": False}

    def texts(lambda_):
        processor = WeightedLogitsProcessor(compiled, lambda_=lambda_, budget=12, mass=True)
        out = model.generate(input_ids=ids, logits_processor=[processor], **options)[:, ids.shape[1] :].tolist()
        assert len(processor.masses) <= 12 and torch.stack(processor.masses)[0].isfinite().all()
        return ["".join(TEXTS[token] for token in row[: row.index(END)]) for row in out]

    for text in texts(100.0):
        assert set(text.split(",")) == {"ab"}, text
    for text in texts(0.0) + texts(1.0):
        assert set(text.split(",")) <= {"ab", "12"}, text
