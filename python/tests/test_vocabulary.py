"""Vocabularies from every source."""

from __future__ import annotations

import base64
import json
import tempfile
import unittest
from pathlib import Path

import maskwright as mw
from support import ASSETS, llama, needs, needs_asset


class Tokens(unittest.TestCase):
    def test_lists_and_dicts(self):
        by_list = mw.Vocabulary.from_tokens([b"a", "é", None, b"<end>"], eos=3, size=40)
        by_dict = mw.Vocabulary.from_tokens({0: b"a", 1: "é".encode()}, eos=[3], specials={3: "<end>"}, size=40)
        by_name = mw.Vocabulary.from_tokens({0: b"a", 1: "é"}, eos=3, specials={"<end>": 3}, size=40)
        for vocabulary in (by_list, by_dict, by_name):
            self.assertEqual((vocabulary.size, vocabulary.words, len(vocabulary)), (40, 2, 3))
            self.assertEqual((vocabulary.eos, vocabulary.specials), ([3], {"<end>": 3}))
            self.assertEqual(vocabulary.token_bytes(1), "é".encode())
            self.assertEqual((vocabulary.token_bytes(2), vocabulary.token_bytes(3)), (b"", b""))
            self.assertEqual(vocabulary.special_name(3), "<end>")
            self.assertTrue(vocabulary.is_special(3) and not vocabulary.is_special(0))
            self.assertEqual(vocabulary.decode([0, 1, 3]), "aé".encode())
            self.assertFalse(vocabulary.can_encode)
            self.assertEqual(vocabulary.fingerprint, by_list.fingerprint)
        self.assertNotEqual(by_list.fingerprint, mw.Vocabulary.from_tokens([b"a"]).fingerprint)
        self.assertIn("3 tokens, size 40, eos [3]", repr(by_list))

    def test_wrong_tokens(self):
        with self.assertRaises(mw.VocabularyError):
            mw.Vocabulary.from_tokens([])
        with self.assertRaises(mw.VocabularyError):
            mw.Vocabulary.from_tokens({1 << 30: b"a"})
        with self.assertRaises(OverflowError):
            mw.Vocabulary.from_tokens({-1: b"a"})
        with self.assertRaises(TypeError):
            mw.Vocabulary.from_tokens({0: 5.0})
        with self.assertRaisesRegex(mw.VocabularyError, "does not know how text is cut"):
            mw.Vocabulary.from_tokens([b"a"]).encode("a")

    def test_wrong_files(self):
        with self.assertRaises(mw.VocabularyError):
            mw.Vocabulary.load("there/is/no/such/file.json")
        with self.assertRaisesRegex(ValueError, "known are tokenizer.json"):
            mw.Vocabulary.parse(b"", "xml")
        for name in ("tokenizer.json", "tiktoken", "sentencepiece", "gguf"):
            for content in (b"", b"{", b"\xff" * 50, b"GGUF" + b"\xff" * 40):
                with self.assertRaises(mw.VocabularyError, msg=f"{name} {content!r}"):
                    mw.Vocabulary.parse(content, name)
        with self.assertRaisesRegex(TypeError, "no way to a vocabulary"):
            mw.Vocabulary.from_tokenizer(object())

    def test_ranks(self):
        ranks = b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate([b"a", b"b", b"ab"]))
        vocabulary = mw.Vocabulary.parse(ranks, "tiktoken", specials=[(3, "<end>")], eos=[3])
        self.assertEqual((vocabulary.token_bytes(2), vocabulary.eos, vocabulary.format), (b"ab", [3], "tiktoken rank file"))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.tiktoken"
            path.write_bytes(ranks)
            self.assertEqual(mw.Vocabulary.load(path, specials=[(3, "<end>")], eos=[3]).fingerprint, vocabulary.fingerprint)
            self.assertEqual(mw.Vocabulary.from_tokenizer(path).token_bytes(0), b"a")

    def test_a_smaller_model(self):
        tokens = {number: b"%d" % number for number in range(10)}
        vocabulary = mw.Vocabulary.from_tokenizer(tokens, eos=9, size=6)
        self.assertEqual((vocabulary.size, len(vocabulary), vocabulary.eos), (6, 6, []))
        self.assertEqual(vocabulary.token_bytes(5), b"5")


