import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.text import normalise
from mt.text.normalise import NormalisedText, Normaliser

KNOWN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 äöüßéèôçñžб.,:;!?'\"’“„–-()/°²")
NORMALISER = Normaliser(KNOWN.__contains__)

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"

CHANGED = {
    "no-break space": ("the\u00a0dog", "the dog"),
    "spaces": ("a\u2009b\u202fc\u3000d\u2003e\u205ff", "a b c d e f"),
    "runs of spaces": ("a \u00a0 b  c", "a b c"),
    "line breaks": ("a\nb\r\nc\u2028d\u2029e\x85f\x0bg\x0ch", "a b c d e f g h"),
    "tab": ("a\t\tb", "a b"),
    "number and unit": ("10\u00a0km", "10 km"),
    "soft hyphens": ("be\u00adhind the sta\u00adtion", "behind the station"),
    "zero-width characters": ("a\u200bb\u2060c\ufeffd", "abcd"),
    "joiners in Latin": ("ab\u200ccd\u200def", "abcdef"),
    "bidirectional marks": ("\u200eab\u200f \u202acd\u202c \u2066ef\u2069", "ab cd ef"),
    "control characters": ("a\x00b\x1bc\x7fd\x9f", "abcd"),
    "decomposed": ("Ma\u0308dchen", "Mädchen"),
    "accent after a soft hyphen": ("Ma\u00ad\u0308dchen", "Mädchen"),
    "Vietnamese": ("Ti\u00ea\u0301ng Vi\u00ea\u0323t", "Ti\u1ebfng Vi\u1ec7t"),
    "Hangul": ("\u1112\u1161\u11ab\u1100\u1173\u11af", "\ud55c\uae00"),
    "full width": ("Ｄｏｇ １２", "Dog 12"),
    "ligatures": ("ﬁrst ﬂoor o\ufb03ce \ufb05", "first floor office st"),
    "mathematical letters": ("\U0001d5ea\U0001d5f5\U0001d5ee\U0001d601 \U0001d7d9", "What 1"),
    "half-width katakana": ("ｶﾞ", "ガ"),
    "Arabic presentation forms": ("\ufefb", "\u0644\u0627"),
    "price without cents": ("12.500,- € und 5,-- Euro, 3,– EUR", "12.500 € und 5 Euro, 3 EUR"),
    "typed quotes": ("``So'', ,,ja'' ,,no\" >>Oh, ja<< <<I am in>> „so\"", '"So", "ja" "no" "Oh, ja" "I am in" "so"'),
    "backtick as apostrophe": ("C`est", "C'est"),
    "references": ("don&#39;t L&apos;eau &quot;a&quot; &#39;b &amp;", "don't L'eau \"a\" &#39;b &amp;"),
    "UTF-8 read as cp1252": ("FranÃ§ois, TÃ¼r, donâ€™t 5 Â°C", "François, Tür, don’t 5 °C"),
    "German guillemets": ("»Ja«, sagte er. »Nein!«", "„Ja“, sagte er. „Nein!“"),
    "quoted lines of an e-mail": ("in the\n> > garden", "in the garden"),
    "hyphens in other languages": ("long-\nterm, docu-\nment, voor-\nen", "long-term, document, voor- en"),
    "radical": ("\u2f00", "一"),
    "variation selector without emoji": ("a\ufe0f 葛\U000e0100", "a 葛"),
    "tag characters without a flag": ("a\U000e0067b", "ab"),
}
UNCHANGED = {
    "ASCII": "The dog (a Labrador) isn't here: 2 * 3 = 6!",
    "superscript": "m² x₂ 1ª Nº",
    "fractions and circled digits": "½ ① ™ © ㊗",
    "no typed quotes": "<<Name>> a << b >> c, x,,y, `a`b, ``a``",
    "typography": "„Ja“ – ‘so’ “or” « so »… ‹x› — 5′ ‑ −3",
    "number with no-break spaces": "1\u00a0234\u202f567,50",
    "number with thin spaces": "12\u2009000",
    "Persian": "می\u200cخواهم",
    "Hindi": "क्\u200dष क\u094d\u200cष",
    "Sinhala": "ශ\u0dca\u200dර\u0dd3",
    "emoji": f"{FAMILY} ❤️ 👍🏽 🇩🇪 1️⃣ {SCOTLAND}",
    "Thai": "ภาษา\u200bไทย ำ",
    "Korean": "한글 ㅋㅋ",
    "Chinese": "你好，世界！（是）",
    "private use": "\ue000 \uf0b7",
    "Croatian": "Džep",
    "Portuguese": "SÃO PAULO, IRMÃ, Â",
    "no gender forms": "Set Amount_in to 5, Print/in color, check/in foo:in, Point(in)",
    "arrows": "‹ Previous",
    "French guillemets": "« a » et « b »",
    "price with cents, and lists": "12,-5 3,- Mark a,-b",
}
GERMAN = {
    "hyphen at the end of a line": ("die Tür-\nklingel, a-\r\nb, Haus-\nund", "die Türklingel, a- b, Haus- und"),
    "hyphen of a word": ("Haus-\nÜbung, S-\nbahn, ein-\nbis zweimal", "Haus- Übung, S- bahn, ein- bis zweimal"),
    "gender forms": (
        "Kolleg:innen, Leser*innen, Kund/-innen, Schüler/innen, Autor(innen), Mieter*innen-Rat, Kolleg:innen-Rat",
        "Kolleginnen, Leserinnen, Kundinnen, Schülerinnen, Autorinnen, Mieter-Rat, Kolleginnen-Rat",
    ),
    "gender forms of one person": (
        "Der/die neue Lehrer/in oder ein/eine Student(in) oder ein/e Lehrer/in",
        "Der neue Lehrer oder ein Student oder ein Lehrer",
    ),
    "no gender forms": (
        "https://www.hotel.de/innen Temperatur außen/innen; Außen/Innen, Tür(innen), Zimmer/in Wien, Sensor_innen",
        "https://www.hotel.de/innen Temperatur außen/innen; Außen/Innen, Tür(innen), Zimmer/in Wien, Sensor_innen",
    ),
    "a comparison at the beginning of a line": ("wenn x\n> 5, dann", "wenn x > 5, dann"),
}
FRENCH = {
    "French gender forms": (
        "Le/la locataire, un(e) étudiant(e), les invité(e)s, vendeur(se), il/elle, un/une",
        "Le locataire, un étudiant, les invités, vendeur, il, un",
    ),
    "no French gender forms": ("Button_Click(e), a.find(e), f(e), le(e)x, le/l, a/une, Un Ion(e)(s)",) * 2,
}
CLOSEST = {
    "single quotes": ("don‘t ‚a‘ ›b‹ ´c ‘it’s so’ ‛d’ ‘‘e’’", 'don’t "a" "b" \'c "it’s so" "d" "e"'),
    "single quotes within others": ("“a ‘b’ c” ‘d’", "“a 'b' c“ \"d\""),
    "arrow": ("more ›", "more ›"),
    "double quotes": ("”a“ «b» ‟c„ ❝d❞", "“a“ “b“ “c„ “d“"),
    "hyphens": ("e\u2011mail a\u2010b 3\u22122", "e-mail a-b 3-2"),
    "dashes": ("a — b ‒ c ― d – e", "a – b – c – d – e"),
    "dashes between words": ("so—or 3—4", "so – or 3–4"),
    "primes": ("5′ 6″ 7‴ a′ b″", "5′ 6″ 7''' a' b\""),
    "ellipsis": ("so…", "so..."),
    "full-width punctuation": ("Ｗｈｙ？（ｓｏ）", "Why?(so)"),
    "symbols": ("ℝ ∋ ℓ, ℝ𝕖𝕒𝕝", "ℝ ∋ ℓ, Real"),
    "units": ("5㎞ 7㎡ 8℃ №3", "5km 7m² 8°C No.3"),
    "Roman numeral": ("Ⅳ", "IV"),
}


