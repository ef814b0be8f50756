"""The sentences of a translated file over HTTP: read, edited, written and exported."""

import io
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import docx
import httpx
import pytest

from mt.data.translation_memory import XML_LANGUAGE
from tests.service.doubles import Guesses, WordModels, backwards
from tests.service.native import Native

LINES = "The dog sleeps. Two cats!\n\nA house.\n"


@pytest.fixture(scope="module")
def native() -> Iterator[Native]:
    running = Native(lambda: WordModels({"en-de": backwards}), {"detector": Guesses}, {"max_body_bytes": 100_000})
    yield running
    running.stop()


@pytest.fixture
def headers(native: Native) -> dict[str, str]:
    return {"Authorization": f"DeepL-Auth-Key {native.keys['rich']}"}


def upload(native: Native, name: str, content: bytes, **fields: str) -> Any:
    form = {"source": "en", "target": "de", "api_key": native.keys["rich"], "segments": "true", **fields}
    response = native.client.post("/translate_file", files={"file": (name, content)}, data=form)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.fixture
def document(native: Native) -> str:
    return f"/documents/{upload(native, 'note.txt', LINES.encode())['documentId']}"


def get(native: Native, path: str, key: str = "rich", **query: Any) -> httpx.Response:
    return native.client.get(path, params={"api_key": native.keys[key], **query})


def put(native: Native, path: str, target: Any, key: str = "rich") -> httpx.Response:
    return native.client.put(path, json={"target": target, "api_key": native.keys[key]})


def test_a_document_is_kept_only_if_the_request_says_so(native: Native) -> None:
    assert upload(native, "note.txt", b"The dog.", segments="false").keys() == {"translatedFileUrl"}


def test_sentences_are_listed_in_pages(native: Native, document: str) -> None:
    listed = get(native, f"{document}/segments").json()
    assert {name: listed[name] for name in ("name", "source", "target", "count")} == {
        "name": "note.txt",
        "source": "en",
        "target": "de",
        "count": 3,
    }
    assert "next" not in listed
    assert [(one["number"], one["source"], one["target"]) for one in listed["segments"]] == [
        (0, "The dog sleeps.", "sleeps dog The."),
        (1, "Two cats!", "cats Two!"),
        (2, "A house.", "house A."),
    ]
    assert listed["segments"][0] | {"quality": 50.0, "edited": False} == listed["segments"][0]
    rest = get(native, f"{document}/segments", first=2).json()
    assert [one["number"] for one in rest["segments"]] == [2]
    assert get(native, f"{document}/segments", first=3).json()["segments"] == []
    many = upload(native, "many.txt", b"The dog.\n\n" * 150)["documentId"]
    assert get(native, f"/documents/{many}/segments").json()["next"] == 100
    assert len(get(native, f"/documents/{many}/segments", first=100).json()["segments"]) == 50


def test_an_edit_is_in_the_file_and_in_the_tmx(native: Native, document: str, headers: dict[str, str]) -> None:
    assert native.client.get(f"{document}/file", headers=headers).text == "sleeps dog The. cats Two!\n\nhouse A.\n"
    answer = put(native, f"{document}/segments/1", "Zwei\nKatzen & ein Hund!")
    assert answer.json() == {
        "number": 1,
        "source": "Two cats!",
        "target": "Zwei Katzen & ein Hund!",
        "edited": True,
        "quality": 50.0,
    }
    assert put(native, f"{document}/segments/2", "").json()["target"] == ""
    listed = get(native, f"{document}/segments").json()["segments"]
    assert [(one["target"], one["edited"]) for one in listed[1:]] == [("Zwei Katzen & ein Hund!", True), ("", True)]
    written = native.client.get(f"{document}/file", headers=headers)
    assert written.text == "sleeps dog The. Zwei Katzen & ein Hund!\n\n\n"
    assert written.headers["content-disposition"].endswith("note_de.txt")
    exported = get(native, f"{document}/tmx")
    assert exported.headers["content-disposition"].endswith("note_de.tmx")
    variants = ElementTree.fromstring(exported.text).iter("tuv")
    assert [(one.get(XML_LANGUAGE), one.findtext("seg")) for one in variants] == [
        *(("en", "The dog sleeps."), ("de", "sleeps dog The.")),
        *(("en", "Two cats!"), ("de", "Zwei Katzen & ein Hund!")),
    ]


