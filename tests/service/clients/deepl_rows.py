"""Lists, glossaries, memories by the Python client of DeepL, and what is not offered: every method with each option."""

import io
from collections.abc import Callable, Iterable
from typing import Any

import deepl
from deepl.api_data import MultilingualGlossaryDictionaryEntries as Entries
from deepl.api_data import (
    MultilingualGlossaryDictionaryInfo,
    MultilingualGlossaryInfo,
    TranslationMemoryExport,
    TranslationMemoryJob,
)

from tests.service.clients.deepl_texts import DOCUMENTS, TEXTS
from tests.service.clients.rows import EFFECT, TSV, UNIT, Row, World, glossary, multilingual, rows, store_memory

CSV = "dog,Pudel\n"
NOT_OFFERED = "refused: 404"


def usage(world: World) -> bool:
    client = world.deepl
    before = client.get_usage().character.count or 0
    client.translate_text("four", target_lang="DE")
    return client.get_usage().character.count == before + 4


LISTS = [
    *rows(
        "get_source_languages",
        ("", lambda world: [one.code for one in world.deepl.get_source_languages()] == ["DE", "EN", "FR"]),
        ("skip_cache", lambda world: bool(world.deepl.get_source_languages(skip_cache=True)), EFFECT, "client only"),
    ),
    *rows(
        "get_target_languages",
        ("", lambda world: "EN-GB" in [one.code for one in world.deepl.get_target_languages()]),
        ("skip_cache", lambda world: bool(world.deepl.get_target_languages(skip_cache=True)), EFFECT, "client only"),
    ),
    Row("get_glossary_languages", "", lambda world: bool(world.deepl.get_glossary_languages())),
    Row("get_usage", "", usage),
    Row("set_app_info", "", lambda world: bool(world.deepl.set_app_info("x", "1").get_usage()), note="client only"),
    Row("close", "", lambda world: world.deepl.close() is None, note="client only"),  # type: ignore[no-untyped-call]
]


def stored(world: World, made: MultilingualGlossaryInfo) -> dict[str, str]:
    (entries,) = world.deepl.get_multilingual_glossary_entries(made, "EN", "DE").dictionaries
    return dict(deepl.convert_tsv_to_dict(str(entries.entries)))


def change(method: str, change: tuple[Any, ...], expected: dict[str, str]) -> Row:
    """Return the row of a method that changes a glossary to the expected entries."""

    def call(world: World) -> bool:
        made = multilingual(world)
        getattr(world.deepl, method)(made, *change)
        return stored(world, made) == expected

    return Row(method, "", call)


def ids(glossaries: Iterable[Any]) -> list[str]:
    return [one.glossary_id for one in glossaries]


def deleted(world: World) -> bool:
    made = glossary(world)
    world.deepl.delete_glossary(made)
    return made.glossary_id not in ids(world.deepl.list_glossaries())


def deleted_multilingual(world: World) -> bool:
    made = multilingual(world)
    world.deepl.delete_multilingual_glossary(made)
    return made.glossary_id not in ids(world.deepl.list_multilingual_glossaries())


def is_found(world: World) -> bool:
    id, client = multilingual(world).glossary_id, world.deepl
    return client.get_multilingual_glossary(id).name == "words" and id in ids(client.list_multilingual_glossaries())


def without_dictionary(world: World, **options: Any) -> bool:
    made = multilingual(world)
    world.deepl.delete_multilingual_glossary_dictionary(made, **options)
    return world.deepl.get_multilingual_glossary(made.glossary_id).dictionaries == []


