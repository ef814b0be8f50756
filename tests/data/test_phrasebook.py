"""The embedded corpus: its German, its uniqueness, and a split that measures learning."""

import hashlib
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from mt.data.phrasebook import PhrasePair, generate, held_out_pairs, write
from mt.data.phrasebook.everyday import everyday
from mt.data.phrasebook.glossary import glossary
from mt.data.phrasebook.lexicon import lexicon
from mt.data.phrasebook.slots import Construction
from mt.data.phrasebook.split import EVERYDAY_COPIES, GLOSSARY_COPIES, REMAINING_USES, constructions
from mt.errors import DataError

DIGEST = "68a3ba40dcbcae6ecd692207e6f53b72afe96ac27cd60731854eecc5b8f8755a"


@cache
def by_name() -> dict[str, Construction]:
    return {construction.name: construction for construction in constructions()}


@cache
def train() -> tuple[PhrasePair, ...]:
    return tuple(generate(60_000, seed=1, held_out=False))


@cache
def unseen() -> tuple[PhrasePair, ...]:
    return tuple(generate(2_000, seed=1, held_out=True))


def held_in(pair: PhrasePair) -> list[str]:
    return [lemma for lemma in pair.lemmas if (lemma, pair.construction) in held_out_pairs()]


def word_forms(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", text)


def test_the_english_decides_the_german() -> None:
    known: dict[str, str] = {}
    for pair in (*generate(20_000, seed=7, held_out=False), *train(), *unseen()):
        assert known.setdefault(pair.english, pair.german) == pair.german


def test_training_has_no_held_out_combination_and_every_test_sentence_has_one() -> None:
    assert not [pair for pair in train() if held_in(pair)]
    assert not [pair for pair in unseen() if not held_in(pair)]


def test_every_word_form_of_the_test_is_learned_somewhere() -> None:
    for side in ("english", "german"):
        learned = {word for pair in train() for word in word_forms(getattr(pair, side))}
        assert {word for pair in unseen() for word in word_forms(getattr(pair, side))} <= learned


def test_each_form_of_a_held_out_lemma_stays_in_other_constructions() -> None:
    stays = Counter(
        form
        for construction in constructions()
        for form in construction.filling.forms
        if (form[0], construction.name) not in held_out_pairs()
    )
    for construction in constructions():
        for lemma, form in construction.filling.forms:
            if (lemma, construction.name) in held_out_pairs():
                assert stays[lemma, form] >= REMAINING_USES, (lemma, form, construction.name)


def test_most_words_of_a_kind_stay_where_one_is_held_out() -> None:
    """Who has seen no drink ordered but tea cannot know that coffee can be."""
    categories = {noun.lemma: category for category, nouns in lexicon().nouns.items() for noun in nouns}
    for construction in constructions():
        nouns = {lemma for lemma, _ in construction.filling.forms if lemma in categories}
        uses = Counter(categories[lemma] for lemma in nouns)
        held = Counter(categories[lemma] for lemma in nouns if (lemma, construction.name) in held_out_pairs())
        assert all(8 * count <= uses[category] for category, count in held.items()), construction.name


def test_the_lemmas_of_a_filling_are_those_that_its_slots_declare() -> None:
    for pair in (*train(), *unseen()):
        declared = {lemma for lemma, _ in by_name()[pair.construction].filling.forms}
        assert set(pair.lemmas) <= declared, pair


def test_about_a_tenth_of_the_combinations_is_held_out_and_some_in_each_construction() -> None:
    combinations = {(lemma, c.name) for c in constructions() for lemma, _ in c.filling.forms}
    assert 0.08 <= len(held_out_pairs()) / len(combinations) <= 0.10
    assert {name for _, name in held_out_pairs()} == {construction.name for construction in constructions()}


def test_every_lemma_is_seen_often_enough() -> None:
    seen = Counter(lemma for pair in train() for lemma in set(pair.lemmas))
    lemmas = {lemma for construction in constructions() for lemma, _ in construction.filling.forms}
    assert len(lemmas) >= 400
    assert not {lemma: seen[lemma] for lemma in lemmas if seen[lemma] < 30}


def test_a_lemma_has_one_entry() -> None:
    tables = [noun.lemma for nouns in lexicon().nouns.values() for noun in nouns]
    tables += [verb.lemma for verb in (*lexicon().verbs, *lexicon().giving, *lexicon().happening)]
    tables += [adjective.lemma for adjective in lexicon().adjectives]
    assert [lemma for lemma, count in Counter(tables).items() if count > 1] == []


def test_the_constructions_take_turns() -> None:
    counts = Counter(pair.construction for pair in unseen())
    weights = {construction.name: construction.weight for construction in constructions()}
    counts_by_weight = [counts[name] / weight for name, weight in weights.items()]
    assert set(counts) == set(weights) and len(weights) == len(constructions()) == 38
    assert max(counts_by_weight) - min(counts_by_weight) <= 1


def test_there_are_millions_of_pairs_and_a_filling_is_a_sentence_of_its_own() -> None:
    assert sum(construction.filling.size for construction in constructions()) >= 1_000_000
    directions = by_name()["directions"].filling
    places = len(lexicon().nouns["venue"]) * (1 + len(lexicon().adjectives_for("venue")))
    places += len(lexicon().nouns["landmark"]) * (1 + len(lexicon().adjectives_for("landmark")))
    assert directions.size == 6 * places  # two ways to ask where it is, four to ask the way
    english = [pair.english for pair in train()]
    assert len(set(english)) == len(english)


def test_sentences_are_short_and_written_as_a_person_writes() -> None:
    for pair in (*train(), *unseen()):
        for side in (pair.english, pair.german):
            assert len(side.split()) <= 15
            assert re.fullmatch(r"[A-ZÄÖÜ]\S*( \S+)*[.?]", side), side
        assert pair.english[-1] == pair.german[-1]


def test_the_same_arguments_give_the_same_pairs_and_another_seed_others() -> None:
    first = list(generate(500, seed=3, held_out=True))
    assert first == list(generate(500, seed=3, held_out=True))
    assert first != list(generate(500, seed=4, held_out=True))


def test_everyday_phrases_are_no_sentences_of_the_grammar() -> None:
    phrases = everyday()
    assert len(dict(phrases)) == len(phrases)
    assert not dict(phrases).keys() & {pair.english for pair in (*train(), *unseen())}


def test_asking_for_more_than_a_construction_has_goes_on_with_the_others() -> None:
    pairs = list(generate(12_000, seed=0, held_out=True))
    counts = Counter(pair.construction for pair in pairs)
    assert len({pair.english for pair in pairs}) == 12_000
    assert min(counts.values()) > 0


def test_the_files_are_disjoint_and_hold_what_they_say(tmp_path: Path) -> None:
    write(tmp_path / "corpus", train=600, valid=40, test=90, seed=5)
    rows = {
        name: [line.split("\t") for line in (tmp_path / "corpus" / name).read_text(encoding="utf-8").splitlines()]
        for name in ("train.tsv", "valid.tsv", "test.tsv")
    }
    phrases = [row for row in rows["train.tsv"] if row[2] == "everyday"]
    assert Counter(tuple(row[:2]) for row in phrases) == dict.fromkeys(everyday(), EVERYDAY_COPIES)
    entries = [row for row in rows["train.tsv"] if row[2] == "glossary"]
    assert len(entries) == GLOSSARY_COPIES * len(glossary())
    assert ["an exhibition", "eine Ausstellung", "glossary"] in entries
    rows["train.tsv"] = [row for row in rows["train.tsv"] if row[2] not in ("everyday", "glossary")]
    assert {name: len(found) for name, found in rows.items()} == {"train.tsv": 600, "valid.tsv": 40, "test.tsv": 90}
    english = [row[0] for found in rows.values() for row in found]
    assert len(set(english)) == len(english)
    expected = {pair.english: pair for pair in generate(620, seed=5, held_out=False)}
    unknown = {pair.english: pair for pair in generate(110, seed=5, held_out=True)}
    assert {row[0] for row in rows["train.tsv"]} <= set(expected)
    assert {row[0] for row in rows["test.tsv"]} <= set(unknown)
    assert sum(row[0] in unknown for row in rows["valid.tsv"]) == 20
    for row in (row for found in rows.values() for row in found):
        pair = (expected | unknown)[row[0]]
        assert row == [pair.english, pair.german, pair.construction]


def test_asking_for_more_than_there_is_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    directions = by_name()["directions"]
    monkeypatch.setattr("mt.data.phrasebook.split.constructions", lambda: (directions,))
    with pytest.raises(DataError, match="the phrasebook cannot generate 50000 pairs"):
        list(generate(50_000, seed=0, held_out=False))


def test_equal_arguments_give_the_pairs_of_earlier_versions() -> None:
    """Published scores depend on the corpus: a changed word or rule changes the digest."""
    content = hashlib.sha256()
    for held_out in (False, True):
        for pair in generate(500, seed=1, held_out=held_out):
            content.update(f"{pair.english}\t{pair.german}\t{pair.construction}\n".encode())
    assert content.hexdigest() == DIGEST
