"""Vocabularies of other people's tokenizers: every kind of transformers, and those of tiktoken, mlx-lm and llama-cpp-python."""

from __future__ import annotations

import io
import json
import tempfile
import types
import unittest
from functools import cache
from pathlib import Path

import maskwright as mw
from support import ASSETS, needs, needs_asset

#: For each encoding of tiktoken its ranks, its special tokens, and the width of a model with it.
ENCODINGS = {
    "r50k_base": (50_256, {"<|endoftext|>": 50_256}, 50_257),
    "p50k_base": (50_280, {"<|endoftext|>": 50_256}, 50_281),
    "p50k_edit": (50_280, {"<|endoftext|>": 50_256, "<|fim_prefix|>": 50_281, "<|fim_middle|>": 50_282, "<|fim_suffix|>": 50_283}, 50_284),
    "cl100k_base": (
        100_256,
        {"<|endoftext|>": 100_257, "<|fim_prefix|>": 100_258, "<|fim_middle|>": 100_259, "<|fim_suffix|>": 100_260, "<|endofprompt|>": 100_276},
        100_277,
    ),
    "o200k_base": (199_998, {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018}, 200_019),
}

SPACES = "a          b"
BYTES = [bytes([byte]) for byte in range(256)]


def ranks_of(vocabulary: mw.Vocabulary) -> dict[bytes, int]:
    return {vocabulary.token_bytes(token): token for token in range(vocabulary.size) if vocabulary.token_bytes(token)}


def gpt2_letters() -> list[str]:
    """The character for each byte in the files of byte-level tokenizers."""
    kept = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in kept]
    return [chr(byte if byte in kept else 256 + others.index(byte)) for byte in range(256)]


@cache
def sentencepiece_model(kind: str) -> bytes:
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat on the mat", "a dog ran to the cat", "grüße an die katze"] * 30),
        model_writer=model,
        model_type=kind,
        vocab_size=330,
        byte_fallback=True,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


