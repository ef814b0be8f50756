"""Text tasks whose sentences decode more than once, over a table as model; odd texts over a small model."""

import gc
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from mt import Translator
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions
from mt.engine.requests import Request, Result
from mt.errors import RequestError
from mt.pipeline.analysis import analyse
from mt.pipeline.constraint_compiler import ConstraintCompiler
from mt.pipeline.driver import DecodeCall, Routine
from mt.pipeline.explain import Explainer
from mt.pipeline.repairs import NO_REPEAT_NGRAM
from mt.pipeline.results import ExplainOptions, SentenceReport
from mt.pipeline.text_task import AnyRoutine, TextPlanner, TextTask
from mt.pipeline.variants import SentenceContext
from mt.scoring.attention import CrossAttention, Pair
from mt.text import segment
from mt.text.alignment import Range, split_ranges
from mt.text.normalise import Normaliser
from mt.text.phrases import Phrases
from mt.text.segment import TextPart
from mt.text.terms import Terms
from mt.tokenizer import SPACE_MARK, Tokenizer
from tests.linear_time import assert_linear

FIRST = 10  # the id of the first word


@dataclass
class Words:
    """A tokenizer of a word an id."""

    words: list[str] = field(default_factory=list)
    characters: frozenset[str] = frozenset(map(chr, range(0x250)))

    @property
    def target(self) -> "Words":
        return self

    def encode(self, text: str) -> list[int]:
        self.words += [word for word in dict.fromkeys(text.split(" ")) if word not in self.words]
        return [FIRST + self.words.index(word) for word in text.split(" ")]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.words[id - FIRST] for id in ids)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [SPACE_MARK + self.words[id - FIRST] if id >= FIRST else "</s>" for id in ids]


@dataclass
class Table:
    """Answers requests from a table of sentences, best alternative first; what is not in it comes back as it is."""

    table: dict[str, list[str]]
    problems: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    options: list[SearchOptions] = field(default_factory=list)
    words: Words = field(default_factory=Words)

    def planner(self, options: SearchOptions | None = None, longest: int = 100, protect: bool = True) -> TextPlanner:
        tokenizer = cast(Tokenizer, self.words)
        context = SentenceContext(
            tokenizer,
            Normaliser(self.words.characters.__contains__),
            ConstraintCompiler(tokenizer),
            count(),
            0,
            "en",
            "de",
            (),
            options or SearchOptions(),
            Terms(),
            longest,
        )
        return TextPlanner(context, sentences=True, protect=protect)

    def answer(self, request: Request) -> Result:
        text = self.words.decode(request.source[:-1])
        self.asked.append(text)
        self.options.append(request.options)
        if text in self.problems:
            return Result(request.id, (), "no")
        again = " (again)" if request.options.no_repeat_ngram else " (long)" if request.options.min_length else ""
        result = self.table.get(text + again, [text])
        scores = [float(item[0]) if item[:1].isdigit() and item[1] == "|" else 0.0 for item in result]
        texts = [item.split("|")[-1] for item in result]
        return Result(
            request.id,
            tuple(
                Hypothesis(tuple(self.words.encode(item)), score, score, (-0.5,) * (len(item.split()) + 1))
                for item, score in zip(texts, scores, strict=True)
            ),
        )

    def attend(self, pairs: Sequence[Pair]) -> list[NDArray[np.float32]]:
        return [np.eye(len(target) + 1, len(source), dtype=np.float32)[None, None] for source, target in pairs]

    def run(self, task: TextTask) -> TextTask:
        calls = task.take_calls()
        while calls and not task.done:
            routine = calls.pop(0)
            if isinstance(routine.call, DecodeCall):
                task.resume(routine, [self.answer(request) for request in routine.call.requests])
            elif routine.call:
                task.resume(routine, CrossAttention(self.attend([routine.call.pair])[0]))
            calls += task.take_calls()
        assert task.done
        return task


def translated(table: Table, text: str) -> str:
    return table.run(table.planner().task(text)).translation().text


