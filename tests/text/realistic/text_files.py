"""Realistic files without markup: plain text, Markdown, subtitles and tables."""

import csv
import io
import json
from collections.abc import Iterable, Sequence

from tests.text.realistic.prose import FRENCH, GERMAN, OTHERS, Prose


def text_files(prose: Prose) -> Iterable[bytes]:
    p = prose
    paragraphs = [p.paragraph() for _ in range(4)]
    yield "\n\n".join([p.title(), *paragraphs, ""]).encode()
    yield "\r\n".join([p.title().upper(), "=" * 20, "", *paragraphs, ""]).encode("utf-8-sig")
    yield "\n".join([p.title(), *paragraphs]).encode("utf-16")
    yield b"\xfe\xff" + "\n".join([p.sentence(), *OTHERS, p.sentence()]).encode("utf-16-be")
    yield ("\t" + p.paragraph() + "\n\n\n   " + p.paragraph() + "   \n\x0c\nPage 2\n" + p.paragraph()).encode()
    yield "\n".join([f"{n}. {p.sentence()}" for n in range(1, 6)] + [f" - {p.sentence()}" for _ in range(4)]).encode()
    lines = [f"> {p.sentence()}", f">> {p.sentence()}", "", "-- ", "Anna Miller", "anna@example.org", "+49 30 123456"]
    yield "\n".join(["From: Anna <anna@example.org>", f"Subject: {p.title()}", "", p.paragraph(), "", *lines]).encode()
    yield " ".join(p.sentence() for _ in range(200)).encode()  # one long line
    yield "\r".join([p.title(), *paragraphs, *GERMAN, *FRENCH]).encode()  # line ends of old Macs
    table = [f"{p.label():<20}{p.number():>8}   {p.label()}" for _ in range(6)]
    yield "\n".join([*table, "", "---8<---", "***", p.sentence(), "C:\\Users\\anna\\file.txt  $HOME/%d {0}"]).encode()


def markdown_files(prose: Prose) -> Iterable[bytes]:
    p = prose
    yield f"""# {p.title()}

{p.plain()} This is **very important**, and *this* is not. Use `pip install` and then
[the manual](https://example.org/manual "The manual") on the next line.

## {p.title()} {{#anchor}}

* {p.plain()}
* {p.plain()}
    * A nested item with ~~deleted text~~
    * {p.plain()}

      A second paragraph of the item.

1. First step
2. Second step
   ```bash
   echo "do not translate"
   ```
""".encode()
    yield f"""---
title: "{p.title()}"
tags: [one, two]
---

| Name | Description | Price |
|:-----|:-----------:|------:|
| {p.label()} | {p.plain()} | 12.50 |
| a \\| b | **bold** cell with `code \\| pipe` | 3 |

{p.plain()}
""".encode()
    yield f"""{p.title()}
===

{p.plain()}\\
The line after a hard break.{"  "}
Another one after two spaces.

{p.title()}
---

> {p.plain()}
> {p.plain()}
>
> > A nested quote with *emphasis*.

***
""".encode()
    yield f"""# {p.title()}

![A dog in the garden](images/dog.png "A dog") {p.plain()}

A [reference link][ref], a [collapsed one][], and an <https://example.org/auto> link. A footnote[^1] is here.

[ref]: https://example.org/ref "Title of the reference"
[collapsed one]: https://example.org/c
[^1]: {p.plain()}
""".encode()
    yield f"""<div align="center">
  <h1>{p.title()}</h1>
  <img src="logo.png" alt="The logo of the company">
</div>

{p.plain()} Press <kbd>Ctrl</kbd>+<kbd>C</kbd> to stop, H<sub>2</sub>O is water.<br>A new line.

<details>
<summary>Show the answer</summary>

{p.plain()}

</details>

<!-- a comment that stays -->
""".encode()
    yield f"""# {p.title()}

- [ ] {p.plain()}
- [x] {p.plain()}

+ plus item

  with a paragraph
+ another

Escapes: 2 \\* 3 = 6, a\\_b, \\# no heading, &copy; 2024 &amp; more, 5 < 6.

    indented code stays
    as it is

Final text with a very_long_identifier_name and a*b*c.
""".replace("\n", "\r\n").encode("utf-8-sig")
    yield f"""# {p.title()} 👋

{GERMAN[0]} {FRENCH[0]} {OTHERS[1]}

Term
: {p.plain()}

~~~python
print("code")  # {p.plain()}
~~~

{p.plain()} ***Bold and italic*** text, __bold__ and _italic_. A "quoted" word.
""".encode()
    yield ("# " + p.title() + "\n\n" + " ".join(p.plain() for _ in range(60)) + "\n").encode()
    changes = [f"- {p.plain()} ([#{p.number()}](https://example.org/{p.number()}))" for _ in range(6)]
    yield ("# Changelog\n\n## [1.2.0] - 2024-05-03\n\n### Added\n\n" + "\n".join(changes) + "\n").encode()
    yield f"""[![Build](https://example.org/badge.svg)](https://example.org) [![License](l.svg)](LICENSE)

# {p.title()} #

Install it with `npm i` — it's **free**. {p.plain()}

1) one
2) two
10) ten with *emphasis at the end*

$E = mc^2$ and {{{{ variable }}}} and :smile: and @anna and #12.

Hello<!-- inline comment --> world.
""".encode()