class Tiktoken(unittest.TestCase):
    def test_every_known_encoding_is_whole(self):
        for name, (ranks, specials, size) in ENCODINGS.items():
            vocabulary = mw.Vocabulary.load(name)
            tokens = ranks_of(vocabulary)
            self.assertEqual((len(tokens), vocabulary.specials, vocabulary.size), (ranks, specials, size), name)
            self.assertEqual(len(vocabulary), ranks + len(specials), name)
            self.assertEqual(vocabulary.eos, [specials["<|endoftext|>"]], name)
            self.assertEqual(vocabulary.decode(vocabulary.encode(SPACES)).decode(), SPACES, name)
            for byte in BYTES:
                self.assertIn(byte, tokens, name)
        # Its special token is in the midst of the others.
        p50k = mw.Vocabulary.load("p50k_base")
        self.assertEqual([p50k.token_bytes(token) for token in range(50_257, 50_281)], [b" " * count for count in range(2, 26)])
        self.assertEqual(p50k.encode(SPACES), [64, 50_264, 275])

    def test_harmony(self):
        vocabulary = mw.Vocabulary.load("o200k_harmony")
        self.assertEqual((len(ranks_of(vocabulary)), vocabulary.size, len(vocabulary.specials)), (199_998, 201_088, 1_090))
        self.assertEqual([vocabulary.special_name(token) for token in (200_002, 200_012, 200_018)], ["<|return|>", "<|call|>", "<|reserved_200018|>"])

    @needs("tiktoken")
    def test_encodings_of_the_package(self):
        import tiktoken

        for name, (_, specials, size) in ENCODINGS.items():
            known = mw.Vocabulary.load(name)
            # Its files are on a server; so it is given the ranks.
            theirs = tiktoken.Encoding(name, pat_str=r" ?\S+|\s+", mergeable_ranks=ranks_of(known), special_tokens=specials)
            self.assertEqual(theirs.n_vocab, size)
            vocabulary = mw.Vocabulary.from_tokenizer(theirs)
            self.assertEqual((vocabulary.fingerprint, vocabulary.format), (known.fingerprint, "tiktoken rank file"), name)
            self.assertEqual(vocabulary.encode(SPACES), known.encode(SPACES))
        gpt2 = tiktoken.Encoding("gpt2", pat_str=r".", mergeable_ranks=ranks_of(mw.Vocabulary.load("r50k_base")), special_tokens={"<|endoftext|>": 50_256})
        self.assertTrue(mw.Vocabulary.from_tokenizer(gpt2).can_encode)

    @needs("tiktoken")
    def test_a_known_name_with_other_tokens(self):
        import tiktoken

        ranks = ranks_of(mw.Vocabulary.load("r50k_base"))
        specials = {"<|endoftext|>": 50_256, "<|im_start|>": 50_257}
        vocabulary = mw.Vocabulary.from_tokenizer(tiktoken.Encoding("r50k_base", pat_str=r".", mergeable_ranks=ranks, special_tokens=specials))
        self.assertEqual((vocabulary.specials, vocabulary.size, vocabulary.can_encode), (specials, 50_258, False))
        swapped = ranks | {b" the": ranks[b" of"], b" of": ranks[b" the"]}
        vocabulary = mw.Vocabulary.from_tokenizer(tiktoken.Encoding("r50k_base", pat_str=r".", mergeable_ranks=swapped, special_tokens={"<|endoftext|>": 50_256}))
        self.assertEqual(vocabulary.token_bytes(ranks[b" of"]), b" the")

    @needs("tiktoken")
    def test_special_tokens_among_the_others(self):
        import tiktoken

        ranks = {byte: at for at, byte in enumerate(BYTES)} | {b"ab": 258, b"abc": 300}
        theirs = tiktoken.Encoding("mine", pat_str=r"\w+|.", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 256, "<|tool|>": 257})
        vocabulary = mw.Vocabulary.from_tokenizer(theirs)
        self.assertEqual((vocabulary.size, len(vocabulary), vocabulary.eos), (301, 260, [256]))
        self.assertEqual((vocabulary.token_bytes(258), vocabulary.token_bytes(300), vocabulary.token_bytes(299)), (b"ab", b"abc", b""))


