"""Quality of translations: BLEU, chrF and TER by sacreBLEU (Post 2018), each with its signature.

Report the cased, detokenised scores. `BLEU-lc-moses`, lower-cased and tokenised by Moses, exists only for comparison
with the literature on Multi30k. It is not comparable with cased BLEU.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from mt.errors import DataError, did_you_mean, problems
from mt.languages import likely_script, parse_tag, primary_language

BLEU_TOKENIZERS = {"Hans": "zh", "Hant": "zh", "Jpan": "ja-mecab", "Khmr": "char", "Laoo": "char", "Mymr": "char"}
"""SacreBLEU's tokenizer for each script without spaces between words. Other scripts use 13a."""
BLEU_TOKENIZERS |= {"Thai": "char"}

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
    """All scores of one set of translations."""

    sentences: int
    scores: tuple[Score, ...]
    exact_match: ExactMatch

    def __getitem__(self, name: str) -> Score:
        """Return the score with this name.

        Raises:
            KeyError: The score was not computed.
        """
        for score in self.scores:
            if score.name == name:
                return score
        raise KeyError(name)

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
class ConfidenceBin:
    """Group of sentences with similar confidence: their number, mean confidence and mean chrF / 100."""

    sentences: int
    confidence: float
    chrf: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """Agreement of confidence with chrF: Spearman's rank correlation and the expected calibration error.

    The correlation is 0 if confidence or chrF is constant. `error` is the mean of |confidence - chrf| over `bins`,
    weighted by the number of sentences.
    """

    spearman: float
    error: float
    bins: tuple[ConfidenceBin, ...]


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """A translation with its reference and its chrF2. `index` is the number of the sentence, from 0."""

    index: int
    source: str
    hypothesis: str
    reference: str
    chrf: float


def evaluate(
    hypotheses: Sequence[str], references: Sequence[str], *, target_language: str, tokenize: str | None = None
) -> Report:
    """Return the scores `BLEU`, `chrF2`, `TER` and, except for Chinese and Japanese, `BLEU-lc-moses`.

    `tokenize` is the name of a tokenizer of sacreBLEU's BLEU. If it is None, the script of the target language
    determines the tokenizer.

    Raises:
        DataError: The lists differ in length or are empty, or `tokenize` is unknown or not installed.
    """
    _must_align({"hypotheses": hypotheses}, references)
    tokenize = resolve_tokenizer(tokenize, target_language)
    asian = likely_script(target_language) in ASIAN_SCRIPTS
    metrics: dict[str, BLEU | CHRF | TER] = {
        "BLEU": BLEU(tokenize=tokenize),
        "chrF2": CHRF(),
        "TER": TER(case_sensitive=True, normalized=asian, asian_support=asian),
    }
    scores = []
    for name, metric in metrics.items():
        value = metric.corpus_score(hypotheses, [references]).score
        scores.append(Score(name, value, str(metric.get_signature())))
    if not asian:
        scores.append(lowercased_moses_bleu(hypotheses, references, target_language))
    return Report(len(references), tuple(scores), exact_match(hypotheses, references))


def bleu(hypotheses: Sequence[str], references: Sequence[str], *, target_language: str) -> Score:
    """Return cased, detokenised BLEU. Training chooses the best checkpoint by this score.

    Raises:
        DataError: The lists differ in length or are empty.
    """
    _must_align({"hypotheses": hypotheses}, references)
    metric = BLEU(tokenize=resolve_tokenizer(None, target_language))
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return Score("BLEU", score.score, str(metric.get_signature()))


