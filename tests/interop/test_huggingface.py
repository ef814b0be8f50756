"""MarianMT models of transformers, imported: the same numbers under other names."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from mt.data.corpus import read_lines
from mt.errors import ModelError
from mt.interop.importer import import_model
from mt.interop.origin import ImportOptions
from mt.pipeline.translator import Translator
from mt.tokenizer import BOS, EOS, PAD
from tests.conftest import sentences
from tests.interop.conftest import enlarge, loaded
from tests.interop.opus import pieces, unigram
from tests.interop.parity import Pair, card, loaded_pair

transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra: interop)")

Write = Callable[..., Path]

TWO = {"share_encoder_decoder_embeddings": False}
OPTIONS: dict[str, dict[str, Any]] = {
    "relu": {},
    "gelu, begins with the end": {"activation_function": "gelu", "start": "</s>"},
    "swish, no scale": {"activation_function": "swish", "scale_embedding": False},
    "two vocabularies": {**TWO, "two": True},
    "two vocabularies, nothing tied": {**TWO, "two": True, "tie_word_embeddings": False, "activation_function": "silu"},
    "one vocabulary, two matrices": TWO,
}

BASE: dict[str, float] = {
    "encoder_layers": 6,
    "decoder_layers": 6,
    "d_model": 512,
    "encoder_ffn_dim": 2048,
    "decoder_ffn_dim": 2048,
}
BASE |= {"encoder_attention_heads": 8, "decoder_attention_heads": 8, "init_std": 0.05}


def reversed_text(count: int) -> list[str]:
    return [text[::-1].lower() for text in sentences(count)]


@pytest.fixture(scope="module")
def models() -> tuple[bytes, bytes]:
    """SentencePiece models of source and target."""
    return unigram(sentences(300)), unigram(reversed_text(300))


def vocabulary_of(*sides: tuple[bytes, list[str]]) -> dict[str, int]:
    """As OPUS-MT makes them: the end, the unknown, what occurs in the text, padding."""
    found = sorted({piece for model, texts in sides for text in texts for piece in pieces(model, text)})
    return {piece: id for id, piece in enumerate(["</s>", "<unk>", *found, "<dummy>", "<pad>"])}


@pytest.fixture
def write(tmp_path: Path, models: tuple[bytes, bytes]) -> Write:
    """Writes a MarianMT directory with random weights."""

    def write_marian(start: str = "<pad>", two: bool = False, tags: Sequence[str] = (), **changes: Any) -> Path:
        torch.manual_seed(1)
        sides = list(zip(models, (sentences(300), reversed_text(300)), strict=True))
        source, target = (vocabulary_of(side) for side in sides) if two else [vocabulary_of(*sides)] * 2
        source |= {tag: len(source) + number for number, tag in enumerate(tags)}
        if two:  # what pads has one id for both
            listed = [piece for piece in target if piece != "<pad>"]
            listed += [f"<{number}>" for number in range(len(source) - 1 - len(listed))]
            listed.insert(source["<pad>"], "<pad>")
            target = {piece: id for id, piece in enumerate([*listed, "<more>"])}
        sizes = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 32, "max_position_embeddings": 64}
        sizes |= {"encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "encoder_attention_heads": 4}
        ids: dict[str, int | None] = {
            "pad_token_id": source["<pad>"],
            "decoder_start_token_id": source[start],
            "eos_token_id": 0,
        }
        ids |= {"forced_eos_token_id": None}  # which would count as certain
        options = {"activation_function": "relu", "scale_embedding": True, "decoder_attention_heads": 4}
        vocabularies = {"vocab_size": len(source), "decoder_vocab_size": len(target)}
        config = transformers.MarianConfig(**{**sizes, **ids, **options, **vocabularies, "init_std": 0.2, **changes})
        model = transformers.MarianMTModel(config).eval()
        enlarge(model)
        model.final_logits_bias = torch.randn_like(model.final_logits_bias)
        model.final_logits_bias[0, 0] = 2  # so that most translations end before their longest length
        folder = tmp_path / "marian"
        model.save_pretrained(folder)
        for name, content in zip(("source.spm", "target.spm"), models, strict=True):
            (folder / name).write_bytes(content)
        (folder / "vocab.json").write_text(json.dumps(source), encoding="utf-8")
        if two:
            (folder / "target_vocab.json").write_text(json.dumps(target), encoding="utf-8")
        said = {"source_lang": "en", "target_lang": "de", "separate_vocabs": two}
        (folder / "tokenizer_config.json").write_text(json.dumps(said), encoding="utf-8")
        return folder

    return write_marian


def vocabularies(folder: Path) -> list[dict[str, int]]:
    files = [folder / name for name in ("vocab.json", "target_vocab.json") if (folder / name).exists()]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def imported(folder: Path, out: Path) -> Pair:
    import_model(str(folder), out)
    theirs = transformers.MarianMTModel.from_pretrained(folder).eval()
    return loaded_pair(theirs, loaded(out), vocabularies(folder))


def sources(pair: Pair, count: int) -> list[list[int]]:
    return [[*pair.ours.tokenizer.encode(text), EOS] for text in sentences(count)]


def targets(pair: Pair, count: int) -> list[list[int]]:
    return [pair.ours.tokenizer.target.encode(text) for text in reversed_text(count)]


def assert_equal_numbers(pair: Pair, count: int) -> None:
    for source, target in zip(sources(pair, count), targets(pair, count), strict=True):
        memory, expected_memory, logits, expected_logits = pair.outputs(source, target)
        torch.testing.assert_close(memory, expected_memory, atol=1e-5, rtol=0)
        torch.testing.assert_close(logits, expected_logits, atol=1e-5, rtol=1e-5)
        mine, theirs = pair.probabilities(source, target)
        torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("changes", OPTIONS.values(), ids=OPTIONS)
def test_encoder_logits_and_probabilities_are_theirs(write: Write, tmp_path: Path, changes: dict[str, Any]) -> None:
    assert_equal_numbers(imported(write(**changes), tmp_path / "out"), 4)


@pytest.mark.parametrize("changes", [OPTIONS["relu"], OPTIONS["two vocabularies"]], ids=["one", "two vocabularies"])
def test_four_beams_find_what_theirs_find(write: Write, tmp_path: Path, changes: dict[str, Any]) -> None:
    pair = imported(write(**changes), tmp_path / "out")
    found = pair.beams(sources(pair, 40), longest=40, penalty=1.0, ngram=1)
    assert found.translations > 10
    assert (found.better, found.worse) == (0, 0)


def test_text_becomes_their_pieces_and_theirs_text(write: Write, tmp_path: Path) -> None:
    folder = write(two=True, **TWO)
    import_model(str(folder), tmp_path / "out")
    theirs = transformers.MarianTokenizer.from_pretrained(folder)
    source = loaded(tmp_path / "out").tokenizer
    texts = [*sentences(50), "Ein Käfig, naïve  <dummy> 漢字!", "x" * 40, "", " the ▁ dog "]
    assert not {PAD, BOS, EOS} & set(source.encode("<pad> <s> </s>"))
    for text in texts:
        expected = [piece if piece in theirs.encoder else "<unk>" for piece in theirs.tokenize(text)]
        assert source.pieces(source.encode(text)) == expected
    assert source.encode_many(texts, threads=2) == [source.encode(text) for text in texts]
    for text in reversed_text(50):
        ids = source.target.encode(text)
        pieces_of_target = [theirs.target_encoder[piece] for piece in source.target.pieces(ids)]
        assert source.target.decode([*ids, EOS]) == theirs.decode(pieces_of_target, skip_special_tokens=True) == text


def test_the_model_is_an_ordinary_one(write: Write, tmp_path: Path) -> None:
    folder = write()
    said = {"num_beams": 6, "length_penalty": 0.6}
    (folder / "generation_config.json").write_text(json.dumps(said), encoding="utf-8")
    (folder / "README.md").write_text("---\nlanguage: de\nlicense: cc-by-4.0\n---\n", encoding="utf-8")
    import_model(str(folder), tmp_path / "out")
    found = loaded(tmp_path / "out").description
    assert (str(found.directions), found.model.norm, found.model.max_length) == ("en-de", "post", 64)
    assert (found.decoding.beam_size, found.decoding.length_penalty) == (6, 0.6)
    assert "Licence: cc-by-4.0." in card(tmp_path / "out") and "SHA-256 of `model.safetensors`: " in card(
        tmp_path / "out"
    )
    translator = Translator.load(tmp_path / "out", device="cpu", threads=1)
    options = replace(translator.options, beam_size=2)
    translation = translator.translate("The dog sees the cat. The man finds the house.", options=options)
    assert len(translation.sentences) == 2


def test_padding_that_is_banned_before_probabilities_are_made_has_none(write: Write, tmp_path: Path) -> None:
    folder = write()
    pad = vocabularies(folder)[0]["<pad>"]
    said = {"bad_words_ids": [[pad]], "renormalize_logits": True}
    (folder / "generation_config.json").write_text(json.dumps(said), encoding="utf-8")
    import_model(str(folder), tmp_path / "out")
    source = torch.tensor([[5, 6, EOS]])
    model = loaded(tmp_path / "out").model
    probabilities = model(source, source > 0, torch.tensor([[BOS, 7]])).softmax(-1)
    assert probabilities[..., :3:2].tolist() == [[[0, 0], [0, 0]]]  # padding, and what begins a translation


OPUS_TAGS = (">>deu<<", ">>por<<", ">>pob<<", ">>cmn_Hans<<", ">>cmn_Hant<<", ">>cmn<<", ">>srp_Latn<<", ">>id<<")


def test_a_model_with_tags_translates_into_each_language_that_has_one(write: Write, tmp_path: Path) -> None:
    folder = write(tags=OPUS_TAGS)
    import_model(str(folder), tmp_path / "out")
    found = loaded(tmp_path / "out")
    languages = ("de", "pt", "pt-BR", "zh", "zh-Hant", "sr-Latn", "id")
    assert (found.description.directions.sources, found.description.directions.targets) == (("en",), languages)
    tags = [found.tokenizer.pieces(found.tokenizer.source_prefix("en", language, [])) for language in languages]
    assert tags == [[tag] for tag in OPUS_TAGS if tag != ">>cmn<<"]
    theirs = transformers.MarianTokenizer.from_pretrained(folder)
    for language, (tag,) in zip(languages, tags, strict=True):
        expected = theirs.convert_ids_to_tokens(theirs(f"{tag} {sentences(1)[0]}").input_ids)
        prefix = found.tokenizer.source_prefix("en", language, [])
        assert found.tokenizer.pieces([*prefix, *found.tokenizer.encode(sentences(1)[0]), EOS]) == expected

    import_model(str(folder), tmp_path / "some", ["en-zh-Hant", "de-pt-BR"])
    assert loaded(tmp_path / "some").description.directions.to_config() == ["en-zh-Hant", "de-pt-BR"]
    (folder / "tokenizer_config.json").write_text('{"source_lang": "gmw", "target_lang": "mul"}', encoding="utf-8")
    with pytest.raises(
        ModelError, match=r"files state no direction. Give one with --direction; its tags are for >>deu"
    ):
        import_model(str(folder), tmp_path / "group")


def test_a_model_of_the_size_of_tc_big_with_weights_in_float16(write: Write, tmp_path: Path) -> None:
    """OPUS-MT's tc-big models have tags, ReLU, one vocabulary and float16 weights."""
    folder = write(tags=OPUS_TAGS, share_encoder_decoder_embeddings=True)
    transformers.MarianMTModel.from_pretrained(folder).half().save_pretrained(folder, max_shard_size="50KB")
    (folder / "model.safetensors").unlink(missing_ok=True)
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    import_model(str(folder), tmp_path / "out")
    theirs = transformers.MarianMTModel.from_pretrained(folder, dtype=torch.float32).eval()
    pair = loaded_pair(theirs, loaded(tmp_path / "out"), vocabularies(folder))
    assert_equal_numbers(pair, 2)