DICTIONARY = {"dictionary": MultilingualGlossaryDictionaryInfo("EN", "DE", 1)}
GLOSSARIES = [
    Row("create_glossary", "", lambda world: world.deepl.get_glossary_entries(glossary(world)) == TSV),
    Row("create_glossary_from_csv", "", lambda world: bool(world.deepl.create_glossary_from_csv("c", "EN", "DE", CSV))),
    Row("get_glossary", "", lambda world: world.deepl.get_glossary(glossary(world).glossary_id).name == "words"),
    Row("list_glossaries", "", lambda world: glossary(world).glossary_id in ids(world.deepl.list_glossaries())),
    Row("get_glossary_entries", "", lambda world: world.deepl.get_glossary_entries(glossary(world)) == TSV),
    Row("delete_glossary", "", deleted),
    Row("create_multilingual_glossary", "", lambda world: stored(world, multilingual(world)) == TSV),
    Row(
        "create_multilingual_glossary_from_csv",
        "",
        lambda world: stored(world, world.deepl.create_multilingual_glossary_from_csv("c", "EN", "DE", CSV)) == TSV,
    ),
    Row("get_multilingual_glossary", "", is_found),
    Row("list_multilingual_glossaries", "", is_found),
    Row("get_multilingual_glossary_entries", "", lambda world: stored(world, multilingual(world)) == TSV),
    Row(
        "update_multilingual_glossary_name",
        "",
        lambda world: world.deepl.update_multilingual_glossary_name(multilingual(world), "new").name == "new",
    ),
    *(
        change(f"{verb}_multilingual_glossary_dictionary{kind}", entries, expected)
        for verb, expected in (("update", {"dog": "Pudel", "cat": "Kater"}), ("replace", {"cat": "Kater"}))
        for kind, entries in (
            ("", (Entries("EN", "DE", {"cat": "Kater"}),)),
            ("_from_csv", ("EN", "DE", "cat,Kater\n")),
        )
    ),
    Row("delete_multilingual_glossary", "", deleted_multilingual),
    *rows(
        "delete_multilingual_glossary_dictionary",
        ("", lambda world: without_dictionary(world, **DICTIONARY)),
        ("dictionary", lambda world: without_dictionary(world, **DICTIONARY)),
        ("source_lang, target_lang", lambda world: without_dictionary(world, source_lang="EN", target_lang="DE")),
    ),
]


def segments(world: World, **options: Any) -> list[str]:
    return [one.source_text for one in world.deepl.list_translation_memory_segments(world.memory, **options)]


def second_page(world: World) -> bool:
    first = world.deepl.list_translation_memory_segments(world.memory, page_size=1)
    second = world.deepl.list_translation_memory_segments(world.memory, page_size=1, page_cursor=first.next_page_cursor)
    return second.segments[0].source_text != first.segments[0].source_text


def is_listed(world: World, memory: str) -> bool:
    return memory in [one.translation_memory_id for one in world.deepl.list_translation_memories()]


def deleted_memory(world: World) -> bool:
    made = store_memory(world.url, world.key, "gone")
    world.deepl.delete_translation_memory(made)
    return not is_listed(world, made)


TMX = (
    '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>The moon.</seg></tuv>'
    '<tuv xml:lang="de-DE"><seg>Der Mond.</seg></tuv></tu></body></tmx>'
)


def created(option: str, options: dict[str, str], expected: Callable[[TranslationMemoryJob], bool]) -> list[Row]:
    def call(world: World) -> bool:
        job = world.deepl.create_translation_memory_import("a.tmx", 3, **options)
        return expected(world.deepl.get_translation_memory_job(job.job_id))

    return [Row("create_translation_memory_import", option, call)]


def uploaded(world: World, **options: Any) -> TranslationMemoryJob:
    job = world.deepl.create_translation_memory_import("a.tmx", len(TMX))
    world.deepl.upload_translation_memory_file(job, TMX.encode(), **options)
    return world.deepl.get_translation_memory_job(job.job_id)


def imported(world: World, **options: Any) -> str:
    """Return the name of the memory that a file becomes."""
    (world.folder / "a.tmx").write_text(TMX, encoding="utf-8")
    job = world.deepl.import_translation_memory_from_filepath(world.folder / "a.tmx", **options)
    assert job.result and job.result.translation_memory_id
    return str(world.deepl.get_translation_memory(job.result.translation_memory_id).name)


def export(world: World, memory: str = "") -> TranslationMemoryExport:
    return world.deepl.create_translation_memory_export(memory or world.memory)


def waited_for(world: World, **options: Any) -> TranslationMemoryJob:
    return world.deepl.wait_until_translation_memory_job_done(export(world).job_id, **options)


def downloaded(world: World, **options: Any) -> str:
    written = io.BytesIO()
    world.deepl.download_translation_memory_export(waited_for(world), written, **options)
    return written.getvalue().decode()


def exported(world: World, **options: Any) -> str:
    world.deepl.export_translation_memory_to_filepath(world.memory, world.folder / "m.tmx", **options)
    return (world.folder / "m.tmx").read_text(encoding="utf-8")


