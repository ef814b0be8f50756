import doctest
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest
import torch

import mt
from mt import Translator
from mt.decoding.options import SearchOptions
from mt.engine.backends.protocol import GPU_THREADS, Backend, Dtype
from mt.engine.backends.torch import SearchDecoder
from mt.engine.scheduler import Limits
from mt.errors import LanguageError, RequestError
from mt.pipeline.translator import PUBLIC_NAMES, start_engine
from tests.conftest import ROOT, search_results, sentences


def test_sentences_are_drawn_by_numbers_of_their_own(small_model: Path) -> None:
    """Where all began with the same number, and the model says the same of each, all would begin alike."""
    translator = Translator.load(small_model, "cpu", backend="torch")
    flat = SearchOptions(sample=True, temperature=1e6, max_length=2)  # any token is as likely as another
    texts = sentences(40)

    def draw(texts: list[str]) -> list[tuple[str, ...]]:
        translations = search_results(translator, texts, flat, sentences=True)
        return [translation.alternatives[0].pieces for translation in translations]

    drawn = draw(texts)
    assert len(set(drawn)) > 30
    assert drawn == [draw([text])[0] for text in texts]


OPTIONS: Any = SearchOptions
DOG, CAT = "The dog sees the cat.", "The cat hears the dog!"


def test_a_text_is_translated_sentence_by_sentence(translator: Translator) -> None:
    options = replace(translator.options, n_best=2)
    dog, cat = translator.translate_many([DOG, CAT], options=options)
    text = f" {DOG}  {CAT}\r\n\r\n\t{DOG} *** "
    translation = translator.translate(text, options=options)
    assert translation.text == f" {dog.text}  {cat.text}\r\n\r\n\t{dog.text} *** "
    assert [sentence.source for sentence in translation.sentences] == [DOG, CAT, DOG]
    assert [sentence.text for sentence in translation.sentences] == [dog.text, cat.text, dog.text]
    first, second = translation.alternatives
    assert (first.text, first.score) == (translation.text, translation.score)
    others = dog.alternatives[1], cat.alternatives[1]
    assert second.text == f" {others[0].text}  {others[1].text}\r\n\r\n\t{others[0].text} *** "


@pytest.mark.parametrize("sentences", [False, True])
def test_a_sentence_that_is_too_long_is_split_and_not_cut(translator: Translator, sentences: bool) -> None:
    text = "the dog sees the cat " * 100
    translation = translator.translate_many([text], sentences=sentences)[0]
    assert len(translation.sentences) > 1
    assert " ".join(sentence.source for sentence in translation.sentences) + " " == text
    assert " ".join(sentence.text for sentence in translation.sentences) + " " == translation.text
    lengths = [len(translator.tokenizer.encode(sentence.source)) + 1 for sentence in translation.sentences]
    assert max(lengths) <= 256


def test_texts_that_fail_are_all_named_and_nothing_is_left_behind(translator: Translator, poison: str) -> None:
    with pytest.raises(RequestError, match="2 texts failed") as caught:
        translator.translate_many([DOG, poison, f"{CAT} {poison}"])
    assert str(caught.value).count("the text that begins 'poison' cannot be translated: ValueError: not this") == 2
    assert not translator.engine.busy
    with pytest.raises(RequestError, match=r"^the text that begins 'poison'"):
        translator.translate_many([poison])


def test_one_sentence_for_the_engine(translator: Translator) -> None:
    request = translator.request("the dog")
    assert request is not None and request.source == (*translator.tokenizer.encode("the dog"), 3)
    assert translator.request(" ") is None
    with pytest.raises(RequestError, match=r"begins 'dog dog .* accepted: at most 256"):
        translator.request("dog " * 300)


