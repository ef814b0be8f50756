import pytest

from mt.text.protect import find_spans
from mt.text.stand_ins import StandIn, StandInKind, StandInWords, likely_kinds, put_back, replace_spans

NAME, PLACE, NUMBER = StandInKind.NAME, StandInKind.PLACE, StandInKind.NUMBER
DATE, TIME = StandInKind.DATE, StandInKind.TIME
ANY = NAME, NUMBER, StandInKind.LETTER


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        *[(text, (NUMBER,)) for text in ["%d", "%1$d", "%.2f", "%(n)d", "{n}", "%L1", "%n", "€5", "-$3", "%lld"]],
        *[(text, (NUMBER,)) for text in ("1.200,50 ₹", "{{ totalCount }}", "1½", "¾")],
        *[(text, (NUMBER,)) for text in ("{0, number, integer}", "{x:.2f}", "{0:F1}", "${age}", "{numFiles}", "#{n}")],
        *[(text, (StandInKind.MEASURE,)) for text in ("5 - 10 kg", "~ 5 mg", "5–10 dB", "1,5 µg/ml")],
        *[(text, (NAME,)) for text in ("{name}", "%{user}", "%(name)s", "{{person.name}}", "мир", "<name>")],
        *[
            (text, ANY)
            for text in ("{0}", "%s", "%1$s", "{}", "\U000f0000", "⟦0⟧", "<0/>", '<x id="1"/>', "{file_name}")
        ],
        *[(text, (PLACE,)) for text in ("{city}", "{{ homeCity }}", "%(country)s")],
        *[(text, (DATE,)) for text in ("{date}", "{{ endDate }}", "%(start_date)s", "[Datum]")],
    ],
)
def test_what_a_span_may_stand_for(text: str, kinds: tuple[StandInKind, ...]) -> None:
    assert likely_kinds(text) == kinds


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        *[("Wait {time}", (NAME,)), ("at {time}", (TIME,)), ("Um [Uhrzeit] Uhr", (TIME,)), ("in {time}", (NAME,))],
        *[(text, (NAME, PLACE)) for text in ("in {b}", "In %s.", "in [X2X]")],
        *[("in %s seconds", ANY), ("in %d", (NUMBER,)), ("in {city}", (PLACE,)), ("within {b}", ANY)],
    ],
)
def test_what_a_placeholder_may_stand_for_in_a_sentence(text: str, kinds: tuple[StandInKind, ...]) -> None:
    (span,) = find_spans(text)
    assert likely_kinds(span.text, text[: span.begin], text[span.end :]) == kinds


@pytest.mark.parametrize(
    ("source", "stand_ins", "translation", "expected"),
    [
        ("Tom sleeps", [StandIn("Tom", "{x}")], "Tom schläft", "{x} schläft"),
        ("Tom's dog", [StandIn("Tom", "{x}")], "Toms Hund", "{x}s Hund"),
        ("Tom's dog", [StandIn("Tom", "%1$s")], "Toms Hund", "%1$ss Hund"),
        ("Tom's dog", [StandIn("Tom", "$x")], "Toms Hund", None),  # $xs is another variable
        ("Tom sleeps", [StandIn("Tom", "{x}")], "Tomas schläft", None),
        ("Tom sleeps", [StandIn("Tom", "{x}")], "Tom, Tom schläft", None),
        ("Tom sleeps", [StandIn("Tom", "{x}")], "Tom 1 schläft", None),
        ("37 files", [StandIn("37", "%d")], "37-Dateien", "%d Dateien"),
        ("Tom files", [StandIn("Tom", "{0}")], "Tom-Dateien", "{0} Dateien"),
        ("Tom files", [StandIn("Tom", "{name}")], "Tom-Dateien", "{name}-Dateien"),
        ("37 sleeps", [StandIn("37", "`x`")], "37-Hund", "`x`-Hund"),
        ("the dog of Tom", [StandIn("Tom", "{x}")], "Toms Hund", "{x}s Hund"),
        ("your order Tom is here", [StandIn("Tom", "{x}")], "dein Auftrag, Toms ist hier", None),
        ("Tom's dog", [StandIn("Tom", "%2$s")], "Tom's Hund", "%2$ss Hund"),
        ("37 by 31 May", [StandIn("37", "$5")], "37:31. Mai", None),
        ("37:31", [StandIn("37", "%d")], "37:31", "%d:31"),
        ('Open "Tom".', [StandIn("Tom", "{x}", enclosed=True)], "Öffne „ Tom“.", "Öffne „{x}“."),
        ('Open "Tom".', [StandIn("Tom", "{x}", enclosed=True)], "Öffne Tom.", None),
        ('"Tom" sleeps.', [StandIn("Tom", "{x}", enclosed=True)], "Tom's sleep.", None),
        ("Tom Peter", [StandIn("Tom", "{x}"), StandIn("Peter", "{Tom}")], "Peter Tom", "{Tom} {x}"),
        ("Tom, 37", [StandIn("Tom", "%s", ordered=True), StandIn("37", "%d", ordered=True)], "37, Tom", None),
        ("Tom住", [StandIn("Tom", "{x}")], "在Tom住", "在{x}住"),
        ("Dear Anna,", [StandIn("Anna", "«x»")], "Sehr geehrte Frau Anna,", "Sehr geehrte «x»,"),
        ("Dear Doctor Anna,", [StandIn("Anna", "{x}")], "Liebe Frau Anna,", "Liebe Frau {x},"),
        ("Mrs Anna sleeps", [StandIn("Anna", "{x}")], "Frau Anna schläft", "Frau {x} schläft"),
    ],
)
def test_verification(source: str, stand_ins: list[StandIn], translation: str, expected: str | None) -> None:
    assert put_back(translation, source, stand_ins, "de") == expected


