"""Vocabularies of tokenizers that only engines bring along: those of Mistral, as mistral_common, transformers and vLLM have them."""

import pathlib

import pytest

import maskwright as mw

mistral_common = pytest.importorskip("mistral_common")

TEXTS = ["Hello, world", '{"name": "Ada", "age": 36}', "  two  blanks\n\n\tand 1234567 tabs", "Grüße, 你好, 👩‍👩‍👧 don't", "fn main() { println!(\"{}\", 1_000); }"]


def files():
    data = pathlib.Path(mistral_common.__file__).parent / "data"
    return sorted([*data.glob("tekken*.json"), *data.glob("*.model.v*")])


def loaded(path):
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    try:
        return MistralTokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 what a version of it cannot read is no business of ours
        pytest.skip(f"mistral_common itself cannot read it: {error}")


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_tokens_and_texts(path):
    theirs = loaded(path)
    inner = theirs.instruct_tokenizer.tokenizer
    for tokenizer in (theirs, inner):
        vocabulary = mw.Vocabulary.from_tokenizer(tokenizer)
        assert (vocabulary.size, vocabulary.eos) == (inner.n_words, [inner.eos_id])
    for text in TEXTS:
        tokens = vocabulary.encode(text)
        assert b"".join(vocabulary.token_bytes(token) for token in tokens).decode() == text
        if path.name.startswith("tekken"):
            assert tokens == inner.encode(text, bos=False, eos=False), text
    if path.name.startswith("tekken"):
        from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy

        for token in range(inner.n_words):
            if inner.is_special(token):
                assert vocabulary.specials[inner.id_to_piece(token)] == token
            elif token % 37 == 0:
                assert vocabulary.token_bytes(token) == inner.id_to_byte_piece(token, SpecialTokenPolicy.KEEP)


def tekken():
    found = [path for path in files() if path.name.startswith("tekken")]
    if not found:
        pytest.skip("this version brings no file of that kind")
    return found[-1]


def test_transformers():
    module = pytest.importorskip("transformers.tokenization_mistral_common")
    tokenizer = module.MistralCommonBackend(str(tekken()))
    vocabulary = mw.Vocabulary.from_tokenizer(tokenizer)
    assert vocabulary.eos == [tokenizer.eos_token_id]
    assert vocabulary.encode(TEXTS[1]) == tokenizer.encode(TEXTS[1], add_special_tokens=False)


def test_vllm():
    module = pytest.importorskip("vllm.tokenizers.mistral")
    from mistral_common.protocol.instruct.validator import ValidationMode
    from transformers.tokenization_mistral_common import MistralCommonBackend

    tokenizer = module.MistralTokenizer(MistralCommonBackend(str(tekken()), mode=ValidationMode.test))
    vocabulary = mw.Vocabulary.from_tokenizer(tokenizer, size=tokenizer.vocab_size + 64)
    assert (vocabulary.size, vocabulary.eos) == (tokenizer.vocab_size + 64, [tokenizer.eos_token_id])
    matcher = mw.Compiler(vocabulary).compile(mw.json_schema({"const": {"a": [1, 2]}}, whitespace="compact")).matcher()
    for token in tokenizer.encode('{"a":[1,2]}', add_special_tokens=False):
        matcher.accept(token)
    assert matcher.is_accepting()
