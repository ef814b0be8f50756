"""Sentences in any order, arriving at any time, in batches of any size and any mix: one and the same text each."""

import ctypes
from dataclasses import asdict, replace
from random import Random

import pytest

from mt import Translator
from mt.data.corpus import read_lines
from mt.engine.backends.protocol import Dtype
from mt.pipeline.results import ExplainOptions
from mt.text.terms import Terms
from tests.conftest import FROZEN


@pytest.mark.parametrize(("dtype", "threads"), [(Dtype.FLOAT32, 1), (Dtype.INT8, 1), (Dtype.INT8, 2)])
def test_translations_do_not_depend_on_their_neighbours(library: ctypes.CDLL, dtype: Dtype, threads: int) -> None:
    translator = Translator.load(FROZEN, "cpu", dtype, threads)
    beam = replace(translator.options, beam_size=5)
    terms = Terms((("hotel", "Gasthaus"), ("husband", "Gatte")))
    planners = [
        translator.planner(options=replace(beam, beam_size=1)),
        translator.planner(options=replace(beam, beam_size=2)),
        translator.planner(options=beam),
        translator.planner(options=replace(beam, n_best=4)),
        translator.planner(options=replace(beam, no_repeat_ngram=2)),
        translator.planner(options=beam, terms=terms),
        translator.planner(options=replace(beam, beam_size=1), terms=terms),
        translator.planner(options=beam, explain=ExplainOptions(alignment=True)),
    ]
    texts = [line.partition("\t")[0] for line in read_lines(FROZEN.with_name("lines.tsv"))]
    texts = [text for text in texts if "hotel" in text][:3] + texts[:9]
    pairs = [(planner, text) for planner in planners for text in texts]
    alone = [translator.run(planner, [text])[0] for planner, text in pairs]
    for seed in range(3):
        order = Random(seed).sample(range(len(pairs)), len(pairs))
        tasks = {place: pairs[place][0].task(pairs[place][1]) for place in order}
        translator.dispatcher.run(list(tasks.values()))
        assert [tasks[place].translation() for place in range(len(pairs))] == alone
    assert len({str(asdict(translation)) for translation in alone}) > 3 * len(texts)