def test_an_ending_is_accepted_only_in_languages_that_have_it() -> None:
    stand_ins, languages = [StandIn("Tom", "{x}")], ("de", "sv", "fr", "en")
    found = [put_back("Toms", "of Tom", stand_ins, language) for language in languages]
    assert found == ["{x}s", "{x}s", None, None]


def test_words_with_the_fewest_pieces_come_first() -> None:
    words = StandInWords({"Max": 1, "Tom": 2, "Anna": 3, "37": 2}.get, "de")  # type: ignore[arg-type]
    assert words.choose(["", ""], [NAME, NUMBER], "a", ["", ""], 0) == ["Max", "37"]
    assert words.choose([""], [NAME], "a maximum", ["d'"], 0) == ["Anna"]
    assert words.choose(["", ""], [NUMBER, NUMBER], "a", ["", ""], 0) is None
    assert words.choose([""], [PLACE], "a", [""], 0) is None


@pytest.mark.parametrize(
    ("sentence", "amounts", "expected"),
    [
        ("It costs $1,234.56.", ["$1,234.56"], ["1234"]),
        ("£5 or €7", ["£5", "€7"], ["5", "7"]),
        ("€5 or 5 cups", ["€5"], ["37"]),  # 5 is another number of the sentence
        ("€5 or $5", ["€5", "$5"], ["37", "48"]),
        ("$1,000,000", ["$1,000,000"], ["37"]),
    ],
)
def test_an_amount_stands_for_itself_without_its_sign(sentence: str, amounts: list[str], expected: list[str]) -> None:
    kinds, befores = [NUMBER] * len(amounts), [""] * len(amounts)
    assert StandInWords(len, "de").choose(amounts, kinds, sentence, befores, 0) == expected


def test_names_are_letters_for_languages_of_other_scripts() -> None:
    words = StandInWords(len, "zh").choose(["", "", ""], [NAME, PLACE, NUMBER], "an x", ["", "", ""], 0)
    assert words is not None and words[2].isdigit() and len({*words}) == 3 and all(len(word) == 1 for word in words[:2])


def test_guillemets_enclose_with_spaces() -> None:
    rows = {"« {a} »": True, "({a})": True, "« {a} b »": False, "{a}": False, "( {a} )": False}
    for sentence, enclosed in rows.items():
        (stand_in,) = replace_spans(sentence, find_spans(sentence), (), lambda texts, befores: ["Q"]).stand_ins
        assert stand_in.enclosed is enclosed, sentence


def test_a_span_directly_after_a_replaced_one_stays_a_span() -> None:
    sentence = "Hi {name}<b/> x"
    spans = find_spans(sentence, [(9, 13)])
    replaced = [span for span in spans if span.text == "{name}"]
    result = replace_spans(sentence, replaced, [one for one in spans if one not in replaced], lambda *_: ["Anna"])
    assert [(span.text, result.text[span.begin : span.end]) for span in result.others] == [("<b/>", "<b/>")]
