import gzip
import io
from pathlib import Path

import pytest
from pydantic import ValidationError

from mt.data.translation_memory import read_memory, tmx_languages
from mt.data_config import CorpusConfig, DataConfig
from mt.errors import DataError

TMX, XLIFF_1, XLIFF_2, PO = (
    (Path(__file__).parent / "memories" / name).read_text(encoding="utf-8")
    for name in ("animals.tmx", "first.xliff", "second.xliff", "animals.po")
)


@pytest.mark.parametrize(
    ("name", "content", "languages", "pairs"),
    [
        ("a.tmx", TMX, ("en", "de"), [("The dog sleeps.", "Der Hund schläft.", 1), ("Yes & no", "Ja", 3)]),
        ("a.tmx", TMX, ("de", "en"), [("Der Hund schläft.", "The dog sleeps.", 1), ("Ja", "Yes & no", 3)]),
        ("a.TMX", TMX, ("en", "zh-Hant"), [("The dog sleeps.", "狗在睡覺。", 1)]),
        ("a.xlf", XLIFF_1, ("en", "fr"), [("A red house", "Une maison rouge", 1)]),
        ("a.xliff", XLIFF_1, ("de", "en"), [("Eine Katze", "A cat", 2)]),
        ("a.xliff", XLIFF_2, ("en", "fr"), [("One two", "Un deux", 1)]),
        ("a.po", PO, ("en", "de"), [("A dog", "Ein Hund", 1), ("One cow", "Eine Kuh", 2)]),
        ("a.po", PO.replace("Language:", "X-Source-Language: fr\\nLanguage:"), ("fr", "de"), None),
    ],
)
def test_units_of_two_languages(
    tmp_path: Path, name: str, content: str, languages: tuple[str, str], pairs: list[tuple[str, str, int]] | None
) -> None:
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")
    result = [(pair.source, pair.target, pair.line) for pair in read_memory(file, *languages)]
    assert result == (pairs or [("A dog", "Ein Hund", 1), ("One cow", "Eine Kuh", 2)])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (TMX, ("en-US", ["de-DE", "zh-TW"])),
        (TMX.replace('srclang="en-US"', 'srclang="*all*"'), ("en-US", ["de-DE", "zh-TW"])),  # of the first text
        (TMX.replace('srclang="en-US"', 'srclang="zh-TW"'), ("zh-TW", ["en-US", "de-DE"])),
        (TMX.replace("zh-TW", "de-AT"), ("en-US", ["de-DE"])),  # regions of one language
        (TMX.replace("</body>", ""), "a.tmx: not well-formed XML: .*mismatched"),
        (TMX.replace("de-DE", "en-GB").replace("zh-TW", "en"), "accepted: at least two"),
    ],
)
def test_languages_of_a_tmx_file(content: str, expected: tuple[str, list[str]] | str) -> None:
    if not isinstance(expected, str):
        assert tmx_languages(io.BytesIO(content.encode()), "a.tmx") == expected
        return
    with pytest.raises(DataError, match=expected):
        tmx_languages(io.BytesIO(content.encode()), "a.tmx")


def test_a_po_is_read_in_the_encoding_of_its_header(tmp_path: Path) -> None:
    content = PO.replace("UTF-8", "ISO-8859-1").replace("Ein Hund", "Ein\\tHündchen\x85")
    (tmp_path / "a.po").write_bytes(content.encode("latin-1"))
    assert [pair.target for pair in read_memory(tmp_path / "a.po", "en", "de")] == ["Ein Hündchen…", "Eine Kuh"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_memory_may_be_compressed_and_in_any_encoding_of_xml(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "a.tmx.gz"
    file.write_bytes(gzip.compress(TMX.replace(' encoding="UTF-8"', "").encode(encoding)))
    assert [pair.target for pair in read_memory(file, "en", "de")] == ["Der Hund schläft.", "Ja"]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.tmx", TMX, r"a.tmx: no unit has both en and cs; languages of its units: EN, de-DE, en-US, zh-TW"),
        ("a.tmx", TMX[:600], "a.tmx: not well-formed XML: unclosed token: line 10"),
        ("a.tmx", TMX.replace("UTF-8", "klingon"), "a.tmx: not well-formed XML: .*encoding"),
        ("a.tmx", "<tmx/>", "no unit has both en and cs; languages of its units: none"),
        ("a.po", PO.replace("Language", "X"), "the header lacks Language"),
        ("a.po", PO + "nonsense\n", "not a .po file: line 24: 'nonsense'"),
        ("a.xlf.gz", "plain", "cannot be read: Not a gzipped file"),
        ("b.tmx", None, "b.tmx: the file does not exist"),
    ],
)
def test_a_memory_that_cannot_be_used(tmp_path: Path, name: str, content: str | None, problem: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        list(read_memory(tmp_path / name, "en", "cs"))


def test_a_memory_has_no_columns_and_is_no_validation_set() -> None:
    assert CorpusConfig(path="a.tmx").columns == ()
    assert DataConfig(directions=["en-de"], train=["a.tmx"], valid=["v.{language}"]).train[0].columns == ()
    with pytest.raises(ValidationError, match=r"a .tmx, .xliff or .po file without columns"):
        CorpusConfig(path="a.tmx", columns=("en", "de"))
    with pytest.raises(ValidationError, match=r"a.tmx: translation memories can be given only in data.train"):
        DataConfig(directions=["en-de"], train=["a.tmx"], valid=["a.tmx"])
