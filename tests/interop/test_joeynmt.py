"""JoeyNMT's Transformers, imported: equal to torch's own layers under the same weights, pre-norm and post-norm."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import Tensor, nn

from mt.errors import ModelError
from mt.interop.importer import import_model
from mt.interop.origin import ImportOptions
from mt.model.embedding import sinusoidal_positions
from mt.tokenizer import BOS, EOS
from tests.conftest import sentences
from tests.interop.conftest import loaded
from tests.interop.opus import pieces, unigram

SPECIAL = ["<unk>", "<pad>", "<s>", "</s>"]
D, INNER, HEADS, EPSILON = 32, 48, 4, 1e-6
ALLOWED = ImportOptions(allow_pickle=True)


def stack(layers: int, norm: str) -> dict[str, Any]:
    return {
        "type": "transformer",
        "num_layers": layers,
        "num_heads": HEADS,
        "hidden_size": D,
        "ff_size": INNER,
        "dropout": 0.1,
        "layer_norm": norm,
        "embeddings": {"embedding_dim": D, "scale": True},
    }


def write(folder: Path, norm: str, **changes: Any) -> tuple[list[str], dict[str, Tensor]]:
    """Returns the joint vocabulary and the weights, both sides of one matrix each."""
    folder.mkdir()
    texts = sentences(300)
    model = unigram(texts)
    vocabulary = [*SPECIAL, *sorted({piece for text in texts for piece in pieces(model, text)})]
    (folder / "spm.model").write_bytes(model)

    def text() -> dict[str, object]:  # a new dictionary each time, for which PyYAML writes no alias
        settings = {"model_file": "/elsewhere/spm.model"}
        return {"level": "bpe", "tokenizer_type": "sentencepiece", "tokenizer_cfg": settings}

    for side in ("src", "trg"):
        (folder / f"{side}_vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    options = {
        "data": {"src": {"lang": "en", **text()}, "trg": {"lang": "de", **text()}},
        "model": {"tied_softmax": True, "encoder": stack(2, norm), "decoder": stack(3, norm), **changes},
        "testing": {"beam_size": 7, "beam_alpha": 0.8},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(options), encoding="utf-8")
    weights = random_weights(len(vocabulary), norm)
    torch.save({"model_state": weights, "optimizer_state": {"steps": 3}}, folder / "best.ckpt")
    return vocabulary, weights


def random_weights(size: int, norm: str) -> dict[str, Tensor]:
    torch.manual_seed(1)
    found = {"src_embed.lut.weight": torch.randn(size, D) * 0.3, "trg_embed.lut.weight": torch.randn(size, D) * 0.3}
    found["decoder.output_layer.weight"] = found["trg_embed.lut.weight"]

    def linear(name: str, inputs: int, outputs: int) -> None:
        found[f"{name}.weight"], found[f"{name}.bias"] = torch.randn(outputs, inputs) * 0.3, torch.randn(outputs) * 0.3

    def layer_norm(name: str) -> None:
        found[f"{name}.weight"], found[f"{name}.bias"] = 1 + 0.2 * torch.randn(D), 0.3 * torch.randn(D)

    for side, layers, attentions, norms in (
        ("encoder", 2, ["src_src_att"], ["layer_norm"]),
        ("decoder", 3, ["trg_trg_att", "src_trg_att"], ["x_layer_norm", "dec_layer_norm"]),
    ):
        found[f"{side}.pe.pe"] = sinusoidal_positions(5000, D)[None]
        for index in range(layers):
            name = f"{side}.layers.{index}."
            for attention in attentions:
                for projection in ("k_layer", "v_layer", "q_layer", "output_layer"):
                    linear(f"{name}{attention}.{projection}", D, D)
            linear(f"{name}feed_forward.pwff_layer.0", D, INNER)
            linear(f"{name}feed_forward.pwff_layer.3", INNER, D)
            for each in (*norms, "feed_forward.layer_norm"):
                layer_norm(name + each)
        if norm == "pre":
            layer_norm(f"{side}.layer_norm")
    return found


def reference(weights: dict[str, Tensor], norm: str, source: list[int], target: list[int]) -> tuple[Tensor, Tensor]:
    """Encoder output and logits by torch's layers."""

    def load(layer: nn.Module, name: str, attentions: dict[str, str], norms: dict[str, str]) -> nn.Module:
        state = {}
        for theirs, attention in attentions.items():
            parts = [f"{name}{attention}.{letter}_layer" for letter in "qkv"]
            for kind in ("weight", "bias"):
                state[f"{theirs}.in_proj_{kind}"] = torch.cat([weights[f"{part}.{kind}"] for part in parts])
                state[f"{theirs}.out_proj.{kind}"] = weights[f"{name}{attention}.output_layer.{kind}"]
        feed_forward = {"linear1": "feed_forward.pwff_layer.0", "linear2": "feed_forward.pwff_layer.3"}
        for theirs, own in {**feed_forward, **norms}.items():
            for kind in ("weight", "bias"):
                state[f"{theirs}.{kind}"] = weights[f"{name}{own}.{kind}"]
        layer.load_state_dict(state)
        return layer.eval()

    def closed(x: Tensor, side: str) -> Tensor:
        weight, bias = (weights.get(f"{side}.layer_norm.{kind}") for kind in ("weight", "bias"))
        return nn.functional.layer_norm(x, (D,), weight, bias, EPSILON) if norm == "pre" else x

    def embedded(ids: list[int], side: str) -> Tensor:
        return weights[f"{side}_embed.lut.weight"][ids][None] * math.sqrt(D) + sinusoidal_positions(len(ids), D)

    arguments = (D, HEADS, INNER, 0.0)
    options = {"layer_norm_eps": EPSILON, "batch_first": True, "norm_first": norm == "pre"}
    memory, states = embedded(source, "src"), embedded(target, "trg")
    for index in range(2):
        layer: nn.Module = nn.TransformerEncoderLayer(*arguments, **options)  # type: ignore[arg-type]
        norms = {"norm1": "layer_norm", "norm2": "feed_forward.layer_norm"}
        memory = load(layer, f"encoder.layers.{index}.", {"self_attn": "src_src_att"}, norms)(memory)
    memory = closed(memory, "encoder")
    mask = nn.Transformer.generate_square_subsequent_mask(len(target))
    for index in range(3):
        layer = nn.TransformerDecoderLayer(*arguments, **options)  # type: ignore[arg-type]
        norms = {"norm1": "x_layer_norm", "norm2": "dec_layer_norm", "norm3": "feed_forward.layer_norm"}
        attentions = {"self_attn": "trg_trg_att", "multihead_attn": "src_trg_att"}
        states = load(layer, f"decoder.layers.{index}.", attentions, norms)(states, memory, tgt_mask=mask)
    return memory, closed(states, "decoder") @ weights["decoder.output_layer.weight"].T


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_equal_to_torchs_layers(norm: str, tmp_path: Path) -> None:
    vocabulary, weights = write(tmp_path / "model", norm)
    import_model(str(tmp_path / "model"), tmp_path / "out", options=ALLOWED)
    ours = loaded(tmp_path / "out")
    decoding = ours.description.decoding
    assert (decoding.beam_size, decoding.length_penalty, decoding.normalization) == (7, 0.8, "gnmt")
    tokenizer = ours.tokenizer
    order = [vocabulary.index(piece) for piece in tokenizer.pieces(range(len(tokenizer)))]  # nothing more, nothing less
    for text in sentences(5):
        ids = tokenizer.encode(text)
        theirs = [order[id] for id in ids]
        with torch.inference_mode():
            memory, logits = reference(weights, norm, [*theirs, 3], [2, *theirs])
            mine = torch.tensor([[*ids, EOS]])
            torch.testing.assert_close(ours.model.encode(mine, mine > 0), memory, atol=1e-5, rtol=0)
            found = ours.model(mine, mine > 0, torch.tensor([[BOS, *ids]]))
        torch.testing.assert_close(found, logits[..., order], atol=2e-5, rtol=1e-5)


