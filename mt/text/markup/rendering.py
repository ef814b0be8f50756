"""Rendering of markup: its texts and attribute values in their escaped forms, given the translations."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from mt.text.markup.elements import Dialect
from mt.text.markup.inline import BuiltSegment
from mt.text.markup.marks import Part, Render, Segment, Translations, is_changed, render_parts
from mt.text.messages import safe_apostrophes

_BACKSLASH_FORMS = {"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\t": "\\t"}
_LITERAL_FORMS = {"&": "&", "<": "<"}
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class Renderer:
    """Renderer of parts of markup in one dialect. `segments` are the segments of the whole markup."""

    def __init__(self, dialect: Dialect, segments: Sequence[Segment]) -> None:
        self._dialect, self._segments = dialect, segments
        self._compared: tuple[Translations, bool] | None = None  # of the last call of `language`

    def text(self, number: int, source: Sequence[Part], built: BuiltSegment[Part], translations: Translations) -> str:
        """Return the text of segment `number`. It is `source` if the translation equals the segment."""
        translated = translations[number]
        if translated.text == built.segment.text:
            return render_parts(source, translations)
        if self._dialect.messages and built.forms.get("'") != "''":
            translated = replace(translated, text=safe_apostrophes(translated.text, built.segment.text))
        forms = {
            **(_BACKSLASH_FORMS if self._dialect.backslashes else {}),
            **(_LITERAL_FORMS if self._dialect.literal else {}),
            **built.forms,
        }
        return render_parts(built.render(translated, partial(escape, forms=forms)), translations)

    def value(self, source: str, value: str, render: Render, translations: Translations) -> str:
        """Return the value of an attribute that is a text or a document. `source` is `value` in its quotes."""
        text = render(translations)
        if text == value:
            return source
        quote = source[:1] if source[:1] in ('"', "'") else '"'
        return quote + escape(text, {quote: "&quot;" if quote == '"' else "&#39;"}) + quote

    def language(self, source: str, translated: str, translations: Translations) -> str:
        """Return the value of an attribute that names a language: `translated` if any translation is new."""
        if self._compared is None or self._compared[0] is not translations:
            self._compared = translations, is_changed(self._segments, translations)
        return translated if self._compared[1] else source


def escape(text: str, forms: dict[str, str]) -> str:
    """Escape `&`, `<`, `]]>` and the characters in `forms`, which maps characters to their escaped forms.

    Characters that XML does not allow are removed. Files that are read as HTML may be XHTML.
    """
    table = str.maketrans({"&": "&amp;", "<": "&lt;", **forms})
    return NOT_XML.sub("", text).translate(table).replace("]]>", "]]&gt;")
