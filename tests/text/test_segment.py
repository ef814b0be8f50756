import re
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
import sentencex
from hypothesis import example, given
from hypothesis import strategies as st

from mt.text import segment
from mt.text.clauses import divides_lines
from mt.text.segment import TextPart, join_parts, split_long_sentence, split_margins, split_text

ODD = [
    *("\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u200b", "\u200d", "👩‍👩‍👧", "é", "e\u0301"),
    *("。", "！", "،", ". ", "? ", "B", "1", '"'),
]
TEXTS = st.text() | st.lists(st.sampled_from(ODD) | st.text(max_size=3)).map("".join)
UNUSUAL_BREAK = re.compile("[\t\v\f\x1c-\x1e\x85\u2028\u2029]|\r(?!\n)|\n\\s*\n")  # ends every sentence
LANGUAGES = st.sampled_from(["en", "de", "pt-BR", "zh", "zh-Hant", "ja", "ar", "th", "xx", ""])


def joined(parts: list[TextPart]) -> str:
    return "".join(part.text for part in parts)


def sentences(text: str, language: str = "en") -> list[str]:
    return [part.text for part in split_text(text, language) if not part.kept]


@given(TEXTS, LANGUAGES)
@example("B\u00a0. A", "en")  # sentencex 1.0.32 panics on it
@example("\ud800. A\udfff", "en")
def test_pieces_join_to_the_text(text: str, language: str) -> None:
    parts = list(split_text(text, language))
    assert joined(parts) == joined(split_margins(text)) == text
    for part in parts:
        assert part.text
        assert part.kept or (part.text == part.text.strip() and not UNUSUAL_BREAK.search(part.text))
        assert part.kept == (not re.search(r"[^\W_]", part.text))
    assert not any(a.kept and b.kept for a, b in pairwise(parts))


