"""Shortlists of a model (mt/kernels/shortlist.py), made from parallel text or from a lexical table of Marian.

A sentence may contain frequent tokens, likely translations of its source tokens, and the source tokens themselves, so
that names, numbers and addresses can be copied. Letters of alphabets, digits, signs and bytes are always allowed, so
that the model can write any text.
"""

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from mt.data.corpus import read_lines
from mt.data.preparation import read_corpus
from mt.data.translation_table import TranslationTable, learn_translation_table
from mt.data_config import CorpusConfig, memory_format
from mt.errors import DataError
from mt.kernels.shortlist import Shortlist
from mt.languages import Direction
from mt.tokenizer import EOS, Tokenizer

SPACE = "\u2581"  # SentencePiece's mark for the space before a word
EMPTY_WORD = "NULL"  # of fast_align and of Marian's lexical tables
ALIGNED_PAIRS = 100_000
FEWEST_OCCURRENCES = 5
"""Smallest number of occurrences of a source token in the aligned text. A sentence with a rarer one is not limited."""


def corpus_tables(
    tokenizer: Tokenizer, files: Sequence[tuple[str, str]], directions: Collection[Direction]
) -> tuple[list[Direction], list[TranslationTable]]:
    """Return the directions of which `files` have both languages, and the table of IBM model 1 of each of them.

    A table is learned from about ALIGNED_PAIRS evenly spaced pairs. Each corpus of `files` has a path, as in a recipe,
    and languages, such as "en,de": those of the columns of a .tsv. Directions with other tags are not limited.

    Raises: DataError if a file cannot be used, or no file has a direction that shares its tag with those of the files.
    """
    corpora = [(path, tuple(languages.split(","))) for path, languages in files]
    own = {one: [_corpus(*names) for names in corpora if {one.source, one.target} <= {*names[1]}] for one in directions}
    tags = {one: tokenizer.source_prefix(one.source, one.target, directions) for one in directions}
    learned = [one for one in directions if own[one]]
    known = [tags[one] for one in learned or directions]
    if missing := [str(one) for one in directions if not own[one] and tags[one] in known]:
        raise DataError(f"no corpus has {', '.join(missing)}; accepted: files with both languages of each of them")
    return learned, [_corpus_table(tokenizer, own[one], one) for one in learned]


def _corpus(path: str, languages: tuple[str, ...]) -> CorpusConfig:
    columns = () if "{language}" in path or memory_format(path) else languages
    return CorpusConfig.model_construct(path=path, columns=columns)  # the reader names what cannot be read


