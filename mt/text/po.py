"""Parser of gettext files (.po). It finds the place of each string, so that the rest of a file can be kept.

Only CR and LF end a line: other line separators of Unicode are characters of a string. See
https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
_FIELD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr(?:[ \t]*\[[ \t]*(\d{1,2})[ \t]*\])?)[ \t]*(?=\"|\Z)")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"[ \t]*')
_STRINGS = re.compile(f"(?:{_STRING.pattern})*")
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))")
_MEANINGS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_FORMS = {"\\": "\\\\", '"': '\\"', **{meaning: f"\\{letter}" for letter, meaning in _MEANINGS.items()}}
_JOIN = re.compile(r"\"[ \t]{0,100}(?:\r\n|\r|\n)[ \t]{0,100}\"")  # between two lines of a string
_CHARSET = re.compile(  # within a header in which \0 stands for each character of a join
    "\0*".join("Content-Type:") + r"[^\"\n\\]{0,300}?" + "\0*".join("charset=") + r"\0*([\w.:-]+(?:\0+[\w.:-]+)*)",
    re.IGNORECASE,
)
_CHARSET_WITHIN = 100_000  # number of bytes that are searched for the header, after comments such as a license


class PoError(ValueError):
    """A text that is not a .po file. The message contains the number of the line."""


@dataclass(slots=True)
class PoEntry:
    """An entry: its texts, the ranges of its comments of flags and of previous texts, and the range of its `msgstr`.

    `translations[n]` is the text of plural form n; an entry without plural has the form 0 only. Ranges are offsets in
    the text, those of comments with their line ends.
    """

    context: str | None = None
    source: str = ""
    plural: str | None = None
    translations: dict[int, str] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    flag_lines: list[tuple[int, int]] = field(default_factory=list)
    previous_lines: list[tuple[int, int]] = field(default_factory=list)
    translation_range: tuple[int, int] = (0, 0)

    @property
    def is_header(self) -> bool:
        return not self.source and self.context is None

    @property
    def is_fuzzy(self) -> bool:
        return "fuzzy" in self.flags

    @property
    def is_translated(self) -> bool:
        return not self.is_fuzzy and all(self.translations.values())

    @property
    def is_copy(self) -> bool:
        """Return whether each translation is a copy of its source."""
        return {*self.translations.values()} <= {self.source, self.plural}


def read_po(text: str) -> Iterator[PoEntry]:
    """Yield the entries of a .po file, without obsolete ones. Raises: PoError."""
    entry, part = PoEntry(), ""
    strings: list[str] = []  # of the current field
    for number, match in enumerate(_LINE.finditer(text), 1):
        line = match[1].strip(" \t\f")
        keyword = _FIELD.match(line)
        if (part.startswith("msgstr") and line.startswith("#")) or (keyword and not _continues(part, keyword[1])):
            yield _complete(entry, part, strings, number)
            entry, part = PoEntry(), ""
        if line.startswith("#~") and not part:
            entry = PoEntry()
        elif line.startswith("#,"):
            entry.flags += (flag.strip() for flag in line[2:].split(","))
            entry.flag_lines.append(match.span())
        elif line.startswith("#|"):
            entry.previous_lines.append(match.span())
        elif not line or line.startswith("#"):
            continue
        elif not keyword and not (part and line.startswith('"')):
            raise PoError(f"line {number}: {line[:40]!r} is neither a keyword, a string nor a comment")
        else:
            if keyword:
                _store(entry, part, strings)
                part, strings = keyword[0].strip(), []
            rest = line[keyword.end() if keyword else 0 :]
            if not _STRINGS.fullmatch(rest):
                raise PoError(f"line {number}: {rest[:40]!r} is not a string in quotes")
            strings += _STRING.findall(rest)
            if part.startswith("msgstr"):
                begin = entry.translation_range[0] if entry.translation_range[1] else match.start()
                entry.translation_range = begin, match.end(1)
    if part:
        yield _complete(entry, part, strings, number)


def quote(text: str, newline: str = "\n") -> str:
    """Return a text as a string of a .po file: one line or, if the text has line breaks, several lines."""
    lines = ["".join(_FORMS.get(letter, letter) for letter in line) for line in re.findall(r"[^\n]*\n|[^\n]+", text)]
    return newline.join(f'"{line}"' for line in (["", *lines] if len(lines) != 1 else lines))


def declared_charset(content: bytes) -> str | None:
    """Return the encoding that the header of a .po file declares, or None."""
    match = _find_charset(content[:_CHARSET_WITHIN].decode("latin-1"))
    return match[1].replace("\0", "") if match else None


def with_charset(text: str, charset: str) -> str:
    """Return the text of a .po file with another encoding in its header."""
    match = _find_charset(text[:_CHARSET_WITHIN])
    return text[: match.start(1)] + charset + text[match.end(1) :] if match else text


def _find_charset(text: str) -> re.Match[str] | None:
    return _CHARSET.search(_JOIN.sub(lambda join: "\0" * len(join[0]), text))


def _continues(part: str, keyword: str) -> bool:
    """Return whether a field with `keyword` belongs to the same entry as the field `part` before it."""
    return not part or (keyword != "msgctxt" and (keyword != "msgid" or part == "msgctxt"))


def _complete(entry: PoEntry, part: str, strings: list[str], line: int) -> PoEntry:
    _store(entry, part, strings)
    if not entry.translations:
        raise PoError(f"line {line}: the entry before this line has no msgstr")
    return entry


def _store(entry: PoEntry, part: str, strings: list[str]) -> None:
    """Set the field `part` of an entry to the text of `strings`."""
    text = _ESCAPE.sub(_meaning, "".join(strings))
    if part == "msgctxt":
        entry.context = text
    elif part == "msgid":
        entry.source = text
    elif part == "msgid_plural":
        entry.plural = text
    elif part:
        entry.translations[int("".join(filter(str.isdecimal, part)) or 0)] = text


def _meaning(match: re.Match[str]) -> str:
    if match[1] or match[2]:
        return chr(int(match[1] or match[2], 8 if match[1] else 16))
    return _MEANINGS.get(match[3], match[3])
