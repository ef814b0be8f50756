"""The official SDK: texts, languages, usage."""

from collections.abc import Callable

import deepl
import httpx
import pytest
from deepl.api_data import ModelType

from tests.service.capitals import Running, several, single

BUTTON = '<p>Press the <b class="x">red</b> button.</p>'


def get(running: Running, path: str) -> httpx.Response:
    headers = {"Authorization": f"DeepL-Auth-Key {running.keys['rich']}"}
    return httpx.get(running.url + path, headers=headers, trust_env=False)


def test_a_text_is_translated(client: deepl.DeepLClient) -> None:
    result = client.translate_text("The dog sleeps.", target_lang="DE")
    assert isinstance(result, deepl.TextResult)
    assert (result.text, result.detected_source_lang, result.billed_characters) == ("THE DOG SLEEPS.", "EN", 15)


def test_texts_come_back_in_order(client: deepl.DeepLClient) -> None:
    results = several(client.translate_text(["one", "", "three"], source_lang="en", target_lang="de"))
    assert [result.text for result in results] == ["ONE", "", "THREE"]


def test_html_keeps_its_tags(client: deepl.DeepLClient) -> None:
    result = single(client.translate_text(BUTTON, target_lang="DE", tag_handling="html"))
    assert result.text == '<p>PRESS THE <b class="x">RED</b> BUTTON.</p>'


def test_xml_leaves_ignored_tags_alone(client: deepl.DeepLClient) -> None:
    text = "<doc><par>A <keep>small</keep> dog.</par><Par>Another</Par></doc>"
    result = single(client.translate_text(text, target_lang="DE", tag_handling="xml", ignore_tags=["keep"]))
    assert result.text == "<doc><par>A <keep>small</keep> DOG.</par><Par>ANOTHER</Par></doc>"


def test_tags_come_as_words_between_commas_too(running: Running, client: deepl.DeepLClient) -> None:
    client.translate_text(
        "<a>hi</a>",
        target_lang="DE",
        tag_handling="xml",
        splitting_tags="a,b",
        non_splitting_tags=["c"],
        ignore_tags="x, y",
        outline_detection=False,
    )
    markup = running.core.jobs[0].markup
    assert (markup.splitting_tags, markup.non_splitting_tags) == (frozenset({"a", "b"}), frozenset({"c"}))
    assert (markup.ignore_tags, markup.outline_detection) == (frozenset({"x", "y"}), False)


def test_every_option_of_the_sdk_is_taken(running: Running, client: deepl.DeepLClient) -> None:
    result = client.translate_text(
        "Hello",
        source_lang="EN",
        target_lang="DE",
        context="a greeting",
        split_sentences=deepl.SplitSentences.OFF,
        preserve_formatting=True,
        formality=deepl.Formality.PREFER_MORE,
        model_type=ModelType.PREFER_QUALITY_OPTIMIZED,
        tag_handling_version="v2",
    )
    hello = single(result)
    assert (hello.text, hello.model_type_used) == ("HELLO", "quality_optimized")
    assert not running.core.jobs[0].split_sentences


@pytest.mark.parametrize(
    ("split", "expected"),
    [("1", "a\nb\n\nc"), ("nonewlines", "a b\n\nc"), ("0", "a\nb\n\nc")],
)
def test_a_line_break_may_be_told_to_end_no_sentence(
    running: Running, client: deepl.DeepLClient, split: str, expected: str
) -> None:
    client.translate_text("a\nb\n\nc", target_lang="DE", split_sentences=split)
    assert running.core.jobs[0].texts == (expected,)


def test_a_script_without_spaces_gets_none_for_a_line_break(running: Running, client: deepl.DeepLClient) -> None:
    client.translate_text("\u72ac\u3068\n  \u732b\u3002", target_lang="DE", split_sentences="nonewlines")
    assert running.core.jobs[0].texts == ("\u72ac\u3068\u732b\u3002",)


def test_a_query_with_repeated_texts_is_read(raw: httpx.Client) -> None:
    found = raw.post("/v2/translate", params={"text": ["one", "two"], "target_lang": "DE"}).json()
    assert [each["text"] for each in found["translations"]] == ["ONE", "TWO"]


def test_a_form_with_repeated_texts_is_read(running: Running, raw: httpx.Client) -> None:
    fields = {"text": ["one", "two, three"], "target_lang": "DE", "preserve_formatting": "1", "split_sentences": "0"}
    found = raw.post("/v2/translate", data=fields).json()
    assert [each["text"] for each in found["translations"]] == ["ONE", "TWO, THREE"]
    assert set(found["translations"][0]) == {"text", "detected_source_language"}


