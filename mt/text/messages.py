"""Messages in ICU MessageFormat, such as `{count, plural, one {a file} other {# files}}`.

An apostrophe before a brace, `#` or `|` begins a literal text, which ends at the next apostrophe. Two apostrophes stand
for one. See https://unicode-org.github.io/icu/userguide/format_parse/messages/
"""

import re
from collections.abc import Iterator, Sequence

from mt.languages import primary_language

_ARGUMENT = re.compile(
    r"\s*[\w.-]+\s*,\s*(?:(?P<choice>choice)|plural|select|selectordinal)\s*,(?:\s*offset\s*:\s*\d+)?"
)
_BRANCH = re.compile(r"\s*(?:=\d+|[\w-]+)\s*\{")
_LIMIT = re.compile(r"\s*(?:[-+]?\d[\d.]*(?:[eE][-+]?\d+)?|-?∞)\s*[#<≤]")  # of a branch of Java's ChoiceFormat
_SYNTAX = re.compile(r"''|'(?=[{}#|])(?:''|[^'])*+(?:'|\Z)|[{}|]")
_BEFORE_SYNTAX = re.compile(r"'(?=[{}#])")
_JOINED_SIGN, _ORDINAL_SIGN = re.compile(r"(?<!\w)#-(?=[^\W\d_])"), re.compile(r"#(?:st|nd|rd|th)\b(\.?)")
_DOUBLED = re.compile(r"(?<=[^\W\d_])''(?=[^\W\d_])")
_MAX_DEPTH = 20
_LONGEST_WHOLES = 4  # of the sentences of all branches together, relative to the message
_ARGUMENT_BEGIN = re.compile(r"\{\s*+[\w.-]++\s*+,\s*+(?:plural|select)")
_SIMPLE = re.compile(r"\{[^{}]*\}")
_SIGN, _SINGULAR, _SENTENCE_END = map(re.compile, (r"#(?![\w{-])", r"(?:one|=1)\s*\{\Z", r"[.!?]\s+\w"))
_CODES = re.compile(r"\{[^{}]*\}|#|<[^<>]*>")  # simple arguments, numbers and tags


def split_message(message: str) -> list[tuple[str, bool]]:
    """Split a message into pairs (text, whether to translate it). The texts, concatenated, are the message.

    Each branch of a `plural`, `select`, `selectordinal` or `choice` argument is a text. Simple arguments such as
    `{name}` are part of a text. A message without such an argument, or with unmatched braces, is one text.
    """
    parts = list(message_parts(message))
    return parts if "".join(text for text, _ in parts) == message else [(message, True)]


def whole_sentences(sentence: str) -> tuple[list[tuple[str, bool]], list[str]] | None:
    """Return the parts of a sentence with one argument, and the sentence with each of its branches.

    The sentences have a number for `#`. None: there is no argument or several, a branch has several sentences, or the
    sentences have no words or are together much longer than the given one.
    """
    parts = split_message(sentence) if _ARGUMENT_BEGIN.search(sentence) else []
    if len(parts) < 5 or len(_ARGUMENT_BEGIN.findall(sentence)) > 1 or not parts[0][1] or not parts[-1][1]:
        return None
    branches = [one for one in range(1, len(parts) - 1) if parts[one][1]]
    if any(_SENTENCE_END.search(parts[one][0]) for one in branches):
        return None
    read = [_SIGN.sub(_number(parts[one - 1][0]), parts[one][0]) for one in branches]
    before, after = (parts[0][0], parts[-1][0]) if _has_frame(parts) else ("", "")
    wholes = [before + branch + after for branch in read]
    length = sum(map(len, wholes))
    return (parts, wholes) if any(map(has_letters, wholes)) and length <= _LONGEST_WHOLES * len(sentence) else None


def write_branches(parts: Sequence[tuple[str, bool]], translations: Sequence[str]) -> str | None:
    """Return the message of which `translations` are the whole sentences: what all begin and end with is around it.

    `parts` are those of the source. Return None if a translation has other arguments in a branch or beside it.
    """
    branches = [one for one in range(1, len(parts) - 1) if parts[one][1]]
    signs = [_number(parts[one - 1][0]) if _SIGN.search(parts[one][0]) else "" for one in branches]
    rests = [
        re.sub(rf"(?<![\w.,]){sign}(?![\w,]|\.\d)", "#", text) if sign else text
        for sign, text in zip(signs, translations, strict=True)
    ]
    before, after = parts[0][0], parts[-1][0]
    if _has_frame(parts):
        before = _common_start(rests)
        before = before[: before.rfind(" ") + 1]
        rests = [one[len(before) :] for one in rests]
        after = _common_start([one[::-1] for one in rests])[::-1]
        after = after[after.find(" ") :] if " " in after else after if after in ".!?…" else ""
        rests = [one[: len(one) - len(after)] for one in rests]
    pairs = [
        (parts[0][0] + parts[-1][0], before + after),
        *((parts[n][0], one) for n, one in zip(branches, rests, strict=True)),
    ]
    if any(sorted(_CODES.findall(one)) != sorted(_CODES.findall(other)) or (one and not other) for one, other in pairs):
        return None
    texts = iter([before, *rests, after])
    return "".join(next(texts) if translated else text for text, translated in parts)


