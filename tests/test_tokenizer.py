import io
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2

from mt.errors import TokenizerError
from mt.tokenizer import BOS, EOS, PAD, UNK, Tokenizer, train_tokenizer
from mt.vocabulary import Vocabulary, VocabularyTokenizer, load_tokenizer

ENGLISH = [f"The cat number {year} sat on the mat in {year}, didn't it?" for year in range(1900, 1960)]
GERMAN = ["Der schnelle Hund läuft über die Straße.", "Die Straße führt über den großen Fluss."] * 10
LANGUAGES = ("en", "de", "zh_CN")
CHINESE = ["我喜欢学习中文，因为中文很有意思。", "他喜欢学习中文。", "中文很有意思，我们学习中文。"] * 10

AWKWARD = [
    *("", " ", "  ", " leading", "trailing ", "two  spaces", "\n", "a\nb\r\nc", "\t", "a\tb", "\0", "a\0b"),
    *("\u2581", "\u2581\u2581a b\u2581", " \u2581 ", "\ue000\u2581", "\ufeffx", "\u00a0x\u3000", "\u2028", "\ufffd"),
    *("e\u0301 is not é", "ﬁ ² Å ｶ", "👩‍👩‍👧 🇩🇪 👍🏽", "\U0010ffff\uffff", "\u202eabc", "\u2047", " \u2047 "),
    *("<s>", "</s>", "<pad>", "<unk>", "<2de>", "<2en><2de>", "<from:bt>", "<from:bt> a", "<0x41>", "<0xE2>"),
    "中文 and 2024",
]

awkward_character = st.sampled_from(" \n\t\0\u2581\u0301\u200d\ue000<>2de我😀1")
text = st.text(st.one_of(awkward_character, st.characters(exclude_categories=["Cs"])))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    sentences = [*ENGLISH, *GERMAN, *CHINESE]
    return Tokenizer(train_tokenizer(sentences, vocabulary_size=500, languages=LANGUAGES, source_tags=["bt"]))


@settings(max_examples=300)
@example(texts=AWKWARD, seed=1)
@given(texts=st.lists(text, max_size=5), seed=st.integers(0, 2**32))
def test_any_text_survives_and_is_never_a_special_id(tokenizer: Tokenizer, texts: list[str], seed: int) -> None:
    """`encode` looks words up in its cache; `encode_many` gives SentencePiece the whole text."""
    alone = [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_many(texts, threads=2) == alone
    tags = map(tokenizer.tag_id, LANGUAGES)
    special = {PAD, UNK, BOS, EOS, *tags, tokenizer.source_tag_id("bt")}
    for encoded in (alone, tokenizer.encode_with_dropout(texts, 0.5, seed)):
        assert [tokenizer.decode(ids) for ids in encoded] == texts
        assert not any(special & set(ids) for ids in encoded)


def test_what_cannot_be_decoded_is_replaced(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a?b"
    assert tokenizer.decode(tokenizer.encode("aж")[:-1]) == "a\ufffd"


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("The cat", ["\u2581The", "\u2581cat"]),  # frequent words
        ("1923 19", ["\u2581", *"1923", "\u2581", *"19"]),  # each digit is a piece
        ("ж", ["\u2581", "<0xD0>", "<0xB6>"]),  # bytes of what the vocabulary lacks
    ],
)
def test_pieces(tokenizer: Tokenizer, text: str, pieces: list[str]) -> None:
    assert tokenizer.pieces(tokenizer.encode(text)) == pieces


def test_tags_and_marks_are_ids_of_their_own_and_give_no_text(tokenizer: Tokenizer) -> None:
    tags = [tokenizer.tag_id(language) for language in LANGUAGES]
    ids = [*tags, tokenizer.source_tag_id("bt")]
    assert tokenizer.pieces(ids) == ["<2en>", "<2de>", "<2zh_CN>", "<from:bt>"]
    assert (tokenizer.tagged_languages, tokenizer.source_tags) == (LANGUAGES, ("bt",))
    assert tokenizer.source_prefix("en", "de", ["en-de", "de-en"]) == [tags[1]], "a user's text is not marked"
    assert tokenizer.decode([BOS, *ids, *tokenizer.encode("The cat"), EOS, PAD, PAD]) == "The cat"
    with pytest.raises(TokenizerError, match="'fr'"):
        tokenizer.tag_id("fr")
    for text in ("", "en", "2en", "bt>"):
        with pytest.raises(TokenizerError, match=f"the tokenizer has no source tag '{text}'"):
            tokenizer.source_tag_id(text)


