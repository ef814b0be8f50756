"""The language model of bytes: its parts by hand, its samples against its probabilities, and a training that learns."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from mt.cli import generate as generating
from mt.cli import train_lm
from mt.config import TrainingConfig
from mt.errors import DataError, ModelError, RequestError
from mt.language_model.model import LanguageModel, LanguageModelConfig, load_language_model, save_language_model
from mt.language_model.sampling import SamplingOptions, distribution, generate, keep_top_k, keep_top_p
from mt.language_model.training import TextBytes, bits_per_byte, train, unigram_bits

TINY = LanguageModelConfig(layers=1, d_model=32, heads=2, block=16)
PLAIN = SamplingOptions()
LIMITS = {5: 20.52, 9: 27.88}
"""Value of chi-square that is exceeded with probability 0.001, by degrees of freedom."""


def model_of(config: LanguageModelConfig = TINY, seed: int = 1) -> LanguageModel:
    torch.manual_seed(seed)
    return LanguageModel(config).eval()


class Dice(LanguageModel):
    """A model that knows the six letters a to f only, with the same probabilities after every text."""

    WEIGHTS = torch.tensor([0.4, 0.25, 0.15, 0.1, 0.07, 0.03])

    def forward(self, text: Tensor) -> Tensor:
        logits = torch.full((*text.shape, 256), -torch.inf)
        logits[..., 97:103] = self.WEIGHTS.log()
        return logits


def chi_square(drawn: Sequence[int], expected: Tensor) -> tuple[float, int]:
    """Return the statistic of the byte counts against `expected` [V], and its degrees of freedom."""
    counts = Counter(drawn)
    possible = expected.nonzero().flatten().tolist()
    assert counts.keys() <= set(possible), "a byte of probability 0 was drawn"
    wanted = {byte: len(drawn) * float(expected[byte]) for byte in possible}
    return sum((counts[byte] - wanted[byte]) ** 2 / wanted[byte] for byte in possible), len(possible) - 1


@pytest.mark.parametrize(
    ("options", "shares"),
    [
        (PLAIN, [0.4, 0.25, 0.15, 0.1, 0.07, 0.03]),
        (SamplingOptions(temperature=0.5), [0.16, 0.0625, 0.0225, 0.01, 0.0049, 0.0009]),
        (SamplingOptions(top_k=2), [0.4, 0.25, 0, 0, 0, 0]),
        (SamplingOptions(top_p=0.8), [0.4, 0.25, 0.15, 0, 0, 0]),  # 0.65 is below 0.8, 0.80 reaches it
        (SamplingOptions(top_p=0.81), [0.4, 0.25, 0.15, 0.1, 0, 0]),
        (SamplingOptions(top_p=0.01), [1, 0, 0, 0, 0, 0]),
        (SamplingOptions(temperature=0.5, top_k=3, top_p=0.7), [0.16, 0.0625, 0, 0, 0, 0]),  # 0.245 in total
    ],
    ids=str,
)
def test_probabilities_by_hand_and_samples_against_them(options: SamplingOptions, shares: list[float]) -> None:
    dice = Dice(TINY)
    found = distribution(dice(torch.tensor([[97]]))[:, -1], options)[0]
    expected = torch.zeros(256)
    expected[97:103] = torch.tensor(shares) / sum(shares)
    assert_close(found, expected, atol=1e-6, rtol=1e-5)
    drawn = list(generate(dice, b"", 2000, options, torch.Generator().manual_seed(1)))
    statistic, freedom = chi_square(drawn, expected)
    assert statistic < LIMITS[5] and freedom <= 5


def test_top_k_and_top_p() -> None:
    logits = torch.tensor([[0.5, 0.25, 0.125, 0.125], [0.125, 0.125, 0.25, 0.5]]).log()
    assert keep_top_k(logits, 2).isfinite().tolist() == [[True, True, False, False], [False, False, True, True]]
    assert keep_top_p(logits, 0.5).isfinite().tolist() == [[True, False, False, False], [False, False, False, True]]
    assert keep_top_p(logits, 0.51).isfinite().sum(1).tolist() == [2, 2]
    with pytest.raises(RequestError) as caught:
        SamplingOptions(temperature=0, top_k=300, top_p=1.5)
    assert all(name in str(caught.value) for name in ("temperature is 0", "top_k is 300", "top_p is 1.5"))


def test_no_later_byte_and_no_earlier_block_counts() -> None:
    model, text = model_of(), torch.randint(256, (2, 16))
    logits, changed = model(text), text.clone()
    changed[:, 5] = (text[:, 5] + 1) % 256
    assert torch.equal(model(changed)[:, :5], logits[:, :5])
    assert not torch.allclose(model(changed)[:, 5], logits[:, 5])
    model = model_of()
    one, other = (
        list(generate(model, prompt, 5, PLAIN, torch.Generator().manual_seed(2)))
        for prompt in (b"0123456789abcdef", b"something else 0123456789abcdef")
    )
    assert one == other


def test_a_model_that_knows_nothing_needs_eight_bits() -> None:
    model = model_of()
    torch.nn.init.zeros_(model.embedding.tokens.weight)  # all logits are 0
    text = np.random.default_rng(1).integers(0, 256, 100, np.uint8)
    assert bits_per_byte(model, text) == pytest.approx(8, abs=1e-5)
    assert bits_per_byte(Dice(TINY), np.full(33, 97, np.uint8)) == pytest.approx(-np.log2(0.4), abs=1e-5)
    dropped = LanguageModel(TINY.model_copy(update={"dropout": 0.5})).train()
    assert bits_per_byte(dropped, text) == bits_per_byte(dropped, text) and dropped.training


def test_a_training_learns_within_its_time(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("The dog sees the cat. " * 200)
    text = TextBytes.read(tmp_path / "text", TINY.block)
    assert (len(text.training), len(text.held_out)) == (4180, 220)
    model, lines = model_of(), list[str]()
    before = bits_per_byte(model, text.held_out)
    config = TrainingConfig(max_updates=200, update_tokens=128, warmup_updates=20)
    assert train(model, text, config, 1, lines.append) == 200
    after = bits_per_byte(model, text.held_out)
    assert before > 7 and after < 1.5 < unigram_bits(text.held_out)
    rates = [line for line in lines if "bits per byte" in line and "bytes/s" in line and "s left" in line]
    assert len(rates) >= 4 and lines[-1].startswith("'")  # then a sample
    (tmp_path / "text").write_text("abc " * 500)
    config = TrainingConfig(max_updates=10**6, max_minutes=0.5 / 60, update_tokens=16)
    assert 0 < train(model_of(), TextBytes.read(tmp_path / "text", TINY.block), config, 1, print) < 10**6


def test_a_folder_gives_the_model_back(tmp_path: Path) -> None:
    model = model_of()
    save_language_model(tmp_path / "lm", model)
    assert sorted(path.name for path in (tmp_path / "lm").iterdir()) == ["config.json", "model.safetensors"]
    text = torch.randint(256, (1, 16))
    assert torch.equal(load_language_model(tmp_path / "lm", "cpu")(text), model(text))
    save_language_model(tmp_path / "lm", model_of(seed=2))
    assert not torch.equal(load_language_model(tmp_path / "lm", "cpu")(text), model(text))


def test_other_folders_and_files_are_refused(tmp_path: Path, small_model: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for folder in (small_model, tmp_path):
        with pytest.raises(ModelError, match=r"accepted: a folder that `mt-service train-lm` wrote"):
            load_language_model(folder, "cpu")
        with pytest.raises(ModelError):
            save_language_model(folder, model_of())
    assert (tmp_path / "file").read_text() == "mine" and (small_model / "tokenizer.model").exists()
    with pytest.raises(DataError, match="there is no such file; accepted: a text file"):
        TextBytes.read(tmp_path / "none", 16)
    (tmp_path / "short").write_text("a" * 679)
    with pytest.raises(DataError, match="679 bytes; accepted: at least 680 for blocks of 16 bytes"):
        TextBytes.read(tmp_path / "short", 16)


@pytest.mark.parametrize(("bits", "warned"), [(4.6, True), (3.6, True), (3.4, False)])
def test_a_model_that_hardly_reads_its_context_is_reported(
    bits: float, warned: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train_lm, "bits_per_byte", lambda model, text: bits)
    monkeypatch.setattr(train_lm, "unigram_bits", lambda text: 4.0)
    (tmp_path / "text").write_text("Der Mann wartet. " * 200)
    small = ["--layers", "1", "--d-model", "32", "--heads", "2", "--block", "16", "--updates", "1", "--device", "cpu"]
    assert train_lm.main([str(tmp_path / "text"), "--out", str(tmp_path / "lm"), *small]) == 0
    assert ("warning: not 0.5 bits better" in capsys.readouterr().err) == warned


def test_the_verbs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("Der Hund läuft über die Straße. " * 100, encoding="utf-8")
    small = ["--layers", "1", "--d-model", "32", "--heads", "2", "--block", "16", "--updates", "60", "--device", "cpu"]
    assert train_lm.main([str(tmp_path / "text"), "--out", str(tmp_path / "lm"), *small]) == 0
    assert "bits per byte after 60 updates; the frequencies of bytes alone: " in capsys.readouterr().err
    texts = []
    for seed in ("1", "1", "2"):
        options = ["--prompt", "Der", "--length", "40", "--seed", seed, "--device", "cpu"]
        assert generating.main([str(tmp_path / "lm"), *options]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2] and texts[0].startswith("Der") and texts[0].endswith("\n")
