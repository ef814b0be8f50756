"""MarianMT models of transformers, imported: the same numbers in another order."""

import json
import os
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from mt.checkpoint import LoadedModel
from mt.data.corpus import read_lines
from mt.decoding.options import SearchOptions
from mt.decoding.scorer import ModelScorer
from mt.decoding.search import decode
from mt.errors import ModelError
from mt.interop.huggingface import channel_order, import_marian
from mt.tokenizer import BOS, EOS, Tokenizer, train_tokenizer
from tests.conftest import sentences
from tests.interop.conftest import enlarge, loaded

transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra: interop)")

Write = Callable[..., Path]


@pytest.fixture(scope="module")
def spm() -> bytes:
    return train_tokenizer(sentences(300), vocabulary_size=330)


@pytest.fixture
def write(tmp_path: Path, spm: bytes) -> Write:
    """Writes a MarianMT directory with random weights: ids as in OPUS-MT, eos 0, unk 1, a piece of no text, pad."""

    def write_marian(start: str = "<pad>", **changes: Any) -> Path:
        torch.manual_seed(1)
        tokenizer = Tokenizer(spm)
        pieces = ["</s>", "<unk>", *tokenizer.pieces(range(4, len(tokenizer))), "<dummy>", "<pad>"]
        vocabulary = {piece: number for number, piece in enumerate(pieces)}
        sizes = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 32, "max_position_embeddings": 64}
        sizes |= {"encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "encoder_attention_heads": 4}
        ids = {"pad_token_id": vocabulary["<pad>"], "decoder_start_token_id": vocabulary[start], "eos_token_id": 0}
        options = {
            "activation_function": "relu",
            "scale_embedding": True,
            "decoder_attention_heads": 4,
            "init_std": 0.2,
        }
        config = transformers.MarianConfig(**{**sizes, **ids, **options, "vocab_size": len(pieces), **changes})
        model = transformers.MarianMTModel(config).eval()
        enlarge(model)
        model.save_pretrained(tmp_path / "marian")
        for name in ("source.spm", "target.spm"):
            (tmp_path / "marian" / name).write_bytes(spm)
        (tmp_path / "marian" / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
        return tmp_path / "marian"

    return write_marian


def their_ids(folder: Path, model: LoadedModel) -> list[int]:
    """Their id of each of our pieces, but for pad and BOS, which have none of their own: from 3 on."""
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    return [vocabulary[piece] for piece in model.tokenizer.pieces(range(3, len(model.tokenizer)))]


@pytest.mark.parametrize(("activation", "start"), [("relu", "<pad>"), ("gelu", "<pad>"), ("relu", "</s>")])
def test_encoder_logits_and_greedy_tokens_are_theirs(write: Write, tmp_path: Path, activation: str, start: str) -> None:
    folder = write(start, activation_function=activation)
    import_marian(folder, tmp_path / "out", "en-de")
    theirs, ours = transformers.MarianMTModel.from_pretrained(folder).eval(), loaded(tmp_path / "out")
    ids = [-1, -1, theirs.config.decoder_start_token_id, *their_ids(folder, ours)]
    texts = [ours.tokenizer.encode(text) for text in sentences(8)]
    for source, target in zip(texts[:4], texts[4:], strict=True):
        mine = torch.tensor([[*source, EOS]])
        asked = torch.tensor([[ids[piece] for piece in [*source, EOS]]])
        begun = torch.tensor([[ids[piece] for piece in [BOS, *target]]])
        with torch.inference_mode():
            memory = ours.model.encode(mine, mine > 0)
            expected = theirs(input_ids=asked, decoder_input_ids=begun)
            logits = ours.model(mine, mine > 0, torch.tensor([[BOS, *target]]))
            order = channel_order(theirs.config.d_model)
            torch.testing.assert_close(memory, expected.encoder_last_hidden_state[..., order], atol=1e-5, rtol=0)
            torch.testing.assert_close(logits[..., 3:], expected.logits[..., ids[3:]], atol=1e-5, rtol=1e-5)
            never = [theirs.config.pad_token_id, 1]
            found = theirs.generate(asked, num_beams=1, do_sample=False, max_new_tokens=20, suppress_tokens=never)
        options = SearchOptions(beam_size=1, max_length_factor=0, max_length_offset=20)
        tokens = decode(ModelScorer(ours.model), [[*source, EOS]], options)[0][0].tokens
        assert [*(ids[token] for token in tokens), theirs.config.eos_token_id] == found[0, 1:].tolist()


def test_text_becomes_their_pieces(write: Write, tmp_path: Path) -> None:
    folder = write()
    import_marian(folder, tmp_path / "out", "en-de")
    theirs, ours = transformers.MarianTokenizer.from_pretrained(folder), loaded(tmp_path / "out").tokenizer
    texts = [*sentences(50), "Ein Käfig, naïve  <dummy> <pad> </s> 漢字!", "x" * 40]
    for text in texts[:-2]:
        assert ours.pieces(ours.encode(text)) == theirs.tokenize(text)
    for text in texts:
        assert ours.decode(ours.encode(text)) == text
        assert "<dummy>" not in ours.pieces(ours.encode(text))
    assert ours.pieces(range(4)) == ["<pad>", "<unk>", "<s>", "</s>"]
    assert ours.pieces([len(ours) - 1]) == ["<dummy>"]


def test_the_model_is_an_ordinary_one(write: Write, tmp_path: Path) -> None:
    folder = write(num_beams=6, length_penalty=0.6)
    (folder / "README.md").write_text("---\nlanguage: de\nlicense: cc-by-4.0\n---\n", encoding="utf-8")
    import_marian(folder, tmp_path / "out", "en-de")
    found = loaded(tmp_path / "out").description
    assert (found.directions, found.model.norm, found.model.max_length) == (("en-de",), "post", 64)
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "Licence: cc-by-4.0." in card and "marian" in card


def test_everything_that_we_lack_is_listed_at_once(write: Write, tmp_path: Path) -> None:
    folder = write(activation_function="swish", scale_embedding=False, decoder_attention_heads=2)
    (folder / "target.spm").write_bytes(b"other")
    weights = load_file(folder / "model.safetensors")
    del weights["model.decoder.layers.2.fc2.weight"]
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelError) as caught:
        import_marian(folder, tmp_path / "out", "en")
    for line in (
        "activation_function is 'swish'; accepted: 'relu', 'gelu'",
        "scale_embedding is False; accepted: True",
        "encoder_attention_heads is 4 and decoder_attention_heads 2; accepted: equal ones",
        "source.spm and target.spm differ",
        "directions: Value error, no direction: 'en'",
        "model.decoder.layers.2.fc2.weight is missing in the source",
    ):
        assert line in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_every_weight_that_does_not_fit_is_listed_at_once(write: Write, tmp_path: Path) -> None:
    folder = write()
    weights = load_file(folder / "model.safetensors")
    weights["final_logits_bias"] = torch.ones_like(weights["final_logits_bias"])
    weights["model.encoder.layers.0.fc1.bias"] = torch.zeros(7)
    weights["model.encoder.layers.0.fc2.bias"][0] = torch.nan
    weights["model.decoder.layers.0.adapter.weight"] = torch.zeros(7)
    weights["model.encoder.embed_positions.weight"] = torch.zeros(64, 32)
    weights["lm_head.weight"] = weights["model.shared.weight"] + 1
    del weights["model.decoder.layers.2.fc2.weight"]
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelError) as caught:
        import_marian(folder, tmp_path / "out", "en-de")
    size = weights["final_logits_bias"].numel()
    for line in (
        f"final_logits_bias is not zero for {size - 1} pieces; accepted: zero but for padding",
        "model.encoder.layers.0.fc1.bias has the shape [7], not [48]",
        "model.encoder.layers.0.fc2.bias has values that are not finite",
        "model.decoder.layers.0.adapter.weight of the source is not placed",
        "model.decoder.layers.2.fc2.weight is missing in the source",
        "model.encoder.embed_positions.weight is not the sinusoidal table",
        "lm_head.weight differs from model.shared.weight",
    ):
        assert line in str(caught.value)


