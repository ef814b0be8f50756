"""A shortlist that shows no loss is taken, another is widened and then given up."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mt.checkpoint import LoadedModel, load_model
from mt.cli.train import main as train
from mt.data.translation_table import FlatSequences
from mt.description import CalibrationPair
from mt.kernels.shortlist import Shortlist
from mt.languages import Direction
from mt.pipeline.translator import Translator
from mt.tokenizer import EOS
from mt.training.shortlist import ShortlistOptions, accepts, find_shortlist
from mt.training.shortlist_text import DirectionText
from tests.conftest import sentences, write_model
from tests.kernels.conftest import CHECK
from tests.kernels.conftest import library as library

pytestmark = pytest.mark.usefixtures("library")
DIRECTION = Direction("en", "de")


@pytest.mark.parametrize(
    ("loss", "worst", "excluded", "accepted"),
    [
        (0.0, 0.0, 0.0, True),
        (-0.5, 0.0, 0.02, True),
        (0.09, 0.29, 0.1, True),
        (0.11, 0.11, 0.02, False),
        (0.05, 0.31, 0.02, False),
        (0.0, 0.0, 0.11, False),
    ],
)
def test_no_loss(loss: float, worst: float, excluded: float, accepted: bool) -> None:
    check = CHECK.model_copy(update={"bleu": 30.0, "shortlist_bleu": 30.0 - loss, "excluded": excluded})
    assert accepts(check, worst, ShortlistOptions()) == accepted


@pytest.fixture
def loaded(small_model: Path, monkeypatch: pytest.MonkeyPatch) -> LoadedModel:
    monkeypatch.setattr("mt.training.shortlist.LARGEST_SHARE", 1)
    return load_model(small_model)


def own_translations(loaded: LoadedModel, count: int) -> tuple[DirectionText, list[CalibrationPair]]:
    """Sentences with all tokens as the targets to align, and pairs with the model's own translations."""
    texts = sentences(count)
    targets = [each.text for each in Translator.from_loaded(loaded).translate(texts, sentences=True)]
    source = FlatSequences.from_lists(loaded.tokenizer.encode_many(texts))
    target = FlatSequences.from_lists([range(4, 400)] * count)
    text = DirectionText(DIRECTION, source, target, np.arange(count))
    return text, [CalibrationPair(direction=DIRECTION, source=s, target=t) for s, t in zip(texts, targets, strict=True)]


def test_a_shortlist_without_loss_is_taken(loaded: LoadedModel) -> None:
    text, pairs = own_translations(loaded, 200)
    result = find_shortlist(loaded, [text], pairs, ShortlistOptions(translations=400))
    assert result.shortlist is not None and result.shortlist.check is not None
    check = result.shortlist.check
    assert (check.sentences, check.excluded, check.changed) == (200, 0.0, 0.0)
    assert check.bleu == check.shortlist_bleu > 90
    assert len(result.shortlist.always) < check.tokens <= 400
    assert f"allows {check.tokens:,.0f} of 400 tokens on average; BLEU {check.bleu:.2f} without" in result.summary
    again = find_shortlist(loaded, [text], pairs, ShortlistOptions(translations=400))
    assert again.shortlist is not None and again.summary == result.summary
    for name, array in result.shortlist.arrays().items():
        assert np.array_equal(array, again.shortlist.arrays()[name])


def test_a_loss_widens_the_shortlist(loaded: LoadedModel) -> None:
    text, pairs = own_translations(loaded, 200)
    lines: list[str] = []
    options = ShortlistOptions(translations=100, frequent=1)
    result = find_shortlist(loaded, [text], pairs, options, report=lines.append)
    tried = [line for line in lines if line.startswith("translating")]
    assert result.shortlist is not None and len(tried) == 3, lines
    given_up = find_shortlist(loaded, [text], pairs, ShortlistOptions(translations=1, frequent=1))
    assert given_up.shortlist is None and given_up.summary.startswith("No shortlist, because it would lower the qual")