class Real(unittest.TestCase):
    @needs_asset("llama3_1")
    def test_tokenizer_json(self):
        vocabulary = llama()
        self.assertEqual((vocabulary.size, vocabulary.format), (128256, "tokenizer.json"))
        text = '{"name": "Ada", "π": [1, 2.5]}'
        tokens = vocabulary.encode(text)
        self.assertEqual(vocabulary.decode(tokens).decode(), text)
        content = (ASSETS / "llama3_1" / "tokenizer.json").read_bytes()
        parsed = mw.Vocabulary.parse(content, "tokenizer.json", eos=[128001, 128009], size=128300)
        self.assertEqual((parsed.eos, parsed.size), ([128001, 128009], 128300))
        self.assertEqual(parsed.encode(text), tokens)

    @needs_asset("llama3_1")
    @needs("tokenizers")
    def test_tokenizers(self):
        import tokenizers

        path = ASSETS / "llama3_1" / "tokenizer.json"
        theirs = tokenizers.Tokenizer.from_file(str(path))
        vocabulary = mw.Vocabulary.from_tokenizer(theirs, eos=128009)
        self.assertEqual(vocabulary.fingerprint, llama().fingerprint)

    @needs_asset("llama3_1")
    @needs("transformers")
    def test_transformers(self):
        from transformers import PreTrainedTokenizerFast

        path = ASSETS / "llama3_1" / "tokenizer.json"
        theirs = PreTrainedTokenizerFast(tokenizer_file=str(path), eos_token="<|eot_id|>")
        vocabulary = mw.Vocabulary.from_tokenizer(theirs)
        self.assertEqual(vocabulary.fingerprint, llama().fingerprint)
        theirs.add_special_tokens({"additional_special_tokens": ["<mine>"]})
        self.assertEqual(mw.Vocabulary.from_tokenizer(theirs).specials["<mine>"], 128256)

    @needs_asset("smollm2")
    def test_gguf(self):
        vocabulary = mw.Vocabulary.load(ASSETS / "smollm2")
        self.assertEqual(vocabulary.format, "GGUF file")
        self.assertTrue(vocabulary.eos and vocabulary.chat_template)
        self.assertEqual(vocabulary.decode(vocabulary.encode("Hello")), b"Hello")

    def test_known_encodings(self):
        vocabulary = mw.Vocabulary.load("r50k_base")
        self.assertEqual((vocabulary.size, vocabulary.eos), (50257, [50256]))

    @needs("tiktoken")
    def test_tiktoken(self):
        import tiktoken

        ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256}
        theirs = tiktoken.Encoding("mine", pat_str=r".", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 300})
        vocabulary = mw.Vocabulary.from_tokenizer(theirs)
        self.assertEqual((vocabulary.size, vocabulary.eos, vocabulary.token_bytes(256)), (301, [300], b"ab"))
        self.assertEqual(len(vocabulary), 258)

    def test_tekken(self):
        tokens = [bytes([byte]) for byte in range(256)] + [b"th", b" the"]
        vocab = [{"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None} for rank, token in enumerate(tokens)]
        config = {"pattern": r" ?\p{L}+|\s|.", "default_vocab_size": 261, "default_num_special_tokens": 3, "version": "v3"}
        file = json.dumps({"config": config, "vocab": vocab})
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "tekken.json").write_text(file)
            vocabulary = mw.Vocabulary.load(folder)
        self.assertEqual((vocabulary.size, vocabulary.eos, vocabulary.format), (261, [2], "tekken.json"))
        self.assertEqual(vocabulary.encode("the the"), [3 + 256, 3 + ord("e"), 3 + 257])
        self.assertEqual(mw.Vocabulary.parse(file.encode(), "tekken.json").token_bytes(260), b" the")
        with self.assertRaisesRegex(mw.VocabularyError, "there are 3 special tokens, and 2 tokens in all"):
            mw.Vocabulary.parse(file.replace("261", "2").encode(), "tekken.json")

    @needs("sentencepiece")
    def test_sentencepiece(self):
        import io

        import sentencepiece

        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["the cat sat on the mat", "a dog ran to the cat"] * 30),
            model_writer=model,
            vocab_size=60,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        theirs = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        vocabulary = mw.Vocabulary.from_tokenizer(theirs)
        self.assertEqual((vocabulary.size, vocabulary.eos), (theirs.vocab_size(), [theirs.eos_id()]))
        self.assertEqual(vocabulary.format, "SentencePiece model")
        piece = theirs.encode("cat")[-1]
        self.assertEqual(vocabulary.token_bytes(piece).decode(), theirs.id_to_piece(piece).replace("▁", " "))

    @needs_asset("llama3_1")
    def test_forced_tokens_are_the_tokenizers_own(self):
        vocabulary = llama()
        schema = {"type": "object", "properties": {"temperature": {"type": "integer"}}, "required": ["temperature"]}
        constraint = mw.json_schema(schema, whitespace="compact", strictness="closed")
        matcher = mw.Compiler(vocabulary).compile(constraint).matcher()
        text = json.dumps({"temperature": 21}, separators=(",", ":"))
        tokens, at, forced = vocabulary.encode(text), 0, 0
        while at < len(tokens):
            _, ahead = matcher.forced_tokens(tokens[:at])
            self.assertEqual(ahead, tokens[at : at + len(ahead)])
            forced += len(ahead)
            for token in ahead or tokens[at : at + 1]:
                matcher.accept(token)
                at += 1
        self.assertTrue(matcher.is_accepting())
        self.assertGreater(forced, 0)


if __name__ == "__main__":
    unittest.main()
