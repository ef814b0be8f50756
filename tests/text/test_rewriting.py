"""Sources that are rewritten for the model: abbreviations, numbers and times."""

from collections.abc import Callable

import pytest

from mt.text.abbreviations import ends_with_abbreviation, expand_abbreviations
from mt.text.clock import read_times
from mt.text.normalise import NormalisedText
from mt.text.numbers import unify_numbers
from mt.text.places import read_acronyms
from tests.text.changes import before_and_after

Rewording = Callable[[NormalisedText, str], NormalisedText]


def of_pair(reword: Callable[[NormalisedText, tuple[str, str]], NormalisedText]) -> Rewording:
    """Return a function that has two languages in one string, such as `en de`."""

    def reworded(text: NormalisedText, languages: str) -> NormalisedText:
        source, target = languages.split()
        return reword(text, (source, target))

    return reworded


REWRITE: dict[str, Rewording] = {
    "abbreviations": expand_abbreviations,
    "numbers and times": of_pair(unify_numbers),
    "times of day in words": of_pair(read_times),
    "acronyms": of_pair(read_acronyms),
}
ROWS: dict[str, list[tuple[str, str]]] = {
    "abbreviations": [
        ("en", "⟨Approx.→Approximately⟩ 5 km, but Approx. is none"),
        ("en", "⟨w/o→without⟩ milk, ⟨w/→with⟩ milk, w/c, new/old W/m²"),
        ("en-GB", "⟨No. 5→#5⟩ is free; Room ⟨No. 7→#7⟩, ⟨no.→number⟩ 8 and ⟨no.→number⟩ 9."),
        ("en", "Pay invoice ⟨no.→number⟩ 4711 by Friday. He said no. 5 people came"),
        ("de", "Freunde ⟨e. V.→e.V.⟩ hilft, ⟨gez.→unterzeichnet von⟩ Müller"),
        ("en", "I said no. No. 2,000 people, No. 12 Germans."),
        ("en", "The fig. is ripe. See ⟨fig.→figure⟩ 3, fig.3"),
        ("en", "⟨Mar.→March⟩ 3, 5 ⟨Dec.→December.⟩ He, (3 ⟨Nov.),→November),⟩ 3 ⟨Mar→March⟩"),
        ("en", "dept.name, https://a.org/w/b?no.5 a@dept. org {dept.}"),
        ("en", "See ⟨Art.→Article⟩ 5(1)(a), ⟨Sec.→Section⟩ 4 and ⟨pp.→pages⟩ 5–9 ⟨(vol.→(volume⟩ 2)"),
        ("en", "So ⟨i.e. no.:→that is number:⟩ 5, p. X"),
        ("en", "⟨CAUTION:→WARNING:⟩ hot. Most Important: caution, CAUTION"),
        ("en", "24 ⟨hrs.→hours⟩ for 5 ⟨sq. m,→m²,⟩ 1 ⟨hr,→hour,⟩ 5 ⟨yr,→year,⟩ 3 ⟨in.→inches⟩ wide"),
        ("en", "Put 5 in. Then, 5 p. people, hrs, a p., Vol. X"),
        ("de", "⟨lt. Art.-Nr.→gemäß Artikelnummer⟩ 5 ⟨u.→und⟩ auf ⟨S.→Seite⟩ 12 im Buch"),
        ("de", "Bei ⟨Nr.→Nummer⟩ 3, ⟨Tel.→Telefon⟩ (030) 1"),
        ("de", "am 3. ⟨u.→und⟩ 4. ⟨d. M.,→dieses Monats,⟩ 10 ⟨Min.→Minuten⟩ lang"),
        ("de", "500 v. Chr. ⟨(S.→(Seite⟩ 5), ⟨vgl. S.→siehe Seite⟩ 6"),
        ("de", "Thomas S. 12 Jahre, u. ä., s. S., Nr. eins, v. K., Min. Wert, Bestell-Nr. 5"),
        ("fr", "⟨rdv p.→rendez-vous page⟩ 12, 50 € ⟨HT, Ex.→hors taxes, Exemple⟩ : ⟨al.→alinéa⟩ 3"),
        ("en", "I ⟨❤️→love⟩ dogs, my ❤️ and I ❤."),
        ("fr", "⟨J'❤→J'aime⟩ Paris, Mar 5"),
        ("en", "On ⟨Mar→March⟩ 5, at Mar Street"),
        ("fr", "Au ⟨XVIIIe→18e⟩ ou ⟨XIXème→19e⟩ siècle, au ⟨Ve→5e⟩ siècle, le ⟨Ve→5e⟩ livre, le Ve"),
        ("fr", "⟨p. ex.,→par exemple,⟩ un al. inconnu, HT, 5€HTML, p. de"),
        ("en", "⟨Fri, Dec→Friday, December⟩ 1, ⟨Tue→Tuesday⟩ and ⟨Thu→Thursday⟩ 9–5, ⟨Sat:→Saturday:⟩ closed, Sun: 10"),
        ("en", "The Sun is hot. Jan 5, He sat 5 hours, Wed in May, Sun, sea and sand, Dec and Oct"),
        ("de", "⟨Mo., Di.→Montag, Dienstag⟩ und ⟨Do.→Donnerstag⟩ 8–12, ⟨Sa.→Samstag⟩ geschlossen"),
        ("de", "am ⟨Fr,→Freitag,⟩ 5. Mai, v. 14 Tagen"),
        ("de", "So 5 Leute, Fr. Müller, das Do und das Mi, im SO 5, do 5, Mo Klein"),
        ("de", "am ⟨Mi. u. Do.→Mittwoch und Donnerstag⟩ frei, am ⟨Sa.→Samstag⟩ ja"),
        ("fr", "⟨mar.→mardi⟩ 5 mai et ven., ⟨sam.→samedi⟩ 9h, la mer. 5 h"),
        ("de", "⟨MwSt.→Mehrwertsteuer.⟩ Wir, ⟨inkl. MwSt.→einschließlich Mehrwertsteuer⟩ und ⟨ca.→etwa⟩ 5"),
        ("de", "⟨ca.→etwa⟩\u00a03 ⟨Mio.→Millionen⟩ €. Im 19. ⟨Jh., evtl.?→Jahrhundert, vielleicht?⟩"),
        ("de", "⟨i.d.R.→in der Regel⟩ und ⟨i. d. R.→in der Regel⟩ heißt er Jan. 2019"),
        ("fr", "⟨RDV→rendez-vous⟩ le 5 ⟨janv.→janvier⟩ 2024, ⟨c.-à-d.→c'est-à-dire⟩ demain"),
        ("en", "I Sat 3 exams, Sun: 5 facts, the Sun: closed, Sat. May I"),
        ("en", "A no.: yes, Dec 5 times. Is on ⟨avg.→average.⟩ We, ⟨i.e.→that is.⟩"),
        ("en", "⟨Mon→Monday⟩ 9 am to 5 pm, ⟨Wed→Wednesday⟩ 5:30, ⟨Sat.→Saturday⟩ June 5"),
        ("de", "Fr. 20.50. Fr. 20–30, Fr. 20 am Tag, Mi 11 kostet, Mi 11 am besten"),
        ("de", "Di und Fr. Blair, Mo, 5 J., So: 3"),
        ("de", "⟨Di→Dienstag⟩ 20.30 Uhr, ⟨Do→Donnerstag⟩ 5.6., am Di. Abend"),
        ("de", "10 ⟨Min.→Minuten.⟩ Wir, 5 ⟨Min.→Minuten.⟩ Der Zug, 5 ⟨Min.→Minuten⟩ Pause"),
        ("de", "⟨z. T.→teilweise.⟩ Es, ⟨lt.→gemäß⟩ Der Spiegel, Lt. Kirk"),
        ("de", "Roe v. Wade, 2020 v. 3 Jahren, Johann S. 25"),
        ("fr", "Selon Dupont et al. 2019, mon vol. 3 amis, un vol. 20 €, la SVP, dsl"),
        ("en", "2 ⟨tbsp.→tablespoons⟩ oil, 1 ⟨tsp→teaspoon⟩ salt"),
        ("de", "100 EL-Wandler, Modell 5 EL."),
        ("de", "1 ⟨TL→Teelöffel⟩ Salz und 2 ⟨EL→Esslöffel⟩ Öl"),
        ("fr", "2 ⟨c. à s.→cuillères à soupe⟩ de sel"),
        ("de", "Dauer: 2 ⟨Std.→Stunden⟩"),
        ("de", "Es dauert 2 ⟨Std.→Stunden.⟩"),
        ("en", "on ⟨Sun. or→Sunday or⟩ on ⟨Sat,→Saturday,⟩ on Sun Street, on Mon-Fri"),
        ("en", "on ⟨Wed at→Wednesday at⟩ noon, on ⟨Sat.→Saturday.⟩"),
        ("en", "⟨On Sat we→On Saturday we⟩ go, (on ⟨Sun)→Sunday)⟩ and on ⟨Mon→Monday⟩ nights"),
        ("en", "on Sun servers, On Sun loungers, on Wed couples, on Sun's dot, on Sun. lotion, on Sun 5, on Sun/Mon"),
        ("en", "free ⟨Wed as→Wednesday as⟩ well, open Mon to Fri"),
        ("de", "Ich komme ⟨Di oder Do→Dienstag oder Donnerstag⟩"),
        ("en", "⟨Mon, Wed→Monday, Wednesday⟩ and ⟨Fri,→Friday,⟩ 2-4 pm"),
        ("de", "⟨Sa.→Samstag⟩ und ⟨So.→Sonntag⟩ haben wir zu"),
        ("de", "Ludwig ⟨XIV.→XIV⟩ war, Heinrich ⟨VIII.,→VIII,⟩ unter Karl V. Er, ⟨zw.→zwischen⟩ 8 und 9"),
        ("en", "Max. 8 or ⟨no more than→not more than⟩ 5, no more than that, ⟨no later than→until⟩ 5 May"),
        ("en", "⟨Every other day→Every second day⟩, every other man"),
        (
            "de",
            "⟨z.Hd.→für⟩ Anna, ⟨kaum jemand→fast niemand⟩, ⟨tgl. 1 Tabl. zzgl.→täglich 1 Tablette und⟩ 5",
        ),
        ("fr", "Ouvert ⟨24h/24→jour et nuit⟩. ⟨Plus que→Il ne reste que⟩ 3, il en a plus que 3, ⟨nº→n°⟩ 5"),
        ("cs", "ca. 5"),
        ("en", "I ⟨dont→don't⟩ know, I said: ⟨\"Dont→\"Don't⟩ go\", ⟨DOESNT→DOESN'T⟩ and it ⟨isnt.→isn't.⟩"),
        ("en", "He ⟨cant→can't⟩ and ⟨wont→won't⟩ come, as is his wont, is wont to, the cant, `dont`, {isnt}, dont.txt"),
        ("en", "⟨im→I'm⟩ late, I know ⟨Im→I'm⟩ late and ⟨ive→I've⟩ lost, IM me, im Park, im. Jony Ive left"),
        ("en", "⟨its→it's⟩ the end and ⟨its→it's⟩ cold, its end, its hot path, its going rate, its a-b"),
        ("en", "⟨ill→I'll⟩ call, but ⟨ill→I'll⟩ wait, ill people, he is ill call me, ⟨id→I'd⟩ like tea"),
        ("en", "⟨lets→let's⟩ go, she lets go, ⟨Thats→That's⟩ fine"),
        ("en", "Lets you go, id not found, well, were, shell"),
        ("de", "Wie ⟨gehts→geht es⟩, hier ⟨gibts→gibt es⟩ und er ⟨habs→habe es⟩"),
        ("fr", "⟨Cest→C'est⟩ vrai, ⟨jai→j'ai⟩ faim, ⟨tas→t'as⟩ pas, un tas de, ⟨jsuis→je suis⟩ là, le jai va, Jai est"),
        ("fr", "Le ⟨lun.→lundi⟩ 15 ⟨janv.→janvier⟩ 2024, du ⟨mar.→mardi⟩ 3 mai, la mer. 5 h, Le sam. dernier"),
        ("en", "Order ⟨no.→number⟩ AB-12, invoice ⟨no.→number⟩ X7 is paid. I said no. A4 paper, yes or no. Ask"),
        ("en", "6 ft 2 ⟨in→inches⟩ tall, 6 ft 2 in the ground, a room of 10 ft 6 ⟨in.→inches.⟩"),
        ("fr", "le chien dont je parle, ⟨pk→pourquoi⟩ toi"),
        ("en", "⟨Pls→Please⟩ come, ⟨thx→thanks⟩ and I ⟨dunno,→don't know,⟩ I ⟨gotta→have to⟩ go, I've gotta go"),
        ("en", "what do ⟨u→you⟩ mean, how ⟨r u?→are you?⟩ The u-boat, the U.S. and vitamin U, a u in"),
    ],
    "numbers and times": [
        ("en de", "1⟨ →\u00a0⟩234⟨ →\u00a0⟩567 dogs, 5⟨ →\u00a0⟩300 €"),
        ("fr en", "25⟨ →\u00a0⟩000 habitants, 3⟨ →\u00a0⟩000 kg, 12⟨ →\u00a0⟩345 mots, 70⟨ →\u00a0⟩000 yens"),
        ("en de", "in 2020 300 dogs, 12 345 cats, x1 234,50, 0 800 000 000, 12 000 34"),
        (
            "fr en",
            "RCS Lyon B 123 456 789, numéro 12 345, 1⟨ →\u00a0⟩250,50, 128 ⟨Go→GB⟩, le Ve livre, XXe siècle",
        ),
        ("fr fr", "128 Go, le Ve livre"),
        ("fr en", "La ville compte 3⟨ →\u00a0⟩480 habitants"),
        ("de fr", "⟨80 Tausend→80.000⟩ Euro, ⟨2,5 Tausend→2.500⟩ Leute, Tausend Leute"),
        ("de en", "⟨15.30→15:30⟩ Uhr, ⟨7.05→7:05⟩ Uhr, 15.30, 15.99 Uhr"),
        ("de en", "von ⟨9.30→9:30⟩ bis ⟨16.00→16:00⟩ Uhr, ⟨3.15→3:15⟩ - ⟨4.15→4:15⟩ Uhr"),
        ("de en", "`15.30 Uhr` 030 123 456 789"),
        ("de en", "am 24.12.15 Uhr"),
        ("de en", "1.299,00⟨ Euro→ €⟩, 2,50⟨ Euro→ €⟩ und 1.299 Euro"),
        ("en de", "Open ⟨9 a.m.–5 p.m.→9:00–17:00⟩ or ⟨9am-5pm.→9:00-17:00.⟩"),
        ("en de-AT", "from ⟨2→14:00⟩ to ⟨4:30 pm, 11-2 PM, 12 a.m.→16:30, 11:00-14:00, 0:00⟩ tonight"),
        ("en fr", "Today, ⟨9 a.m.→9:00⟩"),
        ("en fr", "⟨(9 a.m.)→(9:00)⟩ At ⟨12 p.m.?→12:00?⟩ 'At ⟨5 p.m.'→17:00.'⟩"),
        ("en fr", "`5 pm`, I am 5 amps"),
        ("en zh", "5 pm"),
        ("fr de", "à ⟨14h30,→14:30,⟩ de ⟨9 h→9:00⟩ à ⟨18 h 30,→18:30,⟩ 14h3, 2 h 305"),
        ("fr de", "de ⟨9h→9:00⟩ à ⟨12h→12:00⟩ et de ⟨14 h→14:00⟩ à ⟨18 h,→18:00,⟩ de 2 h à 3 h"),
        ("de en", "⟨8.00–12.00→8:00–12:00⟩ und ⟨14.00–18.00→14:00–18:00⟩ Uhr, 8.00–12.00"),
        ("de en", "Am ⟨3.10.→3. Oktober⟩ um ⟨8.30→8:30⟩ Uhr, vom ⟨03.05.–05.05.→3. Mai bis 5. Mai⟩ zu"),
        ("de en", "⟨3.10.2024,→3. Oktober 2024,⟩ in 3.1. und 3.2. am ⟨24.12.→24. Dezember⟩"),
        ("de en", "bis ⟨14.06.→14. Juni⟩ zu, Montag, ⟨5. 8.→5. August⟩ da, ab ⟨1. 1. 2024.→1. Januar 2024.⟩"),
        ("de en", "§ 5 ⟨Abs. 2→(2)⟩ BGB, Art. 3 ⟨Absatz 1a→(1a)⟩, im Abs. 2"),
        ("de en", "Version 1. 2. 3 am 3. 13. da, 1. 2. 3. 2024, um ⟨14 h→14:00⟩, um 14 h 30, ab 3 h"),
        ("de en", "⟨1 h 5 min→1 Stunde und 5 Minuten⟩, ⟨2h01min→2 Stunden und 1 Minute⟩, 2 h/min"),
        ("en fr", "⟨2h 15m→2 hours and 15 minutes⟩, 2h 15 men"),
        ("en de", "⟨3h 12m 5s→3 hours, 12 minutes and 5 seconds⟩, 12m 5s"),
        ("fr de", "à 11 h au lieu de 10 h"),
        ("fr de", "entre 8 h et 10 h par jour"),
        ("fr de", "limité à 10 ⟨h/semaine→h par semaine⟩"),
        ("fr de", "La durée passe à 8 h."),
        ("fr de", "De ⟨9 h→9:00⟩ à ⟨12 h→12:00⟩"),
        ("de en", "5. 3. 2024"),
        ("de en", "am Dienstag ⟨5.3.→5. März⟩ um 18 Uhr"),
        ("fr de", "à 2⟨h→ heures⟩ de Paris, à 9⟨h→ heures⟩ de vol, à 8⟨h→ heures⟩ par jour, à 3h"),
        ("fr de", "à ⟨8 h→8:00⟩ et à ⟨18 h→18:00⟩ devant, Après ⟨17 h→17:00⟩, à partir de ⟨9 h→9:00⟩, dure 8 h"),
        ("en de", "⟨$.99→$0.99⟩ or ⟨$.5→$0.5⟩, .22, $.NET, $.5.6, 20% ⟨off→discount⟩"),
        ("fr en", "110 ⟨ch→hp⟩ à 4⟨ →\u00a0⟩000 ⟨tr/min→rpm⟩, un ch"),
        ("fr en", "2,5⟨ M€→ millions d'euros⟩, 3⟨Md€→ milliards d'euros⟩, 750⟨ k→\u00a0000 ⟩€"),
        ("fr fr", "14h30"),
        ("en en", "⟨$1.2M→$1.2 million⟩, 2.4GHz, 9 a.m."),
        ("fr de", "À 15h 30⟨ →\u00a0⟩000 € volés."),
        (
            "fr en",
            "dure 2 ⟨h 30 min→heures et 30 minutes⟩; dure 2⟨h05→ heures et 5 minutes⟩, avant ⟨9h→9:00⟩, en 24 h 12",
        ),
        ("fr en", "Il est ⟨8h00→8:00⟩"),
        ("en de", "May 3 until ⟨5 p.m.,→17:00,⟩ Room 3 to ⟨5 p.m.→17:00.⟩"),
        ("en de", "12/3 until ⟨5 pm,→17:00,⟩ 24/7 pm, 1-2-3 pm, -5 pm"),
        ("en de", "10 AM/FM, 12 a.m./p.m., pages 5 and 6 am I"),
        ("en de", "from 7:30 to ⟨7:15 pm→19:15⟩"),
        ("en zh", "⟨$3.5m, €2bn→$3.5 million, €2 billion⟩ or ⟨£1.25B→£1.25 billion⟩"),
        ("en de", "⟨$400k→$400,000⟩ in 2019, ⟨$80k–$1.5K,→$80,000–$1,500,⟩ 4k, $4kg, $4 k"),
        ("en de", "⟨5:30 PM→17:30⟩ EST, ⟨10 a.m.→10:00⟩ PT / ⟨1pm→13:00⟩ ET, 2:00 GMT+1"),
        ("fr de", "⟨9h-18h, 8 h→9:00-18:00, 8:00⟩ – ⟨9 h 30,→9:30,⟩ 2 h-3 h par jour"),
        ("fr en", "LE TRAIN DE 9:00 EST ANNULÉ, À 9:00 ET 14:00"),
        ("en de", "⟨{price}/month→{price} per month⟩, {a}/b"),
        ("en de", "⟨$5/month,→$5 per month,⟩ `$5/month`, 5 ⟨m/day,→m per day,⟩ ⟨3/day→3 per day⟩, km/h, and/or"),
        ("fr de", "5 ⟨€/mois→€ par mois⟩"),
        (
            "en de",
            "⟨2.4GHz→2.4 GHz⟩ and ⟨3.5mm,→3.5 mm,⟩ v2.4b, 5GHz, 4.5K, f/2.8, ⟨$9/hr→$9 per hour⟩",
        ),
        ("en de", "every ⟨4-6 h, in 24 h.→4-6 hours, in 24 hours.⟩ Lasts 6 h, ⟨March 01,→March 1,⟩ 01 March"),
        ("en de", "on ⟨12/25/2024→December 25, 2024⟩, ⟨31/12/1999→December 31, 1999⟩, 03/04/2025, 13/13/2024, 9/11"),
        ("en de", "⟨Max.→Not more than⟩ 8 in 24 s, (max. 5), take ⟨max.→not more than⟩ 2"),
        (
            "en de",
            "⟨4.5m→4.5 million⟩ viewers, ⟨2.5m→2.5 m⟩ walls, Unit 2.1m, Figure 1.2m",
        ),
        ("de en", "vom 1. bis ⟨3.5.2024→3. Mai 2024⟩, 3.5.–4.6.2024, Version 1.2.2024, am ⟨01. März→1. März⟩"),
        ("de en", "Kapitel 1.2.2023, ⟨von 3.10. bis 5.10.2020→von 3. Oktober bis 5. Oktober 2020⟩"),
        (
            "de en",
            "⟨1'250.–→1'250⟩ oder ⟨49,– €→49 €⟩, ⟨Fr. 20.–→CHF 20⟩; ⟨Alle 6 h→Alle 6 Stunden⟩, ⟨20 Uhr→20:00 Uhr⟩",
        ),
        ("fr en", "le ⟨5/3/1980, 14/06,→5 mars 1980, 14 juin,⟩ 14/20, 3/05, 13.01, articles 27.01"),
        ("fr en", "⟨3,7Mo→3,7 MB⟩, 10 ⟨Go/mois→GB par mois⟩, toutes les 6⟨ h→ heures⟩, lundi ⟨9h30→9:30⟩, ⟨20h→20:00⟩"),
        ("en de", "a $5 m rope, $5mm, ⟨US$5m→US$5 million⟩, `$5m`"),
    ],
    "acronyms": [
        ("fr en", "⟨L'OMS→La WHO⟩ et les pays de ⟨l'OTAN→la NATO⟩ ou ⟨d'ADN→de DNA⟩, l'OMSA, OMS-x"),
        ("en fr", "The ⟨IMF→FMI⟩ and the UN"),
        ("en fr", "WHO are you?"),
        ("en de", "the ⟨GDP→BIP⟩, the WHO"),
        ("fr en", "L'OMS À PARIS"),
        ("fr es", "L'OMS est là"),
    ],
    "times of day in words": [
        ("de en", "um ⟨halb sechs→5:30 Uhr⟩ und ⟨Viertel nach sieben→7:15 Uhr⟩, ⟨halb eins→12:30 Uhr⟩"),
        (
            "de en",
            "⟨fünf vor halb drei→2:25 Uhr⟩, ⟨zehn nach halb zwei Uhr→1:40 Uhr⟩, ⟨Viertel vor eins→12:45 Uhr⟩",
        ),
        ("de en", "⟨dreiviertel acht→7:45 Uhr⟩, ⟨drei viertel acht→7:45 Uhr⟩, ⟨acht Uhr dreißig→8:30 Uhr⟩"),
        (
            "de en",
            "⟨8 Uhr 30→8:30 Uhr⟩, ⟨8 Uhr 5→8:05 Uhr⟩, 8 Uhr 30 Leute, fünf nach zehn Versuchen, deshalb sechs",
        ),
        ("en de", "at ⟨half past seven→7:30⟩, at ⟨quarter to one→12:45⟩, ⟨a quarter past 9→9:15⟩"),
        ("en de", "at ⟨ten to eight→7:50⟩ and ⟨five minutes past two→2:05⟩. Give ten to eight, five to ten days"),
        (
            "en de",
            "the vote was five to four, won by ten to nine; it was ⟨ten to nine→8:50⟩, at ⟨five to one→12:55⟩ was it",
        ),
        ("en de", "at ⟨seven thirty→7:30⟩, at half past two people, at ⟨noon→12:00⟩, before ⟨12 noon→12:00⟩, noon sun"),
        ("en de", "at ⟨eight-thirty→8:30⟩, ⟨five past midnight→0:05⟩, ⟨ten past noon→12:10⟩"),
        ("en fr", "⟨12 noon→noon⟩, at ⟨12 noon→noon⟩"),
        ("fr en", "à ⟨dix-neuf heures trente→19:30⟩, à ⟨vingt et une heures dix→21:10⟩, à ⟨vingt heures dix→20:10⟩"),
        ("en fr", "at noon, at ⟨half past six o'clock→6:30⟩"),
        ("fr en", "à ⟨cinq heures et demie→5:30⟩, à ⟨huit heures moins le quart→7:45⟩, est ⟨six heures dix→6:10⟩"),
        ("fr en", "à ⟨midi et demi→12:30⟩, est ⟨minuit moins le quart→23:45⟩, vers ⟨8 heures 05→8:05⟩"),
        ("fr en", "dure deux heures et demie, à trois heures et demie de Paris, à cinq heures"),
        ("it en", "halb sechs, half past six"),
    ],
}
"""Languages and a source, in which `⟨a→b⟩` is a change."""


