"""Clients of LibreTranslate, as they are published, against the running service; and what others of them send."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from deep_translator import LibreTranslator

from mt import Translator
from tests.conftest import DEVICE

DOG = "The dog sees the cat."
TEXTS = [DOG, "The cat follows the dog. The man likes the house!", "  A + b & c = 50 %, ü?\n\nThe river."]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="module")
def translator(several_directions: Path) -> Translator:
    return Translator.load(several_directions, device=DEVICE)


def expected(translator: Translator, texts: list[str], target: str = "de") -> list[str]:
    return [found.text for found in translator.translate_many(texts, source="en", target=target)]


def test_deep_translator(client: httpx.Client, translator: Translator, tmp_path: Path) -> None:
    """It sends a query string, and cannot do without an API key."""
    german = LibreTranslator(source="English", target="German", api_key="any", custom_url=f"{client.base_url}/")
    assert [german.translate(text) for text in TEXTS] == expected(translator, TEXTS)
    assert german.translate_batch(TEXTS) == expected(translator, TEXTS)
    file = tmp_path / "a.txt"
    file.write_text(TEXTS[1], encoding="utf-8")
    assert german.translate_file(str(file)) == expected(translator, TEXTS[1:2])[0]
    told = LibreTranslator(source="auto", target="fr", api_key="any", custom_url=f"{client.base_url}/")
    assert told.translate(DOG) == expected(translator, [DOG], "fr")[0]


def test_mastodon(client: httpx.Client, translator: Translator) -> None:
    """A post, its warning and the answers of its poll, in one list of HTML; without a key, that is null."""
    post = f'<p>{DOG} <a href="https://a.example/@b" class="u-url mention">@<span>b</span></a></p>'
    body: dict[str, Any] = {"q": [post, "", DOG], "source": "auto", "target": "de", "format": "html", "api_key": None}
    response = client.post(
        "/translate",
        content=json.dumps(body, separators=(",", ":")),
        headers={"User-Agent": "Mastodon/4.3.0", "Content-Type": "application/json", "Accept-Encoding": "gzip"},
    )
    found = response.json()
    assert response.status_code == 200 and len(found["translatedText"]) == len(found["detectedLanguage"]) == 3
    text, nothing, dog = found["translatedText"]
    assert nothing == "" and dog == expected(translator, [DOG])[0]
    assert text.startswith("<p>") and text.endswith("</p>")
    assert '<a href="https://a.example/@b" class="u-url mention">@<span>b</span></a>' in text
    assert [found["detectedLanguage"][place]["language"] for place in (0, 2)] == ["en", "en"]
    assert client.post("/translate", json=body | {"source": "en"}).json() == {"translatedText": [text, "", dog]}
    languages = {each["code"]: each["targets"] for each in client.get("/languages").json()}
    assert languages["en"] == ["de", "fr"]
