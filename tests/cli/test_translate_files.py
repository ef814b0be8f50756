import io
from pathlib import Path

import docx
import pytest

from mt import Translator
from mt.cli.translate import main
from mt.pipeline.documents import FileTranslator
from scripts.attack.payloads import pdf

MARKDOWN = "# The dog\n\nThe `cat` *sees* the dog.\n"
PDF = pdf(b"BT /F 12 Tf 72 700 Td (The dog sees the cat.) Tj ET")


def word(text: str) -> bytes:
    out = io.BytesIO()
    document = docx.Document()
    document.add_paragraph(text)
    document.save(out)
    return out.getvalue()


def translation(model: Path, text: str) -> str:
    return Translator.load(model, "cpu").translate(text).text


def translate(capfd: pytest.CaptureFixture[str], status: int, *arguments: object) -> list[str]:
    """Run the command, check its status, and return what it says on stderr."""
    assert main([str(argument) for argument in arguments]) == status
    output = capfd.readouterr()
    assert output.out == ""
    return output.err.splitlines()


def test_a_document(small_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "a.md", tmp_path / "b.md"
    source.write_text(MARKDOWN)
    output = translate(capfd, 0, "--model", small_model, source, target)
    assert output == [f"{source} -> {target}: 2 texts", "1 files translated, 0 skipped, 0 failed"]
    title, text = target.read_text().rstrip("\n").split("\n\n")
    assert title == f"# {translation(small_model, 'The dog')}"
    assert "`cat`" in text and text != MARKDOWN.splitlines()[-1]


def test_pdf_becomes_a_word_document(small_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "a.pdf"
    source.write_bytes(PDF)
    (output,) = translate(capfd, 2, "--model", small_model, source, tmp_path / "b.pdf")
    assert output == f"error: {tmp_path / 'b.pdf'} has another format than the translation of {source}; accepted: .docx"
    translate(capfd, 0, "--model", small_model, source, tmp_path / "b.docx")
    (paragraph,) = docx.Document(str(tmp_path / "b.docx")).paragraphs
    assert paragraph.text == translation(small_model, "The dog sees the cat.")


def folder(root: Path) -> Path:
    """A folder with two documents whose translations would have one name, a damaged one, and a picture."""
    for name, content in {
        "a.docx": word("The dog."),
        "a.pdf": PDF,
        "b/bad.docx": b"no zip",
        "b/c/deep.txt": b"The river.\n",
        "b/picture.png": b"\x89PNG",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def test_a_folder_keeps_its_tree(small_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, target = folder(tmp_path / "in"), tmp_path / "out"
    output = translate(capfd, 3, "--model", small_model, source, target)
    assert output == [
        f"{source}/a.docx -> {target}/a.docx: 1 texts",
        f"{source}/a.pdf -> {target}/a.pdf.docx: 1 texts",
        f"not translated: {source}/b/bad.docx: bad.docx is not a .docx file: open it in its program and save it again "
        "(File is not a zip file)",
        f"{source}/b/c/deep.txt -> {target}/b/c/deep.txt: 1 texts",
        f"skipped: {source}/b/picture.png: files of this format are not translated",
        "3 files translated, 1 skipped, 1 failed",
    ]
    written = sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file())
    assert written == ["a.docx", "a.pdf.docx", "b/c/deep.txt"]
    assert (target / "b/c/deep.txt").read_text() == translation(small_model, "The river.") + "\n"


def test_a_parser_that_fails_does_not_stop_the_others(
    small_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.txt", "b.txt"):
        (tmp_path / "in" / name).write_text("The dog.\n")
    translate_one = FileTranslator.translate

    def failing(self: FileTranslator, name: str, content: bytes) -> object:
        if name == "a.txt":
            raise KeyError("defect")
        return translate_one(self, name, content)

    monkeypatch.setattr(FileTranslator, "translate", failing)
    output = translate(capfd, 3, "--model", small_model, tmp_path / "in", tmp_path / "out")
    assert output[0] == f"not translated: {tmp_path}/in/a.txt: KeyError: 'defect'"
    assert output[-1] == "1 files translated, 0 skipped, 1 failed"


def test_failed_texts_stay(small_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], poison: str) -> None:
    source, target = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text(f"The dog.\n{poison}\n")
    output = translate(capfd, 3, "--model", small_model, source, target)
    assert target.read_text().splitlines() == [translation(small_model, "The dog."), poison]
    assert output[0].startswith(f"{source}: the text that begins 'poison' cannot be translated")
    assert output[-1].endswith("0 failed; 1 texts could not be translated and are unchanged")
