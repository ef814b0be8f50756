"""Tokenization by SentencePiece.

A model that was trained here has one BPE tokenizer for all its languages. Decoding the ids of a text returns the text:
whitespace is kept, text is not normalised, and characters outside the vocabulary are encoded as UTF-8 bytes. Language
tags such as `<2de>` and source tags of corpora such as `<from:bt>` are control symbols, which no input text produces.
Imported models have their own SentencePiece models and vocabularies (mt/vocabulary.py).
"""

import hashlib
import io
import re
import threading
from collections.abc import Callable, Iterable, Sequence, Sized
from functools import cached_property, lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from mt.errors import TokenizerError

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")

SOURCE_FILE, TARGET_FILE, VOCABULARY_FILE = "tokenizer.model", "tokenizer.target.model", "vocabulary.json"
TOKENIZER_FILES = (SOURCE_FILE, TARGET_FILE, VOCABULARY_FILE)
"""Files of a tokenizer in a model directory. Only the first one is required."""

SPACE_MARK = "\u2581"  # SentencePiece writes a space as this character, and decodes this character as a space
_SPACE_MARK_BYTES = SPACE_MARK.encode()
_TAG, _MARK = "<2", "<from:"  # how language tags and source tags begin
_CONTROL = re.compile(r"<[^<>]+>")  # matches special pieces, tags and bytes such as <0x20>
_PRIVATE_USE = range(0xE000, 0xF8FF)
_CACHED_WORDS = 1 << 15  # number of words whose ids are cached, in about 10 MB
_LONGEST_CACHED = 40  # maximum number of characters of such a word


def language_tag(language: str) -> str:
    """Return the control symbol that asks for translation into `language` (Johnson et al. 2017, section 3)."""
    return f"{_TAG}{language}>"


def source_tag(name: str) -> str:
    """Return the control symbol of the source tag `name`, which a corpus can have (Caswell et al. 2019, section 3)."""
    return f"{_MARK}{name}>"


