"""Quotations of a sentence: those that a translation lost, copied or closed badly, and the marks of direct speech."""

import re
from collections.abc import Iterable, Mapping, Sequence

from mt.languages import primary_language
from mt.text.alignment import Range, with_edits
from mt.text.clauses import begins_clause, goes_on
from mt.text.word_tables import read_tables

_TABLES = read_tables("patterns.toml")
_OPENING = frozenset("\"„“«'")
_QUOTES, _SINGLE_QUOTES = frozenset('"“”„«»'), frozenset("'‘‚‹")
_MARKS_BESIDE = "".join(sorted(_QUOTES | _SINGLE_QUOTES)) + "’"
_QUOTATIONS = [*map(re.compile, _TABLES["quotations"].values())]
_WHOLE, _LITERAL_CONTEXT, _NAMED, _DEFINED, _VALUE_CONTEXT, *_OF_SPEECH = map(re.compile, _TABLES["quotation"].values())
_NESTED, _SPEECH, _WRITTEN_SPEECH, _INTERRUPTED, _TAGGED, _SUBJECT = _OF_SPEECH
_SPEECH_LANGUAGES, _VERBS, _PRONOUNS = _TABLES["speech"].values()
_FRENCH_SPEAKERS = ("-il.", "-elle.")  # of direct speech without marks: Viens ! dit-il.
_ANSWERS = frozenset({"yes", "no", "ja", "nein", "oui", "non"})
_LONG_QUOTATION = 20  # characters of one that is translated with its marks
_MOST_QUOTATIONS = 20  # of a sentence, which are translated one by one
_MOST_WORDS = 2  # quotations of a sentence that are no list of values
_STRAIGHT_QUOTE = re.compile(r'(?<!\d)"')  # not of inches


def has_double_quotes(text: str) -> bool:
    """Return whether a text has one of _QUOTES, several times faster than a set or a pattern does."""
    return '"' in text or "“" in text or "”" in text or "„" in text or "«" in text or "»" in text


def has_quotes(text: str) -> bool:
    """Return whether a text has a double or single quotation mark, or an apostrophe."""
    return has_double_quotes(text) or "'" in text or "‘" in text or "‚" in text or "‹" in text


def lost_quotations(source: str, translation: str, kept: Sequence[Range] = ()) -> list[Range]:
    """Return the ranges of the quoted words of a source if its translation has fewer quotations. None is in `kept`.

    Those of a source that has nothing else are lost, too: a model confuses the words of a list, and copies one word.
    """
    if not has_quotes(source):
        return []  # a fast test
    opened = len(_STRAIGHT_QUOTE.findall(translation)) % 2 > source.count('"') % 2
    surplus = 0  # quotations within other marks than those of the source
    for quotation in _QUOTATIONS:
        ranges = [match.span(1) for match in quotation.finditer(source)]
        written = len(quotation.findall(translation)) - opened + surplus
        if not any(map(str.isalnum, quotation.sub("", source))):
            written = len(source) > _LONG_QUOTATION
        if _MOST_QUOTATIONS >= len(ranges) > written:
            return [one for one in ranges if not any(begin < one[1] and one[0] < end for begin, end in kept)]
        surplus = max(0, written - len(ranges))
    return []


def whole_quotation(source: str) -> str | None:
    """Return the words of a source of several words that is one quotation without `, she said,`, otherwise None."""
    quotation = _WHOLE.fullmatch(source) if source[:1] in _OPENING and " " in source.strip() else None
    return quotation[quotation.lastindex or 0] if quotation and not _INTERRUPTED.search(source) else None


def literal_words(source: str) -> list[str]:
    """Return the quoted words in lower case of a sentence in which they stand for themselves: `Type "exit"`."""
    if not has_quotes(source) or not _LITERAL_CONTEXT.search(source):
        return []
    return [text for one in _QUOTATIONS for text in one.findall(source) if text.islower()]


def quoted_words(source: str, translation: str) -> dict[str, str]:
    """Return quoted words of a source by what stands for them: yes and no, one or two that are no values.

    Words that a sentence speaks of, as `the word "house"`, are returned unless they stayed.
    """
    quoted, written = (
        [one[1] for one in sorted((one for mark in _QUOTATIONS for one in mark.finditer(side)), key=re.Match.start)]
        for side in (source, translation)
    )
    if len(quoted) != len(written):
        return {}
    pairs = [(old, new) for old, new in zip(quoted, written, strict=True) if old.islower()]
    if _NAMED.search(source):
        return {new: old for old, new in pairs if old != new}
    if _LITERAL_CONTEXT.search(source) and not _DEFINED.search(source):
        return {}
    may_be_prose = len(quoted) <= _MOST_WORDS and not _VALUE_CONTEXT.search(source)
    return {new: old for old, new in pairs if may_be_prose or old in _ANSWERS}


