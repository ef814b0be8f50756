"""Translation memories over HTTP: uploads, matches in translations, and suggestions."""

import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

from mt.data.translation_memory import read_tab_separated, write_tmx
from mt.errors import DataError
from mt.languages import Direction
from service.access.control import SUGGESTIONS_PER_DAY
from service.memories.store import OPERATOR, PART_BYTES, SMALL_FILE, UPLOADS, MemoryLimits, read_units
from service.memories.units import MemoryUnit
from service.routes.memories import tmx_parts
from tests.service.application import Application
from tests.service.doubles import upper

TMX = """<tmx version="1.4"><header/><body>
<tu><tuv xml:lang="en-US"><seg>The <bpt i="1">b</bpt>dog<ept i="1"/> sleeps.</seg></tuv>
<tuv xml:lang="de"><seg>Der Hund schläft &amp; träumt.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Two red cats eat a fish.</seg></tuv>
<tuv xml:lang="de"><seg>Zwei rote Katzen fressen einen Fisch.</seg></tuv></tu>
</body></tmx>"""
XLIFF = """<xliff version="2.0" srcLang="en" trgLang="de" xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f">
<unit id="1"><segment state="final"><source>Yes</source><target>Ja</target></segment></unit></file></xliff>"""
DOG, CATS = "Der Hund schläft & träumt.", "Zwei rote Katzen fressen einen Fisch."


@pytest.fixture
def headers(native: Application) -> dict[str, str]:
    return native.headers()


def put(native: Application, file: str, content: str | bytes, status: int = 200, **fields: str) -> Any:
    form = {"source": "en", "target": "de", "api_key": native.keys["rich"], **fields}
    data = content.encode() if isinstance(content, str) else content
    response = native.client.put("/memories", files={"file": (file, data)}, data=form)
    assert response.status_code == status, response.text
    return response.json()


@pytest.fixture
def memory(native: Application) -> str:
    return str(put(native, "animals.tmx", TMX)["id"])


def asked(native: Application, q: Any, memory: str, **fields: Any) -> Any:
    body = {"q": q, "source": "en", "target": "de", "memory": memory, "api_key": native.keys["rich"], **fields}
    return native.post("/translate", body)


def test_a_memory_lives_from_upload_to_delete(native: Application, headers: dict[str, str]) -> None:
    made = put(native, "pets.tmx", TMX)
    assert (made["name"], made["source"], made["target"]) == ("pets", "en", "de")
    assert (made["units"], made["skipped"]) == (2, 0)
    assert abs(made["created"] - time.time()) < 60
    again = put(native, "other.tsv", "Yes\tJa\n\t\nNo\t \n", name="pets")
    assert (again["id"], again["units"], again["skipped"]) == (made["id"], 3, 2)
    listed = native.client.get("/memories", headers=headers).json()["memories"]
    assert made["id"] in [one["id"] for one in listed]
    assert native.client.get(f"/memories/{made['id']}", params={"api_key": native.keys["poor"]}).status_code == 404
    exported = native.client.get(f"/memories/{made['id']}/tmx", params={"api_key": native.keys["rich"]})
    assert "pets.tmx" in exported.headers["content-disposition"]
    texts = [segment.text for segment in ElementTree.fromstring(exported.text).iter("seg")]
    assert texts == ["The dog sleeps.", DOG, "Two red cats eat a fish.", CATS, "Yes", "Ja"]
    assert put(native, "copy.tmx", exported.text)["units"] == 3
    assert native.client.delete(f"/memories/{made['id']}", headers=headers).status_code == 204
    assert native.client.get(f"/memories/{made['id']}", headers=headers).status_code == 404


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.xliff", XLIFF),
        ("a.TSV", "Yes\tJa"),
        ("excel.tsv", '"Yes, ""sir"""\tJa\r\nYes\tJa\r\nOut\tAußen\r\n'.encode("utf-16")),
        ("excel.tsv", "Yes\tJa\r\nOut\tAußen\r\n".encode("cp1252")),
    ],
)
def test_formats(native: Application, name: str, content: str | bytes) -> None:
    made = put(native, name, content, name=f"of {name}")
    assert asked(native, "Yes", made["id"])["translatedText"] == "Ja"