def test_too_many_tokens_are_given_up(loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    text, pairs = own_translations(loaded, 200)
    monkeypatch.setattr("mt.training.shortlist.LARGEST_SHARE", 0.9)
    result = find_shortlist(loaded, [text], pairs, ShortlistOptions(translations=400))
    assert result.shortlist is None and result.summary.startswith("No shortlist, because it would allow too many toke")
    monkeypatch.setattr("mt.training.shortlist.LARGEST_SHARE", 0.2)
    result = find_shortlist(loaded, [], pairs)
    assert result.summary == "No shortlist: the vocabulary of 400 tokens is small."


def test_too_few_sentences_show_nothing(loaded: LoadedModel) -> None:
    text, pairs = own_translations(loaded, 199)
    result = find_shortlist(loaded, [text], pairs)
    assert result.summary == "No shortlist: there are 199 sentences for the comparison; accepted: at least 200."


def test_a_base_is_kept(loaded: LoadedModel) -> None:
    text, pairs = own_translations(loaded, 200)
    pieces = loaded.tokenizer.pieces(range(400))
    options = ShortlistOptions(translations=400)
    plain = find_shortlist(loaded, [text], pairs, options).shortlist
    assert plain is not None
    others = sorted(set(range(4, 400)) - set(plain.always.tolist()))[:5]
    result = find_shortlist(loaded, [text], pairs, options, Shortlist.build(pieces, EOS, others, []))
    assert result.shortlist is not None
    assert set(result.shortlist.always.tolist()) == {*plain.always.tolist(), *others}
    assert len(plain.rare) > 0 and len(result.shortlist.rare) == 0  # the base knows all tokens


def test_tokens_that_the_text_lacks_are_rare_but_tags_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mt.training.shortlist.LARGEST_SHARE", 1)
    loaded = load_model(write_model(tmp_path / "model", ["en-de", "en-fr"]))
    tokenizer = loaded.tokenizer
    source = [tokenizer.encode(each) for each in sentences(300) if "dog" not in each]
    text = [
        DirectionText(
            direction, FlatSequences.from_lists(source), FlatSequences.from_lists(source), np.arange(len(source))
        )
        for direction in loaded.description.directions
    ]
    pairs = [
        CalibrationPair(direction=direction, source=each, target=each)
        for direction in loaded.description.directions
        for each in sentences(100)
    ]
    lenient = ShortlistOptions(largest_loss=100, largest_excluded=1)
    shortlist = find_shortlist(replace(loaded, calibration=()), text, pairs, lenient).shortlist
    assert shortlist is not None
    rare = set(tokenizer.pieces(shortlist.rare.tolist()))
    assert "▁dog" in rare and not {"<2de>", "<2fr>", "</s>", ".", "▁the"} & rare
    tag = tokenizer.source_prefix("en", "de", loaded.description.directions)
    assert len(shortlist.ids([*tag, *source[0]])) < len(tokenizer)
    assert len(shortlist.ids([*tag, *tokenizer.encode("The dog")])) == len(tokenizer)


def test_training_creates_a_shortlist_and_tuning_extends_it(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("LARGEST_SHARE", "FEWEST_SENTENCES"):
        monkeypatch.setattr(f"mt.training.shortlist.{limit}", 1)
    monkeypatch.setattr("mt.training.shortlist.accepts", lambda *_: True)  # the model is hardly trained
    short = ("training.max_updates=2", "training.warmup_updates=1", "--threads", "1")
    said = place.here(train, *short, "--run", "run")
    assert "aligning " in said and "With the shortlist, a sentence allows " in said
    model = place.folder / "run" / "model"
    first = load_model(model).shortlist
    assert first is not None and Translator.load(model, "cpu").shortlist
    assert "\n\n## Vocabulary shortlist\n\nWith the shortlist, " in (model / "README.md").read_text(encoding="utf-8")
    before, _, rest = (place.folder / "recipe.toml").read_text().partition("[tokenizer]")
    tuned = f'{before}[tuning]\nmodel = "run/model"\n[training]{rest.partition("[training]")[2]}'
    (place.folder / "recipe.toml").write_text(tuned)
    place.here(train, *short, "--run", "tuned")
    second = load_model(place.folder / "tuned" / "model").shortlist
    assert second is not None and set(first.always.tolist()) <= set(second.always.tolist())
    (model / "shortlist.safetensors").unlink()
    place.here(train, *short, "--run", "again")
    again = place.folder / "again" / "model"
    assert load_model(again).shortlist is None
    assert "No shortlist: run/model, which was tuned, has none." in (again / "README.md").read_text(encoding="utf-8")
