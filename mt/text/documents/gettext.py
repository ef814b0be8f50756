"""Gettext files (.po). The translations are replaced in the source, so that everything else is kept."""

import re
from functools import partial

from mt.errors import DocumentError
from mt.languages import language_and_script, primary_language
from mt.text.documents.base import LOCALE_WITHIN, DocumentOptions, TextDocument, read_text, with_locale
from mt.text.encoding import TextEncoding
from mt.text.markup.attributes import same_language
from mt.text.po import PoEntry, PoError, declared_charset, quote, read_po, with_charset
from mt.text.word_tables import read_tables

_HEADER_LANGUAGE = re.compile(r"^Language: *([\w-]+)", re.MULTILINE)
_TEAM = re.compile(r'"Language-Team: [^"\n]*\\n"(\r?\n)')
_PLURAL_FORMS = re.compile(r'Plural-Forms: (?:[^"\\]|"\s{1,20}+"){0,300}+\\n')  # may be in several lines
_LANGUAGE = re.compile(r'(?:\A|[\n"]|\\n)Language: *+([\w-]*+) *+\\n')


def open_po(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse a .po file. Its segments are the entries that have no translation or a fuzzy one.

    Obsolete entries are never translated. In an entry with plural forms, the translation of the singular becomes the
    first form, and the translation of the plural becomes all other forms. If the language has one form, it is the
    translation of the plural. New translations are not flagged fuzzy. Everything else is kept.

    Translations that equal their sources, in a file in another language than the target, are none.

    Raises: DocumentError, with the number of the line, if the content is not a .po file, or if it has translations
        into another language.
    """
    text, document = read_text(name, content, options, declared_charset(content))
    writer = _Writer(document, options.target_language)
    document.finish = partial(_with_header, document.encoding, options, writer)
    try:
        for entry in read_po(text):
            writer.add(entry)
    except PoError as error:
        raise DocumentError(f"{name} is not a .po file: {error}") from error
    if not document.frame:
        raise DocumentError(f"{name} is not a .po file: it contains no entry; accepted: at least one msgid")
    if writer.foreign and writer.has_translations:
        raise DocumentError(
            f"{name} has translations into {writer.foreign!r}, not into {options.target_language}; accepted: a file "
            "without translations, or the header Language of the target language"
        )
    document.keep_until(len(text))
    return document


def _with_header(encoding: TextEncoding, options: DocumentOptions, writer: "_Writer", text: str, changed: bool) -> str:
    """Return the text of a .po file with the header of its translation.

    A language that is missing is added after the team, as by programs that make files from templates. If the encoding
    lacks characters of the translations, it becomes UTF-8.
    """
    if changed and options.target_language and not _LANGUAGE.search(text, 0, LOCALE_WITHIN):
        text = _TEAM.sub(r'\g<0>"Language: \\n"\1', text, count=1)
    text = with_locale(_LANGUAGE, options, text, changed)
    if changed and writer.plural_forms:
        text = _PLURAL_FORMS.sub(rf"Plural-Forms: {writer.plural_forms}\\n", text, count=1)
    return text if encoding.has_all(text) else with_charset(text, "UTF-8")


class _Writer:
    """Writer that adds the entries of a .po file, and the text between them, to a document.

    `foreign` is the language of the file if it is another one than the target language, or else "". `plural_forms` are
    those of the target language if the file has those of another language or of a template, or else "".
    """

    def __init__(self, document: TextDocument, target: str) -> None:
        self._document, self._target = document, target
        self.foreign, self.plural_forms, self.has_translations = "", "", False
        self._newline = "\r\n" if "\r\n" in document.source else "\n"
        self._forms = 2  # number of plural forms of the target language

    def add(self, entry: PoEntry) -> None:
        self._document.frame.append((entry.context, entry.source, entry.plural))
        if entry.is_header:
            header = entry.translations.get(0, "")
            self.foreign = _foreign_language(header, self._target)
            if self.foreign or "nplurals=INTEGER" in header:
                self.plural_forms = _plural_forms(self._target)
            self._forms = _count_forms(self.plural_forms or header)
        elif entry.is_translated and not (self.foreign and entry.is_copy):
            self.has_translations = True
        else:
            self._keep_comments(entry)
            self._add_translations(entry)

    def _keep_comments(self, entry: PoEntry) -> None:
        """Keep the text up to the translations, except previous texts and the flag `fuzzy`."""
        lines = dict.fromkeys(entry.previous_lines, "")
        if entry.is_fuzzy:
            flags = [flag for flag in entry.flags if flag and flag != "fuzzy"]
            first, *others = entry.flag_lines
            lines[first] = f"#, {', '.join(flags)}{self._newline}" if flags else ""
            lines |= dict.fromkeys(others, "")
        for (begin, end), line in sorted(lines.items()):
            self._document.keep_until(begin)
            self._document.keep(line)
            self._document.done = end
        self._document.keep_until(entry.translation_range[0])
        self._document.done = entry.translation_range[1]

    def _add_translations(self, entry: PoEntry) -> None:
        if entry.plural is None:
            self._document.keep("msgstr ")
            self._add_string(entry.source)
            return
        count = self._forms if self.plural_forms else max(len(entry.translations), self._forms)
        for form in range(count):
            self._document.keep(f"{self._newline if form else ''}msgstr[{form}] ")
            if form < 2:
                begin = len(self._document.parts)
                self._add_string(entry.source if form == 0 and count > 1 else entry.plural)
            else:
                self._document.parts.append(self._document.parts[begin])  # the same text as the form before

    def _add_string(self, text: str) -> None:
        write = partial(quote, newline=self._newline)
        self._document.add_string(text, write(text), write)


def _foreign_language(header: str, target: str) -> str:
    """Return the language that a header names, or "" if it is that of the target, unknown or missing."""
    match = _HEADER_LANGUAGE.search(header) if target else None
    code = match[1].replace("_", "-") if match else ""
    return match[1] if match and language_and_script(code)[1] and not same_language(code, target) else ""


def _plural_forms(language: str) -> str:
    """Return the value of the header Plural-Forms for a language, or "" if it is unknown."""
    forms = {code: value for value, codes in read_tables("documents/plurals.toml").items() for code in codes.split()}
    return forms.get(language) or forms.get(primary_language(language), "")


def _count_forms(header: str) -> int:
    digits = header.replace(" ", "").partition("nplurals=")[2].partition(";")[0]
    return min(int(digits), 9) if re.fullmatch("[1-9][0-9]{0,3}", digits) else 2
