"""MarianMT models of transformers, imported: the same numbers under other names."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from mt.checkpoint import load_model
from mt.interop.importer import import_model
from mt.interop.origin import ImportOptions
from mt.pipeline.translator import Translator
from mt.tokenizer import BOS, EOS, PAD
from tests.conftest import sentences
from tests.interop.conftest import Write
from tests.interop.parity import Pair, card, loaded_pair, refusal
from tests.interop.random_models import reversed_text
from tests.weights import change_weights, edit_json

transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra: interop)")

TWO = {"share_encoder_decoder_embeddings": False}
OPTIONS: dict[str, dict[str, Any]] = {
    "relu": {},
    "gelu, begins with the end": {"activation_function": "gelu", "start": "</s>"},
    "swish, no scale": {"activation_function": "swish", "scale_embedding": False},
    "two vocabularies": {**TWO, "two": True},
    "two vocabularies, nothing tied": {**TWO, "two": True, "tie_word_embeddings": False, "activation_function": "silu"},
    "one vocabulary, two matrices": TWO,
}


def vocabularies(folder: Path) -> list[dict[str, int]]:
    files = [folder / name for name in ("vocab.json", "target_vocab.json") if (folder / name).exists()]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def imported(folder: Path, out: Path) -> Pair:
    import_model(str(folder), out)
    theirs = transformers.MarianMTModel.from_pretrained(folder).eval()
    return loaded_pair(theirs, load_model(out), vocabularies(folder))


def sources(pair: Pair, count: int) -> list[list[int]]:
    return [[*pair.ours.tokenizer.encode(text), EOS] for text in sentences(count)]


def targets(pair: Pair, count: int) -> list[list[int]]:
    return [pair.ours.tokenizer.target.encode(text) for text in reversed_text(count)]


def assert_equal(pair: Pair, count: int) -> None:
    for source, target in zip(sources(pair, count), targets(pair, count), strict=True):
        pair.assert_equal(source, target, probabilities=True)


@pytest.mark.parametrize("changes", OPTIONS.values(), ids=OPTIONS)
def test_equal_to_transformers(write: Write, tmp_path: Path, changes: dict[str, Any]) -> None:
    pair = imported(write(**changes), tmp_path / "out")
    assert_equal(pair, 4)
    if changes in (OPTIONS["relu"], OPTIONS["two vocabularies"]):
        pair.assert_equal_beams(sources(pair, 40), longest=40, ngram=1, translations=10)


def test_text_becomes_their_pieces_and_theirs_text(write: Write, tmp_path: Path) -> None:
    folder = write(two=True, **TWO)
    import_model(str(folder), tmp_path / "out")
    theirs = transformers.MarianTokenizer.from_pretrained(folder)
    source = load_model(tmp_path / "out").tokenizer
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
    edit_json(folder / "generation_config.json", num_beams=6, length_penalty=0.6)
    (folder / "README.md").write_text("---\nlanguage: de\nlicense: cc-by-4.0\n---\n", encoding="utf-8")
    import_model(str(folder), tmp_path / "out")
    found = load_model(tmp_path / "out").description
    assert (str(found.directions), found.model.norm, found.model.max_length) == ("en-de", "post", 64)
    assert (found.decoding.beam_size, found.decoding.length_penalty) == (6, 0.6)
    written = card(tmp_path / "out")
    assert "Licence: cc-by-4.0." in written and "SHA-256 of `model.safetensors`: " in written
    translator = Translator.load(tmp_path / "out", device="cpu", threads=1)
    options = replace(translator.options, beam_size=2)
    translation = translator.translate("The dog sees the cat. The man finds the house.", options=options)
    assert len(translation.sentences) == 2


def test_padding_that_is_banned_before_probabilities_are_made_has_none(write: Write, tmp_path: Path) -> None:
    folder = write()
    pad = vocabularies(folder)[0]["<pad>"]
    edit_json(folder / "generation_config.json", bad_words_ids=[[pad]], renormalize_logits=True)
    import_model(str(folder), tmp_path / "out")
    source = torch.tensor([[5, 6, EOS]])
    model = load_model(tmp_path / "out").model
    probabilities = model(source, source > 0, torch.tensor([[BOS, 7]])).softmax(-1)
    assert probabilities[..., :3:2].tolist() == [[[0, 0], [0, 0]]]  # padding, and what begins a translation


OPUS_TAGS = (">>deu<<", ">>por<<", ">>pob<<", ">>cmn_Hans<<", ">>cmn_Hant<<", ">>cmn<<", ">>srp_Latn<<", ">>id<<")


def test_a_model_with_tags_translates_into_each_language_that_has_one(write: Write, tmp_path: Path) -> None:
    folder = write(tags=OPUS_TAGS)
    import_model(str(folder), tmp_path / "out")
    found = load_model(tmp_path / "out")
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
    assert load_model(tmp_path / "some").description.directions.to_config() == ["en-zh-Hant", "de-pt-BR"]
    edit_json(folder / "tokenizer_config.json", source_lang="gmw", target_lang="mul")
    told = refusal(folder, tmp_path / "group")
    assert "files state no direction. Give one with --direction; its tags are for >>deu" in told


def test_everything_that_we_lack_or_that_does_not_fit_is_listed_at_once(write: Write, tmp_path: Path) -> None:
    folder = write(activation_function="gelu_new", decoder_attention_heads=2)

    def spoil(weights: dict[str, torch.Tensor]) -> None:
        del weights["model.decoder.layers.2.fc2.weight"]
        weights["model.encoder.layers.0.fc1.bias"] = torch.zeros(7)
        weights["model.encoder.layers.0.fc2.bias"] = torch.full((32,), torch.nan)
        weights["model.decoder.layers.0.adapter.weight"] = torch.zeros(7)
        weights["model.encoder.embed_positions.weight"] = torch.zeros(64, 32)
        weights["lm_head.weight"] = weights["model.shared.weight"] + 1

    change_weights(folder, spoil)
    (folder / "target.spm").write_bytes(b"other")
    vocabulary = vocabularies(folder)[0]
    edit_json(folder / "vocab.json", more=9999)
    told = refusal(folder, tmp_path / "out", ["en"])
    for line in (
        "activation_function is 'gelu_new'; accepted: 'relu', 'gelu', 'swish', 'silu'",
        "encoder_attention_heads is 4 and decoder_attention_heads is 2; accepted: equal values",
        "the target's tokenizer: not a SentencePiece model (5 bytes)",
        "directions: Value error, 'en' is not a direction",
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
        assert line in told


END = "the vocabulary: the id of the end is {}, which no piece has; accepted: 0 to "
NOT_SINUSOIDAL = "model.encoder.embed_positions.weight is not the sinusoidal table"


@pytest.mark.parametrize(
    ("config", "positions", "problems"),
    [
        *(({}, shape, [NOT_SINUSOIDAL]) for shape in ((4, 33), (4, 0), (32,), (2, 4, 32))),
        *(({"d_model": d}, (4, d), [NOT_SINUSOIDAL, "d_model: Input should be"]) for d in (33, 0)),
        *(({"eos_token_id": id}, None, [END.format(id)]) for id in ([0], None, 0.0, True, "0", 9999)),
    ],
    ids=str,
)
def test_values_of_any_type_are_a_problem_among_others(
    write: Write, tmp_path: Path, config: dict[str, Any], positions: tuple[int, ...] | None, problems: list[str]
) -> None:
    folder = write()
    edit_json(folder / "config.json", encoder_attention_heads=2, **config)
    if positions is not None:
        table = {"model.encoder.embed_positions.weight": torch.zeros(positions)}
        change_weights(folder, lambda weights: weights.update(table))
    told = refusal(folder, tmp_path / "out")
    for problem in (*problems, "encoder_attention_heads is 2 and decoder_attention_heads is 4"):
        assert problem in told


def test_a_pickle_is_read_only_if_allowed(write: Write, tmp_path: Path) -> None:
    folder = write()
    import_model(str(folder), tmp_path / "safe")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert "model.safetensors is missing (pytorch_model.bin is a pickle" in refusal(folder, tmp_path / "out")
    import_model(str(folder), tmp_path / "pickled", options=ImportOptions(allow_pickle=True))
    safe, pickled = (load_file(tmp_path / name / "model.safetensors") for name in ("safe", "pickled"))
    assert all(torch.equal(pickled[name], tensor) for name, tensor in safe.items())
