import random

import pytest

from mt.data.corpus import SentencePair
from mt.data.variants import with_variants


def variants(source: str, target: str, share: float = 1.0) -> list[tuple[str, str]]:
    pairs = with_variants(SentencePair(source, target, 7, "a.tsv"), share)
    return [(pair.source, pair.target) for pair in pairs]


@pytest.mark.parametrize(
    ("source", "target", "variant"),
    [
        ("Where is the station?", "Wo ist der Bahnhof?", ("where is the station", "Wo ist der Bahnhof")),
        ("Yes, please!", "Oui, s'il vous plaît !", ("yes, please", "Oui, s'il vous plaît")),
        ("Be quiet...", "Sei still.", ("Be quiet", "Sei still")),
        ("Run!", "Lauf!", ("RUN!", "LAUF!")),
        ('"Go," he said.', "„Geh“, sagte er.", ('"go," he said', "„Geh“, sagte er")),
        ("OK", "Gut.", None),
        ("...", "…", None),
        ("", "Nur Text.", None),
    ],
)
def test_the_variant_of_a_pair(source: str, target: str, variant: tuple[str, str] | None) -> None:
    assert variants(source, target) == [(source, target), *([variant] if variant else [])]
    assert variants(source, target, 0.0) == [(source, target)]


def test_the_share_of_pairs_and_of_each_kind() -> None:
    draw = random.Random(3)
    lower = bare = capitals = 0
    for _ in range(4000):
        text = "The " + "".join(draw.choices("abcdef", k=9)) + "."
        for source, target in variants(text, text, 0.5)[1:]:
            lower += source.islower() and target == text[:-1]
            bare += source == text[:-1] and target == text[:-1]
            capitals += source == text.upper() and target == text.upper()
    assert abs(lower - 1000) < 120 and abs(bare - 500) < 90 and abs(capitals - 500) < 90
