import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.errors import DocumentError
from mt.text.documents import DocumentOptions, open_document
from mt.text.encoding import decode_text
from mt.text.markup import TranslatedSegment

SRT = "1\r\n00:00:01,000 --> 00:00:02,000\r\n%s\r\n"
SENTENCES = [
    ("cp1252", "fr", "Le garçon est déjà à l’hôtel, derrière l’église."),
    ("cp1252", "de", "Drücken Sie auf „Öffnen“."),
    ("cp1252", "es", "¿Dónde está el niño?"),
    ("cp1252", "pt", "Não há conexão com o usuário."),
    ("cp1252", "it", "La città è così bella perché è antica."),
    ("cp1252", "da", "Køb æbler på øen."),
    ("iso8859-15", "fr", "L'œuvre de ma sœur coûte 20 €."),
    ("cp1250", "pl", "Książka leży pod łóżkiem."),
    ("cp1250", "cs", "Žluťoučký kůň úpěl ďábelské ódy."),
    ("cp1250", "hu", "Őszintén örülök, hogy itt vagy, hűséges barátom."),
    ("cp1251", "ru", "Девочка слушает музыку."),
    ("cp1251", "uk", "Дівчина слухає музику, її брат їсть."),
    ("koi8-r", "ru", "Пользователь Иван вошёл в систему."),
    ("cp1253", "el", "Το κορίτσι ακούει μουσική."),
    ("cp932", "ja", "パスワードが間違っています。"),
    ("euc_jp", "ja", "後でもう一度お試しください。"),
    ("gb18030", "zh", "我们明天去学校，请稍后再试。"),
    ("big5", "zh-Hant", "我們明天去學校，請稍後再試。"),
    ("cp949", "ko", "비밀번호가 틀렸습니다."),
]


@pytest.mark.parametrize(("codec", "language", "text"), SENTENCES)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("name", "form"), [("a.txt", "%s\n"), ("a.srt", SRT), ("a.csv", "id;text\n1;%s\n")])
def test_short_texts_in_old_encodings(codec: str, language: str, text: str, known: bool, name: str, form: str) -> None:
    content = (form % text).encode(codec)
    options = DocumentOptions(source_language=language if known else "")
    document = open_document(name, content, options)
    assert any(text.rstrip(".?") in segment.text for segment in document.segments)
    assert document.render([TranslatedSegment(segment.text) for segment in document.segments]) == content


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("text", ["The dog.\r\n", "Straße\n", "Девочка.\n", "一个人在这里。\n狗。\n", "😀 dog"])
@pytest.mark.parametrize("name", ["a.txt", "a.strings", "a.tmx", "a.po"])
def test_wide_encodings_without_a_mark(codec: str, text: str, name: str) -> None:
    result, encoding = decode_text(name, text.encode(codec))
    assert (result, encoding.codec, encoding.mark) == (text, codec, b"")
    assert encoding.encode(text) == text.encode(codec)


PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=%s\\n"\n\nmsgid "'
SPLIT_PO = 'msgid ""\nmsgstr ""\n"Content-Type: text; "\n"charset=macintosh\\n"\n\nmsgid "'
CONTENT_TYPE = '<meta http-equiv="Content-Type" content="text/html; charset=%s"><p>'
DECLARED = [
    *(("KOI8-R", "Привет", "koi8-r"), ("macintosh", "ä", "mac-roman"), ("MacCyrillic", "ё", "mac-cyrillic")),
    *(("KOI8-T", "Привет", "koi8-t"), ("IBM850", "Mädchen", "cp850"), ("x-sjis", "こんにちは", "shift_jis")),
    *(("ISO-2022-JP", "犬", "iso2022_jp"), ("hp-roman8", "Käse", "hp-roman8"), ("JOHAB", "안녕하세요", "johab")),
    ('KOI8-"\r\n "R', "Привет", "koi8-r"),
]


