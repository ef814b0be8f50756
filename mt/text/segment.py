"""Segmentation of a text into sentences, and assembly of the translation from translated sentences.

A paragraph ends at a tab, at a separator of items such as `|`, or at a line break as defined by `str.splitlines`,
unless the sentence continues in the next line (`_continues`). The package sentencex, which knows the abbreviations of
about 300 languages, finds the ends of sentences. A text is split into sentences and the text between them, so that
concatenating all parts gives the text.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, pairwise

import sentencex

from mt.languages import primary_language
from mt.text.abbreviations import ends_with_abbreviation
from mt.text.alignment import Range
from mt.text.clauses import AFTER_CLAUSE, conjunctions, goes_on, may_lower
from mt.text.items import OPEN_ENDS, find_tables, split_items
from mt.text.normalise import MARGIN, QUOTE_MARKS, normalise_text, plain_spaces
from mt.text.span_patterns import TIME_ZONE
from mt.text.word_tables import read_tables

LONGEST_SENTENCE = 2000
"""Maximum number of characters of a sentence; longer ones, which exceed the maximum length of any model, are cut."""

_MOST_MERGED = 100  # kept parts, which also bounds the time between two parts
_SPACELESS = frozenset({"ja", "yue", "zh"})  # languages without a space between sentences
_LINE_BREAK, _NO_PROSE, _SENTENCE_END, _WITHIN_WORD, _ITEM, _NO_BEGIN, *_PATTERNS = (
    re.compile(pattern) for pattern in read_tables("patterns.toml")["sentences"].values()
)
_ABBREVIATION, _FIRST_PART, _SECOND_PART, _ROMAN_NUMERAL, _DOTTED_NAME, _LABEL, _MARKED, _CODE, *_OTHERS = _PATTERNS
_AFTER_EMOJI, *_DAYS = _OTHERS
_OF_DAYS = [*zip(_DAYS[::2], _DAYS[1::2], strict=True)]  # pairs of what ends a sentence, and what goes on with it
_BREAKS = frozenset("\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\\")
_LINE = re.compile(rf"{QUOTE_MARKS}(?P<indent> *)(?P<text>[^\r\n]*)")
_ORDINAL = {name: re.compile(words) for name, words in read_tables("patterns.toml")["ordinal_ends"].items()}
_LEAST_WRAPPED, _LEAST_WIDTH = 30, 50  # characters of a line, and of one below another that begins in lower case
_LEAST_OPEN = 15  # characters of a line that ends with a word such as "the"
_SPACE = re.compile(r"\s+")
_ZONE = re.compile(rf"{TIME_ZONE}\b")  # 7 p.m. EST
_DOT_WITHIN = re.compile(r"\.\w")  # a fast test
_FIRST_WORD = re.compile(r"\s+([^\W\d_]+)")
_LONGEST_PRONOUN = 4  # letters of one before an emoji that is a verb: we 👀 you
_JOINER = "\u200d"
BBCODE = "b|center|color|font|i|quote|size|u|url"
_EMPHASIS = re.compile(
    r"((?<!\w)(?:[*_]{1,3}|'{3})(?=\w)|(?<!\S)\*?\.\*)"
    rf"|(?<=\S)(?:[*_~]{{1,3}}|'{{3}}|(?:\[/(?:{BBCODE})\]){{1,3}})(?=\s|\Z)"
)
_EMPHASIS_SIGNS, _ASCII_QUOTES = frozenset("*_~["), str.maketrans("＂＇‹›‚", "\"'«»„")
_CLOSING_QUOTE = re.compile("(?<=[.!?])[‘‛](?!\\w)")  # of German, as in ‚Ja.‘
_CHAT = {name: re.compile(words) for name, words in read_tables("patterns.toml")["after_emoji"].items()}


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a text: text that stays unchanged if `kept` is true, otherwise a sentence or clause to translate.

    The translation of a sentence or clause contains the ranges `kept_ranges` unchanged. The ranges `marked` are those
    of marks of a document, such as tags, around words.
    """

    text: str
    kept: bool
    kept_ranges: tuple[Range, ...] = ()
    marked: tuple[Range, ...] = ()


PAUSE = TextPart("", kept=True)
"""A part that is empty, after a step of the division that gave no part."""


def split_text(text: str, language: str) -> Iterator[TextPart]:
    """Yield the sentences and kept parts of a text. English rules apply to languages that sentencex does not know.

    White space and sentences without letters and digits are kept parts. Each part has at most about LONGEST_SENTENCE
    characters, which bounds the time between two parts.
    """
    return _merge_kept(
        part
        for number, paragraph in enumerate(_paragraphs(text, language))
        for part in (
            [TextPart(paragraph, kept=True)]
            if number % 2
            else chain.from_iterable(map(split_margins, _sentences(paragraph, language)))
        )
    )


