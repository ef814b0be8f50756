"""Text of a language model of five letters, whose probabilities a forward pass gives."""

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from mt.checkpoint import LoadedLanguageModel
from mt.config import ModelConfig
from mt.decoding.options import SearchOptions
from mt.decoding.scorer import LanguageScorer
from mt.description import LanguageModelDescription
from mt.errors import RequestError
from mt.model.embedding import NEVER
from mt.model.transformer import LanguageModel
from mt.pipeline.generation import GenerationOptions, TextGenerator
from mt.tokenizer import BOS, EOS, Tokenizer, train_tokenizer

PYTHON_API = Path(__file__).resolve().parents[2] / "docs" / "python-api.md"
LETTERS = "abcde"
SAMPLES = 3000
QUANTILES = {1: 10.83, 2: 13.82, 30: 59.70}
"""Values that chi-square exceeds with a probability of 0.001, by degrees of freedom."""


def make_generator(block_tokens: int = 16, with_end: bool = True) -> TextGenerator:
    """A model with random weights that writes letters, and EOS if `with_end`, but nothing else."""
    torch.manual_seed(3)
    tokenizer = Tokenizer(train_tokenizer([LETTERS], vocabulary_size=300, kind="character"))
    config = ModelConfig(
        encoder_layers=1, decoder_layers=1, d_model=16, d_ff=32, heads=2, max_length=16, logits_bias=True
    )
    model = LanguageModel(config, len(tokenizer)).eval()
    letters = tokenizer.encode(LETTERS) + [EOS] * with_end
    with torch.no_grad():
        model.embedding.tokens.weight.mul_(0.4)  # so that no letter is rare
        assert model.embedding.bias is not None
        model.embedding.bias.fill_(NEVER)
        model.embedding.bias[letters] = 0.0
    description = LanguageModelDescription(
        name="letters", language="de", vocabulary_size=len(tokenizer), model=config, block_tokens=block_tokens
    )
    return TextGenerator(LoadedLanguageModel(model, tokenizer, description), torch.device("cpu"))


@pytest.fixture(scope="module")
def generator() -> TextGenerator:
    return make_generator()


@torch.inference_mode()
def next_letters(generator: TextGenerator, text: str, temperature: float = 1.0) -> dict[str, float]:
    """The probability of each letter, and of the end (an empty string), after the text of a line."""
    model, tokenizer = generator.scorer.model, generator.tokenizer
    assert isinstance(model, LanguageModel)
    logits = model(torch.tensor([[BOS, *tokenizer.encode(text)]]))[0, -1].double() / temperature
    ids = [*tokenizer.encode(LETTERS), EOS]
    return dict(zip([*LETTERS, ""], logits[ids].softmax(0).tolist(), strict=True))


def chi_square(counts: Mapping[str, int], expected: Mapping[str, float]) -> float:
    assert counts.keys() <= expected.keys()
    total = sum(counts.values())
    return sum((counts.get(key, 0) - total * share) ** 2 / (total * share) for key, share in expected.items())


def sampled(generator: TextGenerator, length: int, search: SearchOptions) -> Counter[str]:
    return Counter(generator.generate(GenerationOptions(search=search, count=SAMPLES, max_length=length)))


SAMPLE = SearchOptions(sample=True, seed=5)


def test_samples_have_the_model_s_frequencies(generator: TextGenerator) -> None:
    """Texts of up to two letters: the end, a letter and the end, or two letters: 31 texts."""
    first = next_letters(generator, "")
    expected = {"": first[""]}
    for one in LETTERS:
        for other, share in next_letters(generator, one).items():
            expected[one + other] = first[one] * share
    assert len(expected) == 31 and math.isclose(sum(expected.values()), 1)
    assert min(expected.values()) * SAMPLES > 5
    assert chi_square(sampled(generator, 2, SAMPLE), expected) < QUANTILES[30]
    assert chi_square(sampled(generator, 2, replace(SAMPLE, seed=6)), expected) < QUANTILES[30]
    assert chi_square(sampled(generator, 2, replace(SAMPLE, temperature=1.5)), expected) > QUANTILES[30]


def test_top_k_and_top_p_hold(generator: TextGenerator) -> None:
    ranked = sorted(next_letters(generator, "").items(), key=lambda item: -item[1])
    two = {letter: share / (ranked[0][1] + ranked[1][1]) for letter, share in ranked[:2]}
    reached = ranked[0][1] + ranked[1][1] + ranked[2][1] / 2  # the third letter is needed to reach it
    three = {letter: share / sum(share for _, share in ranked[:3]) for letter, share in ranked[:3]}
    for search, expected in ((replace(SAMPLE, top_k=2), two), (replace(SAMPLE, top_p=reached), three)):
        counts = sampled(generator, 1, search)
        assert counts.keys() == expected.keys()
        assert chi_square(counts, expected) < QUANTILES[len(expected) - 1]


