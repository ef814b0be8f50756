"""Realistic files with the texts of programs: .json, .yaml, .properties, .strings, .arb, .ftl and .po."""

import json
from collections.abc import Iterable
from typing import Any

import polib
import yaml

from tests.text.realistic.prose import FRENCH, GERMAN, OTHERS, Prose

PLURAL = "{count, plural, =0 {No messages} one {# new message} other {# new messages}}"
SELECT = "{gender, select, male {He is here} female {She is here} other {They are here}}"


def _tree(prose: Prose) -> dict[str, Any]:
    p = prose
    menu = {f"item_{n}": label for n, label in enumerate(p.labels(5))}
    return {
        "app": {"title": p.title(), "version": "1.2.3", "beta": False},
        "menu": menu,
        "help": [p.sentence(), p.plain()],
    }


def json_files(prose: Prose) -> Iterable[bytes]:
    p = prose
    tree = _tree(p)
    yield json.dumps(tree, indent=2).encode()
    yield json.dumps(tree, separators=(",", ":")).encode()
    yield json.dumps({**tree, "langs": [*GERMAN, *FRENCH, *OTHERS]}, indent=4, ensure_ascii=False).encode() + b"\n"
    yield json.dumps({**tree, "langs": [*GERMAN, *OTHERS]}, indent="\t").encode("utf-8-sig")
    yield json.dumps(
        {
            "greeting": "Hello, {{name}}!",
            "files_one": "{{count}} file",
            "files_other": "{{count}} files",
            "link": 'Read the <a href="/terms">terms</a> of use.',
            "fmt": "%s of %d done (%1$s)",
        },
        indent=2,
    ).encode()
    yield json.dumps(
        {
            "quote": 'She said "no" and left.',
            "path": "C:\\temp\\new",
            "lines": "First line.\nSecond line.\n",
            "tab": "a\tb",
            "slash": "and/or",
            "empty": "",
            "space": " ",
        },
        indent=2,
    ).encode()
    yield json.dumps(
        {"n": 1e10, "big": 12345678901234567890, "none": None, "nested": [[["Deep text"]], {"a": {"b": "Deeper text"}}]}
    ).encode()
    yield json.dumps([{"id": n, "name": p.label(), "text": p.paragraph()} for n in range(8)], indent=2).encode("utf-16")
    yield (
        json.dumps({"": "Empty key", "a.b": "Dotted key", 'k"q': "Quoted key", "dup": PLURAL}, indent=2)
        .replace("\n", "\r\n")
        .encode()
    )
    yield b'{\n  "unicode": "caf\\u00e9 on the \\ud83d\\ude00 street",\n  "escaped\\/slash": "yes\\/no",\n  "html": "\\u003cb\\u003eBold\\u003c/b\\u003e text"\n}\n'


def yaml_files(prose: Prose) -> Iterable[bytes]:
    p = prose
    tree = _tree(p)
    yield yaml.safe_dump(tree, sort_keys=False).encode()
    yield yaml.safe_dump({"en": {**tree, "langs": [*GERMAN, *OTHERS]}}, allow_unicode=True, width=40).encode()
    yield yaml.safe_dump(tree, default_flow_style=True).encode()
    yield yaml.safe_dump(tree, default_style='"').encode()
    yield yaml.safe_dump(tree, default_style="'").encode("utf-8-sig")
    yield f"""# Comments stay
en:
  title: {p.title()}   # a trailing comment
  hello: "Hello, %{{name}}!\\tTab"
  single: 'It''s here'
  count:
    one: "1 file"
    other: "%{{count}} files"
  yes_no: "yes"
  number: 12
  date: 2024-05-03
  empty: ""
  nothing: ~
  time: 12:30
""".encode()
    yield f"""text: |
  {p.plain()}
  {p.plain()}

    indented line
folded: >-
  {p.plain()}
  {p.plain()}

  A new paragraph.
keep: |+
  The last line.

end: The end
""".encode()
    yield f"""defaults: &defaults
  color: The color is red
  size: !!str 12
  tag: !custom Some tagged text
item:
  <<: *defaults
  name: {p.plain()}
  list:
  - {p.plain()}
  - [Flow item, "Quoted item", 3]
  - {{key: Flow value, other: true}}
  ? complex key
  : complex value
--- # the second document
title: {p.title()}
...
""".replace("  ? complex key\n  : complex value\n", "").encode()
    yield f"""openapi: 3.0.0
info:
  title: {p.title()}
  description: >
    {p.plain()}
    {p.plain()}
paths:
  /users/{{id}}:
    get:
      summary: {p.plain()}
      responses:
        '200':
          description: OK
""".replace("\n", "\r\n").encode()
    yield f"""messages:
  plural: '{PLURAL}'
  select: "{SELECT}"
  long: This is a plain text that goes on
    over several lines
    without quotes
  quoted: "A double quoted text that \\
    is folded with an escape"
  colon: "Note: this needs quotes"
  hash: "a # is no comment"
  dash: "- no list"
  emoji: "\\U0001F600 smile"
""".encode()