def test_vocabularies_that_do_not_fit(write: Write, tmp_path: Path) -> None:
    folder = write()
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    words = [piece for piece in vocabulary if piece.startswith("▁")][:1]
    renamed = {">>fra<<" if piece in words else piece: number for piece, number in vocabulary.items()}
    (folder / "vocab.json").write_text(json.dumps({**renamed, "more": 9999}), encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        import_marian(folder, tmp_path / "out", "en-de")
    assert f"vocab.json has {len(vocabulary) + 1} pieces, config.json vocab_size {len(vocabulary)}" in str(caught.value)
    assert "1 target-language tags, such as >>fra<<" in str(caught.value)
    assert f"1 pieces are not in the vocabulary, such as {words[0]!r}" in str(caught.value)


def test_missing_files_are_named_and_a_pickle_is_not_read(write: Write, tmp_path: Path) -> None:
    folder = write()
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    (folder / "vocab.json").unlink()
    with pytest.raises(ModelError) as caught:
        import_marian(folder, tmp_path / "out", "en-de")
    assert "vocab.json is missing" in str(caught.value)
    assert "model.safetensors is missing (pytorch_model.bin is a pickle, which could run code" in str(caught.value)


@pytest.mark.slow
def test_a_trained_model_with_beam_4(tmp_path: Path) -> None:
    """200 sentences, the same tokens as `generate`.

    It goes on while what is alive may beat the worst of its K hypotheses; we, the worst of the `n_best` asked for.
    """
    corpora, folder = os.environ.get("MT_TEST_CORPORA"), os.environ.get("MT_TEST_MARIAN")
    if not corpora or not folder:
        pytest.skip("MT_TEST_CORPORA (real corpora) and MT_TEST_MARIAN (an en-de MarianMT folder) are not both set")
    copy = shutil.copytree(folder, tmp_path / "marian")
    import_marian(copy, tmp_path / "out", "en-de")
    theirs, ours = transformers.MarianMTModel.from_pretrained(copy).eval(), loaded(tmp_path / "out")
    tokenizer = transformers.MarianTokenizer.from_pretrained(copy)
    options = SearchOptions(beam_size=4, n_best=4, length_penalty=1.0)
    lines = [line.strip() for line in read_lines(Path(corpora) / "multi30k" / "test_2016_flickr.en.gz")]
    assert [ours.tokenizer.pieces(ours.tokenizer.encode(line)) for line in lines] == [
        tokenizer.tokenize(line) for line in lines
    ]
    differ = []
    for line in islice(lines, 200):
        source = [*ours.tokenizer.encode(line), EOS]
        asked = tokenizer(line, return_tensors="pt")
        longest = options.longest(len(source))
        found = theirs.generate(
            **asked, num_beams=4, length_penalty=1.0, do_sample=False, early_stopping=False, max_new_tokens=longest
        )
        special = (theirs.config.eos_token_id, theirs.config.pad_token_id)
        expected = [tokenizer.decoder[token] for token in found[0].tolist() if token not in special]
        hypothesis = decode(ModelScorer(ours.model), [source], options)[0][0]
        if ours.tokenizer.pieces(hypothesis.tokens) != expected:
            differ.append((line, expected, ours.tokenizer.pieces(hypothesis.tokens)))
    assert differ == []
