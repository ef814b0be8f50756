"""Text to ids and back. What we train is one SentencePiece BPE model for all languages of a system, and exact.

Text survives its round trip unchanged: no normalisation unless a recipe asks for NFKC, whitespace kept, and
characters outside the vocabulary spelt as UTF-8 bytes. Language tags such as `<2de>`, and marks of corpora such as
`<from:bt>`, are control symbols, which no input text can produce. Imported models bring their own SentencePiece
models, and vocabularies beside them.
"""

import hashlib
import io
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import sentencepiece
from pydantic import Field, ValidationError
from sentencepiece import sentencepiece_model_pb2

from mt.config import Section
from mt.errors import TokenizerError, problems

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")

SOURCE_FILE, TARGET_FILE, VOCABULARY_FILE = "tokenizer.model", "tokenizer.target.model", "vocabulary.json"
TOKENIZER_FILES = (SOURCE_FILE, TARGET_FILE, VOCABULARY_FILE)
"""What a model directory may hold of a tokenizer: always the first, the others as they are needed."""

SPACE_MARK = "\u2581"  # SentencePiece writes a space with this character, and would read it back as a space
_SPACE_MARK_BYTES = SPACE_MARK.encode()
SHOWN = 5  # problems of a file, of which there may be as many as pieces
_TAG, _MARK = "<2", "<from:"  # how control symbols begin
_PRIVATE_USE = range(0xE000, 0xF8FF)
_AS_WRITTEN = -1  # no id: the piece is to be looked up as it is written


def language_tag(language: str) -> str:
    """The symbol that asks for a translation into `language` (Johnson et al. 2017, section 3)."""
    return f"{_TAG}{language}>"


def corpus_mark(name: str) -> str:
    """The symbol before sources of a corpus that are to be told from others (Caswell et al. 2019, section 3)."""
    return f"{_MARK}{name}>"


