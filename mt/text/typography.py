"""No-break spaces and line breaks in translations, and repairs of marks that a model damages.

Models read and write ordinary spaces in place of no-break spaces and line breaks.
"""

import re
from collections.abc import Sequence
from functools import partial
from itertools import cycle

from mt.languages import primary_language
from mt.text.clauses import may_lower
from mt.text.normalise import GROUP_SPACES, LINE_BREAKS, QUOTE_MARKS, REFERENCE
from mt.text.numbers import NO_BREAK_SPACE, NOT_DIGIT, NUMBER
from mt.text.protect import ProtectedSpan, SpanKind
from mt.text.quotations import close_nested_quotation, write_speech_marks
from mt.text.word_tables import read_tables

NARROW_NO_BREAK_SPACE = "\u202f"
BREAKS = re.compile(rf"\s*[{LINE_BREAKS}]\s*{QUOTE_MARKS} *| {{3,}}")
"""Line breaks with the marks of quoted lines, tabs, and the runs of spaces between columns."""

_NO_BREAK = re.compile("[\u00a0\u2007\u202f]")
_SPACED_QUOTE, _QUOTED, _QUOTED_CODE, _END, _SLASH, _LITERAL, _SENTENCE_END = (
    re.compile(pattern) for pattern in read_tables("patterns.toml")["typography"].values()
)
_DAMAGE_WITHIN = re.compile(r"(?<=\w)\ufffd+(?=\w)")
_MARKS = re.compile("[!?！？]+")
_IN_END = '.!?;…"“”»)]' + "".join(filter(str.isspace, map(chr, range(0x3001))))
_LONGEST_END = 12
_KNOWN_ENDS = frozenset('.;!?"“”»)]}')  # of a translation whose end may be mended, besides letters and digits
_MENDABLE = re.compile(r"[^\w ,.]|,\Z")  # a mark that `mend_marks` may mend, or that needs one: most texts have none
_QUOTES = ("„“", "„”", "“”", "«»")
_OTHER_QUOTES = frozenset({"de-CH", "de-LI"})
_CLOSING = frozenset(".,:;!?…\"'”’“»)]}。！？ ")
_AFTER_NUMBER = re.compile(rf"(?<!\d)({NUMBER})([{GROUP_SPACES}])(?=[^\s\d])")
_BEFORE_NUMBER = re.compile(rf"(?<=\S)([{GROUP_SPACES}])({NUMBER})")
_SPACE_AFTER_NUMBER = re.compile(rf"(?<!\d)({NUMBER}) (?=[^\W\d]|[°%‰\u20a0-\u20cf$£¥])")
_SPACE_BEFORE_NUMBER = re.compile(rf"(?<=\S) ({NUMBER})")
_SPACE_OF_FRENCH_MARK = re.compile(r" (?=[:;!?]+(?:[\s»”\"]|$)|[!?]+\))")
_SPACE_INSIDE_GUILLEMETS = re.compile(r"(?<=«) | (?=»)")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:[ .,]\d{3})+(?!\d)")  # also 1.234 567
_HALF_GERMAN_QUOTE = re.compile("(?<=„)([^„“”]+)”")
_TIGHT_SEMICOLON = re.compile(r"(?<![&#\w])([^\W\d_]+);(?= )")
_TIGHT_GUILLEMET, _SPACED_DASH, _DIVIDED_COMPOUND, _HYPHEN_AT_CODE, _SPACED_GERMAN_QUOTE, *_PATTERNS = (
    re.compile(pattern) for pattern in read_tables("patterns.toml")["spacing"].values()
)
_FINAL_SEMICOLON, _DOUBLED_NOUN, _DASH_AT_WORD, _CAPITAL_WITHIN = _PATTERNS


def space_copied_slashes(source: str, translation: str) -> str:
    """Return a source with spaces around the slashes that its translation lacks, or has beside a word of the source.

    Models read `black / white` better than `black/white`, which became `schwarz/white`.
    """

    def spaced(match: re.Match[str]) -> str:
        words = match[0].replace("/", "|")
        copied = re.search(rf"(?<!\w)(?:{words})/|/(?:{words})(?!\w)", translation, re.IGNORECASE)
        lost = copied or translation.count("/") < source.count("/")
        return match[0].replace("/", " / ") if lost and match[0] not in translation else match[0]

    return _SLASH.sub(spaced, source) if "/" in source else source


def has_no_break_spaces(text: str) -> bool:
    return not text.isascii() and _NO_BREAK.search(text) is not None


