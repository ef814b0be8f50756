"""GET / and the files of the page, without a browser."""

import re
from pathlib import Path

import httpx
import pytest

from service.routes import page
from tests.service.application import Application

FILES = sorted(path.relative_to(page.WEB).as_posix() for path in page.WEB.rglob("*") if path.is_file())


@pytest.fixture
def client(shared_native: Application) -> httpx.Client:
    return shared_native.client


def test_the_page_is_at_the_root(client: httpx.Client) -> None:
    response = client.get("/")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.text == (page.WEB / "index.html").read_text(encoding="utf-8")


def test_every_file_is_served_as_what_it_is(client: httpx.Client) -> None:
    for name in FILES:
        response = client.get(f"/web/{name}")
        assert (response.status_code, response.content) == (200, (page.WEB / name).read_bytes()), name
        assert response.headers["content-type"] == page.MEDIA_TYPES[Path(name).suffix]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'self'" in response.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/", "/web/modules/main.js"])
def test_what_a_browser_has_is_not_sent_again(client: httpx.Client, path: str) -> None:
    tag = client.get(path).headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = client.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize(
    "name", ["", "modules", "none.js", "../app.py", "..%2Fapp.py", "modules/../../app.py", "/etc/passwd", "%00.js"]
)
def test_nothing_else_is_served(client: httpx.Client, name: str) -> None:
    assert client.get(f"/web/{name}").status_code == 404


def test_modules_are_fetched_in_one_go() -> None:
    """A module that is not named in the page would be fetched only when the one that imports it has come."""
    html = (page.WEB / "index.html").read_text(encoding="utf-8")
    named = set(re.findall(r'(?:href|src)="web/(modules/[^"]+)"', html))
    assert named == {name for name in FILES if name.startswith("modules/")}


def test_no_foreign_host_and_nothing_inline() -> None:
    for name in FILES:
        text = (page.WEB / name).read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//\w+\.\w+/", text), name
        assert not re.search(r"<style|<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=\"|eval\(|innerHTML", text), name