def train_tokenizer(
    sentences: Iterable[str],
    *,
    vocabulary_size: int,
    languages: Sequence[str] = (),
    marks: Sequence[str] = (),
    nfkc: bool = False,
    threads: int = 1,
) -> bytes:
    """Train a BPE model (Sennrich et al. 2016) with byte fallback and split digits; returns the serialised model.

    `languages` get a tag each, and `marks` of corpora a symbol each. A corpus too small for `vocabulary_size` gives as
    many pieces as it holds. Raises TokenizerError if SentencePiece refuses, with its reason.
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
            control_symbols=[*map(language_tag, languages), *map(corpus_mark, marks)],
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
    """A trained model: `encode` text to ids, `decode` ids to text. Ids carry no BOS, EOS or tag: batches add them."""

    def __init__(self, serialised: bytes, name: str = "tokenizer") -> None:
        """Raises TokenizerError if `serialised` is not a SentencePiece model with our special ids."""
        self._processor = _load_processor(serialised, name)
        special = self._special_ids()
        if special != (PAD, UNK, BOS, EOS):
            raise TokenizerError(f"{name}: pad, unk, bos, eos have the ids {special}; accepted: {(PAD, UNK, BOS, EOS)}")
        self.serialised = serialised
        self._space_mark_ids = [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in _SPACE_MARK_BYTES]

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Raises TokenizerError if the file is missing or not a SentencePiece model."""
        return Tokenizer(_read(path), str(path))

    @property
    def target(self) -> "Tokenizer":
        """That of the target's side: this one, unless the sides differ."""
        return self

    @property
    def files(self) -> dict[str, bytes]:
        """What `load_tokenizer` needs, by the name of the file."""
        return {SOURCE_FILE: self.serialised}

    @property
    def digest(self) -> str:
        """A SHA-256 of the files."""
        return hashlib.sha256(self.serialised).hexdigest()

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
        return [self._completed(text, own, self._processor.encode) for text, own in zip(texts, ids, strict=True)]

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

    @property
    def tagged(self) -> tuple[str, ...]:
        """The languages that have a tag."""
        return self._named(_TAG)

    def mark(self, name: str) -> int:
        """The id of a corpus's mark. Raises TokenizerError if the model has none of that name."""
        if name not in self.marks:
            raise TokenizerError(f"the tokenizer has no mark {name!r}")
        return self._pieces.index(corpus_mark(name))

    @property
    def marks(self) -> tuple[str, ...]:
        """The names of the marks that there are."""
        return self._named(_MARK)

    @property
    def merges(self) -> bool:
        """Whether it is BPE, whose merges can be dropped: their order is their score, in whole numbers."""
        scores = (self._processor.get_score(id) for id in range(self._processor.vocab_size()))
        return all(score.is_integer() for score in scores)

    def shortened(self, size: int) -> "Tokenizer":
        """The BPE model with the first merges alone, so that it has `size` pieces; all single characters stay.

        Raises TokenizerError if these and the symbols are more.
        """
        proto = sentencepiece_model_pb2.ModelProto.FromString(self.serialised)
        merged = [piece for piece in proto.pieces if piece.type == piece.NORMAL and len(piece.piece) > 1]
        least = len(proto.pieces) - len(merged)
        if size < least:
            raise TokenizerError(
                f"a vocabulary of {size} pieces; accepted: at least {least}, for characters and symbols"
            )
        merged.sort(key=lambda piece: -piece.score)
        dropped = {piece.piece for piece in merged[size - least :]}
        left = [piece for piece in proto.pieces if piece.piece not in dropped]
        del proto.pieces[:]
        proto.pieces.extend(left)
        proto.trainer_spec.vocab_size = len(left)
        return Tokenizer(proto.SerializeToString())

    def opening(self, target: str, directions: Sequence[str]) -> list[int]:
        """What stands before a source that is to be translated into `target`: its tag, if there are several directions.

        Raises TokenizerError if the model has no such tag.
        """
        return [self.tag(target)] if len(directions) > 1 else []

    def _named(self, beginning: str) -> tuple[str, ...]:
        """What control symbols that begin so are named."""
        control = (piece for id, piece in enumerate(self._pieces) if id > EOS and self._processor.is_control(id))
        return tuple(piece[len(beginning) : -1] for piece in control if piece.startswith(beginning))

    def _special_ids(self) -> tuple[int, ...]:
        processor = self._processor
        return processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id()

    def _encode(self, text: str, encode: Callable[..., Any]) -> list[int]:
        return self._completed(text, encode(text), encode)

    def _completed(self, text: str, own: list[int], encode: Callable[..., Any]) -> list[int]:
        """The ids of a text, of which SentencePiece says `own`.

        U+2581 is spelt as bytes: a stand-in that the text lacks goes through BPE and is put right afterwards.
        """
        if SPACE_MARK not in text:
            return own
        unknown = (chr(code) for code in _PRIVATE_USE if self._processor.piece_to_id(chr(code)) == UNK)
        stand_in = next(character for character in unknown if character not in text)
        stand_in_ids = [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in stand_in.encode()]
        ids = list(encode(text.replace(SPACE_MARK, stand_in)))
        for start in range(len(ids) - len(stand_in_ids) + 1):
            if ids[start : start + len(stand_in_ids)] == stand_in_ids:
                ids[start : start + len(stand_in_ids)] = self._space_mark_ids
        return ids


class Vocabulary(Section):
    """`vocabulary.json` of an imported model: its pieces by id, the first of them SPECIAL_PIECES."""

    pieces: tuple[str, ...]
    target_pieces: tuple[str, ...] | None = None
    """Of the target, where it has a vocabulary of its own."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Those of the pieces that ask for a translation into a language, by its code."""

    @property
    def target(self) -> "Vocabulary":
        """That of the target's side."""
        if self.target_pieces is None:
            return self
        there = {language: tag for language, tag in self.tags.items() if tag in self.target_pieces}
        return Vocabulary(pieces=self.target_pieces, tags=there)