def test_everything_that_we_lack_is_listed_at_once(write: Write, tmp_path: Path) -> None:
    folder = write(activation_function="gelu_new", decoder_attention_heads=2)
    (folder / "target.spm").write_bytes(b"other")
    weights = load_file(folder / "model.safetensors")
    del weights["model.decoder.layers.2.fc2.weight"]
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelError) as caught:
        import_model(str(folder), tmp_path / "out", ["en"])
    for line in (
        "activation_function is 'gelu_new'; accepted: 'relu', 'gelu', 'swish', 'silu'",
        "encoder_attention_heads is 4 and decoder_attention_heads is 2; accepted: equal values",
        "the target's tokenizer: not a SentencePiece model (5 bytes)",
        "directions: Value error, 'en' is not a direction",
        "model.decoder.layers.2.fc2.weight is missing in the source model",
    ):
        assert line in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_every_weight_that_does_not_fit_is_listed_at_once(write: Write, tmp_path: Path) -> None:
    folder = write()
    weights = load_file(folder / "model.safetensors")
    weights["model.encoder.layers.0.fc1.bias"] = torch.zeros(7)
    weights["model.encoder.layers.0.fc2.bias"][0] = torch.nan
    weights["model.decoder.layers.0.adapter.weight"] = torch.zeros(7)
    weights["model.encoder.embed_positions.weight"] = torch.zeros(64, 32)
    weights["lm_head.weight"] = weights["model.shared.weight"] + 1
    del weights["model.decoder.layers.2.fc2.weight"]
    save_file(weights, folder / "model.safetensors")
    vocabulary = vocabularies(folder)[0]
    (folder / "vocab.json").write_text(json.dumps({**vocabulary, "more": 9999}), encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        import_model(str(folder), tmp_path / "out")
    for line in (
        "model.encoder.layers.0.fc1.bias has the shape [7]; accepted: [48]",
        "model.encoder.layers.0.fc2.bias has infinite or NaN values",
        "model.decoder.layers.0.adapter.weight of the source model has no counterpart",
        "model.decoder.layers.2.fc2.weight is missing in the source model",
        "model.encoder.embed_positions.weight is not the sinusoidal table",
        "lm_head.weight differs from model.shared.weight",
        f"vocab.json has {len(vocabulary) + 1} pieces, but config.json's vocab_size is {len(vocabulary)}",
        f"the vocabulary: ids are missing, repeated or too large; accepted: each id from 0 to {len(vocabulary)} once",
        f"model.shared.weight has the shape [{len(vocabulary)}, 32]; accepted: [{len(vocabulary) + 1}, 32]",
    ):
        assert line in str(caught.value)


@pytest.mark.parametrize("shape", [(4, 33), (4, 0), (32,), (2, 4, 32)], ids=str)
def test_positions_of_any_shape_are_a_problem_among_others(write: Write, tmp_path: Path, shape: tuple[int]) -> None:
    folder = write(encoder_attention_heads=2)
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, "model.encoder.embed_positions.weight": torch.zeros(shape)}, folder / "model.safetensors")
    with pytest.raises(ModelError) as caught:
        import_model(str(folder), tmp_path / "out")
    assert "model.encoder.embed_positions.weight is not the sinusoidal table" in str(caught.value)
    assert "encoder_attention_heads is 2 and decoder_attention_heads is 4" in str(caught.value)


