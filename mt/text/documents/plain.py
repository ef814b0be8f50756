"""Plain text, subtitles and JSON."""

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

from mt.errors import DocumentError, DocumentLimitExceeded
from mt.text.alignment import is_wide
from mt.text.clauses import BULLET, SENTENCE_END
from mt.text.documents.base import LINE, DocumentOptions, TextDocument, check_count, read_text, tag_key, with_locale
from mt.text.markup import Segment
from mt.text.markup.inline import END_MARK, InlineItem, InlineKind, decode_nothing
from mt.text.markup.rendering import escape
from mt.text.markup.tokens import references
from mt.text.word_tables import read_tables

_COLUMN = re.compile(r"(?:[^\r\n\t ]| {1,2}(?! ))+")
_TABLE = re.compile(r"\t|   ")
_QUOTED_LINE, _INLINE, _DIALOGUE, _SPEAKER, _REMARK, _JSON_STRING, _LOCALE, _JSON_COLON = (
    re.compile(pattern) for pattern in read_tables("documents/patterns.toml")["plain"].values()
)
_LEAST_WRAPPED, _LEAST_WIDTH = 30, 50  # characters of a line, and of the longest line of a paragraph
_MOST_ITEMS = 200  # of a segment: its lines and the breaks between them
_TIME = r"(?:\d+:)?\d{1,2}:\d{2}[,.]\d{1,3}"
_TIMING = re.compile(rf"[^\S\r\n]*{_TIME}[^\S\r\n]*-->[^\S\r\n]*{_TIME}")


