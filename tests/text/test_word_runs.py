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
    """Return a .docx file with a body, and with other parts."""
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


def control(content: str, properties: str = '<w:alias w:val="Where"/>') -> str:
    return f"<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent>{content}</w:sdtContent></w:sdt>"


def mark(kind: str) -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'


def code(instruction: str) -> str:
    return f'{mark("begin")}<w:r><w:instrText xml:space="preserve"> {instruction} </w:instrText></w:r>'


def field(instruction: str, content: str) -> str:
    return f"{code(instruction)}{mark('separate')}{content}{mark('end')}"


def deleted(text: str) -> str:
    return inside("del", f"<w:r><w:delText>{text}</w:delText></w:r>")


ADDRESS = 'HYPERLINK "https://example.org"'
CHECK_BOX = '<w14:checkbox xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"/>'
PICTURE = "<w:r><w:drawing/></w:r>"
ROWS = [
    # smart tags, content controls, XML tags
    (
        run("I live in ") + inside("smartTag", inside("smartTag", run("the big city"), 'w:element="City"')) + run("."),
        ["I live in the big city."],
        "I LIVE IN [smartTag[smartTag THE BIG CITY]].",
    ),
    (inside("smartTag", run("The dog sleeps.")), ["The dog sleeps."], "[smartTag THE DOG SLEEPS.]"),
    (
        run("Der Hund ist im ") + control(run("Garten")) + run(" und schläft."),
        ["Der Hund ist im Garten und schläft."],
        "DER HUND IST IM [sdt[sdtPr[alias]][sdtContent GARTEN]] UND SCHLÄFT.",
    ),
    (
        inside("customXml", "<w:customXmlPr/>" + run("Le chien ") + inside("smartTag", run("dort"))) + run(" ici."),
        ["Le chien dort ici."],
        "[customXml[customXmlPr]LE CHIEN [smartTag DORT]] ICI.",
    ),
    (
        control("<w:r><w:t>☐</w:t></w:r>", CHECK_BOX) + run(" I agree."),
        ["I agree."],
        "[sdt[sdtPr[checkbox]][sdtContent ☐]] I AGREE.",
    ),
    (
        inside("hyperlink", control(run("this book")), 'r:id="rId9"') + run(" is new."),
        ["this book is new."],
        "[hyperlink[sdt[sdtPr[alias]][sdtContent THIS BOOK]]] IS NEW.",
    ),
    # tracked changes
    (run("He has ") + inside("ins", run("not ")) + run("eaten."), ["He has not eaten."], "HE HAS [ins NOT] EATEN."),
    (
        run("Собака спит ") + deleted("дома") + inside("ins", run("в саду")) + run("."),
        ["Собака спит в саду."],
        "СОБАКА СПИТ [del дома][ins В САДУ].",
    ),
    (
        run("A dog") + inside("ins", run(",")) + run(" a cat") + inside("ins", deleted("old") + run(" and a cow")),
        ["A dog, a cat and a cow"],
        "A DOG[ins ,] A CAT [ins[del old]AND A COW]",
    ),
    (
        run("We go ") + inside("moveTo", run("today ")) + run("home") + inside("moveFrom", run(" today")) + run("."),
        ["We go today home."],
        "WE GO [moveTo TODAY] HOME[moveFrom  today].",
    ),
    (
        run("See ") + inside("hyperlink", inside("ins", run("the new")) + run(" page"), 'r:id="rId9"'),
        ["See the new page"],
        "SEE [hyperlink[ins THE NEW] PAGE]",
    ),
    (run("Name:") + inside("ins", "<w:r><w:tab/></w:r>") + run("Ann"), ["Name:", "Ann"], "NAME:[ins[tab]]ANN"),
    # fields
    (
        run("Read ") + field(ADDRESS, run("the new book about dogs", LINE)) + run(" now."),
        ["Read the new book about dogs now."],
        f"READ (begin)( {ADDRESS} )(separate)THE NEW BOOK ABOUT DOGS(end) NOW.",
    ),
    (
        '<w:fldSimple w:instr=" HYPERLINK &quot;a&quot; ">' + run("Where is the station?") + "</w:fldSimple>",
        ["Where is the station?"],
        "[fldSimple WHERE IS THE STATION?]",
    ),
    (
        run("Figure ") + field("SEQ Figure", run("3")) + run(": A house"),
        ["Figure 3: A house"],
        "FIGURE (begin)( SEQ Figure )(separate)3(end): A HOUSE",
    ),
    (
        run("See ") + field("REF _Ref1 \\h", run("Table 2")) + run(" of ") + field("DATE", run("1 May 2025")),
        ["See Table 2 of 1 May 2025"],
        "SEE (begin)( REF _Ref1 \\h )(separate)Table 2(end) OF (begin)( DATE )(separate)1 May 2025(end)",
    ),
    (
        field("TOC", inside("hyperlink", run("The end ") + field("PAGEREF x", run("12")), 'w:anchor="x"')),
        ["The end 12"],
        "(begin)( TOC )(separate)[hyperlink THE END (begin)( PAGEREF x )(separate)12(end)](end)",
    ),
    (
        code("TOC") + mark("separate") + run("The first chapter"),
        ["The first chapter"],
        "(begin)( TOC )(separate)THE FIRST CHAPTER",
    ),
    (run("The last chapter") + mark("end"), ["The last chapter"], "THE LAST CHAPTER(end)"),
    (
        "".join(inside("ins", part) for part in (code(ADDRESS), mark("separate"), run("this page"), mark("end"))),
        ["this page"],
        f"[ins (begin)( {ADDRESS} )][ins (separate)][ins THIS PAGE][ins (end)]",
    ),
    (
        run("Dear ") + code("IF ") + field("MERGEFIELD sex", run("f")) + mark("separate") + run("madam") + mark("end"),
        ["Dear madam"],
        "DEAR (begin)( IF  )(begin)( MERGEFIELD sex )(separate)f(end)(separate)MADAM(end)",
    ),
    (
        run("A dog ")
        + "<w:r><w:fldChar w:fldCharType='begin'/><w:instrText>HYPER</w:instrText><w:instrText>LINK x</w:instrText>"
        + "<w:fldChar w:fldCharType='separate'/><w:t>sleeps</w:t><w:fldChar w:fldCharType='end'/></w:r>"
        + run(" here."),
        ["A dog sleeps here."],
        "A DOG (begin)(HYPER)(LINK x)(separate)SLEEPS(end) HERE.",
    ),
    (
        inside("ins", run("On page ") + code("PAGE")) + mark("separate") + run("7") + mark("end") + run(" it ends."),
        ["7 it ends."],
        "[ins On page (begin)( PAGE )](separate)7(end) IT ENDS.",
    ),
    # footnote marks, labels
    (
        run("The dog") + run("1", RAISED) + run(" sleeps.") + run("[a]", RAISED) + run(" A cat sleeps."),
        ["The dog sleeps. A cat sleeps."],
        "THE DOG1 SLEEPS.[a] A CAT SLEEPS.",
    ),
    (
        run("The dog") + run("1, ", RAISED) + run("b ", RAISED) + run("sleeps for 2") + run("nd", RAISED),
        ["The dog sleeps for 2nd"],
        "THE DOG1, b SLEEPS FOR 2ND",
    ),
    (
        run("The dog") + inside("hyperlink", run("*", RAISED), 'r:id="rId9"') + run(" drinks NaCl") + run("2", LOWERED),
        ["The dog drinks NaCl2"],
        "THE DOG[hyperlink *] DRINKS NACL2",
    ),
    (run("Name:", BOLD) + run("the old house"), ["Name: the old house"], "*NAME:*THE OLD HOUSE"),
    (
        inside("hyperlink", run("A dog:"), 'r:id="rId9"')
        + run("cat")
        + run("Word", BOLD)
        + run(",of ")
        + run("2", BOLD),
        ["A dog: cat Word, of 2"],
        "[hyperlink A DOG:]CAT *WORD*, OF *2*",
    ),
    (
        run("The dog") + run("1", '<w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr>') + run(" sleeps."),
        ["The dog sleeps."],
        "THE DOG1 SLEEPS.",
    ),
    (run("The dog") + run("1", RAISED) + run("and a cat"), ["The dog and a cat"], "THE DOG1AND A CAT"),
    # direction, special characters, readings, pictures
    (
        run("הכלב ") + inside("dir", inside("bdo", run("ישן"), 'w:val="rtl"'), 'w:val="rtl"') + run(" בגן."),
        ["הכלב ישן בגן."],
        "הכלב [dir[bdo ישן]] בגן!",
    ),
    (
        f"<w:r>{BOLD}<w:t>Write an e</w:t><w:noBreakHyphen/><w:t>mail</w:t></w:r>" + run(" to the teacher now."),
        ["Write an e‑mail to the teacher now."],
        "*WRITE AN E‑MAIL* TO THE TEACHER NOW.",
    ),
    ("<w:r><w:t>The sta</w:t><w:softHyphen/><w:t>tion</w:t></w:r>", ["The station"], "THE STATION"),
    (
        run("A ") + run("red", BOLD) + run("dish", BOLD) + run(" house here"),
        ["A reddish house here"],
        "A *REDDISH* HOUSE HERE",
    ),
    (
        "<w:r><w:ruby><w:rubyPr/><w:rt>" + run("けん") + "</w:rt><w:rubyBase>" + run("Kenta") + "</w:rubyBase>"
        "</w:ruby></w:r>" + run(" reads."),
        ["Kenta reads."],
        "KENTA READS.",
    ),
    (run("Name") + "<w:r><w:ptab/></w:r>" + run("Ann"), ["Name", "Ann"], "NAME[ptab]ANN"),
    (
        run("If ") + '<m:oMath xmlns:m="m"><m:r><m:t>x</m:t></m:r></m:oMath>' + run(" is big, go."),
        ["If \U000f0000 is big, go."],
        "IF [oMath[r[t x]]] IS BIG, GO.",
    ),
    (
        run("See ") + inside("hyperlink", PICTURE, 'r:id="rId9"') + run(" and ") + control(PICTURE) + run(" here."),
        ["See  and  here."],
        "SEE [hyperlink[drawing]] AND [sdt[sdtPr[alias]][sdtContent[drawing]]] HERE.",
    ),
]