LONG = (
    "the sun is low and it is very warm now, all the old dogs sleep near the gate, "
    "the small cats go to the wide blue river near the town too."
)
TAIL = "when the sun is low, all of the old dogs go to the wide river"
WARM = "Die Sonne steht tief und es ist jetzt sehr warm, alle alten Hunde"
TRIED = ["see Tom men → 1|sieh Tom", "see 37 men → 2|sieh 37 Mann", "see X men → 1|sieh X"]
PARTS = (
    "the old dog sleeps, the cat sees,",
    "the town and the river,",
    "the man goes, the gate is low,",
    "she is warm and old.",
)
LIST, SHORT = " ".join(PARTS), " ".join("abcdefghijklmnopqrstuvwx")
LAST = "der Mann geht weg, das Tor ist unten, sie ist warm und alt."
CASES: dict[str, list[str]] = {
    "an ordinary sentence": ["a man → ein Mann", "a man → ein Mann"],
    "the spaces of a code": ["x  o  x"],
    "a title": ["you see Mr Lee → ihr seht Herrn Lee", "you see Mr Lee → ihr seht Mr Lee"],
    "a lost span": ["a x_y man → x_y Mann", "a x_y man → ein X", "a Martin man → Mann Peter", "a 37 man → 37 Mann"],
    "one lost span of two": ["x_y and b_c → x_y und b_c", "x_y and b_c → x_y und B", "x_y and Martin → x_y und Martin"],
    "a span whose stand-ins are lost": [
        *("a x_y man → ein x_y Mann", "a x_y man → X", "a Martin man → M", "a 37 man → 37 37"),
        "a man → ein Mann",
    ],
    "a placeholder is a name": ["a {name} man → ein Mann {name}", "a Tom man → ein Mann Tom"],
    "a name, a number or a thing": ["see {0} men → sieh {0} Mann", *TRIED],
    "a name that is in the sentence": ["Tom and {name} → Tom und {name}", "Tom and Peter → Tom und Peter"],
    "a new number": ["a {name} man → ein {name} Mann", "a Tom man → ein Tom 1 Mann", "a Martin man → ein Martin Mann"],
    "tags": ["a <b>big man</b> sees → ein <b>großer Mann</b> sieht", "a big man sees → ein großer Mann sieht"],
    "labels": [
        "a <b>Old D</b> <i>sees</i> → ein <b>große Frau</b> <i>sieht</i>",
        *("a **Old D** sees → 1|ein **große Frau** sieht", "a Old D sees → ein Hund sieht"),
    ],
    "an empty element": ["see <0/> men → sieh <0/> Mann", *TRIED],
    "lost emphasis": ["the **File** → die **Datei**", *["the **File** → die Datei"] * 2, "the File → die Datei"],
    "emphasis of another hypothesis": ["the **File** → die **Akte**", *["the **File** → die Datei ‖ die **Akte**"] * 2],
    "marks around a sentence": ["**No!** → **Nein!**", "No! → Nein!"],
    "marks that are read as tags": ["a [b]big[/b] → [b]große[/b]", "a [b]big[/b] → 3|[b]big[/b]", "a big → 1|große"],
    "emphasised words": ["*big* man → *große* Frau", "*big* man → 1|*big* Frau", "big man → 2|große Frau"],
    "emphasis of the same words": ["do *not* go → so *nicht*", "do *not* go → 1|geh *nicht*", "do not go → 2|so nicht"],
    "a link": ["see [the man](x) → sieh [den Mann](x)", "see [the man](x) → 1|[x](x)", "see the man → 2|sieh den Mann"],
    "tags around nothing to translate": ["<b>12</b> <i>{x}</i>"],
    "emoji are left out at once": ["see 😀 men → sieh 😀 Mann", "see men → sieh Mann"],
    "a number is exchanged": ["see 12 men → sieh 12 Mann", *["see 12 men → sieh zwölf Mann"] * 2],
    "nothing but spans": ["12:30 {x} https://x.y 😀"],
    "capitals": ["READ THIS BOOK → LIES DIESES MASS", "Read this book → Lies dieses Maß"],
    "a headline": ["Read This Good Book → Lies", "Read This Good Book → 1|lies", "Read this good book → 2|Lies"],
    "a headline with a name": ["Big Ben", "Big Ben → 2|Big Ben", "big Ben → 1|ein großer Mann"],
    "a loop is decoded again": ["a man → ein Mann", "a man → ein ein ein ein ein", "a man (again) → ein Mann"],
    "a loop that stays is cut": ["a man → ja", "a man → ja ja ja ja ja ja", "a man (again) → ja ja ja ja"],
    "a copied word after a slash": ["big/good → große/gute", "big/good → große/good", "big / good → große / gute"],
    "a word that is copied again": ["big/good → große/good", "big/good → große/good", "big / good → big / gute"],
    "a person": ["see Hans Fischer → Hans Fischer", "see Hans Fischer → 1|Hans fischer", "see Martin → 1|Martin"],
    "an empty translation is tried again": ["a man → ein Mann", "a man → ", "a man (long) → ein Mann"],
    "empty translations": ["a man", "a man → ", "a man (long) → ."],
    "a word in an unknown script": ["a мир man → ein мир Mann", "a Tom man → ein Tom Mann"],
    "a text in an unknown script": ["мир, мир 5!"],
    "an amount in unknown characters": ["for €5 a man → für 5 € ein Mann", "for 5 a man → für 5 ein Mann"],
    "lost quotations are translated apart": [
        *('see "big", "old" men → sieh „groß“, „alt“ Mann', 'see "big", "old" men → sieh „big“ Mann', "big → groß"),
        *("old → alt", 'see "big", "old" men (2) → ', 'see "big", "Martin" men → sieh „big“, „Martin“ Mann'),
    ],
    "a quotation without marks": ['see "big" men → sieh „groß“ Mann', 'see "big" men → sieh groß Mann', "big → groß"],
    "a label without marks": ['see "Big" men → sieh Groß Mann', 'see "Big" men → sieh Groß Mann', "Big → Groß"],
    "an amount of something": ["2 cups of milk → 2 Tassen Milch", "milk → Milch"],
    "dots": ["see men… → sieh Mann…", "see men... → sieh Mann..."],
    "a dropped tail is found in halves": [
        f"{TAIL} → wenn die Sonne tief steht, gehen alle zum Fluss",
        *(f"{TAIL} → wenn", f"{TAIL[:20]} → wenn die Sonne tief steht,", f"{TAIL[21:]} → gehen alle zum Fluss"),
    ],
    "a clause without attention is translated in a half": [
        f"{LONG} → {WARM} schlafen am Tor, die Katzen gehen zum Fluss.",
        *(f"{LONG} → {WARM} schlafen am Tor.", f"{LONG[:77]} → {WARM} schlafen am Tor."),
        f"{LONG[78:]} → Die Katzen gehen zum Fluss.",
    ],
    "a list that may lack items is translated in parts": [
        f"{LIST} → der alte Hund schläft, eine Katze sieht, die Stadt und der Fluss, {LAST}",
        *(f"{LIST} → {SHORT}", f"{PARTS[0]} → der alte Hund schläft, eine Katze sieht,"),
        *(f"{PARTS[1]} → die Stadt und der Fluss,", f"{PARTS[2]} → {LAST[:37]}", f"{PARTS[3]} → {LAST[38:]}"),
    ],
    "a word twice may hide another": [
        *("he goes, and she sees → er geht, und sie sieht", "he goes, and she sees → er geht geht"),
        *("he goes, → er geht,", "and she sees → und sie sieht"),
    ],
    "a word twice": ["he goes → er geht", "he goes → er geht geht"],
    "a no-break space": ["12\u00a0men, 1\u00a0dog → 12\u00a0Mann, 1\u00a0Hund", "12 men, 1 dog → 12 Mann, 1 Hund"],
    "a number with other separators": ["see 1,000 men → sieh 1.000 Mann", "see 1,000 men → sieh 1 000 Mann"],
    "invisible characters": ["\ufeffa\u200b m\u00adan\u200f → ein Mann", "a man → ein Mann"],
    "line breaks inside the sentence": ["a man\n sees → ein Mann\n sieht", "a man sees → ein Mann sieht"],
    "ends of sentences": ["Oh.\nI am.\r\n\r\nSo → Ja.\nIch, bin.\r\n\r\nSo", "Oh. I am. So → Ja. Ich, bin. So"],
    "a protected span with a line break": ["see 😀\nmen → sieh 😀\nMann", "see men → sieh Mann"],
    "doubled quotation marks": ['a ""man"" sees → ein ""Mann"" 5"" sieht', 'a "man" sees → ein "Mann" 5" sieht'],
    "an untranslatable sentence": ["мир\u00a0и мир"],
    "letters that the tokenizer does not know": ["a ｍａｎ → ein Mann", "a man → ein Mann"],
    "a line before a noun": ["he sees the\n> cat → er sieht die\n> Katze", "he sees the cat → er sieht die Katze"],
}
"""A text and its translation, then what the model is asked and what it answers, with the score."""