def test_the_layout_of_joeynmt_1_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "model", "pre", encoder="transformer")
    path = tmp_path / "model" / "config.yaml"
    options = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({**options, "data": {"src": "en", "trg": "de"}}), encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        import_model(str(tmp_path / "model"), tmp_path / "out", options=ALLOWED)
    names = {"data.src": "en", "data.trg": "de", "model.encoder": "transformer"}
    lines = [
        f"  - {name} is {value!r}; accepted: a section with options, as in JoeyNMT 2" for name, value in names.items()
    ]
    assert str(caught.value).splitlines() == [f"{path} cannot be read:", *lines]


def test_all_problems_are_listed(tmp_path: Path) -> None:
    encoder = {**stack(2, "pre"), "activation": "tanh", "num_heads": 2}
    write(tmp_path / "model", "post", encoder=encoder, tied_embeddings=True)
    with pytest.raises(ModelError, match=r"is a pickle\. To read it, give --allow-pickle"):
        import_model(str(tmp_path / "model"), tmp_path / "out")
    with pytest.raises(ModelError) as caught:
        import_model(str(tmp_path / "model"), tmp_path / "out", options=ALLOWED)
    for line in (
        "model.encoder.activation is 'tanh'; accepted: 'relu', 'gelu', 'swish'",
        "model.encoder.layer_norm is 'pre' and model.decoder.layer_norm is 'post'; accepted: equal values",
        "model.encoder.num_heads is 2 and model.decoder.num_heads is 4; accepted: equal values",
        "src_embed.lut.weight differs from trg_embed.lut.weight",
        "encoder.layer_norm.weight is missing in the source model",
    ):
        assert line in str(caught.value)
    torch.save({"model_state": {"steps": 3}}, tmp_path / "model" / "best.ckpt")
    with pytest.raises(ModelError, match=r"best.ckpt holds values that are not weights.*\n.*'steps' is of type int"):
        import_model(str(tmp_path / "model"), tmp_path / "out", options=ALLOWED)