def join_numbers(translation: str, spans: Sequence[ProtectedSpan]) -> str:
    """Replace ordinary spaces in the numbers of a translation by no-break spaces, as in `1 000`.

    `spans` are the protected spans of the source. Numbers of the source that have separators are replaced, with the
    spaces of the source if it has any. A hyphen in place of the dash of a span such as `A1–A4` becomes a dash. The
    length of the translation does not change.
    """
    if not spans:
        return translation
    for span in spans:
        if "–" in span.text and span.kind is not SpanKind.NUMBER:
            translation = translation.replace(span.text.replace("–", "-"), span.text)
    numbers = (part for span in spans if span.kind is SpanKind.NUMBER for part in re.split("[-–—]", span.text))
    grouped = [number for number in numbers if re.search(r"\d\D\d{3}", number)]
    if not grouped:
        return translation

    def joined(match: re.Match[str]) -> str:
        digits = NOT_DIGIT.sub("", match[0])
        number = next((number for number in grouped if NOT_DIGIT.sub("", number).startswith(digits)), None)
        if number is None:
            return match[0]
        space = re.search(f"[{GROUP_SPACES}]", number)
        return match[0].replace(" ", space[0] if space else NO_BREAK_SPACE)

    return _GROUPED.sub(joined, translation)


def unify_quotes(translation: str, spans: Sequence[ProtectedSpan], language: str) -> str:
    """Replace straight quotation marks by the typographic ones of the translation, or of German and French.

    They are replaced if all of them are in pairs and none is in code; in German, one of a pair may be typographic.
    `spans` are the protected spans of the source. The length does not change.
    """
    if '"' not in translation or any('"' in span.text for span in spans):
        return translation
    used = next((pair for pair in _QUOTES if all(mark in translation for mark in pair)), None)
    if used is None and language not in _OTHER_QUOTES:
        used = {"de": "„“", "fr": "«»"}.get(primary_language(language))
    straight = translation.replace("„", '"').replace("“", '"') if used == "„“" else translation
    if used is None or not _QUOTED.fullmatch(straight) or _QUOTED_CODE.search(translation):
        return translation
    marks = cycle(used)
    return re.sub('"', lambda match: next(marks), straight)


def space_guillemets(source: str, translation: str, language: str) -> str:
    """Return a French translation with spaces inside its guillemets, unless the source and it have some without."""
    if primary_language(language) != "fr" or "«" not in translation:
        return translation
    if _TIGHT_GUILLEMET.search(source) and "« " not in translation:
        return translation
    return _TIGHT_GUILLEMET.sub(" ", translation)


def write_references(source: str, translation: str) -> str:
    """Write apostrophes and straight quotation marks as the references that its source has instead of them."""
    for reference in REFERENCE.finditer(source):
        sign = '"' if reference["quote"] else "'"
        translation = translation if sign in source else translation.replace(sign, reference[0])
    return translation


def without_damage(text: str) -> str:
    """Remove U+FFFD, an incomplete sequence of bytes, from what a model wrote. In a word, a space takes its place."""
    return _DAMAGE_WITHIN.sub(" ", text).replace("\ufffd", "") if "\ufffd" in text else text


def mend_marks(source: str, translation: str, language: str) -> str:
    """Mend the punctuation of a translation into `language`.

    Spaces of a dash between words are written, and spaces after opening quotes and brackets removed. The `!`, `?`,
    comma, colon or full stop that ends the source ends the translation. Runs such as `?!` are those of the source, if
    their numbers are equal.
    """
    if not (_MENDABLE.search(source) or _MENDABLE.search(translation)):
        return translation
    for literal in _LITERAL.findall(source) if "'{" in source else ():
        quoted = rf"[„“\"'«‘] ?{re.escape(literal)} ?[“”\"'»’]"
        translation = f"'{literal}'".join(re.split(quoted, translation))
    if "„" in translation:
        translation = _SPACED_GERMAN_QUOTE.sub("", translation)
        translation = _HALF_GERMAN_QUOTE.sub(r"\1“", translation) if "“" in translation else translation
    if "- " in translation and "- " not in source:
        translation = _DIVIDED_COMPOUND.sub(r"\1-", _HYPHEN_AT_CODE.sub(" ", translation))
    if _SPACED_DASH.search(source) and not _DASH_AT_WORD.search(source):
        translation = _DASH_AT_WORD.sub(" – ", translation)
    has_sign = any(sign in source for sign in ("–", "—", ";", " - "))
    if has_sign and not _CAPITAL_WITHIN.search(source):
        translation = _CAPITAL_WITHIN.sub(partial(_lower_within, language=language), translation)
    if '" ' in translation and translation.count('"') % 2 == 0 and not _SPACED_QUOTE.search(source):
        translation = _SPACED_QUOTE.sub('"', translation)
    translation = write_speech_marks(source, close_nested_quotation(source, translation), language)
    if source.count(";") == 1 and translation.count(", ") == 1 and "," not in source and ";" not in translation:
        translation = translation.replace(", ", " ; " if primary_language(language) == "fr" else "; ")
    if ";" in translation and primary_language(language) == "fr":
        translation = _TIGHT_SEMICOLON.sub(r"\1 ;", translation)
    translation = translation if "( " in source or "[ " in source else re.sub(r"(?<=[(\[]) ", "", translation)
    runs = _MARKS.findall(source)
    translation = translation.replace("? !", "?!") if "?!" in runs else translation
    if max(map(len, runs), default=1) > 1 and len(_MARKS.findall(translation)) == len(runs):
        left = iter(runs)
        translation = _MARKS.sub(lambda _: next(left), translation)
    translation = _DOUBLED_NOUN.sub(r"\1 \2", translation) if "-" in translation else translation
    if not (translation[-1:].isalnum() or translation[-1:] in _KNOWN_ENDS):
        return translation
    if source[-1:] == ";" and _FINAL_SEMICOLON.search(source) and translation[-1] != ";":
        return translation.removesuffix(".") + " " * (primary_language(language) == "fr") + ";"
    if source[-1:] in ",:" and source[-2:-1].isalnum() and translation[-1:] not in ";!?":
        return _with_final_pause(source, translation, language)
    return _with_final_mark(source, _end_of(source), translation, language)


