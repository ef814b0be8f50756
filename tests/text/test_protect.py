import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mt.text import protect
from mt.text.alignment import PieceAttention, piece_offsets
from mt.text.protect import SpanKind, find_spans, lost_spans
from mt.text.restoration import RemovedSpan, StrippedText, remove_spans, restore_spans

FAMILY, SCOTLAND, FLAG, SKIN = "👩‍👩‍👧", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "🇩🇪", "👍🏽"


def remove_opaque(sentence: str) -> StrippedText:
    return remove_spans(sentence, [span for span in find_spans(sentence) if span.kind is not SpanKind.NUMBER])


@pytest.mark.parametrize(
    "marked",
    [
        "A man rides a bike, and he is 'happy' (e.g. today).",
        "Hello.World is no address, and/or he/she",
        "See ⟨https://en.wikipedia.org/wiki/A_(b)⟩, please.",
        "(see ⟨http://a.b/c?d=e&f=g#h⟩)",
        "⟨www.example.org⟩. ⟨example.com/path⟩! [a](⟨xref:b/c-d-profiles⟩), [a](⟨page⟩) [a](two words), [a](⟨...⟩)",
        "在⟨https://x.com⟩看",
        "⟨48.8584° N⟩, ⟨2,2945° E⟩ of ⟨48.8⟩",
        "⟨52°31′12″N⟩ ⟨13° E⟩, ⟨15″⟩, BLZ ⟨100 500 00⟩, ⟨1⟩ ⟨234⟩ ⟨567⟩, ⟨12⟩ ⟨34⟩",
        "at ⟨12 Main Street⟩, ⟨221b Old Baker St.⟩ and ⟨5⟩ Streets",
        "⟨HTTPS://X.COM/A⟩ AT ⟨EXAMPLE.ORG⟩, ⟨WWW.A.B⟩",
        "Mail ⟨first.last+tag@mail.example.co.uk⟩, now",
        "⟨@anna_b⟩'s ⟨#tag⟩ and ⟨@me@mastodon.social⟩.",
        "⟨%s⟩ ⟨%1$s⟩ ⟨%.2f⟩ ⟨%(name)s⟩ ⟨%name%⟩ ⟨50%⟩ of ⟨5%%⟩",
        "Smith ⟨et al.⟩ and ⟨op. cit.⟩ of et",
        "⟨1 < 2⟩ and ⟨x > 3⟩, ⟨€5⟩/month, ⟨{price}⟩/month",
        # a placeholder is one word with the letters, signs and codes that touch it
        "⟨{total}€⟩, ⟨€{total}⟩, ⟨€$t(key)⟩, ⟨§{n}⟩ ⟨US${n}⟩; ⟨{n}⟩% ⟨{n}⟩ °C l'⟨{a}⟩ ⟨{a}⟩'s",
        "⟨user{id}@example.com⟩ ⟨a+{id}@b.org⟩ ⟨{first}.{last}@b.org⟩ ⟨v{version}⟩ ⟨v%s⟩ ⟨report_{date}.pdf⟩",
        "⟨/users/{id}/posts⟩ ⟨{host}.b.org⟩ ⟨{host}:{port}⟩ ⟨{w}x{h}⟩ Name:⟨{name}⟩. ⟨<{a}>⟩ ⟨{a}⟩, ⟨{b}⟩",
        "Press ⟨{ and }⟩ to open the ⟨{ menu }⟩.",
        "⟨{1}⟩Save⟨{2}⟩ ⟨{1>⟩the file⟨<1}⟩ ⟨%s⟩Click here⟨%s⟩ ⟨%1$s⟩more⟨%2$s⟩",
        "⟨file{n}.txt⟩ ⟨{n}x⟩ ⟨%snap%⟩ ⟨%name%s⟩ ⟨%ss⟩",
        "the regex ⟨^[a-z]+$⟩ or ⟨^\\d{3}$⟩ for ⟨^a⟩ costs ⟨$5⟩",
        "⟨$1⟩ of ⟨$2⟩, ⟨%@⟩ ⟨«First_Name»⟩ ⟨«kundenNr»⟩ ⟨«Vorname»⟩ the «dog»",
        "⟨*true*⟩ or ⟨*null*⟩ ⟨<<Name>>⟩ ⟨[FIRST_NAME]⟩ ⟨[YOUR NAME]⟩ [NOTE] ⟨<<a⟩ b ⟨c>>⟩ ⟨##NAME##⟩ ## A ##",
        "Dear ⟨[Name]⟩, on ⟨[Order Date]⟩ ⟨[Ihre Kundennummer]⟩ [Name](⟨#x⟩) [Music] [the name]",
        "⟨[Nom du client]⟩ [Price on request] [Telefon klingelt] [Email sent] ⟨[Product Image]⟩",
        "⟨20 °C⟩–⟨25 °C⟩, ⟨$10,000⟩-⟨$20,000⟩.",
        "⟨~ 20⟩ or ⟨±5⟩, ⟨5⟩ ± ⟨1⟩",
        "⟨¾⟩ cup, ⟨1½⟩ or ⟨2 ½⟩ hours, a½, ⟨½⅓¼⟩",
        "Press ⟨①②③⟩ or ⟨⑴ ⑵⟩; see ① and ②, a ⒈ b ㉑",
        "⟨{name}⟩ ⟨{0}⟩ ⟨{}⟩ ⟨{{x}}⟩ ⟨${x}⟩ ⟨$x⟩ ⟨{% if %}⟩",
        "⟨<0>⟩a⟨</0>⟩ ⟨<b>⟩c⟨</b>⟩ ⟨<br/>⟩ ⟨<⟩ ⟨>⟩ ⟨&amp;⟩ ⟨&#39;⟩",
        "Run ⟨`pip install x`⟩ or ⟨``a``⟩ now",
        "für ⟨120 €⟩ und ⟨5 €⟩, ⟨3⟩,- Mark",
        "⟨2.200.112⟩ ⟨1,5 %⟩ ⟨12:30⟩ ⟨-5⟩ ⟨10-12⟩ ⟨1/2⟩",
        "⟨DE123456789⟩ ⟨v1.2.3⟩ ⟨COVID-19⟩ ⟨mp3⟩ ⟨3D⟩",
        "⟨A-4711/b⟩ ⟨X-12/34-b⟩ ⟨42⟩-year and/or ⟨1⟩-day",
        "Run x ⟨-m \"fix it\"⟩ or y ⟨--t='a b'⟩, - \"no\"",
        "the ⟨ℝ⟩, ⟨x ∈ ℝⁿ⟩, ⟨ℓ⟩; 𝕣ℝ and ⟨347 U.S. 483⟩ (⟨1954⟩), ⟨93 S. Ct. 705⟩ or ⟨3⟩ P. Lee",
        "Tired ⟨:/⟩ so ⟨:-/⟩ funny ⟨xD⟩ oh ⟨^^⟩ oh ⟨:o⟩ the XD card is ⟨XD⟩",
        "I ⟨<3⟩ you ⟨:-)⟩ ⟨;)⟩ ⟨a:b⟩ ⟨x=(y)⟩ ⟨1:2⟩",
        "⟨550e8400-e29b-41d4-a716-446655440000⟩",
        "the 21st, the ⟨1990⟩s, ⟨20⟩h, ⟨10⟩AM, ⟨5⟩-year-old, ⟨80⟩er",  # an ordinal is translated as a word
        "第⟨3⟩章",
        "⟨/usr/local/bin⟩ ⟨src/main.py⟩ ⟨C:\\x\\y⟩ ⟨a.txt⟩",
        "e-mail U.S. Ph.D. iPhone R&D don't person(s) i.e. {an aside}",
        "⟨€5.99⟩, ⟨US$5⟩ and ⟨-£3⟩ or ⟨19,99 €⟩ at ⟨20 °C⟩",
        "⟨1e-9⟩ ⟨6.02E+23⟩ ⟨0xFF⟩ top-⟨10⟩",
        "(⟨+49 (0) 30 123⟩) or ⟨0171/2345678⟩.",
        "⟨Dict[str, int]⟩ ⟨[]⟩ ⟨[a-z]+⟩ ⟨O(n log n)⟩ ⟨web-01⟩ ⟨file:line⟩ ⟨X-Request-ID⟩",
        "Berliner:innen, an X-ray [see below], file(s), pre-war",
        "⟨<%= x %>⟩ ⟨<? echo ?>⟩ ⟨<%-⟩ b",
        "⟨{n, plural, one {# item} other {{n} items}}⟩ ⟨${a.b}⟩",
        "the dog⟨[1]⟩ sleeps.⟨[12]⟩ The cat⟨¹⟩ and the fish⟨†⟩ in km², ⟨a[0]⟩ ⟨x_y⟩[⟨1⟩]",
        "⟨[[name]]⟩ ⟨[X1X]⟩ ⟨⟦0⟧⟩ in t-⟨${x}⟩ ⟨a#{n}⟩ ⟨<name>⟩ ⟨&name;⟩ ⟨&eacute;⟩ x⟨<y⟩ and ⟨y>z⟩",
        "⟨mailto:a@b.org⟩ '⟨foo_bar⟩' ⟨foo_bar⟩-based ⟨__all__⟩",
        "⟨C++⟩, ⟨fooBar()⟩. ⟨--flag=x⟩ ⟨-v⟩ ⟨->⟩ ⟨\\n⟩ ⟨:id⟩ ⟨::a⟩ if ⟨x == y⟩",
        "⟨10km⟩ in ⟨4k⟩, ⟨1.1b⟩ and ⟨52:54:00:9d:0e:67⟩",  # units
        "⟨HTTP/2⟩ ⟨X.509⟩ ⟨1.1.x⟩, ⟨v.3.0⟩. end.Then",
        "⟨2+⟩ and ⟨3.0+⟩, ⟨~€400⟩, ⟨~5⟩ and ⟨4711#⟩ (⟨§19⟩)",
        "⟨USD 2,350.00⟩, ⟨5 EUR⟩, ⟨5⟩ EUROS",
        "A,⟨b;FooBar;Baz⟩; then foo;bar",
        "the ⟨'_-'⟩ or ⟨\"\\t\"⟩ or ⟨','⟩ ⟨\"\"⟩, 'hi.' ⟨_⟩",  # strings of symbols
        '⟨sleep(0.5)⟩, ⟨f(x="a b")⟩ dog(s) of ⟨List<T>⟩ ⟨host:80⟩',
        "if ⟨a < b⟩ and ⟨c > 5⟩, ⟨y = 2x⟩, I am, ⟨z = 2.5⟩.",
        "⟨&⟩Open or Save ⟨&⟩as, ⟨AT&T⟩ & R&D ⟨&amp;⟩ ⟨&name;⟩",
        '⟨=SUM(A1:A5)⟩ and ⟨=HYPERLINK("a","the dog")⟩',
        "⟨System.Text.Json⟩ ⟨n-1⟩ ⟨~user⟩ top-⟨10⟩",
        "⟨Mon, 06 Sep 2021 00:01:00 +0000⟩, ⟨MMM d, yyyy⟩ or ⟨HH:mm⟩",
        "⟨**⟩Note:⟨**⟩ the ⟨*⟩dog,⟨*⟩ or ⟨5⟩ * ⟨3⟩",
        "⟨~~a b~~⟩ ⟨~~⟩ c⟨~~~⟩ ⟨f***ing⟩ ⟨a*b⟩, ⟨2*x⟩ ⟨2⟩*⟨3⟩ un⟨**⟩real**, Jede*r",
        "**Save it, or args",  # emphasis without an end
        # emphasised signs
        r"(⟨*⟩⟨.txt⟩⟨*⟩), ⟨**⟩⟨.NET⟩ Core⟨**⟩, ⟨**⟩⟨\$Type⟩⟨**⟩ (⟨**⟩...⟨**⟩) ⟨*⟩⟨bin\x\\⟩⟨*⟩ ⟨**⟩„b“⟨**⟩",
        "Die E-Mail-Adresse, Just-In-Time und X-Window-System",
        "⟨ADO.NET⟩- und XML, ⟨a.md#x-⟩ und ⟨1⟩:Das, d'⟨OpenSSL⟩, qu’⟨OpenBSD⟩ ou L'⟨UTF-8⟩",
        "de ⟨2⟩ ⟨000 - 3 000⟩ chats, in git commits, at ⟨7⟩ ⟨0800 123 4567⟩",
        "a ⟨*File⟩, ⟨X-Total-Count⟩, a ⟨Content-Security-Policy⟩",
        "⟨If-Modified-Since⟩ and ⟨Access-Control-Allow-Origin⟩",
        "Ein Web-App-Konto und Content-Management-System im Azure-Active-Directory",
        'In ⟨grep "the dog" file.txt⟩ or cat "a dog" dogs',
        'Is ⟨let name = "the dog";⟩ here, ⟨:Help⟩ or ⟨:Smile:⟩ a:Word',
        "⟨-----⟩Original Message⟨-----⟩ ⟨=====⟩A b⟨=====⟩ x---y ⟨( )⟩ Yes",
        "the ⟨2-(acetyloxy)benzoic⟩ acid",
        "⟨\\begin{abstract}⟩ We ⟨†⟩ ⟨7⟩ May, Tom ⟨./.⟩ Mary",
        "⟨[gallery ids=\"1,2\" a=b]⟩ the dog [see a dog] ⟨[[Category:Dogs]]⟩",
        "A message ⟨--------⟩ and ⟨=====⟩ more ----x ---",
        "⟨F j, Y⟩ and ⟨g:i a⟩, ⟨Y-m-d⟩ or ⟨M. Y⟩, I am",
        "On ⟨6⟩ Sep ⟨2021⟩ Mayya had (⟨*.*⟩) and ⟨*.txt⟩ in the MM",
        "⟨H₂O⟩, ⟨10⁻³⟩ g, ⟨10⁶⟩, ⟨x²⟩ + ⟨y²⟩ in ⟨20⟩ m², where ⟨NAf≦NA2⟩ or NAf ⟨≦⟩ NAs",
        "⟨5' 11\"⟩ tall and ⟨19⟩",
        'a ⟨19"⟩ or "in ⟨1990⟩" or ⟨7"⟩ one',
        "Index ⟨........⟩ ⟨5⟩... and so on...",
        "⟨J.R.R.⟩ Tolkien of the U.S., the U.S.A. and the N.A.T.O. of",
        "MM. d'Ormesson et H. Martin, d. h. IMMER, a, d ja, Sexo: M y F",
        "⟨Am Markt 5⟩, ⟨12345⟩ Neustadt und ⟨An der Kirche 4⟩",
        "Wir wohnen ⟨Am Markt 5⟩, Am Bahnhof ⟨7⟩ treffen wir uns, am Markt ⟨5⟩, Am Montag ⟨5⟩",
        "Firma, ⟨Große Bleichen 12⟩, ⟨20354⟩ Hamburg, ⟨Neuer Weg 7a⟩, Die Straße ⟨5⟩, Artikel ⟨5⟩, ⟨12000⟩ Euro",
        "⟨Straße des 17. Juni 135⟩, Platz ⟨3⟩, die ⟨Lange Straße 3⟩ in Berlin, ein Weg ⟨3⟩",
        "⟨12 King Street⟩, ⟨Leeds LS1 2HL⟩",
        "In der ⟨Hauptstraße 12⟩ und ⟨Berliner Str. 5a⟩, ⟨Karl-Marx-Straße 7⟩. Die Straße ⟨5⟩, jede Sackgasse ⟨3.5⟩",
        "au ⟨12 bis, rue de la Paix⟩, au ⟨5 rue Victor Hugo⟩ à Paris; ⟨3⟩ rues, ⟨2⟩ rue d'en haut",
        "IL, ⟨62704⟩, to ⟨12⟩ SA ⟨62704⟩",
        "Run ⟨git commit⟩, ⟨npm install⟩ or ⟨pip install⟩ x; the git repository, Springfield, ⟨IL 62704⟩",
        "SELECT A SIZE FROM THE LIST. INSERT INTO THE PRINTER, DELETE FROM CART",
        "⟨%%⟩sdog, ⟨100⟩⟨%safe⟩, ⟨%d⟩ ⟨%%⟩ and ⟨%s⟩Here",
        "⟨$t(key)⟩ and ⟨$t(common.ok)⟩; let ⟨x = 5⟩ and then we see; audio/visual and text/number fields",
        "⟨SELECT a FROM b WHERE c = 5;⟩ or ⟨const x = 5;⟩ The SELECT committee, let him go; INSERT the coin",
        "⟨application/json⟩, ⟨text/html⟩ and images/videos, read/write, texts/songs",
        "Page ⟨2⟩ of ⟨3⟩ ⟨»⟩",
        "⟨«⟩ Back",
        "« Bonjour. Ça va ?",  # direct speech that ends in another sentence
        f"a⟨{FAMILY}⟩⟨{FLAG}⟩b ⟨{SKIN}⟩ ⟨{SCOTLAND}⟩ ⟨1️⃣⟩",
    ],
)  # fmt: skip
def test_spans(marked: str) -> None:
    """The spans are in angle brackets."""
    sentence = re.sub("[⟨⟩]", "", marked)
    assert [span.text for span in find_spans(sentence)] == re.findall("⟨(.*?)⟩", marked)
    assert all(sentence[span.begin : span.end] == span.text for span in find_spans(sentence))


