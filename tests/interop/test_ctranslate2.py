"""Our models say the same in CTranslate2."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mt.checkpoint import load_model
from mt.decoding.options import SearchOptions
from mt.decoding.scorer import ModelScorer
from mt.errors import ModelError
from mt.interop.ctranslate2 import POSITIONS, export_ctranslate2, fill, weight_rows
from mt.interop.importer import import_model
from mt.scoring.pairs import score_targets
from mt.tokenizer import EOS
from tests.conftest import sentences
from tests.decoding.reference import decode
from tests.interop.conftest import Build
from tests.interop.opus import Opus

ctranslate2 = pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed (extra: interop)")
NEVER = [["<pad>"], ["<unk>"], ["<s>"]]  # what our searches never produce


def translator(folder: Path) -> Any:
    return ctranslate2.Translator(str(folder), device="cpu", compute_type="float32", intra_threads=1)


OPTIONS: dict[str, dict[str, Any]] = {
    "pre-norm": {},
    "pre-norm, gelu": {"activation": "gelu"},
    "post-norm": {"norm": "post"},
    "post-norm, gelu, bias": {"norm": "post", "activation": "gelu", "logits_bias": True, "norm_epsilon": 1e-3},
    "swish, untied": {"activation": "swish", "tie_source": False, "tie_output": False, "scale_embedding": False},
    "learned positions, norm of the embeddings": {"positions": "learned", "embedding_norm": True},
    "sines first, a later position": {"norm": "post", "positions": "concatenated", "first_position": 2},
}


@pytest.mark.parametrize("changes", OPTIONS.values(), ids=OPTIONS)
def test_scores_and_greedy_tokens_are_ours(build: Build, tmp_path: Path, changes: dict[str, Any]) -> None:
    folder = build(**changes)
    export_ctranslate2(folder, tmp_path / "out")
    model = load_model(folder)
    tokenizer, theirs = model.tokenizer, translator(tmp_path / "out")
    sources = [tokenizer.encode(text) for text in sentences(12)]
    targets = [tokenizer.encode(text) for text in sentences(12, seed=1)]
    assert len({len(source) for source in sources}) > 2, "padding should play a part"

    scorer = ModelScorer(model.model)
    asked = [[*source, EOS] for source in sources]
    pieces = [tokenizer.pieces(source) for source in sources]
    given = theirs.score_batch(pieces, [tokenizer.pieces(target) for target in targets])
    for our, their in zip(score_targets(scorer, asked, targets), given, strict=True):
        assert their.log_probs == pytest.approx(our.token_log_probabilities, abs=1e-4)

    options = SearchOptions(beam_size=1, max_length_factor=0, max_length_offset=20)
    found = theirs.translate_batch(pieces, beam_size=1, max_decoding_length=20, suppress_sequences=NEVER)
    ours = [hypotheses[0].tokens for hypotheses in decode(scorer, asked, options)]
    assert len(set(ours)) > 1
    # At the longest length our search ends a sentence, with an EOS that counts; CTranslate2 just stops.
    assert [tokenizer.pieces(tokens[:19]) for tokens in ours] == [x.hypotheses[0][:19] for x in found]


def assert_score_is_ours(folder: Path, source: list[int], target: list[int]) -> None:
    """`folder`/model is exported to `folder`/out."""
    export_ctranslate2(folder / "model", folder / "out")
    model = load_model(folder / "model")
    pieces = model.tokenizer.pieces(source), model.tokenizer.target.pieces(target)
    given = translator(folder / "out").score_batch([pieces[0]], [pieces[1]])
    ours = score_targets(ModelScorer(model.model), [[*source, EOS]], [target])
    assert given[0].log_probs == pytest.approx(ours[0].token_log_probabilities, abs=1e-4)


def test_an_imported_model_of_two_vocabularies(tmp_path: Path) -> None:
    import_model(str(Opus(two_vocabularies=True).write(tmp_path / "opus")), tmp_path / "model", ["en-de"])
    tokenizer, text = load_model(tmp_path / "model").tokenizer, sentences(1)[0]
    assert_score_is_ours(tmp_path, tokenizer.encode(text), tokenizer.target.encode(text[::-1].lower()))
    assert (tmp_path / "out" / "tokenizer.target.model").exists()


def test_a_language_tag_is_a_piece_before_the_text(build: Build, tmp_path: Path) -> None:
    tokenizer = load_model(build(directions=("en-de", "en-fr"))).tokenizer
    source, target = (tokenizer.encode(text) for text in sentences(2))
    assert_score_is_ours(tmp_path, [tokenizer.tag_id("fr"), *source], target)
    assert "['<2de>'] + pieces" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_the_readme_of_the_folder_runs(build: Build, tmp_path: Path) -> None:
    export_ctranslate2(build(), tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"README.md", "config.json", "model.bin", "shared_vocabulary.json", "tokenizer.model"}
    config = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    assert config["layer_norm_epsilon"] == 1e-5
    code = re.search(r"```python\n(.*?)```", (tmp_path / "out" / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    done = subprocess.run([sys.executable, "-c", code[1]], cwd=tmp_path / "out", capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip(), done.stderr


def test_a_place_without_a_weight_is_named(build: Build) -> None:
    model = load_model(build(norm="post"))
    weights = {**model.model.state_dict(), POSITIONS: model.model.target_input.positions.weight}
    spec = ctranslate2.specs.TransformerSpec.from_config((2, 3), 4, pre_norm=True)
    with pytest.raises(ModelError, match="decoder/layer_norm/gamma of the target model gets no weight"):
        fill(spec, weights, tuple(weight_rows(model.description.model)))
