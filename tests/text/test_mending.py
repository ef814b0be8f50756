"""Translations that are mended: numbers, days, titles, quotation marks and other parts of their sources."""

from collections.abc import Callable
from functools import partial

import pytest

from mt.text.casing import begin_with_capital
from mt.text.mending import mend_phrases, write_signs_of_numbers
from mt.text.messages import write_number_signs
from mt.text.names import write_names
from mt.text.negation import mend_prohibitions
from mt.text.numbers import mend_numbers, write_dates
from mt.text.places import write_places
from mt.text.protect import find_spans
from mt.text.schedules import mend_dates, mend_ranges
from mt.text.titles import write_titles
from mt.text.typography import join_numbers, mend_marks, restore_no_break_spaces, space_guillemets, unify_quotes
from tests.text.changes import before_and_after


def of_pair(mend: Callable[[str, str, tuple[str, str]], str]) -> Callable[[str, str, str], str]:
    """Return a function that has two languages in one string, such as `en de`."""

    def mend_translation(source: str, translation: str, languages: str) -> str:
        first, second = languages.split()
        return mend(source, translation, (first, second))

    return mend_translation


MENDED: dict[str, Callable[[str, str, str], str]] = {
    "numbers": of_pair(mend_numbers),
    "phrases": mend_phrases,
    "prohibitions": of_pair(mend_prohibitions),
    "days and months": of_pair(mend_dates),
    "ranges of days and times": of_pair(mend_ranges),
    "given names": lambda source, translation, _: write_names(source, translation),
    "titles": of_pair(write_titles),
    "places": of_pair(partial(write_places, fixed=[("ACME Munich", "ACME Munich")])),
    "a capital at the beginning": lambda source, translation, _: begin_with_capital(translation, source, "en"),
    "spaces in numbers": lambda source, translation, _: join_numbers(translation, find_spans(source)),
    "no-break spaces": restore_no_break_spaces,
    "quotation marks": lambda source, translation, language: unify_quotes(translation, find_spans(source), language),
    "guillemets": space_guillemets,
    "numbers of items": write_signs_of_numbers,
    "signs of numbers": write_number_signs,
    "marks at the end": mend_marks,
}
ROWS: dict[str, list[tuple[str, str, str]]] = {
    "numbers": [
        # the marks of the target language
        ("de en", "3,50 € 1.234 €", "⟨3,50 € 1.234 €→€3.50 €1,234⟩"),
        ("en de", "see Art. 3.1 g, max. 4.1 g", "siehe Art. 3.1 g, max. ⟨4.1→4,1⟩ g"),
        ("en de", "Max. 2.5 m, see Fig. 3.1 kg", "Max. ⟨2.5→2,5⟩ m, ⟨3.1→3,1⟩ kg"),
        ("de en", "7.900.000 am 12.10.2026", "⟨7.900.000→7,900,000⟩ on 12.10.2026"),
        ("de en", "Server 192.168.100.200", "server 192.168.100.200"),
        ("de fr", "1.234.567,89", "⟨1.234.567,89→1\u00a0234\u00a0567,89⟩"),
        ("de nl", "1.234,5", "⟨1,234.5→1.234,5⟩"),
        ("de-CH en", "1.234,5", "1.234,5"),  # the marks of Switzerland are others
        ("fr de", "1\u00a0234\u00a0567 dogs", "⟨1\u00a0234\u00a0567→1.234.567⟩ Hunde"),
        ("fr en", "1\u202f250,75 €", "⟨1\u00a0250,75 €→€1,250.75⟩"),
        ("en de", "$1,234.56 USD 3.5", "⟨$1,234.56→$1.234,56⟩ USD ⟨3.5→3,5⟩"),
        (
            "en de",
            "1,250.50, 0.75, 0.75 m, 3.5 cars, about 3.5",
            "⟨1,250.50,→1.250,50,⟩ ⟨0.75,→0,75,⟩ ⟨0.75→0,75⟩ m, ⟨3.5→3,5⟩ Autos, etwa ⟨3.5→3,5⟩",
        ),
        (
            "en de",
            "`x` 2.4 packages, Debian 2.4, the 2.4 kernels, ALSA 0.9, since 2.6, §4.2, 135.1(2)",
            "`x` 2.4, Debian 2.4, 2.4, ALSA 0.9, 2.6, §4.2, 135.1(2)",
        ),
        ("en fr", "Debian GNU/Linux 5.0 Lenny, version 3.0 packages", "Debian GNU/Linux 5.0 Lenny, version 3.0"),
        ("fr en", "article 205.043, 3,5 et 1\u00a0250", "article 205.043, ⟨3,5→3.5⟩ and ⟨1\u00a0250→1,250⟩"),
        ("de fr", "1.234.567 und 12.500", "⟨1,234.567→1\u00a0234\u00a0567⟩ et ⟨12,500→12\u00a0500⟩"),
        ("de en", "10\u00a0000, (100.200), 192.168.100.200", "⟨10\u00a0000,→10,000,⟩ (100.200), 192.168.100.200"),
        ("en de", "1\u202f234.5 kg", "1\u202f⟨234.5→234,5⟩ kg"),  # of the International System
        ("en de", "1,234 ratings of 1,100 people", "⟨1,234→1.234⟩ Noten von ⟨1,100→1.100⟩"),
        ("en de", "line 1,234 is, rows 1,235, (100,200)", "⟨1,234, 1,235,→1.234, 1.235,⟩ (100,200)"),
        ("en de", "at 4.50", "für 4,50"),
        ("en de", "version 2.5 costs $2.5", "2.5 kostet ⟨$2.5→2.5 $⟩"),  # a version and a price
        ("de en", "1.234 ist größer als 1,234.", "⟨1.234→1,234⟩ is larger than 1.234."),
        ("en de", "version 1.234.56", "1.234.56"),
        ("en ja", "2.5 kg", "2.5 kg"),
        ("en de", "1.000,50 EUR", "⟨1,000.50→1.000,50⟩ EUR"),  # the marks of the other language
        ("de en", "1,000.50 Euro", "⟨1.000,50→1,000.50⟩ euros"),
        *(("en de", text, text) for text in ("rgb(255,128,255)", "https://x.org/?s=100,200", "\\d{1,300} (100,200)")),
        *(("de en", text, text) for text in ("0.125 kg", "Tel. 089.123.456", "x-1.234.pdf")),
        ("en de", "802.11g, Figure 2.3 A", "802.11g, Abbildung 2.3 A"),
        ("en de", "a town (10,000 people), f(1,000)", "⟨(10,000→(10.000⟩ Menschen), f(1,000)"),
        ("de en", "Es bildeten 10.000 Menschen", "⟨10.000→10,000⟩ people formed"),
        ("en de", "add 2.5 g, 2.5-3.5 kg", "⟨2.5→2,5⟩ g, ⟨2.5-3.5→2,5-3,5⟩ kg"),
        ("en xx", "2.5 kg", "2.5 kg"),  # an unknown language
        ("en de", "$1.5 billion, 1 billion, 2 million", "⟨$1,5 Million,→1,5 Milliarden Dollar,⟩ 1 ⟨Billion→Milliarde⟩"),
        ("en de", "$1.2 million and 3 trillion", "1,2 ⟨million→Millionen⟩ und 3 ⟨Trillion→Billionen⟩"),
        (
            "en fr",
            "€1.2 million, £3 million",
            "⟨€1,2 millions,→1,2 million d'euros,⟩ ⟨£3 million→3 millions de livres⟩",
        ),
        ("fr en", "le 21e et le 3e", "the ⟨21th, 3th, 11st→21st, 3rd, 11th⟩"),
        # ranges and hyphens
        ("en de", "Wait 2 - 3 days.", "Warte ⟨2:3→2 - 3⟩ Tage."),
        ("en de", "2 - 3, 2:3", "2:3, 2:3"),
        ("en de", "They won 3 - 1.", "Sie gewannen 3:1."),  # a score
        ("en de", "on 2020-10-12", "am 10:12"),
        ("de en", "um 18 Uhr, 8:30 Uhr, 9 Uhr", "at ⟨18 o'clock, 8:30 o'clock,→18:00, 8:30,⟩ 9 o'clock"),
        ("de en", "um 0 Uhr, 24 Uhr", "at 0⟨ o'clock→:00⟩, 24⟨ o'clock→:00⟩, 10 o'clock"),
        ("en de", "1,234 results of 12", "⟨1.234ergebnisse→1.234 ergebnisse⟩ von 12"),
        ("en de", "delete 3 files", "⟨3-Dateien→3 Dateien⟩ löschen"),
        ("en de", "see all 3 files", "sieh alle ⟨3-Dateien→3 Dateien⟩"),
        ("en de", "the Kerberos 5 system", "das Kerberos 5-System"),  # a name
        ("en de", "a 3 room flat", "eine 3-Zimmer-Wohnung"),
        ("en fr", "64 kB or 3.2 MB", "64 ⟨kB→Ko⟩ ou ⟨3.2 MB→3,2 Mo⟩"),
        # signs of money
        ("en de", "€5,000, £3-£4 and €10–15", "⟨€5.000,→5.000 €,⟩ ⟨£3-£4→3-4 £⟩ und ⟨€10–15→10–15 €⟩"),
        ("en de", "US$5, $x, ¥5, $5m", "US$5, $x, ¥5, $5m"),
        ("en nl", "€5", "€5"),
        ("de en", "ab 5 €, 10–15 €, 2 Millionen €", "from ⟨5 €, 10–15 €, 2 million €→€5, €10–15, €2 million⟩"),
        ("fr en", "20 %, 5 à 10 €", "⟨20 %→20%⟩, ⟨5 to 10 €→€5 to 10⟩"),
        ("de en", "4,5 × 5 = 22,5 m, x = 3,5", "4.5 × 5 = ⟨22,5→22.5⟩ m, x = ⟨3,5→3.5⟩"),
        ("en de", "1.5 + 2.5 = 4.0, x = 3.5", "⟨1.5→1,5⟩ + ⟨2.5→2,5⟩ = ⟨4.0→4,0⟩, x = 3.5"),  # code, maybe
        ("en de", "pH 7.4, the pH is 7.4", "pH ⟨7.4→7,4⟩, der pH ist ⟨7.4→7,4⟩"),
        ("de en", "5 €/kg, {n} €, 5 $US", "⟨5 €→€5⟩/kg, {n} €, 5 $US"),
        ("de en", "ab {preis} €", "from {preis} ⟨$→€⟩"),
        ("de en", "12 € or 13 $", "⟨13 $→$13⟩"),
        ("de en", "12 Euro", "$12"),
        ("de en", "50¢ Rabatt", "⟨0.50 $→$0.50⟩ off"),
        ("de en", "`$x` 12 €", "`$x` ⟨$12→€12⟩"),
    ],
    "phrases": [
        ("fr", "7:15 Uhr", "à 7 h 15⟨ heures→⟩, 3 heures"),
        ("fr", "2:15:30, 0:05", "de ⟨2 h →⟩2:15:30, ⟨0 h →⟩0:05, 1 h 2:15"),
        ("fr", "from 7:00 to 12:00", "de ⟨7h00→7 h 00⟩ à ⟨12:00→12 h 00⟩"),
        ("fr", "9 a.m. to 6 p.m., ratio 3:20", "de 9 h 00 à ⟨18:00→18 h 00⟩, 5h00x"),
        ("fr", "9:00–17:00", "9:00–17:00"),
        ("fr", "11:45 Uhr, 9–18 Uhr", "11⟨ à 45 heures→ h 45⟩, 9 à 18 heures"),
        ("de", "at 5", "um 17 o'clock"),
        ("de", "Il est 9:20", "⟨Er→Es⟩ ist 9:20."),
        ("en", "qu'il est 9:20", "⟨He→It⟩ is 9:20, ⟨he→it⟩'s 9:20, he is nine"),
        ("de", "Il a 9:20", "Er ist 9:20."),
        ("de", "½ heure plus tard, 1½ heure", "⟨½ Uhr→½ Stunde⟩ später, ⟨1½ Uhr→1½ Stunden⟩"),
        ("de", "2 heures plus tard, à 5 heures", "⟨2 Uhr→2 Stunden⟩ später, um 5 Uhr"),
        ("de", "(1 hour and 30 minutes)", "(⟨1 Uhr→1 Stunde⟩ und 30 Minuten)"),
        ("de", "à 5 heures, plus tard que prévu", "um 5 Uhr später als geplant"),
        ("de", "toutes les 6 heures", "alle 6 ⟨Uhr→Stunden⟩"),
        ("en", "toutes les 6 heures", "every 6 ⟨o'clock→hours⟩"),
        ("en", "Alle 14 Tage, alle 12 Kinder", "⟨All→Every⟩ 14 days, all 12 children"),
        ("en", "Alle 30 Minuten des Films", "All 30 minutes of the film"),
        ("en", "maximal 20 Euro", "⟨the maximum→at most⟩ 20 euros, the maximum speed"),
        ("fr", "It's 7:30", "⟨C'est à→Il est⟩ 7 h 30, c'est à 7 km"),
        ("fr", "every second week", "chaque⟨ → deuxième ⟩semaine, chaque fois"),
        ("de", "January 27, 2006", "27. ⟨Januar,→Januar⟩ 2006, 3. Mai, 5"),
        ("de", "your letter of 3 May", "Ihr Brief ⟨von→vom⟩ 3. Mai, von 3. Klasse"),
        ("fr", "your letter of 3 May", "votre lettre ⟨de→du⟩ 3 mai, de 3 chiens"),
        ("fr", "in 44 BC", "en 44 ⟨av.→av. J.-C.⟩"),
        ("en", "max. : 5", "max.⟨ →⟩: 5"),
        ("en", "Pain (4 p.) : 5 g", "Bread ⟨(4 p.)→(4 p.):⟩ 5 g"),
        ("de", "US$5 and US$3.5 million", "⟨US$5→5 US-Dollar⟩ und ⟨US$3.5 Millionen→3.5 Millionen US-Dollar⟩"),
        ("fr", "US$5 and US$3 million", "⟨US$5→5 $ US⟩ et ⟨US$3 millions→3 millions de dollars US⟩"),
        ("fr", "2 item(s)", "2 article⟨s→⟩(s)"),
        ("de", "(DD/MM/YYYY)", "⟨(DD/MM/YYYY)→(TT/MM/JJJJ)⟩"),
        ("fr", "The IMF", "⟨La→Le⟩ FMI ⟨de la→du⟩ PIB, ⟨à la→au⟩ FMI, ⟨le →l'⟩OMS"),
        ("fr", "The UNO", "⟨OTAN→L'OTAN⟩ se réunit, OTAN"),
        ("de", "The IMF", "⟨Die→Der⟩ IWF, ⟨die→das⟩ BIP, die IWF"),
        ("en", "l'IMF", "la FMI"),
    ],
    "prohibitions": [
        ("en de", "It must not be opened.", "Es ⟨muss→darf⟩ nicht geöffnet werden."),
        ("en de", "Children mustn't use it.", "⟨Müssen→Dürfen⟩ Kinder es nicht nutzen"),
        ("en de", "I must pay and must not go.", "Ich muss zahlen und ⟨muss→darf⟩ nicht gehen."),
        ("en de", "You must pay and must not go.", "Du musst zahlen, nicht gehen."),
        ("en de", "You don't have to pay.", "Du musst nicht zahlen."),
        ("en de", "It must not be opened.", "Es darf nicht geöffnet werden."),
        ("fr de", "Vous ne devez pas l'ouvrir.", "Sie ⟨müssen→dürfen⟩ es nicht öffnen."),
        ("en de", "You must not only go.", "Du musst nicht nur gehen."),
        ("en de", "It must never be opened.", "Es ⟨muss→darf⟩ nie geöffnet werden."),
        ("fr de", "Tu ne dois plus fumer.", "Du musst nicht mehr rauchen."),  # or a duty that has ended
        ("fr en", "Il ne faut pas forcément venir.", "You don't have to come."),
        ("fr de", "Vous ne devez pas que payer.", "Sie müssen nicht zahlen."),
        ("fr en", "Il ne faut pas fumer.", "You ⟨don't have to→must not⟩ smoke."),
        ("fr en", "Tu n'es pas obligé de fumer.", "You don't have to smoke."),
        ("fr de", "Vous devez l'ouvrir.", "Sie müssen es öffnen."),
        ("en fr", "It must not be opened.", "Cela muss nicht"),
        ("en de", "You must not go, but you don't have to pay.", "Du darfst nicht gehen, musst aber nicht zahlen."),
        ("en de", "You must not wait, but have to go.", "Du darfst nicht warten, aber musst gehen."),
        ("en de", "I must not go, but I have to wait.", "Ich ⟨muss→darf⟩ nicht gehen, muss warten."),
        ("en de", "It must not be hot.", "Es muss kalt sein."),
        ("fr de", "Il ne faut pas rester.", "Man ⟨muss→darf⟩ nicht bleiben."),
        ("fr de", "Vous n'avez pas besoin de rester.", "Sie müssen nicht bleiben."),
    ],
    "days and months": [
        ("en de", "(March 2010), on May 3rd, 2027", "⟨(March→(März⟩ 2010), am ⟨May 3rd,→3. Mai⟩ 2027"),
        ("fr en", "le lundi 1er mars 2010", "on ⟨lundi 1er mars→Monday, March 1,⟩ 2010"),
        ("de fr", "Montag, 1. März, im Mai 2010", "le ⟨Montag, 1. März,→lundi 1er mars,⟩ en ⟨Mai→mai⟩ 2010"),
        ("fr de", "lundi 2 mars 2026", "⟨lundi 2 mars→Montag, 2. März⟩ 2026"),
        ("en de", "March 5:30, the May", "March 5:30, der May"),
    ],
    "ranges of days and times": [
        ("de en", "Mo.-Do. 9, Sa–So", "⟨Mo.-Do.→Mon–Thu⟩ 9, ⟨Sa–So→Sat–Sun⟩"),
        ("en fr", "Mon-Fri or Tue–Wed.", "⟨Mon–Fri→lun.–ven.⟩ ou ⟨Tue–Wed.→mar.–mer.⟩"),
        ("de fr", "Montag bis Freitag", "le ⟨Montag bis Freitag→lundi au vendredi⟩"),
        ("fr de", "lundi-jeudi et lun. au ven.", "⟨Lundi-jeudi→Montag bis Donnerstag⟩ und ⟨lun. au ven.→Mo–Fr.⟩"),
        ("en de", "Mon-Fri, x.org/Mon-Fri, `Mon-Fri`", "⟨Mon-Fri,→Mo–Fr,⟩ x.org/Mon-Fri, `Mon-Fri`"),
        # not ranges of days or hours
        *(("en de", x, x) for x in ("sat-sun@x.org", "{Mon-Fri}", "a sat – Sun", "sat to sun", "mon-fri", "Mon-Mon")),
        *(("de en", x, x) for x in ("a@mo-fr.de", "de-DE, fr-FR", "fr-di", "so bis di", "so-so", "DE-FR", "X.Mo-Fr.y")),
        *(("fr en", text, text) for text in ("mer à mer", "mar à mer", "Mar-mar")),
        *(("en fr", x, x) for x in ("x.org/10:15-11:20", "10:15-11:20.txt", "1:43 - 1:64", "1:10 - 1:20, open")),
        ("en fr", "I am at 16:10-21:09", "I am at 16:10-21:09"),
        ("fr de", "Ouvert lun-ven.", "Offen ⟨lun-ven.→Mo–Fr.⟩"),
        ("en de", "Mon-Fri. 9", "⟨Mon-Fri.→Mo–Fr⟩ 9"),
        ("de en", "9–18 Uhr, von 9 bis 18 Uhr", "⟨9-18 AM→9:00–18:00⟩, from ⟨9 to 18 o'clock→9:00 to 18:00⟩"),
        ("de fr", "von 9:30 bis 18 Uhr, Seite 9–18", "de ⟨9:30 à 18→9h30 à 18h⟩, page 9–18"),
        ("en fr", "Open 8:00-9:30", "Ouvert ⟨8:00-9:30→8h–9h30⟩"),
        ("en fr", "Sundays 8:00-9:30", "dimanche ⟨8:00-9:30→8h–9h30⟩"),
        ("en de", "MONDAY-FRIDAY 9", "⟨MONDAY-FRIDAY→MONTAG BIS FREITAG⟩ 9"),
        ("de fr", "8:30–17:00 Uhr", "⟨8:30-17:00 Uhr→8h30–17h⟩"),
        ("de en", "8:30–17:00 Uhr", "8:30–17:00⟨ Uhr→⟩"),
        ("de de", "Mo-Fr 8:30–17:00 Uhr", "Di-Fr 8:30–17:00 Uhr"),
        ("de cs", "Mo–Fr", "Mo–Fr"),
        ("de en", "Mo–Fr", "Mon–Fri, Do-So"),  # not of the source
        ("en fr", "from 9:00 to 17:00", "de 9:00 à 17:00"),
    ],
    "given names": [
        ("", "O'Neill and O'Hara", "⟨O' Neill→O'Neill⟩ und O'Hara"),
        ("", "Tom, Mary and John", "Tom, ⟨Maria→Mary⟩ und ⟨Johannes→John⟩"),
        ("", "Mary's brother", "⟨Marias→Marys⟩ Bruder"),
        ("", "TOM AND MARY", "Tom und ⟨Maria→Mary⟩"),
        ("", "Hans, Karl Marx", "Hans, ⟨Charles→Karl⟩ Marx"),
        ("", "Christopher Columbus, Queen Mary", "Christoph Kolumbus, Königin Maria"),
        ("", "Mary and Maria", "Maria und Maria"),
        ("", "Alice, Mary, Tom", "⟨Elke→Alice⟩, ⟨Maria→Mary⟩, Tom"),  # the only other name of a woman
        ("", "Alice, Anna, Tom", "Elke, Tom"),
        ("", "Hans, Karl", "Elke, Karl"),
        ("", "Charles the Great, Louis XIV", "Karl der Große, Ludwig XIV."),
    ],
    "titles": [
        ("fr en", "Monsieur Blanc est malade.", "⟨Dear →⟩Mr Blanc is sick."),
        ("en de", "Mr Smith called.", "⟨Mr→Herr⟩ Smith rief an."),
        ("en de", "Please ask Mr. Smith's wife.", "Frag ⟨Mr.→Herrn⟩ Smiths Frau."),
        ("en fr", "Miss Black slept. Miss America won.", "⟨Miss→Mme⟩ Black dormait. Miss America a gagné."),
        ("en de", "I met Mr Smith.", "Ich traf Herr Smith."),
        ("en de", "I spoke with Mr Dr. Lee.", "Ich sprach mit ⟨Mr→Herrn⟩ Dr. Lee."),
        ("en de", "Is Mr Lee in, or Mrs Lee?", "Ist ⟨Mr→Herr⟩ Lee da oder ⟨Mrs→Frau⟩ Lee?"),
        ("en de", "Dear Mr Lee,", "Sehr ⟨geehrte Frau→geehrter Herr⟩ Lee,"),
        ("en de", "Dear Ms Lee,", "⟨Lieber→Liebe Frau⟩ Lee,"),
        ("en de", "Good morning Mr Lee!", "Guten Morgen ⟨→Herr ⟩Lee!"),
        ("en de", "Mr and Mrs Lee sleep.", "⟨Mr→Herr⟩ und ⟨Mrs→Frau⟩ Lee schlafen."),
        ("en de", "This is Mr Lee.", "Das ist ⟨Mr-Lee.→Herr Lee.⟩"),
        ("en de", "By Mr Lee", "Von ⟨Mr→Herrn⟩ Lee"),
        ("en de", "Last week Mr Lee came.", "Letzte Woche kam ⟨Mr→Herr⟩ Lee."),
        ("en de", "Last week Mr Jo Lee was ill.", "Letzte Woche war ⟨Mr→Herr⟩ Jo Lee krank."),
        ("en de", "I saw Mr Lee play.", "Ich sah ⟨Mr→Herrn⟩ Lee spielen."),
        ("en de", "I like Mr. Bean and Ms Marvel.", "Ich mag Mr. Bean und Ms Marvel."),
        ("de en", "Frau Kleins Auto", "⟨Woman→Ms⟩ Klein's car"),
        ("de en", "Herr Klein und Frau Jonas", "Mr Klein and ⟨woman→Ms⟩ Jonas"),
        ("de en", "Jede Frau Europas", "Every woman Europas"),
        ("de en", "Der Herr Türkisch", "The man Türkisch"),
        ("en de", "Mr Lee saw it.", "Lee sah es."),
        ("en de", "Mr Lee", "⟨→Herr ⟩Lee"),
        ("en de", "Dear Mr {a}, Dear Ms [B],", "Lieber⟨→ Herr⟩ {a}, liebe ⟨→Frau ⟩[B],"),
        ("fr en", "Mme %s et M. {{ x }}", "⟨Mme→Ms⟩ %s and ⟨M.→Mr⟩ {{ x }}"),
        ("en de", "Mr Hove sees KwaHove.", "KwaHove sieht ⟨Mr→Herr⟩ Hove."),
        ("en fr", "Dear Ms Lee,", "⟨Cher Ms→Chère Madame⟩ Lee,"),
        ("en fr", "Ms Lee is here.", "Madame Lee est là."),
        ("en fr", "Ask Ms Lee.", "Demandez à ⟨Ms→Mme⟩ Lee."),
        ("de en", "Frau Dr. Klein ist da.", "⟨Woman→Ms⟩ Dr. Klein is here."),
        ("de en", "Mit Herrn Klein", "With ⟨Mrn→Mr⟩ Klein"),
        ("de en", "Frau Klein", "Mrs. Klein"),
        ("de en", "Mit seiner Frau Anna", "With his wife Anna"),
        ("de en", "Herr Präsident!", "Mr President!"),
        ("fr en", "Bonjour Madame Bovary", "Hello Madame Bovary"),
        ("fr en", "J'ai vu M. Dupont.", "I saw ⟨M.→Mr⟩ Dupont."),
        ("fr en", "C'est M. Dupont.", "It's ⟨M.→Mr⟩ Dupont."),
        ("fr en", "Richard M. Stallman", "Richard M. Stallman"),
        ("fr de", "Bonjour M. Dupont,", "Hallo ⟨M.→Herr⟩ Dupont,"),
        ("en de", "with a Mr Lee and the Mr Fox", "mit ⟨einer Mr→einem Herrn⟩ Lee und ⟨die Mr→der Herr⟩ Fox"),
        ("de fr", "Ein Herr Lee, eine Frau Fox", "⟨Une→Un⟩ M. Lee, ⟨un→une⟩ Mme Fox"),
        ("en de", "Mr. J. R. Lee is in.", "⟨Mr.→Herr⟩ J. R. Lee ist da."),
        ("de en", "Eine Frau Keller rief an.", "A ⟨woman→Ms⟩ Keller called."),
        ("en it", "Mr Smith", "Mr Smith"),
        ("it de", "Mr Smith", "Mr Smith"),
    ],
    "places": [
        ("en de", "a train to Vienna", "ein Zug nach ⟨Vienna.→Wien.⟩"),
        ("de en", "der FC Bayern und der SV Sachsen", "FC Bayern and SV Sachsen"),
        ("de fr", "in Genf und Graz", "à ⟨Genf→Genève⟩ et Graz"),
        ("en de", "Rome", "Romes ⟨Rome→Rom⟩"),
        ("en de", "Vienna, see vienna.example and `Vienna`", "Wien, Vienna"),
        ("en de", "the Munich Airport", "der Munich Airport"),
        ("en de", "ACME Munich", "ACME Munich"),
    ],
    "a capital at the beginning": [
        ("", "Filtre de date", "⟨date→Date⟩ filter"),
        ("", "« Oui », dit-il", "⟨„ja“,→„Ja“,⟩ sagte er"),
        ("", "oui", "ja"),
        ("", "Das iPhone ist hier.", "iPhones are here."),
        ("", "Die Pakete von npm", "npm packages"),
        ("", "Die Datei a.txt ist hier.", "a.txt is here."),
        ("", "Die Welt", "世界"),
        ("", "Hallo Welt", "⟨привет→Привет⟩ мир"),
        ("", "Hallo", "გამარჯობა"),
    ],
    "spaces in numbers": [
        ("", "rooms A1–A4, A5-A6", "Räume ⟨A1-A4→A1–A4⟩, A5-A6"),  # codes
        ("", "1\u202f000 dogs", "1⟨ →\u202f⟩000 Hunde"),  # of the source
        ("", "1\u00a0234\u00a0567 dogs", "1.234⟨ →\u00a0⟩567 Hunde"),
        ("", "1,234,567.50 dogs", "1⟨ →\u00a0⟩234⟨ →\u00a0⟩567,50 chiens"),  # other separators
        ("", "in 2020 300 dogs, 1,000 cats", "en 2020 300 chiens, 1⟨ →\u00a0⟩000"),  # two numbers
        ("", "1,500 dogs", "1 000 chiens"),  # another number
        ("", "10,000-20,000 dogs", "10⟨ →\u00a0⟩000-20⟨ →\u00a0⟩000 chiens"),
        ("", "dogs", "1 000 chiens"),  # no number
    ],
    "no-break spaces": [
        ("de", "10\u00a0km, 5 m", "10⟨ →\u00a0⟩km, 5 m"),  # unit
        ("de", "10\u202fkm", "10⟨ →\u202f⟩km"),  # narrow
        ("de", "1.5\u00a0km", "1,5⟨ →\u00a0⟩km"),  # decimals
        ("de", "5\u00a0% 3\u00a0€", "5⟨ →\u00a0⟩% 3⟨ →\u00a0⟩€"),  # percent and currency
        ("de", "10\u00a0km", "12 km"),  # other number
        ("de", "page\u00a05", "Seite⟨ →\u00a0⟩5"),  # before a number
        ("fr", "No\u00a01: why?", "No⟨ →\u00a0⟩1⟨ →\u202f⟩: pourquoi⟨ →\u202f⟩? Oui⟨ →\u202f⟩!"),  # French marks
        ("fr-CA", "\u00a0", "«⟨ →\u00a0⟩oui⟨ →\u00a0⟩»"),  # guillemets
        ("fr", "\u00a0", "oui :) ?x"),  # smiley
        ("de", "\u00a0", "ja ?"),  # German marks
    ],
    "quotation marks": [
        ("de-AT", '"a" and "b"', '„a“ und ⟨"b"→„b“⟩'),
        ("de", '"a" and "b"', '⟨"a"→„a“⟩ und ⟨("b")→(„b“)⟩'),
        ("de", '"a."', '"a.'),
        ("de", '"Hallo"', '⟨sagte:"Hallo"→sagte:„Hallo“⟩'),
        ("de", 'Enter ""', 'Geben Sie "" ein'),
        ("de", 'alt="x"', 'alt="x"'),
        ("de", '"a": "b"', '"a": "b"'),
        ("de", '5" by 7"', '5" mal 7"'),
        ("de-CH", '"a"', '"a"'),
        ("de", '"a", "b"', '⟨„a",→„a“,⟩ „b“'),
        ("fr", '"a" and "b"', '⟨"a"→«a»⟩ et « b »'),
        ("fr", '"a" and "b"', '⟨"a"→«a»⟩ et ⟨"b"→«b»⟩'),
        ("de", '"a" and 5"', '„a“ und 5"'),
        ("de", '"a" and open("x y")', '„a“ und open("x y")'),
    ],
    "numbers of items": [
        ("de", "Invoice No. 117", "Rechnung ⟨#→Nr. ⟩117"),
        ("fr", "Invoice No. 117", "Facture ⟨#→n° ⟩117"),
        ("fr", "Bug #117", "Bogue #117"),
        ("en", "Facture n° 117", "Invoice #117"),
    ],
    "signs of numbers": [
        ("de", "# cats", "⟨#-→# ⟩Katzen"),
        ("de", "the #-key", "die #-Taste"),
        ("de", "C# developers", "C#-Entwickler"),
        ("de", "on the #th.", "am ⟨#th.→#.⟩"),
        ("fr", "the #st.", "le ⟨#st→#e⟩."),
        ("es", "the #nd", "el #nd"),
    ],
    "guillemets": [
        ("fr", 'Open "%s"', "Ouvrir ⟨«%s→« %s⟩ »"),
        ("fr-CA", 'Open "a", "b"', "Ouvrir « ⟨a», «b»→a », « b »⟩"),
        ("fr", "Open «x»", "Ouvrir «x»"),
        ("fr", "Open «x» “y”", "Ouvrir « x » ⟨«y»→« y »⟩"),
        ("de-CH", 'Open "a"', "Öffne «a»"),
        ("fr", 'Open "a"', "Ouvrir « a »"),
        ("fr", "« Back", "« Retour"),
    ],
    "marks at the end": [
        ("en", "Hallo, Tom!", "Hello, ⟨Tom.→Tom!⟩"),
        ("en", "Das ist {a}!", "It is ⟨{a}→{a}!⟩"),
        ("fr-CA", "Stop?!", "⟨Arrête.→Arrête ?!⟩"),
        ("fr", "What?! Who?", "Quoi ⟨? !→?!⟩ Qui ?"),
        ("en", "Total (TVA)", "Total ⟨( VAT)→(VAT)⟩"),
        ("en", "Total ( TVA)", "Total ( VAT)"),
        ("de", "to [your dog].", "zu ⟨[ Ihrem→[Ihrem⟩ Hund]."),
        ("fr", "Stop!!!", "Arrête ⟨!!→!!!⟩"),
        ("en", "„Ich komme“, sagte er, „bald.“", '"I ⟨come"→come,"⟩ he said, "soon."'),
        ("fr", '"Yes," he said.', '⟨"Oui"→"Oui",⟩ il a dit.'),
        ("de", '"Go!" Then he left.', "„Geh!“ Dann ging er."),
        ("de", '"The Times" is old.', "„The Times“ ist alt."),
        ("fr", "Red; blue &amp; old.", "⟨Rouge;→Rouge ;⟩ bleu &amp; vieux."),
        ("de", "“a” and ‘b’", "„a“ und ⟨„b”→„b“⟩"),
        ("de", "Open the `a` file.", "Öffnen Sie die Datei ⟨`a`-Datei→`a`⟩."),
        ("en", "kaufe Brot ;", "buy ⟨bread.→bread;⟩"),
        ("fr", "He is late; wait", "Il est en ⟨retard, attendez→retard ; attendez⟩"),
        ("en", "Er kommt; warte, bitte", "He comes, wait"),
        ("de", "She said: \"I like 'a b'.\"", "Sie sagte: ⟨„Ich mag „a b“.→„Ich mag 'a b'.“⟩"),
        ("de", "Hi Tom,", "⟨Hallo, Tom→Hallo Tom,⟩"),
        ("fr", "You need this:", "Il faut ⟨ceci.→ceci :⟩"),
        ("de", "Go!", "Gehst du?"),
        ("en", "Assieds-toi !", "Sit ⟨down.→down!⟩"),
        ("en", "Er rief: „Hilfe!“", 'He called, ⟨"Help."→"Help!"⟩'),
        ("en", "Warum „ja“?", "Why ⟨“yes”.→“yes”?⟩"),
        ("de", "Sit down.", "Setz dich!"),
        ("de", "Why?", "Warum…"),
        ("de", "Hello :)", "Hallo :)"),
        ("de", "It is good—no doubt.", "Es ist gut ⟨-kein→– kein⟩ Zweifel."),
        ("de", "It is - in short - good.", "Es ist ⟨–kurz –gut.→– kurz – gut.⟩"),
        ("de", "Use -v or pre-war - or not", "Nutze -v - oder -x"),
        ("de", "Use -help - or not", "Nutze -help oder nicht"),
        ("en", "Vor- und Nachname", "first -name"),
        ("fr", "It is.", "⟨C'est ;→C'est.⟩"),
        ("de", "(It is [home].", "(Das ist Heimat."),
        ("de", "(He said “go”)", "(Er sagte „los"),  # two marks are open
        ("de", "Do you know x.org/?a=1?", "Kennst du ⟨x.org/?a=1→x.org/?a=1?⟩"),
        # What looks like a lost mark and is none
        ("de", "“Tom” saw a 5 inch TV.", 'Tom sah ein 5" TV.'),
        ("de", 'I saw "Who is it?"', "Ich habe „Wer ist es?“ gesehen."),
        ("fr", 'He asked me "Why?"', "Il m'a demandé « Pourquoi ? »."),
        ("de", "Why (see below)?", "Warum? (siehe unten)"),
        ("zh", "Really?", "真的吗？"),
        ("ar", "Where?", "أين؟"),
        ("hi", "Go!", "जाओ।"),
        ("pl", 'Tom said "yes".', "„Tak” – powiedział Tom."),
        ("de", "The 27 inch monitor (new)", 'Der neue 27"-Monitor'),
        ("de", '"Why?"', "‚Warum?‘"),
        ("de", "Great!", "Toll! 😀"),
        ("de", "Choose!", "Wählen Sie:"),
        ("de", "Go!", ""),
        ("de", 'Do you know "Titanic"?', "Kennst du ⟨„Titanic“→„Titanic“?⟩"),
        ("de", "The inline # text", "Der ⟨Inline-→Inline-Text #⟩ Text⟨ #- Text→⟩"),
        ("de", "A 'b'", "Ein ⟨„ Haus “→„Haus“⟩ und ⟨„Hut “.→„Hut“.⟩"),
        ("en", "A — B", "A -- Bc"),
        ("de", "House- and", "Haus- Text"),
        ("de", "10x faster", "⟨10x-→10x⟩ schneller"),
        ("de", "Use '{a}'.", "Nutze ⟨„{a}“→'{a}'⟩ und ⟨' {a}'.→'{a}'.⟩"),
    ],
}
"""Languages, the source, and the translation, in which `⟨a→b⟩` is a change."""


