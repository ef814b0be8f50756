import pytest

from mt.text.casing import as_clause, lower_capitals, lower_first, lower_title_case, raise_capitals


@pytest.mark.parametrize(
    ("language", "sentence", "expected"),
    [
        ("en", "TWO MEN IN NATO, I'M SURE I DO.", "Two men in NATO, I'm sure I do."),
        ("en", "WARNING", "Warning"),
        ("en", "BBC NEWS REPORT", "BBC news report"),
        ("en", "5 kWh ENERGY USED BY THE CPU", "5 kWh energy used by the CPU"),
        ("en", "PLEASE SEE https://x.com/AbC NOW, {Name}!", "Please see https://x.com/AbC now, {Name}!"),
        ("en", "iPhone IS GREAT", "iPhone is great"),
        ("de", "STRAßE UND GRÖSSE", "Straße und grösse"),
        ("de", "HERR SCHMIDT UND DER HERR", "Herr Schmidt und der herr"),
        ("tr", "İSTANBUL VE IRMAK", "İstanbul ve ırmak"),
        ("az-Latn", "İSTANBUL VƏ IRMAQ", "İstanbul və ırmaq"),
        ("el", "ΟΔΥΣΣΕΥΣ ΚΑΙ ΑΛΛΟΙ", "Οδυσσευς και αλλοι"),  # a final sigma at the end of a word
        ("en", "TEST FOR HEPATITIS A, M 12 BOLTS", "Test for hepatitis A, M 12 bolts"),
        ("en", "MEASURES (B × H × T): 6 × 8", "Measures (B × H × T): 6 × 8"),
        ("cs", "V 5 HODIN V PRAZE", "V 5 hodin v praze"),
        ("fr", "LE CHAT QU'IL Y A, DORT", "Le chat qu'il y a, dort"),
        *(("en", text, None) for text in ("USB", "NATO USB", "I AM", "WARNING: do not open", "5 kWh", "12:30", "")),
        ("zh", "你好", None),
    ],
)
def test_capitals_are_lowered(language: str, sentence: str, expected: str | None) -> None:
    assert lower_capitals(sentence, language) == expected


def test_words_in_capitals_get_the_form_that_the_model_knows_best() -> None:
    pieces = dict.fromkeys(("exit", "open", "on", "Haus", "it", "is", "London", "groß", "Fußweg", "auf"), 1)
    pieces |= {"london": 3, "gross": 2, "mr": 2, "Mr": 2, "the": 1, "dog": 2, "DOG": 3, "fbi": 2, "FBI": 2}
    assert lower_capitals("IT IS ON", "en", pieces=lambda word: pieces.get(word, 0)) == "It is on"
    for text, expected in (
        ("EXIT", "Exit"),
        ("HAUS", "Haus"),
        ("OPEN EXIT!", "Open exit!"),
        ("IKEA", None),
        ("THE DOG", "The dog"),
        ("THE FBI", None),
        ("ON", None),
        ("IT IS ON IN LONDON", "It is on in London"),
        ("IS MR. AND MRS. JONES IT", "Is Mr. and Mrs. Jones it"),
        ("GROSS AUF FUSSWEG", "Groß auf Fußweg"),
        ("M. DUPONT, 5 M. LONG", "M. Dupont, 5 m. long"),
    ):
        assert lower_capitals(text, "", pieces=lambda word: pieces.get(word, 0)) == expected


@pytest.mark.parametrize(
    ("language", "source", "translation", "expected"),
    [
        ("de", "THE STREET", "Die Straße", "DIE STRASSE"),
        ("tr", "IN CITIES", "Şehirlerde ılık iş", "ŞEHİRLERDE ILIK İŞ"),
        ("de", "5 kWh SEE https://x.com/AbC", "5 kWh, siehe https://x.com/AbC", "5 kWh, SIEHE https://x.com/AbC"),
        ("de", "{name} RIDES `ls -l`", "{name} fährt `ls -l`", "{name} FÄHRT `ls -l`"),
        ("fr", "AN EXAMPLE", "Un été", "UN ÉTÉ"),
    ],
)
def test_translations_are_raised(language: str, source: str, translation: str, expected: str) -> None:
    assert raise_capitals(translation, source, language) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("A Man Rides A Bike", "A man rides a bike"),
        ("Red Car", "red car"),
        ("New US Law on 10 kW Pumps", "New US law on 10 kW pumps"),
        ("New LSB List in the EU", "New LSB list in the EU"),
        ("230 V / 50 Hz", None),
        ("No food!", "no food!"),
        ("No dogs allowed", "no dogs allowed"),
        *((text, None) for text in ("No, thanks", "Not here", "No dog is in the house")),
        ("Open 5 May", "open 5 May"),
        ('Connection: G 1/2"', None),  # a letter of a size or a kind is no word of a headline
        ('Pipe Connection: G 1/2" Made Of Steel', 'Pipe connection: G 1/2" made of steel'),
        ("Our Plan B: What Next", "Our plan B: what next"),
        ("In A 10-Minute Talk", "In a 10-minute talk"),
        *((text, None) for text in ("Smith", "J.R.R. Tolkien", "Use System.Linq", "See Fig. 3.", "Save as Draft")),
        ("THE MEN ARE HERE NOW", None),
    ],
)
def test_title_case_is_lowered(sentence: str, expected: str | None) -> None:
    assert lower_title_case(sentence, "en") == expected
    for ordinary, language in (("Er saß auf der Bank.", "de"), ("Fusion Nucléaire", "fr")):
        assert lower_title_case(ordinary, language) is None


