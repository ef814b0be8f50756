"""Symbols that models change although they are the same in every language: units, names, codes and unknown letters.

A sentence is decoded again, with stand-ins for its symbols, only if its translation lacks one of them.
"""

import re
from collections import Counter
from collections.abc import Iterator, Set
from unicodedata import normalize

from mt.languages import primary_language
from mt.text.alignment import Range, is_wide
from mt.text.casing import is_mixed_case
from mt.text.word_tables import read_tables

_TABLES = read_tables("patterns.toml")
ONE_UNIT = f"(?!pm(?!ol))(?:{'|'.join(_TABLES['units'])})"
_STANDARD = "(?:ANSI|ASTM|BS|CSA|DIN|EN|GOST|IEC|IEEE|ISO|JIS|NBR|NF|RFC|SAE|UL|UNI|VDE|ÖNORM)(?: (?:EN|ISO)){0,3}"
_NUMBER = r"\d{1,12}(?:[.,’ \u00a0\u202f]\d{1,12}){0,4}"
_SYMBOL = re.compile(  # a measure as 10 mV, ~ 5 mg, 2,5 µg/ml, 5 - 10 kg and 5 to 10 kg, a standard, a code, or a word
    r"(?:(?P<sign>[~≈≤≥±])[ \u00a0]?)?(?<![\w.,/])"
    rf"(?P<first>{_NUMBER}[ \u00a0]?(?:(?P<dash>[-–—])|(?<= )[^\W\d_]{{1,4}}(?= ))[ \u00a0]?)?"
    rf"(?P<last>[-+\u2212]?{_NUMBER})"
    rf"[ \u00a0\u202f](?P<unit>{ONE_UNIT}(?:[/·]{ONE_UNIT}|/h)?)(?![\w'’/-])"
    rf"|(?<![\w-])(?P<standard>{_STANDARD}[ \u00a0]\d{{2,6}}(?:[-:.]\d{{1,6}}){{0,3}})(?![\w-])"
    r"|(?<![\w.-])(?P<code>[^\W\d_]{1,3}-\d{1,6}|[A-Z]{2,6}-[A-Z]|(?P<one>[A-Z])(?P=one){2,})(?!\w)"
    r"|[^\W\d_]+"
)
_UNIT_WORDS = {
    unit: re.compile(rf"\d[ \u00a0-]?(?:{words})", re.IGNORECASE) for unit, words in _TABLES["unit_words"].items()
}
_HINT = re.compile(_TABLES["symbol_hint"])  # a fast test: most sentences have no symbols
_GENDER = re.compile(r"[a-zäöüß]In(?:nen)?$")  # as in MitarbeiterInnen, which other languages translate
_PART = re.compile(r"[^\s!-/:-@\[-`{-~]+")  # a word, including combining accents
_CODES = frozenset("ean gtin iban id isbn sku uid uri url uuid cs de el en fr ja ko nl pl pt ru sv tr uk zh".split())
_CODE_LINE = re.compile("|".join(_TABLES["lines"]))
_VOWELS = frozenset("aeiouy")
_LETTER_WORDS = frozenset("Ia")
_VOWELLESS_WORDS = frozenset({"bg", "bs", "cs", "cy", "hr", "mk", "sk", "sl", "sr"})  # languages with words like "krk"


def lost_symbols(source: str, translation: str) -> list[Range]:
    """Return the ranges of the measures, standards and words of mixed case that a translation lacks.

    A measure is a number, or two with a dash between them, and a unit. Only the unit, a sign such as ~, and whether
    there are two numbers are compared. The translation may have a word for the unit: 10 Minuten for 10 min.
    """
    if not _HINT.search(source):
        return []
    wanted = list(_symbols(source, is_source=True))
    missing = Counter(symbol for symbol, _ in wanted) - Counter(symbol for symbol, _ in _symbols(translation))
    lost = {one for one in missing if not (one in _UNIT_WORDS and _UNIT_WORDS[one].search(translation))}
    return sorted({place for symbol, place in wanted if symbol in lost})  # all of a symbol: which is lost is unknown


def is_code(text: str, language: str) -> bool:
    """Return whether a text stays: a letter, a label such as `A 1`, a formula, a line of code, or a code as `pcs`."""
    if not (text.isascii() and text.isalpha()):
        return _CODE_LINE.fullmatch(text) is not None
    vowelless = text.islower() and _VOWELS.isdisjoint(text)
    if len(text) == 1:
        return text not in _LETTER_WORDS
    return text in _CODES or (vowelless and primary_language(language) not in _VOWELLESS_WORDS)


def unknown_words(sentence: str, known: Set[str]) -> list[Range]:
    """Return the ranges of the words that consist mostly of unknown letters, or have U+FFFD in place of a letter.

    A letter is unknown if `known` contains neither the letter, nor its lower-case form, nor its NFKC form. Consecutive
    unknown words form one range.
    """
    ranges: list[Range] = []
    for word in _PART.finditer(sentence) if _may_be_unknown(sentence, known) else ():
        letters = sum(map(str.isalpha, word[0]))
        if 2 * len(_unknown_letters(word[0], known)) > letters or (letters and "\ufffd" in word[0]):
            begin = ranges[-1][1] if ranges else 0
            follows = ranges and not any(map(str.isalnum, sentence[begin : word.start()]))
            ranges.append((ranges.pop()[0] if follows else word.start(), word.end()))
    return ranges


def damaged_words(sentence: str, translation: str, known: Set[str], language: str) -> list[Range]:
    """Return the ranges of the words with unknown letters (`unknown_words`) that the translation lacks.

    Words of scripts without spaces are left out, and French ones that the model has translated, as `Noël`.
    """
    if not _may_be_unknown(sentence, known):
        return []
    letters_there, words = set(translation), set(re.findall(r"\w+", translation))
    is_french = primary_language(language) == "fr"
    return [
        word.span()
        for word in _PART.finditer(sentence)
        if not any(map(is_wide, word[0]))
        and not letters_there.issuperset(letters := _unknown_letters(word[0], known))
        and not (letters in (["ë"], ["ï"]) and (is_french or word[0].islower()) and words.isdisjoint(_rests(word[0])))
    ]


def _rests(word: str) -> list[str]:  # what a model that does not know ï writes for naïve: na, ve or nave
    return [*(parts := re.split("[ëï]", word)), "".join(parts)]


def _may_be_unknown(sentence: str, known: Set[str]) -> bool:
    return not (sentence.isascii() or known >= set(filter(str.isalpha, sentence))) or "\ufffd" in sentence


def _unknown_letters(word: str, known: Set[str]) -> list[str]:
    return [
        letter
        for letter in filter(str.isalpha, word)
        if not (letter in known or letter.lower() in known or normalize("NFKC", letter) in known)
    ]


def _symbols(text: str, is_source: bool = False) -> Iterator[tuple[str, Range]]:
    """Yield (symbol, range) of each measure, standard such as `EN 60335-1`, and other word of mixed case.

    A measure with two numbers is two symbols. A short word may be in place of their dash if the text is not the source.
    """
    for match in _SYMBOL.finditer(text):
        if match["unit"]:
            place = match.start() if match["dash"] or not match["first"] else match.start("last"), match.end()
            yield (match["sign"] or "") + match["unit"], place
            if match["dash"] or (match["first"] and not is_source):
                yield f"–{match['unit']}", place
        elif match["standard"] or match["code"] or (is_mixed_case(match[0]) and not _GENDER.search(match[0])):
            yield match[0], match.span()
