"""Abbreviations in the sentence that a model reads, and at the ends of sentences."""

import re

import pytest

from mt.text.abbreviations import ends_with_abbreviation, expand_abbreviations
from mt.text.normalise import NormalisedText
from mt.text.segment import split_text


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "Approx. 5 km, but Approx. is none", "Approximately 5 km, but Approx. is none"),
        ("en", "w/o milk, w/ milk, w/c, new/old W/m²", "without milk, with milk, w/c, new/old W/m²"),
        ("en-GB", "No. 5 is free; Room No. 7, no. 8 and no. 9.", "#5 is free; Room #7, number 8 and number 9."),
        ("en", "I said no. No. 2,000 people, No. 12 Germans.", None),
        ("en", "The fig. is ripe. See fig. 3, fig.3", "The fig. is ripe. See figure 3, fig.3"),
        ("en", "Mar. 3, 5 Dec. He, (3 Nov.), 3 Mar", "March 3, 5 December. He, (3 November), 3 March"),
        ("en", "dept.name, https://a.org/w/b?no.5 a@dept. org {dept.}", None),
        ("en", "See Art. 5(1)(a), Sec. 4 and pp. 5–9 (vol. 2), i.e. no.: 5, p. X",
         "See Article 5(1)(a), Section 4 and pages 5–9 (volume 2), that is number: 5, p. X"),
        ("en", "CAUTION: hot. Most Important: caution, CAUTION", "WARNING: hot. Most Important: caution, CAUTION"),
        ("en", "2 tbsp. oil, 1 tsp salt", "2 tablespoons oil, 1 teaspoon salt"),
        ("de", "1 TL Salz und 2 EL Öl", "1 Teelöffel Salz und 2 Esslöffel Öl"),
        ("fr", "2 c. à s. de sel", "2 cuillères à soupe de sel"),
        ("en", "24 hrs. for 5 sq. m, 1 hr, 5 yr, 3 in. wide", "24 hours for 5 m², 1 hour, 5 year, 3 inches wide"),
        ("en", "Put 5 in. Then, 5 p. people, hrs, a p., Vol. X", None),
        ("de", "lt. Art.-Nr. 5 u. auf S. 12 im Buch, Nr. 3, Tel. (030) 1",
         "gemäß Artikelnummer 5 und auf Seite 12 im Buch, Nummer 3, Telefon (030) 1"),
        ("de", "am 3. u. 4. d. M., 10 Min. lang, 500 v. Chr. (S. 5), vgl. S. 6",
         "am 3. und 4. dieses Monats, 10 Minuten lang, 500 v. Chr. (Seite 5), siehe Seite 6"),
        ("de", "Thomas S. 12 Jahre, u. ä., s. S., Nr. eins, v. K., Min. Wert, Bestell-Nr. 5", None),
        ("fr", "rdv p. 12, 50 € HT, Ex. : al. 3", "rendez-vous page 12, 50 € hors taxes, Exemple : alinéa 3"),
        ("en", "I ❤️ dogs, my ❤️ and I ❤.", "I love dogs, my ❤️ and I ❤."),
        ("fr", "J'❤ Paris, Mar 5", "J'aime Paris, Mar 5"),
        ("en", "On Mar 5, at Mar Street", "On March 5, at Mar Street"),
        ("fr", "Au XVIIIe ou XIXème siècle, au Ve siècle, le Ve", "Au 18e ou 19e siècle, au 5e siècle, le Ve"),
        ("fr", "p. ex., un al. inconnu, HT, 5€HTML, p. de", "par exemple, un al. inconnu, HT, 5€HTML, p. de"),
        ("en", "Fri, Dec 1, Tue and Thu 9–5, Sat: closed, Sun: 10",
         "Friday, December 1, Tuesday and Thursday 9–5, Saturday: closed, Sun: 10"),
        ("en", "The Sun is hot. Jan 5, He sat 5 hours, Wed in May, Sun, sea and sand, Dec and Oct", None),
        ("de", "Mo., Di. und Do. 8–12, Sa. geschlossen, Fr, 5. Mai, v. 14 Tagen",
         "Montag, Dienstag und Donnerstag 8–12, Samstag geschlossen, Freitag, 5. Mai, v. 14 Tagen"),
        ("de", "So 5 Leute, Fr. Müller, das Do und das Mi, im SO 5, do 5, Mo Klein", None),
        ("de", "am Mi. u. Do. frei, am Sa. ja", "am Mittwoch und Donnerstag frei, am Samstag ja"),
        ("fr", "mar. 5 mai et ven., sam. 9h, la mer. 5 h", "mardi 5 mai et ven., samedi 9h, la mer. 5 h"),
        ("de", "MwSt. Wir, inkl. MwSt. und ca. 5", "Mehrwertsteuer. Wir, einschließlich Mehrwertsteuer und etwa 5"),
        ("de", "ca.\u00a03 Mio. €. Im 19. Jh., evtl.?", "etwa\u00a03 Millionen €. Im 19. Jahrhundert, vielleicht?"),
        ("de", "i.d.R. und i. d. R. heißt er Jan. 2019", "in der Regel und in der Regel heißt er Jan. 2019"),
        ("fr", "RDV le 5 janv. 2024, c.-à-d. demain", "rendez-vous le 5 janvier 2024, c'est-à-dire demain"),
        ("en", "I Sat 3 exams, Sun: 5 facts, the Sun: closed, Sat. May I", None),
        ("en", "A no.: yes, Dec 5 times. Is on avg. We, i.e.", "A no.: yes, Dec 5 times. Is on average. We, that is."),
        ("en", "Mon 9 am to 5 pm, Wed 5:30, Sat. June 5", "Monday 9 am to 5 pm, Wednesday 5:30, Saturday June 5"),
        ("de", "Fr. 20.50. Fr. 20–30, Fr. 20 am Tag, Mi 11 kostet, Mi 11 am besten", None),
        ("de", "Di und Fr. Blair, Mo, 5 J., So: 3", None),
        ("de", "Di 20.30 Uhr, Do 5.6., am Di. Abend", "Dienstag 20.30 Uhr, Donnerstag 5.6., am Di. Abend"),
        ("de", "10 Min. Wir, 5 Min. Der Zug, 5 Min. Pause, z. T. Es, lt. Der Spiegel, Lt. Kirk",
         "10 Minuten. Wir, 5 Minuten. Der Zug, 5 Minuten Pause, teilweise. Es, gemäß Der Spiegel, Lt. Kirk"),
        ("de", "Roe v. Wade, 2020 v. 3 Jahren, Johann S. 25", None),
        ("fr", "Selon Dupont et al. 2019, mon vol. 3 amis, un vol. 20 €, la SVP, dsl", None),
        ("cs", "ca. 5", None),
    ],
)  # fmt: skip
def test_abbreviations_become_words(language: str, text: str, expected: str | None) -> None:
    """None: the text stays."""
    assert expand_abbreviations(NormalisedText(text), language).text == (expected or text)


