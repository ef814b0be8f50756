"""Lines of days, hours and dates, which are translated word by word."""

import pytest

from mt.text.clock import relative_time
from mt.text.schedules import translate_line


@pytest.mark.parametrize(
    ("direction", "line", "expected"),
    [
        (
            "en-de",
            "Mon-Fri 9:00-18:00, Saturday 10:00-14:00, Sun closed",
            "Mo–Fr 9–18 Uhr, Sa 10–14 Uhr, So geschlossen",
        ),
        ("en-fr", "Mon, Wed, Fri: 14:00-16:30", "lun., mer., ven. : 14h–16h30"),
        ("en-de", "Monday and Tuesday: 9-5", "Montag und Dienstag: 9–17 Uhr"),
        ("en-de", "Monday from 9:00 to 17:00", "Montag von 9 bis 17 Uhr"),
        ("en-fr", "Monday from 9:00 to 17:00", "lundi de 9h à 17h"),
        ("en-de", "Mondays closed", "montags geschlossen"),
        ("en-fr", "Mondays closed", "le lundi fermé"),
        ("en-de", "Thurs 5:30", "Do 5:30 Uhr"),
        ("en-de", "MON-FRI", "MO–FR"),
        ("de-en", "Mo.-Fr. 8-18 Uhr, So. geschlossen", "Mon–Fri 8:00–18:00, Sun closed"),
        ("de-en", "Montag bis Freitag: 8:30–17:00 Uhr", "Monday to Friday: 8:30–17:00"),
        ("de-fr", "Sa/So 10–12 und 14–16 Uhr.", "sam./dim. 10h–12h et 14h–16h."),
        ("de-fr", "An Sonn- und Feiertagen geschlossen", "dimanches et jours fériés fermé"),
        ("de-en", "Täglich (Di Ruhetag)", "daily (Tue closed)"),
        ("fr-en", "mar., jeu.", "Tue, Thu"),
        ("fr-de", "Lun.-ven. : 8h30-17h ; dim. fermé", "Mo–Fr: 8:30–17:00 Uhr; So geschlossen"),
        ("fr-de", "En semaine : 10 h à 12 h", "werktags: 10 bis 12 Uhr"),
        ("de-en", "3.-5. Mai", "May 3–5"),
        ("en-de", "May 3–5, 2025", "3.–5. Mai 2025"),
        ("en-fr", "1st to 5th May", "1er au 5 mai"),
        ("fr-en", "1er-5 mai 2025", "May 1–5, 2025"),
        ("de-fr", "1.–3. Mai", "1er–3 mai"),
        ("de-fr", "11.-21. Mai", "11–21 mai"),
        ("de-en", "Täglich 2 h", "daily 2 h"),
        ("de-en", "Täglich 2-3 h", "daily 2-3 h"),
        ("de-en", "Täglich 8–18 h", "daily 8:00–18:00"),
        ("de-en", "Mo 8 h, Di 7 h 30", "Mon 8 h, Tue 7 h 30"),
        ("de-en", "Mo 5-9 Uhr, Di 2–3 Uhr, Mi 5-9:30", "Mon 5:00–9:00, Tue 2:00–3:00, Wed 5:00–9:30"),
        ("de-en", "Sa 3-1", "Sat 3-1"),
        ("de-en", "Fr–Sa 22–4 Uhr", "Fri–Sat 22:00–4:00"),
        ("en-de", "Sunday: 3 h", "Sonntag: 3 h"),
        ("en-de", "Daily: 8-10 h", "täglich: 8-10 h"),
        ("en-de", "Weekends 40 h", "am Wochenende 40 h"),
        ("en-de", "Mon 8-12 h, Tue 14-16 h", "Mo 8–12 Uhr, Di 14–16 Uhr"),
        ("en-de", "Fri-Sat 5-2", "Fr–Sa 5-2"),
        ("en-de", "Sat 3-1, Sun 1-1", "Sa 3-1, So 1-1"),
        ("en-de", "Mon 9-9, Tue 12-8, Wed 10-2", "Mo 9–21 Uhr, Di 12–20 Uhr, Mi 10–14 Uhr"),
        ("en-de", "Sat 21-15, Mon 6-6", "Sa 21-15, Mo 6–18 Uhr"),
        ("en-de", "Mon 9-0", "Mo 9-0"),
        ("en-fr", "Sat from 5 to 2", "sam. de 5h à 2h"),
        ("fr-en", "Tous les jours 2 h", "daily 2 h"),
        ("fr-en", "Lundi 8 h, mardi 7h30", "Monday 8 h, Tuesday 7h30"),
        ("fr-en", "Lundi 14h30, mardi 24 h", "Monday 14:30, Tuesday 24 h"),
        ("fr-en", "Lundi de 8 à 10 h, mardi 2-3 h", "Monday from 8:00 to 10:00, Tuesday 2-3 h"),
    ],
)
def test_lines(direction: str, line: str, expected: str) -> None:
    source, target = direction.split("-")
    assert translate_line(line, (source, target)) == expected


@pytest.mark.parametrize(
    ("direction", "text"),
    [
        *(
            ("en-de", text)
            for text in (
                "Sun",
                "sun, sea",
                "sat on",
                "Mon-Mon",
                "Friday 5",
                "closed",
                "9:00-17:00",
                "Sun-",
                "Sun 2 to 5",
                "sun 3-1",
            )
        ),
        *(
            ("de-en", text)
            for text in ("so bis di", "Mo-Di-Do", "Fr. 20-30", "Do it", "Mo, 5 Uhr früh", "so-so", "so 2 h")
        ),
        *(("fr-en", text) for text in ("mer, mar", "Le mar. est là", "mar à mer", "mer 2 h")),
        ("en-it", "Mon-Fri"),
        ("it-en", "Mon-Fri"),
        ("en-de", "Mon, Tue, " * 50),
        ("en-de", ""),
    ],
)
def test_other_texts(direction: str, text: str) -> None:
    source, target = direction.split("-")
    assert translate_line(text, (source, target)) is None


@pytest.mark.parametrize(
    ("direction", "text", "expected"),
    [
        ("en-de", "5 days ago", "vor 5 Tagen"),
        ("de-fr", "Vor 1 Jahr.", "Il y a 1 an."),
        ("fr-en", "dans 2 mois", "in 2 months"),
        ("en-de", "5 dogs ago", None),
        ("de-en", "vor fünf Tagen", None),
        ("en-it", "5 days ago", None),
    ],
)
def test_times_from_now(direction: str, text: str, expected: str | None) -> None:
    source, target = direction.split("-")
    assert relative_time(text, (source, target)) == expected