@pytest.mark.parametrize(
    ("translation", "omitted"),
    [
        ("die Sonne steht tief und es ist jetzt sehr warm,", (LONG[40:-1],)),
        ("die Sonne steht tief und es ist jetzt sehr warm, alle alten Hunde schlafen am Tor,", (LONG[68:-1],)),
        (LONG, ()),
    ],
)
def test_words_without_attention_are_listed(translation: str, omitted: tuple[str, ...]) -> None:
    """The parts are not translated any longer than the whole."""
    table = Table({LONG: [translation], LONG[:77]: ["a"], LONG[:39]: ["a"], LONG[40:77]: ["a"], LONG[78:]: ["b"]})
    (sentence,) = table.run(table.planner().task(LONG)).translation().sentences
    assert (sentence.text, sentence.omitted, sentence.untranslated) == (translation, omitted, False)


@pytest.mark.parametrize(
    ("text", "covered", "asked"),
    [
        (LONG, 80, [LONG]),
        (LONG, 31, [LONG[:39], LONG[40:77], LONG[78:]]),
        (LONG, 30, [LONG[:39], LONG[40:77], LONG[78:]]),
        (LONG[:39], 8, ["the sun is low", "and it is very warm now,"]),
        (LONG[40:77], 8, [LONG[40:77]]),  # a clause is not divided
    ],
)
def test_long_sentences_are_divided_at_clauses(text: str, covered: int, asked: list[str]) -> None:
    table = Table({})
    planner = table.planner()
    planner = replace(planner, context=replace(planner.context, covered_length=covered))
    (sentence,) = table.run(planner.task(text)).translation().sentences
    assert table.asked == asked and sentence.text == text
    whole = LONG.replace("now, all", "{a, b}")  # a protected span is not divided
    assert table.run(planner.task(whole)).translation().text == whole and not any("{a," in text for text in table.asked)


