"""Parts of a source that its translation lacks, or that the model does not know."""

import re
from collections.abc import Callable, Sequence

import pytest

from mt.text.alignment import Range
from mt.text.names import lost_names
from mt.text.negation import is_lost
from mt.text.places import lost_places, postcodes
from mt.text.protect import find_spans, has_doubled_numbers, lost_spans
from mt.text.quotations import lost_quotations, quoted_words
from mt.text.schedules import lost_dates, lost_days, lost_ranges
from mt.text.symbols import damaged_words, lost_symbols, unknown_words
from mt.text.titles import lost_titled_names

FAMILY = "👩‍👩‍👧"
KNOWN = frozenset("abcdefghijklmnopqrstuvwxyz")
LOST: dict[str, Callable[[str, str, tuple[str, str]], Sequence[Range]]] = {
    "names": lambda source, translation, _: lost_names(source, translation),
    "negations": lambda *texts: [(0, len(texts[0]))] if is_lost(*texts) else [],
    "places": lost_places,
    "postcodes": lambda source, _, __: postcodes(source),
    "titled names": lambda source, translation, languages: lost_titled_names(source, translation, languages[0]),
    "dates": lost_dates,
    "ranges of days and times": lost_ranges,
    "days": lambda *texts: [(0, len(texts[0]))] if lost_days(*texts) else [],
    "symbols": lambda source, translation, _: lost_symbols(source, translation),
    "unknown words": lambda source, _, __: unknown_words(source, KNOWN),
    "damaged words": lambda source, translation, languages: damaged_words(source, translation, KNOWN, languages[0]),
    "quotations": lambda source, translation, _: lost_quotations(source, translation),
    "spans": lambda source, translation, _: [
        (span.begin, span.end) for span in lost_spans(find_spans(source), translation)
    ],
}
ROWS: dict[str, list[tuple[str, str, str]]] = {
    "names": [
        ("", "Kontakt: ⟨Hans Müller⟩", "Contact: Hans garbage"),
        ("", "Bitte Anna und ⟨Hans P. Fischer⟩ rufen.", "Call Anna and Hans."),
        ("", "Ask ⟨Pierre Lefèvre⟩'s boss.", "Frag seinen Chef."),
        ("", "Ask ⟨Hans Müller⟩.", "Frag Johann Müller."),
        ("", "Tom and ⟨Mary Brown⟩ sleep.", "Tom und Maria Brown schlafen."),
        ("", "Tom Hanks and ⟨Emma Watson⟩ star.", "Tom Hanks und Emma Watsonsturm."),
        ("", "Peter Smith's dog", "Peter Smiths Hund"),
        ("", "Heute hat ⟨Anna⟩ Geburtstag.", "Today is her birthday."),
        ("", "Alice and Mary sleep.", "Elke und Maria schlafen."),  # which gets the only other name
        ("", "I gave ⟨Gérard⟩ the book. Mary: yes.", "Ich gab mir das Buch. Maria: ja."),  # which has another form
        ("", "Queen Elizabeth, Saint Peter, John 3:16, Charles the Great", "Königin"),
        ("", "Tell Anna Monday is fine.", "Sag Anna, Montag ist gut."),
        ("", "Weil Martin der Bauer ist und Karl König wurde", "Because Martin is the farmer and Karl became king"),
        ("", "The Martin Family and the Robert Schools", "Familie Martin und die Schulen von Robert"),
        ("", "La Caroline du Nord, Louis XIV et Alexandre Ier", "North Carolina, Louis the Great and Alexander I"),
        ("", "Bei der ⟨Bäcker GmbH⟩, der ⟨Weiß & Sohn OHG⟩ und der Rot AG", "The baker GmbH, White & son and Rot AG"),
        ("", "⟨Example Inc.⟩, Ltd. of AG", "Beispiel Inc."),
        ("", "2023 Example Ltd. All rights reserved. Our LLC, Unsere GmbH, Une SARL", "Beispiel"),
        ("", "Send Michael Invoices. Did Anna Tell you?", "Sende Michael Rechnungen. Sagte Anna es?"),
    ],
    "negations": [
        ("en de", "⟨Do not open the valve.⟩", "Öffnen Sie das Ventil."),
        ("en de", "Do not open the valve.", "Öffnen Sie das Ventil nicht."),
        ("en de", "This isn't possible.", "Das ist unmöglich."),
        ("en de", "⟨No smoking here.⟩", "Hier wird geraucht."),
        ("en de", "⟨Unless you pay, we stop.⟩", "Wenn Sie zahlen, hören wir auf."),
        ("en de", "⟨Neither Tom nor Anna came.⟩", "Entweder Tom oder Anna kam."),
        ("en de", "I cannot go unless you pay.", "Ich kann gehen, es sei denn, Sie zahlen."),
        ("en de", "He is nice, isn't he?", "Er ist nett, oder?"),
        ("en de", "He didn't come until Friday.", "Er kam erst am Freitag."),
        ("en de", "⟨Do not use it without oil.⟩", "Verwenden Sie es ohne Öl."),
        ("en fr", "The file could not be read.", "Impossible de lire le fichier."),
        ("en fr", "⟨I never smoke.⟩", "Je fume."),
        ("de en", "Das ist nicht nur gut, sondern billig.", "It is good and cheap."),
        ("de en", "⟨Er hat keine Zeit.⟩", "He has time."),
        ("fr en", "N'est-ce pas joli ?", "Pretty?"),
        ("fr de", "⟨Je ne l'ai pas vu.⟩", "Ich habe ihn gesehen."),
        ("en ja", "Do not run.", "走る。"),
        ("en de", "⟨Coffee without milk⟩", "Kaffee mit Milch"),
        ("en de", "Tea without sugar, regardless", "Zuckerfreier Tee"),
        ("de en", "⟨Täglich außer Sonntag⟩", "Daily on Sunday"),
        ("fr en", "Thé sans sucre, sans doute", "Sugar-free tea"),
        ("fr en", "⟨Ouvert sauf dimanche⟩", "Open on Sunday"),
        ("en fr", "⟨Nobody came.⟩", "Il est venu."),
        ("en fr", "⟨There is no lift.⟩", "Il y a un ascenseur."),
        ("en fr", "No. 5, no doubt, Say no to it.", "N° 5"),
        ("en de", "He sang No Regrets.", "Er sang No Regrets."),
        ("en fr", "All except one, nowhere", "Tous à l'exception d'un, nulle part"),
        ("de en", "⟨Er weiß nichts.⟩", "He knows it."),
    ],
    "places": [
        ("de en", "Unser Büro in ⟨Zürich⟩ ist zu.", "Our office is closed."),
        ("de en", "Unser Büro in Zürich ist zu.", "Our office in Zurich is closed."),
        ("de en", "Unser Büro in Zürich ist zu.", "Our Zürich office is closed."),
        ("en de", "⟨Lower Saxony⟩ and ⟨Rome⟩", "Römer und Saxonie"),
        ("en fr", "Munich Airport and london", "L'aéroport"),
        ("en fr", "⟨Lyon⟩ and Berlin-Mitte", "La ville"),
        ("fr de", "De l'eau de Cologne de ⟨Cologne⟩", "Wasser"),
        ("en ja", "Munich", "ミュンヘン"),
    ],
    "postcodes": [
        ("", "nach ⟨10827 Berlin⟩ und ⟨D-12345 Musterstadt⟩.", ""),
        ("", "⟨75011 Paris⟩, 10000 Euro, 12345 Dateien, 2024 Berlin, x-10827 Berlin, 10827 Berlin-Mitte", ""),
    ],
    "titled names": [
        ("en de", "Dr. Brown and Prof. ⟨White⟩", "Dr. Brown und Prof. Weiß"),
        ("en fr", "Judge ⟨Black⟩ saw my aunt ⟨May⟩ in May.", "Le juge noir a vu ma tante en mai."),
        ("en de", "Judge Orders Release, the doctor was Young", "Richter"),
        ("en", "Dear Mr ⟨Smith⟩,", "Sehr geehrte Frau,"),
        ("en", "Dear Mr Smith,", "Lieber Smith,"),
        ("en", "Mr President, thank you.", "Herr Vorsitzender, danke."),
        ("en", "Mr. Lee and Ms ⟨O'Neill⟩", "Lee und sie"),
        ("en", "Mr ⟨Bean⟩ is funny.", "Er ist lustig."),
        ("de", "Frau Kleins Auto", "Klein's car"),
        ("de", "Frau ⟨Klein⟩s Auto und Frau ⟨Jonas⟩", "a car"),
        ("de", "Mit einem Herr ⟨Lee⟩, einer Frau Anfang 40", "with a Mr"),
        ("de", "Danke, Herr Lehrer", "Thank you, teacher"),
    ],
    "dates": [
        ("fr en", "La loi (⟨mars 2010⟩) et ⟨lundi 2 mai 2011⟩", "The law (mar 2010) and on 2, 2011"),
        ("fr en", "le ⟨mardi 5 mars⟩ et le lundi 7 mars", "on March 5 and Monday, March 7"),
        ("fr en", "La loi (mars 2010)", "The law (March 2010)"),
        ("en de", "⟨May 3⟩, the march of 2010", "das Jahr 2010"),
        ("en de", "of ⟨May 2011⟩", "vom 1. Mai 2011"),
        ("de en", "am 21. März", "on March 21st."),
        ("en it", "May 3", "Tre"),
    ],
    "ranges of days and times": [
        ("de en", "Offen ⟨Mo–Fr⟩", "Open"),
        ("de en", "⟨Di-Do⟩ 9 Uhr", "Open 9"),
        ("de fr", "Mo-Fr: 9", "lundi au vendredi : 9"),
        ("de en", "⟨Montag bis Freitag⟩: 9", "Monday, on Friday: 9"),
        ("de en", "Mo.–Do.", "Monday through to Thursdays"),
        ("en de", "Open Mon-fri", "Offen"),
        ("de fr", "⟨mo–freitag⟩", ""),
        ("en de", "The Mon-Fri plan", "Der Mon-Fri-Plan"),
        ("en de", "`Mon-Fri` and x.org/Mon-Fri, 9:00-17:00.txt", ""),
        ("fr de", "du ⟨mardi au samedi⟩", "samstags"),
        ("de zh", "Offen Mo–Fr", "周一至周五开放"),
        ("de zh", "Offen ⟨Mo–Fr⟩", "开放"),
        ("cs en", "Po–Pá", "Open"),
        ("de en", "Wi-Fi, Jean–Luc, so–lala, die Sommer–Dose, Mo-Di-Do", ""),
        ("en de", "The sun to see, a mon–ey, Sat-nav, wed-lock, Sunday–", ""),
        ("de fr", "⟨8:30–17:00 Uhr⟩", "8h30–17h0"),
        ("de fr", "8:30–17:00 Uhr", "8 h 30 à 17 h"),
        ("de fr", "⟨8:00–12:00⟩", "8:00-12 h 00"),
        ("de fr", "⟨Mo–Fr⟩ ⟨8:00–12:00⟩", "8:00–12:00"),  # both, because few survive alone
        ("de en", "⟨Mo–Fr⟩ 8:00–12:00", "8:00–12:00"),
        ("en de", "9:00 - 17:00", "9:00–17:00"),
        ("de en", "⟨Montag bis Freitag⟩ 9–18 Uhr", "Monday by Friday, 9-18 AM"),
        ("de en", "⟨9–18 Uhr⟩, ⟨9 bis 18 Uhr⟩, Seite 9–18", "18 o'clock"),
        ("en de", "3:1-4:2, 1:00:00–2:00:00, 2024-05-06", ""),
        ("en de", "⟨mon-fri⟩ 9:00", ""),  # days in lower case before a time
        ("en de", "⟨mon-fri⟩: 9", ""),
        ("en de", "sun-sat is", ""),
    ],
    "days": [
        ("en de", "⟨Pay today.⟩", "Zahlen Sie."),
        ("en fr", "Pay today.", "Payez aujourd'hui."),
        ("de en", "Der Morgen ist schön.", "The day is fine."),
        ("en de", "⟨on Monday⟩", "am Dienstag"),
        ("en de", "on Monday", "am Montag"),
        ("en it", "on Monday", ""),
        ("de en", "⟨am 3. Mai⟩", "on June 3"),
    ],
    "symbols": [
        ("", "⟨mü-42⟩, ⟨USB-C⟩ and ⟨AAA⟩", "müde-42, USB und AAAA"),
        ("", "Our mü-42, USB-C, AAA, PDF, LED", "mü-42, USB-C-Kabel, AAA-Zelle, Datei"),
        ("", "Apply ⟨10 mV⟩.", "10 MV anwenden."),
        ("", "It is ⟨500 nm⟩.", "Es ist 500 Uhr."),
        ("", "a room of ⟨20 m²⟩", "ein Raum von 20 qm"),
        ("", "a ⟨5 kΩ⟩ resistor", "ein 5 k\ufffd Widerstand"),
        ("", "⟨3 µg/ml⟩ and ⟨4 µg/ml⟩", "3 µg/ml"),
        ("", "⟨12 kWh⟩ at ⟨200 MB/s⟩", "12 KWh bei 200 Mb/s"),
        ("", "⟨90 °F⟩", "90 Grad"),
        ("", "Take ⟨~ 5 mg⟩.", "Nimm 5 mg."),
        ("", "Il y a ⟨1 500 km⟩.", "There are 1,500."),
        ("", "2.5 kg in 10 min", "2,5 Kilo in 10 Minuten"),
        ("", "⟨2.5 kg⟩ in ⟨10 min⟩", "2,5 in Minuten"),
        ("", "2.5 kg", "2,5 kg"),
        ("", "⟨2.5 l⟩ of milk", "2,5 Lash der Milch"),
        ("", "⟨12 V⟩ or ⟨230 V⟩", "12 au ou 230 V"),
        ("", "⟨5–10 dB⟩ louder", "5 10 lauter"),
        ("", "⟨5 - 10 kg⟩", "5:10 kg"),
        ("", "5 - 10 kg", "5 bis 10 kg"),
        ("", "von ⟨5—10 mm⟩", "from 5 10 mm"),
        ("", "Drink ⟨1.5–2 l⟩ of it.", "Trink 1,5-2 davon."),
        ("", "5 to 10 kg", "5–10 kg"),
        ("", "⟨10–15 kW⟩ and ⟨5 kW⟩", "10–15 kW"),
        ("", "My ⟨iPhone⟩ and GitHub", "Mein IchPhone und GitHub"),
        ("", "Die MitarbeiterInnen der ⟨GmbH⟩", "The employees of the LLC"),
        ("", "⟨EN 60335-1⟩ and ISO 9001", "60335-1 und ISO 9001"),
        *(("", text, "") for text in ("He left at 5 pm.", "Il est 2 h.", "in the 1970s", "3 pcs, 4 Stk. and 5 J.")),
        *(("", text, "") for text in ("5 m'a dit", "See Figure 3.", "ROOM 101", "Mr.Smith and Monday.Peter", "Wi-Fi")),
    ],
    "unknown words": [
        ("", "He says ⟨привет мир⟩, twice.", ""),
        ("", "⟨नमस्ते⟩ and Señor", ""),  # one unknown letter of five is no unknown word
        ("", "naïve – “café” 5 €", ""),
        ("", "a ⟨d\ufffdg⟩ \ufffd here", ""),
    ],
    "damaged words": [
        ("", "The ⟨dọg⟩ sees ǹo cat.", "Der d\ufffd\ufffdg sieht ǹo."),
        ("", "une coïncidence", "a coincidence"),  # a word that the model knows
        ("fr en", "Noël, la ⟨Citroën⟩", "Christmas, the Citron"),
        ("en de", "⟨Noël⟩ sings", "Weihnachten singt"),
        ("", "a ⟨naïve⟩ ⟨ŝanĝi⟩, une voix ⟨aiguë⟩", "a nave ani, eine aigu?"),
        ("", "The word ⟨" + "ა" * 2000 + "⟩ is" + " ." * 2000, "The word is" + " ." * 2000),  # linear time
        ("", "The ⟨DỌG⟩ sleeps.", "Der DOG schläft."),
        ("", "The dog 住sleeps.", "Der Hund schläft."),
    ],
    "quotations": [
        ("", '"⟨red⟩" "⟨blue⟩"', "„rot“ „grün“"),
        ("", '"⟨Hello⟩"', "„Hello“"),
        ("", '"It is a long quotation of a text."', "„Es ist ein langes Zitat eines Textes.“"),
        ("", 'Press "⟨Save⟩" or "⟨Save as⟩".', "Drücken Sie „Speichern“."),
        ("", '"⟨Why?⟩" she asked. "⟨No⟩," he said.', "„Warum? fragte sie. „Nein“, sagte er."),
        ("", "« ⟨Oui⟩ », « ⟨Non⟩ ». Et l'« ⟨eau⟩ »", '"Yes", "No" and water'),
        ("", "\"He said '⟨I am here⟩' again\"", '"Er sagte: Hier."'),
        ("", "« ⟨a.txt⟩ » (2 Mo)", 'Die "a.txt" (2 MB")'),
        ("", "« Elle aime le mot “oui”. »", "\"She likes the word 'yes'.\""),
        ("", "He said 'no'.", "Er sagte „nein“."),
        ("", 'Press "Save" or "Open".', '"Speichern" oder "Öffnen".'),
        ("", "The dogs' and the cats' house isn't 5\" by 6\".", "Das Haus."),
    ],
    "spans": [
        ("", "12 men, 12:30", "12 Männer, 12:30"),
        ("", "⟨12⟩ men, ⟨12:30⟩", "Zwölf Männer, 12.30 Uhr"),
        ("", "5 percent, in den 80ern", "5 %, 80ers"),
        ("", "$5, ⟨$6⟩, €1,200.50 and £2 million", "5 Dollar, 6, 1.200,50 Euro und 2 Millionen Pfund"),
        ("", "the x.org site and ⟨a.txt⟩", "die x.org-Seite"),  # a compound
        ("", "⟨5%%⟩ done", "5% fertig"),  # of printf
        ("", "3. Mann", "the 3rd man"),
        ("", "2 men and two dogs", "2 Männer und 2 Hunde"),  # a number may occur more often
        ("", "5-10 dB or 5–10 dB", "5 bis 10 dB oder 5-10 dB"),
        ("", "⟨5-10⟩ dB", "5 dB"),
        ("", "à 14 h 30", "um 14:30 Uhr"),
        ("", "2:30, ⟨3:45⟩ and 12:30", "halb drei, halb vier und halb eins"),
        ("", "at 14:30 and 15:00", "à 14 h 30 et 15 h"),
        ("", "a score of ⟨25:23⟩", "un score de 25h23"),
        ("", "⟨2024-05-06⟩", "2024 05 06"),
        ("", "n° 12, n° 2026-0042", "#12, #2026-0042"),
        ("", "⟨#12⟩", "12"),
        ("", "⟨@a⟩", "@a @a"),
        ("", "⟨@anna⟩ @anna_b", "@anna_b"),
        ("", "⟨{x}⟩ ⟨{x}⟩", "{x}"),
        ("", "A **dog**, *now*", "Ein **Hund,** „*jetzt“*"),
        ("", "⟨**⟩A dog⟨**⟩, *now*", "** Ein Hund,** *jetzt *"),
        ("", "A ⟨**⟩dog⟨**⟩ ⟨*⟩now⟨*⟩", "Ein ** Hund*"),
        ("", "%s's house, %s", "%ss Haus, %s"),
        ("", "The %1$d of %s", "Le %1$d d'%s"),
        ("", "$USER$'s letter", "$USER$s Brief"),
        ("", "⟨$name⟩'s letter", "$names Brief"),  # another variable
        ("", "The house of :name", "La maison d':name"),
        ("", "⟨%s⟩ of %sx", "%sx von"),
        ("", "⟨👩⟩", FAMILY),
        ("", "It costs 1,200.50 euros.", "Es kostet 1.200,50 Euro."),
        ("", "It costs ⟨7.50⟩ euros.", "Es kostet 750 Euro."),
        ("", "It costs ⟨7.50⟩ euros.", "Es kostet 7.40 Euro."),
        ("", "from 12:00 to ⟨1:05⟩", "de 12h00 à 1h0"),
        ("", "Use ⟨4.6.2⟩ now", "4,6.2"),  # a version keeps its dots
        ("", "⟨1.5e-3⟩ or 6.02E23, not 1.5", "1,5e-3 oder 6.02E23, nicht 1,5"),
    ],
}
"""Languages, the source with its lost parts in angle brackets, and the translation."""


