"""Gettext's .po, read and written by polib."""

import re
from collections.abc import Sequence

import polib

from mt.errors import DocumentError
from mt.text.documents.base import DocumentOptions, decode_text
from mt.text.markup import Segment, Translated

_WRAP = 78  # gettext's own width
_NUMBER = re.compile(r"line (\d+)")


class PoDocument:
    """Entries without a translation, or with one that is flagged fuzzy; with `retranslate`, all that are in use.

    Of an entry with a plural, the first form gets the translation of the singular and all others that of the plural; if
    there is only one form, it gets that of the plural. A new translation is no longer fuzzy, unless `mark_fuzzy` asks
    for it. Comments, references, flags, contexts, the header and obsolete entries stay. Lines are wrapped anew, so the
    file comes back by its contents and not byte for byte.
    """

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        """Raises DocumentError for what polib cannot read, with its line."""
        text, self._encoding = decode_text(name, content)
        text = text.replace("\r\n", "\n")
        try:
            # polib opens a file if it is given the name of one; no name begins with a line break
            self._file = polib.pofile("\n" + text, wrapwidth=max([_WRAP, *map(len, text.split("\n"))]))
        except (OSError, ValueError, UnicodeError, IndexError, KeyError) as error:
            problem = _NUMBER.sub(lambda found: f"line {int(found[1]) - 1}", str(error))
            raise DocumentError(f"{name} is not a .po file: {problem}") from error
        if not self._file and "msgid" not in text:
            raise DocumentError(f"{name} is not a .po file: it has no entry")
        self.segments: list[Segment] = []
        self._fuzzy = options.mark_fuzzy
        self._slots: list[tuple[polib.POEntry, str, int, int]] = []
        for entry in self._file:
            if not entry.obsolete and (options.retranslate or not entry.translated()):
                self._slots.append((entry, *self._plural(entry)))

    def _plural(self, entry: polib.POEntry) -> tuple[str, int, int]:
        """Numbers of the segments of singular and plural; -1 for what needs no translation."""
        return "", self._add(entry.msgid), self._add(entry.msgid_plural) if entry.msgid_plural else -1

    def _add(self, text: str) -> int:
        if not any(map(str.isalnum, text)):
            return -1
        self.segments.append(Segment(text.strip()))
        return len(self.segments) - 1

    def render(self, translations: Sequence[Translated]) -> bytes:
        """The file with its translations written."""
        assert len(translations) == len(self.segments)
        for entry, _, singular, plural in self._slots:
            first = _written(entry.msgid, singular, translations)
            if entry.msgid_plural:
                others = _written(entry.msgid_plural, plural, translations)
                count = max(len(entry.msgstr_plural), self._forms())
                entry.msgstr_plural = {n: first if n == 0 and count > 1 else others for n in range(count)}
            else:
                entry.msgstr = first
            _flag(entry, self._fuzzy)
        return self._encoding.encode(str(self._file).removeprefix("\n"))

    def _forms(self) -> int:
        """How many forms the header promises."""
        found = self._file.metadata.get("Plural-Forms", "").replace(" ", "").partition("nplurals=")[2]
        digits = found.partition(";")[0]
        return min(int(digits), 9) if digits.isdigit() and int(digits[:2]) else 2


def _written(source: str, number: int, translations: Sequence[Translated]) -> str:
    """A translation with the white space that its source has around it."""
    if number < 0:
        return source
    begin = len(source) - len(source.lstrip())
    return source[:begin] + translations[number].text + source[len(source.rstrip()) :]


def _flag(entry: polib.POEntry, fuzzy: bool) -> None:
    entry.flags = [flag for flag in entry.flags if flag != "fuzzy"] + (["fuzzy"] if fuzzy else [])
    entry.previous_msgid = entry.previous_msgid_plural = entry.previous_msgctxt = None