def _cues(prose: Prose, texts: Sequence[str], vtt: bool, end: str = "\n") -> str:
    lines = []
    for number, text in enumerate(texts, 1):
        mark = "." if vtt else ","
        lines += [str(number), f"00:00:{number:02}{mark}000 --> 00:00:{number:02}{mark}900", text, ""]
    return end.join(lines)


def subrip_files(prose: Prose) -> Iterable[bytes]:
    p = prose
    talk = [p.sentence() for _ in range(6)]
    yield _cues(p, talk, vtt=False).encode()
    yield _cues(p, [f"<i>{text}</i>" for text in talk], vtt=False, end="\r\n").encode("utf-8-sig")
    yield _cues(p, [f"- {p.sentence()}\n- {p.sentence()}" for _ in range(5)], vtt=False).encode()
    yield _cues(
        p, ["The train to Berlin\nleaves at nine.", "{\\an8}The sign says:\nno entry.", "♪ La la la ♪"], False
    ).encode()
    yield _cues(
        p, ['<font color="#ff0000">Stop!</font> Do not <b>open</b>\nthe door.', "[door closes]", "..."], False
    ).encode()
    yield _cues(p, ["ANNA: Where are you?", "TOM:\nI am at home.", "", "42"], vtt=False).encode("utf-16")
    yield _cues(p, [*GERMAN, *FRENCH, *OTHERS], vtt=False).encode()
    yield "\n\n\n".join(
        f"{n}\n00:0{n}:01,5 --> 00:0{n}:02,75  X1:10 X2:20 Y1:5 Y2:9\n{p.sentence()}" for n in range(1, 6)
    ).encode()
    yield _cues(
        p, [" ".join(p.sentence() for _ in range(8)), "One <i>two</i> <u>three</u>\n<i>four five</i>"], False
    ).encode()
    yield (
        "\ufeff"
        + _cues(
            p, ["<i>I was walking\ndown the street,</i>", "<i>and then</i> it rained.", "A & B < C"], False
        ).rstrip()
    ).encode()


