"""Code of template languages within text.

These are Handlebars, Jinja, Liquid, Go, Svelte, Smarty, ERB, EJS, PHP, FreeMarker, Velocity, Blade, Template Toolkit
and Mailchimp.

A statement, such as `{{#if x}}`, `{% endfor %}` and `<?php else: ?>`, divides the text: what is between two statements
is a text of its own. An expression, such as `{{ name }}` and `<%= x %>`, stands for a word.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from mt.text.alignment import Range
from mt.text.word_tables import filled, read_tables

_TABLES = read_tables("templates.toml")
_BLOCK = re.compile("|".join(_TABLES["blocks"]), re.DOTALL)
_GO = r"(?:block|define|if|range|with)\s"
_CODE, _TAGS, _KEYWORDS = (_TABLES[name].replace(" ", "|") for name in ("code", "tags", "keywords"))
_TAGS, _KEYWORDS = rf"(?:{_CODE}|{_TAGS}|end\w*)\b", rf"(?:{_KEYWORDS}|end\w*)\b"
_STATEMENT = re.compile(
    rf"\{{\{{[-~]?\s*(?:[#^/!]|else\b|{_GO}|end\s*-?\}}\}})|\{{%[-+~]?\s*{_TAGS}|\{{(?![{{%])|</?[#@]"
    rf"|<%(?![=~:]|-(?!-))|[@#]|\*\|(?:ELSE|END|IF)|\[%-?\s*[A-Z]|<%[-~]\s*(?:\}}|{_KEYWORDS})"
    rf"|<\?php\s(?=.*\n|\s*(?:\}}|/[/*]|#|\$\w+ = |{_KEYWORDS}|(?:class|function|include|namespace|require|use)\b))"
)
_GO_END = re.compile(r"\{\{-?\s*end\s*-?\}\}")
_GO_BEGIN = re.compile(rf"\{{\{{-?\s*{_GO}")
_CODE_BEGIN = re.compile(rf"\{{%-?\s*({_CODE})\b")
_DIRECTIVE = re.compile(r"[@#](?:else|end\w*)")  # a word of prose unless the text has one that begins a block
_FIRST_DIRECTIVE = re.compile(r"(?<!\w)[@#](?:if|for(?:each)?|isset|section|switch|unless|while)\s?\(")
_OPENING = re.compile(_TABLES["opening"])  # a fast test
FIELD = re.compile(filled("|".join(_TABLES["fields"]), _TABLES))
"""A placeholder in the notations of programs, such as `%s`, `{0}` and `{{ name }}`, whatever is beside it."""


@dataclass(frozen=True, slots=True)
class TemplateCode:
    """The code at `text[begin:end]` of a text: a statement or an expression."""

    begin: int
    end: int
    statement: bool


def find_templates(text: str) -> Iterator[TemplateCode]:
    """Yield the code of templates in a text, in order."""
    if not _OPENING.search(text):
        return
    go = _GO_BEGIN.search(text) is not None  # otherwise {{end}} is the name of a value
    has_directives = _FIRST_DIRECTIVE.search(text) is not None
    place = 0
    endless = set[str]()  # names of statements without an end
    while match := _BLOCK.search(text, place):
        place = match.end()
        if not has_directives and _DIRECTIVE.fullmatch(match[0]):
            continue
        verbatim = _CODE_BEGIN.match(match[0])
        if verbatim and verbatim[1] not in endless:
            end = re.compile(rf"\{{%-?\s*end{verbatim[1]}\b[^%]*%\}}").search(text, place)
            place = end.end() if end else place
            endless |= set() if end else {verbatim[1]}
        ends = not go and _GO_END.fullmatch(match[0])
        open_end = match[0].startswith("<?") and not match[0].endswith("?>")  # nothing can stand after it
        yield TemplateCode(match.start(), place, open_end or (not ends and _STATEMENT.match(match[0]) is not None))


def divide_at_fields(sentence: str, kept: Sequence[Range]) -> list[tuple[str, bool]]:
    """Divide a sentence at its placeholders and at `kept`. Return pairs (text, whether to translate it)."""
    fields = [field.span() for field in FIELD.finditer(sentence)]
    fixed = {place for begin, end in (*kept, *fields) for place in range(begin, end)}
    groups = groupby(range(len(sentence)), lambda place: place not in fixed)
    return [("".join(sentence[place] for place in places), is_text) for is_text, places in groups]