@pytest.mark.parametrize(
    ("longest", "words", "lengths"),
    [(100, 99, [99]), (100, 100, [25] * 4), (200, 119, [119]), (200, 120, [15] * 8)],  # the limits count EOS
)
def test_very_long_sentences_are_cut(longest: int, words: int, lengths: list[int]) -> None:
    table = Table({})
    planner = table.planner(longest=longest)
    task = table.run(replace(planner, context=replace(planner.context, covered_length=30)).task("man " * words))
    assert [len(text.split()) for text in table.asked] == lengths
    assert task.translation().text == "man " * words


def test_a_word_with_a_letter_that_the_model_cannot_write_is_read_as_a_stand_in() -> None:
    table = Table({"see wọman now": ["sieh w\ufffd\ufffdman jetzt"]})
    assert translated(table, "see wọman now") == "see wọman now", "the table returns other texts unchanged"
    assert "\ufffd" not in translated(Table({"see man": ["sieh \ufffdMann"]}), "see man")


def test_ranges_and_links_refer_to_the_original_text() -> None:
    table = Table({"a man sees it": ["ein Mann sieht es"]})
    planner = table.planner()
    explainer = Explainer(planner.context, 1, ExplainOptions(True))
    text = "\ufeff\u00a0a\u00a0m\u00adan sees\n it\u200b"
    translation = table.run(replace(planner, explainer=explainer).task(text)).translation()
    (sentence,) = translation.sentences
    assert sentence.source == text[slice(*sentence.source_range)] == "a\u00a0m\u00adan sees\n it"
    assert translation.text == "\u00a0ein Mann sieht\n es"
    assert [(text[slice(*left)], translation.text[slice(*right)]) for left, right in sentence.links] == [
        ("a", "ein"),
        ("m\u00adan", "Mann"),
        ("sees", "sieht"),
        ("it", "es"),
    ]


def exchange(row: str) -> tuple[str, str]:
    """Return the parts of `question → answer`. Without an arrow, the answer is the question."""
    question, arrow, answer = row.partition(" → ")
    return question, answer if arrow else question


@pytest.mark.parametrize("name", CASES)
def test_what_is_asked_and_what_comes_of_it(name: str) -> None:
    (text, expected), *answers = map(exchange, CASES[name])
    table = Table({question: answer.split(" ‖ ") for question, answer in answers})
    assert translated(table, text) == expected
    assert table.asked == [re.sub(r" \((again|long|2)\)$", "", question) for question, _ in answers]


