"""Translation memories as documents: units that lack the target language get a variant in it."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mt.data.translation_memory import read_memory
from mt.text.documents import DocumentOptions, open_document
from mt.text.markup import TranslatedSegment

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def memory(units: str, source: str = "en-US", version: str = "1.4", head: str = "") -> str:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>{head}\n<tmx version="{version}">\n  <header creationtool="x" '
        f'srclang="{source}" datatype="plaintext" segtype="sentence"/>\n  <body>\n{units}\n  </body>\n</tmx>\n'
    )


MEMORIES = (Path(__file__).parent / "memories").glob("*.tmx")
FILES = {path.stem: path.read_bytes().decode() for path in sorted(MEMORIES)}


def german(content: str, options: DocumentOptions | None = None) -> str:
    document = open_document("a.tmx", content.encode(), options or DocumentOptions(target_language="de"))
    assert document.segments
    return document.render([TranslatedSegment(segment.text) for segment in document.segments]).decode()


def variants(content: str) -> list[list[tuple[str, str]]]:
    return [
        [
            (variant.get(LANGUAGE) or variant.get("lang") or "", ElementTree.tostring(segment, "unicode").strip())
            for variant in unit.iter("tuv")
            if (segment := variant.find("seg")) is not None
        ]
        for unit in ElementTree.fromstring(content.encode()).iter("tu")
    ]


@pytest.mark.parametrize("empty", ["<seg></seg>", "<seg/>", "<seg> </seg>"])
def test_an_empty_variant_gets_a_text(empty: str) -> None:
    units = f'<tu><tuv xml:lang="en"><seg>A dog.</seg></tuv><tuv xml:lang="de">{empty}</tuv></tu>'
    assert variants(german(memory(units))) == [[("en", "<seg>A dog.</seg>"), ("de", "<seg>A dog.</seg>")]]


@pytest.mark.parametrize("content", FILES.values(), ids=FILES.keys())
def test_only_missing_variants_are_added(content: str, tmp_path: Path) -> None:
    """Without them the bytes are the same, and the reader of corpora finds all pairs."""
    written = german(content)
    for before, after in zip(variants(content), variants(written), strict=True):
        source = next(segment for code, segment in before if code.lower().startswith("en"))
        translated = any(code.startswith("de") for code, _ in before)
        assert after == (before if translated else [*before, ("de", source)])
    assert re.sub(r'\s*<tuv (xml:)?lang="de">.*?</tuv>', "", written, flags=re.DOTALL) == content
    (tmp_path / "a.tmx").write_text(written, encoding="utf-8")
    assert len(list(read_memory(tmp_path / "a.tmx", "en", "de"))) == content.count("<tu ") + content.count("<tu>")


FRENCH = '<tu><tuv xml:lang="fr"><seg>Un chien.</seg></tuv></tu>'
CHINESE = '<tu><tuv xml:lang="en"><seg>A dog.</seg></tuv><tuv xml:lang="zh-CN"><seg>狗。</seg></tuv></tu>'


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        (FILES["three-languages"], DocumentOptions(source_language="cs", target_language="de"), ["Pes."]),
        (FILES["plain"], DocumentOptions(target_language="en-GB"), []),
        (memory(FRENCH), DocumentOptions(target_language="de"), []),
        (memory(FRENCH, "*all*"), DocumentOptions(target_language="de"), ["Un chien."]),
        (memory(CHINESE), DocumentOptions(target_language="zh"), []),
        (memory(CHINESE), DocumentOptions(target_language="zh-Hant"), ["A dog."]),
    ],
)
def test_texts_in_the_source_language(content: str, options: DocumentOptions, expected: list[str]) -> None:
    assert [segment.text for segment in open_document("a.tmx", content.encode(), options).segments] == expected


def test_variants_are_indented() -> None:
    new = '\n      <tuv xml:lang="de">\n        <seg>Close the door.</seg>\n      </tuv>\n    </tu>'
    assert new in german(FILES["indented"])
    options = DocumentOptions(source_language="en", target_language="de")
    document = open_document("a.tmx", FILES["partly-translated"].encode(), options)
    written = document.render([TranslatedSegment("Neu.")]).decode()
    assert '<seg>New.</seg></tuv><tuv xml:lang="de"><seg>Neu.</seg></tuv></tu>' in written
