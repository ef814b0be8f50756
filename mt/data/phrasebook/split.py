"""Generation of the training, validation and test sets of the embedded corpus.

Each English sentence has exactly one German translation, so that exact match is a fair metric. A hash selects
combinations of a lemma and a construction that never occur in training; they are called held out. Each test sentence
contains a held-out combination. For each such combination, every form of the lemma occurs in at least three other
constructions of the training set. In the same construction, the training set has at least seven of eight lemmas of the
same category. If "coffee" is held out from orders, for example, a model must learn from other drinks that coffee can be
ordered. The held-out combinations do not depend on the seed, so that sentences that were generated with different seeds
can be combined.
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
WORDS_PER_HELD_OUT = 8  # at most one of this number of words of a category is held out in a construction
REMAINING_USES = 3  # minimum number of training constructions with each form of a held-out lemma
SPLIT_NAME = "phrasebook split 2"
GLOSSARY_COPIES = 4
EVERYDAY_COPIES = 12  # several, because no grammar rule helps a model to learn fixed phrases
PATIENCE = 1000  # consecutive draws without a new sentence after which a construction counts as exhausted


@dataclass(frozen=True)
class PhrasePair:
    """An English sentence, its German translation, the name of its construction, and its lemmas."""

    english: str
    german: str
    construction: str
    lemmas: tuple[str, ...]


@cache
def constructions() -> tuple[Construction, ...]:
    """Return all constructions, in the order in which reports list them."""
    grammar = (*clauses.main_clauses(), *clauses.questions(), *clauses.subordinate_clauses())
    return (*grammar, *scenes.requests(), *scenes.things(), *scenes.travel())


def generate(count: int, *, seed: int, held_out: bool) -> Iterator[PhrasePair]:
    """Yield `count` different pairs, of each construction in turn. Equal arguments give equal pairs.

    If `held_out` is true, each pair contains a held-out combination, otherwise none does. Raises: DataError if the
    grammar cannot generate so many pairs.
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
        f"the phrasebook cannot generate {count} pairs with held_out={held_out}; accepted: at most {len(seen)}"
    )


def write(folder: Path, *, train: int, valid: int, test: int, seed: int) -> None:
    """Write train.tsv, valid.tsv and test.tsv, with the tab-separated columns English, German and construction.

    `train`, `valid` and `test` are the numbers of pairs. Half of the validation pairs contain a held-out combination.
    No sentence is in two files. In addition to `train` pairs, train.tsv has several copies of the everyday phrases and
    of the glossary.
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
    """Return the held-out combinations as (lemma, name of the construction).

    For each construction, a fraction HELD_OUT_SHARE of the lemmas is selected, in the order of a hash. A lemma is
    skipped if training would have one of its forms in fewer than REMAINING_USES constructions, or if more than
    1 / WORDS_PER_HELD_OUT of the lemmas of its category would be held out.
    """
    categories = _categories()
    held: set[tuple[str, str]] = set()
    left = Counter(form for construction in constructions() for form in construction.filling.forms)
    for construction in constructions():
        uses: dict[str, list[str]] = {}
        for lemma, form in construction.filling.forms:
            uses.setdefault(lemma, []).append(form)
        wanted = max(2, ceil(HELD_OUT_SHARE * len(uses)))
        alike = Counter(categories.get(lemma, "verb") for lemma in uses)
        held_of = Counter[str]()
        for lemma in sorted(uses, key=lambda lemma: _hash(f"{SPLIT_NAME}/{construction.name}/{lemma}")):
            forms = [(lemma, form) for form in uses[lemma]]
            category = categories.get(lemma, "verb")
            room = held_of[category] < alike[category] // WORDS_PER_HELD_OUT
            if wanted and room and all(left[form] > REMAINING_USES for form in forms):
                wanted -= 1
                held_of[category] += 1
                left.subtract(forms)
                held.add((lemma, construction.name))
    return frozenset(held)


def _categories() -> dict[str, str]:
    """Return the category of each noun and adjective, by lemma. Lemmas that are not in the result are verbs."""
    nouns = {noun.lemma: category for category, nouns in lexicon().nouns.items() for noun in nouns}
    return {**dict.fromkeys((adjective.lemma for adjective in lexicon().adjectives), "adjective"), **nouns}


def _hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()


def _draw(construction: Construction, random: Random, held_out: bool, seen: set[str]) -> PhrasePair | None:
    """Return a random pair whose English sentence is not in `seen`, or None if PATIENCE attempts fail.

    If `held_out` is true, the pair contains a held-out combination, otherwise it contains none.
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
