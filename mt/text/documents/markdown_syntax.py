"""Syntax of dialects of Markdown that CommonMark lacks: callouts, directives, admonitions, footnotes, formulas and MDX.

The parser of CommonMark would read `> [!NOTE]`, `:::note` and `!!! note` as text, and join them with the next line.
"""

import re
from collections.abc import Iterator

SYNTAX, VALUE = "\ufdd0", "\ufdd1"
"""Characters that stand for a character of hidden syntax, and of a part of a text that is not translated."""

_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_FENCE = re.compile(r"[ \t>]*(?:[-*+][ \t]+)?(`{3,}|~{3,})")
_INDENT = r"(?P<indent>[ \t]*(?:>[ \t]*)*)"
_BRACES = r"\{[^{}]*\}"
_NAME = rf"(?:[\w-]+|{_BRACES})?"  # of a directive
_DIVIDERS = [  # a line of each kind ends the text before it; `title` is text of its own
    re.compile(_INDENT + pattern)
    for pattern in (
        r"(?<=>)[ \t]*\[![\w-]+\][-+]?[ \t]*(?P<title>.*)",  # callouts of GitHub and Obsidian
        rf":{{3,}}[ \t]{{0,3}}{_NAME}(?:{_BRACES})?\[(?P<title>[^\[\]]*)\](?:{_BRACES})?[ \t]*",  # Docusaurus
        rf":{{3,}}[ \t]{{0,3}}{_NAME}(?:[ \t]?{_BRACES})?[ \t]?(?P<title>[^{{}}\[\]]*)",  # Pandoc, VuePress, MyST
        r":(?:align|class|color|height|icon|name|open|width):(?:[ \t].*)?(?P<title>)",  # options of directives of MyST
        r"(?:\{\{[<%](?:(?!\}\}).)*\}\}|\{%(?:(?!%\}).)*%\})[ \t]*(?P<title>)",  # Hugo, Jekyll
        r"import[ \t][^\"']*[\"'][^\"']*[\"'];?[ \t]*(?P<title>)",  # MDX
        r"export[ \t]+(?:const|default|function|let)\b.*(?P<title>)",
    )
]
_CONTAINER = re.compile(  # of MkDocs; the text of the container is indented
    _INDENT + r"(?:(?:!!!|\?\?\?\+?)[ \t]+[\w-]+(?: [\w-]+)*(?: ?\"(?P<title>[^\"]*)\")?"
    r"|===[+!]?[ \t]+\"(?P<tab>[^\"]*)\")[ \t]*"
)
_DEFINITION = re.compile(_INDENT + r"(?:\[\^[^\[\]\s]+\]|\*\[[^\[\]]+\]):[ \t]+(?P<title>\S.*)")
_FORMULA = re.compile(_INDENT + r"(?:(?P<dollars>\$\$)|(?P<bracket>\\\[)|\\begin\{(?P<name>\w+\*?)\})")
_INLINE = re.compile(
    r"(?P<code>(?<!`)(`+)(?!`)[^`\n]+\2(?!`))|(?P<formula>(?<![\\\w$])\$\$?(?![\s$])(?:[^$\\\n]|\\.){1,300}(?<!\s)\$\$?(?![\w$])"
    r"|\\\((?:(?!\\\)).){1,300}\\\))|\{\{[<%](?:(?!\}\}).){1,300}\}\}|\{%(?:(?!%\}).){1,300}%\}"
)
_PROSE = re.compile(r"[^\W\d_]{2,}[ ,]+[^\W\d_]{2,}")


def hide_syntax(text: str) -> str:
    """Return a text of the same length and with the same lines, in which a parser of CommonMark finds the same texts.

    Lines that divide texts become headings, containers become items of lists, and so do the definitions of footnotes
    and abbreviations. Other syntax becomes SYNTAX, formulas and calls of templates within a text become VALUE.
    """
    return "".join(_hidden_lines(text))


def _hidden_lines(text: str) -> Iterator[str]:
    fence = end = ""  # what ends the code or the formula of the line
    for match in _LINE.finditer(text):
        line, newline = match.groups()
        opened = _FENCE.match(line)
        if fence:
            closed = opened is not None and opened[1].startswith(fence) and line.strip(" \t>`~") == ""
            fence = "" if closed else fence
            yield line + newline
        elif end:
            yield _hide(line, 0, "# ", len(line), len(line)) + newline
            end = "" if end in line else end
        elif opened:
            fence = opened[1]
            yield line + newline
        elif (formula := _FORMULA.match(line)) and _is_whole(line, formula):
            closing = _closing(formula)
            end = "" if closing in line[formula.end() :] else closing
            yield _hide(line, len(formula["indent"]), "# ", len(line), len(line)) + newline
        else:
            yield _hidden_line(line) + newline


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
    return _INLINE.sub(_hidden_value, line)


def _hide(line: str, indent: int, marker: str, begin: int, end: int) -> str:
    """Return a line with a marker after its indent, and with SYNTAX in place of all else but line[begin:end]."""
    marker = marker[: len(line) - indent]
    hidden = line[:indent] + marker + SYNTAX * (begin - indent - len(marker)) + line[begin:end]
    return hidden + SYNTAX * (len(line) - end)


def _hidden_value(match: re.Match[str]) -> str:
    prose = match["formula"] and _PROSE.search(match[0]) and "\\" not in match[0][2:-2]
    return match[0] if match["code"] or prose else VALUE * len(match[0])


def _closing(formula: re.Match[str]) -> str:
    if formula["name"]:
        return f"\\end{{{formula['name']}}}"
    return "$$" if formula["dollars"] else "\\]"


def _is_whole(line: str, formula: re.Match[str]) -> bool:
    """Return whether the line of the beginning of a formula contains nothing but the formula."""
    rest, closing = line[formula.end() :].rstrip(), _closing(formula)
    return closing not in rest or rest.endswith(closing)
