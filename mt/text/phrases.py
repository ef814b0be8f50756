"""Phrases of a model: texts of a few words, such as headings, cells of tables and greetings, with their translations.

A model that has read sentences often takes a word without a sentence for another word, or copies it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mt.errors import ModelError
from mt.languages import primary_language
from mt.text import casing, names, titles
from mt.text.alignment import Range
from mt.text.members import mend_lists, split_list, translate_numeral

PHRASES_FILE = "phrases.tsv"
MOST_CHARACTERS = 100  # of a phrase with its name and marks
NAME = "{name}"  # stands for a name after a title or degree: dear Mr {name}
MAN, WOMAN = "{man}", "{woman}"  # stand for given names: dear {man}
_ANY_NAME = re.compile(r"\{(?:name|man|woman)\}")
_MARKS = re.compile(r"\s?[.,:;!?…]*\Z")
_AND = re.compile(r" (?:and|et|und) ")
_IN_BRACKETS = re.compile(r"(?<= )[(\[](?!about )([^\W\d_]+(?: [^\W\d_]+){0,2})(?=(?P<number> \d+)\)|[)\],]| \d)")
_GERMAN_ENDING = re.compile(r"(?<=[^\W\d_]{2})e[mnrs]?\Z")
_ACCELERATOR = re.compile(r"&(?=[^\W\d_])")
_COMMAND = "open..."  # of a menu; without the marks, the word may be an adjective


@dataclass(frozen=True)
class Phrases:
    """Phrases by row: the text of each language as within a sentence. Of rows with the same text, the first counts."""

    rows: tuple[Mapping[str, str], ...]

    def translate(self, text: str, source: str, target: str) -> str | None:
        """Return the translation of a phrase, with its letter case and final marks, or None for another text."""
        if ", " in text and (parts := self.list_parts(text, source, target)) and all(known for _, known in parts):
            return "".join(part for part, _ in parts)
        return self._translate_phrase(text, source, target)

    def list_parts(self, text: str, source: str, target: str) -> list[tuple[str, bool]]:
        """Return the members and marks of a text that is a list, translated if they are known, and whether they are.

        At least half of the members are known, and the first and last ones if they are no single words. For other
        texts, return [].
        """
        parts = split_list(text, (source, target))
        members = parts[::2]
        found = self.translate_members(members, source, target)
        is_whole = bool(parts) and all(found[at] or " " not in members[at] for at in (0, -1))
        if not is_whole or sum(map(bool, found)) < len(found) / 2:
            return []
        if found[0] and members[0][0].isupper():
            found[0] = casing.raise_first(found[0], target)
        words = [(one or member, bool(one)) for one, member in zip(found, members, strict=True)]
        return [part for word, mark in zip(words, parts[1::2], strict=True) for part in (word, (mark, True))]

    def mend_lists(self, text: str, translation: str, source: str, target: str, kept: bool) -> tuple[str, list[str]]:
        """Return the translation of a sentence with the members of its lists (`members.mend_lists`), and lost ones.

        Words with a capital may be names: `Reading, Bath and Nice`.
        """

        def known(some: Sequence[str]) -> list[str | None]:
            rows = (self._rows.get((primary_language(source), _key(one)), {}) for one in some)
            words = (row.get(primary_language(source), "") for row in rows)
            found = self.translate_members(some, source, target)
            return [
                None if one[0].isupper() and word[:1].islower() else phrase
                for one, word, phrase in zip(some, words, found, strict=True)
            ]

        return mend_lists(text, translation, (source, target), known, kept)

    def translate_members(self, members: Sequence[str], source: str, target: str) -> list[str | None]:
        """Return the translations of the members of a list that are phrases, numerals and names, and None for others.

        They have no capitals as nouns of German.
        """
        found = [self._translate_phrase(one, source, target, is_within=True) for one in members]
        numerals = [translate_numeral(one, (source, target)) for one in members]
        if sum(map(bool, numerals)) > 1:  # not sept, the month
            found = [one or phrase for one, phrase in zip(numerals, found, strict=True)]
        given = [one if names.is_given_name(one) else None for one in members]
        if any(name and not phrase for name, phrase in zip(given, found, strict=True)):  # Rose and Anna
            found = [name or phrase for name, phrase in zip(given, found, strict=True)]
        return found

    def _translate_phrase(self, text: str, source: str, target: str, is_within: bool = False) -> str | None:
        if len(text) > MOST_CHARACTERS:
            return None
        if "&" in text and len(_ACCELERATOR.findall(text)) == 1:  # Save &as
            item = _ACCELERATOR.sub("", text)
            inner = self._translate_phrase(item.removesuffix("...") + "...", source, target)  # as a command
            return inner and "&" + (inner if item.endswith("...") else inner[:-3])
        language, name = primary_language(source), ""
        row = self._rows.get((language, _key(text)))
        if (not row or _ANY_NAME.search(row[language])) and (name := titles.last_name(_MARKS.sub("", text), source)):
            signs = {True: WOMAN, False: MAN, None: NAME}[names.is_woman(name)], NAME
            rows = (self._rows.get((language, _key(text.replace(name, sign)))) for sign in signs)
            row = next(filter(None, rows), None)
        found = _MARKS.sub("", row.get(primary_language(target), "")) if row else ""
        if name:
            found = titles.write_degrees(_ANY_NAME.sub(lambda _: name, found), target)
        if not row or not found:
            return None
        if text.isupper() and len(_key(text)) > 1 and not row[language].isupper():  # unlike CV
            found = casing.raise_capitals(found, text, target)
        elif text[0].isupper() and not (is_within and row[language][0].isupper()):  # a noun of German, a name
            found = casing.raise_first(found, target)
        marks = text[len(_MARKS.sub("", text)) :].lstrip()
        return found + " " * (primary_language(target) == "fr" and marks[:1] in (*":;!?",)) + marks

    def translate_words(self, text: str, source: str, target: str) -> str | None:
        """Return the translation of a phrase in lower case without name and final marks: a fast `translate`."""
        known = (primary_language(source), text.casefold().replace("’", "'")) in self._rows
        return self.translate(text, source, target) if known else None

    def translate_form(self, text: str, source: str, target: str) -> str | None:
        """Return `translate_words` of a text, or of a German adjective without its ending, as in `(rote, ...)`."""
        found = self.translate_words(text, source, target)
        stem = _GERMAN_ENDING.sub("", text) if primary_language(source) == "de" and text.islower() else text
        return found or (self.translate_words(stem, source, target) if stem != text else None)

    def bracketed(self, text: str, source: str, target: str) -> Iterator[tuple[re.Match[str], str]]:
        """Yield phrases in lower case after a bracket, before another, a comma or a number, and their translations.

        Words with a capital may be names, as in `Frankfurt (Oder)`.
        """
        for match in _IN_BRACKETS.finditer(text) if "(" in text or "[" in text else ():
            if match[1].islower() and (found := self.translate_form(match[1], source, target)):
                yield match, found

    def lost_brackets(self, text: str, translation: str, source: str, target: str) -> list[Range]:
        """Return the ranges of `bracketed` words and a number after them if `(`, `(under 12)` or `[inbox]` is lost."""
        return [
            (match.start(1), max(match.end(1), match.end("number")))
            for match, phrase in self.bracketed(text, source, target)
            if f"{match[0][0]}{phrase}".casefold() not in translation.casefold()
        ]

    @cached_property
    def _rows(self) -> dict[tuple[str, str], Mapping[str, str]]:
        rows: dict[tuple[str, str], Mapping[str, str]] = {}
        for row in self.rows:
            for language, text in row.items():
                rows.setdefault((language, _key(text)), row)
        return rows


def load_phrases(folder: Path) -> Phrases | None:
    """Return the phrases of a model directory, or None if it has none.

    The first line of the file has the languages, separated by tabs.

    Raises: ModelError if the file is not UTF-8, or a line has other columns.
    """
    path = folder / PHRASES_FILE
    if not path.exists():
        return None
    try:
        languages, *lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is not UTF-8 at byte {error.start + 1}") from error
    for number, line in enumerate(lines, 2):
        if len(line) != len(languages) or not all(line):
            raise ModelError(f"{path}, line {number}: accepted: {len(languages)} texts, separated by tabs")
    return Phrases(tuple(dict(zip(languages, line, strict=True)) for line in lines))


def _key(text: str) -> str:
    text = _AND.sub(" & ", text.casefold().replace("’", "'"))
    return text if text == _COMMAND else _MARKS.sub("", text)