@pytest.mark.parametrize(
    ("marked", "answer", "read", "expected", "links"),
    [
        (((2, 7),), "ein **alter Hund** ist", "a **Old D** is", "ein alter Hund ist", {(2, 7): "alter Hund"}),
        (((2, 7),), "0|ein **alter Hund** ist", "a **Old D** is", "b c d e", {(2, 5): "c"}),  # better without marks
        (((2, 7),), "ein **Old D** ist", "a **Old D** is", "ein Old D ist", {(2, 7): "Old D"}),  # a copied label
        (((2, 7),), "ein alter Hund ist", "a **Old D** is", "b c d e", {(2, 5): "c"}),  # without marks
        (((0, 7),), "", "", "b c d e", {(0, 1): "b"}),  # no label
        (((2, 4),), "", "", "b c d e", {(2, 5): "c"}),  # within a word
        (((0, 10),), "", "", "b c d e", {(2, 5): "c"}),  # around the sentence
        (((0, 1), (2, 7)), "ein **alter Hund** ist", "a **Old D** is", "ein alter Hund ist", {(2, 7): "alter Hund"}),
        (((2, 5), (6, 7)), "ein **Alt** **E** ist", "a **Old** **D** is", "ein Alt E ist", {(6, 7): "E"}),
    ],
)
def test_marked_ranges_are_read_as_emphasis(
    marked: tuple[Range, ...], answer: str, read: str, expected: str, links: dict[Range, str]
) -> None:
    table = Table({read: [answer if answer[:1] == "0" else f"2|{answer}"], "a Old D is": ["1|b c d e"]})
    planner = table.planner()
    explainer = Explainer(planner.context, 1, ExplainOptions(alignment=True))
    task = table.run(replace(planner, explainer=explainer).task("a Old D is", marked=marked))
    (sentence,) = task.translation().sentences
    assert sentence.text == expected
    assert list(dict.fromkeys(table.asked)) == [*filter(None, [read]), "a Old D is"]
    found = {left: sentence.text[slice(*right)] for left, right in sentence.links}
    assert found | links == found


def test_a_sentence_is_decoded_with_marks_and_without_them_in_one_call() -> None:
    table = Table({})
    (routine,) = table.planner().task("a Old D is", marked=((2, 7),)).take_calls()
    assert isinstance(routine.call, DecodeCall)
    texts = {table.words.decode(request.source[:-1]) for request in routine.call.requests}
    assert texts == {"a **Old D** is", "a Old D is"}


def test_placeholders_without_names_keep_their_order() -> None:
    answers = {
        "a Tom man 37 b": ["37 Mann Tom b"],
        "a X man 37 b": ["37 Mann X b"],
        "a Martin man 64 b": ["64 Mann Martin b"],
        "a 37 man 48 b": ["48 Mann 37 b"],
        "a man b": ["ein Mann b"],
    }
    table = Table(answers)
    assert translated(table, "a %s man %d b") == "ein %s Mann %d b"
    assert set(table.asked) == set(answers)


@pytest.mark.parametrize("name", ["a lost span", "an empty element", "emphasised words", "a headline", "a new number"])
def test_without_protection_each_sentence_is_asked_for_once_as_it_is(name: str) -> None:
    (text, _), *answers = map(exchange, CASES[name])
    table = Table({question: [answer] for question, answer in answers})
    table.run(table.planner(protect=False).task(text))
    assert table.asked == [text]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("1. a man\n2. see it", ["a man", "see it"]),
        ("> 1. a man\n> 2. see it", ["a man", "see it"]),
        *(
            (text, text.split("\n"))
            for text in (
                *("1. a man", "1. a man\n3. see it", "see it\n1. a man", "1.5 men\n2. it"),
                *("19. a man\n20. a man", "1. Mai\n2. Mai", "1. a man\n2. Jahrhundert", "1. Tag\n2. a man"),
            )
        ),
    ],
)
def test_numbers_of_lines_are_no_ordinal_numbers(text: str, asked: list[str]) -> None:
    table = Table({"a man": ["ein Mann"]})
    planner = table.planner()
    table.run(replace(planner, sentences=False, context=replace(planner.context, source="de")).task(text))
    assert table.asked == asked