@pytest.mark.parametrize(
    ("normaliser", "text", "expected"),
    [
        *((Normaliser(), *row) for row in CHANGED.values()),
        *((Normaliser().of_language("de-AT"), *row) for row in GERMAN.values()),
        *((Normaliser().of_language("fr"), *row) for row in FRENCH.values()),
        *((NORMALISER, *row) for row in CLOSEST.values()),
        (Normaliser(frozenset("Ｄdg－-").__contains__), "Ｄ ｇ－", "Ｄ g－"),  # forms that the tokenizer knows stay
        (NORMALISER, "\ufefb ｶ", "\ufefb ｶ"),  # and so do forms of letters that it does not know
    ],
    ids=[*CHANGED, *GERMAN, *FRENCH, *CLOSEST, "known forms", "unknown letters"],
)
def test_text_is_changed(normaliser: Normaliser, text: str, expected: str) -> None:
    assert normaliser.normalise(text).text == expected


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED)
def test_text_stays(text: str) -> None:
    assert Normaliser().normalise(text) == NormalisedText(text)


def test_ranges_are_mapped_and_kept() -> None:
    text = "\ufeffSta\u00adtion \u00a0o\ufb03ce Ma\u0308d"
    normalised = NORMALISER.normalise(text)
    assert normalised.text == "Station office Mäd"
    assert text[slice(*normalised.original_range(0, 7))] == "Sta\u00adtion"
    assert text[slice(*normalised.original_range(8, 14))] == "o\ufb03ce"
    assert text[slice(*normalised.original_range(15, 18))] == "Ma\u0308d"
    assert normalised.normalised_range(1, 9) == (0, 7)
    assert normalised.normalised_range(12, 13) == (9, 12)  # the ligature
    assert normalised.normalised_range(4, 5) == (3, 3)  # the soft hyphen
    assert normalised.original_range(18, 18) == (len(text), len(text))
    assert NORMALISER.normalise("\u00ad").original_range(0, 0) == (0, 0)
    text = "a\u00a0b <a\u00a0\ufb01> c\u00a0d"
    begin, end = text.index("<"), text.index(">") + 1
    assert NORMALISER.normalise(text, [(begin, end)]).text == "a b <a\u00a0\ufb01> c d"
    normalised = NORMALISER.normalise(text, [(begin, end), (begin, begin + 1)])
    assert normalised.text == "a b <a\u00a0\ufb01> c d"
    assert normalised.original_range(4, 9) == (begin, end)