@pytest.mark.parametrize(("kind", "languages", "marked", "translation"), [(k, *row) for k in ROWS for row in ROWS[k]])
def test_lost_parts(kind: str, languages: str, marked: str, translation: str) -> None:
    source = re.sub("[⟨⟩]", "", marked)
    first, _, second = languages.partition(" ")
    ranges = LOST[kind](source, translation, (first, second))
    assert [source[begin:end] for begin, end in ranges] == re.findall("⟨(.*?)⟩", marked)


def test_nothing_is_lost_in_kept_ranges_and_in_copies() -> None:
    assert lost_ranges("Open Mon-Fri", "", ("en", "de"), [(5, 12)]) == []
    assert lost_quotations('Press "Save".', "Drücken.", [(0, 13)]) == []
    for source in ("3 µg/ml and ~ 5 mg", "12 V or 230 V", "5 - 10 kg", "My iPhone and EN 60335-1", "Il y a 1 500 km."):
        assert lost_symbols(source, source) == []


def test_doubled_numbers() -> None:
    spans = find_spans("20 of 200, 5, {x1}")
    assert has_doubled_numbers(spans, "20 der 200, 200")
    assert not any(has_doubled_numbers(spans, text) for text in ("20 der 200", "5, 5", "2.000, 2001", "{x1} {x1}"))


def test_quoted_words() -> None:
    assert quoted_words('It is "nice".', "Es ist „nice“.") == {"nice": "nice"}
    assert quoted_words('He said "no" and "yes".', "Er sagte „no“ und „jetzt“.") == {"no": "no", "jetzt": "yes"}
    assert quoted_words('It is "small".', "Es ist „Mall“.") == {"Mall": "small"}
    assert quoted_words('In this law, "owner" means a person.', "„owner“ ist") == {"owner": "owner"}
    assert quoted_words('The word "house" is short.', "Das Wort „Lagerort“ ist kurz.") == {"Lagerort": "house"}
    for source, translation in (
        ('The default is "new".', "Der Standard ist „new“."),
        ('The word "house" is short.', "Das Wort „house“ ist kurz."),
        ('It is "left", "right" or "new".', "Es ist „left“, „rechts“ oder „neu“."),
        ('Use `a` for "new".', "Nutzen Sie `a` für „new“."),
    ):
        assert quoted_words(source, translation) == {}