def test_terms_stay_and_ranges_refer_to_the_original() -> None:
    expanded = expand_abbreviations(NormalisedText("ca. 5 € MwSt. ca. 6"), "de", [(8, 13)])
    assert expanded.text == "etwa 5 € MwSt. etwa 6"
    assert expanded.original_range(15, 19) == (14, 17)


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("en", "⟨It is approx. 5 km.⟩ ⟨Go by bus incl. lunch.⟩"),
        ("en", "⟨Lunch is incl.⟩ ⟨Drinks are extra.⟩"),
        ("en", "⟨He is in the sales dept.⟩ ⟨She is his boss.⟩"),
        ("de", "⟨Kd.-Nr. 5, Mo.–Fr. frei.⟩"),
        ("en", "⟨It is late, i.e. we go.⟩ ⟨Put 5 in.⟩ ⟨The rest.⟩"),
        ("de", "⟨Äpfel u. Birnen für Hr. Maier.⟩ ⟨Dann los.⟩"),
        ("fr", "⟨C'est un jeu.⟩ ⟨5 joueurs participent.⟩"),
        ("fr", "⟨Voir vol. 3, p. 5.⟩"),
        ("fr", "⟨J'ai vu M. Dupont.⟩ ⟨C'est M. Petit.⟩ ⟨La taille est M.⟩ ⟨Le prix est bas.⟩"),
    ],
)
def test_no_sentence_ends_at_an_abbreviation(language: str, marked: str) -> None:
    """The sentences are in angle brackets."""
    parts = split_text(re.sub("[⟨⟩]", "", marked), language)
    assert [part.text for part in parts if not part.kept] == re.findall("⟨(.*?)⟩", marked)


def test_what_follows_decides() -> None:
    ends = [ends_with_abbreviation("5 Mio. ", follows, "de") for follows in ("3 ", "extra", "Euro")]
    assert ends == [True, True, False]
