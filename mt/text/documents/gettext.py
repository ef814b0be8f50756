"""Gettext files (.po), read and written by polib."""

import re
from collections.abc import Sequence

import polib

from mt.errors import DocumentError, DocumentLimitExceeded
from mt.text.documents.base import DocumentOptions, SegmentList, decode_text
from mt.text.markup import Segment, TranslatedSegment
from mt.text.markup.inline import split_whitespace

_WRAP = 78  # line width of gettext's tools
_MAX_LINES = 4000  # maximum number of lines of an entry, counting "\n" in its texts; a license has 700
_NUMBER = re.compile(r"line (\d+)")


class PoDocument:
    """A .po file. Its segments are the entries that have no translation or a fuzzy one.

    With `retranslate`, all entries are segments. Obsolete entries are never translated. In an entry with plural forms,
    the translation of the singular becomes the first form, and the translation of the plural becomes all other forms.
    If the language has one form, it is the translation of the plural. New translations are flagged fuzzy only with
    `mark_fuzzy`. Comments, references, flags, contexts and the header are kept. Lines are wrapped anew.
    """

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        """Parse the content.

        Raises: DocumentError if the content is not a .po file or exceeds a limit. If the line of an error is known, the
        message contains it.
        """
        text, self._encoding = decode_text(name, content)
        text = text.replace("\r\n", "\n")
        _check_entries(name, text, options)
        try:
            # The line break keeps polib from opening a file whose name is `text`.
            width = max([_WRAP, *map(len, text.split("\n"))])
            # Without an encoding, polib would search for a declared one.
            self._file = polib.pofile("\n" + text, wrapwidth=width, encoding="utf-8")
        except (OSError, ValueError, UnicodeError, IndexError, KeyError) as error:
            problem = _NUMBER.sub(lambda match: f"line {int(match[1]) - 1}", str(error))
            raise DocumentError(f"{name} is not a .po file: {problem}") from error
        if not self._file and "msgid" not in text:
            raise DocumentError(f"{name} is not a .po file: it contains no entry; accepted: at least one msgid")
        self.segments: list[Segment] = SegmentList(name, options)
        self._fuzzy = options.mark_fuzzy
        self._slots: list[tuple[polib.POEntry, int, int]] = []  # indices of the segments of singular and plural, or -1
        for entry in self._file:
            if not entry.obsolete and (options.retranslate or not entry.translated()):
                self._slots.append((entry, self._add(entry.msgid), self._add(entry.msgid_plural or "")))

    def _add(self, text: str) -> int:
        if not any(map(str.isalnum, text)):
            return -1
        self.segments.append(Segment(text.strip()))
        return len(self.segments) - 1

    def render(self, translations: Sequence[TranslatedSegment]) -> bytes:
        assert len(translations) == len(self.segments)
        for entry, singular, plural in self._slots:
            first = _translate(entry.msgid, singular, translations)
            if entry.msgid_plural:
                others = _translate(entry.msgid_plural, plural, translations)
                count = max(len(entry.msgstr_plural), self._count_forms())
                entry.msgstr_plural = {n: first if n == 0 and count > 1 else others for n in range(count)}
            else:
                entry.msgstr = first
            _flag(entry, self._fuzzy)
        return self._encoding.encode(str(self._file).removeprefix("\n"))

    def _count_forms(self) -> int:
        declared = self._file.metadata.get("Plural-Forms", "").replace(" ", "").partition("nplurals=")[2]
        digits = declared.partition(";")[0]
        return min(int(digits), 9) if digits.isdigit() and int(digits[:2]) else 2


def _check_entries(name: str, text: str, options: DocumentOptions) -> None:
    """Check the number of entries, and the number of lines of each entry.

    polib takes quadratic time in the number of lines of an entry. Raises: DocumentLimitExceeded if a number is too
    large.
    """
    entries = lines = 0
    for number, line in enumerate(text.splitlines(), 1):
        lines += 1 + line.count("\\n")
        if lines > _MAX_LINES:
            raise DocumentLimitExceeded(
                f"{name}, line {number}: the entry is too long; accepted: at most {_MAX_LINES:,} lines per entry"
            )
        if line.lstrip("#~ \t").startswith("msgstr"):
            entries += 1
            lines = 0
        if entries > options.max_segments:
            raise DocumentLimitExceeded(f"{name} has too many entries; accepted: at most {options.max_segments:,}")


def _translate(source: str, number: int, translations: Sequence[TranslatedSegment]) -> str:
    if number < 0:
        return source
    before, _, after = split_whitespace(source)
    return before + translations[number].text + after


def _flag(entry: polib.POEntry, fuzzy: bool) -> None:
    entry.flags = [flag for flag in entry.flags if flag != "fuzzy"] + (["fuzzy"] if fuzzy else [])
    entry.previous_msgid = entry.previous_msgid_plural = entry.previous_msgctxt = None
