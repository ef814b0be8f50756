"""The official SDK: what it raises, and what other clients are told."""

from typing import Any

import deepl
import httpx
import pytest

from service.errors import CannotTranslate
from tests.service.capitals import Running, single


def test_a_wrong_key_is_refused(running: Running) -> None:
    wrong = running.client("wrong")
    for attempt in (
        lambda: wrong.translate_text("dog", target_lang="DE"),
        wrong.get_usage,
        wrong.get_source_languages,
        wrong.list_glossaries,
        lambda: wrong.translate_document_upload("x", filename="a.txt", target_lang="DE"),
    ):
        with pytest.raises(deepl.AuthorizationException, match="Invalid API key"):
            attempt()
    assert running.core.jobs == []


def test_a_quota_that_is_used_up_is_a_456(running: Running) -> None:
    poor = running.client("poor")
    poor.translate_text("x" * 15, target_lang="DE")
    with pytest.raises(deepl.QuotaExceededException, match="Quota exceeded: 15 of 20"):
        poor.translate_text("x" * 6, target_lang="DE")
    with pytest.raises(deepl.QuotaExceededException):
        poor.translate_document_upload("x" * 6, filename="a.txt", target_lang="DE")
    assert single(poor.translate_text("x" * 5, target_lang="DE")).text == "XXXXX"


def test_what_fails_costs_nothing(running: Running) -> None:
    running.core.failing = [CannotTranslate("never")]
    poor = running.client("poor")
    with pytest.raises(deepl.DeepLException):
        poor.translate_text("four", target_lang="DE")
    assert poor.get_usage().character.count == 0


def test_a_target_that_is_not_there_is_named(client: deepl.DeepLClient) -> None:
    with pytest.raises(deepl.DeepLException, match="'target_lang' not supported: 'TLH'; accepted: DE, EN-GB") as caught:
        client.translate_text("dog", target_lang="TLH")
    assert caught.value.http_status_code == 400
    with pytest.raises(deepl.DeepLException, match="'source_lang' not supported: 'XX'; accepted: DE, EN, FR"):
        client.translate_text("dog", source_lang="XX", target_lang="DE")


def test_formality_is_refused_where_deepl_refuses_it(running: Running, client: deepl.DeepLClient) -> None:
    for formality in ("less", "more"):
        with pytest.raises(deepl.DeepLException, match=r".*Target language.*formality.*") as caught:  # as in its suite
            client.translate_text("dog", target_lang="PT-PT", formality=formality)
        assert (
            "message: Target language PT-PT does not support formality: 'formality' is not supported for given "
            "'target_lang'; accepted: default, prefer_less, prefer_more" in str(caught.value)
        )
    with pytest.raises(deepl.DeepLException, match="formality must be"):
        client.translate_text("dog", target_lang="DE", formality="rude")
    running.core.jobs.clear()
    for formality in ("default", "prefer_less", "prefer_more"):
        client.translate_text("dog", target_lang="PT-PT", formality=formality)
    assert {job.formality for job in running.core.jobs} == {None}
    running.core.jobs.clear()
    for formality in ("default", "prefer_less", "less", "prefer_more", "more"):
        client.translate_text("dog", target_lang="DE", formality=formality)
    assert [job.formality for job in running.core.jobs] == [None, "less", "less", "more", "more"]
    assert {each.code for each in client.get_target_languages() if each.supports_formality} == {"DE"}


def test_a_version_of_tag_handling_is_known_or_refused(client: deepl.DeepLClient) -> None:
    with pytest.raises(deepl.DeepLException, match="tag_handling_version must be"):
        client.translate_text("dog", target_lang="DE", tag_handling="xml", tag_handling_version="v9")
    marked = client.translate_text("<b>dog</b>", target_lang="DE", tag_handling="xml", tag_handling_version="v1")
    assert single(marked).text == "<b>DOG</b>"


@pytest.mark.parametrize("option", ["style_rule", "custom_instructions"])
def test_what_is_not_offered_is_refused(client: deepl.DeepLClient, option: str) -> None:
    value: Any = ["Be kind."] if option == "custom_instructions" else "some-id"
    with pytest.raises(deepl.DeepLException, match="is not supported"):
        client.translate_text("dog", target_lang="DE", **{option: value})


@pytest.mark.parametrize("characters", [131_100, 400_000, 5_000_000])
def test_a_request_over_a_limit_of_the_settings_is_a_413(client: deepl.DeepLClient, characters: int) -> None:
    with pytest.raises(deepl.DeepLException, match="413") as caught:
        client.translate_text("x" * characters, target_lang="DE")
    assert not caught.value.should_retry


def test_only_the_settings_limit_the_size_of_a_request(raw: httpx.Client) -> None:
    text = "é" * 90_000  # more bytes than DeepL accepts, fewer characters than max_characters
    body = f'{{"text": ["{text}"], "target_lang": "DE"}}'.encode()
    answer = raw.post("/v2/translate", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200 and answer.json()["translations"][0]["text"] == text.upper()


def test_more_characters_than_the_limit_are_a_413(client: deepl.DeepLClient) -> None:
    with pytest.raises(deepl.DeepLException, match="has 100001 characters"):
        client.translate_text("x" * 100_001, target_lang="DE")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{}", "missing target_lang parameter; missing text parameter"),
        (b'{"text": [], "target_lang": "DE"}', "text"),
        (b'{"text": [1], "target_lang": "DE"}', "text"),
        (b'{"text": "a", "target_lang": 3}', "target_lang"),
        (b'{"text": "a", "target_lang": "DE", "tag_handling": "md"}', "tag_handling must be 'xml' or 'html'"),
        (b'{"text": "a", "target_lang": "DE", "split_sentences": "2"}', "split_sentences must be"),
        (b'{"text": "a", "target_lang": "DE", "glossary_id": "g"}', "source_lang is required for a glossary"),
        (b'{"text": "a", "target_lang": "DE", "ignore_tags": [1]}', "ignore_tags"),
        (b'{"text": "a", "target_lang": "DE", "outline_detection": "maybe"}', "outline_detection"),
        (b"[]", "Invalid JSON format; accepted: a JSON object"),
        (b"{", "not JSON"),
        (b"[" * 10_000, "not JSON"),
        (b'{"text": "\xff"}', "not JSON"),
        (b'{"n": ' + b"9" * 5000 + b"}", "not JSON"),
    ],
)
def test_a_wrong_body_is_explained(raw: httpx.Client, body: bytes, said: str) -> None:
    answer = raw.post("/v2/translate", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, said in answer.json()["message"]) == (400, True), answer.json()["message"]


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=x", "text/plain", "x"])
def test_a_body_of_another_kind_is_explained(raw: httpx.Client, kind: str) -> None:
    answer = raw.post("/v2/translate", content=b"--nothing", headers={"Content-Type": kind})
    assert answer.status_code == 400


def test_a_lone_surrogate_is_no_error(raw: httpx.Client) -> None:
    body = b'{"text": ["\\ud800 a"], "target_lang": "DE", "context": "\\udfff"}'
    answer = raw.post("/v2/translate", content=body, headers={"Content-Type": "application/json"})
    assert answer.json()["translations"][0]["text"] == "\ufffd A"
