"""Round trips of ten realistic files of each format; with LibreOffice where it is installed."""

import pytest

from tests.text.realistic import round_trips
from tests.text.realistic.files import FORMATS, SOFFICE, libreoffice_files, realistic_files
from tests.text.realistic.round_trips import Row, accented, round_trip

WRITTEN = [kind for kind in FORMATS if kind != "pdf"]
CONVERTED = ["docx", "epub", "html", "odp", "ods", "odt", "pdf", "pptx", "xlsx"]


@pytest.mark.parametrize("kind", WRITTEN)
def test_realistic_files_keep_their_outline(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_trips, "SOFFICE", None)
    row = Row()
    round_trip(kind, realistic_files(kind), accented, row)
    assert row.differences == []
    assert row.parts["different"] == 0
    assert row.files in (6, 10)


@pytest.mark.slow
@pytest.mark.skipif(SOFFICE is None, reason="needs LibreOffice")
@pytest.mark.parametrize("kind", CONVERTED)
def test_files_of_libreoffice_keep_their_outline_and_open_again(kind: str) -> None:
    row = Row()
    files = libreoffice_files(kind)
    round_trip(kind, files, accented, row)
    assert row.differences == []
    assert row.parts["different"] == 0
    assert row.opened in (len(files), 0 if kind == "epub" else len(files))
