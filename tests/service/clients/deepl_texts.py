"""Texts and documents by the Python client of DeepL: every public method with each option."""

import io
from collections.abc import Callable
from typing import Any

import deepl

from tests.service.capitals import single
from tests.service.clients.rows import EFFECT, NONE, Row, World
from tests.service.clients.stored import UNIT, glossary

KEYS = "I saw your dog. You can select your files."  # the model writes du in one, Sie in the other
LINES = "The dog sleeps.\nThe cat\neats."
XML = "<doc><title>The dog sleeps</title><p>The cat <i>eats</i>. <keep>The house</keep> is red.</p></doc>"
MARKUP = '<p translate="no">The cat eats.</p>'  # plain strings may have tags, but no attributes that are obeyed
PAIR = {"source_lang": "EN", "target_lang": "DE"}
REFUSED = "refused: 400"
DESCRIBED = "stated in the HTTP API"


def text(world: World, text: str, **options: Any) -> deepl.TextResult:
    """Return the translation into German."""
    return single(world.deepl.translate_text(text, **{"target_lang": "DE", **options}))


def differs(source: str, base: dict[str, Any] | None = None, **options: Any) -> Callable[[World], bool]:
    """Return a call that compares the translations with and without the options."""
    common = base or {}
    return lambda world: text(world, source, **common).text != text(world, source, **common, **options).text


def document(world: World, content: str = "I saw the dog.", **options: Any) -> str:
    """Return the translation of a text file."""
    options = {"target_lang": "DE", "filename": "a.txt", **options}
    written = io.BytesIO()
    world.deepl.translate_document(content.encode(), written, **options)
    return written.getvalue().decode()


def from_path(world: World, out: str = "out.txt", content: str = "I saw the dog.", **options: Any) -> str:
    """Return the translation of a file that the client reads and writes."""
    (world.folder / "in.txt").write_text(content)
    world.deepl.translate_document_from_filepath(
        world.folder / "in.txt", world.folder / out, **{"target_lang": "DE", **options}
    )
    return (world.folder / out).read_text()


def uploaded(world: World, content: str = "I saw the dog.", **options: Any) -> str:
    """Return the translation of an upload, fetched in three steps."""
    written = io.BytesIO()
    handle = world.deepl.translate_document_upload(content, **{"target_lang": "DE", "filename": "a.txt", **options})
    world.deepl.translate_document_wait_until_done(handle)
    world.deepl.translate_document_download(handle, written)
    return written.getvalue().decode()


def document_rows(method: str, run: Callable[..., str]) -> list[Row]:
    """Return the rows that the three ways to translate a document have in common."""

    def changes(content: str, **options: Any) -> Callable[[World], bool]:
        return lambda world: run(world, content=content) != run(world, content=content, **options)

    def with_glossary(world: World, **more: Any) -> str:
        made = glossary(world)
        return run(world, source_lang="EN", **({"glossary": made} if not more else {"glossary_ids": [made]}))

    return [
        Row(method, "", EFFECT, lambda world: run(world).strip() == text(world, "I saw the dog.").text),
        Row(method, "source_lang", EFFECT, lambda world: bool(run(world, source_lang="EN")), "no detection"),
        Row(method, "source_lang=XX", REFUSED, lambda world: bool(run(world, source_lang="XX"))),
        Row(method, "formality", EFFECT, changes(KEYS, formality="less")),
        Row(method, "glossary", EFFECT, lambda world: "Pudel" in with_glossary(world)),
        Row(method, "glossary_ids", EFFECT, lambda world: "Pudel" in with_glossary(world, several=True)),
        Row(method, "style_rule", REFUSED, lambda world: bool(run(world, style_rule="x"))),
        Row(method, "translation_memory", EFFECT, lambda world: "Ampel" in run_memory(run, world)),
        Row(
            method,
            "translation_memory_threshold",
            EFFECT,
            lambda world: (
                run_memory(run, world, "The green lamp blinks.", 100)
                != run_memory(run, world, "The green lamp blinks.", 50)
            ),
        ),
        Row(
            method,
            "extra_body_parameters",
            EFFECT,
            changes(KEYS, extra_body_parameters={"formality": "less"}),
            "fields that are not documented have no effect",
        ),
    ]


def run_memory(run: Callable[..., str], world: World, content: str = UNIT, threshold: int | None = None) -> str:
    """Return the translation of a document by the memory."""
    options = {} if threshold is None else {"translation_memory_threshold": threshold}
    return run(world, content=content, translation_memory=world.memory, **options)


