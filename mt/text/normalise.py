"""Normalisation of a text before a model reads it, with a map to the offsets of the original text.

- Canonical composition (NFC).
- Each run of Unicode spaces and line breaks becomes one space. A no-break or thin space that groups
  the digits of a number, as in `1 000`, stays: it belongs to the number (`mt.text.protect`). `plain_spaces` replaces it
  when the text is encoded.
- Soft hyphens, zero-width and bidirectional format characters, byte order marks and control characters are removed.
  U+200C and U+200D stay in scripts with joiners and in emoji, variation selectors in emoji.
- `12,- €` becomes `12 €`, »...« becomes „...“, and ‚...‘ becomes "...", or '...' within a quotation. Words
  divided at the end of a line are joined. In German, `Lehrer:innen` becomes `Lehrerinnen` (`_GENDER_FORMS`).
- References to apostrophes within words and to quotation marks, and UTF-8 that was read as cp1252, become characters.
- Letters and digits in compatibility forms (full width, ligatures, mathematical alphabets) become plain letters, unless
  the tokenizer knows the form. Superscripts, circled digits and fractions stay: NFKC would change m² to m2.
- Punctuation that the tokenizer does not know becomes the closest punctuation that it knows.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import cache
from itertools import chain, groupby, pairwise
from typing import NamedTuple

from mt.languages import primary_language
from mt.text.alignment import Range
from mt.text.word_tables import read_tables

LINE_BREAKS = "\t\n\x0b\x0c\r\x1c-\x1f\x85\u2028\u2029"
# All spaces and line breaks except U+0020, for use between the brackets of a regular expression
SPACES = f"{LINE_BREAKS}\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
GROUP_SPACES = "\u00a0\u2007\u2009\u202f"  # spaces that group the digits of a number
# Optional marks at the beginning of a quoted line of an e-mail, but not a comparison, as in `> 5`
QUOTE_MARKS = r"(?:(?:^|(?<=\n))(?:> ?)+(?! *[\d=]))?"
_SPACE_RUN = re.compile(rf"(?<=\d)[{GROUP_SPACES}](?=\d{{3}}(?!\d))|(?P<run>[ {SPACES}]+{QUOTE_MARKS} *)")
_HYPHEN_AT_END = re.compile(  # of a line, but not in "Haus-\\nund Gartentür"
    rf"(?<=[a-zß-ÿ]{{2}})[-\u2010]\r?\n{QUOTE_MARKS} *(?=[a-zß-ÿ]{{2}})"
    r"(?!(?:und|oder|bzw|sowie|bis|wie|als|aber|noch|statt|and|en|et|or|ou|to)\b)"
)
_BEFORE_HYPHEN = re.compile(r"\b(?:well|self|half|high|low|long|short|old|full|part|time|user|non|ex|semi|co|là|ci)\Z")

_NO_CENTS = re.compile(r"(?<=\d),[-–—]{1,2}(?= ?(?:[€$£]|Euro?\b|EUR\b|CHF\b))")  # 12,- €
_GENDER_FORMS, _FRENCH_GENDER_FORMS, _TYPED_QUOTES, _SINGLE_QUOTES, _LETTER_SYMBOL, REFERENCE, _DECODED_BADLY = map(
    re.compile, read_tables("normalise.toml")["patterns"].values()
)
LETTER_SYMBOL = _LETTER_SYMBOL.pattern
# Fast tests: all alternatives begin with a letter, not with a set, so `re` searches for any of these letters first.
_RESPELLED = re.compile(r",[-–—,]|`|<<|>>|„[^“”\"]{1,300}\"|\"\"\w|‚\w|‘[‘\w]|‹\w|›\w|‛\w|-\r?\n|&[#aqr]|Ã|Â|â€")
_RESPELLED_GERMAN = re.compile(
    rf"{'|'.join(rf'{re.escape(sign)}(?<=[a-zäöüß].)-?[Ii]n' for sign in ':*·/(')}|{_RESPELLED.pattern}"
)
_RESPELLED_FRENCH = re.compile(rf"\((?<=[a-zà-ÿ]\()(?:[els]|ne|rice)|/(?<=[eln]/)[uelc]|{_RESPELLED.pattern}")
_FAST_TESTS = {"": _RESPELLED, "de": _RESPELLED_GERMAN, "fr": _RESPELLED_FRENCH}
_TYPED_APOSTROPHE = re.compile(r"\A[^`]*[^\W\d_](`)[^\W\d_][^`]*\Z")
_FULL_WIDTH = {code + 0xFEE0: code for code in range(0x21, 0x7F)}
_HAS_FULL_WIDTH, _HAS_WIDE = re.compile("[！-～]"), re.compile("[\u3001-\ud7ff\uf900-\ufaff\uff61-\uffdc]")
_GERMAN_GUILLEMETS = re.compile(r"»(\w[^«»]{0,500}[^\s«»])«")
_LONG = 500  # characters of a text in which the order of marks may take long
_TO_PLAIN_SPACES = str.maketrans(dict.fromkeys(GROUP_SPACES, " "))

_SETS = read_tables("normalise.toml")["sets"]
_FORMATS, _WITH_JOINERS, _WITHOUT_SPACES = (_SETS[name] for name in ("formats", "with_joiners", "without_spaces"))
_EMOJI, _COMPOSABLE = _SETS["emoji"], re.compile(f"[{_SETS['composable']}]")
# Spaces and invisible characters that can surround a sentence
MARGIN = "".join(
    chr(code)
    for first, last in re.findall("(.)(?:-(.))?", f" {SPACES}{_FORMATS}\u200b", re.DOTALL)
    for code in range(ord(first), ord(last or first) + 1)
)
_REMOVED_BASIC = f"{_FORMATS}\u200b-\u200d\ufe00-\ufe0f"
_REMOVED = re.compile(
    rf"[{_FORMATS}\U0001d173-\U0001d17a\U000e0001]|(?<![{_WITHOUT_SPACES}])\u200b|\u200b(?![{_WITHOUT_SPACES}])|(?<![{_WITH_JOINERS}])\u200c"
    rf"|(?<![{_WITH_JOINERS}])\u200d(?![{_EMOJI}])|(?<![{_WITH_JOINERS}{_EMOJI}\ufe0f\U000e007f])\u200d"
    rf"|(?<![{_EMOJI}0-9#*])[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?!\u20e3)|(?<=[0-9#*])\ufe0e"
    rf"|[\ufe00-\ufe0d\U000e0100-\U000e01ef]|(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0020-\U000e007f]"
)

_RADICALS = range(0x2F00, 0x2FD6)  # radicals of Han characters, which Unicode does not count as letters
_UNITS = range(0x3380, 0x33E0)  # units of measurement in one square, such as ㎞ and ㎡
_ROMAN_NUMERALS = range(0x2160, 0x2180)
_LETTER_FORMS = [range(*block) for block in _SETS["letter_forms"]]
# Tags of the decompositions that `_plain_letters` applies. <super>, <sub>, <circle> and <fraction> carry meaning
_LETTER_TAGS = frozenset({"<font>", "<wide>", "<narrow>", "<compat>", "<isolated>", "<initial>", "<medial>", "<final>"})
_DOUBLE_QUOTES = '"“”„‟«»'
_LONG_DASHES, _TIGHT_DASH = "—―⸺", re.compile(r"(?<=[^\W\d_])—(?=[^\W\d_])")


class NormalisedText(NamedTuple):
    """A normalised text, and the ranges of the original text from which its characters come.

    Character i of `text` comes from the characters `begins[i]` to `ends[i]` of the original. Both lists are None if no
    character changed. Characters that were removed are in no range.
    """

    text: str
    begins: Sequence[int] | None = None
    ends: Sequence[int] | None = None

    def original_range(self, begin: int, end: int) -> Range:
        """Return the range of the original text that corresponds to the range [begin, end) of the normalised text."""
        if self.begins is None or self.ends is None:
            return begin, end
        if begin == end:
            place = self.begins[begin] if begin < len(self.begins) else self.ends[-1] if self.ends else 0
            return place, place
        return self.begins[begin], self.ends[end - 1]

    def normalised_range(self, begin: int, end: int) -> Range:
        """Return the range of the normalised text that contains all characters of a range of the original text."""
        if self.begins is None or self.ends is None:
            return begin, end
        first = bisect_right(self.ends, begin)
        return first, max(first, bisect_left(self.begins, end))

    def part(self, begin: int, end: int) -> "NormalisedText":
        begins, ends = self._places()
        return NormalisedText(self.text[begin:end], begins[begin:end], ends[begin:end])

    def replace(self, pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str]) -> "NormalisedText":
        """Return the text with a replacement of each match of a pattern."""
        return self.edit((*match.span(), replacement(match)) for match in pattern.finditer(self.text))

    def edit(self, edits: Iterable[tuple[int, int, str]]) -> "NormalisedText":
        """Return the text with edits (begin, end, new text), which must be in order and not empty."""
        begins_before, ends_before = self._places()
        texts: list[str] = []
        begins: list[int] = []
        ends: list[int] = []
        end = 0
        for begin, stop, new in edits:
            if new == self.text[begin:stop]:
                continue
            texts += [self.text[end:begin], new]
            begins += [*begins_before[end:begin], *[begins_before[begin]] * len(new)]
            ends += [*ends_before[end:begin], *[ends_before[stop - 1]] * len(new)]
            end = stop
        if not texts:
            return self
        texts.append(self.text[end:])
        return NormalisedText("".join(texts), [*begins, *begins_before[end:]], [*ends, *ends_before[end:]])

    def _places(self) -> tuple[Sequence[int], Sequence[int]]:
        if self.begins is None or self.ends is None:
            return range(len(self.text)), range(1, len(self.text) + 1)
        return self.begins, self.ends


class Normaliser:
    """Normaliser of the texts for one tokenizer. `normalise` returns a text that needs no change at once."""

    def __init__(self, knows: Callable[[str], bool] | None = None) -> None:
        """Prepare the replacements for a tokenizer. `knows` tells whether a character is in its vocabulary.

        Without `knows`, letters and digits in compatibility forms are always replaced, and punctuation never.
        """
        self._language = ""  # of those with gender forms
        self._replacements = dict(_replacements(knows))
        replaced = "".join(_character_ranges(self._replacements))
        self._replaced = re.compile(f"[{replaced}]") if replaced else None
        basic = "".join(_character_ranges(form for form in self._replacements if ord(form) < 0x10000))
        # `re` searches for characters above U+FFFF slowly if they are many ranges.
        self._spaces_dashes = knows is not None and knows("—") and knows("–")  # others are replaced
        basic += "—" * self._spaces_dashes
        self._doubtful = re.compile(f"[»{SPACES}{_REMOVED_BASIC}{basic}\U0001d100-\U0001d7ff\U000e0000-\U000e01ef]")

    def of_language(self, language: str) -> "Normaliser":
        """Return the normaliser of sentences in a language."""
        own, primary = copy(self), primary_language(language)
        own._language = primary if primary in _FAST_TESTS else ""
        return own

    def normalise(self, text: str, kept: Sequence[Range] = ()) -> NormalisedText:
        """Return the normalised text. Characters in the ranges `kept` stay as they are."""
        respelled = _FAST_TESTS[self._language].search(text) is not None
        whole = NormalisedText(text)
        if not (respelled or "  " in text) and (
            (text.isascii() and text.isprintable())
            or (self._doubtful.search(text) is None and unicodedata.is_normalized("NFC", text))
        ):
            return whole
        if not kept:
            return self._normalise(whole)
        drafts, end = [], 0
        for begin, stop in sorted(kept):
            if stop > end:
                begin = max(begin, end)
                drafts += [self._normalise(whole.part(end, begin)), whole.part(begin, stop)]
                end = stop
        texts, begins, ends = zip(*drafts, self._normalise(whole.part(end, len(text))), strict=True)
        joined = "".join(texts)
        return whole if joined == text else NormalisedText(joined, [*chain(*begins)], [*chain(*ends)])

    def _normalise(self, draft: NormalisedText) -> NormalisedText:
        draft = draft.replace(REFERENCE, lambda match: '"' if match["quote"] else "'")
        draft = draft.replace(_DECODED_BADLY, lambda match: match[0].encode("cp1252").decode("utf-8", "replace"))
        draft = _compose(draft.replace(_REMOVED, lambda match: ""))
        if "\n" in draft.text:
            draft = draft.replace(_HYPHEN_AT_END, _joint)
        draft = draft.replace(_SPACE_RUN, lambda match: " " if match["run"] else match[0])
        draft = draft.replace(_NO_CENTS, lambda match: "")
        draft = draft.replace(_TIGHT_DASH, lambda match: " – ") if self._spaces_dashes else draft
        draft = draft.replace(_TYPED_QUOTES, lambda match: f'"{match[match.lastindex or 0]}"')
        if "‘" in self._replacements:
            quotes = _SINGLE_QUOTES.finditer(draft.text)
            marks = ((quote, "'" if _is_within_quotation(draft.text, quote.start()) else '"') for quote in quotes)
            draft = draft.edit((at, at + 1, mark) for one, mark in marks for at in (one.start(), one.end() - 1))
        draft = draft.edit((*quote.span(1), "'") for quote in _TYPED_APOSTROPHE.finditer(draft.text))
        if self._language == "de":
            draft = draft.replace(_GENDER_FORMS, _without_gender_form)
        elif self._language == "fr":
            draft = draft.replace(_FRENCH_GENDER_FORMS, lambda match: match["word"] or match["article"])
        draft = draft.replace(_GERMAN_GUILLEMETS, lambda match: f"„{match[1]}“")
        if self._replaced:
            draft = draft.replace(self._replaced, self._replacement)
        return _compose(draft)

    def _replacement(self, match: re.Match[str]) -> str:
        """Return the replacement of a character; a dash between words gets spaces. Arrows, inches and ℝ stay."""
        around = match.string[match.start() - 1 : match.start()] + match.string[match.end() : match.end() + 1]
        if match[0] in "‹›" and not ("‹" in match.string and "›" in match.string):
            return match[0]
        if (match[0] in "′″" and around[:1].isdigit()) or _LETTER_SYMBOL.match(match.string, match.start()):
            return match[0]
        new = self._replacements[match[0]]
        return f" {new} " if match[0] in _LONG_DASHES and len(around) == 2 and around.isalpha() else new


def _joint(match: re.Match[str]) -> str:
    """Return what joins the two parts of a divided word: the hyphen of words such as `well-known`, or nothing."""
    return "-" if _BEFORE_HYPHEN.search(match.string, max(0, match.start() - 6), match.start()) else ""


def _is_within_quotation(text: str, place: int) -> bool:
    """Return whether a double quotation mark is open at a place, where single marks are those of a quotation within."""
    return sum(map(text[:place].count, _DOUBLE_QUOTES)) % 2 == 1


def _without_gender_form(match: re.Match[str]) -> str:
    if plural := match["plural"]:
        in_compound = match.string[match.end() : match.end() + 1] == "-"  # Mitarbeiter*innen-Parkplatz
        return plural if in_compound and plural.endswith("er") else f"{plural}innen"
    return match["person"] or match["article"] + match["one"]


@cache
def _general_normaliser(language: str) -> Normaliser:
    return Normaliser().of_language(language)


def normalise_text(text: str, language: str = "") -> NormalisedText:
    """Return a text normalised for an unknown tokenizer: punctuation stays as it is."""
    return _general_normaliser(language).normalise(text)


def normalise_training_text(text: str) -> str:
    """Return a text of a corpus as a model should read it in training: normalised, with ordinary spaces in numbers."""
    return plain_spaces(normalise_text(text).text)


def remove_invisible(text: str, kept: Sequence[Range] = ()) -> NormalisedText:
    """Return `text` without the characters that `Normaliser.normalise` removes; those in the ranges `kept` stay."""
    whole = NormalisedText(text)
    if text.isascii() and text.isprintable():
        return whole
    removed = (match.span() for match in _REMOVED.finditer(text))
    return whole.edit((*at, "") for at in removed if not any(begin <= at[0] < end for begin, end in kept))


def narrow(text: str) -> str:
    """Return a text of no wide script with ordinary letters and signs for full-width ones. Its length stays."""
    return text.translate(_FULL_WIDTH) if _HAS_FULL_WIDTH.search(text) and not _HAS_WIDE.search(text) else text


def plain_spaces(text: str) -> str:
    """Return a normalised text with ordinary spaces in its numbers. Its length does not change."""
    return text if text.isascii() else text.translate(_TO_PLAIN_SPACES)


def _compose(draft: NormalisedText) -> NormalisedText:
    """Convert a text to NFC. The edits are as short as possible: a character and those that can compose with it."""
    text = _ordered(draft.text)
    if text == draft.text and unicodedata.is_normalized("NFC", text):
        return draft
    places = [
        place
        for place, character in enumerate(text)
        if not (unicodedata.combining(character) or _COMPOSABLE.match(character))
    ]
    places = sorted({0, *places, len(text)})
    return draft.edit((begin, end, unicodedata.normalize("NFC", text[begin:end])) for begin, end in pairwise(places))


def _ordered(text: str) -> str:
    """Return a text whose combining marks have their canonical order, for which `unicodedata` takes quadratic time."""
    if len(text) < _LONG or text.isascii():
        return text
    runs = groupby(text, lambda character: unicodedata.combining(character) > 0)
    return "".join(chain.from_iterable(sorted(run, key=unicodedata.combining) if marks else run for marks, run in runs))


def _character_ranges(characters: Iterable[str]) -> Iterator[str]:
    """Yield ranges of consecutive characters for use in a regular expression. `re` is slow on long lists."""
    codes = sorted(map(ord, characters))
    for _, group in groupby(enumerate(codes), lambda item: item[1] - item[0]):
        consecutive = [code for _, code in group]
        yield f"{re.escape(chr(consecutive[0]))}-{re.escape(chr(consecutive[-1]))}"


def _replacements(knows: Callable[[str], bool] | None) -> Iterator[tuple[str, str]]:
    """Yield (character, replacement) for each character that the tokenizer does not know, if it knows the replacement.

    `knows` is the argument of Normaliser.
    """
    for code in (code for block in _LETTER_FORMS for code in block):
        form = chr(code)
        letters = _plain_letters(form)
        if letters != form and (knows is None or (not knows(form) and all(map(knows, letters)))):
            yield form, letters
    if knows is None:
        return
    tables = read_tables("normalise.toml")
    candidates = [(character, list(closest)) for group, closest in tables["closest"].items() for character in group]
    candidates += [(chr(wide), [chr(code)]) for wide, code in _FULL_WIDTH.items() if not chr(code).isalnum()]
    candidates += [(character, [spelled]) for character, spelled in tables["spelled"].items()]
    candidates += [(chr(code), [unicodedata.normalize("NFKC", chr(code))]) for code in _ROMAN_NUMERALS]
    candidates += [(chr(code), [_decomposed(chr(code))]) for code in _UNITS]
    for character, texts in candidates:
        if not knows(character) and (known := next((text for text in texts if all(map(knows, text))), None)):
            yield character, known


def _plain_letters(form: str) -> str:
    """Return the letters or digits of which a character is a compatibility form, or the character if it is none."""
    tag = unicodedata.decomposition(form).partition(" ")[0]
    if tag not in _LETTER_TAGS or not (form.isalpha() or form.isdecimal() or ord(form) in _RADICALS):
        return form
    letters = "".join(map(_plain_letters, _decomposed(form)))
    return letters if not letters[0].isspace() else form


def _decomposed(character: str) -> str:
    """Return the characters of the decomposition of a character in one step (the tag is left out)."""
    codes = (code for code in unicodedata.decomposition(character).split() if not code.startswith("<"))
    return "".join(chr(int(code, 16)) for code in codes) or character
