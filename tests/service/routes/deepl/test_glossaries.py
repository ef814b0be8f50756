"""The official SDK: glossaries of one pair of languages, and of several."""

import deepl
import httpx
import pytest
from deepl.api_data import MultilingualGlossaryDictionaryEntries as Entries

from mt.languages import Direction, DirectionSet
from service.errors import InvalidRequest
from service.glossaries.entries import EntriesFormat
from service.languages import TranslationRoutes
from service.routes.deepl.glossaries import DictionaryBody, parse_dictionaries
from tests.service.application import Application, single


def test_a_glossary_may_come_as_csv(client: deepl.DeepLClient) -> None:
    made = client.create_glossary_from_csv("csv", "EN", "DE", '"dog, big",Hund,en,de\r\n\r\n"say ""so""",also\r\n')
    assert client.get_glossary_entries(made) == {"dog, big": "Hund", 'say "so"': "also"}
    made = client.create_glossary_from_csv("excel", "DE", "EN", "Straße;street\r\nAcme, Inc.;Acme\r\n;;\r\n")
    assert client.get_glossary_entries(made) == {"Straße": "street", "Acme, Inc.": "Acme"}
    made = client.create_glossary_from_csv("csv", "EN", "DE", "dog,Hund;Köter\n")  # DeepL's separator
    assert client.get_glossary_entries(made) == {"dog": "Hund;Köter"}
    entries = {'"quoted"': 'a "b', "it's": 'so "'}  # the SDK writes TSV without quotes
    assert client.get_glossary_entries(client.create_glossary("x", "EN", "DE", entries)) == entries


def test_a_time_has_a_fraction(running: Application, client: deepl.DeepLClient) -> None:
    """The SDK cannot read one without."""
    made = client.create_glossary("x", "EN", "DE", {"a": "b"})
    change = "UPDATE glossaries SET created = 1000000000"
    running.database.run_sync(lambda connection: connection.execute(change).fetchone())
    assert client.get_glossary(made.glossary_id).creation_time.timestamp() == 1_000_000_000


def test_a_glossary_belongs_to_its_key(running: Application, client: deepl.DeepLClient) -> None:
    made = client.create_glossary("mine", "EN", "DE", {"dog": "Hund"})
    other, headers = running.client, running.headers("poor")
    assert running.sdk("poor").list_glossaries() == []
    one = {"source_lang": "en", "target_lang": "de", "entries": "a\tb", "entries_format": "tsv"}
    text = {"text": "dog", "source_lang": "EN", "target_lang": "DE", "glossary_id": made.glossary_id}
    old, new = f"/v2/glossaries/{made.glossary_id}", f"/v3/glossaries/{made.glossary_id}"
    for method, path, body in (
        ("GET", old, None),
        ("GET", f"{old}/entries", None),
        ("DELETE", old, None),
        ("GET", new, None),
        ("PATCH", new, {"name": "yours", "dictionaries": [one]}),
        ("PUT", f"{new}/dictionaries", one),
        ("DELETE", f"{new}/dictionaries?source_lang=en&target_lang=de", None),
        ("DELETE", new, None),
        ("POST", "/v2/translate", text),
    ):
        answer = other.request(method, path, json=body, headers=headers)
        assert (answer.status_code, "There is no glossary" in answer.text) == (404, True), (method, path)
    assert client.get_glossary(made.glossary_id).name == "mine"
    assert client.get_glossary_entries(made) == {"dog": "Hund"}


def test_a_change_that_breaks_a_limit_changes_nothing(client: deepl.DeepLClient, raw: httpx.Client) -> None:
    made = client.create_glossary("mine", "EN", "DE", {"dog": "Hund"})
    entries = "\n".join(f"{number}\tx" for number in range(10_000))
    one = {"source_lang": "en", "target_lang": "de", "entries": entries, "entries_format": "tsv"}
    answer = raw.patch(f"/v3/glossaries/{made.glossary_id}", json={"name": "new", "dictionaries": [one]})
    assert "the glossary would have 10001 entries; accepted: at most 10000" in answer.json()["message"]
    assert client.get_glossary(made.glossary_id).name == "mine"
    assert client.get_glossary_entries(made) == {"dog": "Hund"}


