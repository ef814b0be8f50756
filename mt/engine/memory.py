"""Memory for the keys and values of running requests, in cells. One cell is one token of one decoder row."""

from collections import Counter

from mt.decoding.options import SearchOptions
from mt.engine.requests import Request

LEAST = 128
"""Smallest length that is counted. Longer lengths are rounded up to a power of 2, as in the static memory of a GPU."""

MULTIPLE = 32
"""Numbers of target columns are multiples of this number."""


class MemoryUse:
    """Memory of the running requests: rows x target columns + sentences x source tokens.

    The target columns and the source tokens are those of the longest requests, as if all requests were padded.
    """

    def __init__(self) -> None:
        self._rows = self._sentences = 0
        self._columns: Counter[int] = Counter()  # number of requests for each number of target columns
        self._widths: Counter[int] = Counter()  # number of requests for each number of source tokens

    def cells_with(self, request: Request) -> int:
        """Return the number of cells that the running requests and `request` need together."""
        columns, width = max(_columns(request), *self._columns, 0), max(_width(request), *self._widths, 0)
        return (self._rows + request.options.rows) * columns + (self._sentences + 1) * width

    def add(self, request: Request) -> None:
        """Count a request that begins to run."""
        self._change(request, 1)

    def remove(self, request: Request) -> None:
        """Stop counting a request that was added."""
        self._change(request, -1)

    def _change(self, request: Request, sign: int) -> None:
        self._rows += sign * request.options.rows
        self._sentences += sign
        for counts, length in ((self._columns, _columns(request)), (self._widths, _width(request))):
            counts[length] += sign
            if not counts[length]:
                del counts[length]


def target_columns(options: SearchOptions, longest: int) -> int:
    """Return the number of target columns for a translation of at most `longest` tokens, EOS included.

    One more column is needed, to which a finished sentence writes. The number is rounded up to a power of 2, but not
    above what `max_length` tokens need.
    """
    possible = -(-(options.max_length + 1) // MULTIPLE) * MULTIPLE
    return min(_rounded(longest + 1), max(LEAST, possible))


def _columns(request: Request) -> int:
    options = request.options
    return target_columns(options, options.longest(len(request.source), len(request.prefix)))


def _width(request: Request) -> int:
    return _rounded(len(request.source))


def _rounded(length: int) -> int:
    return max(LEAST, 1 << (length - 1).bit_length())
