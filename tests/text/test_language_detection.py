from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from py3langid.langid import LanguageIdentifier

from mt.text.language_detection import LanguageDetector

LIBRETRANSLATE = [
    *("ar", "az", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "eo", "es", "et", "eu", "fa", "fi", "fr", "ga"),
    *("gl", "he", "hi", "hu", "id", "it", "ja", "ko", "ky", "lt", "lv", "ms", "nb", "nl", "pb", "pl", "pt", "ro"),
    *("ru", "sk", "sl", "sq", "sr", "sv", "th", "tl", "tr", "uk", "ur", "vi", "zh", "zt"),
]
SHORT = {
    "en": ["hello", "Thank you", "The", "OK", "good morning", "KEEP OUT OF REACH OF CHILDREN",
           "The Russian word Привет means hello in English"],
    "de": ["Hallo", "Danke schön", "Guten Morgen", "STRASSE GESPERRT", "Ein 😀 Hund", "Wo ist der Bahnhof?",
           "Москва ist die Hauptstadt von Russland", "Das Buch heißt 三体"],
    "fr": ["Bonjour", "merci beaucoup", "Ça va ?", "12 h 30 : départ", "Où est la gare ?"],
    "es": ["ñandú", "hola", "gracias", "¿Qué tal?"],
    "it": ["ciao", "grazie mille", "Dov'è la stazione?"],
    "nl": ["dank je wel", "goedemorgen", "Waar is het station?"],
    "pl": ["dziękuję", "dzień dobry"], "cs": ["dobrý den", "děkuji", "Kde je nádraží?"],
    "sk": ["dobrý deň", "ďakujem"], "hu": ["köszönöm", "jó napot"], "ro": ["mulțumesc", "bună ziua"],
    "tr": ["teşekkür ederim", "günaydın"], "sv": ["tack så mycket", "god morgon"], "da": ["tak for hjælpen"],
    "nb": ["hvordan har du det"], "fi": ["kiitos paljon"],
    "ru": ["спасибо", "доброе утро", "Я использую Visual Studio Code"],
    "uk": ["дякую", "Київ", "їжа", "добрий ранок"],
    "el": ["ευχαριστώ"], "he": ["תודה"], "ar": ["شكرا"], "fa": ["متشکرم"], "ur": ["آپ کیسے ہیں"], "th": ["ขอบคุณ"],
    "hi": ["धन्यवाद", "यह एक आदमी है"], "bn": ["ধন্যবাদ"], "vi": ["cảm ơn"],
    "ja": ["ありがとう", "カメラ", "iPhoneの使い方"],
    "ko": ["감사합니다", "中國에서"],
    "zh": ["谢谢", "这是什么", "如何使用Azure Active Directory"],
    "zt": ["謝謝", "臺灣的歷史"],
    "pb": ["Você pegou o ônibus?"],
    "pt": ["O autocarro chegou, tu viste?"],
}  # fmt: skip
PLAIN = {"en": "A man rides a bicycle.", "de": "Ein Mann fährt Fahrrad.", "fr": "Un homme fait du vélo."}
PLAIN |= {"cs": "Muž jede na kole.", "zh": "一个男人骑自行车。"}


