"""Phrases of a model: texts of a few words, such as headings, cells of tables and greetings, with their translations.

A model that has read sentences often takes a word without a sentence for another word, or copies it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mt.errors import ModelError
from mt.languages import primary_language
from mt.text import casing, names, titles
from mt.text.alignment import Range

PHRASES_FILE = "phrases.tsv"
MOST_CHARACTERS = 100  # of a phrase with its name and marks
NAME = "{name}"  # stands for a name after a title or degree: dear Mr {name}
MAN, WOMAN = "{man}", "{woman}"  # stand for given names: dear {man}
_ANY_NAME = re.compile(r"\{(?:name|man|woman)\}")
_MARKS = re.compile(r"\s?[.,:;!?…]*\Z")
_AND = re.compile(r" (?:and|et|und) ")
_IN_BRACKETS = re.compile(  # draft, under 12 and except holidays
    r"(?<= )\((?!about )([^\W\d_]+(?: [^\W\d_]+){0,2})(?:(?=(?P<number> \d+)\))|(?=\)| \d))"
)
_COMMAND = "open..."  # of a menu; without the marks, the word may be an adjective


@dataclass(frozen=True)
class Phrases:
    """Phrases by row: the text of each language as within a sentence. Of rows with the same text, the first counts."""

    rows: tuple[Mapping[str, str], ...]

    def translate(self, text: str, source: str, target: str) -> str | None:
        """Return the translation of a phrase, with its letter case and final marks, or None for another text."""
        if len(text) > MOST_CHARACTERS:
            return None
        if text[:1] == "&":  # an accelerator: &Open
            return (inner := self.translate(text[1:], source, target)) and f"&{inner}"
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
        elif text[0].isupper():
            found = casing.raise_first(found, target)
        marks = text[len(_MARKS.sub("", text)) :].lstrip()
        return found + " " * (primary_language(target) == "fr" and marks[:1] in (*":;!?",)) + marks

    def translate_words(self, text: str, source: str, target: str) -> str | None:
        """Return the translation of a phrase in lower case without name and final marks: a fast `translate`."""
        known = (primary_language(source), text.casefold().replace("’", "'")) in self._rows
        return self.translate(text, source, target) if known else None

    def bracketed(self, text: str, source: str, target: str) -> Iterator[tuple[re.Match[str], str]]:
        """Yield words in lower case after a bracket, before `)` or a number, that are a phrase, and its translation.

        Words with a capital may be names, as in `Frankfurt (Oder)`.
        """
        for match in _IN_BRACKETS.finditer(text) if "(" in text else ():
            found = match[1].islower() and self.translate_words(match[1], source, target)
            if found:
                yield match, found

    def lost_brackets(self, text: str, translation: str, source: str, target: str) -> list[Range]:
        """Return the ranges of `bracketed` words, each with the number that ends its brackets, that are lost.

        They may be if the translation has fewer brackets. Models lose words before a number, as in `(under 12)`, and
        several that begin with no noun, as in `(except holidays)`.
        """
        lost, are_fewer = list[Range](), translation.count("(") < text.count("(")
        for match, phrase in self.bracketed(text, source, target):
            german = self.translate(match[1], source, "de") if " " in match[1] else None
            is_short = text[match.end()] == " " or bool(german and german[0].islower())
            if are_fewer or (is_short and f"({phrase}" not in translation):
                lost.append((match.start(1), max(match.end(1), match.end("number"))))
        return lost

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
