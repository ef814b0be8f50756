"""The texts of the page, without a browser: the same in each language, and all of them in web/messages."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mt.bundled import STARTER_MODEL
from service.routes.page import WEB

Message = str | dict[str, str]

HTML = (WEB / "index.html").read_text(encoding="utf-8")
MODULES = {path.name: path.read_text(encoding="utf-8") for path in sorted((WEB / "modules").glob("*.js"))}
FILES = sorted((WEB / "messages").glob("*.json"))
MESSAGES: dict[str, dict[str, Message]] = {path.stem: json.loads(path.read_text("utf-8")) for path in FILES}
SPOKEN = ("alt", "aria-label", "content", "placeholder", "title")  # attributes that a reader sees or hears
CODE = re.compile(  # literals behind these words are not for readers
    r"(?:class: |className = |key [!=]== |key\[|(?:includes|closest|querySelector|matchMedia|load|save)\(|ization: )"
    r"""(?:"[^"]*"|`[^`]*`)"""
)
CONSOLE = re.compile(r"(throw )?new (Error|DOMException)\(.*\)")


def forms(message: Message) -> list[str]:
    return [message] if isinstance(message, str) else list(message.values())


def fields(message: Message) -> set[str]:
    return {name for form in forms(message) for name in re.findall(r"{(\w+)}", form)}


def texts_of_code(code: str) -> list[str]:
    """The literals of a module that read like a text: with a space between words, or with a capital letter first."""
    code = re.sub(r"^\s*(/?\*|//).*|\s// .*", "", code, flags=re.MULTILINE)
    code = CODE.sub("", CONSOLE.sub("", code))
    literals = [first or second for first, second in re.findall(r'"((?:[^"\\\n]|\\.)*)"|`([^`]*)`', code)]
    plain = [re.sub(r"\$\{[^}]*\}", "", literal) for literal in literals]
    texts = r"[^\W\d_]{2,}[,.:;]? +[^\W\d_]{2,}|^[A-ZÄÖÜ][a-zäöü]{3,} ?$|\w.*[…“”]"
    return [literal for literal in plain if re.search(texts, literal)]


class Texts(HTMLParser):
    """Collects the texts and spoken attributes of a page that are written in it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tag = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tag = tag
        named = dict(attrs).get("name")
        if named not in ("viewport", "color-scheme"):
            self.found += [f"{name}={value}" for name, value in attrs if name in SPOKEN]

    def handle_data(self, data: str) -> None:
        if self.tag != "kbd" and re.search(r"\w", data):  # the letter on a key is the same in each language
            self.found.append(data.strip())

    def handle_endtag(self, tag: str) -> None:
        self.tag = ""


def test_every_language_has_a_file_and_is_offered() -> None:
    offered = re.search(r'<html [^>]*data-languages="([^"]+)"', HTML)
    assert offered and sorted(offered[1].split()) == sorted(MESSAGES)


@pytest.mark.parametrize("language", sorted(MESSAGES))
def test_languages_have_the_same_messages_and_fields(language: str) -> None:
    here, english = MESSAGES[language], MESSAGES["en"]
    assert list(here) == list(english)
    assert {key: fields(message) for key, message in here.items()} == {key: fields(english[key]) for key in here}
    assert all(form.strip() == form != "" for message in here.values() for form in forms(message))
    plurals = [message for message in here.values() if isinstance(message, dict)]
    assert all(list(message) == ["one", "other"] for message in plurals)


def test_every_message_is_used_and_every_used_message_exists() -> None:
    names = "|".join(map(re.escape, MESSAGES["en"]))
    used = {name for text in (HTML, *MODULES.values()) for name in re.findall(rf'"({names})"', text)}
    assert used == set(MESSAGES["en"])
    named = re.findall(r'data-message(?:-[a-z-]+)?="([^"]+)"', HTML)
    named += [name for code in MODULES.values() for name in re.findall(r'localized\("([^"]+)"', code)]
    assert set(named) <= set(MESSAGES["en"])


def test_the_page_has_no_text_of_its_own() -> None:
    page = Texts()
    page.feed(HTML)
    assert page.found == []


@pytest.mark.parametrize("name", MODULES)
def test_modules_have_no_text_of_their_own(name: str) -> None:
    assert texts_of_code(MODULES[name]) == []


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        ('setText(note, "Nothing yet.");', ["Nothing yet."]),
        ("note.textContent = `Sending ${file.name} …`;", ["Sending  …"]),
        ('button("Cancel", file)', ["Cancel"]),
        ('localized("memory.none") // "No memory"', []),
        ('closest("input, textarea, select") === element("li", { class: "note" })', []),
    ],
)
def test_texts_in_code_are_recognized(code: str, texts: list[str]) -> None:
    assert texts_of_code(code) == texts


def test_the_page_describes_the_bundled_model_as_its_config_does() -> None:
    config = json.loads((STARTER_MODEL / "config.json").read_text(encoding="utf-8"))
    assert MESSAGES["en"]["model.about-bundled"] == config["about"]


def test_marks_of_french_stand_behind_a_no_break_space() -> None:
    lines = Path(WEB / "messages/fr.json").read_text(encoding="utf-8")
    assert not re.findall(r".{10}[\w}] [:;?!»%…].{3}", lines)