def test_directions(small_model: Path, several_directions: Path) -> None:
    one, several = Translator.load(small_model, "cpu"), Translator.load(several_directions, "cpu")
    assert one.direction_of(None, None) == one.direction_of("en", None) == one.direction_of(None, "de") == ("en", "de")
    assert several.direction_of("fr", None) == ("fr", "de") and several.direction_of(None, "fr") == ("en", "fr")
    assert several.direction_of(None, "de") == ("", "de")
    for source, target in (("EN", "de-DE"), ("en_GB", "DEU"), ("eng", "de-AT"), (None, "De-de"), ("en-us", None)):
        assert one.direction_of(source, target) == ("en", "de")
    for source, target in [("en", None), (None, None), ("fr", "en"), ("de", "en"), ("en", "zz")]:
        with pytest.raises(LanguageError, match=r"accepted: en-de, en-fr, fr-de$"):
            several.translate_many(["a"], source=source, target=target)
    text = ["The dog sees the cat."]
    german, french = (several.translate_many(text, source="en", target=target)[0].text for target in ("de", "fr"))
    assert german != french


def test_search_options_are_keywords(translator: Translator) -> None:
    best = translator.translate(DOG, n_best=4).alternatives
    assert best == translator.translate(DOG, options=replace(translator.options, beam_size=4, n_best=4)).alternatives
    greedy = translator.translate(DOG, beam_size=1)
    assert greedy == translator.translate(DOG, options=replace(translator.options, beam_size=1))
    [streamed] = translator.stream(iter([DOG]), beam_size=1)
    assert streamed == greedy
    assert len(repr(translator.translate(DOG, n_best=3))) < 150


@pytest.mark.parametrize(
    ("call", "messages"),
    [
        (lambda t: t.translate(["a"]), ["text is ['a']; accepted: a str; translate_many takes several texts"]),
        (lambda t: t.translate_many("a"), ["texts is 'a'; accepted: a list of str; translate takes one text"]),
        (lambda t: t.translate_many(["a", None, 5]), ["texts[1] is None", "texts[2] is 5"]),
        (lambda t: t.stream("a"), ["texts is 'a'; accepted: "]),
        (
            lambda t: t.translate("a", source=5, n_best="2", beam_size=True, glossary={"Hi": 5}, do_not_translate="a"),
            [
                "source is 5; accepted: a language tag",
                "n_best is '2'; accepted: a whole number",
                "beam_size is True; accepted: a whole number",
                "glossary has 'Hi': 5; accepted: two values of type str",
                "do_not_translate is 'a'; accepted: a list of str",
            ],
        ),
        (
            lambda t: t.translate("a", beam_size=0, n_best=-1, glossary=3, source="xx"),
            [
                "beam_size is 0; accepted: at least 1",
                "n_best is -1; accepted: at least 1",
                "glossary is 3; accepted: a mapping",
                "no direction from xx; accepted: en-de",
            ],
        ),
        (lambda t: t.translate("a", do_not_translate=[5]), ["do_not_translate has 5; accepted: a str"]),
        (lambda t: t.translate("a", options={"n_best": 3}), ["options is {'n_best': 3}; accepted: SearchOptions"]),
        (lambda t: t.translate("a", formality="rude"), ["formality is 'rude'; accepted: default, less, more, prefer_"]),
        (lambda _: OPTIONS(beam_size="3", sample=1), ["beam_size is '3'", "sample is 1; accepted: bool"]),
    ],
)
def test_wrong_arguments_are_named(translator: Translator, call: Callable[[Any], Any], messages: list[str]) -> None:
    with pytest.raises(RequestError) as caught:
        call(translator)
    assert all(message in str(caught.value) for message in messages), caught.value
    assert str(caught.value).count("accepted") <= max(1, len(messages))


def test_arguments_and_names_for_users(translator: Translator) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'beam'; accepted: source, target, beam_size"):
        cast(Any, translator).translate("a", beam=3)
    assert [name for name in dir(mt) if not name.startswith("__")] == sorted(mt.__all__)
    assert dir(translator) == sorted(PUBLIC_NAMES) and all(hasattr(translator, name) for name in PUBLIC_NAMES)


@pytest.mark.parametrize("module", ["mt", "mt.pipeline.translator"])
def test_the_examples_of_the_documentation_run(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = doctest.testmod(import_module(module))
    assert result.attempted > 1 and result.failed == 0


def test_a_backend_on_a_gpu_limits_the_threads_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", calls.append)
    backend = Backend(SearchDecoder.__new__(SearchDecoder), Dtype.FLOAT32, Limits(), threads=GPU_THREADS)
    for threads in (None, 4):
        start_engine(backend, threads)
    assert calls == [2, 4]
