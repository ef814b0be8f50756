"""Paragraphs of Word: text within other elements belongs to its sentence, and its form stays around the same words."""

import re
from collections.abc import Mapping

import pytest

from mt.text.documents import open_document
from mt.text.markup import TranslatedSegment
from tests.text.documents import archive, members_of

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
BOLD, LINE = "<w:rPr><w:b/></w:rPr>", '<w:rPr><w:u w:val="single"/></w:rPr>'
RAISED, LOWERED = (f'<w:rPr><w:vertAlign w:val="{name}script"/></w:rPr>' for name in ("super", "sub"))
CHANGE = 'w:id="1" w:author="A" w:date="2025-01-01T00:00:00Z"'


def word_file(body: str, parts: Mapping[str, str] | None = None) -> bytes:
    root = f'<w:document xmlns:w="{WORD}" xmlns:r="{OFFICE}"><w:body>{body}</w:body></w:document>'
    package = "http://schemas.openxmlformats.org/package/2006"
    types = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    return archive(
        {
            "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType='
            '"application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
            f'ContentType="application/xml"/><Override PartName="/word/document.xml" ContentType="{types}"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
            f'Type="{OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>',
            "word/document.xml": root,
            **(parts or {}),
        }
    )


def run(text: str, form: str = "") -> str:
    return f'<w:r>{form}<w:t xml:space="preserve">{text}</w:t></w:r>'


def inside(name: str, content: str, attributes: str = CHANGE) -> str:
    return f"<w:{name} {attributes}>{content}</w:{name}>"


def mark(kind: str) -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'


def code(instruction: str) -> str:
    return f'{mark("begin")}<w:r><w:instrText xml:space="preserve"> {instruction} </w:instrText></w:r>'


def field(instruction: str, content: str) -> str:
    return f"{code(instruction)}{mark('separate')}{content}{mark('end')}"


ATTRIBUTES = {"hyperlink": 'r:id="rId9"', "fldSimple": 'w:instr=" HYPERLINK &quot;a&quot; "'}
MARKS = {"begin": "{", "separate": "|", "end": "}"}
FORMS = {"~": BOLD, "^": RAISED, "_": LOWERED}
CONTROL = '<w:sdt><w:sdtPr><w:alias w:val="Where"/></w:sdtPr><w:sdtContent>', "</w:sdtContent></w:sdt>"
CHECK_BOX = '<w14:checkbox xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"/>'
CHECKED = CONTROL[0].replace('<w:alias w:val="Where"/>', CHECK_BOX) + run("☐") + CONTROL[1]
PARTS = re.compile(r"\{[^][{|}]*|\[\w+[] ]?|[]|}~^_]|[^][{|}~^_]+")


def paragraph(sketch: str) -> str:
    """Return the XML of a sketch: `[ins text]` is an element, `[tab]` an empty one in a run, `{CODE|text}` a field,
    `~text~` bold, `^text^` raised and `_text_` lowered. A text that begins with `<` is XML.
    """
    if sketch.startswith("<"):
        return sketch
    xml, form, names = "", "", list[str]()
    for part in PARTS.findall(sketch):
        name = part.strip("[] ")
        if part[0] == "{":
            xml += code(part[1:])
        elif part in "|}":
            xml += mark("separate" if part == "|" else "end")
        elif part in FORMS:
            form = "" if form else FORMS[part]
        elif part == "]":
            name = names.pop()
            xml += CONTROL[1] if name == "sdt" else f"</w:{name}>"
        elif part[0] == "[" and part[-1] == "]":
            xml += f"<w:r><w:{name}/></w:r>"
        elif part[0] == "[":
            names.append(name)
            xml += CONTROL[0] if name == "sdt" else f"<w:{name} {ATTRIBUTES.get(name, CHANGE)}>"
        else:
            xml += f"<w:r><w:delText>{part}</w:delText></w:r>" if "del" in names else run(part, form)
    return xml