def test_a_key_may_stand_in_the_form(running: Running) -> None:
    fields = {"text": "one", "target_lang": "DE", "auth_key": running.keys["rich"]}
    with httpx.Client(base_url=running.url, trust_env=False) as bare:
        assert bare.post("/v2/translate", data=fields).status_code == 200
        assert bare.post("/v2/translate", data=fields | {"auth_key": "no"}).status_code == 403
        assert bare.post("/v2/translate", json=fields).status_code == 200
        assert bare.post("/v2/translate", json={"text": ["one"], "target_lang": "DE"}).status_code == 403


def test_regional_targets_find_our_languages(running: Running, client: deepl.DeepLClient) -> None:
    for target in ("EN-GB", "EN-US", "en-us"):
        client.translate_text("Hund", source_lang="DE", target_lang=target)
    for target in ("PT-BR", "PT-PT", "ZH", "ZH-HANS"):
        client.translate_text("dog", source_lang="EN", target_lang=target)
    assert [job.target for job in running.core.jobs] == ["en", "en", "en", "pb", "pt", "zh", "zh"]


def test_languages_have_deepls_codes(client: deepl.DeepLClient) -> None:
    sources = {each.code: each.name for each in client.get_source_languages()}
    targets = {each.code: each.name for each in client.get_target_languages()}
    assert sources == {"DE": "German", "EN": "English", "FR": "French"}
    assert list(targets) == ["DE", "EN-GB", "EN-US", "PT-BR", "PT-PT", "ZH", "ZH-HANS"]
    assert targets["PT-BR"] == "Portuguese (Brazilian)"


def test_languages_of_a_resource(running: Running) -> None:
    def languages(resource: str) -> dict[str, tuple[str, bool, bool, list[str]]]:
        found = get(running, f"/v3/languages?resource={resource}").json()
        assert {each["status"] for each in found} <= {"stable"}
        return {
            each["lang"]: (each["name"], each["usable_as_source"], each["usable_as_target"], [*each["features"]])
            for each in found
        }

    text = languages("translate_text")
    both, target = ["tag_handling", "glossary", "auto_detection"], ["tag_handling", "glossary"]
    assert text["de"] == ("German", True, True, ["tag_handling", "glossary", "formality", "auto_detection"])
    assert text["en"] == ("English", True, False, both)
    assert text["en-GB"] == ("English (British)", False, True, target)
    assert list(text) == ["de", "en", "en-GB", "en-US", "fr", "pt-BR", "pt-PT", "zh"]
    assert languages("translate_document")["en-GB"] == ("English (British)", False, True, ["glossary"])
    assert languages("glossary")["fr"] == ("French", True, False, [])
    assert languages("write") == languages("voice") == {}
    assert [each["name"] for each in get(running, "/v3/languages/resources").json()] == [
        "translate_text",
        "translate_document",
        "glossary",
        "translation_memory",
    ]


@pytest.mark.parametrize("query", ["", "?resource=speech"])
def test_a_resource_is_required(running: Running, query: str) -> None:
    answer = get(running, f"/v3/languages{query}")
    assert answer.status_code == 400 and "resource" in answer.json()["message"]


def test_every_code_that_is_listed_is_taken(client: deepl.DeepLClient) -> None:
    for language in client.get_target_languages():
        assert single(client.translate_text("x", target_lang=language)).text
    for language in client.get_source_languages():
        target = "DE" if language.code == "EN" else "EN-GB"
        assert single(client.translate_text("x", source_lang=language, target_lang=target)).text


def test_usage_counts_what_was_translated(running: Running) -> None:
    client = running.client("poor")
    client.translate_text("four", target_lang="DE")
    assert (client.get_usage().character.count, client.get_usage().character.limit) == (4, 20)
    assert not running.client().get_usage().any_limit_reached


def test_lists_come_by_post_too(raw: httpx.Client) -> None:
    assert raw.post("/v2/languages", data={"type": "target"}).json() == raw.get("/v2/languages?type=target").json()
    assert raw.post("/v2/usage").json() == raw.get("/v2/usage").json()


def test_a_service_without_keys_takes_any(start: Callable[..., Running]) -> None:
    running = start(require_key=False)
    running.store.run_sync(lambda connection: connection.execute("DELETE FROM keys").fetchone())
    assert single(running.client("whatever").translate_text("dog", target_lang="DE")).text == "DOG"


def test_model_type_names_a_model(raw: httpx.Client) -> None:
    def answer(model_type: str) -> httpx.Response:
        fields = {"text": "hello", "target_lang": "DE", "model_type": model_type}
        return raw.post("/v2/translate", data=fields)

    assert answer("capitals").json()["translations"][0]["model_type_used"] == "capitals"
    assert answer("other").json()["message"] == "model other is not served; accepted: capitals"
    assert answer("latency_optimized").json()["translations"][0]["model_type_used"] == "latency_optimized"
