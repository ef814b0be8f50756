"""`mt-service shortlist` as a user types it: a shortlist from parallel text or a lexical table, beside its model."""

import gzip
from pathlib import Path
from shutil import copytree

import pytest

from mt.checkpoint import LoadedModel, load_model, save_model
from mt.cli.shortlist import main
from mt.config import ModelConfig
from mt.data.shortlist import build_shortlist, corpus_tables
from mt.data.translation_memory import write_tmx
from mt.errors import DataError, ModelError
from mt.kernels.shortlist import save_shortlist
from mt.languages import Direction
from mt.model.transformer import Transformer
from mt.tokenizer import EOS, SPECIAL_PIECES, Tokenizer
from mt.vocabulary import Vocabulary, VocabularyTokenizer
from tests.conftest import NOUNS, sentences, write_model
from tests.interop.random_models import opus_sides, reversed_text


def german(sentence: str) -> str:
    """Each word backwards, which is German enough."""
    return " ".join(word[::-1] for word in sentence.split())


def write_corpus(folder: Path, texts: list[str]) -> Path:
    path = folder / "corpus.tsv"
    path.write_text("".join(f"{german(text)}\t{text}\n" for text in texts), encoding="utf-8")
    return path


@pytest.fixture
def model(small_model: Path, tmp_path: Path) -> Path:
    return Path(copytree(small_model, tmp_path / "model"))