@pytest.mark.parametrize(
    ("text", "asked", "expected"),
    [
        ("Weight", [], "Gewicht"),
        ("Weight: it is", ["it is"], "Gewicht: es ist"),
        ("Anna: it is", ["it is"], "Anna: es ist"),
        ("Dear new friend, it is", ["it is"], "Lieber neuer Freund, es ist"),
        ("Dear {name}, it is", ["it is"], "Lieber {name}, es ist"),
        ("Dear {name}, hello: it is", ["hello: it is"], "Lieber {name}, hello: it is"),
        ("See new friend, it is", ["See new friend, it is"], "See new friend, it is"),
        ("Height: it is", ["Height: it is"], "Höhe, es ist"),
        ("MARY: it is", ["it is"], "MARY: es ist"),
        ("May 3-5: it is", ["it is"], "3.–5. Mai: es ist"),
        ("Dear Tom, dear Anna,", [], "Lieber Tom, liebe Anna,"),
        ("(Red)", [], "(Rot)"),
        ("it is (red/blue):", ["it is"], "es ist (rot/blau):"),
        ("it is (old)", ["it is (old)"], "(alt)"),
        ("it is f(red)", ["it is f(red)"], "it is f(red)"),
        ("Weight (, red)", ["Weight (, red)"], "Weight (, red)"),
        ("Weight X-5, 3 kg", [], "Gewicht X-5, 3 kg"),
        ("Weight 5", [], "Gewicht 5"),
        ("Weight 2.5 kg", [], "Gewicht 2,5 kg"),
        ("Weight (kg)", [], "Gewicht (kg)"),
        ("red 5", ["red 5"], "red 5"),  # no noun
        ("red, blue and red.", [], "rot, blau und rot."),
        ("red, odd, blue", ["red, odd, blue"], "rot, seltsam, blau"),  # the words of the model for unknown members
        ("red, big, blue", ["red, big, blue", "big"], "rot, groß, blau"),  # the model loses a member
    ],
)
def test_phrases_of_the_model_and_labels_need_no_search(text: str, asked: list[str], expected: str) -> None:
    table = Table({"it is": ["es ist"], "Height: it is": ["Höhe, es ist"], "it is (old)": ["(alt)"]})
    table.table |= {"red, odd, blue": ["rote, seltsam, Blaue"], "red, big, blue": ["rot, blau"], "big": ["groß"]}
    planner = table.planner()
    rows = {"weight": "Gewicht", "dear new friend": "lieber neuer Freund", "see new friend": "siehe"}
    rows |= {
        "dear {man}": "lieber {man}",
        "dear {woman}": "liebe {woman}",
        "dear {name}": "lieber {name}",
        "red": "rot",
        "blue": "blau",
    }
    context = replace(planner.context, phrases=Phrases(tuple({"en": en, "de": de} for en, de in rows.items())))
    task = table.run(replace(planner, context=context).task(text))
    assert (table.asked, task.translation().text) == (asked, expected)
    in_search_for_formality = replace(context, banned=("Ihr",))
    assert analyse("Weight", context, ()).without_search
    assert not analyse("Weight", in_search_for_formality, ()).without_search


async def nothing() -> list[Result]:
    return await DecodeCall([])


def test_a_call_for_nothing_is_answered_at_once() -> None:
    """Nobody else would answer: no result of the engine would arrive."""
    routine = Routine(nothing())
    assert routine.done and routine.value == []


def test_branches_of_a_message_are_decoded_together() -> None:
    table = Table({"I see 1 dog.": ["Ich sehe 1 Hund."], "I see 37 dogs.": ["Ich sehe 37 Hunde."]})
    task = table.planner().task("I see {n, plural, one {# dog} other {# dogs}}.")
    (routine,) = task.take_calls()
    assert isinstance(routine.call, DecodeCall) and len(routine.call.requests) == 2
    task.resume(routine, [table.answer(request) for request in routine.call.requests])
    assert table.run(task).translation().text == "Ich sehe {n, plural, one {# Hund} other {# Hunde}}."


def test_second_tries_forbid_repetition() -> None:
    table = Table({"a man": ["ein ein ein ein ein"]})
    table.run(table.planner(SearchOptions(beam_size=7)).task("a man"))
    assert [(item.beam_size, item.no_repeat_ngram) for item in table.options] == [(7, 0), (7, NO_REPEAT_NGRAM)]
    table = Table({"a man": ["b c d e f g h i"], "a man (again)": ["ein Mann"]})
    task = table.run(table.planner(SearchOptions(max_length_factor=1, max_length_offset=6)).task("a man"))  # 3 + 6 = 9
    assert task.translation().text == "ein Mann"


def test_a_sentence_that_stays_is_marked() -> None:
    table = Table({"a man": [""], "a man (long)": ["."], "a dog": ["ein Hund"]})
    sentences = [table.run(table.planner().task(text)).translation().sentences[0] for text in ("a man", "мир", "a dog")]
    marked = {sentence.text: sentence.untranslated for sentence in sentences}
    assert marked == {"a man": True, "мир": True, "ein Hund": False}


def test_no_alternative_is_empty_or_lacks_spans() -> None:
    table = Table({"a man": ["ein Mann", "", "Mann"], "a man (long)": ["ein Mann", "Mann"]})
    translation = table.run(table.planner().task("a man")).translation()
    assert [alternative.text for alternative in translation.alternatives] == ["ein Mann", "Mann"]
    table = Table({"a x_y 12 man": ["ein x_y 12 Mann", "ein Mann x_y", "der x_y 12 x_y"]})
    translation = table.run(table.planner().task("a x_y 12 man")).translation()
    assert [sorted(alternative.text.split()).count("x_y") for alternative in translation.alternatives] == [1, 1, 1]
    assert all("12" in alternative.text.split() for alternative in translation.alternatives)


def test_only_a_first_question_that_fails_fails_the_text() -> None:
    table = Table({"a x_y man": ["ein X"]}, problems={"a man", "a Martin man", "a 37 man"})
    assert translated(table, "a x_y man").split().count("x_y") == 1
    table = Table({}, problems={"a man"})
    with pytest.raises(RequestError, match="the text that begins 'a man' cannot be translated: no"):
        table.run(table.planner().task("a man")).translation()