@pytest.mark.parametrize(
    ("first", "pairs"),
    [
        ("en\tde", [("Yes", "Ja"), ("No", "Nein")]),
        ("EN-US\tdeu\tnote", [("Yes", "Ja"), ("No", "Nein")]),
        ("de_AT\ten", [("Ja", "Yes"), ("Nein", "No")]),  # the heading says which column is the source
        ("it\tes", [("it", "es"), ("Yes", "Ja"), ("No", "Nein")]),  # words, and codes of other languages
        ("en", None),
    ],
)
def test_a_first_line_with_both_languages_is_a_heading(first: str, pairs: list[tuple[str, str]] | None) -> None:
    content = f"\ufeff{first}\r\nYes\tJa\tx\r\nNo\tNein\ty\r\n".encode()
    read = read_tab_separated("a.tsv", content, "en", "de")
    if pairs is None:
        with pytest.raises(DataError, match=r"a\.tsv:1: has 1 column"):
            list(read)
    else:
        assert [(pair.source, pair.target) for pair in read] == pairs


@pytest.mark.parametrize(
    ("name", "content", "fields", "said"),
    [
        ("a.docx", "x", {}, "accepted: .tmx, .xliff, .xlf, .po, .tsv"),
        ("a.tmx", "<tmx><body><tu>", {}, "not well-formed XML"),
        ("a.tmx", TMX, {"target": "fr"}, "no unit has both en and fr; languages of its units: de, en, en-US"),
        ("a.tsv", "no tab", {}, "a.tsv:1: has 1 column where at least 2 are needed"),
        ("a.tmx", TMX, {"target": "xx"}, "xx is not supported"),
        ("a.tmx.gz", TMX, {}, "the file format is not supported"),
    ],
)
def test_files_that_cannot_be_used_are_refused(
    native: Application, name: str, content: str, fields: dict[str, str], said: str
) -> None:
    assert said in put(native, name, content, 400, **fields)["error"]


def test_a_file_with_too_many_units_is_refused(native: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native.services.memories, "limits", MemoryLimits(units=2))
    assert "the file has more than 2 units" in put(native, "a.tsv", "a\tb\nc\td\ne\tf\n", 413)["error"]


def test_few_large_files_are_in_memory_at_a_time(native: Application) -> None:
    """They wait for the one thread that writes, and take much more memory than the files."""
    uploads, callers = native.services.memories.uploads, [f"caller {number}" for number in range(UPLOADS)]
    for caller in callers:
        native.wait(uploads.acquire(caller))
    with ThreadPoolExecutor(1) as pool:
        large = pool.submit(put, native, "large.tsv", "One\tEins\n" + "\t\n" * SMALL_FILE)
        assert put(native, "small.tsv", "One\tEins\n")["units"] == 1
        wait([large], 0.3)
        assert not large.done()
        native.do(lambda: list(map(uploads.release, callers)))
        assert large.result()["units"] == 1


def test_an_upload_that_waits_ends_with_its_client(native: Application) -> None:
    uploads, callers = native.services.memories.uploads, [f"caller {number}" for number in range(UPLOADS)]
    for caller in callers:
        native.wait(uploads.acquire(caller))
    file = {"file": ("large.tsv", "One\tEins\n" + "\t\n" * SMALL_FILE)}
    with pytest.raises(httpx.ReadTimeout):
        native.client.put("/memories", data={"source": "en", "target": "de"}, files=file, timeout=0.5)
    native.until(lambda: not native.services.fleet.gate.active)
    native.do(lambda: list(map(uploads.release, callers)))


def test_an_answer_states_its_match(native: Application, memory: str) -> None:
    texts = ["The dog sleeps.", "Two red dogs eat a fish.", "A house."]
    assert asked(native, texts, memory)["match"] == [1.0, None, None]  # a similar match needs a threshold
    answer = asked(native, texts, memory, memory_threshold=80)
    assert answer["translatedText"] == [DOG, CATS, "A HOUSE."]
    assert answer["match"] == [1.0, 0.86, None]  # one of seven words differs
    single = asked(native, "The dog sleeps. A house.", memory, segments=True)
    assert single["translatedText"] == f"{DOG} A HOUSE."
    assert [segment.get("match") for segment in single["segments"]] == [1.0, None]
    assert single["match"] == pytest.approx(15 / 23, abs=0.01)  # characters of the sentences
    assert "match" not in asked(native, "A house.", memory)
    assert "match" not in native.post("/translate", {"q": "Hi", "source": "en", "target": "de"})