@given(TEXTS, st.integers(1, 9))
def test_parts_of_a_long_sentence_join_to_it_and_fit(text: str, limit: int) -> None:
    parts = list(split_long_sentence(text, lambda part: len(part) <= limit, "en"))
    assert joined(parts) == text
    assert all(part.kept or len(part.text) <= limit for part in parts)


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("en", "⟨How are you, Mr. Smith?⟩  ⟨Fine!⟩"),
        ("en", "⟨name⟩\t⟨A dog.⟩ ⟨It runs.⟩\t⟨12⟩"),
        *(("en", text) for text in ("", " \n", "...", "!?", "🙂 👍", "— * —", "\u200b")),  # no letters and digits
        ("en", "⟨A line.⟩\n⟨B line⟩\r\n\r\n⟨C. D.⟩"),
        ("en", "⟨We saw that a small cat is in the\nAlps.⟩ ⟨It⟩"),
        ("en", "⟨> We saw that the small cat is in\n> garden.⟩\n⟨> It sleeps.⟩"),
        ("de", "⟨Das neue Auto steht noch in der\r\nStadt.⟩"),
        ("de", "⟨Licht aus⟩\n⟨Heizung ein⟩\n⟨Fernseher aus⟩"),
        ("cs", "⟨Dobrý den⟩\n⟨Jmenuji se Petr.⟩"),
        ("en", "⟨Title: How to write good documentation⟩\n⟨author: Jane Doe⟩"),
        ("en", "⟨Install the dependencies of the project⟩\n⟨pip install foo⟩"),
        ("de", "⟨Die Haustür-\nklingel ist neu.⟩"),
        ("fr", "⟨- Le chat,\n  le chien⟩\n⟨- Une vache⟩"),
        ("en", "⟨a) The dog\n   sleeps.⟩"),
        ("en", "⟨The meeting on Monday was moved\nto the hall.⟩"),
        ("en", "⟨The children who were in the\ngarden slept.⟩"),
        ("en", "⟨apples⟩\n⟨pears⟩\n⟨The dog⟩\n⟨sleeps⟩"),
        ("en", "⟨Log in⟩\n⟨Sign up⟩\n⟨The⟩\n⟨- dog⟩"),
        ("en", "⟨A dog.⟩\\n⟨A cat,⟩\\r\\n\\n⟨A cow!⟩\\n⟨moo⟩"),
        ("en", "⟨Animals:⟩\\n⟨* a dog⟩\\n⟨- a cat⟩\\n⟨* a cow⟩"),
        ("zh", "⟨你好。⟩\\n⟨世界⟩"),
        ("en", r"\n⟨Please wait⟩\r\n\n"),
        ("en", r"⟨\newline, C:\n⟩"),
        ("en", "⟨I came on Monday.⟩⟨Peter left.⟩"),
        ("en", r"⟨In C:\new and C:\Users\new, use \n or '\n' here⟩"),
        ("en", r"⟨Hello.⟩\n⟨1. Open it.⟩\n⟨- Close⟩"),
        ("en", r"⟨Dear {name},⟩\n⟨%s has left (now)⟩\n⟨Bye⟩"),
        ("en", r'⟨Use printf("Hello\n") to print.⟩'),
        ("en", "⟨Run cat file.txt | grep foo to find it.⟩"),
        ("en", "⟨The set {x | f(x) > 0} and {y | Y(y)} is new.⟩"),
        ("en", "⟨x = 3 · y + 2 · z⟩"),
        ("en", "⟨See java.util.List.⟩ ⟨It⟩"),
        ("en", "⟨I was in Berlin.⟩⟨Then we left.⟩"),
        ("de", "⟨Ich war zu Hause.⟩⟨Morgen gehen wir.⟩"),
        ("en", "⟨One.⟩\u00a0⟨Two.⟩\t⟨Three.⟩"),
        ("de", "⟨Er wohnt im 3. Stock, die 2. Auflage endet am 30. September, ja.⟩ ⟨Es waren 15.⟩ ⟨Dann ging er.⟩"),
        ("de", "⟨Er kam am 5. Aug. an.⟩ ⟨Es waren 15.⟩ ⟨Augen sehen.⟩ ⟨Es ist ca.\n3 Meter.⟩ ⟨Im Aug.⟩\n⟨3 Tage⟩"),
        ("de", "⟨Das ist z.B. gut.⟩ ⟨Dr. Müller kam am 3. Mai.⟩"),
        ("en", "⟨He said: ＂It runs.＂⟩ ⟨It runs.⟩"),
        ("de", "⟨‹Nein.›⟩ ⟨Er ging.⟩ ⟨›Oh.‹⟩ ⟨Er kam.⟩ ⟨‚Ja.‘⟩ ⟨Er ging.⟩ ⟨‚So?‘⟩"),
        ("zh", "⟨你好。⟩⟨世界！⟩⟨再见⟩"),
        ("zh-Hant", "⟨你好。⟩⟨世界！⟩⟨再見⟩"),
        ("fr", "⟨2 c. à s. d'huile⟩\n⟨Ajoutez 2 c. à café de sel.⟩ ⟨Mélangez.⟩"),
        ("de-AT", "⟨Dr. Müller kam am 3. Mai.⟩ ⟨Gut.⟩"),
        ("sr-Latn", "⟨Dobar dan.⟩ ⟨Kako ste?⟩"),
        ("xx", "⟨One.⟩ ⟨Two.⟩"),
        ("en", "⟨1. First.⟩ ⟨2. Second.⟩"),
        ("en", "⟨1.⟩"),
        ("en", "⟨II. Second.⟩ ⟨I and II.⟩ ⟨Third.⟩"),
        ("en", "⟨We use .NET.⟩ ⟨ASP.NET and System.IO.File are here.⟩"),
        ("fr", r"⟨Voir **Acme, Inc.**, puis **Table.\$Nom** ici.⟩ ⟨**Fin.**⟩ ⟨Il va.⟩"),
        ("en", "⟨The class db.Connection is old.⟩ ⟨He runs app.Main.⟩"),
        ("en", "⟨Call Data.DataSet.⟩ ⟨See a.com.⟩⟨Then go to Berlin.⟩⟨The end.⟩"),
        ("en", "⟨Use XmlDocument.Load() or **Text.Format**.⟩ ⟨It⟩"),
        ("en", "⟨I see YouTube.⟩⟨The film is *great.⟩⟨Really.*⟩"),
        ("en", "⟨_One._⟩ ⟨It.⟩ ⟨**Dr.** Tom.⟩ ⟨[b]Go![/b]⟩ ⟨See⟩"),
        ("en", "⟨It is old.⟩ ⟨'''Rome''' is old.⟩"),
        ("en", "⟨*sighs*⟩ ⟨I do.⟩ ⟨Use .* or *.* here.⟩"),
        ("en", "⟨Yes⟩ / ⟨No⟩"),
        ("en", "⟨Very good⟩ / ⟨Not so good⟩ / ⟨I don't know⟩"),
        ("en", "⟨He came / she left, and they all went home⟩"),
        ("en", "⟨A / b, Page 1 / 5⟩"),
        ("en", "⟨(laughs)⟩ ⟨I do.⟩ ⟨(A) It is.⟩ ⟨[Sic] no⟩"),
        ("en", "⟨so fun 😂😂⟩ ⟨see you 1️⃣⟩ ⟨Go in 2️⃣⟩ ⟨Wait⟩"),
        ("en", "⟨*all* Americans⟩"),
        ("en", "⟨**Note.**⟩ ⟨It is *so?*⟩ ⟨Yes.⟩ ⟨5. *⟩"),
        ("de", "⟨Sie ist auf der 101.⟩ ⟨Dort.⟩ ⟨Es sind seine 20.⟩ ⟨Gib!⟩"),
        ("fr", "⟨Je suis du F.B.I. de New York.⟩ ⟨Il part.⟩"),
        ("de", "⟨Bei seinem 4. Start und zum 100. Jubiläum kam er.⟩ ⟨Es sind nur 100.⟩ ⟨Dann ging er.⟩"),
        ("en", "⟨I love it 🎉⟩ ⟨See you 👋🏽⟩ ⟨Bye.⟩ ⟨😀 Yes 🙂⟩"),
        ("de", "⟨Das ist der 🐶 Hund, wir ❤️ Berlin⟩"),
        ("en", "⟨At 9:30 a.m. in the room.⟩ ⟨It is 5 p.m.⟩ ⟨Go.⟩"),
        ("en", "⟨It is 7 p.m. GMT (8 p.m. CET).⟩ ⟨At 5 p.m. Peter left.⟩"),
        ("en", "⟨NaN != NaN holds.⟩ ⟨Yes.⟩"),
        ("en", "⟨It is in Berlin.⟩⟨EU rules apply.⟩"),
        ("en", "⟨*** Wait!⟩ *** \n ... \n"),
        ("en", "⟨Unsubscribe⟩ | ⟨Privacy⟩ | ⟨© 2026 Red House⟩"),
        ("en", "| ⟨The dog⟩ | ⟨The cat⟩ |"),
        ("en", "│ ⟨the dog⟩ │ ⟨x⟩ │\n║ ⟨Red⟩  ║ ⟨blue⟩ ║"),
        ("en", "⟨First name⟩   ⟨Age⟩     ⟨( ) Yes⟩"),
        ("en", "⟨The   dog     sleeps  In it⟩"),
        ("en", "⟨The price is @Model.Price and @anna.⟩ ⟨It⟩"),
        ("en", "| ⟨the dog⟩ | ⟨x⟩ | ⟨1.20⟩ |\n⟨Go to Home⟩ → ⟨Save as⟩ → ⟨See all.⟩"),
        ("en", "⟨|x| + |y|, | x or y, x | y |, an input → output⟩"),
        ("de", "⟨Hallo 👋⟩ ⟨wie geht es dir?⟩\n⟨Danke 🙏⟩ ⟨Das ist nett⟩\n⟨Ich bin da :D⟩ ⟨wo bist du?⟩"),
        ("en", "⟨Thanks 🙏⟩ ⟨that is kind⟩\n⟨Thanks 🙏 for it⟩\n⟨we 👀 you⟩\n⟨My 🐶 can swim⟩\n⟨Love you ❤️⟩ ⟨see you⟩"),
        ("fr", "⟨Salut 👋⟩ ⟨comment ça va ?⟩\n⟨Dommage :/⟩ ⟨à demain⟩\n⟨J'adore 😍 cette chanson⟩"),
        ("de", "⟨~~Das ist falsch~~⟩ ⟨Das ist richtig.⟩\n⟨**Die neuen** Hunde⟩\n⟨*Neu* Das Haus⟩"),
        ("en", "⟨Run `./install.sh`.⟩ ⟨Use `a. B` and `!Ref X` in ../a.txt or .\\a.exe.⟩ ⟨/etc is it`s.⟩ ⟨I`m it.⟩"),
        ("en", "⟨See ![A dog](a.png) here.⟩\n⟨![A](b)⟩⟨![C](d)⟩ ⟨![E](f) is it⟩\n⟨![A](b)⟩ ⟨So⟩\n⟨No![1]⟩ ⟨It is.⟩"),
        ("en", "⟨I came\nbecause I was ill.⟩\n⟨if you like it,⟩\n⟨go⟩\n⟨Hi Anna,⟩\n⟨you can⟩\n⟨bread⟩\n⟨or tea⟩"),
        ("en", "⟨Open the door⟩\\\n⟨and go⟩\n⟨Use C:\\x⟩"),
        ("de", "⟨Ich komme,\nweil du da bist.⟩\n⟨Wenn du müde bist,⟩\n⟨geh ins Bett.⟩\n⟨Öffnungszeiten⟩\n⟨am Montag⟩"),
        ("en", "⟨WARNING:⟩ ⟨Do not open it.⟩\n⟨⚠️ VERY IMPORTANT NOTE:⟩ ⟨Read it.⟩ ⟨NOTE: no⟩"),
        ("fr", "⟨ATTENTION :⟩ ⟨la porte est ouverte.⟩"),
        ("en", "⟨USA: the best.⟩ ⟨WARNING: STOP!⟩ ⟨NATO says: no.⟩ ⟨At 12: go.⟩ ⟨NEWS:now⟩"),
        ("de", '⟨Datum⟩;⟨Roter Hut⟩;⟨7,50⟩;⟨rot⟩\n⟨01.02.⟩;;⟨-45,90⟩;⟨Miete "Mai⟩"'),
        ("de", '⟨name⟩,"⟨a b⟩",⟨price⟩\n⟨red⟩,,⟨new⟩'),
        ("de", '⟨Datum⟩;"⟨Roter Hut⟩";⟨7,50⟩'),
        ("en", '⟨Name⟩;"⟨The big; house⟩";x;true\n⟨He said,"Yes"⟩'),
        ("en", '"⟨id⟩","⟨the text⟩"\n"⟨1⟩","⟨He said ""no"", twice⟩";5,"⟨x⟩"\n⟨He said "yes","no".⟩'),
        ("en", "[list][*]⟨One⟩ [*]\n⟨Two⟩[/list] ⟨[i] [note]⟩\n! ⟨Name⟩ !! ⟨Age⟩ !! ⟨Now!! so⟩"),
        ("en", "⟨I know Tom,he knows me,we are friends⟩\n⟨hi,i am,so⟩\n⟨One,two⟩"),
        ("en", "⟨It is approx. 5 km.⟩ ⟨Go by bus incl. lunch.⟩"),
        ("en", "⟨Lunch is incl.⟩ ⟨Drinks are extra.⟩"),
        ("en", "⟨He is in the sales dept.⟩ ⟨She is his boss.⟩"),
        ("de", "⟨Kd.-Nr. 5, Mo.–Fr. frei.⟩"),
        ("en", "⟨It is late, i.e. we go.⟩ ⟨Put 5 in.⟩ ⟨The rest.⟩"),
        ("de", "⟨Äpfel u. Birnen für Hr. Maier.⟩ ⟨Dann los.⟩"),
        ("fr", "⟨C'est un jeu.⟩ ⟨5 joueurs participent.⟩"),
        ("fr", "⟨Voir vol. 3, p. 5.⟩"),
        ("fr", "⟨J'ai vu M. Dupont.⟩ ⟨C'est M. Petit.⟩ ⟨La taille est M.⟩ ⟨Le prix est bas.⟩"),
        ("de", "⟨Die Kd.-Nr. ist vom Do.–Sa. neu.⟩ ⟨Er ging.⟩⟨-Sie kam.⟩"),
        ("fr", "⟨Vitesse max. : 130 km/h ; conso. : 5,4 l⟩"),
        ("fr", "⟨Lun.-ven. : 8h30-17h, sam. 9h30, dim. fermé⟩\n⟨J'aime ce jeu.⟩ ⟨Il est bien.⟩"),
        *(
            ("en", f"⟨{text}⟩")
            for text in (
                *("1,234,567 people", "one, two,three", "a;b", "if (a) x;y;z", "Hi,he came,but left.", "Lat;Long;Name"),
                *("a=1;b;c", "NASA: The agency plans it.", "SPÜLE: weiß; neu"),
            )
        ),
        ("fr", "⟨Accueil⟩ · ⟨Nos services⟩ • ⟨Aide⟩"),
        ("en", "✔ ⟨Done⟩ ✘ ⟨Failed⟩"),
        ("en", "⟨Gender:⟩ [ ] ⟨male⟩ [x] ⟨female⟩ [ ] ⟨other⟩\n☐ ⟨milk⟩ ☑ ⟨bread⟩"),
        ("en", "⟨yes⟩ ( ) ⟨no⟩ ( )\n▲ ⟨up⟩ ▼ ⟨down⟩\n⟨int [ ] old = new int [ ] next⟩"),
        ("en", "⟨Colours:⟩ - ⟨red⟩ - ⟨dark green⟩\n* ⟨red⟩ * ⟨blue⟩\n⟨red⟩ • ⟨blue⟩ • ⟨green⟩\n① ⟨name⟩ ② ⟨address⟩"),
        ("en", "⟨I agree to it.⟩ [ ] ⟨yes⟩ [ ] ⟨no⟩\n⟨Sex⟩ ☐ ⟨male⟩ ☐ ⟨other⟩"),
        ("en", "⟨Use [x] for done, [ ] for open.⟩\n⟨Use ☐ for open and ☑ for done tasks⟩\n⟨From ○ to ● and back⟩"),
        ("en", "⟨Area: width * height * depth⟩\n⟨a * b * c⟩\n⟨The dog - a big one - sleeps⟩"),
        ("en", "⟨Follow ① to ③: ① open it, ② close it⟩\n⟨Call run ( ) and stop ( ) now⟩\n⟨Tick the box ☐ here⟩"),
        ("en", "⟨Home⟩ > ⟨Dogs⟩ > ⟨Small dogs⟩"),
        ("en", "⟨Click File > Open⟩"),
        ("en", "⟨thank you for the long letter, I am happy that you can\ncome to us.⟩\n⟨I am⟩\n⟨here⟩"),
        ("en", "⟨{n} apple⟩ | ⟨{n} apples⟩"),
        ("en", "⟨A | B⟩\n⟨red⟩ | ⟨dark blue⟩ | ⟨green⟩\n⟨home⟩ » ⟨shop⟩ · ⟨old books⟩\n⟨red⟩ \\| ⟨blue⟩\n⟨ls | sort⟩"),
        ("en", "⟨The set {x | x is a dog} of `a | b` is new.⟩"),
        ("en", "⟨Use {{ name | upper }} or a || b here.⟩"),
    ],
)  # fmt: skip
def test_sentences(language: str, marked: str) -> None:
    """The sentences are in angle brackets."""
    assert sentences(re.sub("[⟨⟩]", "", marked), language) == re.findall("⟨(.*?)⟩", marked, re.DOTALL)


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("one, two; three four", 11, ["one, two;", "three four"]),
        ("one two three four", 11, ["one two", "three four"]),
        ("1,000 and 2,000", 9, ["1,000", "and 2,000"]),  # a comma between digits ends no clause
        ("abcdefghij", 5, ["abcde", "fghij"]),
        ("我喜欢猫，他喜欢狗", 5, ["我喜欢猫，", "他喜欢狗"]),
        ("“我来看你们。”他走了", 9, ["“我来看你们。”", "他走了"]),  # not before a closing quotation mark
        ("abe\u0301e", 3, ["ab", "e\u0301e"]),  # not between a letter and its accent
        ("fits", 4, ["fits"]),
        ("the sun is low and dogs sleep", 18, ["the sun is low", "and dogs sleep"]),
        ("the sun is low, and dogs sleep", 16, ["the sun is low,", "and dogs sleep"]),
        ("dogs that who saw them sleep now", 22, ["dogs that", "who saw them sleep now"]),
        ("he saw them because who knows why", 22, ["he saw them", "because who knows why"]),
        ("he came on the 4. May and ate", 21, ["he came on the 4. May", "and ate"]),  # not after an ordinal number
        ("see box no. 5 and then eat it", 15, ["see box no. 5", "and then eat it"]),  # nor after an abbreviation
        ("the sandy rand is low", 13, ["the sandy", "rand is low"]),  # no conjunction inside a word
    ],
)
def test_long_sentences(text: str, limit: int, expected: list[str]) -> None:
    parts = list(split_long_sentence(text, lambda part: len(part) <= limit, "en"))
    assert [part.text for part in parts if not part.kept] == expected