@pytest.mark.parametrize(("kind", "languages", "marked"), [(kind, *row) for kind, rows in ROWS.items() for row in rows])
def test_sources_are_rewritten(kind: str, languages: str, marked: str) -> None:
    source, expected = before_and_after(marked)
    assert REWRITE[kind](NormalisedText(source), languages).text == expected


def test_terms_stay_and_abbreviations_end_sentences() -> None:
    expanded = expand_abbreviations(NormalisedText("ca. 5 € MwSt. ca. 6"), "de", [(8, 13)])
    assert expanded.text == "etwa 5 € MwSt. etwa 6"
    assert expanded.original_range(15, 19) == (14, 17)
    assert unify_numbers(NormalisedText("15.30 Uhr 16.30 Uhr"), ("de", "en"), [(0, 9)]).text == "15.30 Uhr 16:30 Uhr"
    unified = unify_numbers(NormalisedText("At 5 p.m. we go"), ("en", "de"))
    assert (unified.original_range(3, 8), unified.normalised_range(10, 12)) == ((3, 9), (9, 11))
    assert read_times(NormalisedText("um halb acht, um halb neun"), ("de", "en"), [(3, 7)]).text.endswith("8:30 Uhr")
    ends = [ends_with_abbreviation("5 Mio. ", follows, "de") for follows in ("3 ", "extra", "Euro")]
    assert ends == [True, True, False]