def test_a_seed_repeats_its_texts(generator: TextGenerator) -> None:
    options = GenerationOptions(prompt="ab", search=SAMPLE, count=8, lines=3, max_length=40)
    texts = generator.generate(options)
    assert texts == generator.generate(options) and len(set(texts)) == 8
    assert all(text.startswith("ab") and text.count("\n") <= 2 for text in texts)
    assert generator.generate(replace(options, count=3)) == texts[:3]
    assert texts != generator.generate(replace(options, search=replace(SAMPLE, seed=6)))
    parts = list(generator.stream(replace(options, count=1)))
    assert "".join(parts) == texts[0] and parts[0] == "ab"
    assert {len(part) for part in parts[1:]} <= {1, 2}  # a letter, perhaps after the end of a line


def test_a_text_ends_at_its_length() -> None:
    """Beyond the model's 16 tokens too: it then reads the last ones only."""
    endless = make_generator(with_end=False)
    for search in (SAMPLE, SearchOptions(beam_size=1), SearchOptions(beam_size=3)):
        for length in (1, 13, 14, 15, 16, 50):
            options = GenerationOptions(prompt="ab", search=search, max_length=length)
            [text] = endless.generate(options)
            assert text.startswith("ab") and len(text) == 2 + length
            assert "".join(endless.stream(options)) == text
    long = GenerationOptions(prompt=LETTERS * 10, search=SAMPLE, max_length=3)
    assert len(endless.generate(long)[0]) == 53


def test_greedy_and_beam_search(generator: TextGenerator) -> None:
    greedy = SearchOptions(beam_size=1)
    [text] = generator.generate(GenerationOptions(search=greedy, max_length=5))
    expected = ""
    while len(expected) < 5 and (letter := max((found := next_letters(generator, expected)), key=found.__getitem__)):
        expected += letter
    assert text == expected
    options = GenerationOptions(prompt="c", search=SearchOptions(beam_size=4), count=3, max_length=4)
    texts = generator.generate(options)
    assert len(set(texts)) == 3 and all(text.startswith("c") for text in texts)
    assert generator.generate(replace(options, count=1)) == texts[:1]


@torch.inference_mode()
def test_a_scorer_reads_earlier_lines_as_training_does(generator: TextGenerator) -> None:
    a, b, c = generator.tokenizer.encode("abc")
    model = generator.scorer.model
    assert isinstance(model, LanguageModel)
    scorer = LanguageScorer(model)
    state = scorer.start([[a, b, EOS, EOS], [], [c, EOS]], beams=2)
    for token in (BOS, c):
        logits = scorer.step(state, torch.full((6,), token))
    for row, read in ((0, [BOS, a, b, BOS, BOS, c]), (2, [BOS, c]), (5, [BOS, c, BOS, c])):
        torch.testing.assert_close(logits[row], model(torch.tensor([read]))[0, -1])


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"count": 0}, "count is 0; accepted: at least 1"),
        ({"lines": 0}, "lines is 0; accepted: at least 1"),
        ({"search": SearchOptions(beam_size=2), "count": 3}, "count is 3; accepted without sampling: at most 2"),
        ({"search": SearchOptions(beam_size=2), "count": 2, "lines": 2}, "lines is 2; accepted: 1 if beam search"),
    ],
)
def test_options_that_cannot_be_used(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        replace(GenerationOptions(), **values)


def test_a_model_of_single_lines() -> None:
    alone = make_generator(block_tokens=0)
    with pytest.raises(RequestError, match="the prompt has 2 lines; accepted: one line"):
        alone.generate(GenerationOptions(prompt="a\nb"))
    assert alone.generate(GenerationOptions(lines=4, max_length=60))[0].count("\n") == 3


def test_the_example_of_the_documentation(small_language_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two texts that begin with the prompt; then, token by token, the first of them again."""
    blocks = re.findall(r"^```python\n(.*?)^```", PYTHON_API.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (example,) = (block for block in blocks if "TextGenerator" in block)
    exec(example.replace("runs/characters-de/model", str(small_language_model)), {})
    before, first, second, streamed = capsys.readouterr().out.split("Der Zug")
    assert before == "" and first != second
    assert first == f"{streamed}\n"