def test_matches_reach_markup_streams_and_detected_languages(native: Application, memory: str) -> None:
    html = asked(native, "<p>The <b>dog</b> sleeps.</p>", memory, format="html")
    assert html["match"] == 1.0
    assert re.sub("</?b>", "", html["translatedText"]) == f"<p>{DOG.replace('&', '&amp;')}</p>"
    body = {"q": "The dog sleeps. No.", "source": "en", "target": "de", "memory": memory, "stream": True}
    events = native.client.post("/translate", json={**body, "api_key": native.keys["rich"]}).text
    assert DOG in events.partition("event: done")[0]
    assert '"match":' in events.partition("event: done")[2]
    assert asked(native, "The dog sleeps.", memory, source="auto")["match"] == 1.0


def test_an_exact_match_also_applies_through_a_pivot(native: Application) -> None:
    made = put(native, "a.tsv", "One two.\tUn deux.\nThree big red four.\tTrois quatre.\n", target="fr", name="fr")
    answer = asked(native, ["One two.", "Three big red five."], made["id"], target="fr")
    assert answer["translatedText"] == ["Un deux.", "FIVE RED BIG THREE."]
    assert answer["match"] == [1.0, None]
    streamed = {"q": "One two.", "source": "en", "target": "fr", "memory": made["id"], "stream": True}
    assert "Un deux." in native.client.post("/translate", json={**streamed, "api_key": native.keys["rich"]}).text


async def test_a_large_export_is_written_in_parts() -> None:
    units = [MemoryUnit("&" * 4000, f"{number}") for number in range(300)]

    async def pages() -> AsyncIterator[list[MemoryUnit]]:
        yield units[:200]
        yield units[200:]

    written = [part async for part in tmx_parts(pages(), "en", "de")]
    assert len(written) == 6 and written[2] == written[4] == b""  # see DocumentStore.parts
    assert b"".join(written).decode() == "".join(write_tmx(units, "en", "de"))


@pytest.mark.parametrize("texts", ["&" * 3000, ""])
def test_a_part_of_an_export_is_small_in_tmx(native: Application, texts: str) -> None:
    """Texts grow in TMX, where `&` has five bytes, and each unit has tags."""
    id = put(native, "a.tsv", "".join(f"{number}{texts}\t{texts}a\n" for number in range(1500)))["id"]
    units = native.database.run_sync(partial(read_units, id=id, first=0))
    size = len("".join(write_tmx(units, "en", "de")))
    assert PART_BYTES / 2 < size < PART_BYTES + 10 * len(texts) + 1000


def test_a_file_is_translated_with_a_memory(native: Application, memory: str) -> None:
    form = {"source": "en", "target": "de", "memory": memory, "api_key": native.keys["rich"]}
    made = native.client.post("/translate_file", files={"file": ("a.txt", b"The dog sleeps.")}, data=form).json()
    assert native.client.get(made["translatedFileUrl"]).text == DOG


def test_a_translation_is_not_cached_across_changes_of_the_memory(native: Application) -> None:
    made = put(native, "a.tsv", "Yes.\tJa.", name="changing")
    assert asked(native, "Yes.", made["id"])["translatedText"] == "Ja."
    put(native, "a.tsv", "Yes.\tJawohl.", name="changing")
    assert asked(native, "Yes.", made["id"])["translatedText"] == "Jawohl."


def suggested(native: Application, status: int = 200, **fields: str) -> Any:
    body = {"q": "Hello.", "s": "Hallo.", "source": "en", "target": "de", **fields}
    response = native.client.post("/suggest", data=body)
    assert response.status_code == status, response.text
    return response.json()


def test_a_suggestion_goes_to_a_memory_of_the_operator(native: Application, headers: dict[str, str]) -> None:
    assert suggested(native) == {"success": True}
    assert suggested(native, q="Bye.", s="Tschüs.") == {"success": True}
    (memory,) = native.wait(native.services.memories.owned(OPERATOR))
    assert (memory.name, memory.direction, memory.units) == ("suggestions", Direction("en", "de"), 2)
    assert asked(native, "Bye.", memory.id)["translatedText"] == "Tschüs."
    assert native.client.get(f"/memories/{memory.id}/tmx", headers=headers).status_code == 404


def test_suggestions_that_cannot_be_used_are_refused(native: Application) -> None:
    assert "q and s must have 1 to 4000 characters" in suggested(native, 400, s=" ")["error"]
    assert "missing s parameter" in native.client.post("/suggest", json={"q": "a", "source": "en", "target": "de"}).text
    assert "xx is not supported" in suggested(native, 400, target="xx")["error"]
    assert "both German" in suggested(native, 400, source="de")["error"]


def test_a_caller_has_a_number_of_suggestions(native: Application) -> None:
    key, access = native.keys["poor"], native.services.access
    caller = native.wait(access.admit(key, ""))
    native.do(lambda: list(map(access.count_suggestion, [caller] * (SUGGESTIONS_PER_DAY - 1))))
    suggested(native, api_key=key)
    assert "Slowdown: 500 per 1 day" in suggested(native, 429, api_key=key)["error"]


