"""Plain text, subtitles and JSON."""

import json
import re
from collections.abc import Iterator

from mt.errors import DocumentError
from mt.text.documents.base import TextDocument, decode_text
from mt.text.markup import Segment
from mt.text.markup.slots import Item, ItemKind
from mt.text.markup.tokens import references

_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_TIMING = re.compile(r"\s*(?:\d+:)?\d{1,2}:\d{2}[,.]\d{1,3}\s*-->\s*(?:\d+:)?\d{1,2}:\d{2}[,.]\d{1,3}")
_INLINE = re.compile(
    r"(?P<line>\r\n|\r|\n)|(?P<tag></?(?:b|i|u|s|c|v|font|lang|ruby|rt)(?:[.\s][^<>\r\n]*)?>|<\d[\d:.]*>)"
    r"|(?P<code>\{\\[^{}\r\n]*\})",
    re.IGNORECASE,
)
_TAG_NAME = re.compile(r"[a-z]+", re.IGNORECASE)
_SENTENCE_END = re.compile(r"""[.!?…。！？]["'”’»)\]]*\s*$""")
_DIALOGUE = re.compile(r"[ \t]*[-–—][ \t]*")
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_JSON_COLON = re.compile(r"[ \t\r\n]*:")


def open_text(name: str, content: bytes) -> TextDocument:
    """Plain text: each line is a segment, without the white space around it."""
    text, encoding = decode_text(name, content)
    document = TextDocument(encoding)
    for match in _LINE.finditer(text):
        document.add_stripped(match[1], match[1], str)
        document.keep(match[2])
    return document


def open_subtitles(name: str, content: bytes) -> TextDocument:
    """SubRip or WebVTT: the text of each cue is a segment, or one for each speaker and each line that is a sentence.

    Read here and not by pysubs2, which drops notes, styles, regions and the settings of cues, and writes times anew.
    The break of a line is placed by alignment, as a tag is. Raises DocumentError if there are no cues.
    """
    text, encoding = decode_text(name, content)
    document = TextDocument(encoding)
    vtt = name.lower().endswith(".vtt")
    lines = [match.span() for match in _LINE.finditer(text) if match[0]]
    timings = [bool(_TIMING.match(text, begin)) for begin, _ in lines]
    if not any(timings) and not (vtt and text.startswith("WEBVTT")):
        raise DocumentError(f"{name} has no cue; accepted: lines such as 00:00:01,000 --> 00:00:02,500 with text below")
    number = 0
    while number < len(lines):
        document.keep(text[slice(*lines[number])])
        number += 1
        if not timings[number - 1]:
            continue
        first = number
        while number < len(lines) and text[slice(*lines[number])].strip():
            next_is_cue = (
                number + 1 < len(lines) and timings[number + 1] and text[slice(*lines[number])].strip().isdigit()
            )
            if timings[number] or next_is_cue:
                break
            number += 1
        if number > first:
            _add_cue(document, text[lines[first][0] : lines[number - 1][1]], vtt)
    return document


def open_json(name: str, content: bytes) -> TextDocument:
    """JSON: each string that is a value is a segment. Raises DocumentError with line and column of what is no JSON."""
    text, encoding = decode_text(name, content)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise DocumentError(f"{name} is not JSON: {error.msg}, line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise DocumentError(f"{name} is nested too deeply to be read") from error
    ascii_only = text.isascii() and "\\u" in text
    document = TextDocument(encoding)
    place = 0
    for match in _JSON_STRING.finditer(text):
        document.keep(text[place : match.start()])
        place = match.end()
        if _JSON_COLON.match(text, place):
            document.keep(match[0])
        else:
            value: str = json.loads(match[0], strict=False)
            document.add_stripped(value, match[0], lambda new: json.dumps(new, ensure_ascii=ascii_only))
    document.keep(text[place:])
    return document


def _add_cue(document: TextDocument, cue: str, vtt: bool) -> None:
    """A cue's lines, its tags paired."""
    items: list[Item[str]] = []
    opened: list[tuple[str, int]] = []

    def flush() -> None:
        document.add_items(items, _references if vtt else _as_it_is, _escape_vtt if vtt else _escape_srt)
        items.clear()
        opened.clear()

    place = 0
    for match in _INLINE.finditer(cue):
        items += _spoken(cue[place : match.start()], begins=not items)
        place = match.end()
        if match["line"]:
            before = next((item.text for item in reversed(items) if item.text.strip()), "")
            if _SENTENCE_END.search(before) or _DIALOGUE.match(cue, place):
                flush()
                document.keep(match[0])
            else:
                items.append(Item(ItemKind.EMPTY, (match[0],), breaks=True))
        elif match["tag"] and not match[0][1].isdigit():
            items.append(_tag(match[0], match.start(), opened))
        else:
            items.append(Item(ItemKind.EMPTY, (match[0],)))
    items += _spoken(cue[place:], begins=not items)
    flush()


def _spoken(text: str, begins: bool) -> list[Item[str]]:
    """Text, without the dash that says that somebody else begins to speak."""
    dash = _DIALOGUE.match(text) if begins else None
    place = dash.end() if dash else 0
    found = [Item(ItemKind.EMPTY, (text[:place],))] if place else []
    return [*found, Item(ItemKind.TEXT, (text[place:],), text[place:])] if text[place:] else found


def _tag(source: str, place: int, opened: list[tuple[str, int]]) -> Item[str]:
    """A tag as it nests: one that closes another than the innermost has no partner."""
    found = _TAG_NAME.search(source)
    assert found is not None
    name = found[0].lower()
    if not source.startswith("</"):
        opened.append((name, place))
        return Item(ItemKind.OPEN, (source,), key=place)
    if opened and opened[-1][0] == name:
        return Item(ItemKind.CLOSE, (source,), key=opened.pop()[1])
    return Item(ItemKind.CLOSE, (source,))


def _references(text: str) -> Iterator[tuple[str, str | None]]:
    return references(text, xml=False)


def _as_it_is(text: str) -> Iterator[tuple[str, str | None]]:
    yield text, text


def _escape_vtt(text: str, segment: Segment, forms: dict[str, str]) -> str:
    table = str.maketrans({"&": "&amp;", "<": "&lt;", **forms})
    return " ".join(text.splitlines()).translate(table).replace("-->", "--&gt;")


def _escape_srt(text: str, segment: Segment, forms: dict[str, str]) -> str:
    return " ".join(text.splitlines())