MARKED = {
    "en": ["- |A man.", "1. |A man.", "## 2) |A title", "• |12 men", "- [ ] |Milk", "[x] |Milk", "|-5 degrees",
        "IV. |The end", "1.1.2 |The end", "|5.0 GHz", "§ 3a |The end", "b. |Go in", "|z. B. it",
        "Re: AW: |your order", "(a) |in case of", "(iii) |the date", "|(see) it", "② |Open it",
        "2024-05-12 10:30:00,5 ERROR |The file", "[10:30] INFO: |Started", "|10:30 is late",
        "2024-05-12 |The file", "10:30 |The file", "|10:30 PM is late", "https://a.org/b |The file", "P.S. |The file",
        "-|I don't know", "--|Yes!", "–|The dog", "|-Wall -I src", "|-Xmx5 is set",
        "│   ├── |The dog", "└─ |It", "12/03/24, 6:42 PM - |Anna: Hi", "Cc: |Tom", "|12/03/24, 6:42 is",
        "Reviewed-by: |Tom",
        "-h, --help=FILE  |Show it", "|-h is help", "|ERROR IN IT", ".. note:: |The dog",
        "@tom @a@b.org, #dog |Where is it?", "|@tom is here", "|Rent: a lot", "|Aw: so sweet!", "|re: it", "|1.",
        "|- "],
    "de": ["|3. Platz", "3) |Platz", "2.1 |Anfang", "|10.30 Uhr ist es.",
        "|10:30 Uhr ist es.", "|3.5 Millionen Euro", "|I. d. R.",
        "|WG: Zimmer frei"],
    "de-AT": ["|3. Platz"],
    "pt-BR": ["3. |Lugar"],
    "fr": ["TR : |Votre commande"],
}  # fmt: skip
"""For each language, sentences with `|` after the list marker."""


