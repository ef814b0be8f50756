"""Texts cut into lines, each of which is translated by itself, and put together again with every line break kept."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mt.engine.translator import Translation

_LINE_BREAK = re.compile("(\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])")  # where str.splitlines splits


@dataclass(frozen=True)
class Lines:
    """The lines of some texts; those that are blank are not `wanted`."""

    parts: tuple[tuple[str, ...], ...]  # a text: line, break, line, break ... line

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Lines":
        return cls(tuple(tuple(_LINE_BREAK.split(text)) for text in texts))

    @property
    def wanted(self) -> list[str]:
        """What is to be translated, in order."""
        return [line for parts in self.parts for line in parts[::2] if line.strip()]

    def joined(self, translations: Sequence[Translation], ranks: int) -> list[list[str]]:
        """For each text its best `ranks` translations, from those of the wanted lines.

        Rank n of a text puts together the lines' n-th translations, or the last that a line has; equals are dropped.
        """
        left = iter(translations)
        found = []
        for parts in self.parts:
            each = [next(left) if place % 2 == 0 and part.strip() else None for place, part in enumerate(parts)]
            found.append(list(dict.fromkeys(_at_rank(rank, parts, each) for rank in range(ranks))))
        return found


def _at_rank(rank: int, parts: Sequence[str], translations: Sequence[Translation | None]) -> str:
    return "".join(
        part if translation is None else translation.alternatives[min(rank, len(translation.alternatives) - 1)].text
        for part, translation in zip(parts, translations, strict=True)
    )