def test_a_very_long_sentence_needs_few_measurements() -> None:
    counted = []
    for text in ("a" * 100_000, "ab " * 30_000, "," * 100 + "a b, " * 20_000, "\u0301" * 1000 + "a"):
        list(split_long_sentence(text, lambda part: counted.append(len(part)) or len(part) <= 500, "en"))  # type: ignore[func-returns-value]
    assert sum(counted) < 12 * 300_000  # halved until they fit


@pytest.mark.parametrize("split", [split_text, lambda text, _: segment.cut_text(text)], ids=["sentences", "one"])
def test_combining_marks_are_cut_into_whole_blocks(split: Callable[[str, str], Iterator[TextPart]]) -> None:
    """Cuts after single marks would make the time 2,000 times as long."""
    text = "\u0301" * 10_000
    assert [len(part.text) for part in split(text, "en")] == [2000] * 5


@pytest.mark.parametrize(
    ("source", "target", "text", "expected"),
    [
        ("en", "de", "One. Two.  Three.\n\nFour.", "<One.> <Two.>  <Three.>\n\n<Four.>"),
        ("en", "zh", "One. Two.  Three.\nFour.", "<One.><Two.>  <Three.>\n<Four.>"),
        ("en", "zh", " One. ... Two. ", " <One.> ... <Two.> "),
        ("en", "zh-Hant", "One. Two.", "<One.><Two.>"),
        ("zt", "pt-BR", "一。二。", "<一。> <二。>"),
        ("zh", "en", "一。二。\n三。", "<一。> <二。>\n<三。>"),
        ("zh", "ja", "一。二。", "<一。><二。>"),
        ("ja", "zh", "一。 二。", "<一。><二。>"),
        ("en", "de", "一。二。", "<一。><二。>"),
    ],
)
def test_white_space_between_sentences(source: str, target: str, text: str, expected: str) -> None:
    parts = list(split_text(text, source))
    assert join_parts(parts, [f"<{part.text}>" for part in parts if not part.kept], source, target) == expected