@pytest.mark.parametrize("d_model", [33, 0])
def test_a_width_that_no_model_has_is_a_problem_among_others(write: Write, tmp_path: Path, d_model: int) -> None:
    folder = write()
    weights = load_file(folder / "model.safetensors")
    positions = torch.zeros(4, d_model)
    save_file({**weights, "model.encoder.embed_positions.weight": positions}, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "d_model": d_model}), encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        import_model(str(folder), tmp_path / "out")
    assert "d_model: Input should be" in str(caught.value)
    assert "model.encoder.embed_positions.weight is not the sinusoidal table" in str(caught.value)


@pytest.mark.parametrize("id", [[0], None, 0.0, True, "0", 9999], ids=repr)
def test_an_end_that_is_none_of_the_ids_is_a_problem_among_others(write: Write, tmp_path: Path, id: Any) -> None:
    folder = write(encoder_attention_heads=2)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "eos_token_id": id}), encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        import_model(str(folder), tmp_path / "out")
    assert f"the vocabulary: the id of the end is {id}, which no piece has; accepted: 0 to " in str(caught.value)
    assert "encoder_attention_heads is 2 and decoder_attention_heads is 4" in str(caught.value)


def test_missing_files_are_named_and_a_pickle_is_read_only_if_allowed(write: Write, tmp_path: Path) -> None:
    folder = write()
    import_model(str(folder), tmp_path / "safe")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"model.safetensors is missing \(pytorch_model.bin is a pickle"):
        import_model(str(folder), tmp_path / "out")
    import_model(str(folder), tmp_path / "out", options=ImportOptions(allow_pickle=True))
    files = [tmp_path / name / "model.safetensors" for name in ("safe", "out")]
    assert files[0].read_bytes() == files[1].read_bytes()
    (folder / "vocab.json").unlink()
    with pytest.raises(ModelError, match=r"vocab.json is missing"):
        import_model(str(folder), tmp_path / "out", options=ImportOptions(allow_pickle=True))