@needs("tokenizers")
@needs("transformers")
class Fast(unittest.TestCase):
    def fast(self, model, decoder, pre_tokenizer=None, **options):
        from tokenizers import Tokenizer
        from transformers import PreTrainedTokenizerFast

        tokenizer = Tokenizer(model)
        tokenizer.decoder = decoder
        if pre_tokenizer is not None:
            tokenizer.pre_tokenizer = pre_tokenizer
        return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **options)

    def agree(self, theirs, vocabulary):
        """Behind another token, each token is decoded to its bytes."""
        for token in range(len(theirs)):
            if vocabulary.is_special(token):
                continue
            text = vocabulary.token_bytes(token)
            if token in theirs.get_vocab().values() and text and not text.startswith(b" "):
                decoded = theirs.backend_tokenizer.decode([self.before, token], skip_special_tokens=False)
                self.assertEqual(decoded, (b"x" + text).decode("utf-8", "replace"), (token, text))

    def test_byte_level(self):
        from tokenizers import decoders, models, pre_tokenizers

        letters = gpt2_letters()
        vocab = {letter: at for at, letter in enumerate(letters)} | {letters[32] + "t": 256, "he": 257}
        model = models.BPE(vocab=vocab, merges=[(letters[32], "t"), ("h", "e")])
        theirs = self.fast(model, decoders.ByteLevel(), pre_tokenizers.ByteLevel(add_prefix_space=False), eos_token="</s>")
        theirs.add_tokens(["<think>"])
        vocabulary = mw.Vocabulary.from_tokenizer(theirs)
        self.assertEqual([vocabulary.token_bytes(token) for token in range(256)], BYTES)
        self.assertEqual((vocabulary.token_bytes(256), vocabulary.eos, vocabulary.specials), (b" t", [258], {"</s>": 258}))
        self.assertEqual(vocabulary.token_bytes(259), b"<think>")
        self.assertEqual(vocabulary.encode("he t"), theirs.encode("he t"))
        self.before = ord("x")
        self.agree(theirs, vocabulary)

    def test_sentencepiece_with_bytes(self):
        from tokenizers import decoders, models

        vocab = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{byte:02X}>": 3 + byte for byte in range(256)}
        vocab |= {text: 259 + at for at, text in enumerate(["▁", "t", "h", "e", "x", "▁t", "he", "é", "▁▁"])}
        model = models.BPE(vocab=vocab, merges=[("▁", "t"), ("h", "e"), ("▁", "▁")], byte_fallback=True, unk_token="<unk>", fuse_unk=True)
        decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
        theirs = self.fast(model, decoder, eos_token="</s>", bos_token="<s>", unk_token="<unk>")
        vocabulary = mw.Vocabulary.from_tokenizer(theirs)
        self.assertEqual([vocabulary.token_bytes(3 + byte) for byte in range(256)], BYTES)
        self.assertEqual([vocabulary.token_bytes(vocab[text]) for text in ("▁t", "▁▁", "é")], [b" t", b"  ", "é".encode()])
        self.assertEqual((vocabulary.specials, vocabulary.eos), ({"<unk>": 0, "<s>": 1, "</s>": 2}, [2]))
        self.before = vocab["x"]
        self.agree(theirs, vocabulary)

    def test_unigram(self):
        from tokenizers import decoders, models, pre_tokenizers

        pieces = [("<unk>", 0.0), ("</s>", 0.0), ("▁", -2.0), ("▁the", -3.0), ("x", -4.0), ("cat", -5.0)]
        space = {"replacement": "▁", "prepend_scheme": "always"}
        theirs = self.fast(models.Unigram(pieces, unk_id=0), decoders.Metaspace(**space), pre_tokenizers.Metaspace(**space), eos_token="</s>", unk_token="<unk>")
        vocabulary = mw.Vocabulary.from_tokenizer(theirs)
        self.assertEqual([vocabulary.token_bytes(token) for token in range(6)], [b"", b"", b" ", b" the", b"x", b"cat"])
        self.assertEqual((vocabulary.specials, vocabulary.eos), ({"<unk>": 0, "</s>": 1}, [1]))
        self.assertEqual(vocabulary.encode("xcat the"), [4, 5, 3])
        self.before = 4
        self.agree(theirs, vocabulary)

    def test_word_pieces_are_refused_by_class(self):
        from tokenizers import decoders, models
        from transformers import BertTokenizerFast

        vocab = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "[PAD]": 3, "[MASK]": 4, "run": 5, "##ning": 6}
        theirs = self.fast(models.WordPiece(vocab, unk_token="[UNK]"), decoders.WordPiece())
        refusal = f"made of {type(theirs).__name__}: .*WordPiece model does not say which bytes a token represents; give its tokens as a dict of bytes by number"
        with self.assertRaisesRegex(mw.VocabularyError, refusal):
            mw.Vocabulary.from_tokenizer(theirs)
        with self.assertRaisesRegex(mw.VocabularyError, "made of BertTokenizer"):
            mw.Vocabulary.from_tokenizer(BertTokenizerFast(vocab=vocab))

    def test_a_processor(self):
        from tokenizers import decoders, models

        inner = self.fast(models.BPE(vocab={"a": 0, "b": 1}, merges=[]), decoders.ByteLevel(), eos_token="</s>")
        processor = types.SimpleNamespace(tokenizer=inner, image_processor=object())
        self.assertEqual(mw.Vocabulary.from_tokenizer(processor).fingerprint, mw.Vocabulary.from_tokenizer(inner).fingerprint)

    @needs("mlx_lm")
    def test_mlx_lm(self):
        from mlx_lm.tokenizer_utils import NewlineTokenizer, TokenizerWrapper
        from tokenizers import decoders, models

        inner = self.fast(models.BPE(vocab={"a": 0, "b": 1, "<turn>": 2}, merges=[]), decoders.ByteLevel(), eos_token="</s>")
        wrapper = TokenizerWrapper(inner, eos_token_ids=[2])
        self.assertEqual(mw.Vocabulary.from_tokenizer(wrapper).eos, [2, 3])
        self.assertEqual(mw.Vocabulary.from_tokenizer(wrapper, eos=3).eos, [3])
        lines = TokenizerWrapper(NewlineTokenizer(tokenizer_object=inner.backend_tokenizer, eos_token="</s>"))
        with self.assertRaisesRegex(mw.VocabularyError, "TokenizerWrapper around NewlineTokenizer: it changes the text that its tokens decode to"):
            mw.Vocabulary.from_tokenizer(lines)