@pytest.fixture(autouse=True, scope="module")
def model() -> Iterator[None]:
    """Read the model of py3langid once, because that takes a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LanguageIdentifier, "from_model_file", cache(LanguageIdentifier.from_model_file))
        yield


@pytest.fixture(scope="module")
def all_languages() -> LanguageDetector:
    return LanguageDetector(LIBRETRANSLATE)


@pytest.fixture(scope="module")
def two() -> LanguageDetector:
    return LanguageDetector(["en", "de"])


@pytest.mark.parametrize(("language", "text"), [(name, text) for name, texts in SHORT.items() for text in texts])
def test_short_texts_among_all_languages(all_languages: LanguageDetector, language: str, text: str) -> None:
    assert all_languages.detect(text)[0][0] == language


@pytest.mark.parametrize("language", PLAIN)
def test_an_ordinary_sentence_leaves_no_doubt_in_any_case(all_languages: LanguageDetector, language: str) -> None:
    for text in (PLAIN[language], PLAIN[language].upper(), PLAIN[language].lower()):
        first, probability = all_languages.detect(text)[0]
        assert first == language and probability > 0.6


@pytest.mark.parametrize("text", ["", " \n", "12", "12:30", "3.14 %", "😀👍🏽", "...", "https://x.org/der", "@der_h"])
def test_where_nothing_tells_all_are_equal(two: LanguageDetector, text: str) -> None:
    assert two.detect(text) == [("en", 0.5), ("de", 0.5)]


def test_addresses_placeholders_and_code_do_not_count(two: LanguageDetector) -> None:
    bare = two.detect("Bitte hier ansehen")
    for extra in ("https://example.org/the/house/and/the/man", "`if the else and or`", "user@the-house.com"):
        assert two.detect(f"Bitte {extra} hier ansehen") == bare


@pytest.mark.parametrize(
    ("text", "language"),
    [
        *(("Bonjour tout le monde, ça va ?", "fr"), ("Где вокзал?", "ru"), ("La tua password non è corretta", "it")),
        *(("No puedo abrir el archivo adjunto.", "es"), ("Waar is het station?", "nl"), ("Var är stationen?", "sv")),
        *(("Gdzie jest dworzec kolejowy w Warszawie?", "pl"), ("Ég get ekki opnað skrána.", "is")),
        *(("Siwezi kufungua faili hii leo.", "sw"), ("რკინიგზის სადგური", "ka"), ("ரயில் நிலையம் எங்கே உள்ளது?", "ta")),
        *((PLAIN[language], language) for language in ("cs", "zh")),
    ],
)
def test_language_that_was_not_requested(two: LanguageDetector, text: str, language: str) -> None:
    (first, probability), *others = two.detect(text)
    assert first == language and probability >= 0.9
    assert {tag for tag, _ in others} == {"en", "de"} and sum(rest for _, rest in others) < 0.1 + 1e-9


@pytest.mark.parametrize("text", ["Estoy enfermo", "Bona nit", "Tudo bem?", "Envío gratis"])
def test_two_words_that_no_requested_language_has(text: str) -> None:
    requested = LanguageDetector(["en", "de", "fr"])
    (first, probability), *_ = requested.detect(text)
    assert first not in ("en", "de", "fr") and probability >= 0.6
    for own in ("Pocket money", "Teddybär", "Katzen", "Bonnet rouge", "mosquito bite"):
        assert requested.detect(own)[0][0] in ("en", "de", "fr")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("My friend Łukasz Kowalczyk moved to Wrocław in May.", "en"),
        ('She said "ciao bella, come stai?" and left.', "en"),
        ("Frau Katarzyna Wiśniewska kommt aus Bydgoszcz.", "de"),
        ("Das Wort dziękuję ist Polnisch.", "de"),
        ("Ich esse gern Gnocchi al pesto.", "de"),
        ("Tom vermisst Mary sehr.", "de"),
    ],
)
def test_names_and_quotations_do_not_make_a_text_foreign(two: LanguageDetector, text: str, language: str) -> None:
    assert two.detect(text)[0][0] == language


def test_short_and_long_texts(all_languages: LanguageDetector, two: LanguageDetector) -> None:
    sure = [all_languages.detect(text)[0][1] for text in ("Restaurant", "Restaurant am Markt in der alten Stadt")]
    assert sure[0] < 0.5 < 0.9 < sure[1]
    begin = "Wo ist der Hund? " * 400
    assert two.detect(begin + "a" * 1_000_000) == two.detect(begin + "The dog is here. " * 50_000)


@pytest.mark.parametrize(
    ("tags", "text", "best"),
    [
        (["tlh", "de-AT", "pt-BR", "no"], "Wo ist der Hund?", "de-AT"),
        (["tlh", "de-AT", "pt-BR", "no"], "Hvor er mannen?", "no"),
        (["pt", "pt-BR"], "Você pegou o ônibus?", "pt-BR"),
        (["pt-BR", "pt-PT"], "O autocarro chegou, tu viste?", "pt-PT"),
        (["zh-Hans", "zh-Hant"], "謝謝", "zh-Hant"),
        (["sr-Latn", "sr-Cyrl"], "Dobar dan, kako si?", "sr-Latn"),
        (["sr-Latn", "sr-Cyrl"], "Добар дан, како си?", "sr-Cyrl"),
        (["en", "zt"], "这是什么", "zt"),
    ],
)
def test_regions_scripts_and_unknown_languages(tags: list[str], text: str, best: str) -> None:
    probabilities = LanguageDetector(tags).detect(text)
    assert probabilities[0][0] == best and {tag for tag, _ in probabilities} == set(tags)
    assert dict(probabilities).get("tlh", 0.0) == 0.0


def test_all_of_libretranslates_languages_have_a_profile(all_languages: LanguageDetector) -> None:
    assert all_languages.languages == tuple(LIBRETRANSLATE)
    assert all(probability > 0 for _, probability in all_languages.detect("Hm"))
    assert LanguageDetector([]).detect("Wo ist der Hund?") == []


@given(st.text() | st.text(st.characters()).map(lambda text: f"The {text} dog"))
def test_whatever_the_text_probabilities_are_probabilities(text: str) -> None:
    probabilities = DETECTOR.detect(text)
    assert {tag for tag, _ in probabilities[-4:]} == {"en", "de", "zh", "zt"} and len(probabilities) <= 5
    values = [probability for _, probability in probabilities]
    assert values == sorted(values, reverse=True)
    assert min(values) >= 0 and sum(values) <= 1 + 1e-9


DETECTOR = LanguageDetector(["en", "de", "zh", "zt"])
"""A constant: hypothesis does not reset fixtures."""
