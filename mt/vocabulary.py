"""Tokenizers of model directories. That of an imported model is a SentencePiece model with a separate vocabulary."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence, Sized
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from mt.errors import TokenizerError, problems
from mt.section import Section
from mt.tokenizer import (
    BOS,
    EOS,
    PAD,
    SOURCE_FILE,
    SPACE_MARK,
    SPECIAL_PIECES,
    TARGET_FILE,
    TOKENIZER_FILES,
    UNK,
    VOCABULARY_FILE,
    Tokenizer,
    read_file,
)

SHOWN = 5  # maximum number of problems of a vocabulary that an error lists
_BY_TEXT = -1  # marks a piece without an id, which must be looked up by its text


class Vocabulary(Section):
    """Content of `vocabulary.json` of an imported model: the piece of each id. The first pieces are SPECIAL_PIECES."""

    pieces: tuple[str, ...]
    target_pieces: tuple[str, ...] | None = None
    """Pieces of the target vocabulary if source and target have separate vocabularies, otherwise None."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Piece of each language that has one. The piece of the target language precedes each source."""
    tags_each_side: bool = False
    """True if sources begin with the piece of their language, and translations with that of the target language."""

    @property
    def target(self) -> "Vocabulary":
        """Vocabulary of target text: this one, or another one if source and target have separate vocabularies."""
        if self.target_pieces is None:
            return self
        tags = {language: tag for language, tag in self.tags.items() if tag in self.target_pieces}
        return Vocabulary(pieces=self.target_pieces, tags=tags, tags_each_side=self.tags_each_side)


class VocabularyTokenizer(Tokenizer):
    """A SentencePiece model with a separate vocabulary, which defines the id of each piece, as in Marian.

    A piece that the vocabulary lacks becomes UNK. A piece that SentencePiece reports as unknown is looked up by its
    text. Whitespace and rare characters are treated as in the original toolkit.
    """

    def __init__(
        self,
        serialised: bytes,
        vocabulary: Vocabulary,
        target: bytes | None = None,
        names: tuple[str, str] = ("tokenizer", "target tokenizer"),
    ) -> None:
        """Check that the vocabulary contains every piece in `vocabulary.tags`, and no piece twice.

        `target` is the SentencePiece model of target text. It is required if `vocabulary` has `target_pieces`. `names`
        are the names of both SentencePiece models in messages. Raises: TokenizerError if a SentencePiece model or the
        vocabulary cannot be used.
        """
        assert target is not None or vocabulary.target_pieces is None
        self.vocabulary = vocabulary
        self.tags_each_side = vocabulary.tags_each_side
        self._id_of = {piece: id for id, piece in enumerate(vocabulary.pieces)}
        super().__init__(serialised, names[0])
        wrong = [f"{piece!r} occurs {times} times" for piece, times in Counter(vocabulary.pieces).items() if times > 1]
        wrong += [f"the tag {tag!r} is missing" for tag in vocabulary.tags.values() if tag not in self._id_of]
        if wrong:
            raise TokenizerError(problems(f"the vocabulary of {names[0]} cannot be used", wrong))
        self._target = None if target is None else VocabularyTokenizer(target, vocabulary.target, names=names[::-1])
        unknown = self._processor.unk_id()
        texts = (str(self._processor.id_to_piece(id)) for id in range(self._processor.vocab_size()))
        self._ids = [_BY_TEXT if id == unknown else self._id_of.get(piece, UNK) for id, piece in enumerate(texts)]
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
        # SentencePiece keeps the U+2581 of a piece that it does not know.
        return str(self._processor.decode_pieces(pieces)).replace(SPACE_MARK, " ").strip()

    def tag_id(self, language: str) -> int:
        if language not in self.vocabulary.tags:
            accepted = ", ".join(self.vocabulary.tags) or "none"
            raise TokenizerError(f"the tokenizer has no tag for the language {language!r}; accepted: {accepted}")
        return self._id_of[self.vocabulary.tags[language]]

    @property
    def tagged_languages(self) -> tuple[str, ...]:
        return tuple(self.vocabulary.tags)

    @property
    def source_tags(self) -> tuple[str, ...]:
        return ()

    def source_prefix(self, source: str, target: str, directions: Sized) -> list[int]:
        """Return the id of the tag that precedes a source, or [] if the vocabulary has no tags.

        If `tags_each_side` is true, it is the tag of `source`, otherwise that of `target`.
        """
        return [self.tag_id(source if self.tags_each_side else target)] if self.vocabulary.tags else []

    def target_prefix(self, target: str) -> list[int]:
        return [self.target.tag_id(target)] if self.tags_each_side else []

    @property
    def _is_by_word(self) -> bool:
        return False  # the vocabulary, not SentencePiece, defines the ids

    def _special_ids(self) -> tuple[int, ...]:
        return tuple(self._id_of.get(piece, -1) for piece in SPECIAL_PIECES)

    def _complete(self, text: str, raw: list[int], encode: Callable[..., Any]) -> list[int]:
        ids = [self._ids[id] for id in raw]
        return [self._id_of.get(piece, UNK) for piece in encode(text, out_type=str)] if _BY_TEXT in ids else ids


def load_tokenizer(folder: Path) -> Tokenizer:
    """Load the tokenizer in a model directory. Raises: TokenizerError if a file is missing or wrong."""
    source, target, vocabulary_file = (folder / name for name in TOKENIZER_FILES)
    if not vocabulary_file.exists():
        return Tokenizer.load(source)
    try:
        vocabulary = Vocabulary.model_validate_json(read_file(vocabulary_file))
    except ValidationError as error:
        listed = (f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()[:SHOWN])
        raise TokenizerError(
            problems(f"{vocabulary_file}: not a vocabulary that `mt-service import` wrote", listed)
        ) from error
    has_target = target.exists() or vocabulary.target_pieces is not None
    return VocabularyTokenizer(
        read_file(source), vocabulary, read_file(target) if has_target else None, (str(source), str(target))
    )
