"""Ranges of days and of times in translations."""

import pytest

from mt.text.schedules import lost_dates, lost_ranges, mend_names, mend_ranges


@pytest.mark.parametrize(
    ("languages", "source", "translation", "lost"),
    [
        ("de en", "Offen Mo–Fr", "Open", ["Mo–Fr"]),
        ("de en", "Di-Do 9 Uhr", "Open 9", ["Di-Do"]),
        ("de fr", "Mo-Fr: 9", "lundi au vendredi : 9", []),
        ("de en", "Montag bis Freitag: 9", "Monday, on Friday: 9", ["Montag bis Freitag"]),
        ("de en", "Mo.–Do.", "Monday through to Thursdays", []),
        ("en de", "Open Mon-fri", "Offen", []),
        ("de fr", "mo–freitag", "", ["mo–freitag"]),
        ("en de", "The Mon-Fri plan", "Der Mon-Fri-Plan", []),
        ("en de", "`Mon-Fri` and x.org/Mon-Fri, 9:00-17:00.txt", "", []),
        ("fr de", "du mardi au samedi", "samstags", ["mardi au samedi"]),
        ("de zh", "Offen Mo–Fr", "周一至周五开放", []),
        ("de zh", "Offen Mo–Fr", "开放", ["Mo–Fr"]),
        ("cs en", "Po–Pá", "Open", []),
        ("de en", "Wi-Fi, Jean–Luc, so–lala, die Sommer–Dose, Mo-Di-Do", "", []),
        ("en de", "The sun to see, a mon–ey, Sat-nav, wed-lock, Sunday–", "", []),
        ("de fr", "8:30–17:00 Uhr", "8h30–17h0", ["8:30–17:00 Uhr"]),
        ("de fr", "8:30–17:00 Uhr", "8 h 30 à 17 h", []),
        ("de fr", "8:00–12:00", "8:00-12 h 00", ["8:00–12:00"]),
        ("de fr", "Mo–Fr 8:00–12:00", "8:00–12:00", ["Mo–Fr", "8:00–12:00"]),  # both, because few survive alone
        ("de en", "Mo–Fr 8:00–12:00", "8:00–12:00", ["Mo–Fr"]),
        ("en de", "9:00 - 17:00", "9:00–17:00", []),
        ("en de", "3:1-4:2, 1:00:00–2:00:00, 2024-05-06", "", []),
    ],
)
def test_lost_ranges(languages: str, source: str, translation: str, lost: list[str]) -> None:
    before, after = languages.split()
    assert [source[begin:end] for begin, end in lost_ranges(source, translation, (before, after))] == lost


@pytest.mark.parametrize(
    ("languages", "source", "translation", "expected"),
    [
        ("de en", "Mo.-Do. 9, Sa–So", "Mo.-Do. 9, Sa–So", "Mon–Thu 9, Sat–Sun"),
        ("en fr", "Mon-Fri or Tue–Wed.", "Mon–Fri ou Tue–Wed.", "lun.–ven. ou mar.–mer."),
        ("de fr", "Montag bis Freitag", "le Montag bis Freitag", "le lundi au vendredi"),
        ("fr de", "lundi-jeudi et lun. au ven.", "Lundi-jeudi und lun. au ven.", "Montag bis Donnerstag und Mo–Fr."),
        ("en de", *["Mon-Fri, x.org/Mon-Fri, `Mon-Fri`"] * 2, "Mo–Fr, x.org/Mon-Fri, `Mon-Fri`"),
        *(  # not ranges of days or hours
            (languages, text, text, text)
            for languages, texts in {
                "en de": "sat-sun@x.org|{Mon-Fri}|a sat – Sun|sat to sun|mon-fri|Mon-Mon",
                "de en": "info@mo-fr.de|de-DE, fr-FR und en-US|fr-di|so bis di|so-so|So - do it|DE-FR|X.Mo-Fr.y",
                "fr en": "mer à mer|mar à mer|Mar-mar",
                "en fr": "x.org/10:15-11:20|10:15-11:20.txt|1:43 - 1:64|1:10 - 1:20, open|I am at 16:10-21:09",
            }.items()
            for text in texts.split("|")
        ),
        ("fr de", "Ouvert lun-ven.", "Offen lun-ven.", "Offen Mo–Fr."),
        ("en de", "Mon-Fri. 9", "Mon-Fri. 9", "Mo–Fr 9"),
        ("en fr", "Open 8:00-9:30", "Ouvert 8:00-9:30", "Ouvert 8h–9h30"),
        ("en fr", "Sundays 8:00-9:30", "dimanche 8:00-9:30", "dimanche 8h–9h30"),
        ("en de", "MONDAY-FRIDAY 9", "MONDAY-FRIDAY 9", "MONTAG BIS FREITAG 9"),
        ("de fr", "8:30–17:00 Uhr", "8:30-17:00 Uhr", "8h30–17h"),
        ("de en", "8:30–17:00 Uhr", "8:30–17:00 Uhr", "8:30–17:00"),
        ("de de", "Mo-Fr 8:30–17:00 Uhr", "Di-Fr 8:30–17:00 Uhr", "Di-Fr 8:30–17:00 Uhr"),
        ("de cs", "Mo–Fr", "Mo–Fr", "Mo–Fr"),
        ("de en", "Mo–Fr", "Mon–Fri, Do-So", "Mon–Fri, Do-So"),  # not of the source
        ("en fr", "from 9:00 to 17:00", "de 9:00 à 17:00", "de 9:00 à 17:00"),
    ],
)
def test_copied_ranges_are_those_of_the_target_language(
    languages: str, source: str, translation: str, expected: str
) -> None:
    before, after = languages.split()
    assert mend_ranges(source, translation, (before, after)) == expected