class Slow(unittest.TestCase):
    """Tokenizers of transformers that are written in Python."""

    @needs("sentencepiece")
    @needs("transformers")
    def test_sentencepiece(self):
        import sentencepiece
        from transformers.tokenization_utils_sentencepiece import SentencePieceBackend

        for kind in ("bpe", "unigram"):
            model = sentencepiece_model(kind)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "tokenizer.model"
                path.write_bytes(model)
                theirs = SentencePieceBackend(vocab_file=str(path), eos_token="</s>", bos_token="<s>", unk_token="<unk>")
            vocabulary = mw.Vocabulary.from_tokenizer(theirs)
            self.assertEqual(vocabulary.fingerprint, mw.Vocabulary.parse(model, "sentencepiece").fingerprint)
            self.assertEqual((vocabulary.format, vocabulary.eos), ("SentencePiece model", [theirs.eos_token_id]))
            pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
            self.assertEqual(vocabulary.encode(" the cat"), pieces.encode("the cat"))
            theirs.add_tokens(["<tool>"])
            theirs.add_special_tokens({"additional_special_tokens": ["<turn>"]})
            more = mw.Vocabulary.from_tokenizer(theirs)
            added = theirs.convert_tokens_to_ids("<tool>")
            self.assertEqual((more.token_bytes(added), more.specials["<turn>"]), (b"<tool>", added + 1))
            self.assertEqual([more.token_bytes(token) for token in range(added)], [vocabulary.token_bytes(token) for token in range(added)])
            self.assertEqual(more.eos, vocabulary.eos)

    @needs("sentencepiece")
    def test_numbers_of_its_own(self):
        """Models of fairseq have tokens in front of those of SentencePiece."""
        import sentencepiece

        class Offset:
            eos_token_id, added_tokens_decoder = 2, {}

            def __init__(self, model):
                self.sp_model = sentencepiece.SentencePieceProcessor(model_proto=model)
                self.first = ["<s>", "<pad>", "</s>", "<unk>"]
                self.vocab_size = self.sp_model.get_piece_size() + 1

            def convert_ids_to_tokens(self, token):
                return self.first[token] if token < 4 else self.sp_model.id_to_piece(token - 1)

        theirs = Offset(sentencepiece_model("unigram"))
        vocabulary = mw.Vocabulary.from_tokenizer(theirs)
        self.assertEqual((vocabulary.eos, vocabulary.specials), ([2], {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}))
        self.assertEqual([vocabulary.token_bytes(4 + byte) for byte in range(256)], BYTES)
        for token in range(260, theirs.vocab_size):
            self.assertEqual(vocabulary.token_bytes(token).decode(), theirs.sp_model.id_to_piece(token - 1).replace("▁", " "))

    @needs("tiktoken")
    def test_tiktoken(self):
        import tiktoken

        class Added(str):
            special = False

        class Tokenizer:
            eos_token_id = 258

            def __init__(self):
                ranks = {byte: at for at, byte in enumerate(BYTES)} | {b"ab": 256}
                self.model = tiktoken.Encoding("mine", pat_str=".", mergeable_ranks=ranks, special_tokens={"[BOS]": 257, "[EOS]": 258, "<call>": 259})
                self.added_tokens_decoder = {258: "[EOS]", 259: Added("<call>"), 260: "<|turn|>", 261: Added("<tool>")}

            def convert_ids_to_tokens(self, token):
                raise NotImplementedError

        vocabulary = mw.Vocabulary.from_tokenizer(Tokenizer())
        self.assertEqual((vocabulary.eos, vocabulary.specials), ([258], {"[BOS]": 257, "[EOS]": 258, "<|turn|>": 260}))
        self.assertEqual([vocabulary.token_bytes(token) for token in range(257)], [*BYTES, b"ab"])
        self.assertEqual((vocabulary.token_bytes(259), vocabulary.token_bytes(261), vocabulary.size), (b"<call>", b"<tool>", 262))
        wrapper = types.SimpleNamespace(tokenizer=Tokenizer().model, eos_token_id=257)
        self.assertEqual((mw.Vocabulary.from_tokenizer(wrapper).eos, len(mw.Vocabulary.from_tokenizer(wrapper))), ([257], 260))

    @needs("transformers")
    def test_bytes_by_their_number(self):
        from transformers import ByT5Tokenizer

        theirs = ByT5Tokenizer()
        theirs.add_tokens(["<tool>"])
        vocabulary = mw.Vocabulary.from_tokenizer(theirs)
        self.assertEqual([vocabulary.token_bytes(3 + byte) for byte in range(256)], BYTES)
        self.assertEqual((vocabulary.eos, vocabulary.specials["<pad>"], vocabulary.specials["<extra_id_0>"]), ([1], 0, 259))
        self.assertEqual((vocabulary.token_bytes(384), len(vocabulary)), (b"<tool>", len(theirs)))
        matcher = mw.Compiler(vocabulary).compile(mw.choice(["Zoë", "<tool>"])).matcher()
        self.assertEqual(matcher.accept_all(theirs.encode("Zoë")), 5)
        self.assertTrue(matcher.is_terminated())

    def byte_level(self, says=None, between=""):
        """A tokenizer as GPT-2's was, before all of them were fast ones."""
        letters = gpt2_letters()

        class Tokenizer:
            byte_decoder = {letter: byte for byte, letter in enumerate(letters)}
            encoder = {letter: at for at, letter in enumerate(letters)} | {letters[32] + "h" + letters[0xC3]: 256, "<|endoftext|>": 257}
            added_tokens_decoder, all_special_ids, all_special_tokens, eos_token_id = {}, [257], ["<|endoftext|>"], 257
            convert_ids_to_tokens = None

            def get_vocab(self):
                return self.encoder

            def convert_tokens_to_string(self, tokens):
                text = bytes(self.byte_decoder[letter] for letter in between.join(tokens)).decode("utf-8", "replace")
                return text if says is None else says(text)

        return Tokenizer()

    def words(self):
        """Words that are joined by blanks, all of characters below 256."""
        from transformers.tokenization_python import PreTrainedTokenizer

        class Words(PreTrainedTokenizer):
            vocab_size = 3

            def get_vocab(self):
                return {"the": 0, "cat": 1, "é": 2}

            def _convert_token_to_id(self, token):
                return self.get_vocab().get(token)

            def _convert_id_to_token(self, index):
                return list(self.get_vocab())[index]

        return Words()

    def test_bytes_as_gpt2_writes_them(self):
        vocabulary = mw.Vocabulary.from_tokenizer(self.byte_level())
        self.assertEqual([vocabulary.token_bytes(token) for token in range(257)], [*BYTES, b" h\xc3"])
        self.assertEqual((vocabulary.eos, vocabulary.specials, vocabulary.size), ([257], {"<|endoftext|>": 257}, 258))

    @needs("transformers")
    def test_others_are_refused_by_class(self):
        from transformers import MyT5Tokenizer

        refusal = "made of {}: it is written in Python, has neither a SentencePiece model nor an encoding of tiktoken inside, and does not write bytes as characters.*; give its tokens"
        with self.assertRaisesRegex(mw.VocabularyError, refusal.format("Tokenizer")):
            # It decodes its tokens in another way.
            mw.Vocabulary.from_tokenizer(self.byte_level(str.strip))
        with self.assertRaisesRegex(mw.VocabularyError, refusal.format("Tokenizer")):
            # It puts something between them.
            mw.Vocabulary.from_tokenizer(self.byte_level(between=gpt2_letters()[32]))
        with self.assertRaisesRegex(mw.VocabularyError, refusal.format("Words")):
            mw.Vocabulary.from_tokenizer(self.words())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "byte_maps.json"
            path.write_text(json.dumps({"decompose_map": {}, "merge_map": {}}))
            with self.assertRaisesRegex(mw.VocabularyError, refusal.format("MyT5Tokenizer")):
                mw.Vocabulary.from_tokenizer(MyT5Tokenizer(vocab_file=str(path)))


