"""Our models compute the same in transformers. Post-norm models can be imported again."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mt.checkpoint import LoadedModel, load_model
from mt.decoding.options import SearchOptions
from mt.decoding.scorer import ModelScorer
from mt.errors import ModelError
from mt.interop.huggingface_export import export_huggingface
from mt.interop.importer import import_model
from mt.interop.residual import sines_first
from mt.tokenizer import BOS, EOS, PAD, UNK
from tests.conftest import sentences
from tests.decoding.reference import decode
from tests.interop.conftest import Build
from tests.interop.opus import Opus
from tests.weights import edit_json

transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra: interop)")

POST, PRE = {"norm": "post"}, {"norm": "pre"}
OPTIONS: dict[str, dict[str, Any]] = {
    "sines and cosines in turn": {},
    "gelu, sines first": {"activation": "gelu", "positions": "concatenated"},
    "swish, no scale, bias": {"activation": "swish", "scale_embedding": False, "logits_bias": True},
    "two matrices, sines first": {"tie_source": False, "positions": "concatenated"},
    "nothing tied": {"tie_source": False, "tie_output": False},
    "one matrix for both inputs": {"tie_output": False},
}
PRE_OPTIONS = {
    **{name: changes for name, changes in OPTIONS.items() if changes.get("tie_source", True)},
    "positions of M2M-100": {"positions": "tensor2tensor", "first_position": 2},
}


class Theirs:
    """A folder in transformers, with its own tokenizer and its own way to search."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.model, found = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True)
        assert not any(found.values()), f"weights that are missing, not expected or of another shape: {found}"
        self.model.eval()

    def translate(self, texts: Sequence[str], longest: int, beam_size: int) -> list[tuple[int, ...]]:
        """Ids without those that begin, end and pad."""
        batch = self.tokenizer(list(texts), return_tensors="pt", padding=True)
        found = self.model.generate(**batch, max_length=1 + longest, num_beams=beam_size)
        return [tuple(id for id in line if id > EOS) for line in found.tolist()]


def exported(model: Path, out: Path) -> tuple[LoadedModel, Theirs]:
    export_huggingface(model, out)
    return load_model(model), Theirs(out)


def assert_same(ours: LoadedModel, theirs: Theirs) -> None:
    texts = sentences(8)
    targets = [ours.tokenizer.target.encode(text) for text in sentences(8, seed=1)]
    for text, target in zip(texts, targets, strict=True):
        source = [*ours.tokenizer.encode(text), EOS]
        assert theirs.tokenizer(text).input_ids == source
        ids, begun = torch.tensor([source]), torch.tensor([[BOS, *target]])
        with torch.inference_mode():
            memory = ours.model.encode(ids, ids > 0)
            found = theirs.model(input_ids=ids, decoder_input_ids=begun)
            expected = ours.model(ids, ids > 0, begun)
        if ours.description.model.norm == "post" and ours.description.model.positions == "interleaved":
            memory = torch.cat((memory[..., ::2], memory[..., 1::2]), -1)
        torch.testing.assert_close(found.encoder_last_hidden_state, memory, atol=1e-5, rtol=0)
        torch.testing.assert_close(found.logits, expected, atol=2e-5, rtol=1e-5)


def assert_comes_back(ours: LoadedModel, folder: Path, out: Path, directions: Sequence[str] = ()) -> LoadedModel:
    """The same numbers, bit for bit; those of the residual stream sorted, if sines and cosines stood in turn."""
    import_model(str(folder), out, directions)
    back = load_model(out)
    weights = dict(ours.model.state_dict())
    if ours.description.model.positions == "interleaved":
        weights = sines_first(weights)
    found = back.model.state_dict()
    bias = found["embedding.bias"] if ours.model.embedding.bias is not None else found.pop("embedding.bias")
    assert found.keys() == weights.keys()
    assert all(torch.equal(found[name], weights[name]) for name in weights)
    assert ours.model.embedding.bias is not None or not bias.any()
    changes = {"positions": "concatenated", "logits_bias": True}
    assert back.description.model == ours.description.model.model_copy(update=changes)
    assert back.description.directions == ours.description.directions
    text = "The dog sees the cat, naïve 漢."
    assert back.tokenizer.encode(text) == ours.tokenizer.encode(text)
    return back


@pytest.mark.parametrize("changes", OPTIONS.values(), ids=OPTIONS)
def test_the_same_there_and_back(build: Build, tmp_path: Path, changes: dict[str, Any]) -> None:
    ours, theirs = exported(build(**POST, **changes), tmp_path / "out")
    assert_same(ours, theirs)
    assert_comes_back(ours, tmp_path / "out", tmp_path / "back")


@pytest.mark.parametrize("changes", PRE_OPTIONS.values(), ids=PRE_OPTIONS)
def test_a_pre_norm_model_becomes_pegasus(build: Build, tmp_path: Path, changes: dict[str, Any]) -> None:
    """Encoder outputs equal within 1e-5 and logits within 2e-5 + 1e-5 relative, the rounding of float32 sums."""
    ours, theirs = exported(build(**PRE, **changes), tmp_path / "out")
    assert type(theirs.model).__name__ == "PegasusForConditionalGeneration"
    assert_same(ours, theirs)