@given(TEXTS, LANGUAGES, LANGUAGES, st.data())
def test_the_ranges_are_those_of_the_translations(text: str, source: str, target: str, data: st.DataObject) -> None:
    parts = list(split_text(text, source))
    texts = [part.text for part in parts if not part.kept]
    translations = data.draw(st.lists(st.text(max_size=5), min_size=len(texts), max_size=len(texts)))
    assert [text[begin:end] for begin, end in segment.sentence_ranges(parts)] == texts
    translation = join_parts(parts, translations, source, target)
    ranges = segment.sentence_ranges(list(segment.lay_out(parts, translations, source, target)))
    assert [translation[begin:end] for begin, end in ranges] == translations
    assert ranges == sorted(ranges)


def test_a_text_on_which_sentencex_fails_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException): ...

    def panic(language: str, text: str) -> list[str]:
        raise PanicException

    monkeypatch.setattr(sentencex, "segment", panic)
    assert sentences(" One. Two. ") == ["One. Two."]


@pytest.mark.parametrize(
    ("before", "after", "divides"),
    [
        ("Zeile eins", "Zeile zwei", True),
        ("Hier ist nichts", "Telefon: 5", True),
        ("Wir sind jetzt da", "Öffnungszeiten", True),
        ("Das Haus mit", "Garten", False),
        ("Er hat", "Hunger", False),
        ("Unsere neuen", "Produkte", False),
        ("Der große", "Hund", False),
    ],
)
def test_lines_of_german(before: str, after: str, divides: bool) -> None:
    assert divides_lines(before, after, "de") is divides


@pytest.mark.parametrize(
    ("language", "before", "after", "divides"),
    [
        ("en", "bread", "milk", True),
        ("en", "2 dogs", "3 cats", True),
        ("en", "see you tomorrow", "anna", True),
        ("en", "Yours sincerely,", "Anna Smith", True),
        ("en", "Anna Smith", "head of sales", True),
        ("fr", "deux pommes", "un citron", True),
        ("de", "rot", "grün", True),
        ("en", "One", "two", False),
        ("en", "a house", "in the city", False),
        ("en", "when i was young", "i lived here", False),
        ("en", "the dog that", "i saw", False),
        ("en", "Main Street", "and", False),
        ("en", "We will meet you at the station,", "Anna and Tom", False),
        ("en", "a long line of prose that goes on in the next one of", "these lines", False),
        ("de", "ich weiß nicht", "wo sie ist", False),
        ("sv", "en lång", "rad", False),  # there are no words of this language
    ],
)
def test_lines_in_lower_case(language: str, before: str, after: str, divides: bool) -> None:
    assert divides_lines(before, after, language) is divides