@pytest.mark.parametrize(("kind", "languages", "source", "marked"), [(k, *row) for k in ROWS for row in ROWS[k]])
def test_translations_are_mended(kind: str, languages: str, source: str, marked: str) -> None:
    translation, expected = before_and_after(marked)
    assert MENDED[kind](source, translation, languages) == expected


@pytest.mark.parametrize(
    ("languages", "text", "expected"),
    [
        ("en de", "12/25/2024", "25.12.2024"),
        ("en fr", "3/25/2024 14:30", "25/03/2024 14:30"),
        ("de en", "03.04.2024", "2024-04-03"),
        ("de fr", "1.5.2024 - 31.12.2024", "01/05/2024 - 31/12/2024"),
        ("fr de", "25/12/2024", "25.12.2024"),
        *(
            ("en de", text, text)
            for text in ("03/04/2024", "03/04/2024 - 12/25/2024", "2024-12-25", "5/31", "12/25/2024 a")
        ),
        *(("de en", text, text) for text in ("10.12", "1.2.2024.5", "32.12.2024")),
        ("de nl", "31.12.2024", "31.12.2024"),
    ],
)
def test_dates_of_digits_alone_are_written_as_the_target_language_does(
    languages: str, text: str, expected: str
) -> None:
    source, target = languages.split()
    assert write_dates(text, (source, target)) == expected


def test_kept_ranges_and_other_amounts_stay() -> None:
    assert mend_numbers("take 1,234 for $2,500", "1,234 für $2,500", ("en", "de"), [(5, 10)]) == "1,234 für 2.500 $"
    assert mend_ranges("Open Mon-Fri", "Offen Mon-Fri", ("en", "de"), [(5, 12)]) == "Offen Mon-Fri"
    assert mend_dates("on Tuesday", "on Tuesday", ("en", "de"), [(0, 10)]) == "on Tuesday"