class VocabularyTokenizer(Tokenizer):
    """An imported model: it cuts text into pieces, whose ids are their places in a vocabulary beside it.

    So do Marian and what comes from it. A piece that the vocabulary lacks becomes UNK, and one that SentencePiece does
    not know is looked up as it is written. White space and rare characters come back as the model's authors chose.
    """

    def __init__(
        self,
        serialised: bytes,
        vocabulary: Vocabulary,
        target: bytes | None = None,
        names: tuple[str, str] = ("tokenizer", "target tokenizer"),
    ) -> None:
        """`target` is the SentencePiece model of the target's side, where that or the vocabulary differs.

        Raises TokenizerError if something is no SentencePiece model, or the vocabulary none of ours.
        """
        assert target is not None or vocabulary.target_pieces is None
        self.vocabulary = vocabulary
        self._id_of = {piece: id for id, piece in enumerate(vocabulary.pieces)}
        super().__init__(serialised, names[0])
        found = [
            f"{piece!r} is there {times} times" for piece, times in Counter(vocabulary.pieces).items() if times > 1
        ]
        found += [f"the tag {tag!r} is missing" for tag in vocabulary.tags.values() if tag not in self._id_of]
        if found:
            raise TokenizerError(problems(f"the vocabulary of {names[0]} cannot be used", found))
        self._target = None if target is None else VocabularyTokenizer(target, vocabulary.target, names=names[::-1])
        unknown = self._processor.unk_id()
        own = (str(self._processor.id_to_piece(id)) for id in range(self._processor.vocab_size()))
        self._ids = [_AS_WRITTEN if id == unknown else self._id_of.get(piece, UNK) for id, piece in enumerate(own)]
        self._silent = {PAD, UNK, BOS, EOS, *(self._id_of[tag] for tag in vocabulary.tags.values())}

    @property
    def target(self) -> Tokenizer:
        return self._target or self

    @property
    def files(self) -> dict[str, bytes]:
        files = {SOURCE_FILE: self.serialised, VOCABULARY_FILE: self.vocabulary.model_dump_json(indent=0).encode()}
        return files if self._target is None else {**files, TARGET_FILE: self._target.serialised}

    @property
    def digest(self) -> str:
        digests = (f"{name} {hashlib.sha256(content).hexdigest()}\n" for name, content in self.files.items())
        return hashlib.sha256("".join(digests).encode()).hexdigest()

    @cached_property
    def _pieces(self) -> list[str]:
        return list(self.vocabulary.pieces)

    def __len__(self) -> int:
        return len(self.vocabulary.pieces)

    def decode(self, ids: Sequence[int]) -> str:
        pieces = [self._pieces[id] for id in ids if id not in self._silent]
        # SentencePiece leaves a piece that it does not know as it is, with its U+2581.
        return str(self._processor.decode_pieces(pieces)).replace(SPACE_MARK, " ").strip()

    def tag(self, language: str) -> int:
        if language not in self.vocabulary.tags:
            raise TokenizerError(f"the tokenizer has no tag for the language {language!r}")
        return self._id_of[self.vocabulary.tags[language]]

    @property
    def tagged(self) -> tuple[str, ...]:
        return tuple(self.vocabulary.tags)

    @property
    def marks(self) -> tuple[str, ...]:
        return ()

    def opening(self, target: str, directions: Sequence[str]) -> list[int]:
        """The tag of `target`, if the model has tags at all."""
        return [self.tag(target)] if self.vocabulary.tags else []

    def _special_ids(self) -> tuple[int, ...]:
        return tuple(self._id_of.get(piece, -1) for piece in SPECIAL_PIECES)

    def _completed(self, text: str, own: list[int], encode: Callable[..., Any]) -> list[int]:
        ids = [self._ids[id] for id in own]
        return [self._id_of.get(piece, UNK) for piece in encode(text, out_type=str)] if _AS_WRITTEN in ids else ids


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a model directory. Raises TokenizerError that says what is wrong with which file."""
    source, target, beside = (folder / name for name in TOKENIZER_FILES)
    if not beside.exists():
        return Tokenizer.load(source)
    try:
        vocabulary = Vocabulary.model_validate_json(_read(beside))
    except ValidationError as error:
        listed = (f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()[:SHOWN])
        raise TokenizerError(problems(f"{beside}: not what scripts/import_model.py writes", listed)) from error
    two = target.exists() or vocabulary.target_pieces is not None
    return VocabularyTokenizer(_read(source), vocabulary, _read(target) if two else None, (str(source), str(target)))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TokenizerError(f"{path}: cannot read the tokenizer ({error.strerror})") from error


def sentencepiece_ids(serialised: bytes, name: str) -> dict[str, int]:
    """The pieces of a SentencePiece model and their ids. Raises TokenizerError if it is none."""
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