def sketch(xml: str) -> str:
    """Return the text of a paragraph: elements in brackets, bold text between stars, marks and codes of fields."""
    (body,) = re.findall(r"<w:body><w:p>(.*)</w:p></w:body>", xml, re.DOTALL)
    body = re.sub(r"<w:r><w:rPr><w:b/></w:rPr>(.*?)</w:r>", r"*\1*", body)
    body = re.sub(r'<w:fldChar w:fldCharType="(\w+)"/>', r"(\1)", body)
    body = re.sub(r"<w:instrText[^>]*>([^<]*)</w:instrText>", r"(\1)", body)
    body = re.sub(r"<w:rPr>.*?</w:rPr>|</?w:(?:r|t|delText)(?: [^>]*)?>", "", body)
    body = re.sub(r"<\w+:(\w+)[^>]*/>", r"[\1]", body)
    body = re.sub(r"<\w+:(\w+)[^>]*>", r"[\1 ", body)
    return re.sub(r"</[^>]*>", "]", body)


@pytest.mark.parametrize(("paragraph", "sentences", "expected"), ROWS, ids=[row[2] for row in ROWS])
def test_text_within_other_elements_belongs_to_its_sentence(
    paragraph: str, sentences: list[str], expected: str
) -> None:
    document = open_document("a.docx", word_file(f"<w:p>{paragraph}</w:p>"))
    assert [segment.text for segment in document.segments] == sentences
    translations = []
    for segment in document.segments:
        words = [match.span() for match in re.finditer(r"\w+", segment.text)]
        changed = segment.text.upper() if segment.text.upper() != segment.text else segment.text.replace(".", "!")
        translations.append(TranslatedSegment(changed, tuple((word, word) for word in words)))
    rendered = members_of(document.render(translations))["word/document.xml"]
    assert re.sub(r"(\[\w+) (?=\[)", r"\1", sketch(rendered)) == expected
