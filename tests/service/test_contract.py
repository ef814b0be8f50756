"""LibreTranslate's contract over a real model: what the library translates comes back, by each of its clients."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from deep_translator import LibreTranslator

from mt import Translator
from tests.conftest import DEVICE

DOG, CAT = "The dog sees the cat.", "The cat follows the dog."
LONG = "the dog " * 150  # too long for the model twice
LINE_BREAKS = ("\n", "\r\n", "\r", "\n\n", "\n \n", "\u2029")
JOINED = {
    **{repr(line_break): ("{0}  {1}{0}{2} {0}", line_break) for line_break in LINE_BREAKS},
    "sentences": ("{1}  {2} \n{1}", ""),
}
"""Texts made of a line break and the two sentences."""


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


def test_texts_and_lists(client: httpx.Client, expected: Callable[..., list[str]]) -> None:
    assert asked(client, q=DOG) == {"translatedText": expected(DOG)[0]}
    assert asked(client, q=[DOG, CAT], target="fr") == {"translatedText": expected(DOG, CAT, target="fr")}
    halves = expected(LONG.strip(), LONG.strip())
    assert asked(client, q=(LONG + LONG).strip())["translatedText"] == " ".join(halves)


@pytest.mark.parametrize(("pattern", "line_break"), JOINED.values(), ids=JOINED)
def test_sentences_are_translated_one_by_one(
    client: httpx.Client, expected: Callable[..., list[str]], pattern: str, line_break: str
) -> None:
    text, translation = (pattern.format(line_break, *sides) for sides in ((DOG, CAT), expected(DOG, CAT)))
    assert asked(client, q=text)["translatedText"] == translation


def test_alternatives(client: httpx.Client, several_directions: Path) -> None:
    translator = Translator.load(several_directions, device=DEVICE)
    options = replace(translator.options, beam_size=4, n_best=4)
    best = translator.translate_many([DOG, CAT], source="en", target="de", options=options)
    ranked = [list(dict.fromkeys(each.text for each in translation.alternatives)) for translation in best]
    answer = asked(client, q=[DOG, CAT, ""], alternatives=3)
    assert answer["translatedText"] == [*(translation.text for translation in best), ""]
    assert answer["alternatives"] == [*(texts[1:] for texts in ranked), []]
    lines = asked(client, q=f"{DOG}\n\n{CAT}", alternatives=2)
    assert all(text.count("\n") == 2 for text in (lines["translatedText"], *lines["alternatives"]))
    assert lines["translatedText"] not in lines["alternatives"]


def test_detection(client: httpx.Client, expected: Callable[..., list[str]]) -> None:
    answer = asked(client, q=[DOG, ""], source="auto", target="fr")
    assert answer["translatedText"] == [*expected(DOG, target="fr"), ""]
    assert [each["language"] for each in answer["detectedLanguage"]] == ["en", "en"]
    assert 90 < answer["detectedLanguage"][0]["confidence"] <= 100
    assert asked(client, q=DOG, source="auto", target="en")["translatedText"] == DOG


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