def _corpus_table(tokenizer: Tokenizer, corpora: Sequence[CorpusConfig], direction: Direction) -> TranslationTable:
    chosen = []
    for corpus in corpora:
        step = max(1, -(-sum(1 for _ in read_corpus(corpus, Path(), direction)) * len(corpora) // ALIGNED_PAIRS))
        chosen += [
            pair for pair in islice(read_corpus(corpus, Path(), direction), 0, None, step) if pair.source.strip()
        ]
    sources = tokenizer.encode_many([pair.source for pair in chosen])
    targets = tokenizer.target.encode_many([pair.target for pair in chosen])
    return learn_translation_table(list(zip(sources, targets, strict=True)), len(tokenizer))


def lexical_table(tokenizer: Tokenizer, path: Path) -> TranslationTable:
    """Return the table in a file of Marian, whose lines are `target source probability`, with pieces as tokens.

    Lines with pieces that the vocabulary lacks are left out. The number of occurrences of a source token is not known:
    one that the file has counts as frequent enough.

    Raises: DataError if a line has another form, or no line has two pieces of the vocabulary.
    """
    size = len(tokenizer)
    ids = {piece: id for id, piece in enumerate(tokenizer.pieces(range(size)))}
    entries: dict[int, float] = {}
    for number, line in enumerate(read_lines(path), start=1):
        try:
            target, source, probability = line.split()
            value = float(probability)
        except ValueError:
            raise DataError(f"{path}:{number}: {line!r}; accepted: TARGET SOURCE PROBABILITY") from None
        if source in ids and target in ids and EMPTY_WORD not in (source, target):
            entries[ids[source] * size + ids[target]] = value
    if not entries:
        raise DataError(f"{path}: no line has two pieces of the model's vocabulary; accepted: the table of this model")
    keys = np.array(sorted(entries), np.int64)
    probabilities = np.array([entries[key] for key in keys.tolist()])
    sources, targets = np.divmod(keys, size)
    occurrences = np.bincount(sources, minlength=size) * FEWEST_OCCURRENCES
    return TranslationTable(size, keys, probabilities, np.bincount(targets, probabilities, size), occurrences)


def make_shortlist(
    tokenizer: Tokenizer, tags: Iterable[int], tables: Sequence[TranslationTable], translations: int, frequent: int
) -> Shortlist:
    """Return the shortlist of a model, which serves all its directions.

    Args:
        tokenizer: The tokenizer of the model, with one vocabulary for source and target, perhaps with two models.
        tags: Source tokens that no text contains, such as tags of languages.
        tables: A table for each direction.
        translations: Number of tokens that a source token allows in each direction.
        frequent: Number of frequent tokens of each direction that are always allowed.
    """
    pieces, always, pairs = tokenizer.pieces(range(len(tokenizer))), set[int](), set[tuple[int, int]]()
    for table in tables:
        common = table.frequent(frequent).tolist()
        pairs.update(zip(*(ids.tolist() for ids in table.best(translations, besides=common)), strict=True))
        always.update(common)
    occurrences = sum(table.occurrences for table in tables)
    known = {EOS, *tags}
    rare = (id for id in np.flatnonzero(occurrences < FEWEST_OCCURRENCES).tolist() if id not in known)
    return build_shortlist(pieces, EOS, always, pairs, (id for id in rare if not is_single_character(pieces[id])))


def build_shortlist(
    pieces: Sequence[str],
    eos: int,
    frequent: Iterable[int],
    translations: Iterable[tuple[int, int]],
    rare: Iterable[int] = (),
) -> Shortlist:
    """Build a shortlist for a vocabulary of `pieces`, of which `eos` is the id of EOS.

    `frequent` are target tokens that are always allowed, `translations` pairs of a source token and a target token that
    it allows, and `rare` source tokens whose translations are not known.
    """
    ids = {piece: id for id, piece in enumerate(pieces)}
    allowed = [{id, *space_variants(piece, ids)} for id, piece in enumerate(pieces)]
    for source, target in translations:
        allowed[source].add(target)
    usual = {eos, *frequent, *(id for id, piece in enumerate(pieces) if is_single_character(piece))}
    lists = [sorted(targets.difference(usual)) for targets in allowed]
    return Shortlist(
        np.array(sorted(usual), np.int32),
        np.cumsum([0, *map(len, lists)], dtype=np.int64),
        np.array([target for targets in lists for target in targets], np.int32),
        np.array(sorted(rare), np.int32),
    )


def space_variants(piece: str, ids: dict[str, int]) -> Iterator[int]:
    """Yield the id of `piece` without its leading space, or with a leading space if it has none.

    A word that is copied from the source may need this piece. Yield nothing if `ids` does not contain it.
    """
    other = piece[1:] if piece.startswith(SPACE) else SPACE + piece
    if other in ids:
        yield ids[other]


def is_single_character(piece: str) -> bool:
    """Return whether `piece` is one byte, or one digit, sign or letter of an alphabet, with or without a leading space.

    The leading space alone is accepted too. CJK ideographs, Hangul and kana are not letters of an alphabet, because
    there are too many. Such a character is allowed if it is frequent, translates a source token or occurs in the
    source; otherwise bytes can write it.
    """
    if len(piece) == 6 and piece.startswith("<0x"):
        return True
    text = piece.removeprefix(SPACE)
    if len(text) != 1:
        return not text
    return not (unicodedata.category(text) == "Lo" and unicodedata.east_asian_width(text) == "W")
