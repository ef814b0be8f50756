"""Titles of people, which small models copy or confuse: `Mr Smith` stayed in German, or became `Frau Smith`."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain

from mt.languages import primary_language
from mt.text import names
from mt.text.alignment import Range
from mt.text.word_tables import read_tables

_TABLES = read_tables("titles.toml")
_TITLES: dict[str, list[list[str]]] = _TABLES["titles"]
_HINTS = {  # for fast tests: all titles of a language contain one
    language: [one for one in chain(*both) if not any(other != one and one.startswith(other) for other in chain(*both))]
    for language, both in _TITLES.items()
}
_WORDS = {key: frozenset(words.split()) for key, words in _TABLES["words"].items()}
_ENGLISH, _MISTAKES, _CHARACTERS = (_WORDS[key] for key in ("english", "mistakes", "characters"))
_AND = "(?:and|et|und)"
_DEGREES = r"(?:(?:(?:Dr|Prof)\b\.?|(?!M)[A-Z]\.) )*"
_PATTERNS = _TABLES["patterns"]
_NAME = _PATTERNS["name"].replace("{placeholder}", _PATTERNS["placeholder"])
_SUBJECT, _OBJECT, _VERB, _CLAUSE, _WORD_BEFORE = (
    re.compile(_PATTERNS[key]) for key in ("subject", "object", "verb", "clause", "word_before")
)
_LAST_PLACEHOLDER = re.compile(rf"(?<= )(?:{_PATTERNS['placeholder']})\Z")
_ROLE, _GREETING = (re.compile(rf"(?:{'|'.join(_TABLES['words'][key].split())})") for key in ("roles", "greetings"))
_DEGREE_WORD = rf"(?i:({'|'.join(sorted(_TABLES['degrees'], key=len, reverse=True))}))\b\.?"
_DEGREE = re.compile(rf"(?<!\w){_DEGREE_WORD}(?= )")
_DEGREES_AND_NAME = re.compile(rf"(?<= )(?:{_DEGREE_WORD} )+(?:{_NAME})\Z")
_TITLE_OF_DEGREE = re.compile(r"\b(?:M[rs]s?\.?|Monsieur|Madame|M\.|Mme) (?=(?:Dr|[Pp]rof))")
POLITE = re.compile(r"(?:Sie|Ihnen|Ihre?[mnrs]?)\b")  # the German address, or she, they, her and their
_LETTER = re.compile(r"\ADear (?=M(?:r|s|rs)\b)")
_BESIDE = 200  # number of characters beside a title that are examined
OFFICE = re.compile(_PATTERNS["office"])  # before a name
_WIFE = re.compile(rf"(?i:(?:{'|'.join(_WORDS['of_wives'])})(?:e?r?e[mnrs]?)?|die|de[rnms]|zur)")


def lost_titled_names(source: str, translation: str, language: str) -> list[Range]:
    """Return the ranges of the names after titles in a source that its translation lacks; `Präsident` is no name.

    Degrees, and offices before names that are also other words, are titles here.
    """
    named = (match for match in OFFICE.finditer(source) if not re.search(rf"\b{match['name']}\b", translation))
    return [match.span("name") for match in named] + [
        match.span("name")
        for match in titled_names(source, language)
        if match["name"] not in translation and not _ROLE.match(match["name"])
    ]


def write_titles(source: str, translation: str, languages: tuple[str, str]) -> str:
    """Return a translation in which the names after titles have the titles of the target language."""
    language, target = map(primary_language, languages)
    place = 0
    for match in titled_names(source, language) if target in _TITLES else ():
        title = rf"(?<![\w.-])(?:(?P<first>[\w.]+) {_AND} )?(?!(?:Dr|Prof)\b)(?P<title>[\w.]+)[ -]+"
        name = rf"(?P<name>(?<!\w){_DEGREES}{re.escape(match['name'])}(?:['’]?s)?(?!\w))"
        found = re.compile(f"(?:{title})?{name}").search(translation, place)
        if not found or match["name"] in _CHARACTERS:
            continue
        begin, new = found.start("name"), ""
        accepted = _TITLES[target][match["woman"] is not None]
        if found["title"] in accepted or (target == "en" and found["title"] in _ENGLISH):
            begin, new = found.start("title"), found["title"] + " "
        elif _is_title(found["title"]):
            begin, new = found.start("title"), _written(match, target) + " "
        elif _GREETING.match(_clause(translation, begin)) or match[0] == source:
            new = _written(match, target) + " "
        if match["first"] and found["first"] and _is_title(found["first"]):
            first = _TITLES[target][match["first"] in _TITLES[language][1]]
            if found["first"] not in first:
                new = translation[found.start("first") + len(found["first"]) : begin] + new
                begin, new = found.start("first"), f"{first[0]}{new}"
        translation = f"{translation[:begin]}{new}{translation[found.start('name') :]}"
        place = begin + len(new) + len(match["name"])
    for wrong, right in _beside(target) if _has_title(translation, target) else ():
        translation = wrong.sub(right, translation)
    is_letter = target != "en" or begins_greeting(source)
    return translation if is_letter else _LETTER.sub("", translation)  # Dear Mr Blanc is sick


def last_name(text: str, language: str) -> str:
    """Return the name after a title, or the placeholder, that ends a text such as `Dear Mr Lee`; "" without one."""
    if not begins_greeting(text):
        return ""
    if named := _DEGREES_AND_NAME.search(text) or _LAST_PLACEHOLDER.search(text):
        return named[0]
    for match in titled_names(text, language):
        name = text[match.end("man" if match["man"] else "woman") + 1 :]
        if all(word[:1].isupper() for word in name.split()) and not _ROLE.match(name):
            return name
    word = text.rpartition(" ")[2]
    return word if names.is_given_name(word) else ""


def translate_pair(text: str, languages: tuple[str, str]) -> str | None:
    """Return the translation of a text such as `he/she` and `Mr. / Mrs.`; None for another text."""
    if "/" not in text:
        return None
    places = [["en", "de", "fr"].index(one) for one in map(primary_language, languages) if one in ("en", "de", "fr")]
    key = text.replace(" / ", "/").replace(".", "").casefold()
    for row in (row.split(", ") for row in _TABLES["pairs"]["rows"] if len(places) == len(languages)):
        if key == row[places[0]].replace(".", "").casefold():
            pair = str(row[places[1]]).replace("/", " / " if " / " in text else "/")
            return pair.upper() if text.isupper() else pair[0].upper() + pair[1:] if text[0].isupper() else pair
    return None


def write_degrees(phrase: str, language: str) -> str:
    """Return a salutation with the degrees of a language: `Dear Dr. Lee` for `Dear Mr Doktor Lee`."""
    number = ("de", "en", "fr").index(primary_language(language)) if _DEGREE.search(phrase) else 0
    phrase = _DEGREE.sub(lambda match: _TABLES["degrees"][match[1].lower()][number], phrase)
    return _TITLE_OF_DEGREE.sub("", phrase) if number else phrase


def is_greeting(word: str) -> bool:
    return _GREETING.fullmatch(word.lower()) is not None


def begins_greeting(text: str) -> bool:
    return _GREETING.match(text.lower()) is not None


def is_salutation(text: str, rest: str, language: str) -> bool:
    """Return whether a text before a comma is a salutation such as `Dear Mr {name}` or, before another, `liebe Oma`."""
    if not is_greeting(text.partition(" ")[0]):
        return False
    return " " in text or is_greeting(rest.partition(" ")[0]) or bool(last_name(text, language))


def begins_with_address(text: str, language: str) -> bool:
    """Return whether a text begins with a German address: at the beginning of a sentence, `Ihr` could be her."""
    return primary_language(language) == "de" and POLITE.match(text) is not None


def write_salutation(translation: str, salutation: str, share: float) -> str:
    """Return a translation with this salutation before a comma: the one nearest to this `share` of the text."""
    commas = [place for place, sign in enumerate(translation) if sign == ","]
    place = min(commas, key=lambda place: abs(place - share * len(translation)), default=0)
    return salutation + translation[place:] if place else translation


@cache
def _pattern(language: str) -> re.Pattern[str]:
    """Return a pattern of a title and a name: groups `man` or `woman` and `name`, and `first` of `Mr and Mrs Lee`."""
    men, women = ("|".join(map(re.escape, sorted(titles, key=len, reverse=True))) for titles in _TITLES[language])
    first = rf"(?:(?P<first>{men}|{women}) {_AND} )?"
    ends = "(?=s [A-ZÄÖÜ])|" * (language == "de") + r"(?![^\W\d_])"  # Frau Kleins Auto
    return re.compile(rf"(?<![\w.-]){first}(?:(?P<man>{men})|(?P<woman>{women})) {_DEGREES}(?P<name>{_NAME})(?:{ends})")


@cache
def _beside(language: str) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(wrong), right) for wrong, right in _TABLES["beside"].get(language, {}).items()]


def _has_title(text: str, language: str) -> bool:  # a fast test
    return any(map(text.__contains__, _HINTS.get(language, ())))


def titled_names(text: str, language: str) -> Iterator[re.Match[str]]:
    """Yield the matches of `_pattern`, without wives and initials: `seine Frau Anna`, `Richard M. Stallman`."""
    language = primary_language(language)
    if not _has_title(text, language):
        return
    for match in _pattern(language).finditer(text):
        word = "".join(_WORD_BEFORE.findall(text[max(0, match.start() - _BESIDE) : match.start()]))
        initial = word[:1].isupper() and word[1:2] not in "'’"  # but not in C'est M. Dupont
        if match[0].startswith("M. ") and initial and not _GREETING.match(word.lower()):
            continue
        if not (match[0].startswith(("Frau ", "Herr")) and _WIFE.fullmatch(word)):
            yield match


def _written(match: re.Match[str], target: str) -> str:
    """Return the title of a match of `_pattern` for the target: `Herrn` of an object, `Monsieur` in a letter."""
    accepted = _TITLES[target][match["woman"] is not None]
    before = _clause(match.string, match.start())
    if _GREETING.match(before):
        return accepted[target == "fr"]
    is_subject = _SUBJECT.search(before) or _VERB.match(match.string, match.end())
    is_object = _OBJECT.search(before) or (len(before.split()) > 1 and not is_subject)
    return accepted[-1 if target == "de" and is_object else 0]


def _clause(text: str, end: int) -> str:  # its begin, in small letters
    return _CLAUSE.split(text[max(0, end - _BESIDE) : end])[-1].lower()


def _is_title(word: str | None) -> bool:
    """Return whether a word is a title of any language, or what models write in place of one."""
    known = (title.rstrip(".") for titles in _TITLES.values() for both in titles for title in both)
    return word is not None and (word.lower().rstrip(".") in _MISTAKES or word.rstrip(".") in known)
