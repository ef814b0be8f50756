"""Texts of a kind: names of people, codes, placeholders; and greetings."""

from collections.abc import Callable

import pytest

from mt.text.formality import supports_formality
from mt.text.names import is_given_name
from mt.text.protect import find_spans
from mt.text.stand_ins import is_placeholder
from mt.text.symbols import is_code
from mt.text.titles import is_salutation, titled_names
from mt.text.typography import has_no_break_spaces

KINDS: dict[str, tuple[Callable[[str], bool], list[str], list[str]]] = {
    "given name": (is_given_name, ["Hans"], ["Hans Müller", "Red Car", "Sean O'Neill"]),
    "with a title": (lambda text: any(titled_names(text, "en-GB")), ["Dear Mr Smith,", "Mr Right"], ["dear mr smith,"]),
    "with a title in Italian": (lambda text: any(titled_names(text, "it")), [], ["Dear Mr Smith,", "Mr Right"]),
    "code": (
        lambda text: is_code(text, "en"),
        [
            *("x o  x", "C  G  F#m7  A/E", "x", "M", "id", "pcs", "sku", "kg", "A 1", "$ pip install x"),
            *("docker run -p 80:80 image", "import numpy as np", "if (x > 5) { return 1; }", "def f(self): return 1"),
            *("return None", "let x = 5;", "void f(int a) {", "SELECT * FROM dogs", "$ cd dogs", "npm run build"),
            *("btn btn-primary", "a → b ≠ c", "f(x) = 2x + b", "A ∪ B", "x² + y² = z²", "text-center mt-4"),
            "col-md-6 p-2",
        ],
        [
            *("", "my", "is", "The", "qty", "5", "я", "水", "a b", "A dog", "I", "a", "$ per month", "git is good"),
            *("so big", "if (it rains)", "import the dog", "return home", "let the dog out;", "make a cake - now"),
            *("git is good to start", "SELECT A DOG FROM THE LIST", "class A dogs:", "git push is a command."),
            *("A to B", "C Bad F", 'a "b" c', "public services (schools);", "long and long-term effects", "I = you"),
            *("Plan B", "well-known covid-19 follow-ups"),
        ],
    ),
    "code in a language with words without vowels": (lambda text: is_code(text, "cs"), [], ["krk"]),
    "salutation": (
        lambda text: is_salutation(text.partition(", ")[0], text.partition(", ")[2], "en"),
        [
            "Dear Mr {name}, thank you.",
            "Hello %s, it is here.",
            "Dear Sir or Madam, thank you.",
            "Dear Mum, dear Dad",
            "Good morning, Tom.",
        ],
        ["See %s, it is here.", "Hello, it is here."],
    ),
    "placeholder": (
        is_placeholder,
        [
            *("%s", "%1$@", "{x}", "${x.y}", "#{x}", "%{x}", "⟦0⟧", ":name", "&name;", "<name>", "__x__", "[X1X]"),
            *("%(x)s", "{{ x }}", "<%= x %>", "[[x y]]", "{x, date, short}", "<your name>"),
        ],
        ["https://x.org", "foo_bar", "a.txt", "`x`", "v1.2", "Ctrl+C", "a@b.org", "50%"],
    ),
    "with no-break spaces": (has_no_break_spaces, ["a\u00a0b", "a\u202fb"], ["a b", "ä\u2009b"]),
    "language with formality": (supports_formality, ["de", "de-CH", "fr"], ["en", "pt-BR", "zh"]),
}


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (kind, text, expected)
        for kind, (_, yes, no) in KINDS.items()
        for texts, expected in ((yes, True), (no, False))
        for text in texts
    ],
)
def test_kind_of_a_text(kind: str, text: str, expected: bool) -> None:
    assert KINDS[kind][0](text) is expected


@pytest.mark.parametrize("placeholder", KINDS["placeholder"][1])
def test_placeholders_are_whole_spans(placeholder: str) -> None:
    assert [span.text for span in find_spans(f"See {placeholder} now")] == [placeholder]