def test_dropout_is_decided_by_the_seed(tokenizer: Tokenizer) -> None:
    texts = [*ENGLISH[:3], "a\u2581The cat sat", GERMAN[0]]
    seeds = (0, 1, 2, 2**32 - 1)
    samples = {seed: tokenizer.encode_with_dropout(texts, 0.3, seed) for seed in seeds}
    assert samples == {seed: tokenizer.encode_with_dropout(texts, 0.3, seed) for seed in reversed(seeds)}
    assert samples[0] != samples[1] != samples[2] != samples[0]
    assert samples[0] != [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_with_dropout(texts, 0.0, 0) == [tokenizer.encode(text) for text in texts]


def test_a_shortened_model_is_that_which_fewer_merges_would_have_made(tokenizer: Tokenizer) -> None:
    size, texts = len(tokenizer) - 100, [*ENGLISH, *GERMAN, *CHINESE]
    shorter = tokenizer.truncated(size)
    tags = (tokenizer.tagged_languages, tokenizer.source_tags)
    assert len(shorter) == size and (shorter.tagged_languages, shorter.source_tags) == tags
    trained = Tokenizer(train_tokenizer(texts, vocabulary_size=size, languages=LANGUAGES, source_tags=["bt"]))
    for text in texts:
        pieces = shorter.pieces(shorter.encode(text))
        assert pieces == trained.pieces(trained.encode(text)) and shorter.decode(shorter.encode(text)) == text
    assert sum(len(shorter.encode(text)) - len(tokenizer.encode(text)) for text in texts) > 0


def test_characters_and_deterministic_training(tokenizer: Tokenizer) -> None:
    with pytest.raises(TokenizerError, match=r"vocabulary_size is 270; accepted: at least \d+"):
        tokenizer.truncated(270)
    assert [tokenizer.knows(character) for character in "aß中 ﬁ‑²"] == [True, True, True, True, False, False, False]
    models = {train_tokenizer(iter(ENGLISH + GERMAN), vocabulary_size=400, threads=threads) for threads in (1, 1, 2)}
    assert len({tuple(Tokenizer(model).pieces(range(400))) for model in models}) == 1


@pytest.mark.parametrize(("sentences", "size"), [([], 400), ([""], 400), (ENGLISH, 100)])
def test_what_cannot_be_trained_on_is_refused(sentences: list[str], size: int) -> None:
    with pytest.raises(TokenizerError, match=f"tokenizer of {size} pieces"):
        train_tokenizer(sentences, vocabulary_size=size)


PIECES = ("<pad>", "<unk>", "<s>", "</s>", "▁dog", ">>fra<<", "漢", "▁", "d", "o", "g", "▁dogs")


def imported(tokenizer: Tokenizer, **changes: Any) -> VocabularyTokenizer:
    """Any SentencePiece model will do: its pieces are looked up in a vocabulary beside it."""
    vocabulary = Vocabulary.model_validate({"pieces": PIECES, "tags": {"fr": ">>fra<<"}, **changes})
    target = tokenizer.serialised if vocabulary.target_pieces else None
    return VocabularyTokenizer(tokenizer.serialised, vocabulary, target)


def test_imported_pieces_and_tags(tokenizer: Tokenizer) -> None:
    result = imported(tokenizer)
    value = tokenizer.pieces(tokenizer.encode("the dog"))
    assert result.pieces(result.encode("the dog")) == [piece if piece in PIECES else "<unk>" for piece in value]
    assert result.encode_many(["the dog", "dog"], 2) == [result.encode("the dog"), result.encode("dog")]
    assert result.target is result and len(result) == len(PIECES)
    result = imported(tokenizer)
    assert result.tag_id("fr") == 5
    assert result.source_prefix("en", "fr", ["en-fr"]) == [5]  # its tags are always wanted
    larger = imported(tokenizer, pieces=(*PIECES, *map(str, range(1000))))
    assert larger.source_tags == (), "whatever the SentencePiece model has: its ids are not the vocabulary's"
    assert result.decode([0, 1, 2, 5, 4, 11, 3]) == "dog dogs"
    with pytest.raises(TokenizerError, match="no tag for the language 'de'"):
        result.source_prefix("en", "de", ["en-fr"])


def test_tags_of_both_languages(tokenizer: Tokenizer) -> None:
    tags = {"fr": ">>fra<<", "de": "__xü__"}
    result = imported(tokenizer, pieces=(*PIECES, "__xü__"), tags=tags, tags_each_side=True)
    assert result.source_prefix("de", "fr", ["de-fr"]) == [len(PIECES)]
    assert result.target_prefix("fr") == [5]
    assert "ü" not in result.characters and "d" in result.characters
    with pytest.raises(TokenizerError, match="no tag for the language 'it'"):
        result.source_prefix("it", "fr", [])
    assert tokenizer.target_prefix("fr") == imported(tokenizer).target_prefix("fr") == []
    assert not tokenizer.tags_each_side and not imported(tokenizer).tags_each_side


@pytest.mark.parametrize("changes", [{}, {"target_pieces": (*PIECES[:5], "▁Hund"), "tags": {}}], ids=["one", "two"])
def test_a_saved_tokenizer_is_loaded(tokenizer: Tokenizer, tmp_path: Path, changes: dict[str, Any]) -> None:
    saved = imported(tokenizer, **changes)
    for name, content in saved.files.items():
        (tmp_path / name).write_bytes(content)
    result = load_tokenizer(tmp_path)
    assert (result.files, result.digest) == (saved.files, saved.digest)
    assert result.pieces(range(len(result))) == list(PIECES)
    assert len(result.target) == (6 if changes else len(PIECES))
    assert result.digest != imported(tokenizer, pieces=(*PIECES, "more")).digest


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not a vocabulary that `mt-service import` wrote"),
        ('{"pieces": [1], "more": 2}', r"(?s)pieces.0: .*more: Extra"),
        ('{"pieces": ["<unk>", "<pad>"]}', r"unk, bos, eos have the ids \(1, 0, -1, -1\); accepted: \(0, 1, 2, 3\)"),
        (
            '{"pieces": ["<pad>", "<unk>", "<s>", "</s>", "a", "a"], "tags": {"fr": ">>fra<<"}}',
            "(?s)'a' occurs 2 times.*the tag '>>fra<<' is missing",
        ),
        ('{"pieces": ["<pad>", "<unk>", "<s>", "</s>"], "target_pieces": []}', "tokenizer.target.model: cannot read"),
    ],
)
def test_a_vocabulary_that_is_none(tokenizer: Tokenizer, tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "tokenizer.model").write_bytes(tokenizer.serialised)
    (tmp_path / "vocabulary.json").write_text(content, encoding="utf-8")
    with pytest.raises(TokenizerError, match=message):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(("kind", "merged"), [("bpe", True), ("bpe", False), ("char", True), ("unigram", True)])
def test_only_a_model_with_merges_is_bpe(kind: str, merged: bool) -> None:
    """Without `merged`, the characters and words are cut off: a model of bytes, whose scores are all 0."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*ENGLISH, *GERMAN]), model_writer=model, model_type=kind, vocab_size=400,
        hard_vocab_limit=False, byte_fallback=True, pad_id=PAD, unk_id=UNK, bos_id=BOS, eos_id=EOS, minloglevel=2,
    )  # fmt: skip
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    if not merged:
        kept = [piece for piece in proto.pieces if piece.type != piece.NORMAL]
        del proto.pieces[:]
        proto.pieces.extend(kept)
    tokenizer = Tokenizer(proto.SerializeToString())
    assert tokenizer.is_bpe == (kind == "bpe" and merged)
    if merged:  # this model normalises characters before it looks for pieces
        assert [tokenizer.knows(character) for character in "ﬁａ“"] == [True, True, False]
