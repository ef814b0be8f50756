"""Texts and documents by the Python client of DeepL: every public method with each option."""

import io
from collections.abc import Callable
from typing import Any

import deepl

from tests.service.application import single
from tests.service.clients.rows import EFFECT, NONE, UNIT, Row, World, glossary, rows

KEYS = "I saw your dog. You can select your files."  # the model writes du in one, Sie in the other
LINES = "The dog sleeps.\nThe cat\neats."
XML = "<doc><title>The dog sleeps</title><p>The cat <i>eats</i>. <keep>The house</keep> is red.</p></doc>"
ONE_SENTENCE = "<doc><title>Yesterday</title><p>we went home.</p></doc>"
SAW = "I saw the dog."
TXT: dict[str, Any] = {"target_lang": "DE", "filename": "a.txt"}
GREEN = "The green lamp blinks."  # similar to a unit of the memory
INTO_ENGLISH = {"target_lang": "EN-GB"}
EXTRA = ({"formality": "less"}, EFFECT, "fields that are not documented have no effect")
MARKUP = '<p translate="no">The cat eats.</p>'  # plain strings may have tags, but no attributes that are obeyed
PAIR = {"source_lang": "EN", "target_lang": "DE"}
REFUSED = "refused: 400"
DESCRIBED = "stated in the HTTP API"


def text(world: World, text: str, **options: Any) -> deepl.TextResult:
    return single(world.deepl.translate_text(text, **{"target_lang": "DE", **options}))


def differs(source: str, base: dict[str, Any] | None = None, **options: Any) -> Callable[[World], bool]:
    """Return a call that compares the translations with and without the options."""
    common = base or {}
    return lambda world: text(world, source, **common).text != text(world, source, **common, **options).text


def document(world: World, content: str = SAW, **options: Any) -> str:
    written = io.BytesIO()
    world.deepl.translate_document(content.encode(), written, **TXT | options)
    return written.getvalue().decode()


def from_path(world: World, content: str = SAW, **options: Any) -> str:
    source, target = world.folder / "in.txt", world.folder / "out.txt"
    source.write_text(content)
    world.deepl.translate_document_from_filepath(source, target, **{"target_lang": "DE", **options})
    return target.read_text()


def uploaded(
    world: World, content: str = SAW, timeout_s: int | None = None, chunk_size: int = 1, **options: Any
) -> str:
    written = io.BytesIO()
    handle = world.deepl.translate_document_upload(content, **TXT | options)
    world.deepl.translate_document_wait_until_done(handle, timeout_s=timeout_s)
    world.deepl.translate_document_download(handle, written, chunk_size=chunk_size)
    return written.getvalue().decode()


def status(world: World) -> bool:
    client = world.deepl
    return client.translate_document_get_status(client.translate_document_upload(SAW, **TXT)).ok


def document_rows(method: str, run: Callable[..., str]) -> list[Row]:
    def changes(content: str, **options: Any) -> Callable[[World], bool]:
        return lambda world: run(world, content=content) != run(world, content=content, **options)

    def with_glossary(world: World, **more: Any) -> str:
        made = glossary(world)
        return run(world, source_lang="EN", **({"glossary": made} if not more else {"glossary_ids": [made]}))

    return [
        *rows(
            method,
            ("", lambda world: run(world).strip() == text(world, SAW).text),
            ("source_lang", lambda world: bool(run(world, source_lang="EN")), EFFECT, "no detection"),
            ("source_lang=XX", lambda world: bool(run(world, source_lang="XX")), REFUSED),
            ("formality", changes(KEYS, formality="less")),
            ("glossary", lambda world: "Pudel" in with_glossary(world)),
            ("glossary_ids", lambda world: "Pudel" in with_glossary(world, several=True)),
            ("style_rule", lambda world: bool(run(world, style_rule="x")), REFUSED),
            ("translation_memory", lambda world: "Ampel" in run_memory(run, world)),
            ("translation_memory_threshold", lambda world: run_memory(run, world, 100) != run_memory(run, world, 50)),
            ("extra_body_parameters", changes(KEYS, extra_body_parameters=EXTRA[0]), *EXTRA[1:]),
        )
    ]


def run_memory(run: Callable[..., str], world: World, threshold: int | None = None) -> str:
    """Return the translation of a unit of the memory; with a threshold, of a similar sentence."""
    options = {} if threshold is None else {"translation_memory_threshold": threshold}
    return run(world, content=GREEN if options else UNIT, translation_memory=world.memory, **options)


def plain(world: World, content: str, **options: Any) -> str:
    return text(world, content, **options).text


def dogs(world: World) -> bool:
    both = [glossary(world), glossary(world, dog="Dackel")]
    return "Pudel" in text(world, "a dog", **PAIR, glossary_ids=both).text


def is_translated(term: str, wording: str) -> Callable[[World], bool]:
    return lambda world: text(world, term, **PAIR, glossary=glossary(world, **{term: wording})).text == wording


def without_pair(world: World) -> bool:
    made = glossary(world).glossary_id
    return bool(text(world, "Hund", source_lang="DE", target_lang="EN-GB", glossary=made))