def cut_text(text: str) -> Iterator[TextPart]:
    """Yield the parts of a text that is one sentence: the sentence, and the white space around it.

    A sentence of more than LONGEST_SENTENCE characters is cut.
    """
    return _merge_kept(chain.from_iterable(map(split_margins, _in_blocks(text, lambda block: [block]))))


def split_margins(text: str) -> list[TextPart]:
    """Split a text into leading white space, a sentence, and trailing white space. White space is kept.

    Invisible characters such as byte order marks count as white space.
    """
    sentence = text.strip()
    sentence = sentence if sentence.isascii() else sentence.strip(MARGIN)
    begin = text.index(sentence)
    end = begin + len(sentence)
    kept = not any(map(str.isalnum, sentence))
    if 0 < len(sentence) == len(text):
        return [TextPart(text, kept)]
    return list(_merge_kept([TextPart(text[:begin], True), TextPart(sentence, kept), TextPart(text[end:], True)]))


def split_long_sentence(sentence: str, fits: Callable[[str], bool], language: str) -> Iterator[TextPart]:
    """Split a sentence into parts for which `fits` is true. Kept parts and single characters may be exceptions.

    Parts are cut near their middle: after a punctuation mark that ends a clause, else before a conjunction of the
    language, else at white space, else between two characters that are not displayed as one.
    """
    return _merge_kept(_halves(sentence, fits, language))


def merge_divided(parts: Iterable[TextPart], kept: Sequence[Range]) -> Iterator[TextPart]:
    """Yield the parts of a text, and merge those that overlap the same range of `kept`. `kept` must be sorted."""
    if not kept:
        yield from parts
        return
    begins = [begin for begin, _ in kept]
    last_ends = [0, *accumulate((end for _, end in kept), max)]  # last_ends[n] is the maximum end of the first n ranges
    group: list[TextPart] = []
    end = 0
    for part in parts:
        group.append(part)
        end += len(part.text)
        if last_ends[bisect_left(begins, end)] <= end:
            yield _joined(group)
            group = []
    if group:  # a range that ends behind the text
        yield _joined(group)


def _joined(group: Sequence[TextPart]) -> TextPart:
    return group[0] if len(group) == 1 else TextPart("".join(part.text for part in group), False)


def join_parts(parts: Sequence[TextPart], translations: Sequence[str], source: str, target: str) -> str:
    """Concatenate parts, with a translation in place of each part that is not kept. Return the translated text.

    `source` and `target` are languages. Kept text is unchanged, but single spaces between translations are dropped if
    the target language has no spaces between sentences, and added if only the source language has none.
    """
    return "".join(part.text for part in lay_out(parts, translations, source, target))


def sentence_ranges(parts: Sequence[TextPart]) -> list[tuple[int, int]]:
    """Return the character range of each part that is not kept, in the concatenation of all parts."""
    ends = accumulate(len(part.text) for part in parts)
    return [(end - len(part.text), end) for part, end in zip(parts, ends, strict=True) if not part.kept]


def lay_out(parts: Sequence[TextPart], translations: Sequence[str], source: str, target: str) -> Iterator[TextPart]:
    """Yield the parts of the translated text. `join_parts`, which has the same arguments, concatenates these parts."""
    remaining = iter(translations)
    spaceless = [primary_language(language) in _SPACELESS for language in (source, target)]
    for place, part in enumerate(parts):
        neighbours = parts[max(0, place - 1) : place + 2]
        if not part.kept:
            if spaceless == [True, False] and place and not parts[place - 1].kept:
                yield TextPart(" ", kept=True)
            yield TextPart(next(remaining), kept=False)
        elif not (spaceless[1] and part.text == " " and [near.kept for near in neighbours] == [False, True, False]):
            yield part


def _paragraphs(text: str, language: str) -> Iterator[str]:
    """Yield paragraphs and breaks (line breaks, tabs, separators) in turn: paragraph, break, ..., paragraph."""
    begin, tables = 0, set(find_tables(text))
    for line_break in _LINE_BREAK.finditer(text) if not _BREAKS.isdisjoint(text) else ():
        if line_break[0] in ("\n", "\r\n") and _continues(text, begin, line_break, language):
            continue
        yield from split_items(text[begin : line_break.start()], tables, language)
        yield line_break[0]
        begin = line_break.end()
    yield from split_items(text[begin:], tables, language)