def webvtt_files(prose: Prose) -> Iterable[bytes]:
    p = prose
    head = "WEBVTT\n\n"
    yield (head + _cues(p, [p.plain() for _ in range(6)], vtt=True)).encode()
    yield (
        "WEBVTT - A talk about trains\nKind: captions\nLanguage: en\n\nNOTE\nThis is a note\nof two lines\n\n"
        + _cues(p, [p.plain() for _ in range(3)], True)
    ).encode()
    yield (
        "WEBVTT\n\nSTYLE\n::cue(b) {\n  color: red;\n}\n\nREGION\nid:fred\nwidth:40%\n\n"
        + _cues(p, ["A <b>bold</b> move."], True)
    ).encode()
    yield (
        head
        + _cues(
            p, ["<v Anna>Where are you?</v>", "<v Tom>At home.\n<v Anna>I see.", "<v.loud Mary Smith>Stop it!"], True
        )
    ).encode()
    yield (
        head
        + "intro\n00:01.000 --> 00:04.000 position:10%,line-left align:left size:35%\nThe first cue\nof this file.\n\n"
        "00:05.000 --> 00:06.000 line:0\n- One\n- Two\n"
    ).encode()
    yield (head + _cues(p, ["Tom &amp; Anna &lt;here&gt;", "A&nbsp;space &lrm;mark", "5 &gt; 3"], True)).encode()
    yield (
        head
        + _cues(
            p,
            ["<00:00:01.100>We <00:00:01.300>are <00:00:01.600>singing", "<c.yellow.bg_blue>Yellow text</c> here"],
            True,
        )
    ).encode()
    yield (
        head
        + _cues(
            p,
            [
                "<ruby>漢<rt>kan</rt>字<rt>ji</rt></ruby>",
                "<lang en-GB>colour of the sky</lang>",
                "<i><b>Both</b> of them</i>",
            ],
            True,
        )
    ).encode()
    yield ("\ufeff" + head + _cues(p, [p.plain() for _ in range(4)], True)).replace("\n", "\r\n").encode()
    yield (head + "NOTE end\n\n" + _cues(p, [*GERMAN, *OTHERS, p.plain() + "\n" + p.plain()], True)).encode()


def _table(rows: Iterable[Sequence[object]], encoding: str = "utf-8", **options: str | int) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, **options).writerows(rows)  # type: ignore[arg-type]
    return out.getvalue().encode(encoding)


def table_files(prose: Prose, separator: str) -> Iterable[bytes]:
    """Ten tables as the module csv, spreadsheets and databases write them."""
    p = prose
    head = ["id", "name", "description", "price"]
    rows: list[list[object]] = [[n, p.label(), p.sentence(), f"{p.number()}.50"] for n in range(1, 9)]
    yield _table([head, *rows], delimiter=separator)
    yield _table([head, *rows], "utf-8-sig", delimiter=separator, quoting=csv.QUOTE_ALL)
    yield _table(
        [head, *([n, 'The "big" one', f"one{separator} two{separator} three", ""] for n in range(4))],
        delimiter=separator,
    )
    yield _table([["key", "text"], ["a", "First line\nsecond line\r\nthird"], ["b", " spaces "]], delimiter=separator)
    yield _table([head, *rows], "utf-16", delimiter=separator)
    other = ";" if separator == "," else separator
    yield _table(
        [["Nummer", "Text", "Preis"], *([n, p.sentence(), "3,50"] for n in range(5))],
        delimiter=other,
        lineterminator="\n",
    )
    yield _table(
        [["en", "de", "fr", "other"], *zip(["One", "Two", "Three"], GERMAN, FRENCH, OTHERS[:3], strict=True)],
        delimiter=separator,
    )
    yield _table(
        [["id", "payload"], [1, json.dumps({"title": p.title(), "n": 3})], [2, "=SUM(A1:A3)"], [3, "-"]],
        delimiter=separator,
    )
    yield _table(
        [["", "", ""], ["", p.label(), ""], [], ["2024-05-03", "12:30", "€ 5"], ["TRUE", "n/a", p.sentence()]],
        delimiter=separator,
    )
    yield _table(
        [["url", "mail", "text"], ["https://example.org", "anna@example.org", p.paragraph(5)]] * 3,
        delimiter=separator,
        lineterminator="\n",
    )[:-1]