def properties_files(prose: Prose) -> Iterable[bytes]:
    p = prose
    pairs = [(f"menu.item{n}", label) for n, label in enumerate(p.labels(6))]
    yield ("# Comment\n" + "".join(f"{key}={text}\n" for key, text in pairs)).encode()
    yield ("! Comment\r\n" + "".join(f"{key} : {text}\r\n" for key, text in pairs)).encode()
    yield f"long = {p.plain()} \\\n    {p.plain()} \\\n    {p.plain()}\nnext = Next\n".encode()
    yield b"greeting = Caf\\u00e9 and na\\u00efve \\u20ac\nplain=Nothing special here\n"
    yield "straße=Schöne Grüße aus Köln\nname=A name with é\n".encode("latin-1")
    yield f"langs={' '.join(OTHERS)}\nutf=Schöne Grüße\n{p.label().replace(' ', '.')}={p.plain()}\n".encode()
    yield (
        b"args=Hello {0}, you have {1,number} new messages.\napos=It''s {0}''s book\nnoargs=It's mine\n"
        b"choice={0,choice,0#no files|1#one file|1<{0} files}\n"
    )
    yield b"a\\ key\\:with\\=signs = The value\nempty=\nonly\nspaces  =   Leading spaces go\ntrailing=Trailing space \n"
    yield b'lines=First line\\nSecond line\\n\\\n   third line\ntab=One\\ttwo\npath=C:\\\\temp\\\\files\nquote=\\"Quoted\\" text\n'
    yield (
        "\n\n   # indented comment\n   key   The value after a space\n\tkey2\tA tab\nurl=https://example.org/a=b\nhtml=<b>Bold</b> &amp; text\n"
        + f"last={p.sentence()}"
    ).encode()


def strings_files(prose: Prose) -> Iterable[bytes]:
    p = prose

    def entry(key: str, text: str) -> str:
        return f'"{key}" = "{text}";\n'

    pairs = [(f"menu.{n}", label) for n, label in enumerate(p.labels(6))]
    yield "".join(f"/* Button {n} */\n" + entry(*pair) + "\n" for n, pair in enumerate(pairs)).encode()
    yield "".join(entry(*pair) for pair in pairs).encode("utf-16")
    yield ("// A line comment\n" + "".join(entry(label, label) for _, label in pairs)).replace("\n", "\r\n").encode()
    yield (
        entry("args", "Hello %@, you have %d new messages.") + entry("pos", "%1$@ of %2$@") + entry("pc", "100%% done")
    ).encode()
    yield (
        entry("quote", 'She said \\"no\\".') + entry("lines", "First line.\\nSecond line.") + entry("tab", "a\\tb")
    ).encode()
    yield (entry("u", "Caf\\U00e9 on the street") + entry("emoji", OTHERS[-1])).encode("utf-8-sig")
    yield b'NSCameraUsageDescription = "The camera takes pictures of your documents.";\nCFBundleName = "My app";\n'
    yield "".join(f'"{n}"="{text}";' for n, text in enumerate([*GERMAN, *FRENCH, *OTHERS])).encode()
    yield (
        entry("long", p.paragraph(5).replace('"', '\\"'))
        + '"multi" =\n    "A value on\nthe next line";\n/* a "quoted" comment = "x"; */\n'
    ).encode()
    yield (
        entry("empty", "")
        + entry("space", " ")
        + entry("apos", "It's here")
        + entry("url", "https://example.org")
        + entry("html", "<b>Bold</b> text &amp; more")
    ).encode()


def arb_files(prose: Prose) -> Iterable[bytes]:
    p = prose

    def arb(entries: dict[str, Any], **options: Any) -> bytes:
        return json.dumps({"@@locale": "en", **entries}, **{"indent": 2, **options}).encode()

    yield arb({"title": p.title(), "@title": {"description": "The title of the page"}, "save": p.label()})
    yield arb({"count": PLURAL, "@count": {"placeholders": {"count": {"type": "int", "example": "5"}}}})
    yield arb(
        {"who": SELECT, "nested": "{g, select, a {{n, plural, one {One file} other {# files}}} other {No files}}"}
    )
    yield arb(
        {
            "hello": "Hello {name}!",
            "@hello": {"description": "A greeting", "placeholders": {"name": {}}},
            "x": p.plain(),
        }
    )
    yield arb({f"label{n}": label for n, label in enumerate(p.labels(8))}, indent=None, separators=(",", ":"))
    yield arb({"apos": "It''s {name}''s turn", "braces": "Use '{' and '}' here", "plain": "It's here"})
    yield arb({"langs": " ".join(OTHERS), "de": GERMAN[0]}, ensure_ascii=False)
    yield arb(
        {
            "date": "Due on {date}",
            "@date": {"placeholders": {"date": {"type": "DateTime", "format": "yMd"}}},
            "price": "Costs {p} now",
        }
    )
    yield arb(
        {"quote": 'He said "yes".\nThen he left.', "empty": "", "html": "<b>Bold</b> text", "emoji": "Done \U0001f600"}
    )
    yield arb(
        {
            "@@last_modified": "2024-05-03",
            "@@x-note": "A note",
            "ordinal": "{n, selectordinal, one {#st floor} other {#th floor}}",
            "mixed": "You have {n, plural, one {one cat} other {{n} cats}} at home.",
        }
    )


