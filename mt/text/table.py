"""Tables in text files, as spreadsheet programs and people write them (.csv, .tsv)."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from typing import Literal

from mt.errors import DocumentError

SEPARATORS = "\t;|,"  # where several divide the rows equally, the first of them counts: commas are in numbers, too
STATEMENT = re.compile(r"sep=([^\r\n\"])(?:\r\n|\r|\n)", re.IGNORECASE)  # as Excel reads
_WHOLLY_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_QUOTED = re.compile(r'(?:(?<=[\t;|,\r\n])|\A)"(?:[^"]++|"")*+(?:"|\Z)')
_EXAMINED = 100_000  # number of characters that are searched for the separator


def read_table(text: str, usual: str, separator: str = "") -> tuple[str, Iterator[tuple[int, list[str]]]]:
    """Return the separator of a table, and an iterator of the line number and the fields of each row.

    Without `separator`, it is found as for .csv (see `find_separator`); `usual` is the one of two that divide the rows
    equally, or if none does. Fields may be quoted (for tabs, see `unquoted`), unless `separator` is stated. They have
    no space around them. Empty rows, and empty fields after the second at the end of a row, are left out.

    Raises: DocumentError from the iterator at a quoted field that is damaged.
    """
    quoted = not separator
    statement = STATEMENT.match(text) if quoted else None
    body = text[statement.end() :] if statement else text
    separator = separator or (statement[1] if statement else find_separator(body, usual) or usual)
    return separator, _rows(body, separator, quoted, 1 if statement else 0)


def _rows(text: str, separator: str, quoted: bool, before: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows after `before` lines."""
    tabs = separator == "\t"
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted and not tabs else csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, quoting=quoting, strict=True)
    try:
        for fields in reader:
            fields = [unquoted(field.strip()) if quoted and tabs else field.strip() for field in fields]
            while len(fields) > 2 and not fields[-1]:
                fields.pop()
            if any(fields):
                yield reader.line_num + before, fields
    except csv.Error as error:
        raise DocumentError(f"line {reader.line_num + before}: {error}") from error


def unquoted(field: str) -> str:
    """Return the text of a field between tabs.

    Spreadsheet programs quote fields that have commas or quotation marks. Other quotation marks are ordinary
    characters.
    """
    whole = _WHOLLY_QUOTED.fullmatch(field)
    return whole[1].replace('""', '"').strip() if whole and ("," in whole[1] or '""' in whole[1]) else field


def find_separator(text: str, usual: str = "") -> str:
    """Return the separator of a table, or "" if each of its rows is one cell. Quoted cells are ignored.

    Of several that divide the rows equally, it is `usual`, or else the first of `SEPARATORS`.
    """
    rows = list(filter(None, re.split(r"[\r\n]+", _QUOTED.sub("", text[:_EXAMINED]))))

    def agreeing(pattern: str) -> int:
        """Return the largest number of rows with the same number of matches, without rows that have none."""
        counts = Counter(count for row in rows if (count := len(re.findall(pattern, row))))
        return max(counts.values(), default=0)

    def score(separator: str) -> tuple[int, int]:
        pattern = re.escape(separator)
        return agreeing(pattern), agreeing(pattern + "(?! )")  # a space follows signs within a sentence

    best = max(usual + SEPARATORS, key=score)
    return best if score(best)[0] * 2 > len(rows) or all(best in row for row in rows) else ""
