"""How good translations are: BLEU, chrF and TER by sacreBLEU (Post 2018), each figure with its signature.

The figures to report are cased and detokenised. One more, lower-cased and Moses-tokenised, is there only because the
literature of Multi30k reports it; never compare one kind with the other.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from mt.errors import DataError, did_you_mean, problems

WITHOUT_SPACES = frozenset({"ja", "zh"})
"""Languages whose words TER must find without spaces, and to which Moses's tokeniser does not apply."""


@dataclass(frozen=True, slots=True)
class Score:
    """A corpus score, from 0 to 100 (TER: edits for 100 words, so it can be more), and how it was computed."""

    name: str
    value: float
    signature: str


@dataclass(frozen=True, slots=True)
class ExactMatch:
    """How many of `sentences` are the reference, character for character but for white space at the ends."""

    exact: int
    sentences: int

    @property
    def percent(self) -> float:
        return 100 * self.exact / self.sentences

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "percent": self.percent}


@dataclass(frozen=True, slots=True)
class Report:
    """Every score of one set of translations."""

    sentences: int
    scores: tuple[Score, ...]
    exact_match: ExactMatch

    def __getitem__(self, name: str) -> Score:
        """The score of that name; KeyError if it was not computed."""
        for score in self.scores:
            if score.name == name:
                return score
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        return {
            "sentences": self.sentences,
            "scores": [asdict(score) for score in self.scores],
            "exact_match": self.exact_match.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """One score of two systems. `p_value`: how often chance alone would show a difference as large as theirs."""

    name: str
    baseline: float
    system: float
    p_value: float
    signature: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Bin:
    """Sentences of like confidence: how many, and the means of their confidence and of their chrF / 100."""

    sentences: int
    confidence: float
    chrf: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """Confidence beside quality: Spearman's rank correlation, the mean gap over `bins`, and these.

    Where either is the same for all sentences, the correlation is 0.
    """

    spearman: float
    error: float
    bins: tuple[Bin, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """A translation beside its reference; `index` counts from 0, `chrf` is the sentence's chrF2."""

    index: int
    source: str
    hypothesis: str
    reference: str
    chrf: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def evaluate(
    hypotheses: Sequence[str], references: Sequence[str], *, target_language: str, tokenize: str | None = None
) -> Report:
    """`BLEU`, `chrF2`, `TER`, and, where words stand between spaces, `BLEU-lc-moses`: the scores' names.

    `tokenize` is sacreBLEU's name for how BLEU splits words; None chooses by the target language.
    Raises DataError if the two differ in length or are empty, or if `tokenize` cannot be used.
    """
    _must_align({"hypotheses": hypotheses}, references)
    tokenize = checked_tokenizer(tokenize, target_language)
    spaced = _primary(target_language) not in WITHOUT_SPACES
    metrics: dict[str, BLEU | CHRF | TER] = {
        "BLEU": BLEU(tokenize=tokenize),
        "chrF2": CHRF(),
        "TER": TER(case_sensitive=True, normalized=not spaced, asian_support=not spaced),
    }
    scores = []
    for name, metric in metrics.items():
        value = metric.corpus_score(hypotheses, [references]).score
        scores.append(Score(name, value, str(metric.get_signature())))
    if spaced:
        scores.append(lowercased_moses_bleu(hypotheses, references, target_language))
    return Report(len(references), tuple(scores), exact_match(hypotheses, references))


def bleu(hypotheses: Sequence[str], references: Sequence[str], *, target_language: str) -> Score:
    """Cased, detokenised BLEU alone: what training watches."""
    _must_align({"hypotheses": hypotheses}, references)
    metric = BLEU(tokenize=checked_tokenizer(None, target_language))
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return Score("BLEU", score.score, str(metric.get_signature()))


def checked_tokenizer(tokenize: str | None, target_language: str) -> str:
    """`tokenize` if it can be used here, else DataError; for None the usual one of the target language."""
    if tokenize is None:
        language = _primary(target_language)
        japanese = "ja-mecab" if find_spec("MeCab") else "char"
        return {"zh": "zh", "ja": japanese}.get(language, "13a")
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
            f"tokenize {tokenize!r} cannot be used here: {reason}; accepted: others, such as char"
        ) from error
    return tokenize


def moses_tokens(sentences: Sequence[str], language: str) -> list[str]:
    """Sentences as Multi30k's literature tokenises them, tokens joined by single spaces.

    Lower-cased, then punctuation normalised, then tokenised, hyphens kept and nothing escaped: the order of the
    scripts that come with Multi30k (Elliott et al. 2016). The order matters: it is lower-cased first that the German
    reference of test_2016_flickr has the 12,103 tokens of the literature; cased, it has 12,102.
    """
    language = _primary(language)
    normalizer = MosesPunctNormalizer(language)
    tokenizer = MosesTokenizer(language)
    return [
        str(tokenizer.tokenize(normalizer.normalize(sentence.lower()), return_str=True, escape=False))
        for sentence in sentences
    ]


def lowercased_moses_bleu(hypotheses: Sequence[str], references: Sequence[str], target_language: str) -> Score:
    """BLEU of both sides after `moses_tokens`. Raises DataError as `evaluate` does."""
    _must_align({"hypotheses": hypotheses}, references)
    metric = BLEU(lowercase=True, tokenize="none", force=True)
    score = metric.corpus_score(
        moses_tokens(hypotheses, target_language), [moses_tokens(references, target_language)]
    ).score
    signature = f"{metric.get_signature()}|moses:{_primary(target_language)}|sacremoses:{version('sacremoses')}"
    return Score("BLEU-lc-moses", score, signature)


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> ExactMatch:
    """How many hypotheses are their reference. Raises DataError as `evaluate` does."""
    _must_align({"hypotheses": hypotheses}, references)
    return ExactMatch(sum(map(_same, hypotheses, references)), len(references))


def exact_match_by_group(
    hypotheses: Sequence[str], references: Sequence[str], groups: Sequence[str]
) -> dict[str, ExactMatch]:
    """`exact_match` within each group of sentences, groups in alphabetical order. Raises DataError as `evaluate`."""
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
    """Whether two systems differ by more than chance, in BLEU and in chrF2 (Koehn 2004, as in sacreBLEU).

    `samples` resamplings of the sentences, the same for both systems, with sacreBLEU's fixed seed.
    Raises DataError as `evaluate` does.
    """
    _must_align({"baseline": baseline, "system": system}, references)
    metrics = {"BLEU": BLEU(tokenize=checked_tokenizer(tokenize, target_language)), "chrF2": CHRF()}
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
        # sacreBLEU counts resamplings whose difference is larger, and so finds two equal systems to differ.
        p_value = after.p_value if before.score != after.score else 1.0
        comparisons.append(Comparison(name, before.score, after.score, p_value, str(signatures[name])))
    return tuple(comparisons)


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """chrF2 of each sentence, from 0 to 100. Raises DataError as `evaluate` does."""
    _must_align({"hypotheses": hypotheses}, references)
    metric = CHRF()
    pairs = zip(hypotheses, references, strict=True)
    return [metric.sentence_score(hypothesis, [reference]).score for hypothesis, reference in pairs]


def sentence_bleu(hypotheses: Sequence[str], references: Sequence[str], *, target_language: str) -> list[float]:
    """BLEU of each sentence, from 0 to 100, by as many n-grams as it has. Raises DataError as `evaluate` does."""
    _must_align({"hypotheses": hypotheses}, references)
    metric = BLEU(tokenize=checked_tokenizer(None, target_language), effective_order=True)
    pairs = zip(hypotheses, references, strict=True)
    return [metric.sentence_score(hypothesis, [reference]).score for hypothesis, reference in pairs]


def expected_chrf(candidates: Sequence[str]) -> list[float]:
    """Of each candidate, the mean of its chrF2 with all the others as references, from 0 to 100.

    The figures of `sentence_chrf`, but all n-grams are counted once and not for each pair. One candidate alone has 0.
    """
    times = Counter(candidates)
    table = _chrf_of_each_by_each(list(times))
    total = table @ np.array(list(times.values())) - table.diagonal()
    expected = dict(zip(times, (total / max(1, len(candidates) - 1)).tolist(), strict=True))
    return [expected[candidate] for candidate in candidates]


def reliability(confidence: Sequence[float], chrf: Sequence[float], bins: int = 10) -> Reliability:
    """How far confidence, from 0 to 1, keeps what it promises of sentence chrF, from 0 to 100.

    The bins hold as nearly as can be equally many sentences. Raises DataError as `evaluate` does.
    """
    _must_align({"confidence": confidence}, chrf)
    sure, quality = np.array(confidence), np.array(chrf) / 100
    parts = [part for part in np.array_split(np.argsort(sure, kind="stable"), bins) if len(part)]
    rows = tuple(Bin(len(part), float(sure[part].mean()), float(quality[part].mean())) for part in parts)
    error = sum(row.sentences * abs(row.confidence - row.chrf) for row in rows) / len(sure)
    ranks = _ranks(sure), _ranks(quality)
    varied = all(values.std() > 0 for values in ranks)
    return Reliability(float(np.corrcoef(ranks[0], ranks[1])[0, 1]) if varied else 0.0, error, rows)


def worst(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str], n: int
) -> tuple[ScoredSentence, ...]:
    """The n sentences of lowest chrF2, the lowest first. Raises DataError as `evaluate` does."""
    _must_align({"sources": sources, "hypotheses": hypotheses}, references)
    scored = [
        ScoredSentence(index, *texts)
        for index, texts in enumerate(
            zip(sources, hypotheses, references, sentence_chrf(hypotheses, references), strict=True)
        )
    ]
    return tuple(sorted(scored, key=lambda sentence: (sentence.chrf, sentence.index))[:n])


