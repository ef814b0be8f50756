"""The direction that a benchmark measures, and the tag before the sources of a model with several directions."""

from pathlib import Path

import pytest

from mt.bundled import STARTER_MODEL
from mt.cli.benchmarks.harness import PeerSearch, PeerSetup
from mt.cli.benchmarks.peer_ours import OurPeer
from mt.cli.benchmarks.peers import choose_direction
from mt.errors import LanguageError
from mt.tokenizer import load_tokenizer

FROZEN = Path(__file__).resolve().parents[2] / "frozen" / "model"


def test_a_model_of_one_direction_needs_no_tag() -> None:
    assert choose_direction(FROZEN, None) == ("en-de", "")
    assert choose_direction(FROZEN, "en-de") == ("en-de", "")
    with pytest.raises(LanguageError, match="de-en"):
        choose_direction(FROZEN, "de-en")


def test_a_model_of_several_directions_needs_a_direction() -> None:
    assert choose_direction(STARTER_MODEL, "fr-en") == ("fr-en", "fr-en")
    with pytest.raises(LanguageError, match="en-de, de-en, en-fr, fr-en"):
        choose_direction(STARTER_MODEL, None)


def test_sources_begin_with_the_tag_of_the_target_language() -> None:
    peer = OurPeer(PeerSetup(str(STARTER_MODEL), "", direction="en-fr"))
    source = peer.encode("Good morning!")
    assert load_tokenizer(STARTER_MODEL).pieces(source)[0] == "<2fr>"
    (tokens,) = peer.translate([source], PeerSearch(4))
    assert peer.decode(tokens) == "Bonjour !"
    assert peer.translate_text(["Good morning!"], PeerSearch(4)) == ["Bonjour !"]
