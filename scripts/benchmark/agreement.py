"""Count the sentences in which the compiled kernels and the readable reference in torch differ, in float32.

    python -m scripts.benchmark.agreement MODEL SOURCE TARGET --from en --to de

Hypotheses whose scores differ by `TIE` at most count as ties. The exit status is 1 if others differ.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np

from mt import Translator
from mt.data.corpus import read_lines
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions
from mt.engine.requests import Request
from mt.pipeline.constraint_compiler import ConstraintCompiler, RequiredTerm

TIE = 1e-4  # largest difference of the scores of two hypotheses that count as equal
PASS = 50  # pairs whose attention is computed together


@dataclass(frozen=True)
class SearchSetting:
    """Search options, the ids of the reference translation that a translation begins with, and required words of it."""

    options: SearchOptions
    prefix: int = 0
    terms: int = 0


BEAM = SearchOptions(beam_size=5)
SETTINGS = {
    "beam 1": SearchSetting(replace(BEAM, beam_size=1)),
    "beam 2": SearchSetting(replace(BEAM, beam_size=2)),
    "beam 5": SearchSetting(BEAM),
    "5 best": SearchSetting(replace(BEAM, n_best=5)),
    "prefix": SearchSetting(BEAM, prefix=4),
    "no repeated bigram": SearchSetting(replace(BEAM, no_repeat_ngram=2)),
    "terms": SearchSetting(replace(BEAM, beam_size=16), terms=1),
    "terms, no repeated bigram": SearchSetting(replace(BEAM, beam_size=16, no_repeat_ngram=2), terms=2),
}


def requests_of(translator: Translator, options: argparse.Namespace, setting: SearchSetting) -> list[Request]:
    random, compiler = Random(0), ConstraintCompiler(translator.tokenizer.target)
    search = replace(setting.options, length_penalty=translator.options.length_penalty)
    requests = []
    for source, target in zip(read_lines(options.sources), read_lines(options.targets), strict=True):
        request = translator.request(source, source=options.source, target=options.target, options=search)
        if request is None:  # without text
            continue
        words = sorted(set(re.findall(r"\w{5,}", target)))
        chosen = random.sample(words, min(len(words), setting.terms))
        terms = [RequiredTerm(word, 1, repeatable=True) for word in chosen]
        prefix = (*request.prefix, *translator.tokenizer.target.encode(target)[: setting.prefix])
        constraints = compiler.compile(terms, [], options.target, 30) if terms else None
        requests.append(replace(request, prefix=prefix, constraints=constraints))
    return requests


def decode(translator: Translator, requests: Sequence[Request]) -> list[tuple[Hypothesis, ...]]:
    for request in requests:
        translator.engine.submit(request)
    results = {result.id: result.hypotheses for result in translator.engine.drain()}
    return [results[request.id] for request in requests]


def is_tie(ours: Sequence[Hypothesis], theirs: Sequence[Hypothesis]) -> bool:
    return len(ours) == len(theirs) and all(abs(a.score - b.score) <= TIE for a, b in zip(ours, theirs, strict=True))


def main(argv: Sequence[str]) -> int:
    """Print a line for each setting, and one for the attention weights of given pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("sources", type=Path, metavar="SOURCE", help="text file, or .gz")
    parser.add_argument("targets", type=Path, metavar="TARGET", help="reference translations")
    parser.add_argument("--from", dest="source", required=True, help="language of SOURCE")
    parser.add_argument("--to", dest="target", required=True, help="language of TARGET")
    options = parser.parse_args(argv)
    kernels, reference = (Translator.load(options.model, "cpu", "float32", backend=name) for name in ("cpu", "torch"))
    failed, pairs = False, []
    for name, setting in SETTINGS.items():
        requests = requests_of(kernels, options, setting)
        ours, theirs = decode(kernels, requests), decode(reference, requests)
        compared = list(zip(ours, theirs, strict=True))
        different = [number for number, (a, b) in enumerate(compared) if [x.tokens for x in a] != [x.tokens for x in b]]
        wrong = [number for number, (a, b) in enumerate(compared) if not is_tie(a, b)]
        failed |= bool(wrong)
        print(f"{name}: {len(requests)} sentences, {len(different)} have other tokens; no ties are {wrong or 'none'}")
        pairs = [(request.source, n_best[0].tokens) for request, n_best in zip(requests, ours, strict=True) if n_best]
    largest = 0.0
    for begin in range(0, len(pairs), PASS):
        weights = [translator.attend(pairs[begin : begin + PASS]) for translator in (kernels, reference)]
        largest = max(largest, *(float(np.abs(a - b).max()) for a, b in zip(*weights, strict=True)))
    print(f"attention: {len(pairs)} pairs, largest difference of a weight {largest:.1e}")
    return 1 if failed or largest > TIE else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