def test_an_exception_in_a_sentence_is_the_problem_of_its_text() -> None:
    table = Table({"see 12 men": ["sieh zwölf Mann"]})
    task = table.planner().task("see 12 men")
    (routine,) = task.take_calls()
    task.resume(routine, [table.answer(task.requests[0])])
    assert not task.done and task.take_calls() == [routine]
    task.resume(routine, ZeroDivisionError("none"))
    assert task.done and "ZeroDivisionError: none" in task.problem


def test_finished_sentences_are_reported_in_order_and_join_to_the_translation() -> None:
    table = Table({"Go on.": ["weiter so."], "See it": ["sieh es"], "Now": ["jetzt"]})
    task = replace(table.planner(), sentences=False).task(" Go on. See it\n- Now\n*\n")
    first, second, third = task.take_calls()

    def finish(routine: AnyRoutine) -> list[str]:
        assert isinstance(routine.call, DecodeCall)
        task.resume(routine, [table.answer(request) for request in routine.call.requests])
        reports.extend(new := task.take_reports())
        return [report.text for report in new]

    reports: list[SentenceReport] = []
    assert [finish(second), finish(first), finish(third)] == [[], ["Weiter so.", "Sieh es"], ["Jetzt"]]
    translation = task.translation()
    assert "".join(report.before + report.text + report.after for report in reports) == translation.text
    assert [report.after for report in reports] == ["", "", "\n*\n"]
    for report, sentence in zip(reports, translation.sentences, strict=True):
        assert (report.source_range, report.target_range) == (sentence.source_range, sentence.target_range)
        assert report.text == sentence.text
    assert task.take_reports() == []


def test_an_apostrophe_before_a_placeholder_is_typographic_in_messages_only() -> None:
    table = Table({"a Tom man": ["l'Tom Mann"]})
    planner = replace(table.planner(), sentences=False)
    sources = "a {x} man", "{n, select, a {a {x} man}}", "{n, plural, =0 {} one {#} other {a {x} man}}."
    texts = [table.run(planner.task(text)).translation().text for text in sources]
    assert texts == ["l'{x} Mann", "{n, select, a {l’{x} Mann}}", "{n, plural, =0 {} one {#} other {l’{x} Mann}}."]


def test_no_cut_parts_a_long_span() -> None:
    address = "https://x.y/" + "a" * 100
    table = Table({})
    text = f"one two three {address} four five six"
    assert translated(table, text) == text
    table = Table({})
    task = table.planner(longest=4).task(text)
    assert table.run(task).translation().text == text
    assert table.asked == ["one two three", "four five six"]


UNITS = ["go on ", "<b>a</b> ", "a<br/>", "{{#a}}\n", "{a,plural,b{c}} ", "```\na\n```\n", "1,5\n"]


@pytest.mark.parametrize("unit", UNITS)
def test_a_step_of_planning_is_a_small_part_of_it(translator: Translator, unit: str) -> None:
    """Measured in function calls."""
    planner, calls, longest = translator.planner(source="en", target="de"), count(), 0
    planner.task(unit)
    task = planner.begin(unit * 1500)
    sys.setprofile(lambda frame, event, argument: next(calls) and None)
    while not task.planned:
        before = next(calls)
        task.plan(0)
        longest = max(longest, next(calls) - before)
    before = next(calls)
    if task.done:  # of kept parts
        task.translation()
    longest = max(longest, next(calls) - before)
    sys.setprofile(None)
    assert longest < next(calls) / 6


@pytest.mark.parametrize(
    ("ranges", "expected"),  # of the parts "ab", "", "cde", "f"
    [
        ([], [(), (), (), ()]),
        ([(0, 2), (2, 5), (5, 6)], [((0, 2),), (), ((0, 3),), ((0, 1),)]),
        ([(1, 6)], [((1, 2),), (), ((0, 3),), ((0, 1),)]),
        ([(3, 4), (0, 1), (2, 5)], [((0, 1),), (), ((1, 2), (0, 3)), ()]),
        ([(-1, 1), (5, 9), (6, 8), (2, 2), (4, 3)], [((0, 1),), (), (), ((0, 1),)]),
    ],
)
def test_ranges_are_shared_out_to_the_parts_of_a_text(ranges: list[Range], expected: list[tuple[Range, ...]]) -> None:
    assert split_ranges(ranges, ["ab", "", "cde", "f"]) == expected


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ([], ["ab", "cd", "ef"]),
        ([(0, 2), (2, 4)], ["ab", "cd", "ef"]),
        ([(1, 3)], ["abcd", "ef"]),
        ([(4, 6), (3, 5), (0, 1)], ["ab", "cdef"]),
        ([(1, 5), (2, 3)], ["abcdef"]),
    ],
)
def test_no_cut_parts_what_is_kept(kept: list[Range], expected: list[str]) -> None:
    pieces = [TextPart(text, False) for text in ("ab", "cd", "ef")]
    assert [piece.text for piece in segment.merge_divided(pieces, sorted(kept))] == expected