ROWS = [
    # smart tags, content controls, XML tags
    ("I live in [smartTag[smartTag the big city]].", "I live in the big city.",
     "I LIVE IN [smartTag[smartTag THE BIG CITY]]."),
    ("[smartTag The dog sleeps.]", "The dog sleeps.", "[smartTag THE DOG SLEEPS.]"),
    ("Der Hund ist im [sdt Garten] und schläft.", "Der Hund ist im Garten und schläft.",
     "DER HUND IST IM [sdt GARTEN] UND SCHLÄFT."),
    (inside("customXml", "<w:customXmlPr/>" + run("Le chien ") + inside("smartTag", run("dort"))) + run(" ici."),
     "Le chien dort ici.", "[customXml[customXmlPr]LE CHIEN [smartTag DORT]] ICI."),
    (run("I agree ") + CHECKED + run(" to it."), "I agree ☐ to it.", "I AGREE [sdt ☐] TO IT."),
    (CHECKED + run("I agree."), "I agree.", "[sdt ☐]I AGREE."),
    ("[hyperlink[sdt this book]] is new.", "this book is new.", "[hyperlink[sdt THIS BOOK]] IS NEW."),
    # tracked changes
    ("He has [ins not ]eaten.", "He has not eaten.", "HE HAS [ins NOT] EATEN."),
    ("Собака спит [del дома][ins в саду].", "Собака спит в саду.", "СОБАКА СПИТ [del дома][ins В САДУ]."),
    ("A dog[ins ,] a cat[ins[del old] and a cow]", "A dog, a cat and a cow",
     "A DOG[ins ,] A CAT [ins[del old]AND A COW]"),
    ("We go [moveTo today ]home[moveFrom  today].", "We go today home.", "WE GO [moveTo TODAY] HOME[moveFrom  today]."),
    ("See [hyperlink[ins the new] page]", "See the new page", "SEE [hyperlink[ins THE NEW] PAGE]"),
    ("Name:[ins[tab]]Ann", "Name:|Ann", "NAME:[ins[tab]]ANN"),
    # fields
    (run("Read ") + field('HYPERLINK "https://example.org"', run("the new book about dogs", LINE)) + run(" now."),
     "Read the new book about dogs now.", 'READ {HYPERLINK "https://example.org"|THE NEW BOOK ABOUT DOGS} NOW.'),
    ("[fldSimple Where is the station?]", "Where is the station?", "[fldSimple WHERE IS THE STATION?]"),
    ("Figure {SEQ Figure|3}: A house", "Figure 3: A house", "FIGURE {SEQ Figure|3}: A HOUSE"),
    ("See {REF _Ref1 \\h|Table 2} of {DATE|1 May 2025}", "See Table 2 of 1 May 2025",
     "SEE {REF _Ref1 \\h|Table 2} OF {DATE|1 May 2025}"),
    ("{TOC|[hyperlink The end {PAGEREF x|12}]}", "The end 12", "{TOC|[hyperlink THE END {PAGEREF x|12}]}"),
    ("{TOC|The first chapter", "The first chapter", "{TOC|THE FIRST CHAPTER"),
    ("The last chapter}", "The last chapter", "THE LAST CHAPTER}"),
    ('[ins {HYPERLINK "a"][ins |][ins this page][ins }]', "this page",
     '[ins {HYPERLINK "a"][ins |][ins THIS PAGE][ins }]'),
    ("Dear {IF{MERGEFIELD sex|f}|madam}", "Dear madam", "DEAR {IF{MERGEFIELD sex|f}|MADAM}"),
    (run("A dog ") + "<w:r><w:fldChar w:fldCharType='begin'/><w:instrText>HYPER</w:instrText><w:instrText>LINK x"
     "</w:instrText><w:fldChar w:fldCharType='separate'/><w:t>sleeps</w:t><w:fldChar w:fldCharType='end'/></w:r>"
     + run(" here."), "A dog sleeps here.", "A DOG {HYPERLINK x|SLEEPS} HERE."),
    ("[ins On page {PAGE]|7} it ends.", "7 it ends.", "[ins On page {PAGE]|7} IT ENDS."),
    # footnote marks, labels
    (run("The dog") + run("1", RAISED) + run(" sleeps.") + run("[a]", RAISED) + run(" A cat sleeps."),
     "The dog sleeps. A cat sleeps.", "THE DOG1 SLEEPS.[a] A CAT SLEEPS."),
    ("The dog^1, ^^b ^sleeps for 2^nd^", "The dog sleeps for 2nd", "THE DOG1, b SLEEPS FOR 2ND"),
    ("The dog[hyperlink ^*^] drinks NaCl_2_", "The dog drinks NaCl2", "THE DOG[hyperlink *] DRINKS NACL2"),
    ("~Name:~the old house", "Name: the old house", "~NAME:~THE OLD HOUSE"),
    ("Der ~Vertrag~ beginnt am ~1. Mai 2024~.", "Der Vertrag beginnt am 1. Mai 2024.",
     "DER ~VERTRAG~ BEGINNT AM ~1. MAI 2024~."),
    ("to ~Mrs. Jones~.", "to Mrs. Jones.", "TO ~MRS. JONES~."),
    ("~Frau Müller~ trifft ~Herrn Klein~ am ~Freitag~.", "Frau Müller trifft Herrn Klein am Freitag.",
     "~FRAU MÜLLER~ TRIFFT ~HERRN KLEIN~ AM ~FREITAG~."),
    ("~Read the instructions before~ using ~it.~", "Read the instructions before using it.",
     "~READ THE INSTRUCTIONS BEFORE ~USING~ IT.~"),
    ("[hyperlink A dog:]cat~Word~,of ~2~", "A dog: cat Word, of 2", "[hyperlink A DOG:]CAT ~WORD~, OF ~2~"),
    (run("The dog") + run("1", '<w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr>') + run(" ran."),
     "The dog ran.", "THE DOG1 RAN."),
    ("The dog^1^and a cat", "The dog and a cat", "THE DOG1AND A CAT"),
    ("The value T_max_ and ~F~_g_, H_2_O go", "The value Tmax and Fg, H2O go", "THE VALUE Tmax AND ~F~g, H2O GO"),
    # direction, special characters, readings, pictures
    ("הכלב [dir[bdo ישן]] בגן.", "הכלב ישן בגן.", "הכלב [dir[bdo ישן]] בגן!"),
    (f"<w:r>{BOLD}<w:t>Write an e</w:t><w:noBreakHyphen/><w:t>mail</w:t></w:r>" + run(" to the teacher now."),
     "Write an e‑mail to the teacher now.", "~WRITE AN E‑MAIL~ TO THE TEACHER NOW."),
    ("<w:r><w:t>The sta</w:t><w:softHyphen/><w:t>tion</w:t></w:r>", "The station", "THE STATION"),
    ("A ~red~~dish~ house here", "A reddish house here", "A ~REDDISH~ HOUSE HERE"),
    ("<w:r><w:ruby><w:rubyPr/><w:rt>" + run("けん") + "</w:rt><w:rubyBase>" + run("Kenta")
     + "</w:rubyBase></w:ruby></w:r>" + run(" reads."), "Kenta reads.", "KENTA READS."),
    ("Name[ptab]Ann", "Name|Ann", "NAME[ptab]ANN"),
    (run("If ") + '<m:oMath xmlns:m="m"><m:r><m:t>x</m:t></m:r></m:oMath>' + run(" is big, go."),
     "If \U000f0000 is big, go.", "IF [oMath[r[t x]]] IS BIG, GO."),
    (f"<w:r>{BOLD}<w:t>A dog</w:t><w:drawing/><w:t> ran</w:t><w:drawing/></w:r>" + run(" to the old house."),
     "A dog ran to the old house.", "~A DOG~~[drawing]~ ~RAN~~[drawing]~ TO THE OLD HOUSE."),
    ("See [hyperlink[drawing]] and [sdt[drawing]] here.", "See  and  here.",
     "SEE [hyperlink[drawing]] AND [sdt[drawing]] HERE."),
]  # fmt: skip


