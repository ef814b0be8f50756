"""Creation of a model's vocabulary shortlist, and the check that it loses no quality.

A model gets a shortlist only if translations of text on which it was not trained are as good with the shortlist as
without it, and if the shortlist leaves so few tokens that the CPU kernels are faster. Nothing here depends on measured
time, so that the same text and weights give the same shortlist.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from statistics import mean

import numpy as np

from mt import evaluation
from mt.checkpoint import LoadedModel, without_section
from mt.data.translation_table import FlatSequences, TranslationTable, learn_translation_table
from mt.description import CalibrationPair
from mt.engine.backends.protocol import Dtype
from mt.engine.backends.registry import load_backend
from mt.files import atomic_file
from mt.kernels.library import load_library
from mt.kernels.shortlist import SHORTLIST_FILE, Shortlist, ShortlistCheck, is_single_character, save_shortlist
from mt.languages import Direction
from mt.pipeline.translator import Translator, start_engine
from mt.tokenizer import EOS, Tokenizer
from mt.training.shortlist_text import DirectionText

TRANSLATIONS, FREQUENT = 50, 200
"""Default numbers of tokens that a source token allows, and of frequent tokens that are always allowed."""

WIDENINGS = (1, 2, 4)
"""Factors of the number of allowed tokens per source token, in the order in which they are tried."""

LARGEST_LOSS = 0.1
"""Largest accepted decrease of BLEU, as the mean of all directions. In a single direction, 3 times as much is accepted.

With 1,000 sentences, the BLEU of two searches that are equally good differs by about this much.
"""

LARGEST_EXCLUDED = 0.1
"""Largest accepted share of translations without a shortlist that contain a token that the shortlist does not allow.

It is measured besides BLEU because it has less noise.
"""

LARGEST_SHARE = 0.2
"""Largest accepted share of the vocabulary that a sentence allows, on average.

