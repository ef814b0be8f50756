"""Syntax of dialects of Markdown that CommonMark lacks: callouts, directives, admonitions, footnotes, formulas and MDX.

The parser of CommonMark would read `> [!NOTE]`, `:::note` and `!!! note` as text, and join them with the next line.
"""

import re
from collections.abc import Iterator

from mt.text.documents.base import LINE
from mt.text.word_tables import read_tables

SYNTAX, VALUE = "\ufdd0", "\ufdd1"
"""Characters that stand for a character of hidden syntax, and of a part of a text that is not translated."""

_FENCE = re.compile(r"[ \t>]*(?:[-*+][ \t]+)?(`{3,}|~{3,})")
_INDENT = r"(?P<indent>[ \t]*(?:(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]))[ \t]*)*)"
_BRACES = r"\{[^{}]*\}"
_NAME = rf"(?:[\w-]+|{_BRACES})?"  # of a directive
_ATTRIBUTES = r"\{:[ ]?[#.]?[A-Za-z][^{}]*\}"  # of the block around them, in kramdown: {: .class}
_TABLES = read_tables("documents/markdown.toml")
_NAMED = {"<name>": _NAME, "<braces>": _BRACES, "<attributes>": _ATTRIBUTES}
_DIVIDERS = [  # a line of each kind ends the text before it; `title` is text of its own
    re.compile(_INDENT + re.sub("|".join(_NAMED), lambda name: _NAMED[name[0]], pattern))
    for pattern in _TABLES["dividers"]
]
_CONTAINER, _DEFINITION = (re.compile(_INDENT + pattern) for pattern in _TABLES["blocks"].values())
_DIRECTIVE = re.compile(  # of MyST: the text between the fences is Markdown
    rf"{_INDENT}(?P<fence>`{{3,}}|~{{3,}})\{{(?:{_TABLES['directives'].replace(' ', '|')})\}}[ \t]?(?P<title>[^`]*)"
)
_VERBATIM = [(re.compile(_INDENT + begin), end) for begin, end in _TABLES["verbatim"]]
_INLINE = re.compile(_TABLES["inline"])
_LAST_ATTRIBUTES = re.compile(rf"(?<=[ \t]){_ATTRIBUTES}(?=[ \t]*\Z)")
_ATTRIBUTES_OF_HEADING = re.compile(r"(?<=[ \t])\{:?[ ]?[#.]?[A-Za-z][^{}]*\}(?=[ \t#]*\Z)")  # {#id .class}
_PROSE = re.compile(r"[^\W\d_]{2,}[ ,]+[^\W\d_]{2,}")


def hide_syntax(text: str) -> str:
    """Return a text of the same length and with the same lines, in which a parser of CommonMark finds the same texts.

    Lines that divide texts become headings, containers become items of lists, and so do the definitions of footnotes
    and abbreviations. Other syntax becomes SYNTAX, formulas and calls of templates within a text become VALUE.
    """
    return "".join(_hidden_lines(text))


def _hidden_lines(text: str) -> Iterator[str]:
    fence = ""  # the fence of the code of the line
    end: re.Pattern[str] | None = None  # what ends the part without Markdown of the line
    directives: list[str] = []  # the fences of the directives around the line
    for match in LINE.finditer(text):
        line, newline = match.groups()
        opened = _FENCE.match(line)
        closes = opened is not None and line.strip(" \t>`~") == ""
        hidden = line
        if fence:
            fence = "" if opened and closes and opened[1].startswith(fence) else fence
        elif end is not None:
            hidden = _hide(line, 0, "# ", len(line), len(line))
            end = None if end.search(line) else end
        elif directive := _DIRECTIVE.fullmatch(line):
            directives.append(directive["fence"])
            hidden = _hide(line, directive.end("indent"), "# ", *directive.span("title"))
        elif opened and closes and directives and opened[1].startswith(directives[-1]):
            directives.pop()
            hidden = _hide(line, opened.start(1), "# ", len(line), len(line))
        elif opened:
            fence = opened[1]
        elif verbatim := _verbatim(line):
            end = verbatim[1]
            hidden = _hide(line, verbatim[0], "# ", len(line), len(line))
        else:
            hidden = _hidden_line(line)
        yield hidden + newline


def _verbatim(line: str) -> tuple[int, re.Pattern[str] | None] | None:
    """Return the indent of a line that begins a part without Markdown, and what ends it in a later line, if it does."""
    for pattern, closing in _VERBATIM:
        if begin := pattern.match(line):
            end = re.compile(closing % re.escape(begin["name"]) if "%s" in closing else closing)
            closed = end.search(line, begin.end())
            rest = line[closed.end() :] if closed else ""
            return None if any(map(str.isalnum, rest)) else (begin.end("indent"), None if closed else end)
    return None


def _hidden_line(line: str) -> str:
    for pattern in _DIVIDERS:
        if divider := pattern.fullmatch(line):
            return _hide(line, divider.end("indent"), "# ", *divider.span("title"))
    if container := _CONTAINER.fullmatch(line):
        title = "tab" if container["tab"] is not None else "title"
        begin, end = container.span(title) if container[title] is not None else (len(line), len(line))
        return _hide(line, container.end("indent"), "- # ", begin, end)
    if definition := _DEFINITION.fullmatch(line):
        line = _hide(line, definition.end("indent"), "- ", *definition.span("title"))
    attributes = _ATTRIBUTES_OF_HEADING if line.lstrip(" >").startswith("#") else _LAST_ATTRIBUTES
    line = attributes.sub(lambda match: SYNTAX * len(match[0]), line)
    return _INLINE.sub(_hidden_value, line)


def _hide(line: str, indent: int, marker: str, begin: int, end: int) -> str:
    """Return a line with a marker after its indent, and with SYNTAX in place of all else but line[begin:end]."""
    marker = marker[: len(line) - indent]
    hidden = line[:indent] + marker + SYNTAX * (begin - indent - len(marker)) + line[begin:end]
    return hidden + SYNTAX * (len(line) - end)


def _hidden_value(match: re.Match[str]) -> str:
    prose = match["formula"] and _PROSE.search(match[0]) and "\\" not in match[0][2:-2]
    return match[0] if match["code"] or prose else VALUE * len(match[0])
