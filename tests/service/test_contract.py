"""LibreTranslate's contract over a real model: what the library translates comes back, by each of its clients."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from deep_translator import LibreTranslator

from mt import Translator
from tests.conftest import DEVICE

DOG, CAT = "The dog sees the cat.", "The cat follows the dog."


@pytest.fixture(scope="module")
def expected(several_directions: Path) -> Callable[..., list[str]]:
    translator = Translator.load(several_directions, device=DEVICE)

    def translate(*texts: str, target: str = "de") -> list[str]:
        return [each.text for each in translator.translate_many(list(texts), source="en", target=target)]

    return translate


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
