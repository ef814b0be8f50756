"""Stored glossaries, and the operator's for the users of the page: entries, owners, limits."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from mt.languages import Direction
from mt.text.terms import Terms
from service.access.database import Database
from service.errors import InvalidRequest, NotFound, StorageFull
from service.glossaries.entries import EntriesFormat, format_entries, parse_entries
from service.glossaries.offered import OfferedGlossaryError, read_offered
from service.glossaries.store import Dictionary, GlossaryLimits, GlossaryStore, glossary_direction
from tests.service.conftest import PassTime

EN_DE = Direction("en", "de")
WORDS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=20).map(str.strip)


def animals(**entries: str) -> Dictionary:
    return Dictionary(EN_DE, tuple(entries.items()))


@given(st.dictionaries(WORDS.filter(bool), WORDS.filter(lambda word: any(map(str.isalnum, word))), min_size=1))
def test_what_is_written_as_tsv_reads_the_same(entries: dict[str, str]) -> None:
    pairs = tuple(entries.items())
    assert parse_entries("\ufeff" + format_entries(pairs) + "\n", EntriesFormat.TSV) == pairs


@given(st.text(st.sampled_from("ab\t,\"\r\n \u00e9\0\u2028'_")), st.sampled_from(EntriesFormat))
def test_whatever_is_sent_is_refused_or_can_be_used(text: str, format: EntriesFormat) -> None:
    try:
        entries = parse_entries(text, format)
    except InvalidRequest:
        return
    assert Terms(entries)
    assert parse_entries(format_entries(entries), EntriesFormat.TSV) == entries


async def test_terms_follow_every_change(database: Database) -> None:
    glossaries = GlossaryStore(database, GlossaryLimits())
    first = (await glossaries.create("key:me", "first", [animals(dog="Hund")])).id
    second = (await glossaries.create("key:me", "second", [animals(dog="Dogge", cat="Katze")])).id

    async def terms(*ids: str) -> dict[str, str]:
        return dict((await glossaries.terms("key:me", ids, "en", "de")).glossary)

    assert await terms(first, second) == {"dog": "Hund", "cat": "Katze"}
    await glossaries.update("key:me", first, None, [animals(cow="Kuh")])
    assert await terms(first) == {"dog": "Hund", "cow": "Kuh"}
    await glossaries.replace("key:me", first, animals(cow="Rind"))
    assert await terms(first) == {"cow": "Rind"}


@pytest.mark.parametrize(("source", "target"), [("en", "pt"), ("en", "pb")])
async def test_a_glossary_serves_every_variant_of_a_language(database: Database, source: str, target: str) -> None:
    glossaries = GlossaryStore(database, GlossaryLimits())
    dictionary = Dictionary(glossary_direction("en", "pb"), (("train", "trem"),))
    made = await glossaries.create("key:me", "x", [dictionary])
    assert (await glossaries.terms("key:me", [made.id], source, target)).glossary == dictionary.entries


async def test_callers_without_a_key_share_ids_and_no_list(database: Database, pass_time: PassTime) -> None:
    """People behind one address cannot find each other's glossaries; who knows an id may use it from any address."""
    glossaries = GlossaryStore(database, GlossaryLimits(anonymous_seconds=60))
    id = (await glossaries.create("192.0.2.1", "mine", [animals(dog="Hund")])).id
    assert await glossaries.owned("192.0.2.1") == []
    assert (await glossaries.terms("192.0.2.2", [id], "en", "de")).glossary == (("dog", "Hund"),)
    kept = (await glossaries.create("key:me", "mine", [animals(dog="Hund")])).id
    pass_time(60)
    await glossaries.create("192.0.2.1", "later", [animals(dog="Hund")])
    with pytest.raises(NotFound):
        await glossaries.get("192.0.2.1", id)
    assert (await glossaries.get("key:me", kept)).dictionaries == ((EN_DE, 1),)


async def test_bytes_are_limited_for_each_caller_and_for_all(database: Database) -> None:
    """A glossary of 1,000 characters has about 2 KB. Anonymous ones make room, those of keys are never deleted."""
    large = [animals(a="x" * 1000)]
    limits = GlossaryLimits(bytes_per_caller=5000, anonymous_bytes=7000, bytes=7000)
    glossaries = GlossaryStore(database, limits)
    ids = [(await glossaries.create(owner, "x", large)).id for owner in ("10.0.0.1", "10.0.0.1", "10.0.0.2")]
    with pytest.raises(InvalidRequest, match=r"your glossaries would have 61\d\d bytes; accepted: at most 5000"):
        await glossaries.create("10.0.0.1", "x", large)
    ids.append((await glossaries.create("10.0.0.3", "x", large)).id)  # the oldest of the largest owner goes
    with pytest.raises(NotFound):
        await glossaries.get("10.0.0.1", ids[0])
    for id in ids[1:]:
        await glossaries.get("10.0.0.1", id)
    for owner in ("key:a", "key:a", "key:b"):
        await glossaries.create(owner, "x", large)
    with pytest.raises(StorageFull):
        await glossaries.create("key:c", "x", large)
    await glossaries.delete("key:b", (await glossaries.owned("key:b"))[0].id)
    await glossaries.create("key:c", "x", large)
    count = await database.read(lambda connection: connection.execute("SELECT count(*) FROM dictionaries").fetchone())
    assert count == (3 + 3,)