@pytest.mark.parametrize(
    ("language", "label", "is_lowered"),
    [
        ("en", "Less than 5 minutes", True),
        ("en", "Size M", True),
        ("en", "Room No. 7", True),
        ("en", "Press Ctrl+C, then F5.", True),
        ("en", "Press Esc.", True),
        ("fr", "Jusqu'à 10 fichiers", True),
        ("de", "Bis zu 10 Dateien", True),
        ("de", "Neue Dateien", False),  # the first word may be a noun
        *(
            ("en", text, False)
            for text in ("Red Car", "Tom came", "A dog came.", "Windows 10.", "Step 2: Open it", "iPhone 15", "Room")
        ),
    ],
)
def test_first_words_of_labels_are_lowered(language: str, label: str, is_lowered: bool) -> None:
    assert lower_first(label, language) == (label[0].lower() + label[1:] if is_lowered else None)


@pytest.mark.parametrize(
    ("translation", "clause", "language", "expected"),
    [
        ("The police came.", "die Polizei kam,", "en", "the police came,"),
        ("I came.", "ich kam,", "en", "I came,"),
        ("NATO came.", "la OTAN vint,", "en", "NATO came,"),
        ("Marie est venue.", "then Mary came,", "fr", "Marie est venue,"),
        ("Puis Marie est venue.", "then Mary came,", "fr", "puis Marie est venue,"),
        ("Die Polizei kam.", "the police came,", "de", "die Polizei kam,"),
        ("Sie kam.", "she came,", "de", "sie kam,"),
        ("Sie kamen.", "you came,", "de", "Sie kamen,"),
        ("Ihre Datei kam.", "your file came,", "de", "Ihre Datei kam,"),
        ("Ihre Datei kam.", "their file came,", "de", "ihre Datei kam,"),
        ("Ihnen gehört es.", "vous l'avez,", "de", "Ihnen gehört es,"),
        ("Ruf uns bitte an.", "please call us.", "de", "ruf uns bitte an."),
        ("Bitte ruf uns an.", "please call us.", "de", "bitte ruf uns an."),
        ("Könntest du kommen?", "could you come?", "de", "könntest du kommen?"),
        ("Tom kam.", "Tom came.", "de", "Tom kam."),
        ("Essen Sie.", "eat it.", "de", "essen Sie."),
        ("Essen kam.", "food came.", "de", "Essen kam."),
        ("Neue Hunde kamen.", "new dogs came.", "de", "neue Hunde kamen."),
        ("Unter ihnen war sie.", "among them was she,", "de", "unter ihnen war sie,"),
        ("Anne Hill kam.", "so Anne Hill came.", "de", "Anne Hill kam."),
        ("Give me this.", "donnez-moi ça.", "en", "give me this."),
        ("Friday came.", "le vendredi vint,", "en", "Friday came,"),
        ("March 3 came.", "le 3 mars vint,", "en", "March 3 came,"),
        ("警察来了。", "the police came,", "zh", "警察来了，"),
        ("The police came.", "警察来了，", "en", "The police came,"),
        ("The police came.", "die Polizei kam", "en", "the police came"),
        ("Madrid", "Madrid,", "en", "Madrid,"),
        ("马德里", "Madrid,", "zh", "马德里，"),
        ("", "die Polizei kam,", "en", ""),
    ],
)
def test_clause(translation: str, clause: str, language: str, expected: str) -> None:
    common = {"give", "i", "march", "essen", "neue", "sie", "ihre", "ihnen"}.__contains__
    assert as_clause(translation, clause, language, False, common) == expected
    first = as_clause(translation, clause, language, is_first=True)
    assert first.lower() == expected.lower() and first[:1] == translation[:1]
