"""Memory that the keys and values of running requests need, in cells: one cell is one token of one decoder row."""

from collections import Counter

from mt.engine.requests import Request

LEAST = 128
"""Lengths are rounded up to this number or to a larger power of 2, as the static memory of a GPU is."""


class MemoryUse:
    """Memory of the running requests, padded to the longest: rows x target columns + sentences x source tokens."""

    def __init__(self) -> None:
        self._rows = self._sentences = 0
        self._columns: Counter[int] = Counter()  # number of requests for each number of target columns
        self._widths: Counter[int] = Counter()  # number of requests for each number of source tokens

    def cells_with(self, request: Request, rows: int) -> int:
        """Return the number of cells of the running requests plus another request with `rows` rows."""
        columns, width = max(_columns(request), *self._columns, 0), max(_width(request), *self._widths, 0)
        return (self._rows + rows) * columns + (self._sentences + 1) * width

    def add(self, request: Request, rows: int) -> None:
        """Count a request that begins to run."""
        self._change(request, rows, 1)

    def remove(self, request: Request, rows: int) -> None:
        """Stop counting a request."""
        self._change(request, rows, -1)

    def _change(self, request: Request, rows: int, sign: int) -> None:
        self._rows += sign * rows
        self._sentences += sign
        for counts, length in ((self._columns, _columns(request)), (self._widths, _width(request))):
            counts[length] += sign
            if not counts[length]:
                del counts[length]


def _columns(request: Request) -> int:
    """Return the number of target columns of a request: the longest translation that it allows, BOS and EOS."""
    return _rounded(request.options.longest(len(request.source), len(request.prefix)) + 2)


def _width(request: Request) -> int:
    return _rounded(len(request.source))


def _rounded(length: int) -> int:
    return max(LEAST, 1 << (length - 1).bit_length())
