"""Tests of mt.text.numbers."""

import pytest

from mt.text.normalise import NormalisedText
from mt.text.numbers import mend_numbers, unify_numbers


@pytest.mark.parametrize(
    ("languages", "source", "translation", "expected"),
    [
        # the marks of the target language
        ("de en", "3,50 € 1.234 €", "3,50 € 1.234 €", "3.50 € 1,234 €"),
        ("en de", "see Art. 3.1 g, max. 4.1 g", "siehe Art. 3.1 g, max. 4.1 g", "siehe Art. 3.1 g, max. 4,1 g"),
        ("en de", "Max. 2.5 m, see Fig. 3.1 kg", "Max. 2.5 m, 3.1 kg", "Max. 2,5 m, 3,1 kg"),
        ("de en", "7.900.000 am 12.10.2026", "7.900.000 on 12.10.2026", "7,900,000 on 12.10.2026"),
        ("de en", "Server 192.168.100.200", "server 192.168.100.200", "server 192.168.100.200"),
        ("de fr", "1.234.567,89", "1.234.567,89", "1\u00a0234\u00a0567,89"),
        ("de nl", "1.234,5", "1,234.5", "1.234,5"),
        ("de-CH en", "1.234,5", "1.234,5", "1.234,5"),  # the marks of Switzerland are others
        ("fr en", "1\u202f250,75 €", "1\u00a0250,75 €", "1,250.75 €"),
        ("en de", "$1,234.56 USD 3.5", "$1,234.56 USD 3.5", "$1.234,56 USD 3,5"),
        ("en de", "1\u202f234.5 kg", "1\u202f234.5 kg", "1\u202f234,5 kg"),  # of the International System
        ("en de", "1,234 ratings of 1,100 people", "1,234 Noten von 1,100", "1.234 Noten von 1.100"),
        ("en de", "line 1,234 is, rows 1,235, 100,200 has", "1,234, 1,235, 100,200", "1,234, 1,235, 100,200"),
        ("en de", "at 4.50", "für 4,50", "für 4,50"),
        ("en de", "version 2.5 costs $2.5", "2.5 kostet $2.5", "2.5 kostet $2.5"),  # a version and a price
        ("en de", "version 1.234.56", "1.234.56", "1.234.56"),
        ("en ja", "2.5 kg", "2.5 kg", "2.5 kg"),
        *(("en de", *[text] * 3) for text in ("rgb(255,128,255)", "https://x.org/?s=100,200", r"\d{1,300} (100,200)")),
        *(("de en", *[text] * 3) for text in ("0.125 kg", "Tel. 089.123.456", "x-1.234.pdf")),
        ("en de", "802.11g, Figure 2.3 A", "802.11g, Abbildung 2.3 A", "802.11g, Abbildung 2.3 A"),
        ("en de", "a town (10,000 people), f(1,000)", "(10,000 Menschen), f(1,000)", "(10.000 Menschen), f(1,000)"),
        ("de en", "Es bildeten 10.000 Menschen", "10.000 people formed", "10,000 people formed"),
        ("en de", "add 2.5 g, 2.5-3.5 kg", "2.5 g, 2.5-3.5 kg", "2,5 g, 2,5-3,5 kg"),
        ("en xx", "2.5 kg", "2.5 kg", "2.5 kg"),  # an unknown language
        ("en de", "$1.5 billion, 1 billion, 2 million", "$1,5 Million, 1 Billion", "$1,5 Milliarden, 1 Milliarde"),
        ("fr en", "le 21e et le 3e", "the 21th, 3th, 11st", "the 21st, 3rd, 11th"),
        # ranges and hyphens
        ("en de", "Wait 2 - 3 days.", "Warte 2:3 Tage.", "Warte 2 - 3 Tage."),
        ("en de", "a 2 – 3", "a 2 -- 3", "a 2 – 3"),
        ("en de", "2 - 3, 2:3", "2:3, 2:3", "2:3, 2:3"),
        ("en de", "They won 3 - 1.", "Sie gewannen 3:1.", "Sie gewannen 3:1."),  # a score
        ("en de", "Defeated 1-3.", "Verlor 1:3.", "Verlor 1:3."),
        ("en de", "Sat 10:00–16:00", "Sa, 10:00, 16:00", "Sa, 10:00–16:00"),
        ("en de", "It is open 9-5.", "Es ist 9:5 offen.", "Es ist 9-5 offen."),
        ("de en", "9-17 Uhr", "9 -- 17 o'clock", "9-17 o'clock"),
        ("en de", "on 2020-10-12", "am 10:12", "am 10:12"),
        ("en de", "1,234 results of 12", "1.234ergebnisse von 12", "1.234 ergebnisse von 12"),
        ("en de", "delete 3 files", "3-Dateien löschen", "3 Dateien löschen"),
        ("en de", "see all 3 files", "sieh alle 3-Dateien", "sieh alle 3 Dateien"),
        ("en de", "the Kerberos 5 system", "das Kerberos 5-System", "das Kerberos 5-System"),  # a name
        ("en de", "a 3 room flat", "eine 3-Zimmer-Wohnung", "eine 3-Zimmer-Wohnung"),
        ("de en", "8:00–12:00 und 14:00–18:00", "8:00 12:00 14:00–18:00", "8:00–12:00 14:00–18:00"),
        # signs of money stay
        ("de en", "ab {preis} €", "from {preis} $", "from {preis} €"),
        ("de en", "12 € or 13 $", "13 $", "13 $"),
        ("de en", "12 Euro", "$12", "$12"),
        ("de en", "50¢ Rabatt", "0.50 $ off", "0.50 $ off"),
        ("en fr", "at 10:00", "à 10 h 000", "à 10 h 00"),
        ("de en", "`$x` 12 €", "`$x` $12", "`$x` €12"),
    ],
)
def test_numbers_are_mended(languages: str, source: str, translation: str, expected: str) -> None:
    before, after = languages.split()
    assert mend_numbers(source, translation, (before, after)) == expected