Experiment 126: decoding is 1.3 to 1.4 times as fast with 14%, 1.05 times with 20%, and not faster with 27%.
"""

FEWEST_SENTENCES = 200
"""Smallest number of sentences with which a loss of BLEU is measured."""

FEWEST_OCCURRENCES = 5
"""Smallest number of occurrences of a source token in the aligned text. A sentence with a rarer one is not limited."""

HEADING = "## Vocabulary shortlist"
"""Heading of the section in the model card."""

OnLine = Callable[[str], None]


@dataclass(frozen=True)
class ShortlistOptions:
    """How a shortlist is created, and which loss is accepted."""

    translations: int = TRANSLATIONS
    frequent: int = FREQUENT
    largest_loss: float = LARGEST_LOSS
    largest_excluded: float = LARGEST_EXCLUDED


@dataclass(frozen=True)
class ShortlistResult:
    """The accepted shortlist, or None, and one sentence for users that states the figures or the reason."""

    shortlist: Shortlist | None
    summary: str


def find_shortlist(
    loaded: LoadedModel,
    texts: Sequence[DirectionText],
    pairs: Sequence[CalibrationPair],
    options: ShortlistOptions | None = None,
    base: Shortlist | None = None,
    report: OnLine = lambda line: None,
) -> ShortlistResult:
    """Create a shortlist from `texts`, widen it until it shows no loss on `pairs`, or give it up.

    The model must not have been trained on `pairs`. A sentence also allows what it allows in `base`. `report` gets
    lines about the progress.
    """
    options = options or ShortlistOptions()
    pieces = loaded.tokenizer.pieces(range(len(loaded.tokenizer)))
    smallest = Shortlist.build(pieces, EOS, (), ())
    if reason := _obstacle(loaded, pieces, pairs, len(smallest.always) / len(pieces)):
        return ShortlistResult(None, f"No shortlist: {reason}.")
    lexicon = _Lexicon.learn(loaded, texts, options.frequent, report)
    arrays = loaded.weights if isinstance(loaded.weights, Mapping) else loaded.arrays()
    comparison = _Comparison.begin(replace(loaded, weights=arrays, device="cpu", shortlist=None), pairs)
    summary = ""
    for factor in WIDENINGS:
        shortlist = lexicon.shortlist(pieces, options.translations * factor)
        shortlist = shortlist if base is None else shortlist.union(base)
        report(f"translating {len(pairs):,} sentences with {options.translations * factor} translations per token")
        check, worst = comparison.check(shortlist)
        summary = describe(check, len(pieces))
        if check.tokens > LARGEST_SHARE * len(pieces):
            return ShortlistResult(None, f"No shortlist, because it would allow too many tokens. {summary}")
        if accepts(check, worst, options):
            return ShortlistResult(replace(shortlist, check=check), summary)
        if factor != WIDENINGS[-1]:
            report(summary)
    return ShortlistResult(None, f"No shortlist, because it would lower the quality. {summary}")


def card_section(result: ShortlistResult) -> str:
    """Return the section of a model card that states whether the model has a shortlist, and why."""
    return f"{HEADING}\n\n{result.summary}\n"


def accepts(check: ShortlistCheck, worst: float, options: ShortlistOptions) -> bool:
    """Return whether `check` shows no loss. `worst` is the decrease of BLEU in the direction with the largest."""
    loss = check.bleu - check.shortlist_bleu
    return (
        loss <= options.largest_loss
        and worst <= 3 * options.largest_loss
        and check.excluded <= options.largest_excluded
    )


def describe(check: ShortlistCheck, vocabulary_size: int) -> str:
    """Return the figures of `check` with their conditions as one line."""
    return (
        f"With the shortlist, a sentence allows {check.tokens:,.0f} of {vocabulary_size:,} tokens on average; BLEU "
        f"{check.bleu:.2f} without and {check.shortlist_bleu:.2f} with it. Of {check.sentences:,} translations without "
        f"it, {check.excluded:.1%} contain a token that is not allowed, and {check.changed:.1%} differ with it "
        f"({check.conditions})."
    )


def _obstacle(
    loaded: LoadedModel, pieces: Sequence[str], pairs: Sequence[CalibrationPair], smallest_share: float
) -> str:
    """Return why the model can have no shortlist, or "". `smallest_share` is that of the tokens always allowed."""
    if pieces != loaded.tokenizer.target.pieces(range(len(loaded.tokenizer.target))):
        return "source and target vocabularies differ"
    if smallest_share > LARGEST_SHARE:
        return f"the vocabulary of {len(pieces):,} tokens is small"
    if len(pairs) < FEWEST_SENTENCES:
        return f"there are {len(pairs):,} sentences for the comparison; accepted: at least {FEWEST_SENTENCES}"
    return "" if load_library() else "the compiled kernels are not available"


@dataclass(frozen=True)
class _Lexicon:
    """Translation tables of all directions. One shortlist serves all directions."""

    tables: tuple[TranslationTable, ...]
    frequent: tuple[list[int], ...]  # of each table
    rare: tuple[int, ...]

    @classmethod
    def learn(cls, loaded: LoadedModel, texts: Sequence[DirectionText], frequent: int, report: OnLine) -> "_Lexicon":
        tokenizer, size = loaded.tokenizer, len(loaded.tokenizer)
        occurrences, tables = np.zeros(size, np.int64), []
        for text in texts:
            report(f"aligning {len(text.rows):,} pairs, {text.direction}")
            tables.append(learn_translation_table(text.source, text.target, text.rows, size))
            occurrences += np.bincount(FlatSequences.select(text.source, text.rows).data, minlength=size)
        known = {EOS, *map(tokenizer.source_tag_id, tokenizer.source_tags)}
        for pair in loaded.description.directions:
            known.update(tokenizer.source_prefix(pair.source, pair.target, loaded.description.directions))
        pieces = tokenizer.pieces(range(size))
        rare = (id for id in np.flatnonzero(occurrences < FEWEST_OCCURRENCES).tolist() if id not in known)
        common = tuple(table.frequent(frequent).tolist() for table in tables)
        return cls(tuple(tables), common, tuple(id for id in rare if not is_single_character(pieces[id])))

    def shortlist(self, pieces: Sequence[str], translations: int) -> Shortlist:
        """Return the shortlist that allows `translations` tokens for each source token."""
        pairs: set[tuple[int, int]] = set()
        for table, common in zip(self.tables, self.frequent, strict=True):
            likeliest = table.best(translations, besides=common)
            pairs.update(zip(*(ids.tolist() for ids in likeliest), strict=True))
        return Shortlist.build(pieces, EOS, {id for ids in self.frequent for id in ids}, pairs, self.rare)


@dataclass(frozen=True)
class _Comparison:
    """Translations of the sources of `pairs` without a shortlist, and their BLEU by direction."""

    loaded: LoadedModel
    groups: Mapping[Direction, Sequence[CalibrationPair]]
    plain: Mapping[Direction, Sequence[str]]
    conditions: str

    @classmethod
    def begin(cls, loaded: LoadedModel, pairs: Sequence[CalibrationPair]) -> "_Comparison":
        ordered = sorted(pairs, key=lambda pair: pair.direction)
        groups = {direction: list(group) for direction, group in groupby(ordered, key=lambda pair: pair.direction)}
        translator = _translator(loaded)
        decoding = loaded.description.decoding
        search = f"beam {decoding.beam_size}, length penalty {decoding.length_penalty}"
        plain = dict(_translate(translator, groups))
        first = next(iter(groups))
        signature = evaluation.bleu(["a"], ["a"], target_language=first.target).signature
        return cls(loaded, groups, plain, f"text that is not training text, {translator.dtype}, {search}, {signature}")

    def check(self, shortlist: Shortlist) -> tuple[ShortlistCheck, float]:
        """Translate with `shortlist`. Return the figures and the decrease of BLEU in the worst direction."""
        limited = dict(_translate(_translator(replace(self.loaded, shortlist=shortlist)), self.groups))
        before, after = ([self._bleu(texts, each) for each in self.groups] for texts in (self.plain, limited))
        differ = [a != b for each in self.groups for a, b in zip(self.plain[each], limited[each], strict=True)]
        allowed = [shortlist.ids(self._encode(pair)) for group in self.groups.values() for pair in group]
        tokens = self.loaded.tokenizer.target.encode_many([text for each in self.groups for text in self.plain[each]])
        check = ShortlistCheck(
            sentences=len(differ),
            bleu=mean(before),
            shortlist_bleu=mean(after),
            changed=mean(map(float, differ)),
            excluded=mean(float(not np.isin(text, ids).all()) for text, ids in zip(tokens, allowed, strict=True)),
            tokens=mean(map(len, allowed)),
            conditions=self.conditions,
        )
        return check, max(plain - score for plain, score in zip(before, after, strict=True))

    def _bleu(self, texts: Mapping[Direction, Sequence[str]], direction: Direction) -> float:
        references = [pair.target for pair in self.groups[direction]]
        return evaluation.bleu(texts[direction], references, target_language=direction.target).value

    def _encode(self, pair: CalibrationPair) -> list[int]:
        tokenizer, directions = self.loaded.tokenizer, self.loaded.description.directions
        return [
            *tokenizer.source_prefix(pair.direction.source, pair.direction.target, directions),
            *tokenizer.encode(pair.source),
        ]


def _translator(loaded: LoadedModel) -> Translator:
    """Return a translator that decodes as a service on a CPU does by default."""
    backend = load_backend([loaded], "cpu", Dtype.AUTO)
    return Translator(loaded, start_engine(backend, None), backend.dtype, backend.shortlist, backend.attend)


def _translate(
    translator: Translator, groups: Mapping[Direction, Sequence[CalibrationPair]]
) -> Iterator[tuple[Direction, list[str]]]:
    for direction, pairs in groups.items():
        sources = [pair.source for pair in pairs]
        results = translator.translate(sources, source=direction.source, target=direction.target, sentences=True)
        yield direction, [result.text for result in results]


def store_shortlist(folder: Path, tokenizer: Tokenizer, result: ShortlistResult) -> None:
    """Write the shortlist and its section of the card into a model directory, or remove an earlier shortlist."""
    if result.shortlist is None:
        (folder / SHORTLIST_FILE).unlink(missing_ok=True)
    else:
        save_shortlist(folder, result.shortlist, tokenizer)
    path = folder / "README.md"
    card = path.read_text(encoding="utf-8") if path.is_file() else f"# {folder.name}\n"
    with atomic_file(path) as file:
        card = without_section(card, HEADING).rstrip() + "\n\n" + card_section(result)
        file.write_text(card, encoding="utf-8")
