"""Members of texts that are lists, such as `bread, butter and milk`: models lose some, or copy them."""

import re
from collections.abc import Sequence

from mt.languages import primary_language

_JOINS = {"de": ("und", "oder"), "en": ("and", "or"), "fr": ("et", "ou")}
_BETWEEN = {
    language: re.compile(rf"[,](?: (?:{'|'.join(joins)}))? |[ ](?:{'|'.join(joins)}) ")
    for language, joins in _JOINS.items()
}
_MEMBER = re.compile(r"[^\W_][\w'’-]*(?: [^\W_][\w'’-]*){0,2}")
_MOST_CHARACTERS = 400  # of a text that is a list


def split_list(text: str, languages: tuple[str, str]) -> list[str]:
    """Return the members of a text that is a list of three or more, and the marks after them; [] for another text.

    The marks are those of the second language.
    """
    joins = [_JOINS.get(primary_language(language), ()) for language in languages]
    if ", " not in text or len(text) > _MOST_CHARACTERS or not all(joins):
        return []
    inner = text.removesuffix(".")
    parts, place, marks = list[str](), 0, [*_BETWEEN[primary_language(languages[0])].finditer(inner)]
    for mark in marks:
        join = mark[0].strip(", ")
        if join and (join not in joins[0] or mark is not marks[-1]):
            return []
        parts += [inner[place : mark.start()], f" {joins[1][joins[0].index(join)]} " if join else ", "]
        place = mark.end()
    parts += [inner[place:], text[len(inner) :]]
    return parts if len(marks) > 1 and all(map(_MEMBER.fullmatch, parts[::2])) else []


def fill_list(parts: Sequence[tuple[str, bool]], translation: str, language: str) -> str | None:
    """Return a list of the known `parts`, with the members of a translation for the others; None if it has fewer.

    The parts are members and the marks after them.
    """
    written = _BETWEEN[primary_language(language)].split(translation.removesuffix("."))
    if len(written) != len(parts) // 2 and not all(is_known for _, is_known in parts):
        return None
    return "".join(part if is_known else written[at // 2] for at, (part, is_known) in enumerate(parts))
