"""Messages in ICU MessageFormat within markup, such as the plural forms in XLIFF, which contain inline codes."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from mt.text.markup.inline import Decode, InlineItem, InlineKind, text_items
from mt.text.markup.tokens import decode_pieces
from mt.text.messages import split_message

_PAIR = re.compile("''")
_CODE = "\ufffc"  # stands for an item that is not text; no part of the syntax of a message


def split_items(
    items: Sequence[InlineItem[Any]], decode: Decode
) -> Iterator[tuple[Sequence[InlineItem[Any]], bool, Decode]]:
    """Split the inline items of a text at the syntax of a message.

    Yield (items, whether to translate them, `decode` for these items). The source of a TEXT item must be its text.
    """
    pieces = [
        (item, source, meaning or _CODE)
        for item in items
        for source, meaning in (decode(item.text) if item.kind is InlineKind.TEXT else [("", _CODE)])
    ]
    message = "".join(meaning for _, _, meaning in pieces)
    parts = split_message(message)
    if len(parts) == 1:
        yield items, True, decode
        return
    number = begin = 0  # number of pieces that are done, and offset in the next piece

    def decode_doubled(text: str) -> Iterator[tuple[str, str | None]]:
        return decode_pieces(decode(text), _PAIR, lambda pair: "'")

    for text, translated in parts:
        left, part = len(text), list[InlineItem[Any]]()
        while left:
            item, source, meaning = pieces[number]
            end = min(len(meaning), begin + left)
            left -= end - begin
            if item.kind is InlineKind.TEXT:
                piece = meaning[begin:end] if source == meaning else source
                part += text_items(piece)
            else:
                part.append(item)
            number, begin = (number + 1, 0) if end == len(meaning) else (number, end)
        yield part, translated, decode_doubled if "''" in message else decode
