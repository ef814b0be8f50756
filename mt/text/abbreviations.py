"""Words in place of abbreviations that models misread, in the sentence that a model reads."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache

from mt.languages import primary_language
from mt.text.alignment import Range
from mt.text.normalise import NormalisedText
from mt.text.protect import SpanKind, find_spans
from mt.text.word_tables import filled, read_tables

_LONGEST = 16  # characters of an abbreviation and the spaces after it
_TABLES = read_tables("patterns.toml")
_SPACE = _TABLES["beside_abbreviations"]["space"]
_PLACES = {
    place: filled(pattern, _TABLES["beside_abbreviations"]) for place, pattern in _TABLES["abbreviation_places"].items()
}
_PREPOSITIONS = ("before_word", "before_long_word", "before_name")
_DOUBTFUL = ("before_code", "before_date", "before_french_date", "in_reference")
_PREDICATE, _NEW_SENTENCE, _WORD = map(re.compile, _TABLES["abbreviations"].values())
_AFTER_NOUN = re.compile(rf"{_NEW_SENTENCE.pattern}|(?:Der|Die|Dann|Danach)\b")  # lt. Der Spiegel


def expand_abbreviations(text: NormalisedText, language: str, kept: Sequence[Range] = ()) -> NormalisedText:
    """Return a sentence in a language with words in place of abbreviations, except in the ranges `kept` of `text.text`.

    Addresses and code stay. An abbreviation in small letters has a capital only at the beginning. A full stop that also
    ends the sentence stays.
    """
    known = _abbreviations(primary_language(language))
    edits = list(known.edits(text.text)) if known else []
    if not edits:
        return text
    spans = [span for span in find_spans(text.text, kept) if span.kind is not SpanKind.NUMBER]
    return text.edit(
        (begin, end, word)
        for begin, end, word in edits
        if all(last <= begin or end <= first for first, last in kept)
        and all(span.end <= begin or end <= span.begin or begin <= span.begin < span.end <= end for span in spans)
    )


def ends_with_abbreviation(text: str, follows: str, language: str) -> bool:
    """Return whether a text ends with an abbreviation after which its sentence goes on with the text `follows`."""
    known = _abbreviations(primary_language(language))
    match = known.last.search(text, max(0, len(text) - _LONGEST)) if known else None
    if not known or not match:
        return False
    if follows[:1].islower() or follows[:1].isdigit():  # C'est un jeu. 5 joueurs participent.
        return _key(match[1]) not in known.doubtful or bool(known.pattern.match(text + follows, match.start(1)))
    goes_on = _key(match[1]).lower() in known.prepositions
    return goes_on and not (_PREDICATE.search(text, max(0, len(text) - 3 * _LONGEST)) or _NEW_SENTENCE.match(follows))


def ends_sentence(text: str) -> bool:
    """Return whether the final stop of an abbreviation also ends a sentence. `Today, 9 a.m.` is none."""
    return len(_WORD.findall(text)) > 1 or _NEW_SENTENCE.match(text) is not None


@dataclass(frozen=True)
class _Abbreviations:
    """Abbreviations of a language. `words` has the words for each one, without spaces in the key."""

    words: Mapping[str, str]
    pattern: re.Pattern[str]
    last: re.Pattern[str]  # one with a full stop at the end of a text
    undotted: re.Pattern[str]  # those without a full stop
    prepositions: Set[str]  # those after which a sentence goes on
    doubtful: Set[str]  # those that may be words, for which what follows decides
    stops: Set[str]  # those whose full stop stays before a capital

    def edits(self, text: str) -> Iterator[tuple[int, int, str]]:
        is_plain = text.find(".") in (-1, len(text) - 1) and not self.undotted.search(text)
        if is_plain and not self.last.search(text, max(0, len(text) - _LONGEST)):
            return
        for match in self.pattern.finditer(text):
            key, rest = _key(match[0]), text[match.end() :]
            word = self.words.get(key)
            if word is None:  # a capital for a small letter
                if any(map(str.isalnum, text[: match.start()])):
                    continue
                word = self.words[key[0].lower() + key[1:]]
                word = word[0].upper() + word[1:]
            begins = _NEW_SENTENCE if key.lower() in self.prepositions else _AFTER_NOUN
            is_last = (
                not rest.strip(" \"'”“»")
                or (key in self.stops and rest[1:3].istitle() and not rest[2:3].isdigit())
                or begins.match(rest, 1)
            )
            if key[-1] == "." != word[-1] and is_last and (rest[1:] or ends_sentence(text)):
                word += "."
            yield *match.span(), word


@cache
def _abbreviations(language: str) -> _Abbreviations | None:
    tables = read_tables("abbreviations.toml").get(language)
    if not tables:
        return None
    contractions = tables.get("contraction", {}).items()  # dont, Dont and DONT, within a sentence, too
    forms = {form(short): form(word) for form in (str, str.capitalize, str.upper) for short, word in contractions}
    tables = {**tables, "contraction": forms}
    names = [name for table in tables.values() for name in table]
    patterns = (
        _PLACES[place].replace("{}", "(?:" + "|".join(map(_spelling, sorted(table, key=len, reverse=True))) + ")")
        for place, table in tables.items()
    )
    prepositions = {_key(name).lower() for place in _PREPOSITIONS for name in tables.get(place, ())}
    no_stops = (*(tables["after_number"] if language == "de" else ()), *tables.get("before_date", ()))  # 3 Mio. Euro
    return _Abbreviations(
        words={_key(name): word for table in tables.values() for name, word in table.items()},
        pattern=re.compile(rf"(?<![\w./@{{$%#–-])(?:{'|'.join(patterns)})"),
        last=re.compile(rf"(?<![\w.-])({'|'.join(_spelling(name) for name in names if name[-1] == '.')})\s*\Z"),
        undotted=re.compile(_by_first_letter(name for name in names if "." not in name)),
        prepositions=prepositions,
        doubtful={_key(name) for place in _DOUBTFUL for name in tables.get(place, ())},
        stops={_key(name) for name in names if _key(name).lower() not in prepositions} - set(map(_key, no_stops)),
    )


def _by_first_letter(names: Iterable[str]) -> str:
    """Return a pattern of abbreviations, grouped by their first letters: `re` finds these eight times faster."""
    groups = defaultdict[str, list[str]](list)
    for spelling in map(_spelling, names):
        letters, rest = (spelling[1:3], spelling[4:]) if spelling[0] == "[" else (spelling[0], spelling[1:])
        for letter in letters:
            groups[letter].append(rest)
    return "|".join(rf"{letter}(?<!\w.)(?:{'|'.join(rests)})" for letter, rests in groups.items())


def _spelling(abbreviation: str) -> str:
    first, rest = abbreviation[0], re.escape(abbreviation[1:]).replace("\\ ", f"{_SPACE}?")
    end = r"(?![\w/])" if not abbreviation.endswith(" ") else ""
    return f"[{first}{first.upper()}]{rest}{end}" if first.islower() and "/" not in rest else f"{first}{rest}{end}"


def _key(abbreviation: str) -> str:
    return re.sub(_SPACE, "", abbreviation)
