"""What a shortlist allows, whatever the lists say: spelling, and copies of the source."""

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.arrays import Array
from mt.data.shortlist import build_shortlist, is_single_character
from mt.kernels.library import CpuShortlist
from mt.kernels.shortlist import Shortlist, flaws
from mt.tokenizer import EOS, Tokenizer, train_tokenizer
from tests.conftest import sentences
from tests.kernels.conftest import compile_model, odd_model

PIECES = ["<pad>", "<unk>", "<s>", "</s>", "<0x0A>", "▁dog", "dog", "▁Hund", "▁1", "7", "▁", "ß", "??", "犬", "ab"]
DOG, INNER_DOG, HUND, SIGNS, INU, AB = 5, 6, 7, 12, 13, 14


def test_by_hand() -> None:
    shortlist = build_shortlist(PIECES, EOS, [AB], [(DOG, HUND), (DOG, INU), (INU, DOG)])
    assert shortlist.always.tolist() == [EOS, 4, 8, 9, 10, 11, AB]
    assert shortlist.ids([]).tolist() == [EOS, 4, 8, 9, 10, 11, AB]
    assert shortlist.ids([SIGNS, EOS]).tolist() == [EOS, 4, 8, 9, 10, 11, SIGNS, AB]
    assert shortlist.ids([DOG, AB]).tolist() == [EOS, 4, DOG, INNER_DOG, HUND, 8, 9, 10, 11, INU, AB]
    assert shortlist.ids([INNER_DOG]).tolist() == [EOS, 4, DOG, INNER_DOG, 8, 9, 10, 11, AB]
    assert shortlist.vocabulary_size == len(PIECES)
    assert flaws(shortlist.arrays(), len(PIECES), EOS) == []


def test_a_rare_token_allows_the_vocabulary() -> None:
    shortlist = build_shortlist(PIECES, EOS, [AB], [(DOG, HUND)], [SIGNS, INU])
    assert shortlist.rare.tolist() == [SIGNS, INU]
    assert shortlist.ids([DOG, INU]).tolist() == list(range(len(PIECES)))
    assert len(shortlist.ids([DOG, AB])) < len(PIECES)


def test_pieces_that_spell_words() -> None:
    characters = ("▁", "▁x", "x", "Ж", "▁é", "7", "▁٣", "。", "—", "€", "😀", "<0x00>", "<0xFF>")
    assert all(map(is_single_character, characters))
    others = ("犬", "▁한", "の", "the", "▁ab", "<pad>", "</s>", "<2de>", "..")
    assert not any(map(is_single_character, others))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    text = [*sentences(300), *(f"{number} {number * 37} Zürich, 12.3% of №{number}" for number in range(200))]
    return Tokenizer(train_tokenizer(text, vocabulary_size=600))


@pytest.fixture(scope="module")
def shortlist(tokenizer: Tokenizer) -> Shortlist:
    return build_shortlist(tokenizer.pieces(range(len(tokenizer))), EOS, [], [])


@settings(max_examples=200)
@given(st.text(), st.text())
def test_any_text_and_number_can_be_copied(tokenizer: Tokenizer, shortlist: Shortlist, text: str, other: str) -> None:
    allowed = set(shortlist.ids(tokenizer.encode(text)).tolist())
    assert set(tokenizer.encode(text)) <= allowed
    digits = "".join(str(ord(character)) for character in other)
    assert set(tokenizer.encode(digits)) | {EOS} <= allowed
    bytes_ = {id for id, piece in enumerate(tokenizer.pieces(range(len(tokenizer)))) if piece.startswith("<0x")}
    assert len(bytes_) == 256 and bytes_ <= allowed


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"always": np.array([0, EOS, 9], np.int64)}, "not a 1-D array of int32"),
        ({"always": np.array([[EOS]], np.int32)}, "always is missing or not a 1-D array"),
        ({"always": np.array([EOS, 600], np.int32)}, "always has ids from 3 to 600; accepted: 0 to"),
        ({"always": np.array([EOS, EOS], np.int32)}, "always is not sorted"),
        ({"always": np.array([4, 5], np.int32)}, "always lacks EOS"),
        ({"allowed": np.full(11, -1, np.int32)}, "allowed has ids from -1 to -1"),
        ({"rare": np.array([15], np.int32)}, "rare has ids from 15 to 15"),
        ({"offsets": np.zeros(16, np.int64)}, "offsets are not valid"),
        ({"offsets": np.zeros(9, np.int64)}, "the shortlist is for 8 tokens; accepted: 15"),
        ({"always": None}, "always is missing"),
    ],
    ids=str,
)
def test_flaws(change: dict[str, Array | None], problem: str) -> None:
    tensors = {**build_shortlist(PIECES, EOS, [], []).arrays(), **change}
    found = flaws({name: array for name, array in tensors.items() if array is not None}, len(PIECES), EOS)
    assert len(found) == 1 and problem in found[0]


@pytest.mark.parametrize("always", [[4, 5], [5, EOS], [EOS, 77], [-1, EOS]])
def test_the_kernels_refuse_what_would_break_them(library: ctypes.CDLL, always: list[int]) -> None:
    model = compile_model(library, odd_model())
    empty = np.zeros(78, np.int64)
    with pytest.raises(RuntimeError, match=r"vocabulary|ascend|end of the sentence"):
        CpuShortlist(model, Shortlist(np.array(always, np.int32), empty, np.empty(0, np.int32), np.empty(0, np.int32)))