def open_text(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse plain text. Each line with a letter or digit is a segment, without leading and trailing white space.

    Tabs, and three or more spaces, separate the columns of a table: a line is split there. Lines of a wrapped sentence
    are one segment, and alignment places their line breaks.
    """
    text, document = read_text(name, content, options)
    breaks = dict(_breaks_in_sentences(text))
    items: list[InlineItem[str]] = []

    def flush() -> None:
        if len(items) == 1:
            document.add_stripped(items[0].text, items[0].text, str)
        elif items:
            document.add_items(items, decode_nothing)
        items.clear()

    for match in _COLUMN.finditer(text):
        if not any(map(str.isalnum, match[0])):
            continue
        begin, end = match.span()
        if document.done in breaks and len(items) < _MOST_ITEMS:
            begin = breaks[document.done]
            items.append(InlineItem(InlineKind.EMPTY, (text[document.done : begin],), breaks=True))
        else:
            flush()
            document.keep_until(begin)
        document.done = end
        items.append(InlineItem(InlineKind.TEXT, (text[begin:end],), text[begin:end]))
    flush()
    document.keep_until(len(text))
    document.frame = [LINE.sub(r"\2", text)]
    return document


def _breaks_in_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield (end of a line, beginning of the text in the next line) for each line break within a sentence.

    Such a break follows a line of at least _LEAST_WRAPPED characters that does not end a sentence. The next line begins
    with a small letter in a paragraph that has capitals at the beginning of lines, or no line of its paragraph had room
    for the first word of the next line.
    """
    paragraph: list[re.Match[str]] = []
    for match in _QUOTED_LINE.finditer(text):
        ends = not match["line"].strip() or _TABLE.search(match["line"].strip())
        if ends or (paragraph and match["quotes"] != paragraph[0]["quotes"]):
            yield from _breaks_in_paragraph(paragraph)
            paragraph = []
        if not ends:
            paragraph.append(match)
    yield from _breaks_in_paragraph(paragraph)


def _breaks_in_paragraph(lines: Sequence[re.Match[str]]) -> Iterator[tuple[int, int]]:
    pairs = [(*pair, pair[0]["line"].rstrip()) for pair in pairwise(lines)]
    width = max((len(line["line"].rstrip()) for line in lines), default=0)
    full = all(len(line) + 1 + len(following["line"].split(None, 1)[0]) > width for _, following, line in pairs)
    wrapped = full and len(lines) > 2 and width > _LEAST_WIDTH
    has_capitals = any(line["line"][0].isupper() for line in lines)
    for before, following, line in pairs:
        after = following["line"]  # an item of a list, an address or a rule is no part of the sentence
        alone = BULLET.match(after) or after.startswith(("http", "www.")) or not any(map(str.isalnum, after))
        divides = len(line) < _LEAST_WRAPPED or SENTENCE_END.search(line) or alone
        continues = wrapped or ((has_capitals or len(line) > _LEAST_WIDTH) and following["line"][0].islower())
        if not divides and continues and not is_wide(line[-1]):
            yield before.end("line"), following.start("line")


def open_subtitles(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse SubRip or WebVTT. Each cue is a segment, or several segments.

    In SubRip, text after an empty line belongs to the cue before it. A cue is split at a line break after a sentence
    or a remark, and before a speaker or a remark. Other line breaks are placed by alignment, like tags. The library
    pysubs2 is not used, because it drops notes, styles, regions and settings of cues, and reformats times.

    Raises: DocumentError if the content has no cues.
    """
    text, document = read_text(name, content, options)
    vtt = name.lower().endswith(".vtt")
    check_count(name, sum(map(text.count, "\n\r")), "lines")
    lines = [match.span() for match in LINE.finditer(text) if match[0]]
    timings = [bool(_TIMING.match(text, begin)) for begin, _ in lines]
    if not any(timings) and not (vtt and text.startswith("WEBVTT")):
        raise DocumentError(f"{name} has no cue; accepted: lines such as 00:00:01,000 --> 00:00:02,500 with text below")
    texts = [text[begin:end].strip() for begin, end in lines]
    number, in_cue = 0, False
    while number < len(lines):
        first = number
        while in_cue and number < len(lines) and texts[number] and not _begins_cue(texts, timings, number):
            number += 1
        if number > first:
            _add_cue(document, text[lines[first][0] : lines[number - 1][1]], vtt)
        else:
            document.keep(text[slice(*lines[number])])
            in_cue = timings[number] or (in_cue and not vtt)  # an empty line ends a cue of WebVTT
            document.frame += [texts[number]] if timings[number] else []
            number += 1
    return document


def open_json(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse JSON. Each string value is a segment, and each branch of a plural or select message.

    In the resources of a Flutter program (.arb), the values of keys that begin with `@` are kept.

    Raises: DocumentError, with line and column, if the content is not JSON.
    """
    is_arb = name.lower().endswith(".arb")
    text, document = read_text(name, content, options)
    check_count(name, sum(map(text.count, "[{,")), "values")
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        raise DocumentError(f"{name} is not JSON: {error.msg}, line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        problem = f"{name} is nested too deeply; accepted: fewer nested arrays and objects"
        raise DocumentLimitExceeded(problem) from error
    ascii_only = text.isascii() and "\\u" in text
    if is_arb:
        document.finish = partial(with_locale, _LOCALE, options)

    def write(new: str) -> str:
        return json.dumps(new, ensure_ascii=ascii_only)

    depth = 0
    key = ""
    kept = False  # whether the values of the current key of the outermost object are kept
    for match in _JSON_STRING.finditer(text):
        between = text[document.done : match.start()]
        document.keep(between)
        document.done = match.end()
        value: str = json.loads(match[0], strict=False)
        is_key = _JSON_COLON.match(text, match.end()) is not None
        key = value if is_key else key
        if is_arb:
            depth += sum(map(between.count, "[{")) - sum(map(between.count, "]}"))
            if is_key and depth == 1:
                kept = value.startswith("@")
        document.frame.append("".join(between.split()))
        if is_key or kept:
            document.keep(match[0])
            document.frame.append(match[0] if is_key or key != "@@locale" else "")
        else:
            document.add_string(value, match[0], write)
    document.keep_until(len(text))
    return document


def _begins_cue(texts: Sequence[str], timings: Sequence[bool], number: int) -> bool:
    """Return whether a line is the timing of a cue, or the number or the name above a timing."""
    if timings[number] or timings[number + 1 : number + 2] != [True]:
        return timings[number]
    return texts[number].isdigit() or not texts[number - 1]


def _add_cue(document: TextDocument, cue: str, vtt: bool) -> None:
    items: list[InlineItem[str]] = []
    opened: list[tuple[int, str]] = []

    def flush() -> None:
        document.add_items(items, *((partial(references, xml=False), _escape_vtt) if vtt else (decode_nothing,)))
        items.clear()
        opened.clear()

    place, ended = 0, False  # `ended`: whether the text before `place` ends a sentence
    for match in _INLINE.finditer(cue):
        if not items:
            ended = False
        text = _read_text(cue[place : match.start()], begins=not items)
        if text and text[-1].text.strip():
            ended = bool(END_MARK.search(text[-1].text) or _REMARK.fullmatch(text[-1].text))
        items += text
        place = match.end()
        if match["line"]:
            if ended or _SPEAKER.match(cue, place):
                flush()
                document.keep(match[0])
            else:
                items.append(InlineItem(InlineKind.EMPTY, (match[0],), breaks=True))
        elif match["tag"]:
            kind = InlineKind.CLOSE if match[0].startswith("</") else InlineKind.OPEN
            key = tag_key(opened, kind, match["tag"].lower(), match.start())
            items.append(InlineItem(kind, (match[0],), key=key))
        else:
            items.append(InlineItem(InlineKind.EMPTY, (match[0],)))
    items += _read_text(cue[place:], begins=not items)
    flush()


def _read_text(text: str, begins: bool) -> list[InlineItem[str]]:
    """Return the inline items of a text of a cue.

    If `begins` is true, a dash at the beginning of the text, which marks a new speaker, becomes an EMPTY item.
    """
    dash = _DIALOGUE.match(text) if begins else None
    place = dash.end() if dash else 0
    items = [InlineItem(InlineKind.EMPTY, (text[:place],))] if place else []
    return [*items, InlineItem(InlineKind.TEXT, (text[place:],), text[place:])] if text[place:] else items


def _escape_vtt(text: str, segment: Segment, forms: dict[str, str]) -> str:
    return escape(text, forms).replace("-->", "--&gt;")