def test_numbers_in_kept_ranges_stay() -> None:
    assert mend_numbers("take 1,234 for $2,500", "1,234 für $2,500", ("en", "de"), [(5, 10)]) == "1,234 für $2.500"


def test_amounts_of_money_are_converted_alone() -> None:
    text = "1,234.50 2.5% €5.50 3.20 EUR"
    assert mend_numbers(text, text, ("en", "de"), only_money=True) == "1,234.50 2.5% €5,50 3,20 EUR"


@pytest.mark.parametrize(
    ("languages", "text", "expected"),
    [
        ("en de", "1 234 567 dogs, 5 300 €", "1\u00a0234\u00a0567 dogs, 5\u00a0300 €"),
        ("fr en", "25 000 habitants, 3 000 kg, 12 345 mots", "25\u00a0000 habitants, 3\u00a0000 kg, 12 345 mots"),
        ("en de", "in 2020 300 dogs, 12 345 cats, x1 234,50", None),
        ("de en", "15.30 Uhr, 7.05 Uhr, 15.30, 15.99 Uhr", "15:30 Uhr, 7:05 Uhr, 15.30, 15.99 Uhr"),
        ("de en", "von 9.30 bis 16.00 Uhr, 3.15 - 4.15 Uhr", "von 9:30 bis 16:00 Uhr, 3:15 - 4:15 Uhr"),
        ("de en", "`15.30 Uhr` 030 123 456 789", None),
        ("de en", "am 24.12.15 Uhr", None),
        ("en de", "Open 9 a.m.–5 p.m. or 9am-5pm.", "Open 9:00–17:00 or 9:00-17:00."),
        ("en de-AT", "from 2 to 4:30 pm, 11-2 PM, 12 a.m.", "from 14:00 to 16:30, 11:00-14:00, 0:00."),
        ("en fr", "(9 a.m.) At 12 p.m.? 'At 5 p.m.'", "(9:00) At 12:00? 'At 17:00.'"),
        ("en fr", "`5 pm`, I am 5 amps", None),
        ("en zh", "5 pm", None),
        ("fr de", "à 14h30, de 9 h à 18 h 30, 14h3, 2 h 305", "à 14:30, de 9:00 à 18:30, 14h3, 2 h 305"),
        ("fr de", "de 9h à 12h et de 14 h à 18 h, de 2 h à 3 h", "de 9:00 à 12:00 et de 14:00 à 18:00, de 2 h à 3 h"),
        ("de en", "8.00–12.00 und 14.00–18.00 Uhr, 8.00–12.00", "8:00–12:00 und 14:00–18:00 Uhr, 8.00–12.00"),
        ("de en", "Am 3.10. um 8.30 Uhr, vom 03.05.–05.05. zu", "Am 3. Oktober um 8:30 Uhr, vom 3. Mai bis 5. Mai zu"),
        ("de en", "am 3.10.2024, in 3.1. und 3.2. am 24.12.", None),
        ("fr de", "à 2h de Paris, à 9h de vol, à 8h par jour, à 3h", None),
        ("fr fr", "14h30", None),
        ("fr de", "À 15h 30 000 € volés.", "À 15h 30\u00a0000 € volés."),
        ("fr en", "dure 2 h 30 min, 2h30, en 24 h 12 personnes", None),
        ("en de", "May 3 until 5 p.m., Room 3 to 5 p.m.", "May 3 until 17:00, Room 3 to 17:00."),
        ("en de", "12/3 until 5 pm, 24/7 pm, 1-2-3 pm, -5 pm", "12/3 until 17:00, 24/7 pm, 1-2-3 pm, -5 pm"),
        ("en de", "10 AM/FM, 12 a.m./p.m., pages 5 and 6 am I", None),
        ("en de", "from 7:30 to 7:15 pm", "from 7:30 to 19:15"),
        ("en zh", "$3.5m, €2bn or £1.25B", "$3.5 million, €2 billion or £1.25 billion"),
        ("en de", "$400k in 2019, $80k–$1.5K, 4k, $4kg, $4 k", "$400,000 in 2019, $80,000–$1,500, 4k, $4kg, $4 k"),
        ("en de", "5:30 PM EST, 10 a.m. PT / 1pm ET, 2:00 GMT+1", "17:30 (EST), 10:00 (PT) / 13:00 (ET), 2:00 (GMT+1)"),
        ("fr de", "9h-18h, 8 h – 9 h 30, 2 h-3 h par jour", "9:00-18:00, 8:00 – 9:30, 2 h-3 h par jour"),
        ("en de", "12:30 CT scan, 9:30 MT Everest", None),
        ("fr en", "LE TRAIN DE 9:00 EST ANNULÉ, À 9:00 ET 14:00", None),
        ("de en", "um 14:30 Uhr MEZ und 15:30 MESZ", "um 14:30 Uhr (MEZ) und 15:30 (MESZ)"),
        ("en de", "5:30 (EST), 9:30 est, 5 EST, room 3 ET, 9:30 EST-based, ESTIMATE at 9:30 ESTATE", None),
        ("en de", "$5/month, `$5/month`, 5 m/day, 3/day", "$5 per month, `$5/month`, 5 m/day, 3 per day"),
        ("fr de", "5 €/mois", "5 € par mois"),
        ("en de", "a $5 m rope, $5mm, US$5m, `$5m`", None),
    ],
)  # fmt: skip
def test_numbers_and_times_have_one_notation(languages: str, text: str, expected: str | None) -> None:
    """None: the text stays."""
    source, target = languages.split()
    assert unify_numbers(NormalisedText(text), (source, target)).text == (expected or text)


def test_kept_numbers_stay_and_ranges_are_those_of_the_original() -> None:
    unified = unify_numbers(NormalisedText("15.30 Uhr 16.30 Uhr"), ("de", "en"), [(0, 9)])
    assert unified.text == "15.30 Uhr 16:30 Uhr"
    unified = unify_numbers(NormalisedText("At 5 p.m. we go"), ("en", "de"))
    assert unified.text == "At 17:00 we go"
    assert (unified.original_range(3, 8), unified.normalised_range(10, 12)) == ((3, 9), (9, 11))
