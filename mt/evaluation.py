"""Quality of translations: BLEU, chrF and TER by sacreBLEU (Post 2018), each with its signature.

Report the cased, detokenised scores. `BLEU-lc-moses`, lower-cased and tokenised by Moses, exists only for comparison
with the literature on Multi30k. It is not comparable with cased BLEU.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from mt.errors import DataError, problems
from mt.languages import likely_script, parse_tag, primary_language

BLEU_TOKENIZERS = {
    "Hans": "zh",
    "Hant": "zh",
    "Jpan": "ja-mecab",
    **dict.fromkeys(("Khmr", "Laoo", "Mymr", "Thai"), "char"),
}
"""SacreBLEU's tokenizer for each script without spaces between words. Other scripts use 13a."""

ASIAN_SCRIPTS = ("Hans", "Hant", "Jpan")
"""Scripts for which TER needs the option `asian_support`, and which the Moses tokenizer does not support."""


@dataclass(frozen=True, slots=True)
class Score:
    """Score of a whole test set from 0 to 100, with the signature of the metric.

    TER is the number of edits per 100 words, and can be higher.
    """

    name: str
    value: float
    signature: str


@dataclass(frozen=True, slots=True)
class ExactMatch:
    """Number of sentences that equal their reference, ignoring white space at both ends."""

    exact: int
    sentences: int

    @property
    def percent(self) -> float:
        return 100 * self.exact / self.sentences

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "percent": self.percent}


@dataclass(frozen=True, slots=True)
class Report:
    """All scores of one set of translations.

    `length_ratio` is the number of tokens of all translations divided by that of the references. Below 1, BLEU is
    multiplied by `brevity_penalty`.
    """

    sentences: int
    scores: tuple[Score, ...]
    exact_match: ExactMatch
    length_ratio: float
    brevity_penalty: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"exact_match": self.exact_match.to_json()}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Values of one metric for two systems.

    `p_value` is the probability of a difference as large as this if the systems are equally good.
    """

    name: str
    baseline: float
    system: float
    p_value: float
    signature: str


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """A translation with its reference and its chrF2. `index` is the number of the sentence, from 0."""

    index: int
    source: str
    hypothesis: str
    reference: str
    chrf: float


def evaluate(hypotheses: Sequence[str], references: Sequence[str], *, target_language: str) -> Report:
    """Return the scores `BLEU`, `chrF2`, `TER` and, except for Chinese and Japanese, `BLEU-lc-moses`.

    Raises:
        DataError: The lists differ in length or are empty.
    """
    _must_align({"hypotheses": hypotheses}, references)
    asian = likely_script(target_language) in ASIAN_SCRIPTS
    metric = BLEU(tokenize=bleu_tokenizer(target_language))
    words = metric.corpus_score(hypotheses, [references])
    scores = [Score("BLEU", words.score, str(metric.get_signature()))]
    metrics: dict[str, CHRF | TER] = {
        "chrF2": CHRF(),
        "TER": TER(case_sensitive=True, normalized=asian, asian_support=asian),
    }
    for name, other in metrics.items():
        value = other.corpus_score(hypotheses, [references]).score
        scores.append(Score(name, value, str(other.get_signature())))
    if not asian:
        scores.append(lowercased_moses_bleu(hypotheses, references, target_language))
    exact = sum(a.strip() == b.strip() for a, b in zip(hypotheses, references, strict=True))
    match = ExactMatch(exact, len(references))
    return Report(len(references), tuple(scores), match, words.sys_len / max(1, words.ref_len), words.bp)


def bleu(hypotheses: Sequence[str], references: Sequence[str], *, target_language: str) -> Score:
    """Return cased, detokenised BLEU. Training chooses the best checkpoint by this score.

    Raises:
        DataError: The lists differ in length or are empty.
    """
    _must_align({"hypotheses": hypotheses}, references)
    metric = BLEU(tokenize=bleu_tokenizer(target_language))
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return Score("BLEU", score.score, str(metric.get_signature()))


def bleu_tokenizer(target_language: str) -> str:
    """Return the name of sacreBLEU's tokenizer for the script of a language; `char` for Japanese without MeCab."""
    usual = BLEU_TOKENIZERS.get(likely_script(target_language), "13a")
    return "char" if usual == "ja-mecab" and not find_spec("MeCab") else usual