def train_tokenizer(
    sentences: Iterable[str],
    *,
    vocabulary_size: int,
    languages: Sequence[str] = (),
    source_tags: Sequence[str] = (),
    threads: int = 1,
) -> bytes:
    """Train a SentencePiece BPE model (Sennrich et al. 2016) with byte fallback and split digits. Return it serialised.

    Each of `languages` and `source_tags` gets a control symbol. A small corpus gives fewer than `vocabulary_size`
    pieces. TokenizerError is raised if SentencePiece cannot train.
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
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            add_dummy_prefix=True,  # adds a space, so that a first word is encoded as elsewhere in a text
            character_coverage=0.9998,
            max_sentence_length=1 << 16,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            control_symbols=[*map(language_tag, languages), *map(source_tag, source_tags)],
            num_threads=threads,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise TokenizerError(
            f"cannot train a tokenizer of {vocabulary_size} pieces: {error}; "
            "accepted: a corpus with text, and a vocabulary_size above its number of characters + 260"
        ) from error
    return model.getvalue()


class Tokenizer:
    """A trained SentencePiece model. Its `encode` adds no BOS, EOS or tags."""

    tags_each_side = False
    """True if sources begin with the tag of the source language, and translations with that of the target language."""

    def __init__(self, serialised: bytes, name: str = "tokenizer") -> None:
        """Raise TokenizerError unless `serialised` is a SentencePiece model with the ids PAD, UNK, BOS and EOS."""
        self._processor = _load_processor(serialised, name)
        special = self._special_ids()
        if special != (PAD, UNK, BOS, EOS):
            raise TokenizerError(f"{name}: pad, unk, bos, eos have the ids {special}; accepted: {(PAD, UNK, BOS, EOS)}")
        self.serialised = serialised
        self._space_mark_ids = [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in _SPACE_MARK_BYTES]

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Load the tokenizer in a file. Raises: TokenizerError if the file is missing or not a SentencePiece model."""
        return Tokenizer(read_file(path), str(path))

    @property
    def target(self) -> "Tokenizer":
        """Tokenizer of target text: this object, or another one if source and target have separate tokenizers."""
        return self

    @property
    def files(self) -> dict[str, bytes]:
        """Content of each file that `load_tokenizer` reads, by file name."""
        return {SOURCE_FILE: self.serialised}

    @property
    def digest(self) -> str:
        """SHA-256 of the tokenizer's files, in hexadecimal."""
        return hashlib.sha256(self.serialised).hexdigest()

    @cached_property
    def characters(self) -> frozenset[str]:
        """All characters that occur in pieces. Other characters are encoded as bytes or as UNK."""
        tags = {self._pieces[self.tag_id(language)] for language in self.tagged_languages}
        pieces = (piece for piece in self._pieces if piece not in tags and not _CONTROL.fullmatch(piece))
        return frozenset("".join(pieces)) | {" "}

    def knows(self, character: str) -> bool:
        """Return whether a character is read from pieces, perhaps after SentencePiece's own normalisation."""
        if character in self.characters:
            return True
        read = str(self._processor.normalize(character)).replace(SPACE_MARK, "")
        return bool(read) and read != character and self.characters.issuperset(read)

    @cached_property
    def _pieces(self) -> list[str]:
        """Piece of each id, cached because one lookup in SentencePiece takes longer than decoding a sentence."""
        return [str(self._processor.id_to_piece(id)) for id in range(len(self))]

    @cached_property
    def _texts(self) -> list[str | None]:
        """Text of each id; None for bytes, special ids and tags."""
        return [None if _CONTROL.fullmatch(piece) else piece.replace(SPACE_MARK, " ") for piece in self._pieces]

    @cached_property
    def _is_by_word(self) -> bool:
        """Independence of words: the ids of a text are those of its words, each with the space before it, in order.

        It holds for BPE without normalisation if a space occurs only as the first character of a piece.
        """
        proto = sentencepiece_model_pb2.ModelProto.FromString(self.serialised)
        normaliser, trainer = proto.normalizer_spec, proto.trainer_spec
        return (
            trainer.model_type == trainer.BPE
            and not normaliser.precompiled_charsmap
            and normaliser.add_dummy_prefix
            and not normaliser.remove_extra_whitespaces
            and not trainer.treat_whitespace_as_suffix
            and SPACE_MARK in self._pieces
            and not any(SPACE_MARK in piece[1:] or " " in piece for piece in self._pieces)
        )

    @cached_property
    def _cached_ids(self) -> Callable[[str], tuple[int, ...]]:
        """Function with a cache that returns the ids of a space and the word after it, which may be empty."""
        space = (int(self._processor.piece_to_id(SPACE_MARK)),)
        return lru_cache(_CACHED_WORDS)(lambda word: tuple(self._processor.encode(word)) if word else space)

    def __len__(self) -> int:
        return int(self._processor.vocab_size())

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text. A lone surrogate becomes a question mark."""
        text = _as_utf8(text)
        words = text.split(" ")
        if not text or SPACE_MARK in text or not self._is_by_word or max(map(len, words)) > _LONGEST_CACHED:
            return self._encode(text, self._processor.encode)
        return list(chain.from_iterable(map(self._cached_ids, words)))

    def encode_many(self, texts: Sequence[str], threads: int = 1, dropout: float = 0.0) -> list[list[int]]:
        """Return the ids of each text, computed by `threads` threads. With `dropout`, they differ in each call."""
        texts = [_as_utf8(text) for text in texts]
        sampling = {"enable_sampling": True, "alpha": dropout, "nbest_size": -1} if dropout else {}
        encode = partial(self._processor.encode, **sampling)
        ids: list[list[int]] = encode(texts, num_threads=threads)
        return [self._complete(text, raw, encode) for text, raw in zip(texts, ids, strict=True)]

    def encode_with_dropout(self, texts: Sequence[str], dropout: float, seed: int) -> list[list[int]]:
        """Return the ids of each text. Each BPE merge is skipped with probability `dropout` (Provilkov et al. 2020).

        Equal seeds give equal ids. SentencePiece seeds its generator once per thread, so each call starts a thread.
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
        """Return the text of `ids`. Special ids and tags have no text; invalid UTF-8 becomes U+FFFD."""
        texts = [text for id in ids if (text := self._texts[id]) is not None] if self._is_by_word else []
        if len(texts) == len(ids):
            return "".join(texts).removeprefix(" ")
        return str(self._processor.decode(list(ids)))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the piece of each id as SentencePiece writes it, with U+2581 for a space."""
        return [self._pieces[id] for id in ids]

    def tag_id(self, language: str) -> int:
        """Return the id of the tag for a target language. Raises: TokenizerError if the tokenizer has no such tag."""
        piece = int(self._processor.piece_to_id(language_tag(language)))
        if piece == UNK:
            accepted = ", ".join(self.tagged_languages) or "none"
            raise TokenizerError(f"the tokenizer has no tag for the language {language!r}; accepted: {accepted}")
        return piece

    @property
    def tagged_languages(self) -> tuple[str, ...]:
        return self._named(_TAG)

    def source_tag_id(self, name: str) -> int:
        """Return the id of the source tag `name`. Raises: TokenizerError if the tokenizer has no such tag."""
        if name not in self.source_tags:
            accepted = ", ".join(self.source_tags) or "none"
            raise TokenizerError(f"the tokenizer has no source tag {name!r}; accepted: {accepted}")
        return self._pieces.index(source_tag(name))

    @property
    def source_tags(self) -> tuple[str, ...]:
        return self._named(_MARK)

    @property
    def is_bpe(self) -> bool:
        """True if the SentencePiece model is BPE and has merges, that is, pieces of more than one character."""
        proto = sentencepiece_model_pb2.ModelProto.FromString(self.serialised)
        merged = any(piece.type == piece.NORMAL and len(piece.piece) > 1 for piece in proto.pieces)
        return merged and proto.trainer_spec.model_type == proto.trainer_spec.BPE

    def truncated(self, size: int) -> "Tokenizer":
        """Return a BPE tokenizer with at most `size` pieces: the last merges are removed.

        All single characters and symbols are kept. If they are more than `size`, raise TokenizerError.
        """
        proto = sentencepiece_model_pb2.ModelProto.FromString(self.serialised)
        merged = [piece for piece in proto.pieces if piece.type == piece.NORMAL and len(piece.piece) > 1]
        minimum = len(proto.pieces) - len(merged)
        if size < minimum:
            raise TokenizerError(
                f"vocabulary_size is {size}; accepted: at least {minimum}, the number of characters and symbols"
            )
        merged.sort(key=lambda piece: -piece.score)
        dropped = {piece.piece for piece in merged[size - minimum :]}
        kept = [piece for piece in proto.pieces if piece.piece not in dropped]
        del proto.pieces[:]
        proto.pieces.extend(kept)
        proto.trainer_spec.vocab_size = len(kept)
        return Tokenizer(proto.SerializeToString())

    def source_prefix(self, source: str, target: str, directions: Sized) -> list[int]:
        """Return the ids that precede a source: the tag of the language `target` if there are several `directions`.

        Raises: TokenizerError if the model has no tag for this language.
        """
        return [self.tag_id(target)] if len(directions) > 1 else []

    def target_prefix(self, target: str) -> list[int]:
        """Return the ids with which every translation into the language `target` begins; empty for most models.

        Raises: TokenizerError if the model has no tag for this language.
        """
        return []

    def _named(self, beginning: str) -> tuple[str, ...]:
        """Return the languages or source tags whose control symbols begin with `beginning`, such as `<2`."""
        control = (piece for id, piece in enumerate(self._pieces) if id > EOS and self._processor.is_control(id))
        return tuple(piece[len(beginning) : -1] for piece in control if piece.startswith(beginning))

    def _special_ids(self) -> tuple[int, ...]:
        processor = self._processor
        return processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id()

    def _encode(self, text: str, encode: Callable[..., Any]) -> list[int]:
        return self._complete(text, encode(text), encode)

    def _complete(self, text: str, raw: list[int], encode: Callable[..., Any]) -> list[int]:
        """Return the ids of `text` with U+2581 encoded as bytes. `raw` are the ids that SentencePiece returned.

        SentencePiece would take U+2581 for a space. Therefore the text is encoded with another character in place of
        U+2581, and the byte ids of this character are then replaced by those of U+2581.
        """
        if SPACE_MARK not in text:
            return raw
        unknown = (chr(code) for code in _PRIVATE_USE if self._processor.piece_to_id(chr(code)) == UNK)
        stand_in = next(character for character in unknown if character not in text)
        stand_in_ids = [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in stand_in.encode()]
        ids = list(encode(text.replace(SPACE_MARK, stand_in)))
        for start in range(len(ids) - len(stand_in_ids) + 1):
            if ids[start : start + len(stand_in_ids)] == stand_in_ids:
                ids[start : start + len(stand_in_ids)] = self._space_mark_ids
        return ids


def sentencepiece_ids(serialised: bytes, name: str) -> dict[str, int]:
    """Return the id of each piece of a SentencePiece model.

    Raises: TokenizerError if `serialised` is not such a model. The message calls the model `name`.
    """
    processor = _load_processor(serialised, name)
    return {str(processor.id_to_piece(id)): id for id in range(processor.vocab_size())}


def _load_processor(serialised: bytes, name: str) -> sentencepiece.SentencePieceProcessor:
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(serialised)
    except RuntimeError as error:
        raise TokenizerError(f"{name}: not a SentencePiece model ({len(serialised)} bytes)") from error
    return processor


def _as_utf8(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TokenizerError(f"{path}: cannot read the tokenizer ({error.strerror})") from error
