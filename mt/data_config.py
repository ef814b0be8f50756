"""The sections [data] and [cleaning] of a recipe: corpora, and the selection and cleaning of their pairs."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from mt.languages import Direction, DirectionSet
from mt.section import Section

MEMORY_FORMATS = (".tmx", ".xliff", ".xlf", ".po")


def memory_format(path: str) -> str | None:
    """Return the format of a translation memory, judged by its file name: `.tmx` for `a.tmx.gz`.

    None means that the file is no translation memory.
    """
    suffix = PurePath(path.removesuffix(".gz").removesuffix(".xz")).suffix.lower()
    return suffix if suffix in MEMORY_FORMATS else None


class CorpusConfig(Section):
    """One corpus: line-aligned files, a tab-separated file, or a translation memory.

    The path of line-aligned files contains `{language}`. A tab-separated file has a language for each of its `columns`.
    A translation memory states the languages of its texts itself.
    """

    path: str
    """Path relative to `data.root`. `{language}` stands for the language of each line-aligned file. A .tmx, .xliff,
    .xlf or .po file is a translation memory; only training corpora can be memories."""
    columns: tuple[str, ...] = ()
    """Languages of the columns of a .tsv file. An empty name skips a column: ["en", "", "de"]."""
    weight: float = Field(1.0, ge=0.001, le=1000)
    """Number of times that an epoch uses each pair of a training corpus. With 0.5, a pair is in every other epoch."""
    source_tag: str = Field("", pattern=r"^\w*$")
    """Name of a token that is put before each source of a training corpus, such as "bt" for back-translated text. The
    token lets the model distinguish such text from text that people wrote (Caswell et al. 2019)."""
    variants: float = Field(0.0, ge=0, le=1)
    """Share of the pairs of a training corpus to repeat in a form that people often type: in lower case, in capitals,
    or without the final punctuation."""
    directions: DirectionSet = DirectionSet()
    """Directions for which a training corpus is used. Back-translated text, for example, is best used only into its
    original language. Left out: all directions between two languages of the corpus."""

    @model_validator(mode="after")
    def _is_aligned_or_tabular(self) -> Self:
        kinds = ("{language}" in self.path, bool(self.columns), memory_format(self.path) is not None)
        if sum(kinds) != 1:
            raise ValueError(
                f"path is {self.path!r} and columns {list(self.columns)}; accepted: a path with {{language}} "
                "(one file per language), a .tsv file with columns, or a .tmx, .xliff or .po file without columns"
            )
        return self

    @model_validator(mode="after")
    def _columns_have_directions(self) -> Self:
        wrong = [direction for direction in self.directions if not self.may_have(direction)]
        if wrong:
            raise ValueError(
                f"{self.path} has the columns {list(self.columns)}, but the directions {', '.join(map(str, wrong))}; "
                "accepted: directions between two of its columns"
            )
        return self

    def may_have(self, direction: Direction) -> bool:
        """Return whether the corpus can have texts in both languages of `direction`.

        It can if it has no `columns`, or a column for each language.
        """
        return not self.columns or {direction.source, direction.target} <= {*self.columns}

    def file(self, root: Path, language: str) -> Path:
        """Return the path of the file for `language`, in the folder `root`."""
        return root / self.path.replace("{language}", language)


def _check_held_out(corpora: tuple[CorpusConfig, ...]) -> tuple[CorpusConfig, ...]:
    memories = [corpus.path for corpus in corpora if memory_format(corpus.path)]
    if memories:
        raise ValueError(f"{', '.join(memories)}: translation memories can be given only in data.train")
    wrong = [
        corpus.path
        for corpus in corpora
        if corpus.weight != 1 or corpus.source_tag or corpus.variants or len(corpus.directions)
    ]
    if wrong:
        raise ValueError(
            f"{', '.join(wrong)}: weight, source_tag, variants and directions can be set only in data.train"
        )
    return corpora


def _expand_corpora(value: Any) -> Any:
    """Convert a path, a table, or a list of paths and tables to a list of tables. Leave other values unchanged."""
    if isinstance(value, str | Mapping):
        value = [value]
    if not isinstance(value, Sequence):
        return value
    return [{"path": corpus} if isinstance(corpus, str) else corpus for corpus in value]


Corpora = Annotated[tuple[CorpusConfig, ...], BeforeValidator(_expand_corpora)]
HeldOutCorpora = Annotated[Corpora, AfterValidator(_check_held_out)]
"""Corpora for validation, testing or monitoring, on which the model is not trained."""


class CleaningConfig(Section):
    """Filters of the training pairs; validation and test sets are never cleaned. A threshold of 0 disables a filter."""

    max_words: int = Field(250, ge=0)
    """Maximum number of words of the source and of the target."""
    max_characters: int = Field(2000, ge=0)
    """Maximum number of characters of the source and of the target."""
    max_length_ratio: float = Field(3.0, ge=0)
    """Maximum length of the longer text: max_length_ratio * (shorter length) + 10. A wide character counts as three."""
    drop_identical: bool = True
    """Drop a pair of more than three words whose source and target are equal, except for letter case and spaces."""
    match_digits: bool = True
    """Drop a pair if each text has a number of 4 or more digits that the other lacks. Turn off if calendars differ."""
    max_repetition: int = Field(5, ge=0)
    """Maximum number of times that a phrase of one to four words may occur in a row."""
    min_script_share: float = Field(0.1, ge=0, le=1)
    """Minimum share of words that have a letter of the language's script, in a text of more than three words."""
    deduplicate: bool = True
    """Keep only the first of equal pairs. Requires about 100 bytes of memory per pair."""


