"""Ranges of days and of times in translations."""

import pytest

from mt.text.schedules import lost_ranges


@pytest.mark.parametrize(
    ("languages", "source", "translation", "lost"),
    [
        ("de en", "Offen Mo–Fr", "Open", ["Mo–Fr"]),
        ("de en", "Di-Do 9 Uhr", "Open 9", ["Di-Do"]),
        ("fr en", "Ouvert Lun–Ven", "Open Mon-Fri", []),
        ("de fr", "Mo-Fr: 9", "lundi au vendredi : 9", []),
        ("de en", "Montag bis Freitag: 9", "Monday, on Friday: 9", ["Montag bis Freitag"]),
        ("de en", "Mo.–Do.", "Monday through to Thursdays", []),
        ("en de", "Open Mon-fri", "Offen", []),
        ("en de", "Open Mon-Fri.", "Offen.", ["Mon-Fri"]),
        ("en de", "Open Mon-Fri.", "Offen Mon-Fri.", []),
        ("en de", "sat-sun@x.org, {Mon-Fri}, a sat – Sun, sat to sun, mon-fri, Mon-Mon", "", []),
        ("de en", "info@mo-fr.de, fr-FR, so-so, So - do it, so bis di, DE-FR, X.Mo-Fr.y", "", []),
        ("fr en", "mer à mer, mar à mer", "", []),
        ("fr de", "Ouvert lun-ven.", "", ["lun-ven"]),
        ("en fr", "1:43 - 1:64, 25:00-26:00", "", []),
        ("de fr", "mo–freitag", "", ["mo–freitag"]),
        ("en de", "The Mon-Fri plan", "Der Mon-Fri-Plan", []),
        ("en de", "`Mon-Fri` and x.org/Mon-Fri, 9:00-17:00.txt", "", []),
        ("fr de", "du mardi au samedi", "samstags", ["mardi au samedi"]),
        ("de zh", "Offen Mo–Fr", "周一至周五开放", []),
        ("de ja", "Offen Mo–Fr", "月曜日から金曜日", []),
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


def test_ranges_that_are_kept_stay() -> None:
    kept = [(5, 12)]
    assert lost_ranges("Open Mon-Fri", "", ("en", "de"), kept) == []
