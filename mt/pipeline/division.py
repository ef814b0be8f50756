"""Division of a sentence at its marks and phrases, whose parts are translated apart."""

import re
from collections.abc import Sequence

from mt.languages import primary_language
from mt.pipeline.variants import SentenceContext
from mt.text import names, titles
from mt.text.alignment import Range
from mt.text.members import NUMERAL, translate_numeral
from mt.text.phrases import MOST_CHARACTERS
from mt.text.quotations import speech_parts, whole_quotation
from mt.text.schedules import has_names
from mt.text.segment import TextPart
from mt.text.symbols import ONE_UNIT

_IN_BRACKETS = re.compile(
    r"(?P<before>[^()]*?)(?P<open> \(|(?:\A|(?<=[^\W\d_]{3}))\()(?P<inner>[^()]+)\)(?: ?(?P<mark>:))?"
)
_REMARK = re.compile(r"[^\W\d_][\w'’-]*(?: [\w'’-]+){0,2} \([a-zß-ÿ][^() ]* ")  # Total (without tax)
_ITEM_OF_SENTENCE = re.compile(r"([^;]*[^\W\d_][^;]*?) ?; (and|or|und|oder|et|ou)")  # in case of breach; or
_BETWEEN_WORDS = re.compile("( ?/ ?|, )")
_NUMBERED_LABEL = re.compile(r"(?P<code>[A-Z](?:[A-Z]{0,3}-?\d{1,4})?|\d{1,3} ?%)|[A-Z][a-zß-ÿ]{1,11}\.? \d{1,4}")
_LONGEST_SHORT = 3  # letters of the short names of months
_CODE_IN_BRACKETS = re.compile(rf"[A-Z]{{2,4}}|[%€$£]|{ONE_UNIT}")
_PRODUCT = re.compile(  # Washing machine WM-700, 8 kg, and Platform 9 and Speed limit 30 mph
    r"(?P<name>[^\W\d_][^\d,;:.()]*?) (?:"
    rf"(?=\S*\d)[A-Z][\w-]*(?:,? \d+(?:[.,]\d+)? ?{ONE_UNIT})*"
    rf"|(?P<number>(?P<numeral>(?i:{NUMERAL}))|\d{{1,4}}[A-Za-z]?|\d+(?:[.,]\d+)? ?(?:{ONE_UNIT}|%)))"
)


def divide_at_mark(sentence: str, context: SentenceContext, kept: Sequence[Range]) -> list[TextPart]:
    """Return the parts of a quotation, direct speech, a greeting, and `Weight: 4.5 kg`, otherwise [].

    The label is a phrase, a given name, or a number as in `Fig. 1: Map` and `Q1: Why?`. A greeting, such as `Dear
    {name}, thank you.` or `Dear Sir or Madam, thank you.`, ends at a comma, but not before a German address.
    """
    if speech := [] if kept else speech_parts(sentence, (context.source, context.target)):
        return [TextPart(*part) for part in speech]
    if quoted := whole_quotation(sentence):
        sign = TextPart("'" if sentence[0] == "'" else '"', kept=True)
        return [sign, TextPart(quoted, kept=False), sign]
    for mark in ": ", ", ":
        label, _, rest = sentence.partition(mark)
        if not rest.strip() or (mark == ", " and not titles.is_salutation(label, rest, context.source)):
            continue
        numbered = _NUMBERED_LABEL.fullmatch(label) if mark == ": " and rest[0].isupper() else None
        is_code = bool(numbered and numbered["code"])
        is_name = is_code or (mark == ": " and names.is_given_name(label.rstrip().title()))
        is_known = is_name or numbered or context.known_translation(label)
        if not is_known or any(begin < len(label) for begin, _ in kept):
            continue
        if mark == ", " and titles.begins_with_address(rest, context.source):
            continue
        colon = " :" if primary_language(context.target) == "fr" else ":"
        text = label.rstrip() + colon if is_name else label + mark[0]
        return [TextPart(text, kept=is_name), TextPart(" ", kept=True), TextPart(rest, kept=False)]
    return []


def divide_at_phrase(sentence: str, context: SentenceContext, kept: Sequence[Range]) -> list[TextPart]:
    """Return the parts of `(red)`, `Cup (red/blue):`, `Cup X-5, 3 l` and `Cup 5`, of phrases, and `Tea (for two)`."""
    phrases, languages = context.phrases, (context.source, context.target)
    match = _IN_BRACKETS.fullmatch(sentence) if "(" in sentence else None
    is_remark = match is not None and "," not in match["inner"] and _REMARK.match(sentence) is not None
    if not phrases or kept or (len(sentence) > MOST_CHARACTERS and not is_remark):
        return []
    product = _PRODUCT.fullmatch(sentence)
    if product and phrases.translate(product["name"], *languages) and _is_noun(product, context):
        number, numeral = sentence[product.end("name") + 1 :], product["numeral"]
        if numeral and (number := translate_numeral(numeral, languages) or ""):
            number = number.capitalize() if numeral[0].isupper() else number
        return [TextPart(product["name"], kept=False), TextPart(f" {number}", kept=True)] if number else []
    if sentence[-2:] in ("or", "nd", "er", "et", "ou") and (item := _ITEM_OF_SENTENCE.fullmatch(sentence)):
        mark = ";" if primary_language(context.target) != "fr" else " ;"
        return [TextPart(item[1], False), TextPart(f"{mark} ", True), TextPart(item[2], False)]
    words = _BETWEEN_WORDS.split(match["inner"]) if match else []
    if match and (before := match["before"]) and words[0][:1].isupper() and not phrases.translate(before, *languages):
        return []  # may be a name: Saint-Denis (Réunion)
    is_code = [number % 2 > 0 or _CODE_IN_BRACKETS.fullmatch(word) is not None for number, word in enumerate(words)]
    parts = list(zip(words, is_code, strict=True))
    is_known = all(code or phrases.translate(word, *languages) for word, code in parts)
    if not match or (all(is_code) and not match["before"]) or not (is_known or is_remark):
        return []
    inner = [TextPart(*part) for part in (parts if is_known else [(match["inner"], False)])]
    mark = " :" if match["mark"] and primary_language(context.target) == "fr" else match["mark"] or ""
    before = [TextPart(match["before"], kept=False)] if match["before"] else []
    return [*before, TextPart(match["open"], kept=True), *inner, TextPart(f"){mark}", kept=True)]


def _is_noun(product: re.Match[str], context: SentenceContext) -> bool:
    """Return whether the words before a number alone have a capital in German, unlike `no 5`, and are no month."""
    german = context.phrases.translate(product["name"].lower(), context.source, "de") if context.phrases else None
    is_month = len(product["name"]) <= _LONGEST_SHORT or has_names(product["name"], context.source)
    return not product["number"] or (german is not None and german[0].isupper() and not is_month)