def memory_text(world: World, content: str = UNIT, **options: Any) -> str:
    """Return the translation of a text by the memory."""
    return text(world, content, translation_memory=world.memory, **options).text


TEXTS = [
    Row("translate_text", "", EFFECT, lambda world: text(world, "The dog sleeps.").text == "Der Hund schläft."),
    Row("translate_text", "source_lang", EFFECT, lambda world: text(world, "Chat", **PAIR).text != ""),
    Row("translate_text", "source_lang=XX", REFUSED, differs("x", source_lang="XX")),
    Row("translate_text", "target_lang=TLH", REFUSED, lambda world: bool(text(world, "x", target_lang="TLH"))),
    Row("translate_text", "context", NONE, differs(KEYS, context="In a hotel."), DESCRIBED),
    Row("translate_text", "split_sentences", EFFECT, differs(LINES, split_sentences="nonewlines")),
    Row("translate_text", "split_sentences=0", EFFECT, differs(LINES, split_sentences="0")),
    Row("translate_text", "preserve_formatting", NONE, differs(KEYS, preserve_formatting=True), DESCRIBED),
    Row("translate_text", "formality", EFFECT, differs(KEYS, formality="less")),
    Row("translate_text", "formality=more", EFFECT, differs(KEYS, formality="more")),
    Row("translate_text", "formality=prefer_less", EFFECT, differs(KEYS, formality="prefer_less")),
    Row("translate_text", "formality=less into English", REFUSED, differs("x", target_lang="EN-GB", formality="less")),
    Row(
        "translate_text",
        "formality=prefer_less into English",
        NONE,
        differs("Der Hund", {"target_lang": "EN-GB"}, formality="prefer_less"),
        DESCRIBED,
    ),
    Row(
        "translate_text",
        "glossary",
        EFFECT,
        lambda world: "Pudel" in text(world, "a dog", **PAIR, glossary=glossary(world)).text,
    ),
    Row(
        "translate_text",
        "glossary_ids",
        EFFECT,
        lambda world: (
            "Pudel" in text(world, "a dog", **PAIR, glossary_ids=[glossary(world), glossary(world, dog="Dackel")]).text
        ),
    ),
    Row(
        "translate_text",
        "glossary with a symbol",
        EFFECT,
        lambda world: text(world, "OK", **PAIR, glossary=glossary(world, OK="\U0001f44d")).text == "\U0001f44d",
    ),
    Row(
        "translate_text",
        "glossary and a text that is a term",
        EFFECT,
        lambda world: text(world, "Apple", **PAIR, glossary=glossary(world, Apple="Apfel")).text == "Apfel",
    ),
    Row(
        "translate_text",
        "glossary without the pair",
        REFUSED,
        lambda world: bool(
            text(world, "Hund", source_lang="DE", target_lang="EN-GB", glossary=glossary(world).glossary_id)
        ),
    ),
    Row("translate_text", "tag_handling", EFFECT, differs(MARKUP, tag_handling="html")),
    Row("translate_text", "tag_handling=xml", EFFECT, differs(MARKUP, tag_handling="xml")),
    Row(
        "translate_text",
        "tag_handling_version",
        NONE,
        differs(XML, {"tag_handling": "xml"}, tag_handling_version="v1"),
        DESCRIBED,
    ),
    Row("translate_text", "outline_detection", EFFECT, differs(XML, {"tag_handling": "xml"}, outline_detection=False)),
    Row("translate_text", "outline_detection without XML", NONE, differs(KEYS, outline_detection=False), DESCRIBED),
    Row(
        "translate_text",
        "non_splitting_tags",
        EFFECT,
        differs(XML, {"tag_handling": "xml"}, non_splitting_tags=["doc", "title", "p"]),
    ),
    Row(
        "translate_text",
        "splitting_tags",
        EFFECT,
        differs("<p>The cat <x>eats</x> fish</p>", {"tag_handling": "xml"}, splitting_tags="x"),
    ),
    Row("translate_text", "ignore_tags", EFFECT, differs(XML, {"tag_handling": "xml"}, ignore_tags="keep")),
    *(
        Row("translate_text", f"{name} without tag_handling", NONE, differs("x", None, **{name: "a"}), DESCRIBED)
        for name in ("non_splitting_tags", "splitting_tags", "ignore_tags")
    ),
    Row(
        "translate_text",
        "model_type",
        NONE,
        differs("x", model_type="quality_optimized"),
        "the answer repeats it; " + DESCRIBED,
    ),
    Row("translate_text", "model_type of no model", REFUSED, differs("x", model_type="other")),
    Row("translate_text", "style_rule", REFUSED, differs("x", style_rule="x")),
    Row("translate_text", "custom_instructions", REFUSED, differs("x", custom_instructions=["Be kind."])),
    Row("translate_text", "translation_memory", EFFECT, lambda world: "Ampel" in memory_text(world)),
    Row(
        "translate_text",
        "translation_memory_threshold",
        EFFECT,
        lambda world: (
            memory_text(world, "The green lamp blinks.", translation_memory_threshold=100)
            != memory_text(world, "The green lamp blinks.", translation_memory_threshold=50)
        ),
    ),
    Row(
        "translate_text",
        "extra_body_parameters",
        EFFECT,
        differs(KEYS, extra_body_parameters={"formality": "less"}),
        "fields that are not documented have no effect",
    ),
    Row(
        "translate_text_with_glossary",
        "",
        EFFECT,
        lambda world: "Pudel" in single(world.deepl.translate_text_with_glossary("a dog", glossary(world))).text,
    ),
    Row(
        "translate_text_with_glossary",
        "target_lang",
        EFFECT,
        lambda world: bool(world.deepl.translate_text_with_glossary("a dog", glossary(world), "DE")),
        "must be that of the glossary",
    ),
]

