"""Language tags and translation directions.

A tag is a BCP 47 tag in canonical letter case, such as `de`, `pt-BR`, `zh-Hant` or `es-419`: a language of 2 or 3
letters, then optionally a script, a region and variants. `zt` and `pb`, LibreTranslate's codes for `zh-Hant` and
`pt-BR`, are not replaced by these tags, because tokenizers have tokens named `zt` and `pb`.

A direction is written as two tags joined by a hyphen. Letter case separates them: a subtag of 2 or 3 lower-case
letters begins a tag, so `en-pt-BR` goes from `en` to `pt-BR`.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, product
from typing import Any, Self

import langcodes
from langcodes.data_dicts import LIKELY_SUBTAGS
from pydantic_core import CoreSchema, core_schema

from mt.errors import LanguageError, problems

_TAG = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-[A-Z]{2}|-\d{3})?(-[a-z\d]{5,8}|-\d[a-z\d]{3})*")
_LONGEST_DIRECTION = 80  # maximum number of characters of a direction, and of a tag
_LIBRETRANSLATE = {"zt": "zh-Hant", "pb": "pt-BR"}
_STANDARD = {
    "als": "sq", "arb": "ar", "ayr": "ay", "azj": "az", "cmn": "zh", "dik": "din",
    "ekk": "et", "fuv": "ff", "gaz": "om", "khk": "mn", "kmr": "ku", "knc": "kr",
    "lvs": "lv", "npi": "ne", "ns": "nso", "ory": "or", "pbt": "ps", "pes": "fa",
    "plt": "mg", "pob": "pt-BR", "prs": "fa-AF", "quy": "qu", "swh": "sw", "tgl": "tl",
    "tl": "tl", "twi": "tw", "uzn": "uz", "ydd": "yi", "zsm": "ms",
}  # fmt: skip
"""Codes of translation models, each with its tag. Most codes are members of the macrolanguage that the tag names."""

_ALIASES = ({"pb", "pt-BR"}, {"zh", "zh-Hans", "zh-CN"}, {"zt", "zh-Hant", "zh-TW", "zh-HK"})
"""Sets of codes (LibreTranslate's code and BCP 47 tags) that name the same language."""


def parse_tag(text: str) -> str:
    """Return a language tag in canonical letter case: `pt-BR` for `pt-br`, `PT_BR` and `pt-BR`.

    Aliases are not resolved: `iw` does not become `he`.

    Raises:
        LanguageError: The text does not have the form of a tag.
    """
    language, *rest = text[: _LONGEST_DIRECTION + 1].replace("_", "-").split("-")
    subtags = (s.title() if len(s) == 4 and s.isalpha() else s.upper() if len(s) == 2 else s.lower() for s in rest)
    tag = "-".join([language.lower(), *subtags])
    if len(text) > _LONGEST_DIRECTION or not _TAG.fullmatch(tag):
        raise LanguageError(
            f"{text[:_LONGEST_DIRECTION]!r} is not a language tag; accepted: BCP 47, such as 'de', 'pt-BR' or 'zh-Hant'"
        )
    return tag


@lru_cache(maxsize=1024)  # it does not keep codes that are refused, which may be long
def standard_tag(code: str) -> str:
    """Return the tag for a language code that a translation model uses: `de` for `deu_Latn`, `zh-Hant` for `zho_Hant`.

    A script is left out if the language implies it, or if the language has no known script.

    Raises:
        LanguageError: The code does not have the form of a tag.
    """
    language, *rest = parse_tag(code).replace("-Hang", "-Kore").split("-")
    known = _STANDARD.get(language) or langcodes.standardize_tag(language)
    implied = likely_script(known)
    return "-".join([known, *(subtag for subtag in rest if subtag != implied and (implied or len(subtag) != 4))])


def full_tag(code: str) -> str:
    """Return `zh-Hant` for LibreTranslate's code `zt` and `pt-BR` for `pb`. Other codes are returned unchanged."""
    return _LIBRETRANSLATE.get(code, code)


@lru_cache(maxsize=1024)
def primary_language(tag: str) -> str:
    """Return the language of a tag, without script and region: `pt` for `pt-BR`, `zh` for `zt`."""
    return full_tag(tag).partition("-")[0]


@lru_cache(maxsize=1024)
def likely_script(tag: str) -> str:
    """Return the ISO 15924 code of the script that a tag states or implies: `Hant` for `zh-TW`. "" means unknown."""
    language = langcodes.Language.get(full_tag(tag))
    return language.script or (language.maximize().script or "" if language.language in LIKELY_SUBTAGS else "")


def regional_tag(code: str) -> str:
    """Return a language with its most likely region, as Office writes languages: `de-DE` for `de`, `zh-TW` for `zt`."""
    language = langcodes.Language.get(full_tag(code))
    region = language.territory or language.maximize().territory
    return f"{language.language}-{region}" if region else full_tag(code)


def language_and_script(code: str) -> tuple[str, str]:
    """Return (language, script) of a language code, to compare languages without regions: `("pt", "Latn")` for `pt-BR`.

    Return (`code`, "") if the code is unknown.
    """
    try:
        tag = standard_tag(code)
    except LanguageError:
        return code, ""
    return primary_language(tag), likely_script(tag)


def three_letter_code(tag: str) -> str:
    """Return the ISO 639-3 code of the language of a tag: `por` for `pt-BR`.

    An unknown language is returned unchanged.
    """
    language = primary_language(tag)
    try:
        return langcodes.Language.get(language, normalize=False).to_alpha3()
    except LookupError:
        return language


def has_two_letter_code(code: str) -> bool:
    """Return whether ISO 639-1 has a two-letter code for a language: True for `de` and `deu`, False for `xx`."""
    language = langcodes.Language.get(code).language or ""
    return len(language) == 2 and three_letter_code(language) != language


def language_name(tag: str) -> str:
    """Return the English name of a language tag, such as `Portuguese (Brazil)`.

    If the language is unknown, return `tag`.
    """
    language = _known_language(tag)
    return language.display_name() if language else tag


def native_name(tag: str) -> str:
    """Return the name of a language tag in the language itself, such as `português (Brasil)`.

    If that name is not known, return the English one; if the language is unknown, return `tag`.
    """
    language = _known_language(tag)
    return language.autonym() if language else tag


def language_named(text: str) -> str | None:
    """Return the primary language of a tag, or of a name in any language: `de` for `DE`, `German` and `allemand`."""
    try:
        tag = standard_tag(text)
    except LanguageError:
        tag = ""
    try:
        return primary_language(tag) if tag and _known_language(tag) else langcodes.find(text).language
    except LookupError:
        return None


def _known_language(tag: str) -> langcodes.Language | None:
    language = langcodes.Language.get(full_tag(tag))
    return language if language.is_valid() else None


def closest_language(code: str, languages: Sequence[str]) -> str | None:
    """Return the tag in `languages` that is closest to `code`; None if no tag is close enough.

    The closest tag is `code` itself or another spelling of it (see `spellings`). Any other tag must have the primary
    language of `code`. If `code` also names a script or a region, such a tag must have the same script and no region.
    Examples: `PT-BR` matches `pt-BR`, `pb` and `pt`, in this order. `EN-GB` matches `en`. `ZH` matches `zh-Hant` if
    `languages` has no other Chinese. `deu-AT` matches `de`.
    """
    if code in languages:
        return code
    for tag in spellings(code):
        if tag in languages:
            return tag
    try:
        wanted = standard_tag(code)
    except LanguageError:
        return None
    is_bare = re.search("[-_]", code) is None
    primary = _merge_norwegian(wanted)
    related = [
        tag
        for tag in languages
        if _merge_norwegian(tag) == primary
        and (is_bare or (likely_script(tag) == likely_script(wanted) and not _has_region(tag)))
    ]
    return min(related, key=lambda tag: (tag != primary_language(tag), tag), default=None)


def spellings(code: str) -> list[str]:
    """Return the code, followed by the other codes of the same language."""
    try:
        tag = parse_tag(code.strip())
    except LanguageError:
        return [code]
    return [code, tag, standard_tag(tag), *sorted(alias for group in _ALIASES if tag in group for alias in group)]


def _has_region(tag: str) -> bool:
    return tag == "pb" or any(len(subtag) in (2, 3) for subtag in tag.split("-")[1:])


def _merge_norwegian(tag: str) -> str:
    """Return the primary language of a tag, but `nb` instead of `no`, because clients mean Bokmål by `no`."""
    language = primary_language(tag)
    return "nb" if language == "no" else language


@dataclass(frozen=True, order=True, slots=True)
class Direction:
    """A source and a target language, as canonical tags. In pydantic models, a direction is written as a string."""

    source: str
    target: str

    @classmethod
    def parse(cls, text: object) -> Self:
        """Return the direction that a string such as `en-pt-BR` states, in the format of `str(direction)`.

        Raises:
            LanguageError: The string is not two different canonical tags. The message suggests similar directions.
        """
        if isinstance(text, cls):
            return text
        readings = [cls(*pair) for pair in _split(text)] if isinstance(text, str) else []
        for direction in readings:
            if str(direction) == text:
                return direction
        hint = f"; did you mean {' or '.join(map(str, readings))}?" if readings else ""
        shown = repr(str(text)[:_LONGEST_DIRECTION])
        raise LanguageError(f"{shown} is not a direction; accepted: two languages, such as en-de or en-pt-BR{hint}")

    @property
    def languages(self) -> tuple[str, str]:
        """The source and the target language."""
        return self.source, self.target

    @property
    def reversed(self) -> "Direction":
        return Direction(self.target, self.source)

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        return core_schema.json_or_python_schema(
            core_schema.no_info_after_validator_function(cls.parse, core_schema.str_schema()),
            core_schema.no_info_plain_validator_function(cls.parse),
            serialization=core_schema.to_string_ser_schema(),
        )


@dataclass(frozen=True, slots=True)
class DirectionSet(Collection[Direction]):
    """Directions in a fixed order: `pairs` or, if `pairs` is None, each source with each target that differs from it.

    Pydantic models write a set in the form that `to_config` returns.
    """

    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    pairs: tuple[Direction, ...] | None = None

    @classmethod
    def of(cls, pairs: Iterable[Direction]) -> Self:
        """Return the set of the directions `pairs`, without duplicates."""
        unique = tuple(dict.fromkeys(pairs))
        sources, targets = dict.fromkeys(pair.source for pair in unique), dict.fromkeys(pair.target for pair in unique)
        return cls(tuple(sources), tuple(targets), unique)

    @classmethod
    def parse(cls, value: object) -> Self:
        """Return the set that a value in a configuration states.

        The value is a list of directions as strings, or {"source": tags, "target": tags}.

        Raises:
            LanguageError: The value has another type, or directions or tags are invalid or occur twice. The message
                lists all problems.
        """
        if isinstance(value, cls):
            return value
        wrong: list[str] = []
        if not isinstance(value, Mapping):
            result = cls.of(_parse_each(value, Direction.parse, wrong))
        elif set(value) == {"source", "target"}:
            sources, targets = (_parse_each(value[side], _parse_canonical, wrong) for side in ("source", "target"))
            result = cls(tuple(sources), tuple(targets))
        else:
            raise LanguageError(f"directions have the keys {list(value)}; accepted: 'source' and 'target'")
        if wrong:
            raise LanguageError(wrong[0] if len(wrong) == 1 else problems("wrong directions", wrong[:20]))
        return result

    def to_config(self) -> list[str] | dict[str, list[str]]:
        """Return the set in the form that `parse` accepts."""
        if self.pairs is None:
            return {"source": list(self.sources), "target": list(self.targets)}
        return list(map(str, self.pairs))

    def __str__(self) -> str:
        """Return the set as a text for messages, such as `en-de, de-en` or `from en, de into cs, fr, uk`."""
        if self.pairs is None and len(self) > 4:
            return f"from {', '.join(self.sources)} into {', '.join(self.targets)}"
        return ", ".join(map(str, self))

    def choose(self, source: str | None = None, target: str | None = None) -> Direction:
        """Return the only direction from `source` into `target`, in any spelling (see `closest_language`).

        A language that is None may be any.

        Raises:
            LanguageError: No direction fits, or several fit.
        """
        source = source and (closest_language(source, self.sources) or source)
        target = target and (closest_language(target, self.targets) or target)
        sources = [source] if source else self.sources_of(target) if target else self.sources
        pairs = (Direction(one, other) for one in sources for other in ([target] if target else self.targets_of(one)))
        match list(islice((pair for pair in pairs if pair in self), 2)):
            case [direction]:
                return direction
            case []:
                wanted = " ".join(f"{word} {tag}" for word, tag in (("from", source), ("to", target)) if tag)
                raise LanguageError(f"this model has no direction {wanted}; accepted: {self}")
        missing = " and ".join(name for name, tag in (("source", source), ("target", target)) if tag is None)
        raise LanguageError(f"the model has several directions: give {missing}; accepted: {self}")

    def targets_of(self, source: str) -> tuple[str, ...]:
        if self.pairs is not None:
            return tuple(pair.target for pair in self.pairs if pair.source == source)
        return tuple(target for target in self.targets if target != source) if source in self.sources else ()

    def sources_of(self, target: str) -> tuple[str, ...]:
        if self.pairs is not None:
            return tuple(pair.source for pair in self.pairs if pair.target == target)
        return tuple(source for source in self.sources if source != target) if target in self.targets else ()

    def __contains__(self, direction: object) -> bool:
        if self.pairs is not None or not isinstance(direction, Direction):
            return direction in (self.pairs or ())
        source, target = direction.source, direction.target
        return source != target and source in self.sources and target in self.targets

    def __iter__(self) -> Iterator[Direction]:
        if self.pairs is not None:
            return iter(self.pairs)
        return (Direction(*pair) for pair in product(self.sources, self.targets) if pair[0] != pair[1])

    def __len__(self) -> int:
        if self.pairs is not None:
            return len(self.pairs)
        return len(self.sources) * len(self.targets) - len({*self.sources} & {*self.targets})

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        serialization = core_schema.plain_serializer_function_ser_schema(cls.to_config)
        return core_schema.no_info_after_validator_function(
            cls.parse, core_schema.any_schema(), serialization=serialization
        )


def _split(text: str) -> Iterator[tuple[str, str]]:
    """Yield each way to split `text` into two different tags, ignoring letter case.

    The pair with the longest source comes first.
    """
    places = [match.start() for match in re.finditer("[-_]", text)] if len(text) <= _LONGEST_DIRECTION else []
    for place in reversed(places):
        try:
            pair = parse_tag(text[:place]), parse_tag(text[place + 1 :])
        except LanguageError:
            continue
        if pair[0] != pair[1]:
            yield pair


def _parse_canonical(text: object) -> str:
    tag = parse_tag(str(text))
    if tag != text:
        raise LanguageError(f"{text!r} is not in canonical letter case; accepted: {tag!r}")
    return tag


def _parse_each(values: object, parse: Callable[[object], Any], wrong: list[str]) -> list[Any]:
    """Return the results of `parse` for `values`. For each value that cannot be parsed, append a message to `wrong`.

    A message is also appended if `values` is not a list, and for each value that occurs twice.
    """
    if isinstance(values, str) or not isinstance(values, Sequence):
        wrong.append(f"directions are {values!r}; accepted: a list, such as ['en-de', 'de-en']")
        return []
    parsed = []
    for value in values:
        try:
            parsed.append(parse(value))
        except LanguageError as error:
            wrong.append(str(error))
    wrong += [
        f"{str(value)!r} occurs {count} times; accepted: once" for value, count in Counter(parsed).items() if count > 1
    ]
    return parsed