def _chrf_of_each_by_each(texts: Sequence[str]) -> NDArray[np.float64]:
    """[N, N]: chrF2 of each text with each as its reference (Popović 2015), averaged over orders as sacreBLEU does."""
    bare = ["".join(text.split()) for text in texts]
    precision, recall, orders = np.zeros((3, len(bare), len(bare)))
    for order in range(1, CHRF.CHAR_ORDER + 1):
        counts = _ngrams(bare, order)
        lengths = counts.sum(1)
        matches = np.array([np.minimum(own, counts).sum(1) for own in counts])
        precision += matches / np.maximum(1, lengths)[:, None]
        recall += matches / np.maximum(1, lengths)
        orders += np.minimum(lengths[:, None], lengths) > 0
    weighted = CHRF.BETA**2 * precision + recall
    score: NDArray[np.float64] = (1 + CHRF.BETA**2) * precision * recall / np.where(weighted > 0, weighted, 1)
    return 100 * score / np.maximum(1, orders)


def _ngrams(texts: Sequence[str], order: int) -> NDArray[np.int64]:
    """[N, G]: how often each n-gram of characters that any text has is in each."""
    own = [[text[begin : begin + order] for begin in range(len(text) - order + 1)] for text in texts]
    column = {ngram: number for number, ngram in enumerate(dict.fromkeys(chain.from_iterable(own)))}
    rows = [np.array([column[ngram] for ngram in ngrams], dtype=np.int64) for ngrams in own]
    return np.array([np.bincount(row, minlength=len(column)) for row in rows])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Counted from 0; those of equal values are their mean."""
    _, number, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = np.cumsum(count) - (count + 1) / 2
    return ranks[number]


def _same(hypothesis: str, reference: str) -> bool:
    return hypothesis.strip() == reference.strip()


def _primary(language: str) -> str:
    """`zh` of `zh-Hans` and `zh_TW`."""
    return language.replace("_", "-").split("-")[0].lower()


def _must_align(lines: Mapping[str, Sequence[object]], references: Sequence[object]) -> None:
    if not references:
        raise DataError("There is nothing to score: no references were given")
    found = [f"{name}: {len(given)}" for name, given in lines.items() if len(given) != len(references)]
    if found:
        raise DataError(problems(f"The {len(references)} references need as many lines of each", found))
