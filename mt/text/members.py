"""Members of lists such as `bread, butter and milk`: models lose some, or copy them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from unicodedata import normalize

from mt.languages import primary_language
from mt.text.names import is_given_name

_JOINS = {"de": ("und", "oder"), "en": ("and", "or"), "fr": ("et", "ou")}
_BETWEEN = {
    language: re.compile(rf"[,](?: (?:{'|'.join(joins)}))? |[ ](?:{'|'.join(joins)}) ")
    for language, joins in _JOINS.items()
}
_MEMBER = re.compile(r"[^\W_][\w'’-]*(?: [^\W_][\w'’-]*){0,2}")
_WORD = re.compile(r"[^\W_]+")
Known = Callable[[Sequence[str]], list[str | None]]  # returns the translations of members that are known
_NUMERALS = {
    "de": "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split(),
    "en": "one two three four five six seven eight nine ten eleven twelve".split(),
    "fr": "un deux trois quatre cinq six sept huit neuf dix onze douze".split(),
}
NUMERAL = "|".join(sorted({one for numerals in _NUMERALS.values() for one in numerals}))
_MOST_CHARACTERS = 400  # of a text that is a list
_MOST_WORDS, _MOST_TRANSLATED = 3, 6  # of a member and of its translation, with articles
_MOST_LISTS, _MOST_MEMBERS = 3, 40  # that are mended in a sentence, and of one of them
_LEAST_KNOWN = 2  # members of a list within a sentence
_LONGEST_ENDING, _LEAST_STEM = 2, 3  # letters of a word that may have another form


def split_list(text: str, languages: tuple[str, str]) -> list[str]:
    """Return the members of a text that is a list of three or more, and the marks after them; [] for another text.

    The marks are those of the second language.
    """
    joins = [_JOINS.get(primary_language(language), ()) for language in languages]
    if ", " not in text or len(text) > _MOST_CHARACTERS or not all(joins):
        return []
    inner = text.removesuffix(".")
    parts, place, marks = list[str](), 0, [*_BETWEEN[primary_language(languages[0])].finditer(inner)]
    for mark in marks:
        join = mark[0].strip(", ")
        if join and (join not in joins[0] or mark is not marks[-1]):
            return []
        parts += [inner[place : mark.start()], f" {joins[1][joins[0].index(join)]} " if join else ", "]
        place = mark.end()
    parts += [inner[place:], text[len(inner) :]]
    return parts if len(marks) > 1 and all(map(_MEMBER.fullmatch, parts[::2])) else []


def fill_list(parts: Sequence[tuple[str, bool]], translation: str, language: str) -> str | None:
    """Return a list of the known `parts`, with the members of a translation for the others; None if it has fewer.

    The parts are members and the marks after them.
    """
    written = _BETWEEN[primary_language(language)].split(translation.removesuffix("."))
    if len(written) != len(parts) // 2 and not all(is_known for _, is_known in parts):
        return None
    return "".join(part if is_known else written[at // 2] for at, (part, is_known) in enumerate(parts))


def translate_numeral(text: str, languages: tuple[str, str]) -> str | None:
    """Return the translation of a small number in words, or None."""
    source, target = (_NUMERALS.get(primary_language(language), []) for language in languages)
    return target[source.index(text.lower())] if target and text.lower() in source else None


def mend_lists(
    source: str, translation: str, languages: tuple[str, str], known: Known, kept: bool = False
) -> tuple[str, list[str]]:
    """Return a translation with the members that it lacks, and the members that are still missing.

    A list of the source is mended if at least half of its members are known, and the translation has fewer members, or
    copies one. Words of the sentence beside the first or last member belong to it only if it is known with them. If
    `kept` is true, the translation stays.
    """
    lists = (
        [*islice(_lists(source, languages[0]), _MOST_LISTS)]
        if all(primary_language(one) in _JOINS for one in languages)
        else []
    )
    lost = list[str]()
    for before, *inner, after in lists:
        first, last = _known_words(before, -1, known), _known_words(after, 1, known)
        members = [*first, *inner, *last]
        words = {one: found for one, found in zip(members, known(members), strict=True) if found}
        if len(words) < max(_LEAST_KNOWN, len(members) / 2) or len(members) > _MOST_MEMBERS:
            continue
        is_short = len({*inner}) > _longest_list(translation, languages[1])
        translation = translation if kept else _write_members(members, words, translation, is_short, languages[1])
        if is_short:
            missing = _missing(words, translation)
            ends = [*first, *last] if len(inner) > 1 else []
            lost += [one for one in inner if one in missing] or [one for one in ends if one in missing]
    return translation, lost


def _write_members(
    members: Sequence[str], known: Mapping[str, str], translation: str, is_short: bool, language: str
) -> str:
    """Write known members in place of copies, and, into a short list, those whose neighbours stand side by side.

    So `Berlin, Paris` lacks Rome.
    """
    for one in _missing(known, translation):
        places = [*re.finditer(rf"(?i)(?<!\w){re.escape(one)}(?!\w)", translation)]
        if len(places) == 1 and not is_given_name(one) and one not in _JOINS[primary_language(language)]:
            translation = translation[: places[0].start()] + known[one] + translation[places[0].end() :]
    missing, marks = _missing(known, translation) if is_short else [], _BETWEEN[primary_language(language)].pattern
    for is_lost, group in groupby(range(len(members)), lambda at: members[at] in missing):
        lost = [*group]
        before, after = lost[0] - 1, lost[-1] + 1
        if not is_lost or before < 0 or after == len(members) or not {members[before], members[after]} <= known.keys():
            continue
        sides = [re.escape(known[members[at]]) for at in (before, after)]
        places = [*re.finditer(rf"(?i)(?<!\w){sides[0]}(?=(?:{marks}){sides[1]}(?!\w))", translation)]
        if len(places) == 1:
            words = "".join(f", {known[members[at]]}" for at in lost)
            translation = translation[: places[0].end()] + words + translation[places[0].end() :]
    return translation


def _missing(words: Mapping[str, str], translation: str) -> list[str]:
    """Return the members of which a translation does not have the translated words."""
    written = [_plain(word) for word in _WORD.findall(translation)]
    return [member for member, found in words.items() if not _is_written(found, written)]


def _longest_list(translation: str, language: str) -> int:
    """Return the number of different members between the first and the last one of the longest list."""
    return max((len({*one[1:-1]}) for one in _lists(translation, language, is_source=False)), default=0)


def _is_written(text: str, written: list[str]) -> bool:
    stems = [_plain(word) for word in _WORD.findall(text)]
    longest = max(stems, key=len, default="")
    stem = longest[: max(_LEAST_STEM, len(longest) - _LONGEST_ENDING)]
    return any(word.startswith(stem) for word in written)


def _plain(word: str) -> str:
    return "".join(filter(str.isalnum, normalize("NFKD", word.casefold())))


def _lists(text: str, language: str, is_source: bool = True) -> Iterator[list[str]]:
    """Yield the lists of a text: the text before the first mark, the members, and the text after the last mark.

    A list of a source has a conjunction before its last member. Members of a translation may have articles.
    """
    found, place, most_words = list[str](), 0, _MOST_WORDS if is_source else _MOST_TRANSLATED
    for mark in _BETWEEN[primary_language(language)].finditer(text) if ", " in text else ():
        part, place = text[place : mark.start()], mark.end()
        if found and (part.count(" ") >= most_words or not _MEMBER.match(part)):
            if not is_source:
                yield [*found, part]
            found = []
        found.append(part)
        if mark[0].strip(", "):
            if len(found) > 1:
                yield [*found, text[place : place + _MOST_CHARACTERS]]
            found = []
    if len(found) > 1 and not is_source:
        yield [*found, text[place : place + _MOST_CHARACTERS]]


def _known_words(text: str, side: int, known: Known) -> list[str]:
    """Return the longest known phrase of a few words at the end of a text, or, with a `side` of 1, at its begin."""
    words = text.split(" ")
    for count in range(min(_MOST_WORDS, len(words)), 0, -1):
        phrase = " ".join(words[:count] if side > 0 else words[-count:]).rstrip(".!?;:")
        if _MEMBER.fullmatch(phrase) and any(known([phrase])):
            return [phrase]
    return []
