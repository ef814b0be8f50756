"""Code of template languages within text.

These are Handlebars, Jinja, Liquid, Go, Svelte, Smarty, ERB, EJS, PHP, FreeMarker, Velocity, Blade, Template Toolkit
and Mailchimp.

A statement, such as `{{#if x}}`, `{% endfor %}` and `<?php else: ?>`, divides the text: what is between two statements
is a text of its own. An expression, such as `{{ name }}` and `<%= x %>`, stands for a word.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BLOCK = re.compile(
    r"\{{2,3}(?!\{)(?:(?!\}\}|\{\{).){1,1000}\}\}\}?|\{%(?:(?!%\}|\{%).){1,1000}%\}|\{\#(?:(?!\#\}|\{\#).){1,1000}\#\}"
    r"|<%(?:(?!%>|<%).){1,1000}%>|<\?(?:php\b|=)(?:(?!\?>).)*(?:\?>|\Z)|</?[#@][a-z][^<>\n]{0,300}>"
    r"|\{[#:/](?:await|catch|each|else|foreach|if|key|section|snippet|then|while)\b[^{}\n]{0,300}\}"
    r"|\{(?:else|(?:(?:else)?if|for(?:each)?)\b(?=[^{}\n]{1,300}[$=<>&!])[^{}\n]{1,300})\}"
    r"|\[%(?:(?!%\]|\[%).){1,1000}%\]|\*\|[A-Z][^|\n]{0,100}\|\*"
    r"|(?<!\w)[@#](?:(?:else)?if|for(?:each|else)?|isset|section|switch|unless|while)\s?"
    r"\((?:[^()\n]|\([^()\n]*\)){0,300}\)"
    r"|(?<!\w)[@#](?:else|end(?:for|foreach|if|isset|section|switch|unless|while)?)\b",
    re.DOTALL,
)
_GO = r"(?:block|define|if|range|with)\s"
_CODE = "code|comment|highlight|javascript|math|mermaid|schema|style|stylesheet"  # their content is not text
_TAGS = (
    rf"(?:{_CODE}|apply|assign|autoescape|block|blocktrans|blocktranslate|break|cache|call|capture|case|continue|do|elif"
    r"|else|elseif|elsif|embed|empty|extends|filter|for|form|from|if|ifchanged|import|include|layout|liquid|load|macro"
    r"|plural|pluralize|raw|render|section|set|spaceless|tablerow|unless|verbatim|when|with|end\w*)\b"
)
_KEYWORDS = r"(?:case|default|do|else|elseif|elsif|end\w*|for|foreach|if|switch|try|unless|until|when|while)\b"
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
_OPENING = re.compile(r"\{[{%#:/a-z]|<[%?/#@]|\[%|\*\||[@#][efisuw]")


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