def refused(method: str, *arguments: Any, options: tuple[str, ...] = ()) -> list[Row]:
    def call(world: World) -> bool:
        return bool(getattr(world.deepl, method)(*arguments))

    return [Row(method, option, call, NOT_OFFERED) for option in ("", *options)]


MEMORIES = [
    *rows(
        "list_translation_memories",
        ("", lambda world: is_listed(world, world.memory)),
        ("page", lambda world: world.deepl.list_translation_memories(page=9) == []),
        ("page_size", lambda world: len(world.deepl.list_translation_memories(page_size=1)) == 1),
    ),
    Row(
        "get_translation_memory", "", lambda world: world.deepl.get_translation_memory(world.memory).segment_count == 3
    ),
    *rows(
        "list_translation_memory_segments",
        ("", lambda world: len(segments(world)) == 3),
        ("page_size", lambda world: len(segments(world, page_size=2)) == 2),
        ("page_cursor", second_page),
        ("filter_text", lambda world: segments(world, filter_text="hund") == ["The dog."]),
        ("filter_case_sensitive", lambda world: segments(world, filter_text="hund", filter_case_sensitive=True) == []),
    ),
    Row("delete_translation_memory", "", deleted_memory),
    *created("", {}, lambda job: job.display_name == "a.tmx" and job.status == "awaiting_input"),
    *created("content_type", {"content_type": "text/xml"}, lambda job: job.source_content_type == "text/xml"),
    *created("display_name", {"display_name": "Legal"}, lambda job: job.display_name == "Legal"),
    *rows(
        "upload_translation_memory_file",
        ("", lambda world: uploaded(world).ok),
        ("content_type", lambda world: uploaded(world, content_type="text/xml").ok, EFFECT, "no effect"),
    ),
    *rows(
        "import_translation_memory_from_filepath",
        ("", lambda world: imported(world) == "a.tmx"),
        ("display_name", lambda world: imported(world, display_name="Legal") == "Legal"),
        ("timeout_s", lambda world: imported(world, timeout_s=60) == "a.tmx", EFFECT, "client only"),
        (
            "a file that is no TMX",
            lambda world: bool(world.deepl.import_translation_memory_from_filepath(__file__)),
            "refused: error",
            "the message says why",
        ),
    ),
    *rows(
        "create_translation_memory_export",
        ("", lambda world: export(world).translation_memory_id == world.memory),
        ("unknown", lambda world: bool(export(world, "unknown")), NOT_OFFERED),
    ),
    Row(
        "get_translation_memory_job", "", lambda world: world.deepl.get_translation_memory_job(export(world).job_id).ok
    ),
    *rows(
        "wait_until_translation_memory_job_done",
        ("", lambda world: waited_for(world).done),
        ("timeout_s", lambda world: waited_for(world, timeout_s=60).done, EFFECT, "client only"),
    ),
    *rows(
        "download_translation_memory_export",
        ("", lambda world: UNIT in downloaded(world)),
        ("output_file", lambda world: UNIT in downloaded(world), EFFECT, "client only"),
        ("chunk_size", lambda world: UNIT in downloaded(world, chunk_size=100), EFFECT, "client only"),
    ),
    *rows(
        "export_translation_memory_to_filepath",
        ("", lambda world: UNIT in exported(world)),
        ("timeout_s", lambda world: UNIT in exported(world, timeout_s=60), EFFECT, "client only"),
    ),
]

NOT_OFFERED_ROWS = [
    *refused("rephrase_text", "x", options=("target_lang", "style", "tone")),
    *refused("correct_text", "x", options=("target_lang",)),
    *refused("get_all_style_rules", options=("page", "page_size", "detailed")),
    *refused("create_style_rule", "x", "de", options=("configured_rules", "custom_instructions")),
    *refused("get_style_rule", "x"),
    *refused("update_style_rule_name", "x", "new"),
    *refused("delete_style_rule", "x"),
    *refused("update_style_rule_configured_rules", "x", {}),
    *refused("create_style_rule_custom_instruction", "x", "label", "prompt", options=("source_language",)),
    *refused("get_style_rule_custom_instruction", "x", "y"),
    *refused("update_style_rule_custom_instruction", "x", "y", "label", "prompt", options=("source_language",)),
    *refused("delete_style_rule_custom_instruction", "x", "y"),
]

DEEPL_ROWS = [*TEXTS, *DOCUMENTS, *LISTS, *GLOSSARIES, *MEMORIES, *NOT_OFFERED_ROWS]
