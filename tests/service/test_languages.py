"""Routes between languages, and the codes that clients write."""

import json

import pytest

from mt.languages import Direction, DirectionSet, closest_language
from service.errors import InvalidRequest, UnsupportedLanguage
from service.languages import TranslationRoutes
from service.routes.deepl import language_codes
from service.routes.deepl.glossaries import DictionaryBody, parse_directions
from service.routes.deepl.language_codes import parse_source, parse_target, source_languages, target_languages
from service.routes.languages import encoded_languages

TAGS = ("pt-BR", "zh-Hant", "sr-Latn", "en", *(f"{a}{b}" for a in "qrstuvw" for b in "abcdefghijklmnopqrstuvwxyz"))


def routes(*directions: str) -> TranslationRoutes:
    return TranslationRoutes([DirectionSet.of(map(Direction.parse, directions))])


def test_a_glossary_has_one_dictionary_of_a_pair() -> None:
    body = DictionaryBody(source_lang="en", target_lang="de", entries="a\tb")
    with pytest.raises(InvalidRequest, match="there are several dictionaries for en-de"):
        parse_directions([body, body], routes("en-de"))


def test_a_model_of_many_languages_is_not_expanded_to_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    many = TranslationRoutes([DirectionSet(TAGS, TAGS)])
    assert len(many.languages) == len(many.source_languages) == len(many.target_languages) == len(TAGS)
    assert many.find("sr-Latn", "zh-Hant") == (Direction("sr-Latn", "zh-Hant"),)
    assert len(many.targets_of("pt-BR")) == len(many.sources_of("pt-BR")) == len(TAGS) - 1
    with pytest.raises(UnsupportedLanguage, match=r"^xx is not supported; accepted: en, .* and 166 more") as raised:
        many.find("xx", "en")
    assert len(raised.value.message) < 250
    listed = json.loads(encoded_languages(many))
    assert [language["code"] for language in listed] == sorted(TAGS)
    assert encoded_languages(many) is encoded_languages(many)
    assert len(source_languages(many)) <= len(TAGS) and len(target_languages(many)) == len(TAGS) + 1
    monkeypatch.setattr(language_codes, "glossary_directions", lambda *_: pytest.fail("all pairs are listed"))
    bodies = [DictionaryBody(source_lang="en", target_lang=tag, entries="a\tb") for tag in TAGS[4:]]
    assert parse_directions(bodies, many) == [Direction("en", tag) for tag in TAGS[4:]]


def test_pairs_meet_in_a_pivot() -> None:
    some = routes("de-en", "en-fr", "de-cs", "cs-fr", "fr-it")
    assert some.find("de", "fr") == (Direction("de", "en"), Direction("en", "fr"))  # English before others
    assert routes("en-fr", "en-de", "de-fr").find("en", "fr") == (Direction("en", "fr"),)
    assert some.targets_of("de") == ("cs", "en", "fr")
    assert some.sources_of("it") == ("cs", "en", "fr")
    for unknown in ("xx", 1000 * "x"):
        with pytest.raises(UnsupportedLanguage, match=r"xx.* is not supported; accepted: cs, de, en, fr, it$"):
            some.find(unknown, "fr")
    assert set(some._targets) <= set(some.languages), "the codes of clients are not kept"
    with pytest.raises(UnsupportedLanguage, match=r"Italian \(it\) is not available .* accepted: cs, en, fr$"):
        some.find("de", "it")


CODES = {
    "en": ("EN", "en-US", "en_GB", "eng"),
    "pt-BR": ("pt-BR", "pb", "pt_br", "pt", "por"),
    "sr-Latn": ("sr-latn", "sr"),
    "zh-Hant": ("zt", "zh-TW", "zh-HK", "cmn-Hant"),
    **{code: (code,) for code in ("sr-Cyrl", "pt-PT", "zh-SG", "fr-CA", "no language")},
}


@pytest.mark.parametrize("tag", CODES)
def test_codes_of_libretranslate(tag: str) -> None:
    resolve = routes("en-pt-BR", "en-zh-Hant", "en-sr-Latn").resolve
    assert [(code, resolve(code)) for code in CODES[tag]] == [(code, tag) for code in CODES[tag]]


@pytest.mark.parametrize(
    ("code", "languages", "tag"),
    [
        ("PT-BR", ("pb", "pt"), "pb"),
        ("PT-BR", ("pt", "pt-BR"), "pt-BR"),
        ("PT-BR", ("pt",), "pt"),
        ("PT-PT", ("pb",), None),
        ("PT", ("pb",), "pb"),
        ("EN-GB", ("en",), "en"),
        ("NB", ("no",), "no"),
        ("ZH", ("zh", "zt"), "zh"),
        ("ZH", ("zt",), "zt"),
        ("ZH-HANT", ("zh", "zh-Hant"), "zh-Hant"),
        ("ZH-HANT", ("zh",), None),
        ("ZH-HANS", ("zh",), "zh"),
        ("SR-LATN", ("sr-Cyrl", "sr-Latn"), "sr-Latn"),
        ("", ("en",), None),
    ],
)
def test_the_language_that_fits_best(code: str, languages: tuple[str, ...], tag: str | None) -> None:
    assert closest_language(code, languages) == tag


def test_codes_of_deepl() -> None:
    some = routes("en-pt-BR", "en-zh-Hant", "en-sr-Latn", "pt-BR-en", "zh-Hant-en")
    assert [code for code, _ in target_languages(some)] == ["EN-GB", "EN-US", "PT-BR", "SR-LATN", "ZH-HANT"]
    assert source_languages(some) == [("EN", "English"), ("PT", "Portuguese"), ("ZH", "Chinese")]
    assert [parse_target(code, some) for code in ("PT-BR", "ZH-HANT", "SR-LATN")] == ["pt-BR", "zh-Hant", "sr-Latn"]
    assert [parse_source(code, some) for code in ("PT", "ZH")] == ["pt-BR", "zh-Hant"]
    with pytest.raises(UnsupportedLanguage, match="Value for 'target_lang' not supported: 'XX'; accepted: EN-GB, "):
        parse_target("XX", some)
