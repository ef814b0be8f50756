"""One joint SentencePiece BPE model for all languages of a system: text to ids and back, exactly.

Text survives the round trip unchanged: no normalisation unless a recipe asks for NFKC, whitespace kept, and
characters outside the vocabulary spelt as UTF-8 bytes. Language tags such as `<2de>` are control symbols, which
no input text can produce.
"""

import io
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path

import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from mt.errors import TokenizerError

PAD, UNK, BOS, EOS = 0, 1, 2, 3

SPACE_MARK = "\u2581"  # SentencePiece writes a space with this character, and would read it back as a space
_SPACE_MARK_BYTES = SPACE_MARK.encode()
_PRIVATE_USE = range(0xE000, 0xF8FF)


def language_tag(language: str) -> str:
    """The symbol that asks for a translation into `language` (Johnson et al. 2017, section 3)."""
    return f"<2{language}>"


def train_tokenizer(
    sentences: Iterable[str],
    *,
    vocabulary_size: int,
    languages: Sequence[str] = (),
    nfkc: bool = False,
    threads: int = 1,
) -> bytes:
    """Train a BPE model (Sennrich et al. 2016) with byte fallback and split digits; returns the serialised model.

    `languages` get a tag each. A corpus too small for `vocabulary_size` gives as many pieces as it holds.
    Raises TokenizerError if SentencePiece refuses, with its reason.
    """
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="bpe",
            vocab_size=vocabulary_size,
            hard_vocab_limit=False,
            byte_fallback=True,
            split_digits=True,
            normalization_rule_name="nfkc" if nfkc else "identity",
            remove_extra_whitespaces=False,
            character_coverage=0.9998,
            max_sentence_length=1 << 16,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            control_symbols=[language_tag(language) for language in languages],
            num_threads=threads,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise TokenizerError(
            f"cannot train a tokenizer of {vocabulary_size} pieces: {error}; "
            "accepted: a corpus with text, and a vocabulary_size above its number of characters + 260"
        ) from error
    return model.getvalue()


def rearrange(serialised: bytes, pieces: Sequence[str], name: str = "tokenizer") -> bytes:
    """A SentencePiece model that segments as `serialised` does, with our special ids and then `pieces` in this order.

    Where a piece is none of the model's own, it becomes a control symbol: it has an id, and no text produces it.
    Raises TokenizerError if `serialised` is no SentencePiece model, or if `pieces` lacks one that text can produce.
    """
    _load_processor(serialised, name)
    model = ModelProto()
    model.ParseFromString(serialised)
    kinds = ModelProto.SentencePiece
    own = {piece.piece: piece for piece in model.pieces if piece.type not in (kinds.CONTROL, kinds.UNKNOWN)}
    lacking = [piece for piece in own if piece not in set(pieces)]
    if lacking:
        listed = ", ".join(map(repr, lacking[:5]))
        raise TokenizerError(f"{name}: {len(lacking)} pieces are not in the vocabulary, such as {listed}")
    trainer, control = model.trainer_spec, kinds.CONTROL
    special = (("<pad>", control), ("<unk>", kinds.UNKNOWN), ("<s>", control), ("</s>", control))
    arranged = [kinds(piece=piece, score=0.0, type=kind) for piece, kind in special]
    arranged += [own.get(piece, kinds(piece=piece, score=0.0, type=control)) for piece in pieces]
    del model.pieces[:]
    model.pieces.extend(arranged)
    trainer.pad_id, trainer.unk_id, trainer.bos_id, trainer.eos_id = PAD, UNK, BOS, EOS
    trainer.pad_piece, trainer.unk_piece, trainer.bos_piece, trainer.eos_piece = (piece for piece, _ in special)
    trainer.vocab_size = len(arranged)
    serialised_again: bytes = model.SerializeToString()
    return serialised_again


