"""Items of a line, such as cells of a table, entries of a menu and boxes to tick, which are texts of their own."""

import re
from collections import Counter
from collections.abc import Iterator, Set
from itertools import pairwise
from unicodedata import numeric

from mt.languages import primary_language
from mt.text.word_tables import read_tables

_SEPARATOR, _BULLET, _TRAIL, _WORDS, _RECORD, _FIELD, _QUOTED_FIELD = (
    re.compile(pattern) for pattern in read_tables("patterns.toml")["items"].values()
)
OPEN_ENDS = {name: re.compile(words) for name, words in read_tables("patterns.toml")["open_ends"].items()}
_SEPARATORS = frozenset("|¦│║·•→➔➜✓✔✗✘✅❌★☆►▶☐☑☒")
_BULLETS = frozenset("•·☐☑☒○◯●◉▲▼△▽◆◇■□▪▫‣①❶")
_HINT = re.compile(  # a fast test
    rf"[{re.escape(''.join(sorted(_SEPARATORS | _BULLETS | frozenset('[(*:!>»›/'))))}\"]|   "
)
_TYPED_BULLETS = ("[ ]", "[x]", "[] ", "( )", " * ", ": - ", ": – ", ": + ")
_WORD, _NO_ITEM = re.compile(r"[^\W\d_]{2}"), re.compile(r"(?:and|et|oder|or|ou|und)\b|(?:à|bis|to)\W*\Z|[^=]*=")
_NO_RECORD = {  # what a line of a table with separators does not have; the comma is also a mark of numbers and prose
    ";": re.compile(r"\s;|;\s|[\n(){}\[\]<>=&\\`]|//|[.!?…]\Z"),
    ",": re.compile(r"\s,|,\s|[\n(){}\[\]<>=&\\`;]|//|[.!?…]\Z|\d,\d|[^\s,]\s[^\s,]+\s"),
}


def find_tables(text: str) -> Iterator[tuple[str, int]]:
    """Yield the mark between the fields of records, and its number in each, if two lines are alike or one is quoted."""
    for mark, no_record in _NO_RECORD.items():
        if text.count(mark) < 2:
            continue
        records = [line for line in text.splitlines() if line.count(mark) > 1 and not no_record.search(line)]
        counts = Counter(line.count(mark) for line in records)
        counts.update(line.count(";") for line in records if mark == ";" and _QUOTED_FIELD.search(line))
        yield from ((mark, count) for count, lines_alike in counts.items() if lines_alike > 1)


def split_items(paragraph: str, tables: Set[tuple[str, int]], language: str) -> Iterator[str]:
    """Yield the items of a paragraph such as `Home | About us` and the separators between them in turn.

    An item has two characters or more and does not begin in lower case, or is a cell of a row of a table, or a field of
    a record such as `"Red hat";7,50;red` of one of the `tables` of the text. Others are parts of a formula or command.
    """
    if not tables and _HINT.search(paragraph) is None:
        yield paragraph
        return
    for mark, no_record in _NO_RECORD.items() if tables else ():
        if (mark, paragraph.count(mark)) in tables and not no_record.search(paragraph):
            yield from re.split(rf'("?{mark}"?|\A"|"\Z)', paragraph)
            return
    if paragraph.count('"') > 1 and _RECORD.fullmatch(paragraph):
        fields = (field.span(field.lastindex or 0) for field in _FIELD.finditer(paragraph))
        places = [0, *(place for field in fields for place in field), len(paragraph)]
        yield from ("", *(paragraph[begin:end] for begin, end in pairwise(places)), "")
        return
    is_trail = any(sign in paragraph for sign in (" > ", " » ", " › ", " / ")) and _TRAIL.fullmatch(paragraph)
    if is_trail or _WORDS.fullmatch(paragraph):
        yield from re.split(r"( [>/] | \\?[»›|·•] )", paragraph)
        return
    if marks := _bullets(paragraph, language):
        places = [0, *(place for mark in marks for place in mark.span()), len(paragraph)]
        yield from (paragraph[begin:end] for begin, end in pairwise(places))
        return
    is_plain = not any(mark in paragraph for mark in ("   ", " !! ", "[*]", "list]")) and _SEPARATORS.isdisjoint(
        paragraph
    )
    if "\n" in paragraph or is_plain:
        yield paragraph
        return
    items, begin = [""], 0
    for match in _SEPARATOR.finditer(paragraph):
        if match["separator"]:
            items[-1:] = [paragraph[begin : match.start()], match[0], ""]
            begin = match.end()
    items[-1] = paragraph[begin:]
    is_row = len(items) > 3 and items[1].lstrip()[:1] in ("|", "│", "║") and not (items[0] or items[-1])
    is_list = is_row or all(not text or (len(text) > 1 and not text[0].islower()) for text in items[::2])
    yield from items if is_list else [paragraph]


def _bullets(paragraph: str, language: str) -> list[re.Match[str]]:
    """Return the marks before the items of a line such as `Gender: [ ] male [ ] female`, or after them, else [].

    There are two or more. The first is at the begin of the line, or behind a label. No item ends as within a sentence.
    """
    if "\n" in paragraph or (_BULLETS.isdisjoint(paragraph) and not any(mark in paragraph for mark in _TYPED_BULLETS)):
        return []  # a fast test
    marks = [*_BULLET.finditer(paragraph)]
    kind = marks[0].lastgroup if marks else None
    marks = [mark for mark in marks if mark.lastgroup == kind and (kind != "sign" or mark[kind] == marks[0]["sign"])]
    if len(marks) < 2:
        return []
    ends = [0, *(mark.end() for mark in marks)]
    label, *items = (paragraph[end : mark.start()] for end, mark in zip(ends, marks, strict=False))
    items += [last] if (last := paragraph[ends[-1] :]) or not label else []
    texts, open_end = [label, *items] if label else items, OPEN_ENDS.get(primary_language(language))
    has_label = not label or label[-1] in ":?.!"
    if kind == "sign":
        has_label = label.endswith(":") or (not label and marks[0]["sign"] == "*")
    elif kind == "digit" and [numeric(mark["digit"]) for mark in marks] != [*range(1, len(marks) + 1)]:
        return []
    elif not has_label:
        has_label = len(label.split()) < 4 and not any(text[-1:] in tuple(".,;!=") for text in texts)
    is_list = has_label and all(
        _WORD.search(text) and not (_NO_ITEM.match(text) or (open_end and open_end.search(text))) for text in texts
    )
    return marks if is_list else []
