"""On 1,000 captions in float32, the kernels find what the readable reference finds. Prints how many sentences differ.

`MT_TEST_MODEL=mt/bundled/starter MT_TEST_CORPORA=DIR python -m pytest -s -m slow THIS_FILE`
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from mt import Translator
from mt.data.corpus import read_lines
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions
from mt.engine.requests import Request
from mt.pipeline.constraint_compiler import ConstraintCompiler, RequiredTerm

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("MT_TEST_MODEL") or not os.environ.get("MT_TEST_CORPORA"),
        reason="MT_TEST_CORPORA (real corpora) and MT_TEST_MODEL (an en-de model) are not both set",
    ),
]

TIE = 1e-4
"""Largest difference of the scores of two hypotheses that count as equal."""


@dataclass(frozen=True)
class Setting:
    """Search options, and what else is asked for: a prefix of ids of the reference translation, terms of it."""

    options: SearchOptions
    prefix: int = 0
    terms: int = 0


BEAM = SearchOptions(beam_size=5)
SETTINGS = {
    "beam 1": Setting(replace(BEAM, beam_size=1)),
    "beam 2": Setting(replace(BEAM, beam_size=2)),
    "beam 5": Setting(BEAM),
    "5 best": Setting(replace(BEAM, n_best=5)),
    "prefix": Setting(BEAM, prefix=4),
    "no repeated bigram": Setting(replace(BEAM, no_repeat_ngram=2)),
    "terms": Setting(replace(BEAM, beam_size=16), terms=1),
    "terms, no repeated bigram": Setting(replace(BEAM, beam_size=16, no_repeat_ngram=2), terms=2),
}


@pytest.fixture(scope="module")
def backends() -> tuple[Translator, Translator]:
    model = os.environ["MT_TEST_MODEL"]
    return Translator.load(model, "cpu", "float32"), Translator.load(model, "cpu", "float32", backend="torch")


def lines(language: str) -> list[str]:
    return list(read_lines(Path(os.environ["MT_TEST_CORPORA"]) / "multi30k" / f"test_2016_flickr.{language}.gz"))


def requests(translator: Translator, setting: Setting) -> list[Request]:
    random, compiler = Random(0), ConstraintCompiler(translator.tokenizer.target)
    wanted = []
    for source, target in zip(lines("en"), lines("de"), strict=True):
        options = replace(setting.options, length_penalty=translator.options.length_penalty)
        request = translator.request(source, source="en", target="de", options=options)
        assert request is not None
        words = sorted(set(re.findall(r"\w{5,}", target)))
        chosen = random.sample(words, min(len(words), setting.terms))
        terms = [RequiredTerm(word, 1, repeatable=True) for word in chosen]
        wanted.append(
            replace(
                request,
                prefix=(*request.prefix, *translator.tokenizer.target.encode(target)[: setting.prefix]),
                constraints=compiler.compile(terms, [], "de", 30) if terms else None,
            )
        )
    return wanted


def decode(translator: Translator, wanted: Sequence[Request]) -> list[tuple[Hypothesis, ...]]:
    for request in wanted:
        translator.engine.submit(request)
    found = {result.id: result for result in translator.engine.drain()}
    assert not any(result.problem for result in found.values())
    return [found[request.id].hypotheses for request in wanted]


def is_tie(found: Sequence[Hypothesis], expected: Sequence[Hypothesis]) -> bool:
    """Return whether two lists of hypotheses differ only because two scores are equal, up to rounding."""
    return [one.score for one in found] == pytest.approx([one.score for one in expected], abs=TIE)


@pytest.mark.parametrize("name", SETTINGS)
def test_searches(backends: tuple[Translator, Translator], name: str) -> None:
    kernels, reference = backends
    wanted = requests(kernels, SETTINGS[name])
    found, expected = decode(kernels, wanted), decode(reference, wanted)
    different = [
        number
        for number, (ours, theirs) in enumerate(zip(found, expected, strict=True))
        if [one.tokens for one in ours] != [one.tokens for one in theirs]
    ]
    ties = [number for number in different if is_tie(found[number], expected[number])]
    print(f"\n{name}: {len(wanted)} sentences, {len(different)} different: {different}, of which ties: {ties}")
    assert len(wanted) == 1000 and different == ties
    assert len(ties) < 50 and sum(map(bool, expected)) > 950
    for number in set(range(1000)) - set(ties):
        scores = [[one.score for one in hypotheses[number]] for hypotheses in (found, expected)]
        assert scores[0] == pytest.approx(scores[1], abs=TIE)


def test_attention(backends: tuple[Translator, Translator]) -> None:
    kernels, reference = backends
    wanted = requests(kernels, SETTINGS["beam 2"])
    pairs = [
        (request.source, hypotheses[0].tokens)
        for request, hypotheses in zip(wanted, decode(kernels, wanted), strict=True)
    ]
    largest = 0.0
    for begin in range(0, len(pairs), 50):
        weights = [one.attention.attend(pairs[begin : begin + 50]) for one in (kernels, reference)]
        largest = max(largest, *(float(np.abs(ours - theirs).max()) for ours, theirs in zip(*weights, strict=True)))
    print(f"\nattention: {len(pairs)} sentences, largest difference of a weight {largest:.1e}")
    assert len(pairs) == 1000 and largest < 1e-4


def test_links_of_translations(backends: tuple[Translator, Translator]) -> None:
    found, expected = (
        one.translate_many(lines("en"), source="en", target="de", options=replace(BEAM, beam_size=2), alignment=True)
        for one in backends
    )
    different = [
        number
        for number, (ours, theirs) in enumerate(zip(found, expected, strict=True))
        if [one.links for one in ours.sentences] != [one.links for one in theirs.sentences]
    ]
    print(f"\nalignment: {len(found)} sentences, {len(different)} different: {different}")
    assert len(different) <= 2
