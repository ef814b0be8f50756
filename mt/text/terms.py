"""Search for glossary terms and untranslatable words in sentences, and for translated terms in translations."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

from mt.errors import RequestError, problems
from mt.languages import primary_language
from mt.text.alignment import WIDE, Range, is_wide
from mt.text.inflection import NounNumber, forms_compounds, has_endings, inflected_forms, number_of_form, possible_stems
from mt.text.normalise import normalise_text
from mt.text.term_index import SEPARATOR, TOKEN, TermIndex, case_variants, token_keys

MOST_TERMS = 20_000
LONGEST_TERM = 500  # maximum number of characters of a term
_CACHED_TRANSLATIONS = 1024  # number of translations with cached patterns; a sentence can have as many terms
_MOST_PROBLEMS = 20  # maximum number of problems that an error lists

LEAST_NOUN = 4  # letters of a noun that may form a compound with a term
NOUN_AFTER = re.compile(rf"[ -]([^\W\d_]{{{LEAST_NOUN},}})")
_NOUN_BEFORE = re.compile(rf"[^\W\d_]{{{LEAST_NOUN},}} (?:of|d\w{{0,2}})(?: the| l[ae])?[ '’]$")  # "numéro de devis"
_POSSESSIVE = re.compile(r"s\b")
_SPACES = re.compile(r"\s{2,}|[^\S ]")  # white space other than a single space
_CHARACTER = re.compile(r"\s+|\S")
_WIDE = re.compile(rf"(?!\s)[{WIDE}]")
_PRIVATE = 0xF0000  # first code point of a private-use plane of Unicode
_QUIET = frozenset("\"'„“”«»‹›‘’([{¿¡-–—*_ ")  # characters that may precede the first word of a sentence
_JOINS = frozenset("-_@/'’‐‑")  # characters that join the words around them into one


@dataclass(frozen=True, slots=True)
class TermMatch:
    """A term at `sentence[begin:end]`. `translation` is None if the term must not be translated."""

    begin: int
    end: int
    translation: str | None
    number: NounNumber = NounNumber.SINGULAR  # ANY if the last word has another ending, perhaps of a case
    compound: bool = False  # whether the translation may be a part of a compound, as of "quote" in "quote number"


@dataclass(frozen=True)
class Terms:
    """A glossary of (term, translation) pairs, and words that must not be translated.

    A term matches whole words or, in scripts without spaces, any characters. If several terms match, the longest is
    used. A term in lower case also matches with a capital at the beginning of a sentence. The last word of a glossary
    term may have an inflectional ending in the sentence.

    Raises: RequestError with a list of the invalid terms.
    """

    glossary: tuple[tuple[str, str], ...] = ()
    untranslated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        wrong = list(self._problems())
        if len(wrong) > _MOST_PROBLEMS:
            wrong = [*wrong[:_MOST_PROBLEMS], f"and {len(wrong) - _MOST_PROBLEMS} more"]
        if wrong:
            raise RequestError(problems("the terms cannot be used", wrong))

    def __bool__(self) -> bool:
        return bool(self.glossary or self.untranslated)

    def __getstate__(self) -> dict[str, object]:
        return {"glossary": self.glossary, "untranslated": self.untranslated}

    def find(
        self, sentence: str, language: str, taken: Sequence[Range] = (), any_case: bool = False
    ) -> tuple[TermMatch, ...]:
        """Return the disjoint matches in a normalised sentence, in order. No match overlaps a range of `taken`.

        If `any_case` is true, letter case is ignored, for a sentence in ALL CAPS or Title Case.
        """
        if not self:
            return ()
        for _ in self.prepare():
            pass
        return tuple(_matches(self._index, sentence, language, taken, any_case))

    def prepare(self) -> Iterator[None]:
        """Return an iterator that builds the index for `find` in steps of bounded time.

        All calls return the same iterator. Several threads may use it.
        """
        return self._index if self else iter(())

    @cached_property
    def names(self) -> "Terms":
        """These terms as words that stay untranslated, without a check of their own, which takes long."""
        names = object.__new__(Terms)
        words = (*self.untranslated, *(term for term, _ in self.glossary))
        vars(names).update(glossary=(), untranslated=words)
        return names

    @cached_property
    def _index(self) -> TermIndex:
        return TermIndex(tuple(self._entries()))

    def _entries(self) -> Iterator[tuple[str, str | None]]:
        for term, translation in self.glossary:  # a term that is its own translation is a name, without inflected forms
            yield term.strip(), None if term.strip() == translation.strip() else translation.strip()
        yield from ((word.strip(), None) for word in self.untranslated)

    def _problems(self) -> Iterator[str]:
        total = len(self.glossary) + len(self.untranslated)
        if total > MOST_TERMS:
            yield f"the number of terms is {total:,}; accepted: at most {MOST_TERMS:,}"
            return
        known: dict[str, str | None] = {}
        for number, (text, translation) in enumerate(self._entries(), 1):
            where = (
                f"term {number}" if number <= len(self.glossary) else f"untranslated word {number - len(self.glossary)}"
            )
            if len(text) <= LONGEST_TERM and not TOKEN.search(normalise_text(text).text):
                yield f"{where} is {text!r}; accepted: text with a word"
            elif translation is not None and not translation.strip():
                yield f"{where}, {text[:40]!r}, has the translation {translation!r}; accepted: text"
            yield from (
                f"{where} has {len(side):,} characters; accepted: at most {LONGEST_TERM}"
                for side in (text, translation or "")
                if len(side) > LONGEST_TERM
            )
            if any(character in "\n\r\t\0\u2028\u2029\x0b\x0c\x85" for character in text + (translation or "")):
                yield f"{where}, {text[:40]!r}, contains a line break, a tab or NUL; accepted: one line"
            if text and known.setdefault(text, translation) != translation:
                both = (known[text], translation)
                listed = " and ".join("none" if one is None else repr(one[:40]) for one in both)
                yield f"{where}, {text[:40]!r}, has the translations {listed}; accepted: one of them"


def _matches(
    index: TermIndex, sentence: str, language: str, taken: Sequence[Range], any_case: bool
) -> Iterator[TermMatch]:
    """Yield the matches of `Terms.find`: at each token, the longest permitted one.

    Whether a match is permitted depends only on its first and last token.
    """
    tokens = list(TOKEN.finditer(sentence))
    keys = token_keys(tokens)
    joined, places = "".join(keys), [0, *accumulate(map(len, keys))]  # the offset of each key in `joined`
    stops = _free_ends(tokens, sorted(taken))
    stems: dict[str, set[str]] = {}

    def match(at: int, length: int) -> TermMatch | None:
        """Return the match of `length` tokens from token `at` on: the preferred one of several terms."""
        end = at + length
        last = tokens[min(end, len(tokens)) - 1]
        head = (SEPARATOR + joined[places[at] + 1 : places[end - 1]]) if end <= stops[at] and length > 1 else ""
        initial = (head or keys[at][1]).casefold()
        if end > stops[at] or initial not in index.heads or _joined(sentence, last.end(), language):
            return None
        if last[0] not in stems:
            stems[last[0]] = set(possible_stems(last[0], language))
        head += keys[end - 1][0] if head else SEPARATOR
        forms = [(keys[end - 1][1:], False), *((stem, True) for stem in stems[last[0]])]
        ranked = (
            (-term.length, not exact, term.number, term)
            for form, inflected in forms
            if (head + form).casefold() in index.keys
            for term, exact in index.find(head + form, inflected, begins, any_case)
        )
        *_, term = min(ranked, key=lambda rank: rank[:3], default=(None,))
        if term is None:
            return None
        number = NounNumber.SINGULAR
        if term.last.casefold() != last[0].casefold():
            number = number_of_form(last[0].lower(), language)
        return TermMatch(tokens[at].start(), last.end(), term.translation, number)

    begins = bool(tokens) and not sentence[: tokens[0].start()].strip()
    at = 0
    while at < len(tokens):
        lengths = (*index.lengths.get(keys[at][1:].casefold(), ()), 1)
        may_begin = not _joined(sentence, tokens[at].start() - 1)
        length, found = next(
            ((length, term) for length in lengths if may_begin and (term := match(at, length))), (1, None)
        )
        if found:
            yield found
        begins = begins and tokens[at][0] in _QUIET
        at += length


def _free_ends(tokens: Sequence[re.Match[str]], taken: Sequence[Range]) -> list[int]:
    """Return, for each token, the index of the first token at or after it that overlaps a taken range.

    If there is no such token, the index is the number of tokens.
    """
    ends, number, last = [], 0, 0
    blocked = []
    for token in tokens:
        while number < len(taken) and taken[number][0] < token.end():
            last = max(last, taken[number][1])
            number += 1
        blocked.append(last > token.start())
    stop = len(tokens)
    for place in reversed(range(len(tokens))):
        stop = place if blocked[place] else stop
        ends.append(stop)
    return ends[::-1]


def is_beside_noun(term: TermMatch, source: str, target_language: str) -> bool:
    """Return whether a word of a source, perhaps a noun, forms a compound with a term, as `quote` in "quote number"."""
    beside = NOUN_AFTER.match(source, term.end) or _NOUN_BEFORE.search(source[: term.begin])
    return beside is not None and forms_compounds(term.translation or "", target_language)


def missing_terms(matches: Iterable[TermMatch], text: str, language: str) -> list[TermMatch]:
    """Return the matches whose translations do not occur in `text`.

    Inflected and capitalized forms of a translation count as occurrences, and so do parts of compounds for a match with
    `compound`. Occurrences that overlap count once. If a translation is required n times and occurs m < n times, n - m
    of its matches are returned: the last ones, and first those with `compound`.
    """
    wanted = sorted((match for match in matches if match.translation is not None), key=lambda match: match.compound)
    left: Counter[tuple[str, bool]] = Counter()
    taken: list[Range] = []
    terms = {match.translation or "": match.compound for match in wanted}  # whether any match may be in a compound
    for translation in sorted(terms, key=len, reverse=True):
        whole = find_translation(translation, text, language)
        parts = find_translation(translation, text, language, compounds=True) if terms[translation] else []
        for begin, end in [*whole, *(part for part in parts if part not in whole)]:
            place = bisect_left(taken, (begin, end))
            before, after = taken[place - 1 : place], taken[place : place + 1]
            if not (before and before[0][1] > begin) and not (after and after[0][0] < end):
                taken.insert(place, (begin, end))
                left[translation, (begin, end) not in whole] += 1
    missing = []
    for match in wanted:
        key = match.translation or "", match.compound
        key = key if left[key] else (key[0], False)
        left[key] -= 1
        if left[key] < 0:
            missing.append(match)
    return missing


def without_copies(terms: Iterable[tuple[str, str]], text: str) -> str:
    """Return a translation without copied names beside `terms`, as in `New Neu-York` and `Herr Herr Braun`.

    Long words of a source term of several words leave, too: `Kontostands balance`. Each term is a pair (source,
    translation).
    """
    for source, translation in terms:
        words = translation.split()
        least = LEAST_NOUN if " " in source else len(source) + 1
        copies = {word for word in source.split() if word[0].isupper() or len(word) >= least} - set(words)
        if translation in text and (copies or len(set(words)) == len(words) > 1):
            first, last = ("|".join(map(re.escape, {*copies, *edge})) for edge in (words[:1], words[-1:]))
            term = re.escape(translation)
            text = re.sub(rf"(?<!\w)(?:(?:{first}) )+(?={term})|(?<={term})(?:e?[sn])?(?: (?:{last})(?!\w))+", "", text)
    return text


def find_translation(translation: str, text: str, language: str, compounds: bool = False) -> list[Range]:
    """Return the ranges of `text` that contain a form of `translation`, also in compounds if `compounds` is true."""
    compounds = compounds and forms_compounds(translation, language)
    text, offsets = _searchable(text)
    places = (match.span() for match in _pattern(translation, language, compounds).finditer(text))
    return [(offsets[begin], offsets[end - 1] + 1) for begin, end in places]


@lru_cache(maxsize=4)
def _searchable(text: str) -> tuple[str, Sequence[int]]:
    """Return the form of a text that is searched, and the offset in `text` of each character of this form.

    A single space replaces each run of white space, and `_without_wide` is applied to the text.
    """
    if _SPACES.search(text) is None:
        return _without_wide(text), range(len(text))
    offsets = [match.start() for match in _CHARACTER.finditer(text)]
    return _without_wide(_SPACES.sub(" ", text)), offsets


def _without_wide(text: str) -> str:
    """Replace each character of a script without spaces by a private-use character, which is not a letter.

    The patterns of terms thus need no character class of these scripts, which would take milliseconds to compile.
    """
    return text if text.isascii() else _WIDE.sub(lambda match: chr(_PRIVATE + ord(match[0])), text)


@lru_cache(maxsize=_CACHED_TRANSLATIONS)
def _pattern(translation: str, language: str, compounds: bool) -> re.Pattern[str]:
    apart = (r"(?<![^\W_]-)", r"(?!-\D)") if forms_compounds(translation, language) else ("", "")  # no "Angebots-"
    before = "" if is_wide(translation[0]) or not translation[0].isalnum() else rf"(?<![^\W_]){apart[0]}"
    after = "" if is_wide(translation[-1]) or not translation[-1].isalnum() else rf"(?![^\W\d_]){apart[1]}"
    if compounds:
        before = after = ""
    elif after and not has_endings(language):
        after = rf"[^\W\d_]{{0,4}}{after}"
    forms = sorted(map(_without_wide, inflected_forms(translation, language)), key=len, reverse=True)
    small = [form[0].lower() + form[1:] for form in forms if compounds]  # a noun within a compound
    alternatives = "|".join(re.escape(way) for form in [*forms, *small] for way in case_variants(form))
    return re.compile(rf"{before}(?:{alternatives}){after}")


def _joined(sentence: str, place: int, language: str = "") -> bool:
    """Return whether the character at offset `place` joins two words into one. The English possessive 's does not."""
    if not (0 <= place < len(sentence)) or sentence[place] not in _JOINS:
        return False
    around = sentence[place - 1 : place] + sentence[place + 1 : place + 2]
    if len(around) < 2 or not around.isalnum():
        return False
    possessive = sentence[place] in "'’" and _POSSESSIVE.match(sentence, place + 1) is not None
    return not (possessive and primary_language(language) == "en")