@pytest.mark.parametrize(("language", "marked"), [(name, text) for name, texts in MARKED.items() for text in texts])
def test_list_markers(language: str, marked: str) -> None:
    marker, _, text = marked.partition("|")
    assert protect.list_marker_length(marker + text, language) == len(marker)


@pytest.mark.parametrize(
    ("sentence", "text", "removed"),
    [
        ("A man https://x.y rides.", "A man rides.", [RemovedSpan(6, "https://x.y", True, True, False)]),
        ("A man (https://x.y) rides.", "A man rides.", [RemovedSpan(6, "(https://x.y)", True, True, False)]),
        ("{name}'s dog", "dog", [RemovedSpan(0, "{name}'s", True, True, False)]),
        ("See {a} {b}.", "See.", [RemovedSpan(3, "{a} {b}", True, False, False)]),
        ("fun😀, yes 👍", "fun, yes",
         [RemovedSpan(3, "😀", False, False, True), RemovedSpan(8, "👍", True, True, True)]),
        ("A ██░░ big ⠋ ⟶ dog", "A big dog", [RemovedSpan(2, "██░░", True, True, True),
         RemovedSpan(6, "⠋ ⟶", True, True, True)]),
        ("A <b>big</b> dog", "A big dog",
         [RemovedSpan(2, "<b>", True, False, True), RemovedSpan(5, "</b>", False, True, True)]),
    ],
)  # fmt: skip
def test_spans_are_removed(sentence: str, text: str, removed: list[RemovedSpan]) -> None:
    assert remove_opaque(sentence) == StrippedText(text, tuple(removed))


