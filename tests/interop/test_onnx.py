"""Our models say the same in onnxruntime."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mt.checkpoint import LoadedModel
from mt.data.corpus import read_lines
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.scorer import ModelScorer, Scorer, padded, token_mask
from mt.errors import ModelError
from mt.interop.importer import import_model
from mt.interop.onnx import export_onnx
from mt.scoring.pairs import score_targets
from mt.tokenizer import EOS
from tests.conftest import sentences
from tests.decoding.reference import decode
from tests.interop.conftest import Build, loaded
from tests.interop.opus import Opus

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra: interop)")
pytest.importorskip("onnxscript", reason="onnxscript is not installed (extra: interop)")

OPTIONS: dict[str, dict[str, Any]] = {
    "pre-norm": {},
    "post-norm, gelu, bias": {"norm": "post", "activation": "gelu", "logits_bias": True, "norm_epsilon": 1e-3},
    "swish, untied": {"activation": "swish", "tie_source": False, "tie_output": False, "scale_embedding": False},
    "sines first, a later position": {"norm": "post", "positions": "concatenated", "first_position": 2},
}
TIE = 1e-4


@dataclass
class OnnxState:
    """What the decoder is fed next: the cache [L, B, K, H, T, d_k], and of each sentence what the encoder gave."""

    cache: dict[str, np.ndarray]
    cross: dict[str, np.ndarray]
    source_mask: np.ndarray

    def reorder(self, rows: Tensor) -> None:
        for name, part in self.cache.items():
            layers, batch, beams, *rest = part.shape
            moved = part.reshape(layers, batch * beams, *rest)[:, rows.numpy()]
            self.cache[name] = moved.reshape(part.shape)

    def select(self, sentences: Tensor) -> None:
        chosen = sentences.numpy()
        self.cache = {name: part[:, chosen] for name, part in self.cache.items()}
        self.cross = {name: part[:, chosen] for name, part in self.cross.items()}
        self.source_mask = self.source_mask[chosen]

    def extend(self, other: "OnnxState") -> None:
        raise NotImplementedError("these tests add no sentences")


@dataclass(frozen=True)
class OnnxScorer:
    """A folder that `export_onnx` wrote, in onnxruntime, under our searches."""

    folder: Path
    special: SpecialIds = field(default_factory=SpecialIds)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def __post_init__(self) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        for name in ("encoder", "decoder"):
            file = str(self.folder / f"{name}.onnx")
            session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
            object.__setattr__(self, f"_{name}", session)

    def start(self, sources: Sequence[Sequence[int]], beams: int) -> OnnxState:
        source, mask = padded(sources, self.special.pad, self.device).numpy(), token_mask(sources, self.device).numpy()
        keys, values = self._encoder.run(None, {"source": source, "source_mask": mask})  # type: ignore[attr-defined]
        layers, batch, heads, _, d_k = keys.shape
        nothing = np.zeros((layers, batch, beams, heads, 0, d_k), np.float32)
        return OnnxState({"keys": nothing, "values": nothing}, {"cross_keys": keys, "cross_values": values}, mask)

    def step(self, state: OnnxState, tokens: Tensor) -> Tensor:
        asked = tokens.numpy().reshape(len(state.source_mask), -1)
        given = {"tokens": asked, "source_mask": state.source_mask, **state.cache, **state.cross}
        logits, keys, values = self._decoder.run(None, given)  # type: ignore[attr-defined]
        state.cache = {"keys": keys, "values": values}
        return torch.from_numpy(logits).flatten(0, 1)


def exported(model: Path, out: Path) -> tuple[LoadedModel, OnnxScorer]:
    export_onnx(model, out)
    return loaded(model), OnnxScorer(out)


def encoded(model: LoadedModel, texts: Sequence[str]) -> list[list[int]]:
    return [[*model.tokenizer.encode(text), EOS] for text in texts]


def assert_same(model: LoadedModel, scorer: OnnxScorer) -> None:
    """Logits of each step, and translations with beams and without, of a batch that has padding."""
    sources = encoded(model, sentences(12))
    assert len({len(source) for source in sources}) > 2
    ours = ModelScorer(model.model)
    states = ours.start(sources, 2), scorer.start(sources, 2)
    for _ in range(5):
        tokens = torch.randint(EOS + 1, model.model.vocabulary_size, (24,))
        expected, found = ours.step(states[0], tokens), scorer.step(states[1], tokens)
        torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-5)
    for beam_size in (1, 4):
        options = SearchOptions(beam_size=beam_size, max_length_factor=0, max_length_offset=15)
        mine, theirs = decode(ours, sources, options), decode(scorer, sources, options)
        assert len({found[0].tokens for found in mine}) > 1
        assert [found[0].tokens for found in theirs] == [found[0].tokens for found in mine]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(changes, marks=[pytest.mark.slow] if place else [], id=id)
        for place, (id, changes) in enumerate(OPTIONS.items())
    ],
)
def test_logits_and_translations_are_ours(build: Build, tmp_path: Path, changes: dict[str, Any]) -> None:
    assert_same(*exported(build(**changes), tmp_path / "out"))


@pytest.mark.slow
def test_an_imported_model_of_two_vocabularies(tmp_path: Path) -> None:
    import_model(str(Opus(two_vocabularies=True).write(tmp_path / "opus")), tmp_path / "model", ["en-de"])
    assert_same(*exported(tmp_path / "model", tmp_path / "out"))
    assert run_readme(tmp_path) == greedy(tmp_path / "model")


def run_readme(folder: Path) -> str:
    """What the code in the README.md of the folder `out` prints."""
    printed: list[str] = []
    before = Path.cwd()
    os.chdir(folder / "out")
    try:
        exec(code(folder / "out"), {"print": printed.append})
    finally:
        os.chdir(before)
    return printed[0]


def code(folder: Path) -> str:
    found = re.search(r"```python\n(.*?)```", (folder / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def greedy(folder: Path, opening: Sequence[int] = ()) -> str:
    """Our translation of the README's text, with the README's limit. There no EOS is forced at its end."""
    model = loaded(folder)
    source = [*opening, *model.tokenizer.encode("A text."), EOS]
    longest = min(2 * len(source) + 10, model.description.model.max_length)
    options = SearchOptions(beam_size=1, max_length_factor=0, max_length_offset=longest + 1)
    (found,) = decode(ModelScorer(model.model), [source], options)
    return model.tokenizer.target.decode(found[0].tokens)


def test_the_readme_is_a_complete_translator(build: Build, tmp_path: Path) -> None:
    folder = build()
    export_onnx(folder, tmp_path / "out")
    assert code(tmp_path / "out").count("\n") <= 25
    assert run_readme(tmp_path) == greedy(folder) != ""
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "Opset 18" in card and card.endswith("## The card of the model\n\n### tiny\n")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"README.md", "config.json", "decoder.onnx", "encoder.onnx", "tokenizer.model"}


@pytest.mark.slow
def test_the_readme_of_several_directions_asks_for_one(build: Build, tmp_path: Path) -> None:
    folder = build(directions=("en-fr", "en-de"))
    export_onnx(folder, tmp_path / "out")
    tag = loaded(folder).tokenizer.tag_id("de")
    assert json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))["source_prefixes"]["de"] == [tag]
    assert f"[[{tag}, *tokenizer" in code(tmp_path / "out")
    assert run_readme(tmp_path) == greedy(folder, [tag])


@pytest.mark.slow
def test_what_is_longer_than_the_model_reads_is_refused(build: Build, tmp_path: Path) -> None:
    _, scorer = exported(build(max_length=8), tmp_path / "out")
    state, token = scorer.start([[5] * 8], 1), torch.tensor([5])
    for _ in range(8):
        scorer.step(state, token)
    with pytest.raises(Exception, match="invalid index found, index = 8"):
        scorer.step(state, token)
    with pytest.raises(Exception, match="8 by 9"):
        scorer.start([[5] * 9], 1)


def test_what_cannot_be_done_is_said(build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mt.interop.onnx.LARGEST", 1000)
    with pytest.raises(ModelError, match=r"0\.0 GiB of weights; accepted: less than 2"):
        export_onnx(build(), tmp_path / "out")
    monkeypatch.setattr("mt.interop.onnx.find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"onnxscript is not installed\. Run pip install"):
        export_onnx(tmp_path / "model", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_what_is_no_model_is_not_replaced(build: Build, tmp_path: Path) -> None:
    folder = build()
    with pytest.raises(ModelError, match="is or contains the model to convert, and would be replaced"):
        export_onnx(folder, folder)
    export_onnx(folder, tmp_path / "out")
    export_onnx(folder, tmp_path / "out")


def translations(scorer: Scorer[Any], sources: Sequence[Sequence[int]]) -> list[Hypothesis]:
    options = SearchOptions(beam_size=5)
    batches = (sources[begin : begin + 50] for begin in range(0, len(sources), 50))
    return [hypotheses[0] for batch in batches for hypotheses in decode(scorer, batch, options)]


@pytest.mark.slow
def test_1000_real_sentences(tmp_path: Path) -> None:
    """The same translations, beam 5; what differs is as probable."""
    corpora, folder = os.environ.get("MT_TEST_CORPORA"), os.environ.get("MT_TEST_MODEL")
    if not corpora or not folder:
        pytest.skip("MT_TEST_CORPORA (real corpora) and MT_TEST_MODEL (an en-de model) are not both set")
    model, scorer = exported(Path(folder), tmp_path / "out")
    lines = [line.strip() for line in read_lines(Path(corpora) / "multi30k" / "test_2016_flickr.en.gz")]
    sources = sorted(encoded(model, lines), key=len)
    ours = ModelScorer(model.model)
    mine, theirs = translations(ours, sources), translations(scorer, sources)
    differ = [number for number in range(1000) if mine[number].tokens != theirs[number].tokens]
    print(f"{1000 - len(differ)} of {len(mine)} the same")
    scored = [score_targets(ours, [sources[n]], [theirs[n].tokens])[0] for n in differ]
    gaps = [
        abs(mine[n].score - each.log_probability / len(each.token_log_probabilities))
        for n, each in zip(differ, scored, strict=True)
    ]
    assert len(mine) == 1000 and len(differ) <= 10 and all(gap < TIE for gap in gaps)