class Evil:
    """Would create a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_a_pickle_that_would_run_code_is_refused(write: Write, tmp_path: Path) -> None:
    folder = write()
    (folder / "model.safetensors").unlink()
    torch.save({"weights": Evil(tmp_path / "ran")}, folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="a pickle that runs code when it is read"):
        import_model(str(folder), tmp_path / "out", options=ImportOptions(allow_pickle=True))
    assert not (tmp_path / "ran").exists()


def test_a_pickle_of_more_than_weights_is_refused(write: Write, tmp_path: Path) -> None:
    folder = write()
    content = {"epoch": 3, "state_dict": load_file(folder / "model.safetensors")}
    torch.save(content, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="holds values that are not weights") as caught:
        import_model(str(folder), tmp_path / "out", options=ImportOptions(allow_pickle=True))
    assert "'epoch' is of type int" in str(caught.value) and "'state_dict' is" in str(caught.value)


@pytest.mark.slow
def test_two_hundred_sentences_of_a_base_model(write: Write, tmp_path: Path) -> None:
    pair = imported(write(**BASE, activation_function="swish"), tmp_path / "out")
    assert_equal_numbers(pair, 4)
    found = pair.beams(sources(pair, 200), longest=40, penalty=1.0, ngram=1)
    print(found)
    assert found.translations > 50
    assert (found.better, found.worse) == (0, 0)


@pytest.mark.slow
def test_a_trained_model_with_beam_4(tmp_path: Path) -> None:
    """200 sentences, the same tokens as `generate`."""
    corpora, folder = os.environ.get("MT_TEST_CORPORA"), os.environ.get("MT_TEST_MARIAN")
    if not corpora or not folder:
        pytest.skip("MT_TEST_CORPORA (real corpora) and MT_TEST_MARIAN (an en-de MarianMT folder) are not both set")
    pair = imported(shutil.copytree(folder, tmp_path / "marian"), tmp_path / "out")
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path / "marian")
    ours = pair.ours.tokenizer
    lines = [line.strip() for line in read_lines(Path(corpora) / "multi30k" / "test_2016_flickr.en.gz")]
    assert [ours.pieces(ours.encode(line)) for line in lines] == [tokenizer.tokenize(line) for line in lines]
    encoded = [[*ours.encode(line), EOS] for line in islice(lines, 200)]
    for source in encoded[:20]:
        memory, expected_memory, logits, expected_logits = pair.outputs(source, source[:-1])
        torch.testing.assert_close(memory, expected_memory, atol=1e-5, rtol=0)
        torch.testing.assert_close(logits, expected_logits, atol=1e-5, rtol=1e-5)
    found = pair.beams(encoded, longest=60, penalty=1.0)
    print(found)
    assert (found.better, found.worse) == (0, 0)
