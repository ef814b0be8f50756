"""Values that models lose: numerals in words, millions and billions, euros, and limits such as `at most`.

A sentence is read again only if its translation lacks one of them: with digits for numerals, with millions for all
powers of a thousand, with dollars for euros, and without limits. Small models know these, and copy digits. The words of
the target language for the values of the source are then written in place of those that the model read.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from mt.languages import primary_language
from mt.text.alignment import Range, with_edits
from mt.text.casing import raise_first
from mt.text.normalise import NormalisedText
from mt.text.numbers import MARKS, NOT_DIGIT, NUMBER, SCALE_WORDS, with_scales
from mt.text.word_tables import read_tables

_TABLES = read_tables("numbers.toml")
_LIMITS, _NUMERALS = _TABLES["limits"], _TABLES["numerals"]
_HINTS = {language: re.compile(table["hint"]) for language, table in _NUMERALS.items()}
_EUROS = {key: re.compile(words) for key, words in _TABLES["euros"].items()}
_TIMES = frozenset({"latest", "earliest"})  # limits of dates and times
_KINDS = {"ones": (1, 1), "teens": (10, 1), "tens": (20, 10)}  # the value of the first word, and the step
_LEAST = 13  # numerals below are paraphrased: both, a dozen
_HUNDRED, _THOUSAND = 100, 1000
_YEAR = 4  # digits
_DIGITS, _RUN = re.compile(NUMBER), re.compile(r"\d+")
_SCALE_AFTER = re.compile(r"[ \u00a0-]([^\W\d_]*[Ii]ll[^\W\d_]+)")


class _Value(NamedTuple):
    begin: int
    end: int
    digits: str
    scale: int  # index in SCALE_WORDS of the word after it, or -1


def count_lost_values(source: str, translation: str, languages: tuple[str, str]) -> int:
    """Return the number of the numerals, powers of a thousand and euros of a source that a translation lacks."""
    language, target = map(primary_language, languages)
    if not {language, target} <= _NUMERALS.keys():
        return 0
    values, lost = _values(source, language), 0
    if _has_euros(source):
        given, written = (len(_EUROS["any"].findall(text)) for text in (source, translation))
        lost = int(not written) + max(0, written - given)  # not €2.5 percent
    if values and {*_RUN.findall(translation)} <= {*_RUN.findall(source)}:  # a thousand thanks, which is no $10
        values = [value for value in values if value.scale >= 0 or value.digits not in ("100", "1000")]
    for kind in {kind for kind, _ in _limits(source, language)}:
        lost += not re.search(_LIMITS[target][kind][2], translation, re.IGNORECASE)
    if values:
        missing = _counts(source, language) - _counts(translation, target)
        lost += sum(min(count, missing[key]) for key, count in Counter(map(_key, values)).items())
    return lost


def _counts(text: str, language: str) -> Counter[tuple[str, int]]:
    """Count the values of a text: `thirty (30) days` has 30 twice."""
    values = _values(text, language)
    begins = {value.begin for value in values}
    others = (match for match in _DIGITS.finditer(text) if match.start() not in begins)
    return Counter([*map(_key, values), *((NOT_DIGIT.sub("", match[0]), -1) for match in others)])


def simplify_values(text: NormalisedText, languages: tuple[str, str], kept: Sequence[Range] = ()) -> NormalisedText:
    """Return a source with digits for numerals, millions for billions, and dollars for euros, without limits.

    The ranges `kept` stay.
    """
    language = primary_language(languages[0])
    edits, words = [*_digit_edits(text.text, language)], SCALE_WORDS[language]
    for _, end, _, scale in _values(text.text, language):
        edits += [(end + 1, end + 1 + len(words[scale]), words[scale % 2])] if scale >= 0 else []
    if _has_euros(text.text):
        edits += ((*match.span(), _dollars(match[0])) for match in _EUROS["words"].finditer(text.text))
    for kind, limit in _limits(text.text, language):
        is_bare = language == "en" and kind in _TIMES and not limit["before"]
        preposition = ("at " if limit["rest"][0].isdigit() else "on ") * is_bare  # opens no earlier than 8:00
        edits.append((limit.start(), limit.start("rest"), preposition))
    return text.edit(edit for edit in sorted(edits) if not any(a < edit[1] and edit[0] < b for a, b in kept))


def write_values(source: str, translation: str, languages: tuple[str, str]) -> str:
    """Return the translation of a simplified source with the powers of a thousand, euros and limits of the source."""
    language, target = map(primary_language, languages)
    for kind, limit in _limits(source, language):
        key, (_, words, _) = NOT_DIGIT.sub("", limit["number"]), _LIMITS[target][kind]
        if number := next((one for one in _DIGITS.finditer(translation) if NOT_DIGIT.sub("", one[0]) == key), None):
            place = _before_number(target, kind in _TIMES).search(translation[: number.start()])
            assert place
            words = f"{words} {translation[place.start('rest') :]}"
            words = raise_first(words, target) if not place.start() and source[0].isupper() else words
            translation = translation[: place.start()] + words
    if _has_euros(source):
        translation = _EUROS["dollars"].sub(lambda match: _euros(match[0]), translation)
    return with_scales(with_edits(source, _digit_edits(source, language)), translation, (language, target))


@cache
def _before_number(language: str, is_time: bool) -> re.Pattern[str]:
    """Return a pattern of what is before a number: a preposition, a month, or a sign of money."""
    before, dropped = _TABLES["before_limits"][language]
    before = rf"(?:\b{dropped})?(?P<rest>(?:\b{before})?(?:\b[A-Z]\w{{2,8}},? )?[$€£]?)\Z"
    return re.compile(before if is_time else r"(?P<rest>[$€£]?)\Z")


def _limits(text: str, language: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield (kind, match) of each limit before a number of digits."""
    may_have = any(map(text.__contains__, _TABLES["limit_hints"][language]))
    for match in _limit(language).finditer(text) if may_have else ():
        yield next(kind for kind in _LIMITS[language] if match[kind]), match