def _continues(text: str, begin: int, line_break: re.Match[str], language: str) -> bool:
    """Return whether a sentence of the paragraph that begins at `begin` continues after a line break.

    The line ends within a word, or with a word such as "the", or the next line ends the sentence after a conjunction or
    preposition. Or it is long, and the paragraph begins with a capital and the next line with a small letter, and this
    is long, ends a sentence, or is indented below an item.
    """
    before = _LINE.match(text, text.rfind("\n", begin, line_break.start()) + 1 or begin)
    after = _LINE.match(text, line_break.end())
    first = _LINE.match(text, begin, begin + _LEAST_WRAPPED)
    assert before and after and first
    line, following = before["text"][: line_break.start() - before.start("text")].rstrip(), after["text"]
    is_open = line[-1:] == "." and following[:1].isalnum()
    if is_open and ends_with_abbreviation(line.rpartition(" ")[2], "?", language):  # approx.
        return True
    if not following[:1].isalpha() or not line or (not line[-1].isalnum() and line[-1] not in ",-"):
        return False
    if _ITEM.match(following) or _NO_PROSE.match(following):
        return False
    is_long, open_end = len(line) >= _LEAST_WRAPPED, OPEN_ENDS.get(primary_language(language))
    if len(line) >= _LEAST_OPEN and open_end and open_end.search(line):
        return True
    if not following[0].islower() or _WITHIN_WORD.search(line):
        return following[0].islower()
    if first["text"][:1].isupper() and goes_on(following, language) and _SENTENCE_END.search(following):
        return True
    item = _ITEM.match(first["text"])
    if not (first["text"][item.end() if item else 0 :][:1].isupper() or len(line) > _LEAST_WIDTH):
        return False
    if item and len(after["indent"]) > len(first["indent"]):
        return True
    return is_long and (len(following) >= _LEAST_WRAPPED or _SENTENCE_END.search(following) is not None)


def _sentences(paragraph: str, language: str) -> Iterator[str]:
    """Yield the sentences of a paragraph, including white space.

    A number such as `3.` or `II.` is joined with the sentence after it. No sentence begins in code, a name such as
    `ASP.NET` or an operator such as `!=`, nor in lower case after an abbreviation. One ends at emoji before a capital.
    """
    begin = end = 0
    whole = [_DOTTED_NAME] * (_DOT_WITHIN.search(paragraph) is not None) + [_CODE] * ("`" in paragraph)
    inside = {at for name in whole for one in name.finditer(paragraph) for at in range(one.start() + 1, one.end())}
    ordinal = _ORDINAL.get(primary_language(language))
    for sentence in _in_blocks(paragraph, partial(_split_by_sentencex, language=language)):
        end += len(sentence)
        if end == len(paragraph):
            continue  # nothing follows, so that it ends here
        follows = paragraph[end : end + 1]
        unfinished = (
            end in inside
            or _NO_BEGIN.match(paragraph, end) is not None
            or (follows in ("-", "–") and bool(_FIRST_PART.search(sentence) or _SECOND_PART.match(paragraph, end)))
            or any(after.match(paragraph, end) and day.search(sentence) for day, after in _OF_DAYS)
            or ends_with_abbreviation(paragraph[begin:end], paragraph[end : end + 20], language)
            or (_ABBREVIATION.search(sentence) is not None and (follows.islower() or _ZONE.match(paragraph, end)))
            or (ordinal is not None and follows.isalpha() and ordinal.search(sentence) is not None)
        )
        if unfinished and end - begin < LONGEST_SENTENCE:
            continue
        has_letters = any(map(str.isalpha, sentence)) and not _ROMAN_NUMERAL.fullmatch(paragraph[begin:end])
        if has_letters or not any(map(str.isalnum, sentence)) or end - begin > LONGEST_SENTENCE:
            yield paragraph[begin:end]
            begin = end
    if begin < end:
        yield paragraph[begin:]


def _in_blocks(text: str, split: Callable[[str], Sequence[str]]) -> Iterator[str]:
    """Yield the sentences of a text, which `split` gets in blocks of LONGEST_SENTENCE characters.

    The time that sentencex takes is not linear in the length of its input. The last sentence of a block begins the next
    block, because it may be incomplete. A sentence longer than a block is cut.
    """
    begin = 0
    while len(text) - begin > LONGEST_SENTENCE:
        block = text[begin : begin + LONGEST_SENTENCE]
        complete = [sentence for sentence in split(block)[:-1] if sentence]
        complete = complete or [block[: _cut(block, (AFTER_CLAUSE, _SPACE), goal=len(block))]]
        yield from complete
        begin += sum(map(len, complete))
    yield from split(text[begin:])


