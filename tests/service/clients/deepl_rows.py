"""Lists, glossaries, memories by the Python client of DeepL, and what is not offered: every method with each option."""

from collections.abc import Callable
from typing import Any

import deepl
from deepl.api_data import MultilingualGlossaryDictionaryEntries as Entries
from deepl.api_data import MultilingualGlossaryDictionaryInfo, MultilingualGlossaryInfo

from tests.service.clients.deepl_texts import DOCUMENTS, TEXTS
from tests.service.clients.rows import EFFECT, Row, World
from tests.service.clients.stored import TSV, glossary, multilingual, store_memory

CSV = "dog,Pudel\n"
NOT_OFFERED = "refused: 404"


def usage(world: World) -> bool:
    client = world.deepl
    before = client.get_usage().character.count or 0
    client.translate_text("four", target_lang="DE")
    return client.get_usage().character.count == before + 4


def closed(world: World) -> bool:
    close: Callable[[], None] = world.deepl.close
    close()
    return True


LISTS = [
    Row(
        "get_source_languages",
        "",
        EFFECT,
        lambda world: [one.code for one in world.deepl.get_source_languages()] == ["DE", "EN", "FR"],
    ),
    Row(
        "get_source_languages",
        "skip_cache",
        EFFECT,
        lambda world: bool(world.deepl.get_source_languages(skip_cache=True)),
        "client only",
    ),
    Row(
        "get_target_languages",
        "",
        EFFECT,
        lambda world: "EN-GB" in [one.code for one in world.deepl.get_target_languages()],
    ),
    Row(
        "get_target_languages",
        "skip_cache",
        EFFECT,
        lambda world: bool(world.deepl.get_target_languages(skip_cache=True)),
        "client only",
    ),
    Row("get_glossary_languages", "", EFFECT, lambda world: bool(world.deepl.get_glossary_languages())),
    Row("get_usage", "", EFFECT, usage),
    Row("set_app_info", "", EFFECT, lambda world: bool(world.deepl.set_app_info("x", "1").get_usage()), "client only"),
    Row("close", "", EFFECT, closed, "client only"),
]


def stored(world: World, made: MultilingualGlossaryInfo) -> dict[str, str]:
    """Return the entries en-de of a glossary."""
    (entries,) = world.deepl.get_multilingual_glossary_entries(made, "EN", "DE").dictionaries
    return dict(deepl.convert_tsv_to_dict(str(entries.entries)))


def changed(change: Callable[[deepl.DeepLClient, MultilingualGlossaryInfo], Any]) -> Callable[[World], Any]:
    """Return a call that makes a glossary, changes it, and returns its entries."""

    def call(world: World) -> dict[str, str]:
        made = multilingual(world)
        change(world.deepl, made)
        return stored(world, made)

    return call


def deleted(world: World) -> bool:
    made = glossary(world)
    world.deepl.delete_glossary(made)
    return made.glossary_id not in [one.glossary_id for one in world.deepl.list_glossaries()]


def deleted_multilingual(world: World) -> bool:
    made = multilingual(world)
    world.deepl.delete_multilingual_glossary(made)
    return made.glossary_id not in [one.glossary_id for one in world.deepl.list_multilingual_glossaries()]


def without_dictionary(world: World, **options: Any) -> bool:
    made = multilingual(world)
    world.deepl.delete_multilingual_glossary_dictionary(made, **options)
    return world.deepl.get_multilingual_glossary(made.glossary_id).dictionaries == []


