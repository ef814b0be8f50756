"""Tables in text files whose cells are separated by a character (.csv, .tsv)."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import PurePath

from mt.errors import DocumentError
from mt.text.documents.base import DocumentOptions, TextDocument, check_count, read_text
from mt.text.table import SEPARATORS, STATEMENT, find_separator


def open_table(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse a .csv or .tsv file. Each cell with a letter is a segment; quotes and separators are kept.

    In a plural or select message, each branch is a segment.

    The option `columns` selects columns by their names in the first row, or by their numbers from 1. If it is used, the
    first row is kept. The separator of .csv is the one that the first line states, as in `sep=;`, or else the one of
    `,`, `;`, tab and `|` that divides most rows into the same number of cells. If none divides more than half of the
    rows, each row is one cell.

    Raises: DocumentError if a selected column does not exist.
    """
    text, document = read_text(name, content, options)
    statement = STATEMENT.match(text)
    if PurePath(name).suffix.lower() == ".tsv":
        separator = "\t"
    elif options.separator is not None:
        separator = options.separator
    else:
        separator = statement[1] if statement else find_separator(text)
    check_count(name, sum(map(text.count, (separator or "\n", "\r", "\n"))), "cells")
    end = re.escape(separator)
    cells = re.compile(rf'("(?:[^"]++|"")*+(?:"|\Z)|)([^{end}\r\n]*)({end or "(?!)"}|\r\n|\r|\n|\Z)')
    document.decisions["separator"] = separator
    header: list[str] = []
    chosen: set[int] = set()
    row = column = 0
    for match in cells.finditer(text, statement.end() if statement else 0):
        quoted, source = bool(match[1]), match[1] + match[2]
        value = match[1][1:].removesuffix('"').replace('""', '"') + match[2] if quoted else source
        if row == 0:
            header.append(value.strip())
        translated = not options.columns or (row > 0 and column in chosen)
        has_letters = any(map(str.isalpha, value))
        document.has_text = document.has_text or has_letters
        if translated and has_letters:
            document.keep_until(match.start())
            document.add_string(value, source, partial(_write, source=source, separator=separator, quoted=quoted))
            document.done = match.end(2)
        if match[3] == separator != "":
            column += 1
        else:
            if row == 0:
                chosen = _chosen(name, header, options.columns)
            document.frame.append(column)
            row, column = row + 1, 0
    document.keep_until(len(text))
    return document


def _chosen(name: str, header: list[str], columns: Sequence[str]) -> set[int]:
    numbers = {str(number): number - 1 for number in range(1, len(header) + 1)}
    numbers |= {title: number for number, title in reversed(list(enumerate(header)))}
    unknown = [column for column in columns if column not in numbers]
    if unknown:
        raise DocumentError(
            f"{name} has no column {', '.join(map(repr, unknown))}; accepted: a number from 1 to "
            f"{len(header)}, or {', '.join(header[:20])}"
        )
    return {numbers[column] for column in columns}


def _write(text: str, source: str, separator: str, quoted: bool) -> str:
    separators = separator or [sign for sign in SEPARATORS if sign not in source]
    # Programs that write tabs between cells often write quotes as they are.
    special = (*separators, "\r", "\n") if separator == "\t" else (*separators, "\r", "\n", '"')
    if quoted or text.startswith('"') or any(sign in text for sign in special):
        return '"' + text.replace('"', '""') + '"'
    return text