TEXTS = [
    *rows(
        "translate_text",
        ("", lambda world: text(world, "The dog sleeps.").text == "Der Hund schläft."),
        ("source_lang", lambda world: text(world, "Chat", **PAIR).text != ""),
        ("source_lang=XX", differs("x", source_lang="XX"), REFUSED),
        ("target_lang=TLH", lambda world: bool(text(world, "x", target_lang="TLH")), REFUSED),
        ("context", differs(KEYS, context="In a hotel."), NONE, DESCRIBED),
        ("split_sentences", differs(LINES, split_sentences="nonewlines")),
        ("split_sentences=0", differs(LINES, split_sentences="0")),
        ("preserve_formatting", differs(KEYS, preserve_formatting=True), NONE, DESCRIBED),
        ("formality", differs(KEYS, formality="less")),
        ("formality=more", differs(KEYS, formality="more")),
        ("formality=prefer_less", differs(KEYS, formality="prefer_less")),
        ("formality=less into English", differs("x", INTO_ENGLISH, formality="less"), REFUSED),
        ("formality=prefer_less into English", differs("x", INTO_ENGLISH, formality="prefer_less"), NONE, DESCRIBED),
        ("glossary", lambda world: "Pudel" in text(world, "a dog", **PAIR, glossary=glossary(world)).text),
        ("glossary_ids", dogs),
        ("glossary with a symbol", is_translated("OK", "\U0001f44d")),
        ("glossary and a text that is a term", is_translated("Apple", "Apfel")),
        ("glossary without the pair", without_pair, REFUSED),
        ("tag_handling", differs(MARKUP, tag_handling="html")),
        ("tag_handling=xml", differs(MARKUP, tag_handling="xml")),
        ("tag_handling_version", differs(XML, {"tag_handling": "xml"}, tag_handling_version="v1"), NONE, DESCRIBED),
        ("outline_detection", differs(ONE_SENTENCE, {"tag_handling": "xml"}, outline_detection=False)),
        ("outline_detection without XML", differs(KEYS, outline_detection=False), NONE, DESCRIBED),
        ("non_splitting_tags", differs(ONE_SENTENCE, {"tag_handling": "xml"}, non_splitting_tags=["title", "p"])),
        ("splitting_tags", differs("<p>The cat <x>eats</x> fish</p>", {"tag_handling": "xml"}, splitting_tags="x")),
        ("ignore_tags", differs(XML, {"tag_handling": "xml"}, ignore_tags="keep")),
    ),
    *(
        Row("translate_text", f"{name} without tag_handling", differs("x", None, **{name: "a"}), NONE, DESCRIBED)
        for name in ("non_splitting_tags", "splitting_tags", "ignore_tags")
    ),
    *rows(
        "translate_text",
        ("model_type", differs("x", model_type="quality_optimized"), NONE, "the answer repeats it; " + DESCRIBED),
        ("model_type of no model", differs("x", model_type="other"), REFUSED),
        ("style_rule", differs("x", style_rule="x"), REFUSED),
        ("custom_instructions", differs("x", custom_instructions=["Be kind."]), REFUSED),
        ("translation_memory", lambda world: "Ampel" in run_memory(plain, world)),
        ("translation_memory_threshold", lambda world: run_memory(plain, world, 99) != run_memory(plain, world, 50)),
        ("extra_body_parameters", differs(KEYS, extra_body_parameters=EXTRA[0]), *EXTRA[1:]),
    ),
    *rows(
        "translate_text_with_glossary",
        ("", lambda world: "Pudel" in single(world.deepl.translate_text_with_glossary("a dog", glossary(world))).text),
        (
            "target_lang",
            lambda world: bool(world.deepl.translate_text_with_glossary("a dog", glossary(world), "DE")),
            EFFECT,
            "must be that of the glossary",
        ),
    ),
]

DOCUMENTS = [
    Row(
        "translate_document",
        "target_lang of the document itself",
        lambda world: bool(document(world, "Der Hund schläft. Die Katze isst einen Fisch.")),
        "refused: error",
        "the message begins with `Source and target language`",
    ),
    *document_rows("translate_document", document),
    *rows(
        "translate_document",
        ("filename", lambda world: document(world, filename="a.md") != ""),
        ("filename of no format", lambda world: bool(uploaded(world, filename="a.zip")), REFUSED),
        ("output_format", lambda world: bool(document(world, output_format="txt"))),
        ("output_format=docx for .txt", lambda world: bool(uploaded(world, output_format="docx")), REFUSED),
        ("timeout_s", lambda world: bool(document(world, timeout_s=60)), EFFECT, "client only"),
    ),
    *document_rows("translate_document_from_filepath", from_path),
    *rows(
        "translate_document_from_filepath",
        ("timeout_s", lambda world: bool(from_path(world, timeout_s=60)), EFFECT, "client only"),
    ),
    *document_rows("translate_document_upload", uploaded),
    *rows(
        "translate_document_upload",
        ("filename", lambda world: bool(uploaded(world, filename="a.md"))),
        ("output_format", lambda world: bool(uploaded(world, output_format="txt"))),
    ),
    Row("translate_document_get_status", "", status),
    *rows(
        "translate_document_wait_until_done",
        ("", lambda world: bool(uploaded(world))),
        ("timeout_s", lambda world: bool(uploaded(world, timeout_s=60)), EFFECT, "client only"),
    ),
    *rows(
        "translate_document_download",
        ("", lambda world: bool(uploaded(world))),
        ("output_file", lambda world: bool(uploaded(world)), EFFECT, "client only"),
        ("chunk_size", lambda world: bool(uploaded(world, chunk_size=2)), EFFECT, "client only"),
    ),
]
