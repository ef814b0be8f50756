"""Scores against figures that a person can check by hand, and against sacreBLEU's own examples."""

import math
import random

import pytest

from mt import evaluation
from mt.errors import DataError
from mt.evaluation import (
    Score,
    bleu_tokenizer,
    evaluate,
    lowercased_moses_bleu,
    moses_tokens,
    paired_bootstrap,
    worst_sentences,
)

# 8 tokens against 9. N-grams that match: 7 of 8, 5 of 7, 3 of 6, 1 of 5; the brevity penalty is exp(1 - 9/8).
HYPOTHESIS = "the cat sat on a mat today ."
REFERENCE = "the cat sat on the old mat today ."
BY_HAND = 100 * math.exp(1 - 9 / 8) * (7 / 8 * 5 / 7 * 3 / 6 * 1 / 5) ** 0.25


def scores(hypotheses: list[str], references: list[str], language: str) -> dict[str, Score]:
    return {score.name: score for score in evaluate(hypotheses, references, target_language=language).scores}


def test_bleu_and_ter_by_hand() -> None:
    """Of the nine words of the reference, one is replaced and one is missing."""
    report = scores([HYPOTHESIS], [REFERENCE], "en")
    assert report["BLEU"].value == pytest.approx(BY_HAND)
    assert report["TER"].value == pytest.approx(100 * 2 / 9)


def test_chrf_by_hand() -> None:
    # Of `ab` in `abc`: unigrams 2 of 2 and 2 of 3, bigrams 1 of 1 and 1 of 2; trigrams are missing on one side, so
    # precision and recall are averaged over two orders, and chrF2 counts recall four times.
    precision, recall = (1 + 1) / 2, (2 / 3 + 1 / 2) / 2
    (sentence,) = worst_sentences(["x"], ["ab"], ["abc"], 1)
    assert sentence.chrf == pytest.approx(100 * 5 * precision * recall / (4 * precision + recall))


def test_scores_are_cased_and_carry_their_signatures() -> None:
    report = scores(["Ein Hund bellt sehr laut."], ["ein hund bellt sehr laut."], "de")
    assert [*report] == ["BLEU", "chrF2", "TER", "BLEU-lc-moses"]
    assert report["BLEU"].value < 100
    assert report["chrF2"].value < 100
    assert report["TER"].value == pytest.approx(100 * 2 / 5)
    assert report["BLEU-lc-moses"].value == pytest.approx(100)
    assert "case:mixed" in report["BLEU"].signature and "tok:13a" in report["BLEU"].signature
    assert "case:mixed" in report["TER"].signature
    assert "case:lc" in report["BLEU-lc-moses"].signature and "moses:de" in report["BLEU-lc-moses"].signature
    assert all("version:" in score.signature for score in report.values())


def test_report_as_json_keeps_signatures() -> None:
    report = evaluate(["a b c d e"], ["a b c d e"], target_language="en").to_json()
    assert report["sentences"] == 1
    assert report["exact_match"] == {"exact": 1, "sentences": 1, "percent": 100.0}
    assert {"name", "value", "signature"} == set(report["scores"][0])


@pytest.mark.parametrize(
    ("hypothesis", "ratio", "penalty"),
    [("a b c", 3 / 4, math.exp(1 - 4 / 3)), ("a b c d", 1, 1), ("a b c d e", 5 / 4, 1)],
)
def test_short_translations_show_in_the_length_ratio(hypothesis: str, ratio: float, penalty: float) -> None:
    report = evaluate([hypothesis], ["a b c d"], target_language="en")
    assert (report.length_ratio, report.brevity_penalty) == pytest.approx((ratio, penalty))


def test_moses_tokens_lower_case_split_and_keep_hyphens() -> None:
    assert moses_tokens(["Ein T-Shirt, „rot“ & neu.", "Das ist z.B. gut!"], "de-AT") == [
        'ein t-shirt , " rot " & neu .',
        "das ist z.b. gut !",
    ]


def test_lower_cased_moses_bleu_ignores_case_and_spacing_of_punctuation() -> None:
    score = lowercased_moses_bleu(["ein mann fährt rad , heute ."], ["Ein Mann fährt Rad, heute."], "de")
    assert score.value == pytest.approx(100)