def resolve_tokenizer(tokenize: str | None, target_language: str) -> str:
    """Return the name of sacreBLEU's tokenizer: `tokenize`, or if it is None, the one for the language's script.

    Raises:
        DataError: `tokenize` is unknown or not installed.
    """
    if tokenize is None:
        usual = BLEU_TOKENIZERS.get(likely_script(target_language), "13a")
        return "char" if usual == "ja-mecab" and not find_spec("MeCab") else usual
    if tokenize not in BLEU.TOKENIZERS:
        raise DataError(
            f"tokenize is {tokenize!r}{did_you_mean(tokenize, BLEU.TOKENIZERS)}; "
            f"accepted: {', '.join(sorted(BLEU.TOKENIZERS))}"
        )
    try:
        BLEU(tokenize=tokenize)
    except (RuntimeError, OSError) as error:  # a package that is not installed, a model that cannot be fetched
        reason = " ".join(str(error).split())
        raise DataError(
            f"tokenize {tokenize!r} cannot be used here: {reason}; accepted: another tokenizer, such as char"
        ) from error
    return tokenize


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


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> ExactMatch:
    """Count the hypotheses that equal their reference.

    Raises:
        DataError: The lists differ in length or are empty.
    """
    _must_align({"hypotheses": hypotheses}, references)
    return ExactMatch(sum(map(_same, hypotheses, references)), len(references))


def exact_match_by_group(
    hypotheses: Sequence[str], references: Sequence[str], groups: Sequence[str]
) -> dict[str, ExactMatch]:
    """Return the `exact_match` of each group of sentences, in alphabetical order.

    `groups` is the group of each sentence.

    Raises:
        DataError: The lists differ in length or are empty.
    """
    _must_align({"hypotheses": hypotheses, "groups": groups}, references)
    sentences = Counter(groups)
    exact = Counter(group for group, *pair in zip(groups, hypotheses, references, strict=True) if _same(*pair))
    return {group: ExactMatch(exact[group], sentences[group]) for group in sorted(sentences)}


def paired_bootstrap(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[str],
    *,
    target_language: str,
    tokenize: str | None = None,
    samples: int = 1000,
) -> tuple[Comparison, ...]:
    """Test whether two systems differ in BLEU and chrF2, by paired bootstrap resampling (Koehn 2004, as in sacreBLEU).

    Each of the `samples` resamples has the same sentences for both systems. The seed is the fixed one of sacreBLEU.

    Raises:
        DataError: The lists differ in length or are empty, or `tokenize` is unknown or not installed.
    """
    _must_align({"baseline": baseline, "system": system}, references)
    metrics = {"BLEU": BLEU(tokenize=resolve_tokenizer(tokenize, target_language)), "chrF2": CHRF()}
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
    metric = BLEU(tokenize=resolve_tokenizer(None, target_language), effective_order=True)
    pairs = zip(hypotheses, references, strict=True)
    return [metric.sentence_score(hypothesis, [reference]).score for hypothesis, reference in pairs]


def reliability(confidence: Sequence[float], chrf: Sequence[float], bins: int = 10) -> Reliability:
    """Measure how well `confidence`, from 0 to 1, predicts `chrf`, the chrF of the same sentences from 0 to 100.

    The sentences are sorted by confidence and divided into `bins` bins of equal size.

    Raises:
        DataError: The lists differ in length or are empty.
    """
    _must_align({"confidence": confidence}, chrf)
    sure, quality = np.array(confidence), np.array(chrf) / 100
    parts = [part for part in np.array_split(np.argsort(sure, kind="stable"), bins) if len(part)]
    rows = tuple(ConfidenceBin(len(part), float(sure[part].mean()), float(quality[part].mean())) for part in parts)
    error = sum(row.sentences * abs(row.confidence - row.chrf) for row in rows) / len(sure)
    ranks = _ranks(sure), _ranks(quality)
    varied = all(values.std() > 0 for values in ranks)
    return Reliability(float(np.corrcoef(ranks[0], ranks[1])[0, 1]) if varied else 0.0, error, rows)


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


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank of each value, from 0. Equal values get the mean of their ranks."""
    _, number, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = np.cumsum(count) - (count + 1) / 2
    return ranks[number]


def _same(hypothesis: str, reference: str) -> bool:
    return hypothesis.strip() == reference.strip()


def _must_align(lines: Mapping[str, Sequence[object]], references: Sequence[object]) -> None:
    if not references:
        raise DataError("there are no references to score against; accepted: at least one")
    wrong = [f"{name}: {len(values)}" for name, values in lines.items() if len(values) != len(references)]
    if wrong:
        heading = f"the numbers of lines differ; accepted: {len(references)}, the number of references"
        raise DataError(problems(heading, wrong))
