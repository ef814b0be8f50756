"""Names of people, which small models translate as words: `Hans Müller` became `Hans murder`."""

import re
from functools import lru_cache

from mt.text.alignment import Range
from mt.text.word_tables import read_tables, read_words

_WORD = r"(?:[A-ZÀ-ÖØ-Þ]['’])?[A-ZÀ-ÖØ-Þ]\w+(?:-[A-ZÀ-ÖØ-Þ]\w+)?"
_SURNAME = rf"(?:[A-Z]\. ){{0,2}}(?P<surname>{_WORD})"
_FIRST = re.compile(rf"(?<![\w-])(?P<given>{_WORD})(?= {_SURNAME})")
_NEXT_CAPITAL = re.compile(r" (?:[A-ZÀ-ÖØ-Þ]|e\.)")  # a fast test: of a surname or a legal form, as in Müller e. K.
_NO_COMPANY = (  # words that begin a sentence: Our LLC
    r"(?:D(?:as|em|en|er|es|ie)|(?:[DMS]?[Ee]in|Kein|Ihr|Unser|Eu[er]+|Dies|Jed|Welch)(?:e[mnrs]?)?|Als|Bei|Eine[mnrs]?|Zu[mr]"
    r"|An?|Any|As|Each|Every|For|Her|His|If|Its?|My|No|Our|That|The|Their|This|Your"
    r"|Aucune|Cette|Chaque|L[ae]|Les|Leur|[MST](?:a|on)|[NV]otre|Pour|Une?) "
)
_COMPANY = re.compile(  # Müller GmbH, Weiß & Sohn OHG, Example Inc., but not Example Ltd. All
    rf"(?<![\w-])(?!{_NO_COMPANY})((?:{_WORD} & )?{_WORD}) "
    r"(?:(?:GmbH|AG|KG|OHG|UG|e\. ?K\.|LLC|SARL|SAS)(?!\w)|(?:Inc|Ltd)\b(?!\. [A-Z])\.?)"
)
_LEGAL_FORMS = (" GmbH", " AG", " KG", " OHG", " UG", " e.", " Inc", " Ltd", " LLC", " SA")  # a fast test
_CAPITALISED = re.compile(r"[A-ZÀ-ÖØ-Þ][a-zß-ÿ]+")
_BEFORE, _AFTER, _BEFORE_TERM, _AFTER_TERM = map(re.compile, read_tables("patterns.toml")["names"].values())
_WITH_APOSTROPHE = re.compile(r"\b[A-Z]'[A-Z]\w+")
_NEXT_NAME = re.compile(f" ({_WORD})")
_BESIDE = 20  # number of characters beside a name that are examined
_WORDS = read_words("names.toml")
_GIVEN, _CERTAIN = _WORDS["given"], _WORDS["given"] - _WORDS["doubtful"]
_FORMS = {name: line.split() for line in read_tables("names.toml")["forms"].splitlines() for name in line.split()}


def is_given_name(text: str) -> bool:
    return text in _GIVEN


def is_woman(name: str) -> bool | None:
    """Return whether a given name is a woman's; None if it is none, or that of men and women."""
    return None if name not in _GIVEN or name in _WORDS["either"] else name in _WORDS["women"]


def is_term(text: str, begin: int, end: int) -> bool:
    """Return whether a word with a capital is a term of a contract, as in `The Buyer shall pay`: no `Buyer Guide`."""
    return bool(_AFTER_TERM.match(text, end) and _BEFORE_TERM.search(text, max(0, begin - _BESIDE), begin))


def lost_names(source: str, translation: str) -> list[Range]:
    """Return the ranges of the names in a source that its translation lacks: given names, perhaps with known surnames.

    Other words with a capital after a given name may be no surnames: `Heute hat Anna Geburtstag`, `Louis XIV`.
    """
    lost = list[Range]()
    if _NEXT_CAPITAL.search(source):
        companies = _COMPANY.finditer(source) if any(map(source.__contains__, _LEGAL_FORMS)) else ()
        lost += [match.span() for match in companies if match[1] not in translation]
        lost += [
            (match.start(), match.end("surname"))
            for match in _FIRST.finditer(source)
            if _is_name(match["given"], match["surname"])
            and not all(re.search(rf"(?<!\w){name}(?=s?(?!\w))", translation) for name in match.groups())
        ]
    covered = {place for one in lost for place in range(*one)}
    for places, forms in _given_names(source, translation):
        if not forms:
            lost += [place.span() for place in places if place.start() not in covered]
    return lost


def write_names(source: str, translation: str) -> str:
    """Return a translation with the given names of its source in place of others, such as `Johannes` for `John`."""
    for name in _WITH_APOSTROPHE.findall(source) if "'" in source else ():
        translation = translation.replace(f"{name[:2]} {name[2:]}", name)  # O' Neill
    if source.isupper():
        source = source.title().replace(" ", ", ")  # without surnames
    for places, forms in _given_names(source, translation):
        found = [form for form in forms if not re.search(rf"\b{form}\b", source)]
        surnames = filter(None, (_NEXT_NAME.match(source, place.end()) for place in places))
        if len(found) == 1 and all(surname[1] in translation for surname in surnames):  # not Christopher Columbus
            translation = re.sub(rf"(?<![\w-]){found[0]}(?=s?(?![\w-]))", places[0][0], translation)
    return translation


def _given_names(source: str, translation: str) -> list[tuple[list[re.Match[str]], list[str]]]:
    """Return the given names of a source that its translation lacks, without those that languages translate.

    Each is a list of its places in the source and one of its other forms in the translation. A name without one stands
    for the only other name that the translation invents: `Elke` for `Alice`.
    """
    found = list[tuple[list[re.Match[str]], list[str]]]()
    for name in _certain_names_in(source):
        if name not in translation:
            places = [*re.finditer(rf"(?<![\w.@'’/-]){name}(?![\w@/-]|\.\w)", source)]
            if places and not any(map(_is_translated, places)):
                found.append((places, _other_forms(name, translation)))
    lost = [places for places, forms in found if not forms] if found else []
    if len(lost) != 1:
        return found
    new = _certain_names_in(translation).difference(_CAPITALISED.findall(source), *(forms for _, forms in found))
    if len(new) == 1 and is_woman(lost[0][0][0]) == is_woman(name := next(iter(new))):
        found = [(places, forms or [name]) for places, forms in found]
    return found


@lru_cache(maxsize=1024)
def _certain_names_in(source: str) -> frozenset[str]:
    return _CERTAIN.intersection(_CAPITALISED.findall(source))


def _is_translated(name: re.Match[str]) -> bool:
    begin, end = name.span()
    return bool(_BEFORE.search(name.string, max(0, begin - _BESIDE), begin) or _AFTER.match(name.string, end))


def _other_forms(name: str, translation: str) -> list[str]:
    forms = _FORMS.get(name, ())
    return [form for form in forms if form != name and re.search(rf"(?<![\w-]){form}(?=s?(?![\w-]))", translation)]


def _is_name(given: str, surname: str) -> bool:
    return given.partition("-")[0] in _GIVEN and _WORDS["surnames"].issuperset(surname.split("-"))
