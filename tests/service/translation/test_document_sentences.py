"""Sentences of a translated document: segments become sentences and sentences segments, and edits keep their place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.languages import Direction
from mt.text.markup import TranslatedSegment
from service.translation.answers import alignment_of, answer_of, unchanged_answer
from service.translation.document_sentences import joined_segments, moved_links, sentences_of
from service.translation.jobs import Answer
from service.workers.messages import SourceText, TranslateOptions
from tests.service.doubles import backwards, written


def answer(text: str) -> Answer:
    options = TranslateOptions(Direction("en", "de"))
    return answer_of(written(SourceText(text, aligned=True), options, backwards), "en")


TEXTS = ["One two. Three four!  Five.", "(…) One two.", "one", "a\nb c. d", "…"]


@pytest.mark.parametrize("text", TEXTS)
def test_the_sentences_of_a_segment_are_its_translation(text: str) -> None:
    translated = answer(text)
    sentences = sentences_of(3, text, translated)
    assert joined_segments(sentences) == [TranslatedSegment(translated.text, alignment_of(translated))]
    assert {sentence.segment for sentence in sentences} == {3}


def test_sentences_have_their_texts_and_segments_their_order() -> None:
    first, second = sentences_of(0, TEXTS[0], answer(TEXTS[0]))[:2]
    assert (first.source, first.target) == ("One two.", "two One.")
    assert (second.source, second.target, second.before) == ("Three four!", "four Three!", " ")
    (untranslated,) = sentences_of(1, "No. No.", unchanged_answer("No. No.", "en"))
    assert (untranslated.source, untranslated.target) == ("No. No.", "No. No.")
    segments = joined_segments([first, second, untranslated])
    assert [segment.text for segment in segments] == ["two One. four Three!", "No. No."]


def test_an_edit_moves_the_links_of_the_words_that_stay() -> None:
    text = "One two. Three four!"
    first, second = sentences_of(0, text, answer(text))
    edited = first.with_target("one and a second.")
    assert (edited.target, edited.edited) == ("one and a second.", True)
    (segment,) = joined_segments([first.with_target("two Number one."), second])
    assert segment.text == "two Number one. four Three!"
    words = [(text[a:b], segment.text[c:d]) for (a, b), (c, d) in segment.alignment]
    assert words == [("two", "two"), ("four", "four"), ("Three", "Three")]


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("das Haus steht", "das Gebäude steht", "Gebäude"),  # a word that replaces a word
        ("das Haus steht", "das Hausboot steht", "Hausboot"),
        ("das Haus steht", "Dort steht das Haus", "Haus"),
        ("das Haus steht", "so ein Haus, das Haus", "Haus"),
        ("das Haus steht", "es gibt dort viele Leute", None),  # the whole sentence is new
        ("das Haus", "ja, das Haus", "Haus"),  # behind an insertion
        ("das Haus", "das", None),
        ("das Haus", "", None),
    ],
)
def test_the_link_to_a_word(old: str, new: str, word: str | None) -> None:
    begin = old.index("Haus")
    moved = list(moved_links([((4, 9), (begin, begin + 4))], old, new))
    assert [new[first:last] for _, (first, last) in moved] == ([word] if word else [])
    assert [source for source, _ in moved] == ([(4, 9)] if word else [])


@given(st.text("ab ", max_size=8), st.text("ab ", max_size=8), st.data())
def test_moved_links_lie_in_the_new_translation(old: str, new: str, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(old)))
    end = data.draw(st.integers(begin, len(old)))
    for _, (first, last) in moved_links([((0, 1), (begin, end))], old, new):
        assert 0 <= first < last <= len(new)


def test_long_changes_are_compared_in_linear_time() -> None:
    """A word in the unchanged part keeps its link; the changed part has too many words to look for others."""
    old, new = "a b " * 10_000, "b a " * 10_000
    assert list(moved_links([((0, 1), (0, 1)), ((2, 3), (len(old), len(old) + 1))], old + "x", new + "x")) == [
        ((2, 3), (len(new), len(new) + 1))
    ]


def test_an_unchanged_translation_keeps_its_links() -> None:
    links = [((0, 3), (4, 8)), ((4, 9), (0, 3))]
    assert list(moved_links(links, "das Haus", "das Haus")) == links