DOCUMENTS = [
    Row(
        "translate_document",
        "target_lang of the document itself",
        "refused: error",
        lambda world: bool(document(world, "Der Hund schläft. Die Katze isst einen Fisch.")),
        "the message begins with `Source and target language`",
    ),
    *document_rows("translate_document", document),
    Row("translate_document", "filename", EFFECT, lambda world: document(world, filename="a.md") != ""),
    Row("translate_document", "filename of no format", REFUSED, lambda world: bool(uploaded(world, filename="a.zip"))),
    Row("translate_document", "output_format", EFFECT, lambda world: bool(document(world, output_format="txt"))),
    Row(
        "translate_document",
        "output_format=docx for .txt",
        REFUSED,
        lambda world: bool(uploaded(world, output_format="docx")),
    ),
    Row("translate_document", "timeout_s", EFFECT, lambda world: bool(document(world, timeout_s=60)), "client only"),
    *document_rows("translate_document_from_filepath", from_path),
    Row(
        "translate_document_from_filepath",
        "timeout_s",
        EFFECT,
        lambda world: bool(from_path(world, timeout_s=60)),
        "client only",
    ),
    *document_rows("translate_document_upload", uploaded),
    Row("translate_document_upload", "filename", EFFECT, lambda world: bool(uploaded(world, filename="a.md"))),
    Row("translate_document_upload", "output_format", EFFECT, lambda world: bool(uploaded(world, output_format="txt"))),
    Row("translate_document_get_status", "", EFFECT, lambda world: status_of(world).ok),
    Row("translate_document_wait_until_done", "", EFFECT, lambda world: bool(uploaded(world))),
    Row("translate_document_wait_until_done", "timeout_s", EFFECT, lambda world: waited(world).done, "client only"),
    Row("translate_document_download", "", EFFECT, lambda world: bool(uploaded(world))),
    Row("translate_document_download", "output_file", EFFECT, lambda world: bool(uploaded(world)), "client only"),
    Row("translate_document_download", "chunk_size", EFFECT, lambda world: downloaded(world) != b"", "client only"),
]


def status_of(world: World) -> deepl.DocumentStatus:
    client = world.deepl
    handle = client.translate_document_upload("The dog.", filename="a.txt", target_lang="DE")
    return client.translate_document_get_status(handle)


def waited(world: World) -> deepl.DocumentStatus:
    client = world.deepl
    handle = client.translate_document_upload("The dog.", filename="a.txt", target_lang="DE")
    return client.translate_document_wait_until_done(handle, timeout_s=60)


def downloaded(world: World) -> bytes:
    client, written = world.deepl, io.BytesIO()
    handle = client.translate_document_upload("The dog.", filename="a.txt", target_lang="DE")
    client.translate_document_wait_until_done(handle)
    client.translate_document_download(handle, written, chunk_size=2)
    return written.getvalue()