class DataConfig(Section):
    """Corpora and the selection of their pairs."""

    root: Path = Field(default_factory=lambda: Path(os.environ.get("MT_DATA", "data")))
    """Folder of the corpora. Left out: the value of the environment variable MT_DATA, or `data`."""
    directions: DirectionSet = Field(min_length=1)
    """Directions that the model translates, such as ["en-de", "en-pt-BR"], or {source = ["en"], target = ["de", "fr"]}
    for each source with each target. If there are several, a tag of the target language precedes each source text."""
    train: Corpora = Field(min_length=1)
    """Training corpora."""
    valid: HeldOutCorpora = ()
    """Corpora of the validation set. Training chooses the checkpoint with the best score on this set."""
    split_validation: int = Field(0, ge=0)
    """Number of training pairs of each direction to move into the validation set, in place of `valid`. The pairs are
    selected by `seed` from corpora without a source tag. Then all training pairs that contain a source sentence
    of the validation set are dropped."""
    test: HeldOutCorpora = ()
    """Corpora of the test set. The final model is scored on this set."""
    temperature: float = Field(1.0, ge=1)
    """Sampling temperature of directions. A direction with a share p of all pairs gets a share of each epoch that is
    proportional to p ** (1 / temperature) (Arivazhagan et al. 2019, section 3.1). 1 keeps the shares."""
    max_tokens: int = Field(200, ge=1)
    """Maximum length of a training source or target in tokens, including end token, language tag and source tag."""

    @field_validator("directions", mode="before")
    @classmethod
    def _is_not_a_language(cls, value: Any) -> Any:
        if isinstance(value, Sequence) and len(value) == 1 and isinstance(value[0], str) and value[0].isalpha():
            raise ValueError(f"{list(value)} names no target language; accepted: two languages, such as en-{value[0]}")
        return value

    @model_validator(mode="after")
    def _corpora_fit_directions(self) -> Self:
        if bool(self.valid) == bool(self.split_validation):
            given = "both are" if self.valid else "neither is"
            raise ValueError(f"data.valid and data.split_validation: {given} given; accepted: exactly one of them")
        if self.split_validation and any(corpus.variants for corpus in self.train):
            raise ValueError(
                "variants with data.split_validation would repeat validation text in training; accepted: data.valid"
            )
        wrong = [
            f"{corpus.path} has the direction {direction}"
            for corpus in self.train
            for direction in corpus.directions
            if direction not in self.directions
        ]
        if wrong:
            raise ValueError(f"{', '.join(wrong)}; accepted: directions of data.directions ({self.directions})")
        unusable = [
            f"{corpus.path} has the columns {list(corpus.columns)}"
            for corpus in dict.fromkeys((*self.train, *self.valid, *self.test))
            if not any(map(corpus.may_have, self.directions))
        ]
        if unusable:
            raise ValueError(f"{', '.join(unusable)}; accepted: columns for {self.directions}")
        return self

    @property
    def languages(self) -> tuple[str, ...]:
        """All languages of the directions, in alphabetical order."""
        return tuple(sorted({*self.directions.sources, *self.directions.targets}))

    @property
    def source_tags(self) -> tuple[str, ...]:
        return tuple(sorted({corpus.source_tag for corpus in self.train if corpus.source_tag}))
