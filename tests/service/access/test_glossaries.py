"""Stored glossaries: what may be an entry, whose they are, and what outlives the process."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.languages import Direction
from mt.text.terms import Terms
from service.access.database import Database
from service.access.glossaries import (
    Dictionary,
    GlossaryLimits,
    GlossaryStore,
    glossary_direction,
)
from service.access.glossary_entries import EntriesFormat, format_entries, parse_entries
from service.errors import InvalidRequest, NotFound

EN_DE = Direction("en", "de")
WORDS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=20).map(str.strip)


@pytest.fixture
def store() -> Iterator[Database]:
    with Database.open(None) as opened:
        yield opened


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


def test_a_long_list_of_problems_is_cut() -> None:
    with pytest.raises(InvalidRequest, match=r"line 1: .*; line 10: .*; and 15 more lines$"):
        parse_entries("\n".join("word" for _ in range(25)), EntriesFormat.TSV)


def test_a_line_is_counted_as_an_editor_counts_it() -> None:
    with pytest.raises(InvalidRequest, match=r"line 4: no comma"):
        parse_entries('a,"b"\r\n\r\nc,d\r\ne', EntriesFormat.CSV)


def test_glossaries_outlive_the_process(tmp_path: Path) -> None:
    async def keep(store: Database) -> str:
        return (await GlossaryStore(store, GlossaryLimits()).create("me", "animals", [animals(dog="Hund")])).id

    with Database.open(tmp_path / "kept.db") as store:
        id = asyncio.run(keep(store))
    with Database.open(tmp_path / "kept.db") as store:
        found = asyncio.run(GlossaryStore(store, GlossaryLimits()).entries("me", id, EN_DE))
    assert found == (("dog", "Hund"),)


def test_terms_follow_every_change(store: Database) -> None:
    async def run() -> list[Terms]:
        glossaries = GlossaryStore(store, GlossaryLimits())
        first = (await glossaries.create("me", "first", [animals(dog="Hund")])).id
        second = (await glossaries.create("me", "second", [animals(dog="Dogge", cat="Katze")])).id
        found = [await glossaries.terms("me", [first, second], "en", "de")]
        await glossaries.update("me", first, None, [animals(cow="Kuh")])
        found.append(await glossaries.terms("me", [first], "en", "de"))
        await glossaries.replace("me", first, animals(cow="Rind"))
        found.append(await glossaries.terms("me", [first], "en", "de"))
        return found

    assert [dict(terms.glossary) for terms in asyncio.run(run())] == [
        {"dog": "Hund", "cat": "Katze"},
        {"dog": "Hund", "cow": "Kuh"},
        {"cow": "Rind"},
    ]


@pytest.mark.parametrize(("source", "target"), [("en", "pt"), ("en", "pb")])
def test_a_glossary_serves_every_variant_of_a_language(store: Database, source: str, target: str) -> None:
    async def run() -> Terms:
        glossaries = GlossaryStore(store, GlossaryLimits())
        made = await glossaries.create("me", "x", [Dictionary(glossary_direction("en", "pb"), (("train", "trem"),))])
        return await glossaries.terms("me", [made.id], source, target)

    assert asyncio.run(run()).glossary == (("train", "trem"),)


def test_nobody_else_finds_or_changes_a_glossary(store: Database) -> None:
    async def run() -> None:
        glossaries = GlossaryStore(store, GlossaryLimits())
        id = (await glossaries.create("me", "mine", [animals(dog="Hund")])).id
        for attempt in (
            glossaries.get("you", id),
            glossaries.entries("you", id, EN_DE),
            glossaries.update("you", id, "yours", []),
            glossaries.replace("you", id, animals(dog="Katze")),
            glossaries.delete("you", id),
            glossaries.delete_dictionary("you", id, EN_DE),
            glossaries.terms("you", [id], "en", "de"),
        ):
            with pytest.raises(NotFound, match="There is no glossary"):
                await attempt
        assert await glossaries.owned("you") == []
        assert (await glossaries.get("me", id)).dictionaries == ((EN_DE, 1),)

    asyncio.run(run())


def test_what_breaks_a_limit_changes_nothing(store: Database) -> None:
    async def run() -> None:
        glossaries = GlossaryStore(store, GlossaryLimits(glossaries=1, entries=2))
        id = (await glossaries.create("me", "x", [animals(a="1", b="2")])).id
        with pytest.raises(InvalidRequest, match="would have 3 entries of at most 2"):
            await glossaries.update("me", id, "y", [animals(c="3")])
        with pytest.raises(InvalidRequest, match="there are 1 glossaries; accepted: at most 1"):
            await glossaries.create("me", "z", [animals(a="1")])
        kept = await glossaries.get("me", id)
        assert (kept.name, kept.dictionaries) == ("x", ((EN_DE, 2),))
        assert len(await glossaries.owned("me")) == 1

    asyncio.run(run())


@pytest.mark.parametrize("name", ["", "  ", "x" * 501])
def test_a_name_is_neither_empty_nor_endless(store: Database, name: str) -> None:
    with pytest.raises(InvalidRequest, match="name must have"):
        asyncio.run(GlossaryStore(store, GlossaryLimits()).create("me", name, [animals(a="b")]))
