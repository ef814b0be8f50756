"""LibreTranslate's contract, over HTTP."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from mt import Translator
from tests.conftest import DEVICE

DOG = "The dog sees the cat."
CAT = "The cat follows the dog."


@pytest.fixture(scope="module")
def translator(several_directions: Path) -> Translator:
    return Translator.load(several_directions, device=DEVICE)


def asked(client: httpx.Client, **body: Any) -> Any:
    response = client.post("/translate", json={"source": "en", "target": "de", **body})
    assert response.status_code == 200, response.text
    return response.json()


def test_a_string_for_a_string(client: httpx.Client, translator: Translator) -> None:
    expected = translator.translate_many([DOG], source="en", target="de")[0].text
    assert asked(client, q=DOG) == {"translatedText": expected}


def test_a_list_for_a_list(client: httpx.Client, translator: Translator) -> None:
    expected = [found.text for found in translator.translate_many([DOG, CAT], source="en", target="fr")]
    assert asked(client, q=[DOG, CAT], target="fr") == {"translatedText": expected}
    assert asked(client, q=[DOG], target="fr") == {"translatedText": expected[:1]}
    assert asked(client, q=[]) == {"translatedText": []}


def test_alternatives(client: httpx.Client, translator: Translator) -> None:
    options = replace(translator.options, beam_size=4, n_best=4)
    one, two = translator.translate_many([DOG, CAT], source="en", target="de", options=options)
    ranked = [dict.fromkeys(alternative.text for alternative in found.alternatives) for found in (one, two)]
    expected = [list(texts)[1:] for texts in ranked]
    assert asked(client, q=DOG, alternatives=3) == {"translatedText": one.text, "alternatives": expected[0]}
    assert asked(client, q=[DOG, CAT], alternatives=3)["alternatives"] == expected
    assert asked(client, q="", alternatives=3) == {"translatedText": "", "alternatives": []}


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", "\n\n", "\n \n", "\u2029"])
def test_each_line_by_itself_and_line_breaks_as_they_were(client: httpx.Client, line_break: str) -> None:
    dog, cat = asked(client, q=[DOG, CAT])["translatedText"]
    text = f"{line_break}  {DOG}{line_break}{CAT} {line_break}"
    assert asked(client, q=text)["translatedText"] == f"{line_break}  {dog}{line_break}{cat} {line_break}"


def test_alternatives_of_several_lines(client: httpx.Client) -> None:
    found = asked(client, q=f"{DOG}\n\n{CAT}", alternatives=2)
    assert all(text.count("\n") == 2 for text in (found["translatedText"], *found["alternatives"]))
    assert found["translatedText"] not in found["alternatives"]


def test_auto(client: httpx.Client) -> None:
    found = asked(client, q=DOG, source="auto", target="fr")
    told = found.pop("detectedLanguage")
    assert found == asked(client, q=DOG, target="fr")
    assert told["language"] == "en" and 90 < told["confidence"] <= 100
    found = asked(client, q=[DOG, ""], source="auto")
    assert [each["language"] for each in found["detectedLanguage"]] == ["en", "en"]
    assert found["translatedText"] == asked(client, q=[DOG, ""])["translatedText"]


def test_a_text_in_the_target_language_comes_back_as_it_is(client: httpx.Client) -> None:
    for source in ("auto", "en"):
        assert asked(client, q=DOG, source=source, target="en")["translatedText"] == DOG


def test_sentences_are_translated_one_by_one(client: httpx.Client) -> None:
    dog, cat = asked(client, q=[DOG, CAT])["translatedText"]
    assert asked(client, q=f"{DOG}  {CAT} \n{DOG}")["translatedText"] == f"{dog}  {cat} \n{dog}"


def test_a_sentence_that_is_too_long_for_the_model_is_split(client: httpx.Client) -> None:
    half = "the dog " * 150
    expected = asked(client, q=[half.strip(), half.strip()])["translatedText"]
    assert asked(client, q=(half + half).strip())["translatedText"] == " ".join(expected)