def moses_tokens(sentences: Sequence[str], language: str) -> list[str]:
    """Return sentences in the form in which the literature on Multi30k scores them: tokens joined by single spaces.

    The steps are those of the scripts that come with Multi30k (Elliott et al. 2016): lower-case, normalise punctuation,
    tokenize without splitting at hyphens or escaping. The order matters: the German reference of test_2016_flickr has
    12,103 tokens, as in the literature, only if it is lower-cased first.
    """
    language = primary_language(parse_tag(language))
    sacremoses = import_module("sacremoses")  # imported here because it takes half a second, and `translate` needs none
    normalizer = sacremoses.MosesPunctNormalizer(language)
    tokenizer = sacremoses.MosesTokenizer(language)
    return [
        str(tokenizer.tokenize(normalizer.normalize(sentence.lower()), return_str=True, escape=False))
        for sentence in sentences
    ]


def lowercased_moses_bleu(hypotheses: Sequence[str], references: Sequence[str], target_language: str) -> Score:
    """Return the BLEU of hypotheses and references that are lower-cased and tokenized by `moses_tokens`.

    Raises:
        DataError: The lists differ in length or are empty.
    """
    _must_align({"hypotheses": hypotheses}, references)
    metric = BLEU(lowercase=True, tokenize="none", force=True)
    score = metric.corpus_score(
        moses_tokens(hypotheses, target_language), [moses_tokens(references, target_language)]
    ).score
    language = primary_language(parse_tag(target_language))
    signature = f"{metric.get_signature()}|moses:{language}|sacremoses:{version('sacremoses')}"
    return Score("BLEU-lc-moses", score, signature)


def paired_bootstrap(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[str],
    *,
    target_language: str,
    samples: int = 1000,
) -> tuple[Comparison, ...]:
    """Test whether two systems differ in BLEU and chrF2, by paired bootstrap resampling (Koehn 2004, as in sacreBLEU).

    Each of the `samples` resamples has the same sentences for both systems. The seed is the fixed one of sacreBLEU.

    Raises:
        DataError: The lists differ in length or are empty.
    """
    _must_align({"baseline": baseline, "system": system}, references)
    metrics = {"BLEU": BLEU(tokenize=bleu_tokenizer(target_language)), "chrF2": CHRF()}
    test = PairedTest(
        [("baseline", baseline), ("system", system)], metrics, [references], test_type="bs", n_samples=samples
    )
    signatures, results = test()
    comparisons = []
    for name in metrics:
        before, after = results[name]
        assert not isinstance(before, str)
        assert not isinstance(after, str)
        assert after.p_value is not None
        # For equal systems, sacreBLEU would return the smallest p-value: no resampling has a difference above 0.
        p_value = after.p_value if before.score != after.score else 1.0
        comparisons.append(Comparison(name, before.score, after.score, p_value, str(signatures[name])))
    return tuple(comparisons)


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """Return the chrF2 of each sentence, from 0 to 100.

    Raises:
        DataError: The lists differ in length or are empty.
    """
    _must_align({"hypotheses": hypotheses}, references)
    metric = CHRF()
    pairs = zip(hypotheses, references, strict=True)
    return [metric.sentence_score(hypothesis, [reference]).score for hypothesis, reference in pairs]


def sentence_bleu(hypotheses: Sequence[str], references: Sequence[str], *, target_language: str) -> list[float]:
    """Return the BLEU of each sentence, from 0 to 100. Orders of n-grams that a short sentence lacks are left out.

    Raises:
        DataError: The lists differ in length or are empty.
    """
    _must_align({"hypotheses": hypotheses}, references)
    metric = BLEU(tokenize=bleu_tokenizer(target_language), effective_order=True)
    pairs = zip(hypotheses, references, strict=True)
    return [metric.sentence_score(hypothesis, [reference]).score for hypothesis, reference in pairs]


def worst_sentences(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str], n: int
) -> tuple[ScoredSentence, ...]:
    """Return the `n` sentences with the lowest chrF2, the lowest first.

    Raises:
        DataError: The lists differ in length or are empty.
    """
    _must_align({"sources": sources, "hypotheses": hypotheses}, references)
    scored = [
        ScoredSentence(index, *texts)
        for index, texts in enumerate(
            zip(sources, hypotheses, references, sentence_chrf(hypotheses, references), strict=True)
        )
    ]
    return tuple(sorted(scored, key=lambda sentence: (sentence.chrf, sentence.index))[:n])


def _must_align(lines: Mapping[str, Sequence[object]], references: Sequence[object]) -> None:
    if not references:
        raise DataError("there are no references to score against; accepted: at least one")
    wrong = [f"{name}: {len(values)}" for name, values in lines.items() if len(values) != len(references)]
    if wrong:
        heading = f"the numbers of lines differ; accepted: {len(references)}, the number of references"
        raise DataError(problems(heading, wrong))