def quote_words(source: str, translation: str, words: Iterable[str]) -> str:
    """Return a translation with marks around the quoted words of its source if it has them once and without marks."""
    quoted = {match[1]: match[0][0] for quotation in _QUOTATIONS for match in quotation.finditer(source)}
    for text in words:
        if source.count(text) > 1 or (text in source and text not in quoted):
            continue
        ending = "[a-zäöüß]{0,2}" * text.islower()
        before, after = rf"(?<![\w{_MARKS_BESIDE}])(?<![{_MARKS_BESIDE}]\s)", rf"(?!\w|\s?[{_MARKS_BESIDE}])"
        places = [*re.finditer(rf"{before}{re.escape(text)}{ending}{after}", translation)]
        if len(places) == 1:
            mark = "'" if quoted.get(text) in _SINGLE_QUOTES else '"'
            translation = with_edits(translation, [(*places[0].span(), f"{mark}{places[0][0]}{mark}")])
    return translation


def write_quotations(translation: str, words: Mapping[str, str]) -> str:
    """Return a translation in which other words take the place of the quoted ones that are keys of `words`."""

    def written(quoted: re.Match[str]) -> str:
        if quoted[1] not in words:
            return quoted[0]
        first, last = ('"', '"') if quoted[0][0] in _QUOTES else (quoted[0][0], quoted[0][-1])
        return f"{first}{words[quoted[1]]}{translation[quoted.end(1) : quoted.end() - 1].strip()}{last}"

    for quotation in _QUOTATIONS:
        translation = quotation.sub(written, translation)
    return translation


def speech_parts(source: str, languages: tuple[str, str]) -> list[tuple[str, bool]]:
    """Return the parts (text, whether it stays) of `"Come in," she said.`, or of a question behind a colon, else []."""
    columns = [primary_language(language) for language in languages]
    may_be_speech = has_double_quotes(source) or source.endswith(_FRENCH_SPEAKERS)
    match = _TAGGED.fullmatch(source) if may_be_speech and {*columns} <= {*_SPEECH_LANGUAGES} else None
    if not match or match["label"]:
        return [(match["label"], False), (' "', True), (match["question"], False), ('"', True)] if match else []
    here, there = map(_SPEECH_LANGUAGES.index, columns)
    said_by = match["tag"] or match["within"] or match["by"]
    first, _, second = said_by.replace("-t-", "-").replace("-", " ").partition(" ")
    verb = next((row[there] for row in _VERBS if row[here] in (first, second)), "")
    pronoun = next((row[there] for row in _PRONOUNS if row[here] in (first, second)), "")
    if not verb or not (pronoun or (first in (row[here] for row in _VERBS) and _SUBJECT.match(second))):
        return []
    said = f"{verb}-t-{pronoun}" if verb[-1] in "ae" else f"{verb}-{pronoun}"
    said = {"de": f"{verb} {pronoun}", "en": f"{pronoun} {verb}"}.get(columns[1], said)
    tag = [(said, True)] if pronoun else [(f"{verb} ", True), (second, False)]
    tag += [(" ", True), (match["more"], False)] if match["more"] else []
    words, rest = match["words"] or match["first"] or match["spoken"], match["rest"] or match["last"]
    if rest and " " not in words:  # No, Wait, Peter: not joined
        return []
    if rest:  # behind who said it, which now follows: a sentence in two parts would be two sentences
        joint = ", " if goes_on(words.lower(), languages[0]) or begins_clause(rest, languages[0]) else " "
        words += joint + rest.removesuffix(".")
    words += match["mark"] or match["sign"] or "." * (words[-1] not in "!?…")  # a sentence, which models know
    return [('"', True), (words, False), ('", ', True), *tag, (".", True)]


def close_nested_quotation(source: str, translation: str) -> str:
    """Write single marks in a quotation, and close it: `"I say 'yes'."` for `"I say "yes".`."""
    nested = _NESTED.fullmatch(translation) if has_double_quotes(source) else None
    if not nested or len(_QUOTATIONS[1].findall(source)) != 1:
        return translation
    closing = {"„": "“", "«": " »"}.get(nested[2], nested[2])
    return f"{nested[1].rstrip()} '{nested[3].strip()}'{nested[4]}{closing}"


def write_speech_marks(source: str, translation: str, language: str) -> str:
    """Write the comma after direct speech that begins a text. What follows is no sentence, as in `„Wo?“ Er fragte.`."""
    speech = _SPEECH.match(source) if source[:1] in _QUOTES or source.endswith(_FRENCH_SPEAKERS) else None
    written = _WRITTEN_SPEECH.match(translation) if speech else None
    if not speech or not written:
        return translation
    begin, mark, closing, rest = written.groups()
    if not rest[:1].islower():
        return translation
    mark, language = mark.strip(".,"), primary_language(language)
    if language == "de":
        return f"{begin}{mark}{closing}, {rest}"
    comma = "," if not mark else ""
    return f"{begin}{mark}{comma}{closing} {rest}" if language == "en" else f"{begin}{mark}{closing}{comma} {rest}"
