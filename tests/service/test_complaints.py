"""What users of such services complain about, each as a test against the running service with a small real model.

Where a model must be followed by hand, one that writes words in reverse order stands in for it.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.service.application import Application
from tests.service.doubles import backwards
from tests.service.running import FROZEN

WAIT, WARTEN = "Please wait.", "Bitte warten Sie."
FAST, SCHNELL = "My husband is very fast.", "Mein Mann ist sehr schnell."


@pytest.fixture(scope="module")
def client(start_service: Callable[..., Any]) -> Iterator[httpx.Client]:
    """A service with the frozen model, en-de."""
    service = start_service(FROZEN)
    with httpx.Client(base_url=service.url, trust_env=False, timeout=60) as found:
        yield found


@pytest.fixture(scope="module")
def reversing() -> Iterator[Application]:
    """One that puts the words of a sentence in reverse order."""
    running = Application({"en-de": backwards})
    yield running
    running.stop()


def translated(client: httpx.Client, q: Any, **more: Any) -> Any:
    response = client.post("/translate", json={"q": q, "source": "en", "target": "de", **more})
    assert response.status_code == 200, response.text
    return response.json()["translatedText"]


@pytest.mark.parametrize(
    ("text", "language"),
    [("Good morning", "en"), ("thank you", "en"), ("Guten Morgen", "de"), ("danke", "de"), ("schön", "de")],
)
def test_short_texts_are_detected_rightly(client: httpx.Client, text: str, language: str) -> None:
    assert client.post("/detect", json={"q": text}).json()[0]["language"] == language


def test_capitals(client: httpx.Client) -> None:
    assert translated(client, WAIT.upper()) == WARTEN.upper()
    assert translated(client, [FAST.upper(), FAST]) == [SCHNELL.upper(), SCHNELL]


@pytest.mark.parametrize("text", ["ha " * 80, "very " * 60 + "fast.", "The hotel the hotel " * 20, "a" * 3000])
def test_no_loops(client: httpx.Client, text: str) -> None:
    """What comes out is bounded by what went in, and no run of words comes more often in it than one did there."""
    found = translated(client, text.strip())
    assert len(found) <= 3 * len(text) + 100
    assert most_in_a_row(found) <= max(3, most_in_a_row(text) + 2)


def most_in_a_row(text: str) -> int:
    """How often a run of one to four words is said in a row."""
    words = text.split()
    most = 1
    for length in range(1, 5):
        runs = 1
        for place in range(length, len(words) - length + 1, 1):
            same = words[place - length : place] == words[place : place + length]
            runs = runs + 1 if same else 1
            most = max(most, 1 + (runs - 1) // length)
    return most


def test_html_nested_tags_follow_their_words(reversing: Application) -> None:
    html = '<p class="a">one <b id=1>two <i>three</i></b> four</p>'
    assert translated(reversing.client, html, format="html") == (
        '<p class="a">four <b id=1><i>three</i> two</b> one</p>'
    )


def test_html_comments_entities_and_newlines_stay(reversing: Application) -> None:
    html = "<!-- a note -->\n<p>one\n<em>two</em>&nbsp;three</p>\n\n<script>if (a < b) {}</script><pre>x  y</pre>"
    found = translated(reversing.client, html, format="html")
    assert found.startswith("<!-- a note -->\n<p>three") and found.endswith(html[html.index("\n\n<script>") :])
    assert "<em>two</em>" in found and found.count("<p>") == 1


@pytest.mark.parametrize(
    "html",
    [
        "&lt;script&gt;alert(1)&lt;/script&gt; the dog",
        "<p>the &amp;lt;b&amp;gt; dog &#60;img src=x onerror=alert(1)&#62;</p>",
        '<p title="&quot;&gt;&lt;script&gt;the dog">a cat</p>',
    ],
)
def test_html_what_was_escaped_stays_escaped(client: httpx.Client, reversing: Application, html: str) -> None:
    tags = re.findall(r"<[^>]*", re.sub(r'"[^"]*"', '""', html))
    for served in (client, reversing.client):
        found = translated(served, html, format="html")
        assert re.findall(r"<[^>]*", re.sub(r'"[^"]*"', '""', found)) == tags


@pytest.mark.parametrize("number", ["2.200.112", "DE123456789", "10.0.0.1", "A-4711/b", "+49 30 123456"])
def test_numbers_and_identifiers(client: httpx.Client, number: str) -> None:
    assert number in translated(client, f"The hotel {number} is in front of the monument.")
    assert translated(client, number) == number


SPANS = ("👍🏽", "👩\u200d👩\u200d👧", "%1$s", "%(name)s", "{name}", "{{ user.name }}", "@some_user", "#hashtag")
CODES = ("https://a.example/b?c=d&e=f#g", "a.b+c@mail.example.org", "`code_span()`", "/usr/bin/env", "$HOME")


@pytest.mark.parametrize("span", SPANS + CODES)
def test_spans_come_back_whole(client: httpx.Client, span: str) -> None:
    text = f"The hotel {span} is in front of the monument."
    assert translated(client, text).count(span) == 1
    assert translated(client, span) == span
    assert translated(client, [f"{WAIT} {span}"])[0].endswith(span)


def test_the_tail_of_a_long_text(client: httpx.Client) -> None:
    count = 400
    found = translated(client, " ".join([WAIT, FAST] * (count // 2)))
    assert found == " ".join([WARTEN, SCHNELL] * (count // 2))
    numbered = "\n".join(f"{number}) {WAIT}" for number in range(count))
    assert translated(client, numbered) == "\n".join(f"{number}) {WARTEN}" for number in range(count))


@pytest.mark.parametrize("blank", ["", " ", "\n", "\t\n\t", "...", "—", "***"])
def test_an_empty_line_stays_empty(client: httpx.Client, blank: str) -> None:
    assert translated(client, [blank, f"{WAIT}\n{blank}\n{WAIT}"]) == [blank, f"{WARTEN}\n{blank}\n{WARTEN}"]