def _split_by_sentencex(paragraph: str, language: str) -> list[str]:
    """Return the sentences that sentencex finds in the normalised paragraph, as they are in the paragraph.

    sentencex 1.0.32 panics on an initial after a no-break space. Question marks replace lone surrogates. If sentencex
    panics anyway, the paragraph is one sentence. A Rust panic is a BaseException and must not end the service.
    """
    normalised = normalise_text(paragraph)
    plain = normalised.text
    if not plain.isascii():
        plain = _CLOSING_QUOTE.sub("“", plain_spaces(plain).translate(_ASCII_QUOTES))
        plain = plain.encode("utf-8", "replace").decode()
    if "'''" in plain or not _EMPHASIS_SIGNS.isdisjoint(plain):
        plain = _EMPHASIS.sub(lambda mark: ("/" if mark[1] else " ") * len(mark[0]), plain)
    try:
        sentences: list[str] = sentencex.segment(primary_language(language), plain)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return [paragraph]
    ends = {normalised.original_range(0, end)[1] if end else 0 for end in accumulate(map(len, sentences[:-1]))}
    if not paragraph.isascii() or " :" in paragraph or " ;" in paragraph:
        ends |= {match.end() for match in _AFTER_EMOJI.finditer(paragraph) if _ends_at(paragraph, match, language)}
    ends |= {label.end() for label in _LABEL.finditer(paragraph)}  # and pictures
    if _EMPHASIS_SIGNS & {*paragraph[:1]} and (mark := _MARKED.match(paragraph)):
        ends |= {mark.end()} if begins_sentence(paragraph, mark.end(), language) else set()
    return [paragraph[begin:end] for begin, end in pairwise([0, *sorted(ends), len(paragraph)])]


def begins_sentence(text: str, at: int, language: str) -> bool:
    """Return whether a sentence begins behind a marked one without a full stop: `~~It is red~~ It is blue`."""
    word = _FIRST_WORD.match(text, at)
    return word is not None and word[1][0].isupper() and may_lower(word[1], language)


def _ends_at(paragraph: str, emoji: re.Match[str], language: str) -> bool:
    """Return whether a sentence ends at an emoji: before a capital or words of chat, and not behind a word as "the"."""
    name, word = primary_language(language), emoji["word"]
    open_end, chat = OPEN_ENDS.get(name), _CHAT.get(name)
    if open_end is not None and open_end.search(paragraph, max(0, emoji.start() - 10), emoji.start()):
        return False
    if name == "de" and word[0].isupper():
        return may_lower(word, language)  # and not a noun
    if name != "de" and (emoji["several"] or word[0].isupper()):
        return not emoji["heart"]
    is_object = emoji.start() <= _LONGEST_PRONOUN and chat and chat.fullmatch(paragraph.lower(), 0, emoji.start())
    return chat is not None and not is_object and chat.match(paragraph, emoji.end()) is not None


def _halves(sentence: str, fits: Callable[[str], bool], language: str) -> Iterator[TextPart]:
    """Yield the parts that `split_long_sentence` returns, before adjacent kept parts are merged."""
    for part in split_margins(sentence):
        if part.kept or len(part.text) == 1 or fits(part.text):
            yield part
        else:
            middle = _cut(part.text, (AFTER_CLAUSE, *conjunctions(language), _SPACE), goal=len(part.text) / 2)
            yield from _halves(part.text[:middle], fits, language)
            yield from _halves(part.text[middle:], fits, language)


def _cut(text: str, patterns: Iterable[re.Pattern[str]], goal: float) -> int:
    """Return the offset nearest to `goal` at which to cut: after a match of the first pattern that matches anywhere.

    Without a match, cut between two characters. If all characters are displayed as one, return `goal`.
    """
    for pattern in patterns:
        if places := [match.end() for match in pattern.finditer(text)]:
            return min(places, key=lambda place: abs(place - goal))
    whole = int(goal)
    near = (place for distance in range(whole) for place in (whole - distance, whole + distance))
    return next(
        (place for place in near if 0 < place < len(text) and not _form_one(*text[place - 1 : place + 1])), whole
    )


def _form_one(before: str, after: str) -> bool:
    """Return whether two adjacent characters are displayed as one, such as a letter and a combining accent."""
    return _JOINER in (before, after) or unicodedata.category(after) in ("Mn", "Mc", "Me", "Sk")


def _merge_kept(parts: Iterable[TextPart]) -> Iterator[TextPart]:
    """Yield the parts that are not empty. Adjacent kept parts are merged, up to a limit."""
    kept: list[str] = []
    length = 0
    for part in parts:
        if part.kept and length < LONGEST_SENTENCE and len(kept) < _MOST_MERGED:
            kept.append(part.text)
            length += len(part.text)
        elif part.text:
            if length:
                yield TextPart("".join(kept), kept=True)
            kept, length = ([part.text], len(part.text)) if part.kept else ([], 0)
            if not part.kept:
                yield part
    if length:
        yield TextPart("".join(kept), kept=True)