def test_each_noun_allows_its_translation(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = str(write_corpus(tmp_path, sentences(400)))
    assert main([str(model), "--corpus", corpus, "de,en", "--frequent", "5", "--translations", "12"]) == 0
    assert "of 400 tokens are always allowed; a token of the source allows" in capsys.readouterr().err
    loaded = load_model(model)
    assert loaded.shortlist is not None and loaded.shortlist.vocabulary_size == len(loaded.tokenizer)
    alone = 0
    for noun in NOUNS:
        source, target = loaded.tokenizer.encode(f"the {noun}"), loaded.tokenizer.encode(german(f"the {noun}"))
        allowed = set(loaded.shortlist.ids(source).tolist())
        alone += len(set(target) - set(loaded.shortlist.always.tolist()))
        assert set(target) <= allowed and len(allowed) < len(loaded.tokenizer)
    assert alone > 0, "some translations ought not to be allowed always"


@pytest.mark.parametrize("path", ["corpus.{language}.gz", "corpus.tmx"])
def test_a_corpus_may_be_what_a_recipe_accepts(model: Path, tmp_path: Path, path: str) -> None:
    texts, shortlists = sentences(100), []
    for language, lines in {"en": texts, "de": map(german, texts)}.items():
        (tmp_path / f"corpus.{language}.gz").write_bytes(gzip.compress("".join(f"{one}\n" for one in lines).encode()))
    units = zip(texts, map(german, texts), strict=True)
    (tmp_path / "corpus.tmx").write_text("".join(write_tmx(units, "en", "de")), encoding="utf-8")
    for corpus in (write_corpus(tmp_path, texts), tmp_path / path):
        assert main([str(model), "--corpus", str(corpus), "de,en", "--frequent", "5"]) == 0
        shortlists.append((model / "shortlist.safetensors").read_bytes())
    assert shortlists[0] == shortlists[1]


def test_several_directions_share_one_and_know_their_tags(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", ["en-de", "de-en"])
    corpus = write_corpus(tmp_path, [sentence for sentence in sentences(400) if "dog" not in sentence])
    assert main([str(model), "--corpus", str(corpus), "de,en"]) == 0
    loaded = load_model(model)
    shortlist, tokenizer = loaded.shortlist, loaded.tokenizer
    assert shortlist is not None
    texts = [sentence for sentence in sentences(20) if "dog" not in sentence]
    for source, target in ((texts, map(german, texts)), (map(german, texts), texts)):
        for one, other in zip(source, target, strict=True):
            assert set(tokenizer.encode(other)) <= set(shortlist.ids(tokenizer.encode(one)).tolist())
    rare = set(tokenizer.pieces(shortlist.rare.tolist()))
    assert "▁dog" in rare and not {"<2de>", "<2en>", "</s>", ".", "▁the"} & rare
    tag = tokenizer.source_prefix("en", "de", loaded.description.directions)
    assert len(shortlist.ids([*tag, *tokenizer.encode("The dog")])) == len(tokenizer)


def test_a_lexical_table_of_marian(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Target, source, probability. The likelier of two translations is allowed, and a piece without any is rare."""
    tokenizer = load_model(model).tokenizer
    dog, cat, likely, unlikely = "▁dog", "▁cat", "▁the", "▁sees"
    table = tmp_path / "lex.s2t"
    table.write_text(f"{unlikely} {dog} 0.2\n{likely} {dog} 0.7\nNULL {dog} 0.1\nunknown {dog} 0.9\n", encoding="utf-8")
    assert main([str(model), "--lex", str(table), "--translations", "1", "--frequent", "1"]) == 0
    shortlist, pieces = load_model(model).shortlist, tokenizer.pieces(range(len(tokenizer)))
    assert shortlist is not None
    assert pieces.index(likely) in shortlist.always, "the target with the largest sum of probabilities is frequent"
    allowed = shortlist.ids([pieces.index(dog), EOS]).tolist()
    assert {pieces.index(item) for item in (dog, likely, unlikely)} <= set(allowed) and len(allowed) < len(pieces)
    assert len(shortlist.ids([pieces.index(cat)])) == len(pieces)
    wrong = {"a b": "lex.s2t:1: 'a b'; accepted: TARGET SOURCE PROBABILITY", "xyzzy plugh 1": "no line has two"}
    for line, problem in wrong.items():
        table.write_text(line, encoding="utf-8")
        assert main([str(model), "--lex", str(table)]) == 2
        assert problem in capsys.readouterr().err


def test_a_direction_without_a_corpus_is_named_before_any_file_is_read(model: Path) -> None:
    """Even if its tag, here that of German, occurs in the sources of another direction."""
    directions = [Direction.parse(direction) for direction in ("en-de", "fr-de", "de-en")]
    with pytest.raises(DataError, match="no corpus has fr-de; accepted"):
        corpus_tables(load_model(model).tokenizer, [("missing.tsv", "en,de")], directions)


def test_without_a_corpus_the_vocabulary_is_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write_model(tmp_path / "model", ["en-de", "en-fr"])
    assert main([str(model), "--corpus", str(write_corpus(tmp_path, sentences(400))), "de,en"]) == 0
    assert f"{model}, en-de: " in capsys.readouterr().err
    loaded = load_model(model)
    assert loaded.shortlist is not None
    for target, limited in (("de", True), ("fr", False)):
        tag = loaded.tokenizer.source_prefix("en", target, loaded.description.directions)
        allowed = loaded.shortlist.ids([*tag, *loaded.tokenizer.encode("the dog")])
        assert (len(allowed) < len(loaded.tokenizer)) is limited


@pytest.mark.parametrize("separate", [False, True], ids=["one vocabulary", "two vocabularies"])
def test_two_tokenizers_need_one_vocabulary(tmp_path: Path, separate: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """As OPUS-MT models have them: source.spm and target.spm, and one vocab.json for both."""
    (source, source_pieces), (target, target_pieces) = opus_sides()
    pieces = tuple(dict.fromkeys((*SPECIAL_PIECES, *source_pieces, *target_pieces)))
    vocabulary = Vocabulary(pieces=pieces, target_pieces=(*pieces, "more") if separate else None)
    loaded = load_model(write_model(tmp_path / "base", ["en-de"]))
    tokenizer = VocabularyTokenizer(source, vocabulary, target)
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 8, "d_ff": 8, "heads": 2}
    config = ModelConfig.model_validate({**sizes, "tie_source": not separate})
    size, source_size = len(tokenizer.target), len(pieces) if separate else None
    changes = {"model": config, "vocabulary_size": size, "source_vocabulary_size": source_size}
    description = loaded.description.model_copy(update=changes)
    model = Transformer(config, size, source_vocabulary_size=source_size)
    save_model(tmp_path / "model", LoadedModel(model, tokenizer, description), "# two tokenizers\n")
    corpus = tmp_path / "corpus.tsv"
    pairs = zip(sentences(300), reversed_text(300), strict=True)
    corpus.write_text("".join(f"{one}\t{other}\n" for one, other in pairs), encoding="utf-8")
    status = main([str(tmp_path / "model"), "--corpus", str(corpus), "en,de", "--frequent", "5"])
    if separate:
        assert status == 2 and "has two vocabularies; accepted: one vocabulary for" in capsys.readouterr().err
        return
    shortlist = load_model(tmp_path / "model").shortlist
    assert status == 0 and shortlist is not None
    for text, other in zip(sentences(20), reversed_text(20), strict=True):
        assert set(tokenizer.target.encode(other)) <= set(shortlist.ids(tokenizer.encode(text)).tolist())


def test_a_shortlist_of_another_tokenizer_is_refused(model: Path) -> None:
    tokenizer = Tokenizer.load(model / "tokenizer.model")
    pieces = tokenizer.pieces(range(len(tokenizer)))
    save_shortlist(model, build_shortlist(pieces, EOS, [], []), tokenizer.digest)
    assert load_model(model).shortlist is not None
    other = write_model(model.parent / "other", ["en-de", "en-fr"])
    save_shortlist(model, build_shortlist(pieces, EOS, [], []), Tokenizer.load(other / "tokenizer.model").digest)
    with pytest.raises(ModelError, match=r"for another tokenizer; accepted: .*mt-service shortlist"):
        load_model(model)