def attention(source: str, target: str, pairs: dict[int, int]) -> PieceAttention:
    """Return the attention of words; `pairs`: target word -> source word."""
    sides = [[text.index(word) for word in text.split()] for text in (source, target)]
    rows = [[float(pairs.get(t) == s) for s in range(len(sides[0]))] for t in range(len(sides[1]))]
    return PieceAttention(sides[0], sides[1], rows)


def in_proportion(source: str, target: str) -> PieceAttention:
    """Return the attention of words; each target word attends to the source word at the same relative place."""
    left, right = ([word.start() for word in re.finditer(r"\S+", text)] for text in (source, target))
    rows = [[float(t * len(left) // len(right) == s) for s in range(len(left))] for t in range(len(right))]
    return PieceAttention(left, right, rows)


MAN = ("A man rides now a bike.", "Jetzt fährt ein Mann Fahrrad.", {0: 3, 1: 2, 2: 0, 3: 1, 4: 5})


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("A man {x} rides now a bike.", "Jetzt fährt ein Mann {x} Fahrrad."),
        ("{x} A man rides now a bike.", "{x} Jetzt fährt ein Mann Fahrrad."),
        ("A man rides now a bike. {x}", "Jetzt fährt ein Mann Fahrrad. {x}"),
        ("A man rides now a bike {x}.", "Jetzt fährt ein Mann Fahrrad {x}."),
        ("A man rides now a😀 bike.", "Jetzt fährt ein Mann😀 Fahrrad."),
        ("A {x} man rides now a bike.", "Jetzt fährt ein {x} Mann Fahrrad."),
    ],
)
def test_a_span_is_put_back_between_the_translations_of_its_neighbours(sentence: str, expected: str) -> None:
    stripped = remove_opaque(sentence)
    assert stripped.text == MAN[0]
    assert restore_spans(stripped, find_spans(sentence), MAN[1], attention(*MAN)) == expected


@pytest.mark.parametrize(
    ("sentence", "translation", "pairs", "expected"),
    [
        ("now 30 girls", "Drei Mädchen jetzt", {0: 1, 1: 2, 2: 0}, "30 Mädchen jetzt"),
        ("now 1,500 dogs", "Jetzt 1500er Hunde", {0: 0, 1: 1, 2: 2}, "Jetzt 1,500er Hunde"),
        ("at 12:30 ,", "um (130)", {0: 0, 1: 1}, "um (12:30)"),
        ("12 men , 30 dogs", "30 Mann , 12 Hunde", {}, "30 Mann , 12 Hunde"),  # both are there
        ("12 men , 30 dogs", "Mann , Hunde", {0: 3, 2: 0}, "12 , 30"),  # in the order of the source
        ("12 men", "Männer", {0: 1}, "12 Männer"),
        ("at 0 °C.", "bei 0.C.", {0: 0, 1: 1}, "bei 0 °C."),
        ("now 2 DE12 here", "jetzt DE12 da", {0: 0, 1: 1, 2: 3}, "jetzt 2 DE12 da"),  # DE12 is no number
        ("at 2:15 there", "um halb drei da", {0: 0, 2: 1, 3: 2}, "um 2:15 da"),
        ("at 2:15 there", "um halb drei da", {0: 0, 1: 1, 3: 2}, "um 2:15 da"),
        ("costs 30 USD", "kostet 30 EUR", {0: 0, 1: 1, 2: 2}, "kostet 30 USD"),
        ("it has 1.234.567 men", "er hat 1.234 567 Mann", {0: 0, 1: 1, 2: 2, 3: 4}, "er hat 1.234.567 Mann"),
    ],
)
def test_a_number_replaces_its_word(sentence: str, translation: str, pairs: dict[int, int], expected: str) -> None:
    weights = attention(sentence, translation, pairs)
    assert restore_spans(StrippedText(sentence), find_spans(sentence), translation, weights) == expected


PARTS = ["https://x.y/z?q=1", "a@b.org", "@anna", "#tag", "{n}", "{n}", "%1$s", "`x y`", "<0>", FAMILY, FLAG]
PARTS += ["DE12", "v1.2"]
NUMBERS = ["2", "12", "12:30", "1,5 %", "2.200.112"]
WORDS = ["man", "Hund,", "(so)", "und.", "我", "é", "-"]
SENTENCES = st.lists(st.sampled_from([*PARTS, *NUMBERS, *WORDS]), min_size=1, max_size=8).map(" ".join)


@given(SENTENCES, SENTENCES | st.text(max_size=20), st.booleans())
@example("<0>", "<", False)
@example("12", "%", True)
@example("{n} 1,5 %", "", False)  # the two must not become 1,5 %{n}
@example("2 {n} 2", "{n}", False)  # a number must not be written into the placeholder
@example("2 {n} 2", "`x y`", False)  # nor into the code
def test_any_translation_gets_each_span_as_often(sentence: str, translation: str, copied: bool) -> None:
    spans = find_spans(sentence)
    removed = [s for s in spans if s.kind is SpanKind.EMOJI or (s.kind is not SpanKind.NUMBER and not copied)]
    stripped = remove_spans(sentence, removed)
    restored = restore_spans(stripped, spans, translation, in_proportion(stripped.text, translation))
    assert lost_spans(spans, restored) == []
    found = [[s.text for s in find_spans(text) if s.kind is not SpanKind.NUMBER] for text in (sentence, restored)]
    assert all(found[1].count(text) == found[0].count(text) for text in found[0])


@given(SENTENCES, SENTENCES | st.text(max_size=20), st.booleans(), st.integers(0, 99), st.integers(1, 99))
@example("<0> <0> <0> <0>", "", True, 0, 7)  # the last two must not count as the first two
@example("Hund, `x y`", "`", False, 0, 1)  # the backtick of the translation must not close before the code
@example("@anna #tag {n} {n} 🇩🇪 DE12 2 2", "", False, 26, 4)  # the "2 2" in "DE12 2" is not the kept one
def test_translations_have_kept_text(sentence: str, translation: str, copied: bool, begin: int, length: int) -> None:
    begin %= len(sentence)
    end = min(begin + length, len(sentence))
    spans = find_spans(sentence, [(begin, end)])
    stripped = remove_spans(sentence, [span for span in spans if span.kind is SpanKind.EMOJI or not copied])
    restored = restore_spans(stripped, spans, translation, in_proportion(stripped.text, translation))
    assert lost_spans(spans, restored) == []
    assert sentence[begin:end].strip() in restored


@pytest.mark.parametrize(
    ("sentence", "numbers", "others"),
    [
        ("1.200.300 3.1.102 192.168.0.1 1.5", ["1.200.300", "1.5"], ["3.1.102", "192.168.0.1"]),
        ("She is 5'4 tall, has 1'200 or 1'200'000 books", ["1'200", "1'200'000"], ["5'4"]),
        ("It accepts 60..69 or 1...5.", [], ["60..69", "1...5"]),
        ("It weighs 1.5e-3 or 6.02E23 grams, not 1.5.", ["1.5"], ["1.5e-3", "6.02E23"]),
    ],
)
def test_only_numbers_may_have_other_separators(sentence: str, numbers: list[str], others: list[str]) -> None:
    spans = find_spans(sentence)
    assert [span.text for span in spans if span.kind is SpanKind.NUMBER] == numbers
    assert [span.text for span in spans if span.kind is SpanKind.OPAQUE] == others


def test_spans_keep_the_order_of_the_source() -> None:
    """Attention in reverse order must not exchange arguments, and neither may a common place."""
    sentence = "a %s b %d c {x} d"
    stripped = remove_opaque(sentence)
    reverse = attention("a b c d", "d c b a", {0: 3, 1: 2, 2: 1, 3: 0})
    restored = restore_spans(stripped, find_spans(sentence), "d c b a", reverse)
    assert [span.text for span in find_spans(restored)] == ["%s", "%d", "{x}"]
    spans = find_spans(sentence)
    assert not protect.are_in_order(spans, "%d {x} %s") and protect.are_in_order(spans, "u %s %d {x}")


def test_kept_ranges_become_whole_words_and_include_spans() -> None:
    kept = find_spans("Acmes see 12 and foo@bar.org", [(0, 4), (8, 16), (20, 28)])
    assert [span.text for span in kept] == ["Acmes", "see 12 and", "foo@bar.org"]
    assert [span.kind for span in kept] == [SpanKind.KEPT, SpanKind.KEPT, SpanKind.OPAQUE]
    assert lost_spans(kept[:1], "Acmes und Acmes") == [] and lost_spans(kept[:1], "Acme") == [kept[0]]
    assert lost_spans(find_spans("+ and -", [(0, 1), (6, 7)]), "+-") == []


@given(st.text())
def test_parts_join_to_the_sentence(sentence: str) -> None:
    assert "".join(protect.split_at_long_spans(sentence)) == sentence
    address = "https://x.y/" + "a" * 100
    assert protect.split_at_long_spans(f"See {address} or https://x.y.") == ["See ", address, " or https://x.y."]


def test_pieces_begin_where_their_characters_do() -> None:
    pieces = ["▁A", "▁ma", "n", "<0xC3>", "<0xA9>", "▁b", "▁", "x"]  # A mané b x
    assert piece_offsets(pieces, "▁") == [0, 2, 4, 5, 6, 7, 9, 9]
