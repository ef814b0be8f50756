"""Messages in ICU MessageFormat, such as `{count, plural, one {a file} other {# files}}`."""

import re
from collections.abc import Callable, Iterator

from mt.text.documents.base import TextDocument

_CHOICE = re.compile(r"\s*[\w.-]+\s*,\s*(?:plural|select|selectordinal)\s*,(?:\s*offset\s*:\s*\d+)?")
_BRANCH = re.compile(r"\s*(?:=\d+|[\w-]+)\s*\{")
_BRACE = re.compile(r"[{}]")
_MAX_DEPTH = 20


def split_message(message: str) -> list[tuple[str, bool]]:
    """Split a message into pairs (text, whether to translate it). The texts, concatenated, are the message.

    Each branch of a `plural`, `select` or `selectordinal` argument is a text. Simple arguments such as `{name}` are
    part of a text. A message with unmatched braces is one text.
    """
    parts = list(_split(message, 0))
    return parts if "".join(text for text, _ in parts) == message else [(message, True)]


def add_message(document: TextDocument, value: str, source: str, quote: str, write: Callable[[str], str]) -> bool:
    """Add the parts of a string with branches. Return False, without adding it, if it has none.

    `write` returns the source of a text between the quotes. A string in quotes is not added if `write` would change its
    source.
    """
    parts = split_message(value)
    written = quote + "".join(write(text) for text, _ in parts) + quote
    if len(parts) == 1 or (source[:1] == quote and written != source):
        return False
    document.keep(quote)
    for text, translated in parts:
        if translated:
            document.add_stripped(text, write(text), write)
        else:
            document.keep(write(text))
    document.keep(quote)
    return True


def _split(message: str, depth: int) -> Iterator[tuple[str, bool]]:
    done = place = 0
    while (brace := _BRACE.search(message, place)) is not None:
        end = _matching(message, brace.start())
        choice = _CHOICE.match(message, brace.end())
        if brace[0] == "}" or end < 0:
            break
        place = end
        if choice is None or depth == _MAX_DEPTH:
            continue
        yield message[done : brace.start()], True
        done = brace.start()
        inside = choice.end()
        while (branch := _BRANCH.match(message, inside, end)) is not None:
            inside = _matching(message, branch.end() - 1)
            if not branch.end() <= inside < end:
                break
            yield message[done : branch.end()], False
            yield from _split(message[branch.end() : inside - 1], depth + 1)
            done = inside - 1
        yield message[done:end], False
        done = end
    yield message[done:], True


def _matching(message: str, begin: int) -> int:
    """Return the offset after the brace that closes the opening brace at `begin`, or -1 if no brace closes it."""
    depth = 0
    for brace in _BRACE.finditer(message, begin):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return -1