def test_many_kept_ranges_are_gone_through_once() -> None:
    """For each part of a text it would be quadratic: minutes, in which a worker seems to hang."""
    text = "a is b, "

    def plan(times: int) -> Callable[[], TextTask]:
        kept = [(place, place + 1) for place in range(0, times * len(text), len(text))]
        return lambda: Table({}).planner(longest=5).task(text * times, kept)

    assert [part.text for part in plan(3)().parts] == ["a", " ", "is b,", " "] * 3
    assert_linear(plan, 300)


ODD: dict[str, str] = {
    "lone surrogates": "a \ud800 b\udfff \udc00\ud800",
    "NUL": "a\0b \0",
    "right-to-left marks": "\u202eThe dog\u202c \u200fsees\u200e \u2067the cat\u2069.",
    "families": "The 👩‍👩‍👧‍👦 sees 👨🏽‍🚀🏴󠁧󠁢󠁳󠁣󠁴󠁿 the \u200d\u200d cat 🇩🇪🇩.",
    "10,000 combining marks": "The dog" + "\u0301" * 10_000 + " sees.",
    "spaces": " " * 10_000,
    "space marks": "\u2581\u2581 the\u2581dog",
    "placeholders": "{a} " * 300 + "the dog",
    "shouting": "THE DOG SEES THE CAT " * 50,
}


BRIEF = SearchOptions(beam_size=1, max_length_factor=0, max_length_offset=6)


@pytest.mark.parametrize("sentences", [False, True])
@pytest.mark.parametrize("name", ODD)
def test_odd_text(translator: Translator, name: str, sentences: bool) -> None:
    text = ODD[name]
    steps = translator.engine.steps
    translation = translator.translate_many([text], options=BRIEF, sentences=sentences)[0].text
    assert translation.encode("utf-8").decode("utf-8") == translation
    assert len(translation) <= 12 * len(text) + 1000
    assert translator.engine.steps - steps < 2000
    if not text.strip() or not any(map(str.isalnum, text)):
        assert translation == text


@pytest.mark.parametrize("sign", "①⑴⒈㉑㈠½⅓")
def test_signs_alone_are_not_decoded(translator: Translator, sign: str) -> None:
    steps = translator.engine.steps
    for text in (sign * 1200, f"{sign} " * 600 + sign):
        assert translator.translate_many([text], options=BRIEF)[0].text == text
    assert translator.engine.steps == steps


def test_a_token_of_a_megabyte(translator: Translator) -> None:
    options = SearchOptions(beam_size=1, max_length=2)
    for text in ("a" * 1_000_000, "a1." * 50_000):
        steps = translator.engine.steps
        translation = translator.translate_many([text], options=options)[0].text
        assert len(translation) <= 2 * len(text)
        # two steps for each of about 1,000 pieces and for their halves, which are decoded again if they are empty
        assert translator.engine.steps - steps < 15_000


def test_spans_come_back_through_a_model_that_writes_nonsense(translator: Translator) -> None:
    text = "The dog https://x.y/z sees @anna_b and {name} 12 times `a b` at 12:30 👩‍👩‍👧, or v1.2.3 <0>cat</0>."
    spans = ["https://x.y/z", "@anna_b", "{name}", "`a b`", "12:30", "👩‍👩‍👧", "v1.2.3", "<0>", "</0>"]
    options = replace(translator.options, n_best=2)
    for translation in translator.translate_many([text, f"- {text}", text.upper()], options=options):
        for alternative in translation.alternatives:
            assert [alternative.text.lower().count(span.lower()) for span in spans] == [1] * len(spans)


def test_a_translation_leaves_no_reference_cycles(translator: Translator) -> None:
    """Workers collect garbage only while they are idle."""
    text = "The <b>dog</b> sees $5 and @x."
    translator.translate(text)
    gc.collect()
    translator.translate(text)
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    types = {type(item).__name__ for item in gc.garbage}
    gc.garbage.clear()
    assert types.isdisjoint({"function", "SentenceContext", "TextTask", "Routine", "coroutine"})