def fluent_files(prose: Prose) -> Iterable[bytes]:
    p = prose
    yield f"# Comment\ntitle = {p.title()}\nsave = {p.label()}\nlong = {p.plain()}\n".encode()
    yield b"### File comment\n\n## Group\n\n-brand = Firefox\nabout = About { -brand }\nwelcome = Welcome to { -brand }, { $user }!\n"
    yield b"emails =\n    { $count ->\n        [0] You have no messages.\n        [one] You have one message.\n       *[other] You have { $count } messages.\n    }\n"
    yield b"button = Click here\n    .title = The title of the button\n    .accesskey = C\n    .aria-label = A label\ninput =\n    .placeholder = Your name\n"
    yield f"text =\n    {p.plain()}\n    {p.plain()}\n\n    A new paragraph.\nend = The end\n".encode()
    yield b'time = The time is { DATETIME($now, hour: "numeric", minute: "numeric") }.\nprice = It costs { NUMBER($p, minimumFractionDigits: 2) } euros.\nref = See { about.title } or { message }\nabout = x\n    .title = About\n'
    yield b'literal = A { "{" }brace{ "}" } and { "\\u00e9" } here\nempty-start = { "" }   Spaces first\nbracket = { "[" }note] text\n'
    yield b'-app = Programm\n    .gender = neuter\n    .case = Nominative\nuse = The { -app(case: "genitive") } is open\nkey.with = junk line\nok = Fine\n'
    yield f'langs = {" ".join(OTHERS)}\nde = {GERMAN[0]}\nhtml = A <strong>bold</strong> word and a <a data-l10n-name="link">link</a>\n'.replace(
        "\n", "\r\n"
    ).encode()
    yield b"gender =\n    { $g ->\n        [male] He has { $n ->\n            [one] one dog\n           *[other] { $n } dogs\n        }\n       *[other] They are here\n    } today.\n"


def gettext_files(prose: Prose) -> Iterable[bytes]:
    p = prose

    def po(entries: Iterable[polib.POEntry], header: str = "nplurals=2; plural=(n != 1);", **options: Any) -> bytes:
        file = polib.POFile(**options)
        file.metadata = {
            "Project-Id-Version": "demo 1.0",
            "Language": "de",
            "MIME-Version": "1.0",
            "Content-Type": "text/plain; charset=UTF-8",
            "Content-Transfer-Encoding": "8bit",
            "Plural-Forms": header,
        }
        file.extend(entries)
        return (str(file) + "\n").encode()

    entry = polib.POEntry
    yield po(entry(msgid=label) for label in p.labels(8))
    yield po(
        [
            entry(msgid=p.paragraph(6)),
            entry(
                msgid=p.plain(),
                comment="Extracted comment",
                tcomment="A translator's note",
                occurrences=[("src/main.c", "12"), ("a b.c", "")],
            ),
        ]
    )
    yield po(
        [
            entry(msgid="%d file", msgid_plural="%d files", msgstr_plural={0: "", 1: ""}, flags=["c-format"]),
            entry(msgid="Done %s", flags=["c-format"]),
        ]
    )
    yield po(
        [
            entry(msgid="Open", msgctxt="menu"),
            entry(msgid="Open", msgctxt="state"),
            entry(msgid="Closed", msgstr="Geschlossen"),
        ]
    )
    yield po(
        [
            entry(msgid="Old text", obsolete=True, msgstr="Alt"),
            entry(msgid="Changed text", msgstr="Alter Text", flags=["fuzzy"], previous_msgid="Change text"),
            entry(msgid="New text"),
        ]
    )
    yield po(
        [
            entry(msgid="First line.\nSecond line.\n"),
            entry(msgid='A "quoted" word\tand a tab'),
            entry(msgid="C:\\temp"),
            entry(msgid="\n  Indented\n"),
        ]
    )
    yield po(
        [entry(msgid="{n} file", msgid_plural="{n} files", msgstr_plural={0: "", 1: "", 2: ""})],
        "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 ? 1 : 2);",
    )
    yield po(
        [entry(msgid=text) for text in (*OTHERS, 'Read the <a href="%s">manual</a>.', "100% done", "-")], wrapwidth=200
    )
    yield po(entry(msgid=f"{p.sentence()} {n}") for n in range(20)).replace(b"\n", b"\r\n")
    yield b'# SOME TITLE.\n#, fuzzy\nmsgid ""\nmsgstr ""\n"Project-Id-Version: PACKAGE VERSION\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n#: a.py:1\n#, python-brace-format\nmsgid ""\n"Hello, {name}! "\n"Welcome."\nmsgstr ""\n\n#. note\nmsgid "Save"\nmsgstr ""\n'
