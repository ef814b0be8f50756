"""Conversion of sentences in ALL CAPS or Title Case to sentence case, because models translate other cases badly."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import chain, pairwise

from mt.languages import primary_language
from mt.text.alignment import Range, is_wide, ranges_between, with_edits
from mt.text.clauses import may_lower
from mt.text.names import is_given_name
from mt.text.protect import ProtectedSpan, find_spans, find_translated_spans
from mt.text.titles import OFFICE, POLITE, titled_names
from mt.text.word_tables import read_tables, read_words

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_INITIAL, _SINGLE_CODE, _AFTER_NUMBER, _PROHIBITION, _TITLE, _LABEL = (
    re.compile(pattern) for pattern in read_tables("patterns.toml")["casing"].values()
)
BEFORE_KEY = re.compile(r"([A-Z][a-z]+) (?:\w{1,20}\+|(?:Alt|Cmd|Ctrl|Esc|F\d{1,2}|Shift|Tab)\b)")  # Press Ctrl
_FIRST_WORD = re.compile(r"[\W_]*([^\W\d_][^\s]*)")
_LOWER_WORD = re.compile(r" [a-z]{4,} ")  # a fast test, with a match in most sentences with a long word in lower case
_VOWELS = frozenset("AEIOUYÀÁÂÃÄÅÆÈÉÊËÌÍÎÏÒÓÔÕÖØÙÚÛÜÝŒĄĘĚĒĪŌŪŮŐŰŸİ")
_LATIN = re.compile(r"[A-ZÀ-ÖØ-Þ]+")
_ENGLISH_ME = re.compile(r"I\b(?!\.)")
_DATE = re.compile(r"\w+\.? \d")  # March 3
_GERMAN_REQUEST = re.compile(r"(?:Bitte )?\w+(?:n Sie|st du)\b|Bitte\b|\w+ (?:bitte|mich|mir|uns)\b")
_ADDRESS = re.compile(r"\b(?:you|yours?|yourself|yourselves|vous|votre|vos)\b", re.IGNORECASE)
_BEFORE_NOUN = re.compile(r"[A-ZÄÖÜ][a-zäöüß]{2,}e[mnrs]? [A-ZÄÖÜ]")  # Neue Nachrichten
_ENGLISH_I = re.compile(r"\bi\b(?=['’]|\W|$)")
# A letter with a meaning of its own: G 1/2", Plan B, Size: M, L, (B × H). In other languages, single letters are words.
_LANGUAGES_OF_CODES = frozenset({"de", "en"})
_DOTTED = frozenset({"az", "tr"})  # languages with the letter pairs I/ı and İ/i
_ACRONYMS, _NO_ACRONYMS = read_words("casing.toml").values()
_STOPS, _FINAL_MARKS = frozenset(".。"), frozenset(".!?…:;,")
_CLAUSE_ENDS = {mark: both for both in (",，", ";；", ":：") for mark in both} | {"、": ",、"}
_LEAST_WORDS = 2  # a sentence in capitals has at least so many words, or a word of at least _LONG_WORD letters
_LONG_WORD = 6
_LEAST_LONG = 3  # a word of at most so many letters may be a code, or in lower case in a headline
_LEAST_TITLE = 4  # in a headline of at least so many words, short words may be in lower case
_TITLED = frozenset({"", "en"})  # languages with headlines in Title Case: "Er saß auf der Bank" is ordinary German


def lower_capitals(
    sentence: str, language: str, kept: Sequence[Range] = (), pieces: Callable[[str], int] = lambda word: 0
) -> str | None:
    """Return a sentence in ALL CAPS converted to sentence case, or None if the sentence is not in ALL CAPS.

    Known acronyms, words without a vowel, words of mixed case such as `kWh`, protected spans, and the ranges `kept`
    keep their case. The result for a sentence of one or two short words is None, because the words may be codes, unless
    the model knows them in lower or title case, as `EXIT`, and better than in capitals, as `THE DOG`. `pieces` is the
    number of pieces of a word that it knows, or 0. Of `london` and `London`, the word of fewer pieces is written.
    """
    if _has_lower_word(sentence):
        return None
    words = _free_words(sentence, language, kept)
    long = [word[0] for word in words if len(word[0]) > 1]
    plain = [word for word in long if not _is_code(word)]
    capitals = [word for word in plain if _in_capitals(word)]
    if not capitals or len(capitals) < len([word for word in plain if not is_mixed_case(word)]):
        return None
    is_long = max(map(len, plain)) > (_LEAST_LONG if len(plain) >= _LEAST_WORDS else _LONG_WORD - 1)
    least = _LEAST_LONG if len(plain) <= _LEAST_WORDS else 0  # THE DOG IS BIG

    def is_known(word: str) -> bool:  # unlike FBI in THE FBI
        fewest = min(filter(None, (pieces(word.lower()), pieces(word.title()))), default=0)
        return fewest > 0 and (len(word) > least or (len(words) > 1 and (fewest == 1 or fewest < pieces(word))))

    if not is_long and not all(map(is_known, plain)):
        return None
    fixed = {word for word in long if _is_code(word) or is_mixed_case(word)}
    lowered = _lower_words(sentence, words, language, fixed, pieces=pieces)
    return str(_TITLE.sub(lambda title: title[0].title(), lowered))


def raise_capitals(translation: str, source: str, language: str, kept: Sequence[Range] = ()) -> str:
    """Convert a translation to ALL CAPS, except protected spans and mixed-case words that occur in the source."""
    spans = find_spans(source, kept)
    texts = {span.text for span in spans} | {word for word in _WORD.findall(source) if is_mixed_case(word)}
    copies = find_translated_spans(translation, spans)
    words = (word for word in _WORD.finditer(translation) if word[0] in texts and not _is_within(word.start(), copies))
    fixed = chain(((copy.begin, copy.end) for copy in copies if copy.text in texts), (word.span() for word in words))
    between = ranges_between(sorted(fixed), len(translation))
    return with_edits(translation, ((begin, end, _upper(translation[begin:end], language)) for begin, end in between))


def lower_title_case(sentence: str, language: str, kept: Sequence[Range] = ()) -> str | None:
    """Return a sentence in Title Case, or a short one with "No", in lower case, or None if the sentence is neither.

    Fewer than _LEAST_TITLE words become lower case: models translate `red car` better than `Red car`.
    """
    if _PROHIBITION.fullmatch(sentence) and primary_language(language) == "en":
        return f"n{sentence[1:]}"
    if primary_language(language) not in _TITLED or _has_lower_word(sentence) or _INITIAL.search(sentence):
        return None
    words = (
        []
        if OFFICE.search(sentence) or any(titled_names(sentence, language))
        else _free_words(sentence, language, kept)
    )
    long = [word[0] for word in words if len(word[0]) > _LEAST_LONG]
    if len(words) < _LEAST_TITLE:
        if len(words) < _LEAST_WORDS or "." in sentence:
            return None
        long = [word[0] for word in words]  # all words, because there are few
    if not long or any(not _in_title_case(word) and not _is_code(word) for word in long):
        return None
    fixed = _fixed(words) | set(filter(is_given_name, long))
    lowered = _lower_words(sentence, words, language, fixed, is_headline=len(words) >= _LEAST_TITLE)
    return lowered if lowered != sentence else None


def lower_first(sentence: str, language: str) -> str | None:
    """Return `Less than 5 minutes` and `Press F5 now.` with a small first letter, or None for another text.

    Models take the first word of a label, without a final mark, or before a key for a name. German ones may be nouns.
    """
    label = (sentence[-1] not in _FINAL_MARKS and _LABEL.match(sentence)) or BEFORE_KEY.match(sentence)
    if not label or is_given_name(label[1]):
        return None
    is_lowered = primary_language(language) in ("en", "fr") or may_lower(label[1], language)
    return sentence[0].lower() + sentence[1:] if is_lowered else None


def lower_all(sentence: str, language: str, kept: Sequence[Range] = ()) -> str:
    """Return a sentence, unless it has a title, in lower case, except codes, mixed-case words and the ranges `kept`."""
    words = [] if any(titled_names(sentence, language)) else _free_words(sentence, language, kept)
    return _lower_words(sentence, words, language, _fixed(words), is_headline=False)


def is_mixed_case(word: str) -> bool:
    """Return whether a capital letter follows a lower-case letter, as in kWh, iPhone and PhD."""
    return any(a.islower() and b.isupper() for a, b in pairwise(word)) and not _in_capitals(word)


def as_clause(
    translation: str, clause: str, language: str, is_first: bool, is_common: Callable[[str], bool] = lambda word: False
) -> str:
    """Return the translation of a clause with the letter case and the final punctuation of the clause.

    Models write a clause like a sentence. A clause that is not the first begins with a small letter, unless it may
    begin with a German noun or a name. `is_common` tells whether a word in lower case is one of those that the model
    writes most, as names are not. The punctuation that ends `clause` replaces a final full stop, or is added.
    """
    first = "" if is_first else re.split(r"[\s'’]", translation, maxsplit=1)[0]
    if first and (clause[:1].islower() or _ENGLISH_ME.match(clause)):
        is_german = primary_language(language) == "de"
        is_free = not is_german or _BEFORE_NOUN.match(translation)
        may_be_name = len(first) == 1 or not is_free or _DATE.match(translation) or not is_common(first.lower())
        may_be_small = not may_be_name or may_lower(first, language)
        if is_german and (polite := POLITE.match(translation) or _GERMAN_REQUEST.match(translation)):
            may_be_small = polite.re is _GERMAN_REQUEST or not _ADDRESS.search(clause)
        if may_be_small:
            translation = translation[0].lower() + translation[1:]
    mark = clause[-1:] if clause[-1:] in _CLAUSE_ENDS else ""
    if mark and translation[-1:].isalnum():
        return translation + _CLAUSE_ENDS[mark][is_wide(translation[-1])]
    if translation[-1:] in _STOPS and clause[-1:] not in _STOPS:
        is_fullwidth = translation[-1:] == "。"
        return translation[:-1] + (_CLAUSE_ENDS[mark][is_fullwidth] if mark else "")
    return translation


def _has_lower_word(sentence: str) -> bool:
    """Return whether a sentence has a long word in lower case, and so is neither in ALL CAPS nor in Title Case."""
    return _LOWER_WORD.search(sentence) is not None or any(
        len(word) > _LEAST_LONG and word.isalpha() and word.islower() for word in sentence.split()
    )


def _free_words(sentence: str, language: str, kept: Sequence[Range]) -> list[re.Match[str]]:
    spans = find_spans(sentence, kept)
    words = (word for word in _WORD.finditer(sentence) if not _is_within(word.start(), spans))
    has_codes = primary_language(language) in _LANGUAGES_OF_CODES
    return [word for word in words if not (has_codes and _SINGLE_CODE.match(sentence, word.start()))]


def _is_within(place: int, spans: Sequence[ProtectedSpan]) -> bool:
    number = bisect_right(spans, place, key=lambda span: span.begin)
    return number > 0 and place < spans[number - 1].end


def _is_code(word: str) -> bool:
    """Return whether a word is a known acronym, or consists of Latin capitals without a vowel."""
    pronounceable = word in _NO_ACRONYMS or not _LATIN.fullmatch(word) or not _VOWELS.isdisjoint(word)
    return word in _ACRONYMS or not pronounceable


def _fixed(words: Sequence[re.Match[str]]) -> set[str]:
    """Return the words of a headline that keep their case: codes, words of mixed case, and words in capitals."""
    long = {word[0] for word in words if len(word[0]) > 1}
    units = {word[0] for word in words if _AFTER_NUMBER.match(word.string, word.start())}
    return units | {word for word in long if _is_code(word) or is_mixed_case(word) or _in_capitals(word)}


def _in_capitals(word: str) -> bool:
    return word.replace("ß", "").isupper()


def _in_title_case(word: str) -> bool:
    return word[0].isupper() and word[1:] == word[1:].lower() and not word.isupper()


def _lower_words(
    sentence: str,
    words: Sequence[re.Match[str]],
    language: str,
    kept: set[str],
    is_headline: bool = True,
    pieces: Callable[[str], int] = lambda word: 0,
) -> str:
    """Return `sentence` with `words` in lower case, except words in `kept`, and "I" in English.

    The first letter of the first word of a headline is upper case.
    """
    edits = []
    for number, word in enumerate(words):
        text = word[0]
        if text not in kept:
            forms = [_lower(text, language), _lower(text, language).replace("ss", "ß")]
            forms = [forms[0], raise_first(forms[0], language), forms[1], raise_first(forms[1], language)]
            text = min(forms, key=lambda form: pieces(form) or len(text) + 1)
            text = raise_first(text, language) if number == 0 and is_headline else text
        edits.append((*word.span(), text))
    lowered = with_edits(sentence, edits)
    return _ENGLISH_I.sub("I", lowered) if primary_language(language) == "en" else lowered


def _lower(text: str, language: str) -> str:
    if primary_language(language) in _DOTTED:
        text = text.replace("I", "ı").replace("İ", "i")
    return text.lower()


def begin_with_capital(translation: str, source: str, language: str, kept: Sequence[Range] = ()) -> str:
    """Return a translation that begins with a capital letter if its source does.

    A first word of mixed case such as `iPhone`, one without a vowel such as `npm`, code, and the text of the ranges
    `kept` of the source keep their case.
    """
    word, begins = _FIRST_WORD.match(translation), next(filter(str.isalnum, source), "")
    if not word or not begins.isupper() or not word[1][0].islower() or is_mixed_case(word[1]):
        return translation
    upper = word[1].upper()
    unpronounceable = _LATIN.match(upper) is not None and _VOWELS.isdisjoint(upper)
    spans = find_translated_spans(translation, find_spans(source, kept))
    if unpronounceable or word[1][0].title() == word[1][0] or _is_within(word.start(1), spans):
        return translation
    return translation[: word.start(1)] + raise_first(translation[word.start(1) :], language)


def raise_first(text: str, language: str) -> str:
    """Return a text with its first letter in upper case."""
    return _upper(text[:1], language) + text[1:]


def _upper(text: str, language: str) -> str:
    return (text.replace("i", "İ") if primary_language(language) in _DOTTED else text).upper()


def ranges_in(text: str, sentence: str, ranges: Sequence[Range]) -> tuple[Range, ...]:
    """Convert ranges of a sentence to ranges of `text`, the same sentence in another letter case, without lost ones."""
    if len(text) == len(sentence):
        return tuple(ranges)
    found = ((text.find(sentence[begin:end]), end - begin) for begin, end in ranges)
    return tuple((begin, begin + length) for begin, length in found if begin >= 0)