@cache
def _limit(language: str) -> re.Pattern[str]:
    words = "|".join(rf"(?P<{kind}>{rows[0]})" for kind, rows in _LIMITS[language].items())
    before = f"(?P<before>{'|'.join(_TABLES['before_limits'][language])})?"
    return re.compile(rf"(?<!\w)(?i:{words}) (?P<rest>{before}(?:[A-Z]\w{{2,8}},? )?[$€£]?(?P<number>{NUMBER}))")


def _digit_edits(text: str, language: str) -> Iterator[tuple[int, int, str]]:
    """Yield an edit (begin, end, digits) for each numeral in words."""
    for value in _values(text, language):
        if not text[value.begin].isdigit():
            mark = MARKS[language].group if len(value.digits) > _YEAR else ""
            yield value.begin, value.end, f"{int(value.digits):,}".replace(",", mark)


def _key(value: _Value) -> tuple[str, int]:
    return value.digits, value.scale // 2


def _has_euros(text: str) -> bool:
    may_have = "uro" in text or "EUR" in text  # a fast test
    return may_have and _EUROS["words"].search(text) is not None and not _EUROS["dollars"].search(text)


def _dollars(euros: str) -> str:
    return euros.replace("d'", "de ").replace("d’", "de ").replace("euro", "dollar").replace("Euro", "Dollar")


def _euros(dollars: str) -> str:
    return (
        dollars.replace("de ", "d'")
        .replace("dollar", "euro")
        .replace("Dollar", "Euro")
        .replace("$", "€")
        .replace("USD", "EUR")
    )


def _values(text: str, language: str) -> list[_Value]:
    """Return the numerals of a text, and the numbers before a power of a thousand."""
    found = [(match, str(value)) for match, value in find_numerals(text, language) if match[0] != "cents"]
    values, ranges = list[_Value](), set[int]()
    for (first, low), (last, high) in pairwise(found):  # ten to fifteen, but not twenty-five to nine
        if text[first.end() : last.start()] == _NUMERALS[language]["to"] and 1 < int(low) < int(high) >= _LEAST:
            ranges |= {first.start(), last.start()}
    if "ill" in text:  # million, Milliarde, billion
        found += ((match, NOT_DIGIT.sub("", match[0])) for match in _DIGITS.finditer(text))
    for match, digits in found:
        after = _SCALE_AFTER.match(text, match.end())
        scale = SCALE_WORDS[language].index(after[1]) if after and after[1] in SCALE_WORDS[language] else -1
        is_word, least = not match[0][0].isdigit(), 2 if match.start() in ranges else _LEAST
        if scale >= (2 if is_word and digits == "1" else 0) or (is_word and int(digits) >= least):  # not a million
            values.append(_Value(*match.span(), digits, scale))
    return values


def find_numerals(text: str, language: str) -> Iterator[tuple[re.Match[str], int]]:
    """Yield (match, value) of each numeral: `two hundred and five`, `in twenty ten`, not `at five fifteen`."""
    if not _HINTS[language].search(text):
        return
    numerals, words, values = _patterns(language)
    matches = [*numerals.finditer(text)]
    beside = {one for pair in pairwise(matches) if text[pair[0].end() : pair[1].start()] in (" ", "-") for one in pair}
    for match in (one for one in matches if one not in beside):
        total, current = 0, 0
        for word in words.finditer(match[0]):
            value = values[(word.lastindex or 1) - 1]
            if value == _THOUSAND:
                total, current = _THOUSAND * max(1, current), 0
            else:
                current = max(1, current) * value if value == _HUNDRED else current + value
            current *= _HUNDRED if word.end() == match.end("century") - match.start() else 1
        yield match, total + current


@cache
def _patterns(language: str) -> tuple[re.Pattern[str], re.Pattern[str], list[int]]:
    """Return a pattern of numerals, one of their words, which are its groups, and the value of each word."""
    table, link, space = _NUMERALS[language], _NUMERALS[language]["link"], "" if language == "de" else "[ -]"
    kinds = {kind: "|".join(sorted(table[kind].split(), key=len, reverse=True)) for kind in _KINDS}
    words = [
        (word, first + step * number)
        for kind, (first, step) in _KINDS.items()
        for number, word in enumerate(table[kind].split())
    ]
    hundred, thousand = table["scales"].split()
    words = sorted([*words, (hundred, _HUNDRED), (thousand, _THOUSAND)], key=lambda pair: len(pair[0]), reverse=True)
    small, year = table["below_hundred"].format(**kinds), table["year"].format(**kinds)
    medium = rf"(?:(?:{kinds['ones']}|{kinds['teens']}|{table['one']}){space})?{hundred}(?:{link}(?:{small}))?|{small}"
    numeral = rf"{year}|(?:(?:{medium}|{table['one']}){space})?{thousand}(?:{link}(?:{medium}))?|{medium}"
    before = r"(?<!pour )(?<!per )(?<!heures )(?<!Uhr )(?<![\w-])"  # 60 per cent, 7:30
    after = r"(?!\w|-(?!(?:year|day|page|minute|hour|foot|man)\b))"
    return (
        re.compile(rf"(?i){before}(?:{numeral}){after}"),
        re.compile("|".join(f"({word})" for word, _ in words), re.IGNORECASE),
        [value for _, value in words],
    )