@pytest.fixture(scope="module")
def offering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    glossary = tmp_path_factory.mktemp("offered") / "terms.csv"
    glossary.write_text("station,Bahnhof,en,de\ngare,Bahnhof,fr,de\ndog,chien,en,fr\n", encoding="utf-8")
    offered: dict[str, Any] = {"page_memories": ("suggestions", "house"), "page_glossary": glossary}
    with Application({"en-de": upper, "fr-de": upper}, **offered) as running:
        yield running


def test_the_page_gets_the_memories_and_terms_that_the_operator_names(offering: Application) -> None:
    for name in ("house", "other", "suggestions"):
        units = [MemoryUnit("Yes.", "Ja.")]
        offering.wait(offering.services.memories.put(OPERATOR, name, Direction("en", "de"), units))
    found = offering.client.get("/frontend/settings").json()
    term = {"term": "station", "translation": "Bahnhof", "source": "en", "target": "de"}
    assert found["glossary"][0] == term and len(found["glossary"]) == 3
    first, memory = found["memories"]  # in the order of the setting
    id = memory.pop("id")
    assert memory == {"name": "house", "source": "en", "target": "de", "units": 1}
    assert first["name"] == "suggestions"
    assert asked(offering, "Yes.", id)["translatedText"] == "Ja."


@pytest.mark.parametrize(
    ("fields", "translations"),
    [
        ({"source": "auto"}, ["THE Bahnhof GARE DOG", "LE STATION Bahnhof DOG"]),  # each with the terms of its language
        ({"source": "en"}, ["THE Bahnhof GARE DOG", "LE Bahnhof GARE DOG"]),
        ({"glossary": {"dog": "Köter", "gare": "Halt"}}, ["THE Bahnhof Halt Köter", "LE STATION Halt Köter"]),
        ({"do_not_translate": ["station"]}, ["THE station GARE DOG", "LE station Bahnhof DOG"]),
    ],
)
def test_the_terms_of_the_operator_by_language(
    offering: Application, fields: dict[str, Any], translations: list[str]
) -> None:
    texts = ["the station gare dog", "le station gare dog"]
    body = {"source": "auto", "target": "de", "glossary_id": "operator", **fields}
    assert offering.post("/translate", {**body, "q": texts})["translatedText"] == translations
    form = {name: value if isinstance(value, str) else json.dumps(value) for name, value in body.items()}
    for text, translation in zip(texts, translations, strict=True):
        sent = offering.client.post("/translate_file", data=form, files={"file": ("a.txt", text.encode())})
        assert offering.client.get(sent.json()["translatedFileUrl"]).text == translation


def test_clients_of_deepl_name_the_terms_of_the_operator(offering: Application) -> None:
    body = {"text": ["the station gare dog"], "source_lang": "EN", "target_lang": "DE", "glossary_id": "operator"}
    assert offering.post("/v2/translate", body)["translations"][0]["text"] == "THE Bahnhof GARE DOG"


def test_a_reload_replaces_the_terms_of_the_operator(offering: Application) -> None:
    """If it leaves none, the glossary is used all the same, as one without terms."""
    path, reloads = offering.settings.page_glossary, offering.services.fleet.reloads_too
    assert path and reloads
    before = path.read_text(encoding="utf-8")
    body = {"q": "the gare dog", "source": "en", "target": "de", "glossary_id": "operator", "glossary": {"dog": "Hund"}}
    for text, terms in ((before + "cat,gatto,en,it\n", 4), ("", 0), (before, 3)):
        path.write_text(text, encoding="utf-8")
        for step in reloads:
            step()
        assert len(offering.client.get("/frontend/settings").json()["glossary"]) == terms
        assert offering.post("/translate", body)["translatedText"] == "THE GARE Hund"


def test_suggestions_are_off_by_default(deepl_application: Application) -> None:
    deepl_application.renew()  # another test revokes a key
    assert "disabled" in suggested(deepl_application, 403, api_key=deepl_application.keys["rich"])["error"]
    assert not deepl_application.client.get("/frontend/settings").json()["suggestions"]


def test_an_upload_may_be_larger_than_other_bodies(native: Application) -> None:
    lines = "".join(f"{number}\tx\n" for number in range(20_000))
    assert len(lines) > native.settings.max_body_bytes
    assert put(native, "large.tsv", lines)["units"] == 20_000
