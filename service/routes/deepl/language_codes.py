"""DeepL's language codes, in upper case. Only codes of target languages may have a region."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

from mt.languages import Direction, closest_language, language_name, primary_language, standard_tag
from service.errors import UnsupportedLanguage, shorten
from service.glossaries.store import glossary_direction
from service.languages import TranslationRoutes, listing

_TARGET_CODES: dict[str, tuple[str, ...]] = {
    "en": ("EN-GB", "EN-US"),
    "no": ("NB",),
    "pb": ("PT-BR",),
    "pt": ("PT-PT",),
    "zh": ("ZH", "ZH-HANS"),
    "zh-Hans": ("ZH", "ZH-HANS"),
    "zt": ("ZH-HANT",),
}
_NAMES = {
    "EN-GB": "English (British)",
    "EN-US": "English (American)",
    "NB": "Norwegian",
    "PT": "Portuguese",
    "PT-BR": "Portuguese (Brazilian)",
    "PT-PT": "Portuguese (European)",
    "ZH": "Chinese",
    "ZH-HANS": "Chinese (simplified)",
    "ZH-HANT": "Chinese (traditional)",
}


def source_code(language: str) -> str:
    """Return DeepL's code of a source language: `EN` for `en`, `PT` for `pt-BR`."""
    return "NB" if language == "no" else primary_language(language).upper()


def target_codes(language: str) -> tuple[str, ...]:
    """Return DeepL's codes of a target language: `EN-GB` and `EN-US` for `en`, `PT-BR` for `pt-BR`."""
    return _TARGET_CODES.get(language, (language.upper(),))


@lru_cache(2)  # the names of 200 languages take 6 ms
def source_languages(routes: TranslationRoutes) -> list[tuple[str, str]]:
    """Return (code, English name) of each source language."""
    return _named({source_code(language): language for language in routes.source_languages})


@lru_cache(2)
def target_languages(routes: TranslationRoutes) -> list[tuple[str, str]]:
    """Return (code, English name) of each target language. A language with variants has several codes."""
    return _named({code: language for language in routes.target_languages for code in target_codes(language)})


def resource_languages(routes: TranslationRoutes) -> list[tuple[str, str, bool, bool]]:
    """Return (code, English name, is a source, is a target) for each language of `/v3/languages`.

    The codes are BCP 47 tags such as `en`, `en-GB` and `zh-Hans`. A variant, such as `en-GB`, is only a target.
    """
    sources = {standard_tag(code): name for code, name in source_languages(routes)}
    targets = {standard_tag(code): name for code, name in target_languages(routes)}
    names = sources | targets
    return [(code, names[code], code in sources, code in targets) for code in sorted(names)]


def glossary_directions(routes: TranslationRoutes, source: str = "") -> list[Direction]:
    """Return the language pairs for which a glossary can have a dictionary, or only those from the language `source`.

    A model of 200 languages has 40,000 pairs, which take 100 ms.
    """
    return sorted(
        {
            glossary_direction(language, target)
            for language in routes.source_languages
            if not source or glossary_direction(language, language).source == source
            for target in routes.targets_of(language)
        }
    )


def parse_source(code: str, routes: TranslationRoutes) -> str:
    """Return the models' code of the source language that DeepL's `code` stands for.

    Raises:
        UnsupportedLanguage: if no model translates from this language. The message has DeepL's wording.
    """
    return _parse("source_lang", code, routes.source_languages, partial(source_languages, routes))


def parse_target(code: str, routes: TranslationRoutes) -> str:
    """Return the models' code of the target language that DeepL's `code` stands for.

    Raises:
        UnsupportedLanguage: if no model translates into this language. The message has DeepL's wording.
    """
    return _parse("target_lang", code, routes.target_languages, partial(target_languages, routes))


def parse_glossary_direction(source: str, target: str, routes: TranslationRoutes) -> Direction:
    """Return the direction of a glossary's dictionary, given DeepL's codes of its languages.

    Raises: UnsupportedLanguage if a language is unknown, or the service does not translate from `source` to `target`.
    """
    from_language, into = parse_source(source, routes), parse_target(target, routes)
    direction = glossary_direction(from_language, into)
    if into in routes.targets_of(from_language):
        return direction
    supported = glossary_directions(routes, direction.source)  # regional variants may be translated into each other
    if direction in supported:
        return direction
    raise UnsupportedLanguage(
        f"Unsupported glossary source and target language pair: {direction}; accepted: {listing(supported)}"
    )


def _parse(field: str, code: str, languages: Sequence[str], names: Callable[[], Sequence[tuple[str, str]]]) -> str:
    language = closest_language(code, languages)
    if language is None:
        accepted = listing([name for name, _ in names()])
        raise UnsupportedLanguage(f"Value for '{field}' not supported: {shorten(code)!r}; accepted: {accepted}")
    return language


def _named(codes: dict[str, str]) -> list[tuple[str, str]]:
    return sorted((code, _NAMES.get(code) or language_name(language)) for code, language in codes.items())