def test_training_text_has_ordinary_spaces_and_no_invisible_characters() -> None:
    assert normalise.normalise_training_text("Il y a 1\u202f234\u00a0chiens\u00a0!") == "Il y a 1 234 chiens !"
    assert normalise.plain_spaces("1\u2009000") == "1 000"

    assert normalise.remove_invisible("\ufeff \u00a0\u200b\n❤️").text == " \u00a0\n❤️"
    partly = normalise.remove_invisible("a\u00adb c\u00add", [(4, 7)])
    assert (partly.text, partly.normalised_range(4, 7)) == ("ab c\u00add", (3, 6))


texts = st.text(
    st.one_of(
        st.sampled_from("aeÄ1 \t\n\u00a0\u2009\u202f\u00ad\u200b\u200c\u200d\ufe0f\u20e3\u0301\u0323\u0308❤👍ف\u094dक"),
        st.sampled_from("ﬁＡ１ｶﾞ“„‑–…′\u1100\u1161\u11a8㎞\U0001d400\U0001f3f4\U000e0067\U000e007fก\ufdfa\u2126\u1fef"),
        st.characters(),
    )
)


@given(texts, st.sampled_from([NORMALISER, Normaliser()]))
def test_normalised_text_is_composed_and_stays(text: str, normaliser: Normaliser) -> None:
    normalised = normaliser.normalise(text)
    assert unicodedata.is_normalized("NFC", normalised.text)
    assert normaliser.normalise(normalised.text).text == normalised.text


def test_long_runs_of_marks_are_composed_and_wide_letters_narrow() -> None:
    text = "e\u0301a" + "\u0301\u0327\u0316" * 300 + "\u00e9\u0327"
    assert Normaliser().normalise(text).text == unicodedata.normalize("NFC", text)

    for text, expected in (("ＡＳＰ．ＮＥＴ ok", "ASP.NET ok"), ("ＡＢ 犬", "ＡＢ 犬"), ("ＡＢ！한", "ＡＢ！한")):
        assert normalise.narrow(text) == expected


@given(texts)
def test_the_map_is_monotonic_and_changes_only_what_it_covers(text: str) -> None:
    normalised = NORMALISER.normalise(text)
    if normalised.begins is None or normalised.ends is None:
        assert normalised.text == text
        return
    assert len(normalised.begins) == len(normalised.ends) == len(normalised.text)
    assert list(normalised.begins) == sorted(normalised.begins)
    assert list(normalised.ends) == sorted(normalised.ends)
    for place, character in enumerate(normalised.text):
        begin, end = normalised.original_range(place, place + 1)
        assert 0 <= begin < end <= len(text)
        first, last = normalised.normalised_range(begin, end)
        assert first <= place < last
        is_quote = text[begin:end] in "‹›`"  # stays if its text lacks the other one or, of `, letters
        part = text[begin:end]
        assert is_quote or part == character or NORMALISER.normalise(part).text == normalised.text[first:last]