async def test_the_bytes_of_one_glossary_are_limited(database: Database) -> None:
    glossaries = GlossaryStore(database, GlossaryLimits(bytes_per_glossary=3000))
    id = (await glossaries.create("key:me", "x", [animals(a="x" * 1000)])).id
    with pytest.raises(InvalidRequest, match=r"the glossary would have 30\d\d bytes; accepted: at most 3000"):
        await glossaries.update("key:me", id, None, [animals(b="x" * 1000)])
    await glossaries.update("key:me", id, None, [animals(b="x" * 10)])
    with pytest.raises(InvalidRequest, match="accepted: at most 3000"):
        await glossaries.replace("key:me", id, animals(c="x" * 2000))
    query = "SELECT bytes, (SELECT sum(count) FROM dictionaries) FROM glossaries"
    assert (await database.read(lambda connection: connection.execute(query).fetchone()))[1] == 2
    await glossaries.delete_dictionary("key:me", id, EN_DE)
    assert await database.read(lambda connection: connection.execute(query).fetchone()) == (1024, None)


def test_terms_with_their_languages(tmp_path: Path) -> None:
    file = tmp_path / "terms.csv"
    file.write_text('\ufeffstation,Halt,en,de\n\n"Acme, Inc.",Acme,deu,pt-BR\nstation,Halt,en,de\n', encoding="utf-8")
    other = Direction("de", "pt")
    terms = {EN_DE: Terms((("station", "Halt"),)), other: Terms((("Acme, Inc.", "Acme"),))}
    assert read_offered(file, 2) == (terms, {EN_DE: 1, other: 3})


GERMAN = "Straße;street;de;en\r\nAcme, Inc.;Acme;de;en\r\n;;;\r\n"
TABS = '\ufeffStraße\tstreet\tde\ten\r\n"Acme, Inc."\tAcme\tde\ten\r\n'  # Excel's "Unicode text"


@pytest.mark.parametrize(
    "content",
    [
        GERMAN.encode("cp1252"),
        GERMAN.encode("utf-8-sig"),
        f"Deutsch;Englisch;Quelle;Ziel\r\n{GERMAN}".encode("cp1252"),
        f"Term;Übersetzung;von;nach\r\n{GERMAN}".encode(),  # `von`, `to` and `de` are language tags
        f"Term;Translation;from;to\r\n{GERMAN}".encode(),
        f"Terme;Traduction;de;vers\r\n{GERMAN}".encode("cp1252"),
        f"sep=;\r\n{GERMAN}".encode("cp1252"),
        GERMAN.replace("en\r\n", "en;;\r").encode("cp1252"),
        TABS.encode("utf-16-le"),
        TABS.encode("utf-16-be"),
        TABS[1:].encode("cp1252"),
        GERMAN.replace(";", "|").encode(),
        b'"Stra\xdfe",street,de,en\n"Acme, Inc.",Acme,de,en\n',
    ],
)
def test_spreadsheet_programs_write_any_encoding_and_separator(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "terms.csv"
    file.write_bytes(content)
    terms = Terms((("Straße", "street"), ("Acme, Inc.", "Acme")))
    assert read_offered(file, 2)[0] == {Direction("de", "en"): terms}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"station\n", "line 1: 1 column, without a comma; accepted: a term, its translation and their languages"),
        (b"a,b,en,de\nstation,Bahnhof\n", "line 2: 2 columns, divided by a comma; accepted: a term, its tran"),
        (b"a,b,en,de\nstation,Bahnhof,en\n", r"line 2: 3 columns, .* and their languages \(4 columns\)"),
        (b"a,b,en,de,fr\n", "line 1: 5 columns, divided by a comma"),
        (b"c,d,en,fr\na,b,en,!\n", "line 2: '!' is no language code; accepted: such as pt-BR"),
        (b"c,d,en,dr\na,b,en-DR,de\n", "line 1: 'dr' is no language code; .*\n.*line 2: 'en-DR' is no language code"),
        (b"a,b,en,de\n\na,c,eng,de-AT\n", "line 3: 'a' is 'c' here and 'b' in line 1"),
        (b"a,,en,de\n", "line 1: the translation is empty"),
        (b"a,b,en,de\nc,d,en,de\n", "2 terms into de; accepted: at most 1"),
        ("\u200b,b,en,de\n".encode(), "term 1 is '.u200b'; accepted: text with a word"),
        (b"a;b;en;de;fr\n", "line 1: 5 columns, divided by a semicolon"),
        (b"\x00\x01\x02", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "terms.csv"
    file.write_bytes(content)
    with pytest.raises(OfferedGlossaryError, match=problem):
        read_offered(file, 1)


@pytest.mark.parametrize("languages", ["english,german", "en,German", "von,nach"])
def test_a_heading_is_logged(tmp_path: Path, languages: str) -> None:
    """A person whose first term has names instead of codes sees why it is missing."""
    file = tmp_path / "terms.csv"
    file.write_text(f"dog,Hund,{languages}\nstation,Bahnhof,en,de\n", encoding="utf-8")
    with capture_logs() as logs:
        assert read_offered(file, 2)[0] == {EN_DE: Terms((("station", "Bahnhof"),))}
    assert [line["heading"] for line in logs] == [["dog", "Hund", *languages.split(",")]]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(OfferedGlossaryError, match=r"none\.csv"):
        read_offered(tmp_path / "none.csv", 1)
