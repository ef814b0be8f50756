"""Sampling and split of the embedded corpus, the sentences of a traveller in English and German.

The English sentence determines the German one, so that exact match is a fair metric. The split holds out combinations:
a hash selects (lemma, construction) pairs that never occur in training, and every test sentence contains one. For each
held-out pair, the training set has every form of the lemma in at least three other constructions. It also has at least
seven of eight words of the same kind in this construction: a model can know that coffee is ordered only if it has seen
other ordered drinks. The pairs do not depend on the seed of a sample, so that samples of different seeds can be
combined.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import islice
from math import ceil
from pathlib import Path
from random import Random

from mt.data.phrasebook import clauses, scenes
from mt.data.phrasebook.everyday import everyday
from mt.data.phrasebook.glossary import glossary
from mt.data.phrasebook.lexicon import lexicon
from mt.data.phrasebook.slots import Construction, lemmas_of
from mt.errors import DataError

HELD_OUT_SHARE = 0.09
WORDS_PER_HELD_OUT = 8  # at most one of this number of words of a kind is held out in a construction
REMAINING_USES = 3  # minimum number of training constructions with each form of a held-out lemma
SPLIT_NAME = "phrasebook split 2"
GLOSSARY_COPIES = 4
EVERYDAY_COPIES = 12  # several, because no grammar rule helps a model to learn fixed phrases
PATIENCE = 1000  # consecutive draws without a new sentence after which a construction counts as exhausted


@dataclass(frozen=True)
class PhrasePair:
    """An English sentence, its German translation, and the construction and lemmas of both."""

    english: str
    german: str
    construction: str
    lemmas: tuple[str, ...]


@cache
def constructions() -> tuple[Construction, ...]:
    """Return all constructions, in the order of the tables that report on them."""
    grammar = (*clauses.main_clauses(), *clauses.questions(), *clauses.subordinate_clauses())
    return (*grammar, *scenes.requests(), *scenes.things(), *scenes.travel())


def generate(count: int, *, seed: int, held_out: bool) -> Iterator[PhrasePair]:
    """Yield `count` different pairs, alternating between constructions. Equal arguments give equal pairs.

    If `held_out` is true, each pair contains a held-out combination, otherwise none does. Raises: DataError if the
    grammar has fewer pairs.
    """
    random = Random(f"{seed} {held_out}")
    open_constructions = list(constructions())
    seen: set[str] = set()
    while open_constructions:
        for construction in [item for item in open_constructions for _ in range(item.weight)]:
            if len(seen) == count:
                return
            if construction not in open_constructions:
                continue
            pair = _draw(construction, random, held_out, seen)
            if pair is None:
                open_constructions.remove(construction)
            else:
                seen.add(pair.english)
                yield pair
    raise DataError(
        f"{count} pairs of the phrasebook with held_out={held_out} are required; accepted: at most {len(seen)}"
    )


def write(folder: Path, *, train: int, valid: int, test: int, seed: int) -> None:
    """Write train.tsv, valid.tsv and test.tsv: tab-separated English, German and construction, in UTF-8.

    Half of the validation pairs contain a held-out combination; the other half are new sentences without one. No
    sentence is in two files. In addition to `train` pairs, train.tsv has several copies of the everyday phrases and of
    the glossary.
    """
    known = generate(train + valid // 2, seed=seed, held_out=False)
    unknown = generate(test + valid - valid // 2, seed=seed, held_out=True)
    folder.mkdir(parents=True, exist_ok=True)
    files = {"train.tsv": list(islice(known, train)), "test.tsv": list(islice(unknown, test))}
    files["valid.tsv"] = [*known, *unknown]
    files["train.tsv"] += [PhrasePair(*phrase, "everyday", ()) for phrase in everyday()] * EVERYDAY_COPIES
    files["train.tsv"] += [PhrasePair(*phrase, "glossary", ()) for phrase in glossary()] * GLOSSARY_COPIES
    for name, pairs in files.items():
        Random(f"{seed} {name}").shuffle(pairs)
        lines = [f"{pair.english}\t{pair.german}\t{pair.construction}\n" for pair in pairs]
        (folder / name).write_text("".join(lines), encoding="utf-8")


@cache
def held_out_pairs() -> frozenset[tuple[str, str]]:
    """Return the held-out (lemma, construction) pairs: a share HELD_OUT_SHARE of the lemmas of each construction.

    Lemmas are selected in the order of a hash. A lemma is skipped if one of its forms would remain in fewer than
    REMAINING_USES constructions, or if more than one of WORDS_PER_HELD_OUT lemmas of its kind would be held out.
    """
    kinds = _kinds()
    held: set[tuple[str, str]] = set()
    left = Counter(form for construction in constructions() for form in construction.filling.forms)
    for construction in constructions():
        uses: dict[str, list[str]] = {}
        for lemma, form in construction.filling.forms:
            uses.setdefault(lemma, []).append(form)
        wanted = max(2, ceil(HELD_OUT_SHARE * len(uses)))
        alike = Counter(kinds.get(lemma, "verb") for lemma in uses)
        held_of = Counter[str]()
        for lemma in sorted(uses, key=lambda lemma: _hash(f"{SPLIT_NAME}/{construction.name}/{lemma}")):
            forms = [(lemma, form) for form in uses[lemma]]
            kind = kinds.get(lemma, "verb")
            room = held_of[kind] < alike[kind] // WORDS_PER_HELD_OUT
            if wanted and room and all(left[form] > REMAINING_USES for form in forms):
                wanted -= 1
                held_of[kind] += 1
                left.subtract(forms)
                held.add((lemma, construction.name))
    return frozenset(held)


def _kinds() -> dict[str, str]:
    """Return a dict from the lemmas of nouns and adjectives to their kinds. All other lemmas are verbs."""
    nouns = {noun.lemma: kind for kind, nouns in lexicon().nouns.items() for noun in nouns}
    return {**dict.fromkeys((adjective.lemma for adjective in lexicon().adjectives), "adjective"), **nouns}


def _hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()


def _draw(construction: Construction, random: Random, held_out: bool, seen: set[str]) -> PhrasePair | None:
    """Return a random pair whose English is not in `seen`, or None if PATIENCE draws give none.

    If `held_out` is true, the pair contains a held-out combination, otherwise none.
    """
    held = held_out_pairs()
    for _ in range(PATIENCE):
        filling = construction.filling.draw(random)
        lemmas = lemmas_of(filling)
        if any((lemma, construction.name) in held for lemma in lemmas) != held_out:
            continue
        english, german = construction.render(*filling)
        if english not in seen:
            return PhrasePair(english, german, construction.name, lemmas)
    return None