def _common_start(texts: Sequence[str]) -> str:
    """Return the text before `#` with which all texts begin."""
    letters = zip(*texts, strict=False)
    length = next((n for n, (first, *others) in enumerate(letters) if first == "#" or {*others} - {first}), None)
    return texts[0][: min(map(len, texts)) if length is None else length]


def _has_frame(parts: Sequence[tuple[str, bool]]) -> bool:
    """Return whether there are words beside the branches of a message."""
    return has_letters(_SIMPLE.sub("", parts[0][0] + parts[-1][0]))


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def _number(syntax: str) -> str:
    """Return the number that a model reads for `#` in the branch after some syntax."""
    return "1" if _SINGULAR.search(syntax) else "37"


def doubles_apostrophes(text: str, is_message: bool) -> bool:
    """Return whether two apostrophes of a text stand for one, as in `It''s {0}''s turn.`, also without branches."""
    return "''" in text and (is_message or ("{" in text and _DOUBLED.search(text) is not None))


def double_apostrophes(text: str, source: str) -> str:
    """Return the text with each apostrophe doubled, except those of the literal texts of `source`, such as `'{'`."""
    literals = {match[0] for match in _SYNTAX.finditer(source) if match[0] != "''" and match[0].startswith("'")}
    pattern = "|".join(map(re.escape, [*sorted(literals, key=len, reverse=True), "'"]))
    return re.sub(pattern, lambda match: "''" if match[0] == "'" else match[0], text)


def safe_apostrophes(text: str, source: str) -> str:
    """Return the text with each apostrophe before `{`, `}` or `#` replaced by the typographic one.

    An apostrophe that the translator puts there, as in `l'{city}`, would begin a literal text. If the source has one
    there, return the text as it is.
    """
    return text if _BEFORE_SYNTAX.search(source) else _BEFORE_SYNTAX.sub("’", text)


def write_number_signs(source: str, translation: str, language: str) -> str:
    """Return a translation with `#` as a number: no hyphen joins it to a word, and `#th` has the ordinal ending."""
    if "#-" not in source:
        translation = _JOINED_SIGN.sub("# ", translation)
    endings = {"de": "#.", "fr": r"#e\1"}
    return _ORDINAL_SIGN.sub(endings.get(primary_language(language), r"\g<0>"), translation)


def message_parts(message: str, depth: int = 0) -> Iterator[tuple[str, bool]]:
    """Yield the pairs of `split_message`; concatenated, they may differ from a message with unmatched braces."""
    done = place = 0
    while (brace := _next(message, place, "{}")) and brace[0] == "{" and (closing := _next(message, brace.end(), "}")):
        place = end = closing.end()
        argument = _ARGUMENT.match(message, brace.end())
        branches = list(_branches(message, argument, end)) if argument and depth < _MAX_DEPTH else []
        if not branches:
            continue
        yield message[done : brace.start()], True
        done = brace.start()
        for begin, stop in branches:
            yield message[done:begin], False
            yield from message_parts(message[begin:stop], depth + 1)
            done = stop
        yield message[done:end], False
        done = end
    yield message[done:], True


def _branches(message: str, argument: re.Match[str], end: int) -> Iterator[tuple[int, int]]:
    """Yield the range of the text of each branch of an argument. `end` is the offset after its closing brace."""
    place = argument.end()
    if argument["choice"]:
        while (limit := _LIMIT.match(message, place, end)) is not None:
            bar = _next(message, limit.end(), "|}")
            place = min(bar.start() if bar else end, end - 1)
            yield limit.end(), place
            place += 1
        return
    while (branch := _BRANCH.match(message, place, end)) is not None:
        closing = _next(message, branch.end(), "}")
        if not closing or closing.end() >= end:
            return
        yield branch.end(), closing.start()
        place = closing.end()


def _next(message: str, begin: int, signs: str) -> re.Match[str] | None:
    """Return the first of some signs from `begin` on, outside of the braces that open after `begin`."""
    depth = 0
    for match in _SYNTAX.finditer(message, begin):
        if not depth and match[0] in signs:
            return match
        depth += {"{": 1, "}": -1}.get(match[0], 0)
    return None