def test_how_it_searches_comes_back(build: Build, tmp_path: Path) -> None:
    folder = build(**POST)
    edit_json(folder / "config.json", decoding={"beam_size": 3, "length_penalty": 0.7, "no_repeat_ngram": 4})
    export_huggingface(folder, tmp_path / "out")
    import_model(str(tmp_path / "out"), tmp_path / "back")
    back, went = (load_model(path).description.decoding for path in (tmp_path / "back", folder))
    assert back == went


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_greedy_translations_are_ours(build: Build, tmp_path: Path, norm: str) -> None:
    ours, theirs = exported(build(norm=norm, positions="concatenated"), tmp_path / "out")
    sources = [[*ours.tokenizer.encode(text), EOS] for text in sentences(12)]
    options = SearchOptions(beam_size=1, max_length_factor=0, max_length_offset=20)
    mine = [found[0].tokens[:19] for found in decode(ModelScorer(ours.model), sources, options)]
    assert len(set(mine)) > 3
    # At the longest length our search ends a sentence, with an EOS that counts; `generate` just stops.
    assert [found[:19] for found in theirs.translate(sentences(12), 20, beam_size=1)] == mine


def test_an_imported_model_of_two_vocabularies(tmp_path: Path) -> None:
    import_model(str(Opus(two_vocabularies=True).write(tmp_path / "opus")), tmp_path / "model", ["en-de"])
    ours, theirs = exported(tmp_path / "model", tmp_path / "out")
    assert_same(ours, theirs)
    back = assert_comes_back(ours, tmp_path / "out", tmp_path / "back")
    assert back.tokenizer.files == ours.tokenizer.files
    target = ours.tokenizer.target
    for text in sentences(5, seed=2):
        ids = target.encode(text[::-1].lower())
        assert theirs.tokenizer(text_target=text[::-1].lower()).input_ids == [*ids, EOS]
        assert theirs.tokenizer.decode([BOS, *ids, EOS], skip_special_tokens=True) == target.decode(ids)


def test_every_text_becomes_our_ids_and_ours_text(build: Build, tmp_path: Path) -> None:
    export_huggingface(build(**POST), tmp_path / "out")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    ours = load_model(tmp_path / "model").tokenizer
    assert set(theirs.all_special_ids) == {PAD, UNK, BOS, EOS}
    text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\u2581"), max_size=20)
    said = st.sampled_from(["</s>", "<unk>", "<pad>", "<s>", "<2de>", "  ", "The dog", "\n", "n ’t", " ,", "naïve"])

    @settings(max_examples=150, suppress_health_check=[HealthCheck.differing_executors])
    @given(st.lists(st.one_of(text, said), max_size=6).map("".join).filter(lambda text: not text.startswith(">>")))
    def agree(text: str) -> None:
        ids = ours.encode(text)
        assert theirs(text).input_ids == [*ids, EOS]
        assert theirs.decode([BOS, *ids, EOS], skip_special_tokens=True) == ours.decode(ids).strip()

    agree()


def test_a_direction_is_asked_for_by_a_tag(build: Build, tmp_path: Path) -> None:
    directions = ("en-de", "de-fr")
    ours, theirs = exported(build(directions=directions, **POST, positions="concatenated"), tmp_path / "out")
    asked = theirs.tokenizer(">>fr<<The dog.").input_ids
    assert asked == [ours.tokenizer.tag_id("fr"), *ours.tokenizer.encode("The dog."), EOS]
    back = assert_comes_back(ours, tmp_path / "out", tmp_path / "back", directions)
    assert back.tokenizer.source_prefix("en", "fr", directions) == ours.tokenizer.source_prefix("en", "fr", directions)
    assert 'tokenizer([">>de<<A text."]' in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_every_option_that_transformers_lacks_is_named(build: Build, tmp_path: Path) -> None:
    for norm, name in (("post", "MarianMT"), ("pre", "PEGASUS")):
        folder = build(norm=norm, positions="tensor2tensor", norm_epsilon=1e-6, first_position=2, tie_source=False)
        with pytest.raises(ModelError) as caught:
            export_huggingface(folder, tmp_path / "out")
        lines = [f"norm_epsilon is 1e-06; {name} accepts 1e-05"]
        if norm == "pre":
            lines.append("tie_source is False; PEGASUS accepts True")
        else:
            lines.append("positions is 'tensor2tensor'; MarianMT accepts 'interleaved', 'concatenated'")
            lines.append("first_position is 2; MarianMT accepts 0")
        assert all(line in str(caught.value) for line in lines)
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_readme_of_the_folder_runs(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, norm: str
) -> None:
    export_huggingface(build(norm=norm), tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlanguage:\n- de\n- en\n") and card.endswith("## The card of the model\n\n### tiny\n")
    found = re.search(r"```python\n(.*?)```", card, re.DOTALL)
    assert found is not None
    printed: list[str] = []
    monkeypatch.chdir(tmp_path / "out")
    exec(found[1], {"print": printed.append})
    assert len(printed) == 1 and printed[0]
    said = json.loads((tmp_path / "out" / "generation_config.json").read_text(encoding="utf-8"))
    assert (said["num_beams"], said["length_penalty"], said["max_length"]) == (5, 1.0, 64)
    assert said["suppress_tokens"] == [PAD, UNK, BOS]
