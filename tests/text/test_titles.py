"""Titles of people, in the target language."""

import pytest

from mt.text.protect import find_spans
from mt.text.titles import end_of_greeting, lost_titled_names, titled_names, write_titles


@pytest.mark.parametrize(
    ("languages", "source", "translation", "expected"),
    [
        ("en-de", "Mr Smith called.", "Mr Smith rief an.", "Herr Smith rief an."),
        ("en-de", "Please ask Mr. Smith's wife.", "Frag Mr. Smiths Frau.", "Frag Herrn Smiths Frau."),
        ("en-de", "I met Mr Smith.", "Ich traf Herr Smith.", None),
        ("en-de", "I spoke with Mr Dr. Lee.", "Ich sprach mit Mr Dr. Lee.", "Ich sprach mit Herrn Dr. Lee."),
        ("en-de", "Is Mr Lee in, or Mrs Lee?", "Ist Mr Lee da oder Mrs Lee?", "Ist Herr Lee da oder Frau Lee?"),
        ("en-de", "Dear Mr Lee,", "Sehr geehrte Frau Lee,", "Sehr geehrter Herr Lee,"),
        ("en-de", "Dear Ms Lee,", "Lieber Lee,", "Liebe Frau Lee,"),
        ("en-de", "Good morning Mr Lee!", "Guten Morgen Lee!", "Guten Morgen Herr Lee!"),
        ("en-de", "Mr and Mrs Lee sleep.", "Mr und Mrs Lee schlafen.", "Herr und Frau Lee schlafen."),
        ("en-de", "This is Mr Lee.", "Das ist Mr-Lee.", "Das ist Herr Lee."),
        ("en-de", "By Mr Lee", "Von Mr Lee", "Von Herrn Lee"),
        ("en-de", "Last week Mr Lee came.", "Letzte Woche kam Mr Lee.", "Letzte Woche kam Herr Lee."),
        (
            "en-de",
            "Last week Mr Jo Lee was ill.",
            "Letzte Woche war Mr Jo Lee krank.",
            "Letzte Woche war Herr Jo Lee krank.",
        ),
        ("en-de", "I saw Mr Lee play.", "Ich sah Mr Lee spielen.", "Ich sah Herrn Lee spielen."),
        ("en-de", "I like Mr. Bean and Ms Marvel.", "Ich mag Mr. Bean und Ms Marvel.", None),
        ("de-en", "Frau Kleins Auto", "Woman Klein's car", "Ms Klein's car"),
        ("de-en", "Herr Klein und Frau Jonas", "Mr Klein and woman Jonas", "Mr Klein and Ms Jonas"),
        ("de-en", "Jede Frau Europas", "Every woman Europas", None),
        ("de-en", "Der Herr Türkisch", "The man Türkisch", None),
        ("en-de", "Mr Lee saw it.", "Lee sah es.", None),
        ("en-de", "Mr Lee", "Lee", "Herr Lee"),
        ("en-de", "Dear Mr {a}, Dear Ms [B],", "Lieber {a}, liebe [B],", "Lieber Herr {a}, liebe Frau [B],"),
        ("fr-en", "Mme %s et M. {{ x }}", "Mme %s and M. {{ x }}", "Ms %s and Mr {{ x }}"),
        ("en-de", "Mr Hove sees KwaHove.", "KwaHove sieht Mr Hove.", "KwaHove sieht Herr Hove."),
        ("en-fr", "Dear Ms Lee,", "Cher Ms Lee,", "Chère Madame Lee,"),
        ("en-fr", "Ms Lee is here.", "Madame Lee est là.", None),
        ("en-fr", "Ask Ms Lee.", "Demandez à Ms Lee.", "Demandez à Mme Lee."),
        ("de-en", "Frau Dr. Klein ist da.", "Woman Dr. Klein is here.", "Ms Dr. Klein is here."),
        ("de-en", "Mit Herrn Klein", "With Mrn Klein", "With Mr Klein"),
        ("de-en", "Frau Klein", "Mrs. Klein", None),
        ("de-en", "Mit seiner Frau Anna", "With his wife Anna", None),
        ("de-en", "Herr Präsident!", "Mr President!", None),
        ("fr-en", "Bonjour Madame Bovary", "Hello Madame Bovary", None),
        ("fr-en", "J'ai vu M. Dupont.", "I saw M. Dupont.", "I saw Mr Dupont."),
        ("fr-en", "C'est M. Dupont.", "It's M. Dupont.", "It's Mr Dupont."),
        ("fr-en", "Richard M. Stallman", "Richard M. Stallman", None),
        ("fr-de", "Bonjour M. Dupont,", "Hallo M. Dupont,", "Hallo Herr Dupont,"),
        (
            "en-de",
            "with a Mr Lee and the Mr Fox",
            "mit einer Mr Lee und die Mr Fox",
            "mit einem Herrn Lee und der Herr Fox",
        ),
        ("de-fr", "Ein Herr Lee, eine Frau Fox", "Une M. Lee, un Mme Fox", "Un M. Lee, une Mme Fox"),
        ("en-de", "Mr. J. R. Lee is in.", "Mr. J. R. Lee ist da.", "Herr J. R. Lee ist da."),
        ("de-en", "Eine Frau Keller rief an.", "A woman Keller called.", "A Ms Keller called."),
        ("en-it", "Mr Smith", "Mr Smith", None),
        ("it-de", "Mr Smith", "Mr Smith", None),
    ],
)
def test_titles(languages: str, source: str, translation: str, expected: str | None) -> None:
    """None: the translation stays."""
    language, target = languages.split("-")
    assert write_titles(source, translation, (language, target)) == (expected or translation)


@pytest.mark.parametrize(
    ("language", "source", "translation", "lost"),
    [
        ("en", "Dear Mr Smith,", "Sehr geehrte Frau,", ["Smith"]),
        ("en", "Dear Mr Smith,", "Lieber Smith,", []),
        ("en", "Mr President, thank you.", "Herr Vorsitzender, danke.", []),
        ("en", "Mr. Lee and Ms O'Neill", "Lee und sie", ["O'Neill"]),
        ("en", "Mr Bean is funny.", "Er ist lustig.", ["Bean"]),
        ("de", "Frau Kleins Auto", "Klein's car", []),
        ("de", "Frau Kleins Auto und Frau Jonas", "a car", ["Klein", "Jonas"]),
        ("de", "Mit einem Herr Lee, einer Frau Anfang 40", "with a Mr", ["Lee"]),
        ("de", "Danke, Herr Lehrer", "Thank you, teacher", []),
    ],
)
def test_lost_titled_names(language: str, source: str, translation: str, lost: list[str]) -> None:
    assert [source[begin:end] for begin, end in lost_titled_names(source, translation, language)] == lost


@pytest.mark.parametrize(
    ("text", "expected"), [("Dear Mr Smith,", True), ("dear mr smith,", False), ("Mr Right", True)]
)
def test_titled_names(text: str, expected: bool) -> None:
    assert any(titled_names(text, "en-GB")) is expected and not any(titled_names(text, "it"))


@pytest.mark.parametrize(
    ("sentence", "end"),
    [
        ("Dear Mr {name}, thank you.", 15),
        ("Hello %s, it is here.", 9),
        ("Hello %s", 0),
        ("Hello, the file %s, it is here.", 0),
        ("See %s, it is here.", 0),
    ],
)
def test_end_of_greeting(sentence: str, end: int) -> None:
    assert end_of_greeting(sentence, find_spans(sentence)) == end