def sketch(xml: str) -> str:
    """Return the sketch of a translated paragraph, without the ends of runs, and without raised and lowered."""
    (body,) = re.findall(r"<w:body><w:p>(.*)</w:p></w:body>", xml, re.DOTALL)
    body = re.sub(r"<w:sdtPr>.*?</w:sdtPr>|</?w:sdtContent>", "", body)
    body = re.sub(r"<w:r><w:rPr><w:b/></w:rPr>(.*?)</w:r>", r"~\1~", body)
    body = re.sub(r'<w:fldChar w:fldCharType="(\w+)"/>', lambda kind: MARKS[kind[1]], body)
    body = re.sub(r"<w:instrText[^>]*> ?([^<]*?) ?</w:instrText>", r"\1", body)
    body = re.sub(r"<w:rPr>.*?</w:rPr>|</?w:(?:r|t|delText)(?: [^>]*)?>", "", body)
    body = re.sub(r"<\w+:(\w+)[^>]*/>", r"[\1]", body)
    body = re.sub(r"<\w+:(\w+)[^>]*>", r"[\1 ", body)
    return re.sub(r"(\[\w+) (?=\[)", r"\1", re.sub(r"</[^>]*>", "]", body))


@pytest.mark.parametrize(("source", "texts", "expected"), ROWS, ids=[row[2] for row in ROWS])
def test_text_within_other_elements_belongs_to_its_sentence(source: str, texts: str, expected: str) -> None:
    document = open_document("a.docx", word_file(f"<w:p>{paragraph(source)}</w:p>"))
    assert [segment.text for segment in document.segments] == texts.split("|")
    translations = []
    for segment in document.segments:
        words = [match.span() for match in re.finditer(r"\w+", segment.text)]
        changed = segment.text.upper() if segment.text.upper() != segment.text else segment.text.replace(".", "!")
        translations.append(TranslatedSegment(changed, tuple((word, word) for word in words)))
    rendered = members_of(document.render(translations))["word/document.xml"]
    assert sketch(rendered) == expected
    controls = re.compile("<w:sdtPr>.*?</w:sdtPr><w:sdtContent>")
    assert controls.findall(rendered) == controls.findall(paragraph(source))


def test_the_prompt_of_a_content_control_is_a_text_of_its_own() -> None:
    prompt = "<w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent>%s</w:sdtContent></w:sdt>"
    body = f"<w:p>{run('We pay ')}{prompt % run('Click here.')}{run(' and go.')}</w:p>"
    document = open_document("a.docx", word_file(body))
    outer, inner = (segment.text for segment in document.segments)
    assert (re.sub("[\U000f0000-\U000f0fff]", "*", outer), inner) == ("We pay * and go.", "Click here.")
    new = [TranslatedSegment(outer.replace("We pay", "PAY").replace("and go", "GO")), TranslatedSegment("CLICK")]
    written = members_of(document.render(new))["word/document.xml"]
    assert re.sub("<[^<>]*>", "", written[written.index("<w:body>") :]) == "PAY CLICK GO."
    assert written.count("<w:sdtContent><w:r>") == 1
