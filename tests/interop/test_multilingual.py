"""M2M-100, NLLB-200 and mBART-50 models of transformers, imported: the same numbers under other names."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import torch
from safetensors.torch import load_file, save_file

from mt.checkpoint import LoadedModel, load_model
from mt.decoding.options import SearchOptions
from mt.decoding.scorer import ModelScorer
from mt.errors import LanguageError, ModelError, RecipeError
from mt.interop.ctranslate2 import export_ctranslate2
from mt.interop.huggingface_export import export_huggingface
from mt.interop.importer import import_model
from mt.languages import standard_tag
from mt.pipeline.results import ExplainOptions
from mt.pipeline.translator import Translator
from mt.scoring.pairs import PairScorer
from mt.tokenizer import EOS
from mt.training.tuning import read_recipe
from mt.vocabulary import Vocabulary, VocabularyTokenizer
from tests.decoding.reference import decode
from tests.interop.parity import Pair, card, loaded_pair, refusal
from tests.kernels.conftest import library as library
from tests.weights import change_weights, edit_json

pytest.importorskip("transformers", reason="transformers is not installed (extra: interop)")
from tests.interop.families import FAMILIES, WORDS, Family, lines, score

each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: f"{family.name} {family.target}")


def languages(family: Family) -> tuple[str, str]:
    source, target = (
        standard_tag(code.split("_")[0] if family.name == "mBART-50" else code)
        for code in (family.source, family.target)
    )
    return source, target


def vocabulary(model: LoadedModel) -> Vocabulary:
    assert isinstance(model.tokenizer, VocabularyTokenizer)
    return model.tokenizer.vocabulary


def imported(family: Family, tmp_path: Path, **changes: Any) -> tuple[Pair, Any, Path]:
    folder = family.write(tmp_path / "theirs", **changes)
    import_model(str(folder), tmp_path / "ours")
    ours, theirs, tokenizer = load_model(tmp_path / "ours"), family.model(folder), family.tokenizer(folder)
    size = theirs.config.vocab_size
    ids = {token: id for token, id in tokenizer.get_vocab().items() if id < size} | {"<<s>>": 0}
    ids |= {token: tokenizer.convert_tokens_to_ids(token) for token in vocabulary(ours).tags.values()}
    ids |= {f"<unused {id}>": id for id in range(size) if id not in set(ids.values())}
    return loaded_pair(theirs, ours, [ids]), tokenizer, tmp_path / "ours"


def prefixes(family: Family, pair: Pair) -> tuple[list[int], list[int]]:
    tokenizer = pair.ours.tokenizer
    source, target = languages(family)
    return tokenizer.source_prefix(source, target, []), tokenizer.target_prefix(target)


def sources(family: Family, pair: Pair, count: int) -> list[list[int]]:
    tag, _ = prefixes(family, pair)
    return [[*tag, *pair.ours.tokenizer.encode(text), EOS] for text in lines(count, seed=2)]


def count_ties(family: Family, pair: Pair, tokenizer: Any, folder: Path, texts: Sequence[str]) -> int:
    """Check that each text has their ids, or, in a unigram model, ids of an equal score. Return the number of ties."""
    (tag, _), ties = prefixes(family, pair), 0
    for text in texts:
        # Theirs keep a space at the end, unlike SentencePiece and fairseq.
        mine, expected = pair.asked([*tag, *pair.ours.tokenizer.encode(text), EOS]), tokenizer(text.strip()).input_ids
        if mine != expected:
            scores = [score(folder, tokenizer.convert_ids_to_tokens(ids)) for ids in (mine, expected)]
            assert family.kind == "unigram" and scores[0] == pytest.approx(scores[1], abs=1e-4), text
            ties += 1
    return ties


@each_family
def test_ids_logits_and_four_beams_are_theirs(family: Family, tmp_path: Path) -> None:
    pair, tokenizer, _ = imported(family, tmp_path)
    _, prefix = prefixes(family, pair)
    token = f"__{family.target}__" if family.name == "M2M-100" else family.target
    assert pair.target_ids[prefix[0]] == tokenizer.convert_tokens_to_ids(token)
    directions = pair.ours.description.directions
    assert len(directions.sources) == len(directions.targets) == {"M": 100, "N": 202, "m": 52}[family.name[0]]

    texts = [*lines(30), "naïve Käfig 漢字 ﬁn Ⅷ", "x" * 40, "", "  two   spaces ", "tab\tand e\u0301", "😀 ok"]
    assert count_ties(family, pair, tokenizer, tmp_path / "theirs", texts) <= 1
    encode = pair.ours.tokenizer.encode
    for text in lines(20, seed=3):
        expected = tokenizer.decode(pair.asked(encode(text)), skip_special_tokens=True)
        assert pair.ours.tokenizer.decode([*prefix, *encode(text), EOS]) == expected.strip()

    for asked, text in zip(sources(family, pair, 5), lines(5, seed=4), strict=True):
        pair.assert_equal(asked, [*prefix, *encode(text)], rounding=1e-4)
    pair.assert_equal_beams(sources(family, pair, 12), longest=20, ngram=2, translations=2, prefix=prefix)


@pytest.mark.parametrize("family", FAMILIES[::2], ids=lambda family: family.name)
def test_a_text_is_translated_without_the_token_of_its_language(family: Family, tmp_path: Path) -> None:
    pair, _, folder = imported(family, tmp_path)
    source, target = languages(family)
    translator = Translator.load(folder, device="cpu", threads=1)
    words = WORDS[source].split()
    text = f"{' '.join(words[:4])} 2024 https://example.org {words[5]}"
    options = SearchOptions(beam_size=2, min_length=4)
    explain = ExplainOptions(alignment=True, attention=10**6)
    planner = translator.planner(source=source, target=target, options=options, explain=explain)
    ((sentence,),) = (translation.sentences for translation in translator.run(planner, [text]))
    best = sentence.alternatives[0]
    token = vocabulary(pair.ours).tags[target]
    assert token not in best.text and token not in best.pieces
    assert len(best.piece_log_probabilities) == len(best.pieces) + 1 and 0 not in best.piece_log_probabilities
    assert sentence.attention is not None
    assert sentence.attention.source[0] == vocabulary(pair.ours).tags[source]
    assert token not in sentence.attention.target
    assert len(sentence.attention.weights[0][0]) == len(sentence.attention.target)
    glossary = translator.translate(text, source=source, target=target, glossary={words[1]: "river"})
    assert "river" in glossary.text.lower()
    with pytest.raises(LanguageError, match="the source language is not given, but this model needs it"):
        translator.translate(text, target=target)
    with pytest.raises(LanguageError, match="this model has no direction from"):
        translator.translate(text, source="xx", target=target)


def test_probabilities_of_given_translations_leave_out_the_token(tmp_path: Path) -> None:
    family = FAMILIES[0]
    pair, _, folder = imported(family, tmp_path)
    direction = next(each for each in pair.ours.description.directions if (each.source, each.target) == ("en", "de"))
    (scored,) = PairScorer.load(folder, "cpu").score(["the dog"], ["der hund"], direction)
    tag, prefix = prefixes(family, pair)
    target = pair.ours.tokenizer.encode("der hund")
    own = pair.log_probabilities([*tag, *pair.ours.tokenizer.encode("the dog"), EOS], [*prefix, *target])
    expected = [float(own[1 + place, id - EOS]) for place, id in enumerate([*target, EOS])]
    assert scored.token_log_probabilities == pytest.approx(expected, abs=1e-4)


def test_weights_in_several_files(tmp_path: Path) -> None:
    family = FAMILIES[0]
    whole, parts = family.write(tmp_path / "whole"), family.write(tmp_path / "parts", shard_size="40KB")
    names = sorted(path.name for path in parts.glob("*.safetensors"))
    assert len(names) > 2 and not (parts / "model.safetensors").exists()
    for name in ("whole", "parts"):
        import_model(str(tmp_path / name), tmp_path / f"{name}-out")
    digests = [load_file(tmp_path / f"{name}-out" / "model.safetensors") for name in ("whole", "parts")]
    assert all(torch.equal(digests[0][name], digests[1][name]) for name in digests[0])
    assert all(f"SHA-256 of `{name}`" in card(tmp_path / "parts-out") for name in names)
    assert whole != parts

    path = parts / "model.safetensors.index.json"
    index = json.loads(path.read_text(encoding="utf-8"))["weight_map"]
    moved, tensor = next(iter(load_file(parts / names[0]).items()))
    save_file({**load_file(parts / names[1]), moved: tensor}, parts / names[1])
    edit_json(path, weight_map={**index, "model.nothing": names[0]})
    told = refusal(parts, tmp_path / "out")
    assert "does not fit its files" in told
    assert f"{names[1]} holds {moved}, which the index assigns to {names[0]}" in told
    assert f"{names[0]} lacks model.nothing" in told
    edit_json(path, weight_map={**index, "model.nothing": "../elsewhere.safetensors"})
    told = refusal(parts, tmp_path / "out")
    assert "names the file '../elsewhere.safetensors'; accepted: files in the same folder" in told
    path.unlink()
    assert "model.safetensors is missing" in refusal(parts, tmp_path / "out")


def test_every_problem_is_listed_at_once(tmp_path: Path) -> None:
    folder = FAMILIES[2].write(tmp_path / "theirs")
    moved = {"model.encoder.embed_positions.weight": torch.zeros(9, 32), "model.encoder.extra": torch.zeros(2)}
    change_weights(folder, lambda weights: weights.update(moved))
    change_weights(folder, lambda weights: weights.pop("model.decoder.layernorm_embedding.bias"))
    changes = {"activation_function": "tanh", "decoder_ffn_dim": 40, "vocab_size": 12, "pad_token_id": 0}
    edit_json(folder / "config.json", **changes)
    edit_json(folder / "tokenizer_config.json", legacy_behaviour=True)
    told = refusal(folder, tmp_path / "out", ["en-xx"])
    for line in (
        "activation_function is 'tanh'; accepted: 'relu'",
        "encoder_ffn_dim is 48 and decoder_ffn_dim is 40; accepted: equal values",
        "vocab_size is 12, but its pieces and the tokens of 52 languages are",
        "pad_token_id is 0; accepted: 1",
        "legacy_behaviour is True in tokenizer_config.json; accepted: False",
        "model.decoder.layernorm_embedding.bias is missing in the source model",
        "model.encoder.extra of the source model has no counterpart",
        "model.encoder.embed_positions.weight has the shape [7, 32]; accepted: [64, 32]",
        "it has no token for the language 'xx'; accepted: ar, cs, de",
    ):
        assert line in told
    (folder / "sentencepiece.bpe.model").unlink()
    told = refusal(folder, tmp_path / "out")
    assert "cannot be imported as an mBART-50 model" in told and "bpe.model is missing" in told


def test_directions_are_those_that_are_given_or_that_the_files_allow(tmp_path: Path) -> None:
    folder = FAMILIES[2].write(tmp_path / "theirs")
    import_model(str(folder), tmp_path / "some", ["en-de", "de-en"])
    assert load_model(tmp_path / "some").description.directions.to_config() == ["en-de", "de-en"]
    ids = FAMILIES[2].tokenizer(folder).get_vocab()
    edit_json(folder / "generation_config.json", forced_bos_token_id=ids["en_XX"], num_beams=7)
    import_model(str(folder), tmp_path / "into-english")
    found = load_model(tmp_path / "into-english").description
    assert (len(found.directions.sources), found.directions.targets) == (52, ("en",))
    assert (found.decoding.beam_size, found.model.positions, found.model.embedding_norm) == (7, "learned", True)


def test_uses_that_cannot_begin_with_a_token_are_refused(tmp_path: Path) -> None:
    import_model(str(FAMILIES[0].write(tmp_path / "theirs")), tmp_path / "ours")
    with pytest.raises(ModelError, match="its translations begin with a token of the target language"):
        export_huggingface(tmp_path / "ours", tmp_path / "out")
    recipe = {
        "name": "tuned",
        "data": {"directions": ["en-de"], "train": [{"path": "train.{language}"}], "split_validation": 1},
        "tuning": {"model": str(tmp_path / "ours")},
    }
    (tmp_path / "recipe.toml").write_text(tomli_w.dumps(recipe))
    with pytest.raises(RecipeError, match="whose translations begin with a token of the target language; training"):
        read_recipe(tmp_path / "recipe.toml")


@pytest.mark.slow
def test_ctranslate2_finds_the_same(tmp_path: Path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    for family in FAMILIES[1:3]:
        (tmp_path / family.name).mkdir()
        pair, _, folder = imported(family, tmp_path / family.name)
        export_ctranslate2(folder, tmp_path / family.name / "out")
        tokenizer, (_, prefix) = pair.ours.tokenizer, prefixes(family, pair)
        asked = sources(family, pair, 20)
        options = SearchOptions(beam_size=1, max_length_factor=0, max_length_offset=20)
        ours = [found[0].tokens[1:] for found in decode(ModelScorer(pair.ours.model), asked, options, [prefix] * 20)]
        theirs = ctranslate2.Translator(str(tmp_path / family.name / "out")).translate_batch(
            [tokenizer.pieces(source[:-1]) for source in asked],
            target_prefix=[tokenizer.pieces(prefix)] * 20,
            beam_size=1,
            max_decoding_length=20,
            suppress_sequences=[["<pad>"], ["<unk>"], ["<s>"]],
        )
        assert [tokenizer.pieces(tokens)[:18] for tokens in ours] == [one.hypotheses[0][1:19] for one in theirs]
        assert f"target_prefix=[{tokenizer.pieces(prefix)}]"[:15] in card(tmp_path / family.name / "out")
