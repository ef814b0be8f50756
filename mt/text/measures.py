"""Amounts of something, such as `2 tbsp olive oil` of a recipe or `3 Flaschen Wasser` of a list.

Small models read such lines, which have no verb, as compounds (`1 Tspalt`), and lose units.
"""

import re
from dataclasses import dataclass
from functools import cache
from itertools import chain

from mt.languages import primary_language
from mt.text.word_tables import read_tables

MOST_WORDS = 6  # of what is measured
_TABLES = read_tables("measures.toml")
_UNITS = {  # by language: the forms of each unit, for one and for several
    language: [unit.strip().split(",") for unit in column]
    for language, *column in zip(*(line.split("|") for line in _TABLES["containers"].split("\n")), strict=True)
}
_NUMBER = r"(?:\d{1,6}(?:[.,]\d{1,3})?|(?:\d{1,3} )?\d{1,3}/\d{1,3}|(?:\d{1,3} ?)?[¼-¾⅐-⅞])"
_ONE = ("1", *"½¼¾⅓⅔", "1/2", "1/4", "3/4")
_CONTENT = r"(?P<content>[^\W\d_][^\n.!?:;=]{0,80})"
_SILENT = re.compile("[aeiouâàéèêëîïôœ]|y(?![aeiou])|h(?:erb|uile|u[iî]tre)", re.IGNORECASE)  # here, h is silent
_DECIMAL_MARK = re.compile(r"[.,](?=\d{1,2}\Z)")


@dataclass(frozen=True)
class Measure:
    """A sentence that is an amount of something: `amount` has its unit in the target language, and `of` in English."""

    amount: str
    content: str  # not translated
    target: str
    is_german: bool  # so nouns in `content` have capitals

    def write(self, content: str) -> str:
        """Return the translation of the sentence. `content` is that of its content."""
        if self.is_german and content[1:2].islower():
            content = content[0].lower() + content[1:]
        if self.target == "fr":
            return f"{self.amount} d'{content}" if _SILENT.match(content) else f"{self.amount} de {content}"
        return f"{self.amount} {content}"


def read_measure(sentence: str, source: str, target: str) -> Measure | None:
    """Return the amount, unit and content of a sentence in a source language; None for other sentences."""
    if not sentence[:1].isnumeric():
        return None
    source, target = primary_language(source), primary_language(target)
    if not {source, target} <= _UNITS.keys():
        return None
    match = _pattern(source).fullmatch(sentence)
    if not match or len(match["content"].split()) > MOST_WORDS:
        return None
    amount, count = match["amount"], match["number"]
    for number, units in enumerate(_UNITS[source]):
        if match["unit"] in units:
            is_one = count in _ONE
            if source == "en" and not is_one and units.index(match["unit"]) % 2 == 0:
                return None  # 3 glass bowls
            amount = _DECIMAL_MARK.sub("." if target == "en" else ",", count)
            amount = f"{amount} {_UNITS[target][number][not is_one]}{' of' * (target == 'en')}"
    return Measure(amount, match["content"], target, source == "de")


@cache
def _pattern(language: str) -> re.Pattern[str]:
    """Return a pattern of an amount with its unit, and of the content."""
    units = {*chain(*_UNITS[language]), *_TABLES["international"].split()} - {"livre", "livres"}  # books, too
    unit = "|".join(sorted(units, key=len, reverse=True))
    amount = rf"(?P<amount>(?P<number>{_NUMBER})[ \u00a0\u202f]?(?P<unit>{unit}))"
    return re.compile(rf"{amount}{_TABLES['of'][language]}(?!{_TABLES['others'][language]}){_CONTENT}")
