"""Documents in tests: their texts, their translations, and archives of files."""

import io
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from mt.text.documents import DocumentOptions, open_document
from mt.text.markup import TranslatedSegment


def encoded(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def texts(name: str, content: str | bytes, options: DocumentOptions | None = None) -> list[str]:
    return [segment.text for segment in open_document(name, encoded(content), options).segments]


def render(
    name: str, content: str | bytes, translate: Callable[[str], str] = str, options: DocumentOptions | None = None
) -> bytes:
    """Return a file with translations in which each word is aligned with the word at the same place."""
    document = open_document(name, encoded(content), options)
    translations = []
    for segment in document.segments:
        words = tuple((match.span(), match.span()) for match in re.finditer(r"\S+", segment.text))
        translations.append(TranslatedSegment(translate(segment.text), words))
    return document.render(translations)


def translated(
    name: str, content: str | bytes, translate: Callable[[str], str] = str.upper, options: DocumentOptions | None = None
) -> str:
    return render(name, content, translate, options).decode()


def package(name: str) -> dict[str, str]:
    """Return the members of the stored package of this name; a member `mimetype` comes first."""
    folder = Path(__file__).parent / "packages" / name
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {member: files[member].read_bytes().decode() for member in sorted(files, key=lambda n: (n != "mimetype", n))}


def archive(members: Mapping[str, str]) -> bytes:
    """Return a zip archive. Its member `mimetype` is not compressed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content, zipfile.ZIP_STORED if name == "mimetype" else None)
    return out.getvalue()


def members_of(content: bytes) -> dict[str, str]:
    """Return the members of an archive as text; bytes that are not UTF-8 are replaced."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name).decode("utf-8", "replace") for name in file.namelist()}


def capitals(name: str, members: Mapping[str, str], options: DocumentOptions | None = None) -> dict[str, str]:
    return members_of(render(name, archive(members), str.upper, options))