class Tokenizer:
    """A trained model: `encode` text to ids, `decode` ids to text. Ids carry no BOS, EOS or tag: batches add them."""

    def __init__(self, serialised: bytes, name: str = "tokenizer") -> None:
        """Raises TokenizerError if `serialised` is not a SentencePiece model with our special ids."""
        processor = _load_processor(serialised, name)
        special = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        if special != (PAD, UNK, BOS, EOS):
            raise TokenizerError(f"{name}: pad, unk, bos, eos have the ids {special}; accepted: {(PAD, UNK, BOS, EOS)}")
        self.serialised = serialised
        self._processor = processor
        self._space_mark_ids = [processor.piece_to_id(f"<0x{byte:02X}>") for byte in _SPACE_MARK_BYTES]

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Raises TokenizerError if the file is missing or not a SentencePiece model."""
        try:
            return cls(path.read_bytes(), str(path))
        except OSError as error:
            raise TokenizerError(f"{path}: cannot read the tokenizer ({error.strerror})") from error

    @cached_property
    def _pieces(self) -> list[str]:
        """By id: SentencePiece looks one up more slowly than it decodes a sentence."""
        return [str(self._processor.id_to_piece(id)) for id in range(len(self))]

    def __len__(self) -> int:
        return int(self._processor.vocab_size())

    def encode(self, text: str) -> list[int]:
        """Ids of `text`. A lone surrogate, which is not text, becomes a question mark."""
        return self._encode(_as_utf8(text), self._processor.encode)

    def encode_many(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        """`encode` of each text, on several threads."""
        texts = [_as_utf8(text) for text in texts]
        ids: list[list[int]] = self._processor.encode(texts, num_threads=threads)
        for index, text in enumerate(texts):
            if SPACE_MARK in text:
                ids[index] = self._encode(text, self._processor.encode)
        return ids

    def encode_with_dropout(self, texts: Sequence[str], dropout: float, seed: int) -> list[list[int]]:
        """Ids with each BPE merge left out with probability `dropout` (Provilkov et al. 2020), the same for a seed.

        SentencePiece seeds its random generator once a thread: a thread of our own makes the seed count.
        """
        result: list[list[int]] = []
        encode = partial(self._processor.encode, enable_sampling=True, alpha=dropout, nbest_size=-1)

        def sample() -> None:
            result.extend(self._encode(_as_utf8(text), encode) for text in texts)

        sentencepiece.set_random_generator_seed(seed % (1 << 32))
        thread = threading.Thread(target=sample)
        thread.start()
        thread.join()
        return result

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`; special ids and tags give nothing, broken UTF-8 gives U+FFFD."""
        return str(self._processor.decode(list(ids)))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces as SentencePiece writes them: a word begins with U+2581."""
        return [self._pieces[id] for id in ids]

    def tag(self, language: str) -> int:
        """The id of the language's tag. Raises TokenizerError if the model has none."""
        piece = int(self._processor.piece_to_id(language_tag(language)))
        if piece == UNK:
            raise TokenizerError(f"the tokenizer has no tag for the language {language!r}")
        return piece

    def _encode(self, text: str, encode: Callable[[str], Iterable[int]]) -> list[int]:
        """Spell U+2581 as bytes: a stand-in that the text lacks goes through BPE and is put right afterwards."""
        if SPACE_MARK not in text:
            return list(encode(text))
        unknown = (chr(code) for code in _PRIVATE_USE if self._processor.piece_to_id(chr(code)) == UNK)
        stand_in = next(character for character in unknown if character not in text)
        stand_in_ids = [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in stand_in.encode()]
        ids = list(encode(text.replace(SPACE_MARK, stand_in)))
        for start in range(len(ids) - len(stand_in_ids) + 1):
            if ids[start : start + len(stand_in_ids)] == stand_in_ids:
                ids[start : start + len(stand_in_ids)] = self._space_mark_ids
        return ids


def _load_processor(serialised: bytes, name: str) -> sentencepiece.SentencePieceProcessor:
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(serialised)
    except RuntimeError as error:
        raise TokenizerError(f"{name}: not a SentencePiece model ({len(serialised)} bytes)") from error
    return processor


def _as_utf8(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
