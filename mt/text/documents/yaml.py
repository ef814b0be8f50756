"""YAML files, parsed by PyYAML. The texts are replaced in the source, so that comments and layout are kept."""

import json
import re
from collections.abc import Container, Hashable, Iterator

import yaml

from mt.errors import DocumentError, DocumentLimitExceeded
from mt.text.documents.base import LINE, DocumentOptions, TextDocument, read_text

_MAX_DEPTH = 100
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER = yaml.SafeLoader("")
_STRING = "tag:yaml.org,2002:str"
_PLAIN = re.compile(r"[^\W\d_][^:#\n\r\t,\[\]{}\"'`|>]*(?<! )", re.UNICODE)
_PROPERTIES = re.compile(r"(?:(?:&[^\s,\[\]{}]+|!(?:<[^>\s]*>|[^\s,\[\]{}]*))(?:\s|(?<=\s)#[^\r\n]*)*)*")
_SYMBOL = re.compile(r"([\[,] *):(?=[A-Za-z_]\w* *[,\]])")  # of Ruby, in a list: PyYAML does not read [:year, :month]


def open_yaml(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse YAML. Each string value is a segment, and everything else is kept.

    Each line of a block with `|`, each paragraph of a block with `>`, and each branch of a plural or select message is
    a segment of its own.

    Raises: DocumentError, with line and column, if the content is not YAML.
    """
    text, document = read_text(name, content, options)
    add_values(document, name, 0, len(text))
    return document


def add_values(document: TextDocument, name: str, first: int, last: int, keys: Container[str] | None = None) -> None:
    """Add the strings of the YAML in a range of the source of a document, or only those of some keys.

    Raises: DocumentError, before the document is changed, if it is not YAML.
    """
    text = document.source[first:last]
    frame: list[Hashable] = []
    try:
        values = list(_values(name, text, frame))
    except DocumentError:
        frame.clear()
        hidden = _SYMBOL.sub(r"\1*", text)  # an alias, which is no text
        if hidden == text:
            raise
        values = list(_values(name, hidden, frame))
    document.frame += frame
    for scalar in (scalar for scalar, key in values if keys is None or key in keys):
        begin, end = scalar.start_mark.index, scalar.end_mark.index
        if scalar.anchor is not None or scalar.tag is not None:
            properties = _PROPERTIES.match(text, begin)
            assert properties is not None  # the pattern matches the empty string
            begin = properties.end()
        document.keep_until(first + begin)
        if scalar.style in ("|", ">"):
            _add_block(document, text[begin:end], folded=scalar.style == ">")
        else:
            _add_scalar(document, text[begin:end], scalar.value, scalar.style)
        document.done = first + end
    document.keep_until(last)


def _values(name: str, text: str, frame: list[Hashable]) -> Iterator[tuple[yaml.ScalarEvent, str]]:
    """Yield the strings of a YAML text with the last key before each. Append everything else to `frame`.

    Raises: DocumentError if the text is not YAML.
    """
    key = ""
    keys: list[bool | None] = []  # for each open collection: whether a key is next, or None for a sequence
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.CollectionEndEvent):
                keys.pop()
            is_key = bool(keys) and keys[-1] is True
            is_text = isinstance(event, yaml.ScalarEvent) and not is_key and _is_string(event)
            frame.append(type(event).__name__)
            frame += [getattr(event, name, None) for name in (("anchor",) if is_text else ("anchor", "tag", "value"))]
            if keys and keys[-1] is not None and isinstance(event, (yaml.NodeEvent, yaml.CollectionEndEvent)):
                begins = isinstance(event, yaml.CollectionStartEvent)
                keys[-1] = keys[-1] if begins else not keys[-1]
            if isinstance(event, yaml.CollectionStartEvent):
                keys.append(True if isinstance(event, yaml.MappingStartEvent) else None)
                if len(keys) > _MAX_DEPTH:
                    raise DocumentLimitExceeded(f"{name} is nested too deeply; accepted: at most {_MAX_DEPTH} levels")
            elif is_text:
                yield event, key
            elif is_key and isinstance(event, yaml.ScalarEvent):
                key = event.value
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise DocumentError(f"{name} is not YAML: {error.problem}{place}") from error
    except yaml.YAMLError as error:
        raise DocumentError(f"{name} is not YAML: {error}") from error


def _is_string(event: yaml.ScalarEvent) -> bool:
    if event.tag is not None:
        return bool(event.tag in (_STRING, "!"))
    return bool(_RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit) == _STRING)


def _add_scalar(document: TextDocument, source: str, value: str, style: str | None) -> None:
    def write(text: str) -> str:
        if _is_plain(text, style):
            return text
        if style == "'" and "\n" not in text:
            return "'" + text.replace("'", "''") + "'"
        return json.dumps(text, ensure_ascii=False)

    document.add_string(value, source, write)


def _is_plain(text: str, style: str | None) -> bool:
    """Return whether `text` is to be written without quotes. `style` is the style of the scalar in the source."""
    plain = style not in ("'", '"') and _PLAIN.fullmatch(text) is not None
    return plain and _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) == _STRING


def _add_block(document: TextDocument, source: str, folded: bool) -> None:
    """Add the texts of a block to the document: its paragraphs if `folded` is true, otherwise its lines.

    The first line of the block, which contains `|` or `>`, is kept.
    """
    lines = [match[0] for match in LINE.finditer(source) if match[0]]
    document.keep(lines[0])
    paragraph: list[str] = []
    for line in [*lines[1:], ""]:
        if paragraph and (not folded or not line.strip() or _indent(line) != _indent(paragraph[0])):
            _add_paragraph(document, paragraph)
            paragraph = []
        if line.strip():
            paragraph.append(line)
        else:
            document.keep(line)


def _add_paragraph(document: TextDocument, lines: list[str]) -> None:
    source = "".join(lines)
    indent = " " * _indent(lines[0])
    end = source[len(source.rstrip()) :]
    body = source[len(indent) : len(source) - len(end)]
    document.keep(indent)
    document.add_stripped(" ".join(line.strip() for line in lines), body, lambda text: " ".join(text.split("\n")))
    document.keep(end)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
