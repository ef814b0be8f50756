"""The words of the phrasebook. Irregular English forms are read from `words.toml`, and regular forms are added."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Noun:
    """A noun. Its `category`, such as "clothing", determines the verbs and adjectives that it can have.

    `oblique` is the German accusative and dative singular. `german_plural` is "" if the plural is not used.
    """

    lemma: str
    category: str
    plural: str
    gender: str
    german: str
    oblique: str
    german_plural: str


@dataclass(frozen=True)
class Verb:
    """A verb. `particle` is an English particle after a space (" up"), `prefix` the separable German prefix.

    `categories` are those of the nouns that can be the object. `preposition` and `dative` determine the form of the
    German object. `sein` tells whether the perfect is formed with "sein". Verbs that are `stative` have no progressive
    and no requests. Verbs with `company` can be followed by a phrase such as "with my brother".
    """

    lemma: str
    base: str
    third: str
    past: str
    participle: str
    ing: str
    particle: str
    prefix: str
    infinitive: str
    german_third: str
    german_participle: str
    categories: tuple[str, ...]
    preposition: str
    dative: bool
    sein: bool
    stative: bool
    company: bool


@dataclass(frozen=True)
class Adjective:
    """An adjective. German endings are added to `stem`. The comparatives are "" if they are not used.

    `categories` are those of the nouns that the adjective can describe.
    """

    lemma: str
    comparative: str
    german: str
    stem: str
    german_comparative: str
    categories: tuple[str, ...]


@dataclass(frozen=True)
class Lexicon:
    """All words of the phrasebook. `nouns` has the nouns by category. Pairs of strings are (English, German)."""

    nouns: dict[str, tuple[Noun, ...]]
    verbs: tuple[Verb, ...]
    giving: tuple[Verb, ...]
    departing: tuple[Verb, ...]
    happening: tuple[Verb, ...]
    adjectives: tuple[Adjective, ...]
    cities: tuple[tuple[str, str], ...]
    names: tuple[str, ...]
    days: tuple[tuple[str, str], ...]
    months: tuple[tuple[str, str], ...]
    numbers: tuple[tuple[str, str], ...]

    def adjectives_for(self, category: str) -> tuple[Adjective, ...]:
        return tuple(adjective for adjective in self.adjectives if category in adjective.categories)


@cache
def lexicon() -> Lexicon:
    """Return all words of `words.toml`. The result is cached."""
    tables = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
    return Lexicon(
        nouns={
            category: tuple(_noun(category, line) for line in table.splitlines())
            for category, table in tables["nouns"].items()
        },
        verbs=_verbs(tables["verbs"]),
        giving=_verbs(tables["giving"]),
        departing=_verbs(tables["departing"]),
        happening=_verbs(tables["happening"]),
        adjectives=tuple(map(_adjective, tables["adjectives"].splitlines())),
        cities=_pairs(tables["cities"]),
        names=tuple(tables["names"].split()),
        days=_pairs(tables["days"]),
        months=_pairs(tables["months"]),
        numbers=_pairs(tables["numbers"]),
    )


def _pairs(table: str) -> tuple[tuple[str, str], ...]:
    rows = [entry.split("|") for entry in table.split()]
    return tuple((english, german) for english, german in rows)


def _noun(category: str, line: str) -> Noun:
    english, singular, german_plural = line.split("|")
    lemma, _, plural = english.partition("/")
    article, forms = singular.split()
    german, _, oblique = forms.partition("/")
    return Noun(
        lemma=lemma,
        category=category,
        plural=plural or _with_s(lemma),
        gender={"der": "m", "die": "f", "das": "n"}[article],
        german=german,
        oblique=oblique or german,
        german_plural="" if german_plural == "-" else german_plural,
    )


def _verbs(table: str) -> tuple[Verb, ...]:
    return tuple(map(_verb, table.splitlines()))


def _verb(line: str) -> Verb:
    english, german, categories, marks = line.split("|")
    head, space, particle = english.partition(" ")
    base, *irregular = head.split("/")
    past = irregular[0] if irregular else _with_ed(base)
    infinitive, third, german_participle = german.split()
    prefix, _, rest = infinitive.rpartition("-")
    governed = [mark for mark in marks.split() if "+" in mark]
    preposition, _, case = governed[0].partition("+") if governed else ("", "", "")
    return Verb(
        lemma=base + space + particle,
        base=base,
        third="has" if base == "have" else _with_s(base),
        past=past,
        participle=irregular[1] if len(irregular) > 1 else past,
        ing=irregular[2] if len(irregular) > 2 else _with_ing(base),
        particle=space + particle,
        prefix=prefix,
        infinitive=rest,
        german_third=third,
        german_participle=german_participle,
        categories=tuple(categories.split()),
        preposition=preposition,
        dative=case == "dat" or "dat" in marks.split(),
        sein="sein" in marks.split(),
        stative="stative" in marks.split(),
        company="company" in marks.split(),
    )


def _adjective(line: str) -> Adjective:
    english, german, categories = line.split("|")
    lemma, comparative = english.split()
    forms, german_comparative = german.split()
    base, _, stem = forms.partition("/")
    return Adjective(
        lemma=lemma,
        comparative=comparative.replace("_", " ").strip("-"),
        german=base,
        stem=stem or base,
        german_comparative=german_comparative.strip("-"),
        categories=tuple(categories.split()),
    )


def _with_s(word: str) -> str:
    if word[-1] == "y" and word[-2] not in "aeou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh", "go")) else "s")


def _with_ed(word: str) -> str:
    if word[-1] == "y" and word[-2] not in "aeou":
        return word[:-1] + "ied"
    return word + ("d" if word[-1] == "e" else "ed")


def _with_ing(word: str) -> str:
    return word[:-1] + "ing" if word[-1] == "e" and word[-2] != "e" else word + "ing"
