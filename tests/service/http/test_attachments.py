"""Tests of the header that names a download."""

import pytest

from service.http.attachments import attachment


@pytest.mark.parametrize(
    ("name", "plain", "quoted"),
    [
        ("note_de.txt", "note_de.txt", "note_de.txt"),
        ("a letter.html", "a letter.html", "a%20letter.html"),
        ("Ä.docx", "_.docx", "%C3%84.docx"),
        ('a"b\\c%41\r\n.txt', "a_b_c_41.txt", "a%22b%5Cc%2541.txt"),
        ("a\u202etxt.exe", "atxt.exe", "atxt.exe"),
        ("../a", ".._a", "..%2Fa"),
    ],
)
def test_names_a_download_for_every_client(name: str, plain: str, quoted: str) -> None:
    header = attachment(name)["Content-Disposition"]
    assert header == f"attachment; filename=\"{plain}\"; filename*=utf-8''{quoted}"
