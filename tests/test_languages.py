from itertools import permutations

import pytest

from mt import languages
from mt.errors import LanguageError
from mt.languages import Direction, DirectionSet, parse_tag

TAGS = ["de", "en", "ca-valencia", "de-1996", "es-419", "pt-BR", "sr-Cyrl", "sr-Latn", "yue", "zh-Hant", "zh-Hans-CN"]


@pytest.mark.parametrize(("source", "target"), list(permutations(TAGS, 2)))
def test_a_direction_string_is_parsed_and_written(source: str, target: str) -> None:
    direction = Direction.parse(f"{source}-{target}")
    assert direction == Direction(source, target) and str(direction) == f"{source}-{target}"
    assert direction.reversed == Direction(target, source)
    assert Direction.parse(direction) is direction


@pytest.mark.parametrize(
    ("code", "tag"),
    [
        *[("eng_Latn", "en"), ("zho_Hans", "zh"), ("zho_Hant", "zh-Hant"), ("cmn_Hant", "zh-Hant"), ("srp_Cyrl", "sr")],
        *[("srp_Latn", "sr-Latn"), ("kor_Hang", "ko"), ("yue_Hant", "yue"), ("pes_Arab", "fa"), ("prs_Arab", "fa-AF")],
        *[("arb_Arab", "ar"), ("arz_Arab", "arz"), ("acm_Arab", "acm"), ("ace_Latn", "ace"), ("ace_Arab", "ace-Arab")],
        *[("sat_Beng", "sat-Beng"), ("tgl_Latn", "tl"), ("tl", "tl"), ("ns", "nso"), ("iw", "he"), ("deu", "de")],
        *[("en", "en"), ("pob", "pt-BR"), ("pt_br", "pt-BR"), ("es_419", "es-419"), ("nob", "nb"), ("no", "no")],
    ],
)
def test_codes_of_translation_models_are_standard_tags(code: str, tag: str) -> None:
    assert languages.standard_tag(code) == tag == parse_tag(tag)


@pytest.mark.parametrize(
    ("text", "suggested"),
    [
        ("pt-br-de", "did you mean pt-BR-de or pt-br-DE?"),
        ("zh-hant-en", "did you mean zh-Hant-en?"),
        ("EN-DE", "did you mean en-de?"),
        ("en_de", "did you mean en-de?"),
        *((x, "") for x in ("", "en", "en-", "-en", "en-en", "en--de", "en-de-fr-it-es", "a-b", "-" * 100_000, 3)),
    ],
)
def test_an_invalid_direction_is_refused_with_what_is_accepted(text: object, suggested: str) -> None:
    with pytest.raises(LanguageError, match="accepted: two languages, such as en-de or en-pt-BR") as error:
        Direction.parse(text)
    assert ("did you mean" in str(error.value)) == bool(suggested) and suggested in str(error.value)


def test_a_tag_gets_its_canonical_letter_case() -> None:
    tags = {"DE": "de", "pt_br": "pt-BR", "ZH-HANT-tw": "zh-Hant-TW", "es-419": "es-419", "iw": "iw"}
    assert {text: parse_tag(text) for text in tags} == tags


@pytest.mark.parametrize(
    "text",
    ["", "e", "german", "de-", "de-DE-Latn", "zh-yue-en", "en de", "x-private", "dé", "en" + 2000 * "-abcde"],
)
def test_a_text_that_is_no_tag_is_refused_and_not_kept(text: str) -> None:
    with pytest.raises(LanguageError, match="accepted: BCP 47, such as 'de', 'pt-BR' or 'zh-Hant'"):
        parse_tag(text)
    caches = [function for function in vars(languages).values() if hasattr(function, "cache_info")]
    before = [cache.cache_info().currsize for cache in caches]
    assert (languages.language_and_script(text), languages.closest_language(text, ["en", "de"])) == ((text, ""), None)
    assert [cache.cache_info().currsize for cache in caches] == before