DOGS = {"name": "x", "source_lang": "en", "target_lang": "de", "entries": "dog\tHund", "entries_format": "tsv"}
TOO_MANY = "\n".join(f"{number}\tx" for number in range(10_001))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        *(("name", name, "name must have") for name in ("", "  ", "x" * 501)),
        *((name, "XX", f"'{name}' not supported: 'XX'") for name in ("source_lang", "target_lang")),
        ("source_lang", "de", "language pair: de-de; accepted: de-en, "),
        ("entries", "dog\tHund\ndog\tKöter", "line 2: 'dog' is already on line 1"),
        ("entries", "dog\tHund\n\ncat", "line 3: 1 column, without a tab; accepted: a term and its translation"),
        ("entries", "do\u0007g\tHund", "line 1: the term has a control character"),
        ("entries", "dog\tHu\u2028nd", "line 1: the translation has a control character"),
        ("entries", "dog\t" + "ü" * 501, "line 1: the translation has more than 500 characters"),
        ("entries", 'a,b\n"c,d', "line 2: "),
        ("entries", 'a,"b"\r\n\r\nc,d\r\ne', "line 4: 1 column, without a comma"),  # as an editor counts
        ("entries", "word\n" * 25, "accepted: a term and its translation (2 columns); line 2: "),
        ("entries", "word\n" * 25, "; and 6 more"),
        ("entries", "", "entries must not be empty"),
        ("entries", TOO_MANY, "the glossary would have 10001 entries; accepted: at most 10000"),
    ],
)
def test_a_glossary_that_cannot_be_used_is_refused(raw: httpx.Client, field: str, value: str, message: str) -> None:
    kind = {"entries_format": "csv"} if "," in value else {}
    answer = raw.post("/v2/glossaries", json=DOGS | kind | {field: value})
    assert (answer.status_code, message in answer.json()["message"]) == (400, True), answer.json()["message"]
    assert raw.get("/v2/glossaries").json() == {"glossaries": []}


async def test_too_many_entries_do_not_wait_for_the_thread_that_writes() -> None:
    body = DictionaryBody(source_lang="en", target_lang="de", entries=TOO_MANY, entries_format=EntriesFormat.TSV)
    with pytest.raises(InvalidRequest, match="10001 entries"):
        await parse_dictionaries([body], TranslationRoutes([DirectionSet.of([Direction("en", "de")])]))


def test_glossaries_are_for_languages_that_are_there(client: deepl.DeepLClient) -> None:
    pairs = {(pair.source_lang, pair.target_lang) for pair in client.get_glossary_languages()}
    assert {("en", "de"), ("en", "pt"), ("en", "zh"), ("de", "en"), ("fr", "en"), ("fr", "de")} <= pairs
    assert not any(target == "fr" for _, target in pairs)


def test_a_key_has_only_so_many_glossaries(client: deepl.DeepLClient) -> None:
    for number in range(5):
        client.create_glossary(str(number), "EN", "DE", {"a": "b"})
    with pytest.raises(deepl.DeepLException, match="5 glossaries are stored already; accepted: at most 5"):
        client.create_glossary("one more", "EN", "DE", {"a": "b"})


def test_the_older_calls_list_glossaries_of_one_pair(client: deepl.DeepLClient) -> None:
    both = [Entries("EN", "DE", {"dog": "Hund"}), Entries("DE", "EN", {"Kuh": "cow"})]
    made = client.create_multilingual_glossary("both", both)
    assert [(each.source_lang, each.entry_count) for each in made.dictionaries] == [("EN", 1), ("DE", 1)]
    cow = client.translate_text("Kuh", source_lang="DE", target_lang="EN-GB", glossary=made.glossary_id)
    assert (single(cow).text, client.list_glossaries()) == ("cow", [])
    client.delete_multilingual_glossary_dictionary(made, source_lang="DE", target_lang="EN")
    with pytest.raises(deepl.GlossaryNotFoundException, match="no dictionary from de to en"):
        client.get_multilingual_glossary_entries(made, "DE", "EN")
    assert [each.name for each in client.list_glossaries()] == ["both"]


def test_dictionaries_in_a_form(raw: httpx.Client) -> None:
    """The clients for Node, Java and .NET send lists of objects in this way."""
    back = {"source_lang": "de", "target_lang": "en", "entries": "Hund\tdog", "entries_format": "tsv"}
    both = [{name: value for name, value in DOGS.items() if name != "name"}, back]
    form = {f"dictionaries[{place}].{name}": value for place, one in enumerate(both) for name, value in one.items()}
    empty, made = (raw.post("/v3/glossaries", data={"name": "both", **more}) for more in ({}, form))
    assert (empty.status_code, empty.json()["dictionaries"], made.status_code) == (201, [], 201)
    assert [each["entry_count"] for each in made.json()["dictionaries"]] == [1, 1]
    url = f"/v3/glossaries/{made.json()['glossary_id']}"
    more = {name: value for name, value in form.items() if "[0]" in name} | {"dictionaries[0].entries": "cat\tKatze"}
    assert [each["entry_count"] for each in raw.patch(url, data=more).json()["dictionaries"]] == [2, 1]
    for nothing in ({}, {"names": "x"}, {"dictionaries[0].": "x"}):
        refused = raw.patch(url, data=nothing)
        message = "Invalid request: the body has neither name nor dictionaries; accepted: at least one of them"
        assert (refused.status_code, refused.json()["message"]) == (400, message)
