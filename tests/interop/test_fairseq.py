"""fairseq's Transformers, imported: equal to transformers' FSMT, which computes what fairseq's post-norm models do."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch

from mt.errors import ModelError
from mt.interop.importer import import_model
from mt.interop.origin import ImportOptions
from mt.tokenizer import BOS, EOS
from tests.conftest import sentences
from tests.interop.conftest import enlarge, loaded
from tests.interop.opus import pieces, unigram

transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra: interop)")

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
OPTIONS = {
    "source_lang": "en",
    "target_lang": "de",
    "encoder_layers": 2,
    "decoder_layers": 3,
    "max_source_positions": 128,
    "max_target_positions": 96,
    "dropout": 0.1,
    **{f"{side}_embed_dim": 32 for side in ("encoder", "decoder")},
    **{f"{side}_ffn_embed_dim": 48 for side in ("encoder", "decoder")},
    **{f"{side}_attention_heads": 4 for side in ("encoder", "decoder")},
}
ALLOWED = ImportOptions(allow_pickle=True)


def dictionaries(folder: Path) -> list[list[str]]:
    """Writes SentencePiece models and dictionaries of both sides; returns their pieces by id."""
    found = []
    for name, language, texts in (
        ("source", "en", sentences(300)),
        ("target", "de", [text[::-1].lower() for text in sentences(300)]),
    ):
        model = unigram(texts)
        # Some pieces hold what ends a line elsewhere.
        own = sorted({piece for text in texts for piece in pieces(model, text)} | {"\u2028", "a\x85b"})
        (folder / f"{name}.spm").write_bytes(model)
        lines = "".join(f"{piece} {100 - number}\n" for number, piece in enumerate(own))
        (folder / f"dict.{language}.txt").write_text(lines, encoding="utf-8")
        found.append([*SPECIAL, *own])
    return found


def fsmt(sizes: list[int], tied: bool = False) -> Any:
    torch.manual_seed(1)
    config = transformers.FSMTConfig(
        langs=["en", "de"],
        src_vocab_size=sizes[0],
        tgt_vocab_size=sizes[1],
        d_model=32,
        encoder_layers=2,
        decoder_layers=3,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        max_position_embeddings=128,
        scale_embedding=True,
        init_std=0.2,
    )
    model = transformers.FSMTForConditionalGeneration(config).eval()
    positions = {name: weight.clone() for name, weight in model.named_parameters() if "embed_positions" in name}
    enlarge(model)
    model.load_state_dict(positions, strict=False)  # which are no weights
    if tied:
        model.model.decoder.output_projection.weight = model.model.decoder.embed_tokens.weight
    return model


def checkpoint(model: Any, tied: bool = False) -> dict[str, Any]:
    """As fairseq saves it, with what it computes rather than learns."""
    weights = {name.removeprefix("model."): weight.clone() for name, weight in model.state_dict().items()}
    weights = {name: weight for name, weight in weights.items() if "embed_positions" not in name}
    for side in ("encoder", "decoder"):
        weights[f"{side}.version"] = torch.tensor([3.0])
        weights[f"{side}.embed_positions._float_tensor"] = torch.zeros(1)
    options = Namespace(**OPTIONS, share_decoder_input_output_embed=tied)
    return {"args": options, "model": weights, "extra_state": {"epoch": 3}, "optimizer_history": []}


@pytest.mark.parametrize("tied", [True, False])
def test_equal_to_fsmt(tied: bool, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    listed = dictionaries(folder)
    theirs = fsmt([len(side) for side in listed], tied)
    torch.save(checkpoint(theirs, tied), folder / "checkpoint_best.pt")
    import_model(str(folder), tmp_path / "out", options=ALLOWED)
    ours = loaded(tmp_path / "out")
    assert (str(ours.description.directions), ours.model.config.max_length) == ("en-de", 96)
    source, target = ours.tokenizer, ours.tokenizer.target
    order = [listed[1].index(piece) for piece in target.pieces(range(EOS, len(target))) if piece in listed[1]]
    for text in sentences(5):
        asked, written = [*source.encode(text), EOS], target.encode(text[::-1].lower())
        their_asked = torch.tensor([[listed[0].index(piece) for piece in source.pieces(asked)]])
        their_written = torch.tensor([[2, *(listed[1].index(piece) for piece in target.pieces(written))]])
        mine = torch.tensor([asked])
        with torch.inference_mode():
            expected = theirs(input_ids=their_asked, decoder_input_ids=their_written, use_cache=False)
            logits = ours.model(mine, mine > 0, torch.tensor([[BOS, *written]]))
            memory = ours.model.encode(mine, mine > 0)
        torch.testing.assert_close(memory, expected.encoder_last_hidden_state, atol=1e-5, rtol=0)
        kept = [id for id in range(EOS, len(target)) if target.pieces([id])[0] in listed[1]]
        torch.testing.assert_close(logits[..., kept], expected.logits[..., order], atol=1e-5, rtol=1e-5)
        exact = logits.log_softmax(-1)[..., kept], expected.logits.log_softmax(-1)[..., order]
        torch.testing.assert_close(*exact, atol=1e-4, rtol=1e-5)


def test_a_pickle_is_read_only_if_allowed_and_all_problems_are_listed(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    listed = dictionaries(folder)
    content = checkpoint(fsmt([len(side) for side in listed]))
    content["args"] = Namespace(**{**OPTIONS, "encoder_learned_pos": True, "decoder_ffn_embed_dim": 64})
    del content["model"]["encoder.layers.0.fc1.bias"]
    content["model"]["encoder.layers.0.self_attn.in_proj_weight"] = torch.zeros(4)
    torch.save(content, folder / "model.pt")
    with pytest.raises(ModelError, match=r"is a pickle\. To read it, give --allow-pickle"):
        import_model(str(folder), tmp_path / "out")
    with pytest.raises(ModelError) as caught:
        import_model(str(folder), tmp_path / "out", options=ALLOWED)
    for line in (
        "encoder_learned_pos is True; accepted: False",
        "encoder_ffn_embed_dim is 48 and decoder_ffn_embed_dim is 64; accepted: equal values",
        "encoder.layers.0.fc1.bias is missing in the source model",
        "encoder.layers.0.self_attn.in_proj_weight of the source model has no counterpart",
    ):
        assert line in str(caught.value)
    content["args"] = Namespace(**{**OPTIONS, "source_lang": "../../en"})
    torch.save(content, folder / "model.pt")
    with pytest.raises(ModelError, match=r"source_lang is '\.\./\.\./en'; accepted: a language such as 'en'"):
        import_model(str(folder), tmp_path / "out", options=ALLOWED)
    content["args"] = Namespace(**OPTIONS)
    content["model"]["epoch"] = 3
    torch.save(content, folder / "model.pt")
    with pytest.raises(ModelError, match=r"model.pt holds values that are not weights.*\n.*'epoch' is of type int"):
        import_model(str(folder), tmp_path / "out", options=ALLOWED)
    (folder / "dict.de.txt").unlink()
    with pytest.raises(ModelError, match=r"dict.de.txt is missing"):
        import_model(str(folder), tmp_path / "out", options=ALLOWED)