BOTH = {"dog": "Pudel", "cat": "Kater"}
CAT = Entries("EN", "DE", {"cat": "Kater"})
CAT_CSV = ("EN", "DE", "cat,Kater\n")
GLOSSARIES = [
    Row("create_glossary", "", EFFECT, lambda world: world.deepl.get_glossary_entries(glossary(world)) == TSV),
    Row(
        "create_glossary_from_csv",
        "",
        EFFECT,
        lambda world: world.deepl.create_glossary_from_csv("c", "EN", "DE", CSV).entry_count == 1,
    ),
    Row(
        "get_glossary", "", EFFECT, lambda world: world.deepl.get_glossary(glossary(world).glossary_id).name == "words"
    ),
    Row(
        "list_glossaries",
        "",
        EFFECT,
        lambda world: glossary(world).glossary_id in [one.glossary_id for one in world.deepl.list_glossaries()],
    ),
    Row("get_glossary_entries", "", EFFECT, lambda world: world.deepl.get_glossary_entries(glossary(world)) == TSV),
    Row("delete_glossary", "", EFFECT, deleted),
    Row("create_multilingual_glossary", "", EFFECT, lambda world: stored(world, multilingual(world)) == TSV),
    Row(
        "create_multilingual_glossary_from_csv",
        "",
        EFFECT,
        lambda world: stored(world, world.deepl.create_multilingual_glossary_from_csv("c", "EN", "DE", CSV)) == TSV,
    ),
    Row(
        "get_multilingual_glossary",
        "",
        EFFECT,
        lambda world: world.deepl.get_multilingual_glossary(multilingual(world).glossary_id).name == "words",
    ),
    Row(
        "list_multilingual_glossaries",
        "",
        EFFECT,
        lambda world: (
            multilingual(world).glossary_id in [one.glossary_id for one in world.deepl.list_multilingual_glossaries()]
        ),
    ),
    Row("get_multilingual_glossary_entries", "", EFFECT, lambda world: stored(world, multilingual(world)) == TSV),
    Row(
        "update_multilingual_glossary_name",
        "",
        EFFECT,
        lambda world: world.deepl.update_multilingual_glossary_name(multilingual(world), "new").name == "new",
    ),
    Row(
        "update_multilingual_glossary_dictionary",
        "",
        EFFECT,
        lambda world: (
            changed(lambda client, made: client.update_multilingual_glossary_dictionary(made, CAT))(world) == BOTH
        ),
    ),
    Row(
        "update_multilingual_glossary_dictionary_from_csv",
        "",
        EFFECT,
        lambda world: (
            changed(lambda client, made: client.update_multilingual_glossary_dictionary_from_csv(made, *CAT_CSV))(world)
            == BOTH
        ),
    ),
    Row(
        "replace_multilingual_glossary_dictionary",
        "",
        EFFECT,
        lambda world: (
            changed(lambda client, made: client.replace_multilingual_glossary_dictionary(made, CAT))(world)
            == {"cat": "Kater"}
        ),
    ),
    Row(
        "replace_multilingual_glossary_dictionary_from_csv",
        "",
        EFFECT,
        lambda world: (
            changed(lambda client, made: client.replace_multilingual_glossary_dictionary_from_csv(made, *CAT_CSV))(
                world
            )
            == {"cat": "Kater"}
        ),
    ),
    Row("delete_multilingual_glossary", "", EFFECT, deleted_multilingual),
    Row(
        "delete_multilingual_glossary_dictionary",
        "",
        EFFECT,
        lambda world: without_dictionary(world, dictionary=MultilingualGlossaryDictionaryInfo("EN", "DE", 1)),
    ),
    Row(
        "delete_multilingual_glossary_dictionary",
        "dictionary",
        EFFECT,
        lambda world: without_dictionary(world, dictionary=MultilingualGlossaryDictionaryInfo("EN", "DE", 1)),
    ),
    Row(
        "delete_multilingual_glossary_dictionary",
        "source_lang, target_lang",
        EFFECT,
        lambda world: without_dictionary(world, source_lang="EN", target_lang="DE"),
    ),
]


def segments(world: World, **options: Any) -> list[str]:
    return [one.source_text for one in world.deepl.list_translation_memory_segments(world.memory, **options)]


def second_page(world: World) -> bool:
    first = world.deepl.list_translation_memory_segments(world.memory, page_size=1)
    second = world.deepl.list_translation_memory_segments(world.memory, page_size=1, page_cursor=first.next_page_cursor)
    return second.segments[0].source_text != first.segments[0].source_text


def deleted_memory(world: World) -> bool:
    made = store_memory(world.url, world.key, "gone")
    world.deepl.delete_translation_memory(made)
    return made not in [one.translation_memory_id for one in world.deepl.list_translation_memories()]


def refused(method: str, *arguments: Any, options: tuple[str, ...] = ()) -> list[Row]:
    """Return the rows of a method that is not offered, with its options."""

    def call(world: World) -> bool:
        return bool(getattr(world.deepl, method)(*arguments))

    return [Row(method, option, NOT_OFFERED, call) for option in ("", *options)]


MEMORIES = [
    Row(
        "list_translation_memories",
        "",
        EFFECT,
        lambda world: world.memory in [one.translation_memory_id for one in world.deepl.list_translation_memories()],
    ),
    Row("list_translation_memories", "page", EFFECT, lambda world: world.deepl.list_translation_memories(page=9) == []),
    Row(
        "list_translation_memories",
        "page_size",
        EFFECT,
        lambda world: len(world.deepl.list_translation_memories(page_size=1)) == 1,
    ),
    Row(
        "get_translation_memory",
        "",
        EFFECT,
        lambda world: world.deepl.get_translation_memory(world.memory).segment_count == 3,
    ),
    Row("list_translation_memory_segments", "", EFFECT, lambda world: len(segments(world)) == 3),
    Row("list_translation_memory_segments", "page_size", EFFECT, lambda world: len(segments(world, page_size=2)) == 2),
    Row("list_translation_memory_segments", "page_cursor", EFFECT, second_page),
    Row(
        "list_translation_memory_segments",
        "filter_text",
        EFFECT,
        lambda world: segments(world, filter_text="hund") == ["The dog."],
    ),
    Row(
        "list_translation_memory_segments",
        "filter_case_sensitive",
        EFFECT,
        lambda world: segments(world, filter_text="hund", filter_case_sensitive=True) == [],
    ),
    Row("delete_translation_memory", "", EFFECT, deleted_memory),
    *refused("create_translation_memory_import", "a.tmx", 3, options=("content_type", "display_name")),
    *refused("create_translation_memory_export", "x"),
    *refused("get_translation_memory_job", "x"),
    *refused("wait_until_translation_memory_job_done", "x", options=("timeout_s",)),
    *refused("import_translation_memory_from_filepath", __file__, options=("display_name", "timeout_s")),
    *refused("export_translation_memory_to_filepath", "x", "unwritten.tmx", options=("timeout_s",)),
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
UNREACHABLE = {"upload_translation_memory_file", "download_translation_memory_export"}
"""Methods that need the answer of a method that is refused."""