@pytest.mark.parametrize(
    ("name", "head", "text", "codec"),
    [
        *(("a.po", PO % name, text, codec) for name, text, codec in DECLARED),
        ("a.po", SPLIT_PO, "Öl", "mac-roman"),
        ("a.xml", '<?xml version="1.0" encoding="ISO-8859-2"?><a>', "Książka", "iso8859-2"),
        ("a.html", CONTENT_TYPE % "Shift_JIS", "こんにちは", "cp932"),
        *(("a.html", f'<meta charset="{name}"><p>', "“It’s”", "cp1252") for name in ("iso-8859-1", "latin-1")),
        ("a.html", '<meta charset="gb18030"><p>', "犬が走る", "gb18030"),
        # what is declared is an encoding of text, or counts for nothing
        *(("a.html", f'<meta charset="{name}"><p>', "Straße", "utf-8") for name in ("utf-7", "rot13", "zlib", "idna")),
    ],
)
def test_declared_encodings(name: str, head: str, text: str, codec: str) -> None:
    content = (head + text + ('"\nmsgstr ""\n' if name == "a.po" else "")).encode(codec)
    document = open_document(name, content)
    assert [segment.text for segment in document.segments] == [text]
    assert name == "a.po" or document.render([TranslatedSegment(text)]) == content


@pytest.mark.parametrize(
    ("encoding", "text", "codec"),
    [
        *(("cp1251", "Где вокзал?", "cp1251"), ("Latin-1", "Käse", "latin-1"), ("Shift_JIS", "駅", "shift_jis")),
        *(("utf-16-be", "駅駅", "utf-16-be"), ("cp1252", "Straße ist UTF-8", "utf-8")),
        *(("", "Straße", mark) for mark in ("utf-8-sig", "utf-16", "utf-32")),
    ],
)
def test_the_encoding_may_be_named(encoding: str, text: str, codec: str) -> None:
    document = open_document("a.txt", text.encode(codec), DocumentOptions(encoding=encoding))
    assert [segment.text for segment in document.segments] == [text]
    assert document.render([TranslatedSegment(text + " 1")]) == (text + " 1").encode(codec)


@pytest.mark.parametrize(
    ("name", "content", "written"),
    [
        ("a.txt", "Käse", "\ufeffСыр"),
        ("a.csv", "Käse;1\nÖl;2", "\ufeffСыр;1\nСыр;2"),
        ("a.json", '"Käse"', '"Сыр"'),
        ("a.html", "<p>Käse", "<p>&#1057;&#1099;&#1088;"),
        ("a.po", 'msgid ""\nmsgstr "Content-Type: text/plain; "\n"charset=CP"\n"1252\\n"\n\nmsgid "Käse"\nmsgstr ""\n',
         'msgid ""\nmsgstr "Content-Type: text/plain; "\n"charset=UTF-8\\n"\n\nmsgid "Käse"\nmsgstr "Сыр"\n'),
    ],
)  # fmt: skip
def test_what_the_encoding_lacks_is_written_in_utf_8(name: str, content: str, written: str) -> None:
    document = open_document(name, content.encode("cp1252"))
    assert document.render([TranslatedSegment("Сыр") for _ in document.segments]).decode() == written


@pytest.mark.parametrize("line", ["next\x85line", "next\u2028line", "next\u2029line", "next\x1eline"])
def test_other_line_separators_end_no_line_of_po(line: str) -> None:
    content = f'# {line}\r\nmsgid "{line}"\nmsgstr ""\r\n\rmsgid "two"\rmsgstr "zwei"\r'
    document = open_document("a.po", content.encode())
    assert [segment.text for segment in document.segments] == [line]
    assert document.render([TranslatedSegment(line)]).decode() == content.replace('msgstr ""', f'msgstr "{line}"')


@given(st.binary(max_size=60), st.sampled_from(["", "de", "ru", "ja", "zh"]))
def test_any_content_is_read_exactly_or_refused(content: bytes, language: str) -> None:
    try:
        text, encoding = decode_text("a.txt", content, None, "", language)
    except DocumentError:
        return
    assert encoding.mark + text.encode(encoding.codec) == content


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.csv", "a.srt", "a.properties", "a.po", "a.strings", "a.yaml"])
@pytest.mark.parametrize(
    ("text", "damage"),
    [
        ("Die Tür ist grün, und die Mädchen schlafen. " * 20, "ä".encode("cp1252")),
        ("Die Tür ist grün, und die Mädchen schlafen. ", "ü".encode("cp437")),
        ("Το κορίτσι ακούει μουσική. ", b"\xff"),
        ("パスワードが間違っています。", "駅".encode("cp932")),
        ("我们明天去学校，请稍后再试。", b"\xe7\xab"),
        ("😀 ça va 😀 ", b"\xed\xa0\xbd "),
    ],
)
def test_damaged_utf_8_is_refused_with_the_place(name: str, text: str, damage: bytes) -> None:
    content = b"a = " + text.encode() + damage + text.encode()
    with pytest.raises(DocumentError, match=f"is not text in UTF-8 at byte {4 + len(text.encode())};"):
        open_document(name, content)