class LlamaCpp(unittest.TestCase):
    def check(self, tokenizer):
        expected = mw.Vocabulary.load(next((ASSETS / "smollm2").glob("*.gguf")))
        vocabulary = mw.Vocabulary.from_tokenizer(tokenizer)
        self.assertEqual((vocabulary.fingerprint, vocabulary.eos), (expected.fingerprint, expected.eos))
        self.assertTrue(vocabulary.can_encode)

    @needs_asset("smollm2")
    def test_stand_ins(self):
        path = str(next((ASSETS / "smollm2").glob("*.gguf")))
        llama = type("Llama", (), {"__module__": "llama_cpp.llama", "model_path": path, "tokenizer": lambda self: None})
        self.check(llama())
        tokenizer = type("LlamaTokenizer", (), {"__module__": "llama_cpp.llama_tokenizer", "_model": types.SimpleNamespace(path_model=path)})
        self.check(tokenizer())

    @needs_asset("smollm2")
    @needs("llama_cpp")
    def test_real(self):
        from llama_cpp import Llama

        model = Llama(str(next((ASSETS / "smollm2").glob("*.gguf"))), vocab_only=True, verbose=False)
        self.check(model)
        self.check(model.tokenizer())
        vocabulary = mw.Vocabulary.from_tokenizer(model)
        self.assertEqual(vocabulary.size, model.n_vocab())
        for text in (SPACES, '{"name": "Zoë"}', "The cat\n\n sat"):
            self.assertEqual(vocabulary.encode(text), model.tokenize(text.encode(), add_bos=False, special=False))

    def test_a_file_that_is_gone(self):
        llama = type("Llama", (), {"__module__": "llama_cpp.llama", "model_path": "there/is/no/such.gguf"})
        with self.assertRaisesRegex(mw.VocabularyError, "made of Llama: .*such.gguf"):
            mw.Vocabulary.from_tokenizer(llama())

    @needs("tokenizers")
    @needs("transformers")
    def test_a_tokenizer_of_transformers_inside(self):
        from tokenizers import Tokenizer, decoders, models
        from transformers import PreTrainedTokenizerFast

        tokenizer = Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[]))
        tokenizer.decoder = decoders.ByteLevel()
        theirs = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")
        wrapper = type("LlamaHFTokenizer", (), {"__module__": "llama_cpp.llama_tokenizer", "hf_tokenizer": theirs})
        self.assertEqual(mw.Vocabulary.from_tokenizer(wrapper()).eos, [2])


class Names(unittest.TestCase):
    def test_what_is_no_tokenizer(self):
        with self.assertRaisesRegex(TypeError, "from SimpleNamespace; known are tokenizers of transformers, .*mlx-lm and llama-cpp-python"):
            mw.Vocabulary.from_tokenizer(types.SimpleNamespace(vocab=json.dumps({})))


if __name__ == "__main__":
    unittest.main()