def test_marks_stay_with_their_words(native: Native, headers: dict[str, str]) -> None:
    made = docx.Document()
    paragraph = made.add_paragraph("The dog sees a ")
    paragraph.add_run("house").bold = True
    paragraph.add_run(". The end.")
    content = io.BytesIO()
    made.save(content)
    document = f"/documents/{upload(native, 'a.docx', content.getvalue())['documentId']}"
    assert get(native, f"{document}/segments").json()["segments"][0]["target"] == "house a sees dog The."

    def runs() -> list[tuple[str, bool]]:
        written = docx.Document(io.BytesIO(native.client.get(f"{document}/file", headers=headers).content))
        return [(run.text, bool(run.bold)) for run in written.paragraphs[0].runs if run.text]

    assert runs() == [("house", True), (" a sees dog The. end The.", False)]
    put(native, f"{document}/segments/0", "Gebäude a sees dog The.")
    assert runs() == [("Gebäude", True), (" a sees dog The. end The.", False)]
    put(native, f"{document}/segments/0", "Dort: Gebäude a sees it.")
    assert runs() == [("Dort: ", False), ("Gebäude", True), (" a sees it. end The.", False)]


def test_a_match_of_the_memory_is_stated(native: Native) -> None:
    unit = {"file": ("a.tsv", b"A house.\tEin Haus.\n")}
    form = {"source": "en", "target": "de", "api_key": native.keys["rich"]}
    memory = native.client.put("/memories", files=unit, data=form).json()["id"]
    document = upload(native, "note.txt", LINES.encode(), memory=memory)["documentId"]
    listed = get(native, f"/documents/{document}/segments").json()["segments"]
    assert [(one["target"], one.get("match")) for one in listed[1:]] == [("cats Two!", None), ("Ein Haus.", 1.0)]


def test_text_in_the_target_language_and_files_that_are_converted(native: Native) -> None:
    same = upload(native, "a.txt", b"der Hund. zwei", source="auto")["documentId"]
    listed = get(native, f"/documents/{same}/segments").json()
    assert (listed["source"], listed["segments"][0]["target"]) == ("de", "der Hund. zwei")
    table = upload(native, "a.csv", b"id,name\nA1,two dogs\n", columns="name")["documentId"]
    assert get(native, f"/documents/{table}/file").text == "id,name\nA1,dogs two\n"


def test_other_keys_and_other_numbers_find_nothing(native: Native, document: str) -> None:
    for path in ("segments", "file", "tmx"):
        assert get(native, f"{document}/{path}", key="poor").status_code == 404
        assert get(native, f"/documents/none/{path}").status_code == 404
    assert put(native, f"{document}/segments/0", "x", key="poor").status_code == 404
    assert put(native, f"{document}/segments/3", "x").status_code == 404
    for path, value in (("segments/0", 1), ("segments/-1", "x"), ("segments/x", "x"), ("segments/0", None)):
        assert put(native, f"{document}/{path}", value).status_code == 400
    assert "accepted: at most 20000" in put(native, f"{document}/segments/0", "x" * 20_001).json()["error"]
    assert get(native, f"{document}/segments", first=-1).status_code == 400
    query = {"api_key": native.keys["poor"]}
    assert native.client.delete(document, params=query).status_code == 404
    assert native.client.delete(document, params={"api_key": native.keys["rich"]}).status_code == 204
    assert get(native, f"{document}/segments").status_code == 404