def _lower_within(word: re.Match[str], language: str) -> str:
    return word[0].lower() if may_lower(word[0], language) else word[0]


def _with_final_pause(source: str, translation: str, language: str) -> str:
    """Write the comma or colon that ends a source, which may be within the translation, as in `Hallo, Tom`."""
    if source[-1] == "," and source.count(",") == translation.count(",") == 1:
        translation = translation.replace(", ", " ")
    space = " " if source[-1] == ":" and primary_language(language) == "fr" else ""
    return translation.removesuffix(".") + space + source[-1]


def _with_final_mark(source: str, wanted: re.Match[str], translation: str, language: str) -> str:
    """Write the `!`, `?`, run of them or full stop of `wanted`, the end of the source, in place of a lesser mark."""
    mark, space = (wanted["stop"] or wanted["mark"]).strip(), ""
    if mark[:1] not in ("!", "?") and (mark != "." or not translation.endswith(" ;")):
        return translation
    written = _end_of(translation)
    place = "stop" if written["stop"] or (wanted["stop"] and written["closing"]) else "mark"
    if mark[:1] in ("!", "?"):
        ends_quotation = wanted["closing"] and not (wanted["stop"] or written["closing"])
        is_elsewhere = ends_quotation or translation.count(mark[0]) >= source.count(mark[0])
        if is_elsewhere or not mark.startswith(written[place].strip(". \u00a0\u202f")):
            return translation
        space = " " if primary_language(language) == "fr" else ""
    elif written[0] != " ;":
        return translation
    return translation[: written.start(place)] + space + mark + translation[written.end(place) :]


def _end_of(text: str) -> re.Match[str]:
    match = _END.search(text, max(len(text) - _LONGEST_END, len(text.rstrip(_IN_END))))
    assert match
    return match


def restore_no_break_spaces(source: str, translation: str, language: str) -> str:
    """Replace spaces of a translation into `language` by the no-break spaces that typography demands.

    The spaces beside a number are those beside the same number of the source. In French, the spaces of the marks
    `: ; ! ?` and of guillemets become no-break spaces. The length of the translation does not change.
    """
    after = {NOT_DIGIT.sub("", number): space for number, space in _AFTER_NUMBER.findall(source)}
    before = {NOT_DIGIT.sub("", number): space for space, number in _BEFORE_NUMBER.findall(source)}
    if after:
        translation = _SPACE_AFTER_NUMBER.sub(
            lambda match: match[1] + after.get(NOT_DIGIT.sub("", match[1]), " "), translation
        )
    if before:
        translation = _SPACE_BEFORE_NUMBER.sub(
            lambda match: before.get(NOT_DIGIT.sub("", match[1]), " ") + match[1], translation
        )
    if primary_language(language) == "fr":
        translation = _SPACE_OF_FRENCH_MARK.sub(NARROW_NO_BREAK_SPACE, translation)
        translation = _SPACE_INSIDE_GUILLEMETS.sub(NO_BREAK_SPACE, translation)
    return translation


def places_of_sentence_ends(source: str, translation: str, places: Sequence[int]) -> list[int] | None:
    """Return the place in the translation of each of `places`, if all are ends of sentences of the source.

    Return None if other places are among them, or if the translation has another number of sentence ends.
    """
    ends, targets = ([match.end() for match in _SENTENCE_END.finditer(text)] for text in (source, translation))
    if len(ends) != len(targets) or not set(places) <= set(ends):
        return None
    return [targets[ends.index(place)] for place in places]


def insert_breaks(translation: str, breaks: Sequence[tuple[int, str]], spans: Sequence[ProtectedSpan] = ()) -> str:
    """Insert line breaks (place, text) in a translation. They replace the white space at their places.

    A break after the last word, before closing punctuation, goes before the word; one within a span goes before it.
    """
    parts: list[str] = []
    end = 0
    for place, text in sorted(breaks, key=lambda item: item[0]):
        if _CLOSING.issuperset(translation[place:]):
            place = max(end, translation.rfind(" ", 0, place)) if " " in translation[end:place] else place
        place = next((span.begin for span in spans if span.begin < place < span.end), place)
        parts += [translation[end:place].rstrip(" "), text]
        end = place + len(translation[place:]) - len(translation[place:].lstrip(" "))
    return "".join([*parts, translation[end:]])
