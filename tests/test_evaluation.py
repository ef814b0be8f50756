"""Scores against figures that a person can check by hand, and against sacreBLEU's own examples."""

import random

import pytest

from mt.errors import DataError
from mt.evaluation import Score, bleu_tokenizer, evaluate, moses_tokens, paired_bootstrap, worst_sentences


def scores(hypotheses: list[str], references: list[str], language: str) -> dict[str, Score]:
    return {score.name: score for score in evaluate(hypotheses, references, target_language=language).scores}


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


def test_tokens_of_moses_and_of_chinese() -> None:
    tokens = moses_tokens(["Ein T-Shirt, „rot“ & neu.", "Das ist z.B. gut!"], "de-AT")
    assert tokens == ['ein t-shirt , " rot " & neu .', "das ist z.b. gut !"]
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


@pytest.mark.parametrize(
    ("baseline", "system", "different"),
    [((0.4, 1), (0.1, 2), True), ((0.2, 1), (0.2, 1), False), ((0.2, 1), (0.2, 2), False)],
    ids=["fewer mistakes", "the same translations", "as many mistakes elsewhere"],
)
def test_bootstrap_tells_systems_apart(baseline: tuple[float, int], system: tuple[float, int], different: bool) -> None:
    references = sentences(200)
    translations = noisy(references, *baseline), noisy(references, *system)
    comparisons = paired_bootstrap(*translations, references, target_language="en", samples=300)
    assert [comparison.name for comparison in comparisons] == ["BLEU", "chrF2"]
    for comparison in comparisons:
        assert (comparison.p_value < 0.05) is different and "bs:300" in comparison.signature
        assert comparison.system > comparison.baseline or not different


def test_worst_come_first_and_keep_their_place() -> None:
    result = worst_sentences(["s0", "s1", "s2"], ["same", "zzz", "sane"], ["same", "abc", "same"], 2)
    assert [(sentence.index, sentence.source) for sentence in result] == [(1, "s1"), (2, "s2")]
    assert result[0].chrf == 0
    assert result[1].hypothesis == "sane"
