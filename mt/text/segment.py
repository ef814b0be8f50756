"""A text cut into paragraphs and sentences, and put together again from their translations.

A paragraph ends at a line break, as `str.splitlines` knows them; where its sentences end, sentencex says, which knows
the abbreviations of some 300 languages. What lies between two sentences is kept as it is, so that the pieces of a
text always join to the text itself.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import sentencex

SPACELESS = frozenset({"ja", "yue", "zh", "zt"})
"""Languages that put nothing between two sentences."""

_LINE_BREAK = re.compile("(\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])")
_SPACE = re.compile(r"\s+")
_AFTER_CLAUSE = re.compile(r"""(?<=[,;:.!?،؛؟।–—])["'”’»)\]]*\s+|(?<=[，、；：。！？])(?=\S)""")
_JOINER = "\u200d"


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence, or a part of one, to be translated; or, `kept`, what stays as it is."""

    text: str
    kept: bool


def split(text: str, language: str) -> list[Piece]:
    """The pieces of a text in a language; an unknown code is split by sentencex's rules for English.

    White space is kept, and so is a sentence in which there is neither a letter nor a digit.
    """
    found: list[Piece] = []
    for number, part in enumerate(_LINE_BREAK.split(text)):
        if number % 2:
            _extend(found, [Piece(part, kept=True)])
        else:
            for sentence in _sentences(part, language):
                _extend(found, whole(sentence))
    return found


def whole(text: str) -> list[Piece]:
    """The pieces of a text that is one sentence: the white space around it is kept."""
    sentence = text.strip()
    begin = text.index(sentence)
    kept = not any(map(str.isalnum, sentence))
    found: list[Piece] = []
    _extend(found, [Piece(text[:begin], True), Piece(sentence, kept), Piece(text[begin + len(sentence) :], True)])
    return found


def split_long(sentence: str, fits: Callable[[str], bool]) -> list[Piece]:
    """The pieces of a sentence that is too long: each that is not kept fits, or is a single character.

    It is halved, and its halves are, as near to the middle as can be: after a mark that ends a clause; if there is
    none, at white space; if there is none, between two characters that do not belong to one.
    """
    found: list[Piece] = []
    for piece in whole(sentence):
        if piece.kept or len(piece.text) == 1 or fits(piece.text):
            _extend(found, [piece])
        else:
            middle = _best_cut(piece.text)
            _extend(found, split_long(piece.text[:middle], fits))
            _extend(found, split_long(piece.text[middle:], fits))
    return found


def join(pieces: Sequence[Piece], translations: Sequence[str], source: str, target: str) -> str:
    """A text of its pieces, with a translation for each that is not kept, in order.

    What is kept stays exactly, with two exceptions: into a language that puts no space between sentences, a single
    space between two translations goes; and from such a language into another, one space is put where there was none.
    """
    return "".join(piece.text for piece in _laid_out(pieces, translations, source, target))


def places(pieces: Sequence[Piece]) -> list[tuple[int, int]]:
    """Begin and end, in the text that these pieces make, of each that is not kept."""
    ends = accumulate(len(piece.text) for piece in pieces)
    return [(end - len(piece.text), end) for piece, end in zip(pieces, ends, strict=True) if not piece.kept]


def joined_places(
    pieces: Sequence[Piece], translations: Sequence[str], source: str, target: str
) -> list[tuple[int, int]]:
    """Begin and end of each translation in what `join` makes of them."""
    return places(list(_laid_out(pieces, translations, source, target)))


def _laid_out(pieces: Sequence[Piece], translations: Sequence[str], source: str, target: str) -> Iterator[Piece]:
    left = iter(translations)
    opens = source in SPACELESS and target not in SPACELESS
    closes = target in SPACELESS
    for place, piece in enumerate(pieces):
        neighbours = pieces[max(0, place - 1) : place + 2]
        if not piece.kept:
            if opens and place and not pieces[place - 1].kept:
                yield Piece(" ", kept=True)
            yield Piece(next(left), kept=False)
        elif not (closes and piece.text == " " and [near.kept for near in neighbours] == [False, True, False]):
            yield piece


def _sentences(paragraph: str, language: str) -> Iterator[str]:
    """The sentences of a paragraph, with the white space around them. A bare number, as of a list, begins the next."""
    begin = end = 0
    for sentence in _ends(paragraph, language):
        end += len(sentence)
        if any(map(str.isalpha, sentence)) or not any(map(str.isdigit, sentence)):
            yield paragraph[begin:end]
            begin = end
    yield paragraph[begin:]


def _ends(paragraph: str, language: str) -> list[str]:
    """sentencex's sentences, character for character as long as ours.

    It sees a space for any white space and a question mark for a lone surrogate. Version 1.0.32 panics on an initial
    after a no-break space; a panic of Rust's, which is no Exception, must not be the end of a service.
    """
    plain = _SPACE.sub(lambda found: " " * len(found[0]), paragraph)
    plain = plain if plain.isascii() else plain.encode("utf-8", "replace").decode()
    try:
        found: list[str] = sentencex.segment(language, plain)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return [paragraph]
    return found


def _best_cut(text: str) -> int:
    """Where to halve a text of at least two characters that neither begins nor ends with white space."""
    for pattern in (_AFTER_CLAUSE, _SPACE):
        places = [match.end() for match in pattern.finditer(text)]
        if places:
            return min(places, key=lambda place: abs(2 * place - len(text)))
    middle = len(text) // 2
    for distance in range(middle):
        for place in (middle - distance, middle + distance):
            if 0 < place < len(text) and not _belong_together(text[place - 1], text[place]):
                return place
    return middle


def _belong_together(before: str, after: str) -> bool:
    """Whether two characters are seen as one: with an accent, a joiner or a colour of skin."""
    return _JOINER in (before, after) or unicodedata.category(after) in ("Mn", "Mc", "Me", "Sk")


def _extend(pieces: list[Piece], more: Sequence[Piece]) -> None:
    """Append pieces that are not empty; what is kept becomes one with what is kept before it."""
    for piece in more:
        if piece.kept and pieces and pieces[-1].kept:
            pieces[-1] = Piece(pieces[-1].text + piece.text, kept=True)
        elif piece.text:
            pieces.append(piece)
