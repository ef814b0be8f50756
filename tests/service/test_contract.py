"""LibreTranslate's contract over a real model: what the library translates comes back, by each of its clients."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from deep_translator import LibreTranslator

from mt import Translator
from tests.conftest import DEVICE

DOG, CAT = "The dog sees the cat.", "The cat follows the dog."


@pytest.fixture(scope="module")
def expected(several_directions: Path) -> Callable[..., list[str]]:
    """The library's translations from English."""
    translator = Translator.load(several_directions, device=DEVICE)

    def translate(*texts: str, target: str = "de") -> list[str]:
        return [each.text for each in translator.translate_many(list(texts), source="en", target=target)]

    return translate


def asked(client: httpx.Client, **body: Any) -> Any:
    response = client.post("/translate", json={"source": "en", "target": "de", **body})
    assert response.status_code == 200, response.text
    return response.json()


def test_deep_translator(
    client: httpx.Client, expected: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sends a query string, and cannot do without an API key."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    texts = [DOG, f"{CAT} The man likes the house!", "  A + b & c = 50 %, ü?\n\nThe river."]
    german = LibreTranslator(source="English", target="German", api_key="any", custom_url=f"{client.base_url}/")
    assert german.translate_batch(texts) == expected(*texts)
    (tmp_path / "a.txt").write_text(texts[1], encoding="utf-8")
    assert german.translate_file(str(tmp_path / "a.txt")) == expected(texts[1])[0]
    detecting = LibreTranslator(source="auto", target="fr", api_key="any", custom_url=f"{client.base_url}/")
    assert detecting.translate(DOG) == expected(DOG, target="fr")[0]


def test_mastodon(client: httpx.Client, expected: Callable[..., list[str]]) -> None:
    """A post, its warning and the answers of its poll, in one list of HTML; without a key, that is null."""
    link = '<a href="https://a.example/@b" class="u-url mention">@<span>b</span></a>'
    texts = [f"<p>{DOG} {link}</p>", "", DOG]
    answer = asked(client, q=texts, source="auto", format="html", api_key=None)
    post, *others = answer["translatedText"]
    assert others == ["", *expected(DOG)]
    assert post.startswith("<p>") and post.endswith("</p>") and link in post
    assert [answer["detectedLanguage"][place]["language"] for place in (0, 2)] == ["en", "en"]