def test_a_range_of_days_in_lower_case_is_one_before_a_time() -> None:
    found = [lost_ranges(text, "", ("en", "de")) for text in ("mon-fri 9:00", "sun-sat is", "mon-fri: 9")]
    assert found == [[(0, 7)], [], [(0, 7)]]


def test_ranges_that_are_kept_stay() -> None:
    kept = [(5, 12)]
    assert lost_ranges("Open Mon-Fri", "", ("en", "de"), kept) == []
    assert mend_ranges("Open Mon-Fri", "Offen Mon-Fri", ("en", "de"), kept) == "Offen Mon-Fri"


@pytest.mark.parametrize(
    ("languages", "source", "translation", "expected"),
    [
        ("en-fr", "on Tuesday, 5 May", "le dimanche 5 mai", "le mardi 5 mai"),
        ("en-de", "Mondays in March", "Dienstags im Mai", "Montags im März"),
        ("en-de", "I may come on Monday or Friday.", "Ich komme am Montag.", "Ich komme am Montag."),
        ("en-it", "on Tuesday", "di domenica", "di domenica"),
        ("en-de", "(March 2010), on May 3rd, 2027", "(March 2010), am May 3rd, 2027", "(März 2010), am 3. Mai 2027"),
        ("fr-en", "le lundi 1er mars 2010", "on lundi 1er mars 2010", "on Monday, March 1, 2010"),
        ("de-fr", "Montag, 1. März, im Mai 2010", "le Montag, 1. März, en Mai 2010", "le lundi 1er mars, en mai 2010"),
        ("fr-de", "lundi 2 mars 2026", "lundi 2 mars 2026", "Montag, 2. März 2026"),
        ("en-de", "March 5:30, the May", "March 5:30, der May", "March 5:30, der May"),
    ],
)
def test_days_and_months_are_those_of_the_source(languages: str, source: str, translation: str, expected: str) -> None:
    first, second = languages.split("-")
    assert mend_names(source, translation, (first, second)) == expected
    assert "May 3" in source or mend_names(source, source, (first, second), [(0, len(source))]) == source


@pytest.mark.parametrize(
    ("languages", "source", "translation", "lost"),
    [
        (
            "fr-en",
            "La loi (mars 2010) et lundi 2 mai 2011",
            "The law (mar 2010) and on 2, 2011",
            ["mars 2010", "lundi 2 mai 2011"],
        ),
        ("fr-en", "La loi (mars 2010)", "The law (March 2010)", []),
        ("en-de", "May 3, the march of 2010", "das Jahr 2010", ["May 3"]),
        ("en-de", "of May 2011", "vom 1. Mai 2011", ["May 2011"]),
        ("de-en", "am 21. März", "on March 21st.", []),
        ("en-it", "May 3", "Tre", []),
    ],
)
def test_lost_dates(languages: str, source: str, translation: str, lost: list[str]) -> None:
    first, second = languages.split("-")
    assert [source[begin:end] for begin, end in lost_dates(source, translation, (first, second))] == lost