def test_chinese_is_split_into_characters() -> None:
    report = scores(["我喜欢吃苹果。"], ["我喜欢吃香蕉。"], "zh")
    assert [*report] == ["BLEU", "chrF2", "TER"]
    assert "tok:zh" in report["BLEU"].signature and "asian:yes" in report["TER"].signature
    # Characters that match: 5 of 7, 3 of 6, 2 of 5, 1 of 4. TER: 2 of 7 are replaced.
    assert report["BLEU"].value == pytest.approx(100 * (5 / 7 * 3 / 6 * 2 / 5 * 1 / 4) ** 0.25)
    assert report["TER"].value == pytest.approx(100 * 2 / 7)


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [
        *((tag, "zh") for tag in ("zh", "zh-Hans", "zh-Hant", "zh_TW", "zh-HK", "zt", "yue")),
        *((tag, "char") for tag in ("th", "lo", "km", "my")),
        *((tag, "13a") for tag in ("de", "en", "pt-BR", "pb", "ko", "sr-Latn", "tlh")),
    ],
)
def test_tokenizer_of_a_language(language: str, tokenizer: str) -> None:
    assert bleu_tokenizer(language) == tokenizer


def test_lengths_that_differ_are_named() -> None:
    with pytest.raises(DataError, match=r"(?s)accepted: 2, the number of references.*hypotheses: 1"):
        evaluate(["a"], ["a", "b"], target_language="de")
    with pytest.raises(DataError, match=r"(?s)baseline: 1.*system: 3"):
        paired_bootstrap(["a"], ["a"] * 3, ["a", "b"], target_language="de")
    with pytest.raises(DataError, match="sources: 0"):
        worst_sentences([], ["a"], ["a"], 1)
    with pytest.raises(DataError, match="no references to score against"):
        evaluate([], [], target_language="de")


def noisy(references: list[str], share: float, seed: int) -> list[str]:
    """References in which a share of the words, drawn by seed, is wrong."""
    draw = random.Random(seed)
    return [" ".join("wrong" if draw.random() < share else word for word in line.split()) for line in references]


def sentences(n: int) -> list[str]:
    draw = random.Random(0)
    return [" ".join(f"w{draw.randrange(50)}" for _ in range(10)) for _ in range(n)]


def test_bootstrap_finds_a_real_difference() -> None:
    references = sentences(200)
    for comparison in paired_bootstrap(
        noisy(references, 0.4, 1), noisy(references, 0.1, 2), references, target_language="en", samples=300
    ):
        assert comparison.system > comparison.baseline
        assert comparison.p_value < 0.05
        assert "bs:300" in comparison.signature


@pytest.mark.parametrize("seed", [1, 2], ids=["the same translations", "as many mistakes elsewhere"])
def test_bootstrap_finds_none_between_equal_systems(seed: int) -> None:
    references = sentences(200)
    comparisons = paired_bootstrap(
        noisy(references, 0.2, 1), noisy(references, 0.2, seed), references, target_language="en", samples=300
    )
    assert [comparison.name for comparison in comparisons] == ["BLEU", "chrF2"]
    assert all(comparison.p_value > 0.05 for comparison in comparisons)


def test_worst_come_first_and_keep_their_place() -> None:
    result = worst_sentences(["s0", "s1", "s2"], ["same", "zzz", "sane"], ["same", "abc", "same"], 2)
    assert [(sentence.index, sentence.source) for sentence in result] == [(1, "s1"), (2, "s2")]
    assert result[0].chrf == 0
    assert result[1].hypothesis == "sane"


def test_chrf_of_each_sentence_is_that_of_a_corpus_of_one() -> None:
    pairs = [("Ein Hund.", "Ein Hund."), ("Ein Hund.", "Eine Katze."), ("", "x")]
    result = evaluation.sentence_chrf(*zip(*pairs, strict=True))
    alone = [scores([a], [b], "de")["chrF2"].value for a, b in pairs]
    assert result == pytest.approx(alone) and result[0] == 100