@pytest.mark.parametrize(
    ("tag", "language", "script", "letters", "name"),
    [
        ("de", "de", "Latn", "deu", "German"),
        ("pt-BR", "pt", "Latn", "por", "Portuguese (Brazil)"),
        ("pb", "pt", "Latn", "por", "Portuguese (Brazil)"),
        ("zh", "zh", "Hans", "zho", "Chinese"),
        ("zt", "zh", "Hant", "zho", "Chinese (Traditional)"),
        ("zh-TW", "zh", "Hant", "zho", "Chinese (Taiwan)"),
        ("sr", "sr", "Cyrl", "srp", "Serbian"),
        ("sr-Latn", "sr", "Latn", "srp", "Serbian (Latin)"),
        ("es-XX", "es", "Latn", "spa", "Spanish (Unknown Region [XX])"),
        ("xx-Latn", "xx", "Latn", "xx", "xx-Latn"),
        ("xx", "xx", "", "xx", "xx"),
    ],
)
def test_properties_of_a_tag(tag: str, language: str, script: str, letters: str, name: str) -> None:
    assert (languages.primary_language(tag), languages.likely_script(tag)) == (language, script)
    assert (languages.three_letter_code(tag), languages.language_name(tag)) == (letters, name)


def test_the_name_of_a_language_in_the_language_itself() -> None:
    names = {"de": "Deutsch", "pb": "português (Brasil)", "zt": "中文（繁體）", "ar": "العربية", "xx": "xx"}
    assert {tag: languages.native_name(tag) for tag in names} == names


def test_a_set_of_pairs_keeps_their_order() -> None:
    directions = DirectionSet.parse(["en-de", "fr-en", "en-pt-BR"])
    assert list(map(str, directions)) == directions.to_config() == ["en-de", "fr-en", "en-pt-BR"]
    assert (directions.sources, directions.targets) == (("en", "fr"), ("de", "en", "pt-BR"))
    assert Direction("en", "de") in directions and Direction("de", "en") not in directions
    assert directions.targets_of("en") == ("de", "pt-BR") and directions.sources_of("en") == ("fr",)
    assert directions == DirectionSet.parse(directions.to_config()) == DirectionSet.of([*directions, *directions])
    assert len(DirectionSet.parse([])) == 0


def test_a_product_holds_every_pair_but_identities() -> None:
    config = {"source": ["en", "de", "fr"], "target": ["en", "pt-BR"]}
    directions = DirectionSet.parse(config)
    assert list(map(str, directions)) == ["en-pt-BR", "de-en", "de-pt-BR", "fr-en", "fr-pt-BR"]
    assert len(directions) == 5 and directions.to_config() == config
    assert Direction("fr", "en") in directions and Direction("en", "en") not in directions
    assert Direction("en", "fr") not in directions
    assert directions.targets_of("en") == ("pt-BR",) and directions.sources_of("en") == ("de", "fr")
    assert directions == DirectionSet.parse(directions)
    few = DirectionSet.parse({"source": ["en"], "target": ["de", "fr"]})
    assert (str(directions), str(few)) == ("from en, de, fr into en, pt-BR", "en-de, en-fr")
    tags = TAGS[:6]
    square = DirectionSet.parse({"source": tags, "target": tags})
    assert list(square) == [Direction(*pair) for pair in permutations(tags, 2)] and len(square) == 30


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("en-de", "accepted: a list, such as"),
        (None, "accepted: a list, such as"),
        (["en-de", "de-en", "en-de"], "'en-de' occurs 2 times; accepted: once"),
        ({"source": ["en"]}, "accepted: 'source' and 'target'"),
        ({"source": ["en"], "target": ["pt-br"]}, "'pt-br' is not in canonical letter case; accepted: 'pt-BR'"),
        ({"source": ["en", "en"], "target": ["de"]}, "'en' occurs 2 times; accepted: once"),
        (["en", "pt-br-de"], "(?s)'en' is not a direction.*'pt-br-de' is not a direction.*did you mean pt-BR-de"),
    ],
)
def test_a_wrong_set_is_refused_with_every_problem(value: object, message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        DirectionSet.parse(value)
