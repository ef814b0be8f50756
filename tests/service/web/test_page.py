"""The page in Chromium, around the application with models of words: what a person does, and what comes of it.

Every visit ends with a look at what the browser complained of, and at where it sent requests.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mt.languages import Direction
from mt.text.documents import SUFFIXES
from service.errors import Overloaded
from service.memories.store import OPERATOR
from service.memories.units import MemoryUnit
from tests.service.web.page_application import LIMIT, SECOND_MODEL, PageApplication

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_core_python.base")
expect = playwright.expect

CHROMIUM = shutil.which("chromium")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)"),
]

TEXT = "A man runs on the beach. The dog sleeps."
TRANSLATION = "ein Mann läuft auf der Strand. der Hund schläft."
PANELS = ("files", "glossary", "memory", "inside", "history")
TIMEOUT = 30_000  # milliseconds: other processes may use the cores
NOT_LOADED = "Failed to load resource"


@dataclass
class Visit:
    """A page, and what its browser noticed."""

    page: Any
    url: str
    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)  # bodies of the translations asked for
    refusals: bool = False  # whether the test has the service refuse something, which the browser reports

    def watch(self) -> None:
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self._heard(message))
        self.page.on("request", self._asked)

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning") and not (self.refusals and NOT_LOADED in message.text):
            self.complaints.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.url, "blob:")):
            self.foreign.append(request.url)
        if request.url.endswith("/translate"):
            self.asked.append(request.post_data_json)

    def expect_ready(self) -> None:
        """Wait until the page has the service's settings: before that it sends no text."""
        expect(self.page.locator("#count")).to_contain_text("/")

    def type(self, text: str, translation: str | None = None) -> "Visit":
        self.page.fill("#source-text", text)
        if translation is not None:
            self.expect_translation(translation)
        return self

    def expect_translation(self, text: str) -> None:
        expect(self.page.locator("#output")).to_have_text(text, use_inner_text=True)

    def add_term(self, term: str, translation: str, kept: str = "") -> None:
        """Add a term to the open glossary, and a word that stays."""
        self.page.click("#add-term")
        self.page.fill("#terms input >> nth=0", term)
        self.page.fill("#terms input >> nth=1", translation)
        if kept:
            self.page.fill("#kept-word", kept)
            self.page.press("#kept-word", "Enter")

    def send(self, name: str, content: str = "The dog.") -> None:
        """Choose a file, which the page sends to the service."""
        file = {"name": name, "mimeType": "text/plain", "buffer": content.encode()}
        self.page.set_input_files("#file-input", file)

    def enter_key(self, key: str) -> None:
        self.page.fill("#key", key)
        self.page.press("#key", "Enter")

    def notes(self, sentences: Any) -> list[str]:
        """What a screen reader says of sentences."""
        ids = [each.get_attribute("aria-describedby") for each in sentences.all()]
        return [self.page.locator(f"#{id}").text_content() for id in ids]

    def stored(self, name: str) -> Any:
        return self.page.evaluate("name => JSON.parse(localStorage.getItem(`translate.${name}`))", name)


Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        expect.set_options(timeout=TIMEOUT)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[PageApplication]:
    with PageApplication(database=None, suggestions=True) as application:
        yield application


@pytest.fixture
def application(shared: PageApplication) -> PageApplication:
    shared.do(shared.models.forget)
    return shared


@pytest.fixture
def visit(browser: Any, application: PageApplication) -> Iterator[Open]:
    """Opens the page: `visit("#en/fr", viewport=...)`; that of another application by `url`."""
    visits: list[Visit] = []

    def open_page(fragment: str = "#en/de", url: str = application.url, **options: Any) -> Visit:
        context = browser.new_context(**{"reduced_motion": "reduce", **options})
        context.set_default_timeout(TIMEOUT)
        visit = Visit(context.new_page(), url)
        visits.append(visit)
        visit.watch()
        visit.page.goto(f"{url}/{fragment}")
        expect(visit.page).not_to_have_title("")  # the texts arrive after the event "load", by an await of a module
        return visit

    yield open_page
    for visit in visits:
        visit.page.context.close()
        assert visit.complaints == []
        assert visit.foreign == []


def test_typing_translates(visit: Open) -> None:
    seen = visit()
    seen.page.locator("#source-text").press_sequentially("The dog sleeps.", delay=20)
    seen.expect_translation("der Hund schläft.")
    assert len(seen.asked) < len("The dog sleeps.")  # a pause, not every key, sends the text
    assert seen.asked[-1]["q"] == "The dog sleeps."
    expect(seen.page.locator("#result")).to_have_text("der Hund schläft.")  # what a screen reader says
    assert seen.page.url.endswith("#en/de")


def test_an_older_answer_never_replaces_a_newer_one(visit: Open) -> None:
    seen, held = visit(), list[Any]()
    seen.page.route("**/translate", lambda route: route.continue_() if held else held.append(route))
    with seen.page.expect_request("**/translate"):
        seen.type("The dog")
    seen.type("The cat", "der Katze")
    with suppress(playwright.Error):  # the page may have cancelled it
        held[0].continue_()
    seen.type("The cat sleeps", "der Katze schläft")
    assert [body["q"] for body in seen.asked] == ["The dog", "The cat", "The cat sleeps"]


def test_shift_enter_does_not_wait(visit: Open) -> None:
    seen = visit()
    seen.expect_ready()
    seen.page.clock.install()
    seen.page.clock.pause_at("2100-01-01")
    seen.type("The dog")
    for keys in ("Shift+Enter", "Control+Enter"):
        with seen.page.expect_request("**/translate"):
            seen.page.press("#source-text", keys)
            seen.page.clock.run_for(1)
    assert seen.page.input_value("#source-text") == "The dog"


OPTION = """([code, key]) => document.querySelector("#source-text").dispatchEvent(
  new KeyboardEvent("keydown", {code, key, altKey: true, bubbles: true, cancelable: true}))"""


def test_swapping(visit: Open) -> None:
    seen = visit().type("The dog sleeps.", "der Hund schläft.")
    seen.page.click("#swap")
    assert seen.page.input_value("#source-text") == "der Hund schläft."
    seen.expect_translation("the dog sleeps.")
    assert seen.page.url.endswith("#de/en")
    seen.page.keyboard.press("Alt+s")
    assert seen.page.url.endswith("#en/de")
    for code, key in (("KeyS", "ß"), ("KeyC", "ç"), ("KeyX", "≈"), ("KeyX", "ź"), ("KeyT", "†")):
        assert seen.page.evaluate(OPTION, [code, key]) is True, key  # the characters of a Mac are not prevented
    assert seen.page.input_value("#source-text") == "the dog sleeps." and seen.page.url.endswith("#en/de")


UNKNOWN = "Confidence unknown: this text is unlike the text that the model was trained on."
USED, OTHER, NO_WAY_BACK = "#used-model", "#other-language-text", "#swap[aria-disabled=true]"
ITALIAN = "This text is in Italian, which this service does not translate."
LIKE_GERMAN = "This text looks like German."
LOOKS_GERMAN = "This text looks like German, so it was not translated."
IN_GERMAN = "This text is in German already."
UNTRANSLATED = "The language was not recognized. The text was not translated."
AS_ENGLISH = "The language was not recognized. The text was translated as English."
ARABIC = "ال كلب ينام."
MORTGAGE = {"#output .sentence.unfamiliar": "der mortgage schläft."}
SHOWN: list[tuple[str, str, dict[str, str | None]]] = [
    ("de/ar", "Hund", {"#output": "كلب", "#bridge": "By way of English"}),
    ("en/de", "", {"#target-search": None, "optgroup": None}),  # few languages need no search
    ("en/fr", "", {NO_WAY_BACK: ""}),
    ("auto/en", "Der Hund.", {"#detected": "Detected: German (97%)", USED: "This text was translated by de-en."}),
    ("auto/de", "Buongiorno a tutti.", {"#output": "Buongiorno a tutti.", OTHER: ITALIAN}),
    ("auto/de", "Der Hund schläft.", {"#output": "Der Hund schläft.", OTHER: IN_GERMAN, "#confidence": None}),
    ("en/de", "The dog sleeps.", {"#result": "der Hund schläft.", OTHER: None}),
    ("en/de", "Der Hund schläft. Der Hund läuft.", {OTHER: LIKE_GERMAN}),
    ("auto/de", "Qwer Hund.", {"#detected": "Detected: German (46%)", OTHER: LOOKS_GERMAN}),
    ("auto/de", "Xyzzy Hund.", {"#detected": "Language not recognized", "#other-language": UNTRANSLATED}),
    ("auto/de", "Xyzzy dog.", {"#other-language": AS_ENGLISH, NO_WAY_BACK: ""}),
    ("en/de", "The mortgage sleeps.", {"#confidence": UNKNOWN, **MORTGAGE}),
    (
        "en/de",
        "The dog sleeps. The mortgage sleeps.",
        {"#confidence": "1 of 2 sentences not sure", "#legend": "confidence unknown", **MORTGAGE},
    ),
]
"""Languages, a text, and what parts of the page then show; None where a part is hidden."""


@pytest.mark.parametrize(("languages", "text", "shown"), SHOWN, ids=lambda value: str(value)[:30])
def test_what_the_page_says_of_a_text(visit: Open, languages: str, text: str, shown: dict[str, str | None]) -> None:
    seen = visit(f"#{languages}")
    seen.expect_ready()
    seen.type(text)
    for part, content in shown.items():
        if content is None:
            expect(seen.page.locator(f"{part} >> visible=true")).to_have_count(0)
        else:
            expect(seen.page.locator(part)).to_have_text(content, use_inner_text=True)
    if text:
        seen.page.click("#clear")
    for part in ("#bridge", "#other-language", "#used-model"):
        expect(seen.page.locator(part)).to_be_hidden()


@pytest.mark.parametrize(
    ("languages", "button", "translation", "then"),
    [
        ("en/de", "Translate from German", "the dog sleeps.", "de/en"),
        ("auto/de", "Translate into Arabic", ARABIC, "auto/ar"),
    ],
)
def test_other_languages_are_offered(visit: Open, languages: str, button: str, translation: str, then: str) -> None:
    seen = visit(f"#{languages}").type("Der Hund schläft.")
    seen.page.get_by_role("button", name=button).click()
    seen.expect_translation(translation)
    assert seen.page.url.endswith(f"#{then}")
    expect(seen.page.locator("#other-language")).to_be_hidden()


def test_both_sides_state_their_language(visit: Open) -> None:
    seen = visit("#auto/en", forced_colors="active").type("Der Hund schläft.", "the dog sleeps.")
    languages = [seen.page.locator(part).get_attribute("lang") for part in ("#source-text", "#mirror", "#output")]
    assert languages == ["de", "de", "en"]
    expect(seen.page.locator("#mirror")).to_have_css("color", "rgba(0, 0, 0, 0)")  # or the text would be drawn twice
    seen.page.click("#swap")  # of the detected language
    assert seen.page.url.endswith("#en/de")


def test_what_the_model_was_trained_on(visit: Open) -> None:
    seen = visit("#en/de")
    about = seen.page.locator("#about-model")
    expect(about).to_contain_text("This model was trained on everyday sentences, an encyclopaedia")
    seen.page.click("#about summary")
    expect(seen.page.locator("#about-licence")).to_have_text("Licence: CC-BY 4.0")
    expect(seen.page.locator("#trial")).to_contain_text("for trying out")  # the bundled model
    seen.page.locator("#target-language").select_option("fr")
    expect(seen.page.locator("#trial")).to_be_hidden()
    expect(seen.page.locator("#about-model")).to_have_text("This model does not state what it was trained on.")


def test_the_form_of_address_is_chosen_where_there_are_two(visit: Open) -> None:
    seen = visit("#en/de")
    seen.type("The dog", "der Hund")
    assert "formality" not in seen.asked[-1]
    with seen.page.expect_response("**/translate"):
        seen.page.get_by_label("Form of address").select_option("prefer_more")
    assert seen.asked[-1]["formality"] == "prefer_more"
    seen.page.reload()
    expect(seen.page.get_by_label("Form of address")).to_have_value("prefer_more")
    seen.page.locator("#source-language").select_option("de")
    seen.page.locator("#target-language").select_option("en")
    expect(seen.page.get_by_label("Form of address")).to_be_hidden()


def test_models_are_offered_by_name(visit: Open) -> None:
    with PageApplication(second=True) as application:
        seen = visit(url=application.url)
        model, about = seen.page.get_by_label("Model"), seen.page.locator("#about-model")
        expect(model.locator("option")).to_have_text(["en-de", SECOND_MODEL])
        seen.type("The dog", "der Hund")
        assert seen.asked[-1]["model"] == "default"
        with seen.page.expect_response("**/translate"):
            model.select_option(SECOND_MODEL)
        assert seen.asked[-1]["model"] == SECOND_MODEL
        expect(about).to_have_text("This model was trained on captions.")
        send_file(seen, "n.txt")
        assert application.models.calls[-1].options.model == SECOND_MODEL
        seen.refusals = True
        seen.page.locator("#source-language").select_option("auto")
        model.select_option("en-de")
        seen.type("كلب", "Hund")
        expect(seen.page.locator("#used-model")).to_have_text("This text was translated by ar-en and then by en-de.")
        refusal = {"error": "ar is not supported", "code": "unsupported_language"}
        seen.page.route("**/translate", lambda route: route.fulfill(status=400, json=refusal))
        model.select_option(SECOND_MODEL)
        message = "The model captions does not translate the language of this text. Choose another model."
        expect(seen.page.get_by_role("alert")).to_have_text(message)


GERMAN = {"locale": "de-DE"}


def test_the_page_speaks_the_language_of_the_browser(visit: Open) -> None:
    seen = visit("#en/de", **GERMAN)
    html, heading = seen.page.locator("html"), seen.page.locator("h1")
    expect(heading).to_have_text("Übersetzen")
    expect(html).to_have_attribute("lang", "de")
    expect(seen.page).to_have_title("Übersetzen")
    languages = seen.page.locator("#source-language option")
    expect(languages).to_have_text(["Sprache erkennen", "Arabisch", "Deutsch", "Englisch"])
    expect(seen.page.locator("#count")).to_have_text(f"0 / {LIMIT:,} Zeichen".replace(",", "."))
    seen.type("The dog", "der Hund")
    seen.page.get_by_label("Sprache dieser Seite").select_option("fr")
    expect(heading).to_have_text("Traduire")
    expect(html).to_have_attribute("lang", "fr")
    seen.expect_translation("der Hund")  # the text stays
    assert seen.page.evaluate("sessionStorage.length") == 0
    seen.page.reload()
    expect(heading).to_have_text("Traduire")


def test_a_language_that_the_page_lacks_is_english(visit: Open) -> None:
    seen = visit(locale="pt-BR")
    expect(seen.page.locator("html")).to_have_attribute("lang", "en")
    languages = seen.page.get_by_label("Language of this page").locator("option")
    expect(languages).to_have_text(["English", "Deutsch", "Français"])


@pytest.mark.parametrize(("locale", "target"), [("fr-CA", "fr"), ("en-GB", "en"), ("pt-BR", "en")])
def test_the_first_target_is_the_language_of_the_reader(visit: Open, locale: str, target: str) -> None:
    seen = visit("", locale=locale)
    expect(seen.page.locator("#source-language")).to_have_value("auto")
    expect(seen.page.locator("#target-language")).to_have_value(target)


def test_languages_that_fit_each_other(visit: Open) -> None:
    seen = visit("#de/en")
    source, target = seen.page.locator("#source-language"), seen.page.locator("#target-language")
    expect(source).to_have_value("de")
    assert source.locator("option").all_text_contents() == ["Detect language", "Arabic", "English", "German"]
    source.select_option("en")  # the target of now: so the other way round
    expect(target).to_have_value("de")
    assert target.locator("option").all_text_contents() == ["Arabic", "French", "German"]
    source.select_option("de")
    assert target.locator("option").all_text_contents() == ["Arabic", "English", "French"]
    seen.page.reload()
    expect(source).to_have_value("de")


def test_counting_characters_as_the_service_does(visit: Open) -> None:
    seen = visit().type("😀😀", "😀😀")
    expect(seen.page.locator("#count")).to_have_text(f"2 / {LIMIT:,} characters")
    asked = len(seen.asked)
    seen.type("😀" * LIMIT + "!")
    expect(seen.page.locator("#count")).to_have_text(f"{LIMIT + 1:,} / {LIMIT:,}: 1 too many characters")
    message = f"This text has {LIMIT + 1:,} characters. The service accepts at most {LIMIT:,}."
    expect(seen.page.locator("#trouble")).to_have_text(message)
    expect(seen.page.locator("#placeholder")).to_be_hidden()  # the error stands in its place
    seen.page.wait_for_timeout(500)
    assert len(seen.asked) == asked


def test_copy_and_clear(visit: Open) -> None:
    seen = visit(permissions=["clipboard-read", "clipboard-write"]).type("Hello", "hallo")
    seen.page.click("#copy")
    expect(seen.page.locator("#result")).to_have_text("Copied.")
    assert seen.page.evaluate("navigator.clipboard.readText()") == "hallo"
    seen.page.click("#clear")
    seen.expect_translation("")
    assert seen.page.evaluate("document.activeElement.id") == "source-text"


def test_alternatives(visit: Open) -> None:
    seen = visit().type(TEXT, TRANSLATION)
    seen.page.click("#output .sentence >> nth=0", position={"x": 2, "y": 5})
    popover = seen.page.locator("#alternatives")
    expect(popover).to_contain_text("Confidence 62 of 100, less sure")
    choices = popover.locator("li button")
    expect(choices).to_have_count(5)
    assert seen.asked[-1]["q"] == "A man runs on the beach." and seen.asked[-1]["alternatives"] > 1
    choices.nth(1).click()
    seen.expect_translation("ein Mann läuft auf der Strand.~1 der Hund schläft.")
    expect(popover).not_to_be_visible()
    seen.page.hover("#output .piece >> nth=1")  # what stands behind the new wording has moved along
    expect(seen.page.locator("#readout")).to_have_text("dog → Hund")
    seen.page.keyboard.press("Enter")  # the sentence has the focus again
    expect(choices.nth(1)).to_have_attribute("aria-pressed", "true")
    choices.nth(0).click()
    seen.expect_translation(TRANSLATION)


def test_a_reader_improves_a_translation(visit: Open, application: PageApplication) -> None:
    seen = visit().type(TEXT, TRANSLATION)
    seen.page.click("#output .sentence >> nth=1")
    field = seen.page.locator("#suggestion-text")
    expect(field).to_have_value("der Hund schläft.")
    seen.refusals = True
    slow = {"error": "Slowdown: 500 per 1 day", "message": "Slowdown: 500 per 1 day"}
    seen.page.route("**/suggest", lambda route: route.fulfill(status=429, json=slow), times=1)
    field.fill("Too many")
    seen.page.click("#suggestion button")
    expect(seen.page.locator("#suggestion-note")).to_have_text("Slowdown: 500 per 1 day")
    field.fill(" Der Hund schläft. ")
    seen.page.click("#suggestion button")
    seen.expect_translation("ein Mann läuft auf der Strand. Der Hund schläft.")
    memories = application.services.memories
    (memory,) = application.wait(memories.owned(OPERATOR))
    (match,) = application.wait(memories.matches("", memory.id, Direction("en", "de"), ["The dog sleeps."], 1.0))
    assert match.target == "Der Hund schläft."
    expect(seen.page.locator("#alternatives")).not_to_be_visible()


def test_alternatives_by_keyboard(visit: Open) -> None:
    seen = visit().type(TEXT, TRANSLATION)
    keys = seen.page.keyboard
    keys.press("Alt+t")
    keys.press("ArrowDown")
    keys.press("ArrowRight")
    expect(seen.page.locator("#readout")).to_have_text("The → der")
    keys.press("ArrowRight")
    expect(seen.page.locator("#readout")).to_have_text("dog → Hund")
    keys.press("Enter")
    expect(seen.page.locator("#alternatives li button")).to_have_count(5)
    keys.press("ArrowDown")
    keys.press("Enter")
    seen.expect_translation("ein Mann läuft auf der Strand. der Hund schläft.~1")
    keys.press("Enter")
    keys.press("Escape")
    expect(seen.page.locator("#alternatives")).not_to_be_visible()
    assert seen.page.evaluate("document.activeElement.dataset.index") == "1"


def test_alignment_in_both_panes(visit: Open) -> None:
    seen = visit().type("😀 The 👩‍👧 dog 😀 sleeps.", "😀 der 👩‍👧 Hund 😀 schläft.")
    lit = ".lit >> visible=true"
    seen.page.locator("#output .piece", has_text="Hund").hover()
    assert seen.page.locator(lit).all_text_contents() == ["dog", "Hund"]
    expect(seen.page.locator("#threads path")).to_have_count(1)
    box = seen.page.locator("#mirror .piece", has_text="sleeps").bounding_box()
    seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert seen.page.locator(lit).all_text_contents() == ["sleeps", "schläft"]
    seen.page.mouse.move(1, 1)
    expect(seen.page.locator(".lit")).to_have_count(0)
    seen.page.evaluate("document.querySelector('#source-text').setSelectionRange(4, 4)")  # the caret in "The"
    expect(seen.page.locator("#readout")).to_have_text("The → der")


def test_words_lie_behind_the_text_field_where_they_seem_to_lie(visit: Open) -> None:
    seen = visit(viewport={"width": 700, "height": 900}).type("The dog sees the cat. " * 40)
    seen.page.wait_for_selector("#mirror .piece")
    field, mirror = (seen.page.locator(name).bounding_box() for name in ("#source-text", "#mirror"))
    assert field == mirror
    assert seen.page.locator("#source-text").evaluate("field => field.scrollHeight <= field.clientHeight")


def test_confidence_in_words_and_lines(visit: Open) -> None:
    seen = visit().type(f"{TEXT} Cat and dog.", f"{TRANSLATION} Katze und Hund.")
    sentences = seen.page.locator("#output .sentence")
    classes = ["sentence unsure", "sentence", "sentence doubtful"]
    assert [each.get_attribute("class").strip() for each in sentences.all()] == classes
    notes = ["Confidence 62 of 100, less sure", "Confidence 88 of 100", "Confidence 31 of 100, doubtful"]
    assert seen.notes(sentences) == notes
    lines = sentences.evaluate_all("all => all.map(each => getComputedStyle(each).textDecorationStyle)")
    assert len({lines[0], lines[2]}) == 2  # told apart without colour, too
    expect(seen.page.locator("#legend")).to_be_visible()
    expect(seen.page.locator("#confidence")).to_have_text("2 of 3 sentences not sure")
    expect(seen.page.locator("#result")).to_contain_text("(2 of 3 sentences not sure)")


def test_words_that_are_not_translated_are_marked_and_named(visit: Open) -> None:
    seen = visit()
    seen.type("The dog sleeps. The Zyklon sleeps.", "der Hund schläft. der Zyklon schläft.")
    sentence = seen.page.locator("#output .sentence").nth(1)
    expect(sentence.locator(".untranslated")).to_have_text("Zyklon")
    expect(sentence.locator(".untranslated")).to_have_css("font-style", "italic")  # lines state the confidence
    assert seen.notes(sentence) == ["Confidence 88 of 100. Not translated: Zyklon"]
    describe = "(module) => module.describeUntranslated(['שלום '.repeat(40)])"
    named = seen.page.evaluate(f"import('./web/modules/confidence.js').then({describe})")
    assert named.count("\u2068") == named.count("\u2069") == 2  # cut before it is isolated
    expect(seen.page.locator("#confidence")).to_have_text("Not translated: Zyklon")
    expect(seen.page.locator("#legend")).to_have_text("not translated", use_inner_text=True)
    seen.page.click("#edit")
    sentence.press("Home")
    seen.page.keyboard.type("x")
    expect(sentence.locator(".untranslated")).to_have_css("font-style", "normal")  # the wording is the reader's


def test_attention(visit: Open) -> None:
    seen = visit().type(TEXT, TRANSLATION)
    seen.page.click("text=Look inside")
    seen.page.select_option("#inside-sentence", "1")
    cells = seen.page.locator("#map .cell")
    expect(cells).to_have_count(4 * 4)  # The dog sleeps </s>
    before = cells.evaluate_all("all => all.map(each => each.getAttribute('fill-opacity'))")
    seen.page.select_option("#inside-layer", "0")
    seen.page.select_option("#inside-head", "0")
    assert before != cells.evaluate_all("all => all.map(each => each.getAttribute('fill-opacity'))")
    cells.nth(5).hover()
    expect(seen.page.locator("#inside-note")).to_contain_text("“Hund” looks at “dog”")
    expect(seen.page.locator("#inside-list li").nth(1)).to_contain_text("“Hund” looks at “dog”")
    seen.type("byte dog", "byte Hund")  # a byte is shown as its character
    expect(seen.page.locator("#map .column-0")).to_have_text("?")
    expect(seen.page.locator("#inside-list li").first).to_contain_text("“?” looks at “?”")


def test_glossary(visit: Open) -> None:
    seen = visit().type(TEXT, TRANSLATION)
    seen.page.click("text=Glossary")
    seen.add_term("dog", "Köter", kept="beach")
    seen.expect_translation("ein Mann läuft auf der beach. der Köter schläft.")
    terms = {"glossary": {"dog": "Köter"}, "do_not_translate": ["beach"]}
    assert terms.items() <= seen.asked[-1].items()
    send_file(seen, "note.txt", "The dog sees the beach.")
    assert downloaded(seen, "note_de.txt") == "der Köter sieht der beach."
    expect(seen.page.locator("#glossary-badge")).to_have_text("2")
    seen.page.reload()
    seen.type(TEXT, "ein Mann läuft auf der beach. der Köter schläft.")
    seen.page.click("text=Glossary")
    seen.page.click("[aria-label='Remove the term dog']")
    seen.page.click("[aria-label='Translate beach again']")
    seen.expect_translation(TRANSLATION)
    assert "glossary" not in seen.asked[-1] and "do_not_translate" not in seen.asked[-1]


MEMORY = "The dog sleeps.\tDer Hund schlummert.\nA big cat runs and runs.\tEine große Katze rennt und rennt.\n"


def open_memory(seen: Visit, file: str = "pets.tsv", content: str = MEMORY) -> Any:
    """The panel of the translation memory, from which a file is sent."""
    seen.expect_ready()
    if not seen.page.locator("#memory").is_visible():
        seen.page.click("[aria-controls=memory]")
    upload = {"name": file, "mimeType": "text/plain", "buffer": content.encode()}
    seen.page.get_by_label("Upload a memory").set_input_files(upload)
    return seen.page.locator("#memory")


def test_sentences_from_the_memory_say_so(visit: Open) -> None:
    seen = visit()
    panel = open_memory(seen)
    expect(panel.get_by_role("status")).to_have_text("pets has 2 sentences now.")
    expect(panel.get_by_label("Memory from English into German")).not_to_have_value("")
    seen.type("The dog sleeps. A big dog runs and runs. Hello.")
    seen.expect_translation("Der Hund schlummert. ein big Hund läuft und läuft. hallo.")
    panel.get_by_text("Adapt the translations of similar sentences").click()
    seen.expect_translation("Der Hund schlummert. Eine große Katze rennt und rennt. hallo.")
    assert seen.asked[-1]["memory_threshold"] == 70
    sentences = seen.page.locator("#output .sentence")
    similar = "Adapted from a similar sentence of the memory (86% match): check it. Confidence 88 of 100, less sure"
    exact = "From the translation memory. Confidence 100 of 100"
    assert seen.notes(sentences) == [exact, similar, "Confidence 88 of 100"]
    signs = sentences.evaluate_all("all => all.map(each => getComputedStyle(each, '::after').content)")
    assert [sign[:3] for sign in signs] == ['"="', '"≈"', "non"]
    legend = re.compile(r"^\s*less sure\s*from the memory\s*adapted from the memory\s*$")
    expect(seen.page.locator("#legend")).to_have_text(legend, use_inner_text=True)
    sentences.nth(1).click()
    popover = seen.page.locator("#alternatives")
    expect(popover).to_contain_text(similar)
    expect(popover.locator("li button").nth(1)).to_have_text("ein big Hund läuft und läuft.")  # the model's own
    popover.locator("li button").nth(1).click()
    expect(sentences.nth(1)).to_have_class("sentence reworded")


def test_a_memory_belongs_to_its_languages_until_it_is_deleted(visit: Open, application: PageApplication) -> None:
    seen = visit().type("The dog sleeps.", "der Hund schläft.")
    panel = open_memory(seen)
    seen.expect_translation("Der Hund schlummert.")
    id = seen.asked[-1]["memory"]
    seen.page.locator("#target-language").select_option("fr")
    seen.expect_translation("The dog sleeps.")
    assert "memory" not in seen.asked[-1]
    expect(panel.get_by_label("Memory from English into French").locator("option")).to_have_text(["No memory"])
    seen.page.reload()
    seen.page.locator("#target-language").select_option("de")
    seen.type("The dog sleeps.", "Der Hund schlummert.")
    expect(seen.page.locator("#memory-badge")).to_have_text("on")
    seen.page.locator("#source-language").select_option("auto")
    seen.expect_translation("der Hund schläft.")
    seen.page.click("[aria-controls=memory]")
    choice = panel.get_by_label("Memory into German")
    choice.select_option("pets (from English, 2 sentences)")
    seen.expect_translation("Der Hund schlummert.")
    seen.page.on("dialog", lambda dialog: dialog.accept())
    panel.get_by_role("button", name="Delete this memory").click()
    seen.expect_translation("der Hund schläft.")
    expect(choice).to_be_focused()
    assert seen.stored("memories") == [] and seen.stored("memory") == {}
    assert application.client.get(f"/memories/{id}").status_code == 404


def test_a_memory_that_is_gone_is_reported_and_left_out(visit: Open, application: PageApplication) -> None:
    seen = visit()

    def delete() -> None:
        assert application.client.delete(f"/memories/{seen.asked[-1]['memory']}").status_code == 204

    open_memory(seen)
    seen.type("The dog sleeps.", "Der Hund schlummert.")
    seen.refusals = True
    delete()
    seen.type("The dog sleeps. Hello.", "der Hund schläft. hallo.")
    lost = seen.page.locator("#memory-lost")
    expect(lost).to_contain_text("The memory “pets” is not on the service any more: it was deleted, or it expired")
    expect(seen.page.locator("#trouble")).not_to_be_visible()
    expect(seen.page.locator("#memory-select")).to_have_text("No memory")
    seen.type("The dog sleeps.", "der Hund schläft.")
    assert "memory" not in seen.asked[-1]
    open_memory(seen)
    seen.expect_translation("Der Hund schlummert.")
    expect(lost).not_to_be_visible()
    delete()
    seen.send("a.txt", "The dog sleeps.")
    expect(seen.page.locator("#jobs li")).to_contain_text("Translated without the translation memory")
    open_memory(seen)
    expect(seen.page.locator("#memory-select option:checked")).to_contain_text("pets")
    seen.send("b.txt", "The dog sleeps.")
    assert downloaded(seen, "b_de.txt") == "Der Hund schlummert."


def test_a_memory_that_cannot_be_stored_is_refused_in_the_panel(visit: Open) -> None:
    seen = visit()
    panel = open_memory(seen, "pets.docx")
    expect(panel.get_by_role("status")).to_contain_text("pets.docx is not a translation memory. Accepted: .tmx")
    seen.refusals = True
    panel = open_memory(seen, "pets.tsv", "no tab")
    expect(panel.get_by_role("status")).to_contain_text("pets.tsv was not uploaded: ")
    expect(panel.get_by_role("status")).to_contain_text("pets.tsv:1: has 1 column where at least 2 are needed")
    seen.page.locator("#source-language").select_option("auto")
    panel.get_by_text("Upload a memory").click()  # in no language yet
    expect(panel.get_by_role("status")).to_contain_text("Choose the language to translate from first")


def test_terms_and_memory_of_the_operator_apply_to_everybody(visit: Open, tmp_path: Path) -> None:
    (tmp_path / "terms.csv").write_text("dog,Hofhund,en,de\nbeach,Küste,en,de\nchien,Hund,fr,de\n")
    with PageApplication(database=None, page_glossary=tmp_path / "terms.csv", page_memories=("House",)) as application:
        units = [MemoryUnit("The cat sleeps.", "Die Katze schlummert.")]
        application.wait(application.services.memories.put(OPERATOR, "House", Direction("en", "de"), units))
        seen = visit(url=application.url)
        seen.page.click("[aria-controls=glossary]")
        seen.add_term("dog", "Köter")
        seen.type("The dog sees the beach. The cat sleeps.", "der Köter sieht der Küste. Die Katze schlummert.")
        terms = {"glossary_id": "operator", "glossary": {"dog": "Köter"}}  # the service prefers the user's
        assert terms.items() <= seen.asked[-1].items()
        expect(seen.page.locator("#company-lead")).to_contain_text("The operator’s glossary with 2 terms applies")
        expect(seen.page.locator("#company-terms li")).to_have_text(["dog → Hofhund", "beach → Küste"])
        expect(seen.page.locator("#glossary-badge")).to_have_text("2")
        send_file(seen, "note.txt", "The dog sees the beach.")
        assert downloaded(seen, "note_de.txt") == "der Köter sieht der Küste."
        seen.page.click("[aria-controls=memory]")
        choice = seen.page.locator("#memory-select")
        expect(choice.locator("option:checked")).to_have_text("House (of the operator) (1 sentence)")
        expect(seen.page.locator("#memory-remove")).to_be_disabled()
        choice.select_option("")
        seen.expect_translation("der Köter sieht der Küste. der Katze schläft.")
        seen.page.reload()  # the choice of none is kept
        seen.type("The cat sleeps.", "der Katze schläft.")
        seen.page.locator("#source-language").select_option("auto")
        for text, translation in ((german := "Der Hund schläft.", german), ("The beach.", "der Küste.")) * 2:
            seen.type(text, translation)  # the terms do not depend on the language of the text before


def test_editing_in_place(visit: Open) -> None:
    seen = visit(permissions=["clipboard-read", "clipboard-write"]).type(TEXT, TRANSLATION)
    seen.page.click("#edit")
    expect(seen.page.get_by_role("textbox", name="Sentence 1")).to_be_focused()
    seen.page.get_by_role("textbox", name="Sentence 2").click()
    expect(seen.page.locator("#alternatives")).to_be_hidden()
    seen.page.keyboard.press("Control+End")
    seen.page.keyboard.type(" Tief!")
    expect(first := seen.page.locator("#output .sentence").first).to_have_class("sentence unsure")
    first.press("Home")
    seen.page.keyboard.type("x")
    expect(first).to_have_class("sentence reworded")  # the reader's own has no mark, also before the editing ends
    expect(seen.page.locator("#confidence")).to_be_hidden()
    seen.page.keyboard.press("Backspace")
    expect(first).to_have_class("sentence unsure")
    seen.page.click("#copy")
    edited = f"{TRANSLATION} Tief!"
    assert seen.page.evaluate("navigator.clipboard.readText()") == edited
    seen.page.locator("#output .sentence").first.focus()
    seen.page.keyboard.press("Escape")
    seen.expect_translation(edited)
    expect(seen.page.get_by_role("textbox", name="Sentence 1")).to_have_count(0)
    expect(seen.page.locator("#store")).to_be_hidden()  # there is no memory
    seen.page.hover("#output .piece >> nth=1")
    expect(seen.page.locator("#readout")).to_have_text("man → Mann")
    seen.page.locator("#output .sentence").nth(1).focus()
    seen.page.keyboard.press("F2")
    expect(seen.page.get_by_role("textbox", name="Sentence 2")).to_be_focused()


DROP = """([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, {type: "text/plain"}));
  for (const type of ["dragenter", "dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true}));
  }
}"""


def test_files_by_drop_and_by_button(visit: Open) -> None:
    seen = visit()
    seen.expect_ready()

    def answer(route: Any) -> None:
        """As behind a proxy that offers https and is not trusted: only the name leads to the file."""
        response = route.fetch()
        route.fulfill(response=response, body=response.text().replace(seen.url, "http://internal.invalid"))

    seen.page.route("**/translate_file", answer)
    seen.page.evaluate(DROP, ["note.txt", "The dog sleeps."])
    expect(seen.page.locator("#jobs li")).to_contain_text("Translated")
    assert downloaded(seen, "note_de.txt") == "der Hund schläft."
    assert "<seg>The dog sleeps.</seg>" in downloaded(seen, "note_de.tmx")
    seen.send("a.exe")
    expect(seen.page.locator("#jobs li").first).to_contain_text("in one of these formats: " + ", ".join(SUFFIXES))
    seen.page.click("#jobs button")
    expect(seen.page.locator("#jobs li")).to_have_count(1)
    seen.send("b.txt", "The dog and. The cat and. A man.")
    state = seen.page.locator("#jobs .state").first
    expect(state).to_have_text("Translated. 2 of 3 sentences are doubtful: check them")


@pytest.mark.parametrize(("locale", "shown"), [("de-DE", "Diese Datei kann"), ("fr-FR", "Ce fichier ne")])
def test_a_refused_file_is_described_in_the_language_of_the_reader(visit: Open, locale: str, shown: str) -> None:
    seen = visit("#en/de", locale=locale)
    seen.expect_ready()
    seen.refusals = True
    seen.send("a.json", "{")
    state = seen.page.locator("#jobs .state")
    expect(state).to_contain_text(shown)
    expect(state).to_contain_text("a.json is not JSON")


def send_file(seen: Visit, name: str, content: str = "The dog.") -> None:
    """Translate a file with this name."""
    seen.expect_ready()
    seen.send(name, content)
    seen.page.wait_for_selector("#jobs a")


def downloaded(seen: Visit, name: str) -> str:
    """Return the content of the file that the page offers under this name."""
    with seen.page.expect_download() as download:
        seen.page.click(f"#jobs a[download='{name}']")
    assert download.value.suggested_filename == name
    return Path(download.value.path()).read_text(encoding="utf-8")


def test_history(visit: Open) -> None:
    seen = visit()
    for text, translation in (("The dog", "der Hund"), ("The dog sleeps", "der Hund schläft"), ("A cat", "ein Katze")):
        seen.type(text, translation)
        expect(seen.page.locator("#result")).to_have_text(translation)
    assert [entry["text"] for entry in seen.stored("history")] == ["A cat", "The dog sleeps"]
    seen.page.click("text=History")
    seen.page.click("#past button >> nth=1")
    expect(seen.page.locator("#result")).to_have_text("der Hund schläft")
    seen.page.click("#history-clear")
    assert seen.stored("history") is None
    seen.page.click("text=Keep a history")
    seen.type("A dog", "ein Hund")
    expect(seen.page.locator("#result")).to_have_text("ein Hund")
    assert seen.stored("history") is None


def test_dark_and_light(visit: Open) -> None:
    seen = visit(color_scheme="dark")
    paper = seen.page.locator("html")
    dark, light = "rgb(14, 20, 18)", "rgb(242, 240, 232)"
    expect(paper).to_have_css("background-color", dark)
    seen.page.click("#theme")
    expect(paper).to_have_css("background-color", light)
    seen.page.reload()
    expect(paper).to_have_css("background-color", light)
    seen.page.click("#theme")
    expect(paper).to_have_css("background-color", dark)
    assert seen.stored("theme") is None  # the system's again
    seen.page.emulate_media(color_scheme="light")
    expect(paper).to_have_css("background-color", light)


WHOLE = "select => { select.style.flex = 'none'; select.style.width = 'max-content'; return select.offsetWidth; }"


@pytest.mark.parametrize("width", [320, 390, 768])
def test_nothing_sticks_out(visit: Open, width: int) -> None:
    seen = visit("#auto/de", viewport={"width": width, "height": 740})
    for language, chosen in (("#source-language", "auto"), ("#target-language", "de")):
        select = seen.page.locator(language)
        expect(select).to_have_value(chosen)
        shown = select.bounding_box()["width"]
        assert width == 320 or shown >= select.evaluate(WHOLE) - 1  # the names are not cut
        select.evaluate("select => select.removeAttribute('style')")
    seen.type(f"{TEXT} {'x' * 200}").page.wait_for_selector("#output .sentence")
    seen.page.locator("#source-language").select_option("en")
    for panel in PANELS:
        seen.page.click(f"[aria-controls={panel}]")
        if panel == "files":
            send_file(seen, f"{'x' * 200}.txt")
            name, actions = (seen.page.locator(f"#jobs {part}").bounding_box() for part in (".file-name", ".actions"))
            assert width > 390 or actions["y"] >= name["y"] + name["height"]
        if panel == "memory":
            expect(open_memory(seen, f"{'x' * 200}.tsv").get_by_role("status")).to_contain_text("2 sentences")
            assert seen.page.locator("#memory .track").bounding_box()["width"] == 44  # a long label leaves it whole
        expect(seen.page.locator(f"#{panel}")).to_be_visible()
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width


def test_right_to_left(visit: Open) -> None:
    seen = visit("#en/ar").type("hello the dog sleeps.", "مرحبا ال كلب ينام.")
    output = seen.page.locator("#output")
    expect(output).to_have_attribute("lang", "ar")
    pane, word = output.bounding_box(), output.locator(".piece").first.bounding_box()
    assert word["x"] > pane["x"] + pane["width"] / 2  # it begins at the right
    output.locator(".sentence").focus()
    seen.page.keyboard.press("ArrowLeft")
    readout = seen.page.locator("#readout")
    expect(readout).to_have_text("hello → \u2068مرحبا\u2069")  # isolated: the arrow leads from left to right
    expect(readout).to_have_css("direction", "ltr")


@pytest.mark.parametrize(
    ("error", "said"),
    [(Overloaded(1), "The service is busy. Trying again."), (ValueError(), "Internal error"), (None, "No network")],
)
def test_what_fails_is_said_and_repeated(
    visit: Open, application: PageApplication, error: Exception | None, said: str
) -> None:
    seen = visit()
    seen.refusals = True
    seen.expect_ready()
    seen.page.context.set_offline(error is None)
    application.do(lambda: application.models.errors.extend([error] if error else []))
    seen.type("A dog")
    expect(seen.page.locator("#trouble")).to_contain_text(said)
    if isinstance(error, ValueError):
        seen.page.click("text=Try again")
    seen.page.context.set_offline(False)
    seen.expect_translation("ein Hund")
    expect(seen.page.locator("#trouble")).not_to_be_visible()
    assert len(seen.asked) == 2


def test_long_texts_come_sentence_by_sentence(visit: Open) -> None:
    """The elements of sentences that are there are not made anew, so that focus and selection survive."""
    seen = visit()
    seen.page.evaluate("""() => {
      window.removed = 0;
      const count = (changes) => changes.forEach((change) => (window.removed += change.removedNodes.length));
      new MutationObserver(count).observe(document.querySelector("#output"), {childList: true});
    }""")
    seen.type("The 😀 dog sleeps.\n" * 60)
    expect(seen.page.locator("#output .sentence")).to_have_count(60)
    assert seen.asked[-1]["stream"] is True
    seen.expect_translation("der 😀 Hund schläft.\n" * 60)
    expect(seen.page.locator("#result")).to_have_text("Translated: 60 sentences")
    assert seen.page.evaluate("window.removed") <= 130  # once, by the final answer: 60 sentences and the text between


def test_panes_of_a_long_text_scroll_together(visit: Open) -> None:
    seen = visit(viewport={"width": 1280, "height": 700}).type("The dog sleeps.\n" * 100)
    expect(seen.page.locator("#result")).to_have_text("Translated: 100 sentences")
    follows = """([name, tenths]) => {
      const pane = document.querySelector(name);
      return Math.round(10 * pane.scrollTop / (pane.scrollHeight - pane.clientHeight)) === tenths;
    }"""
    scroll = "(pane, tenths) => (pane.scrollTop = (tenths / 10) * (pane.scrollHeight - pane.clientHeight))"
    for pane, other in (("#output", "#source-stack"), ("#source-stack", "#output")):
        for tenths in (10, 5, 0):
            seen.page.locator(pane).evaluate(scroll, tenths)
            seen.page.wait_for_function(follows, arg=[other, tenths])
    expect(seen.page.locator("#copy")).to_be_in_viewport()


def test_a_language_among_many_is_found_by_its_names(visit: Open) -> None:
    names = "sw sv es el uk it nl da fi pl cs sk ro bg hu tr vi th"
    with PageApplication(*names.split()) as application:
        seen = visit(url=application.url)
        seen.expect_ready()
        target = seen.page.locator("#target-language")
        for typed, code in (("swa", "sw"), ("espanol", "es"), ("Ελλ", "el"), ("uk", "uk")):
            seen.page.click("#target-search")
            seen.page.keyboard.type(typed)
            seen.page.keyboard.press("Enter")
            expect(target).to_have_value(code)
            expect(target).to_be_focused()
        seen.page.click("#target-search")
        seen.page.keyboard.type("zzz")
        expect(seen.page.locator("#language-matches")).to_have_text("No language has this name.")
        seen.page.keyboard.press("Escape")
        seen.page.reload()
        seen.expect_ready()
        recent = target.locator("optgroup").first.locator("option")
        assert recent.evaluate_all("options => options.map(({value}) => value)") == ["uk", "el", "es", "sw"]


def test_languages_of_a_long_text_stay_in_view(visit: Open) -> None:
    seen = visit(viewport={"width": 390, "height": 800}).type("The dog sleeps.\n" * 60)
    expect(seen.page.locator("#output .sentence")).to_have_count(60)
    seen.page.evaluate("scrollTo(0, 1500)")
    expect(seen.page.locator("#target-language")).to_be_in_viewport()
    seen.page.click("#jump")
    expect(seen.page.locator("#output .sentence").first).to_be_in_viewport()


def test_the_key_and_a_memory_of_it(visit: Open) -> None:
    """The key is asked for and lives with the tab; its memory is used and takes edited sentences."""
    with PageApplication(require_key=True) as application:
        key = application.keys["rich"]
        form = {"source": "en", "target": "de", "api_key": key}
        made = application.client.put("/memories", data=form, files={"file": ("Team.tsv", b"A cat\tMieze\n")}).json()
        seen = visit(url=application.url)
        seen.refusals = True
        seen.type("The dog")
        expect(seen.page.get_by_role("alert")).to_contain_text("Enter your API key above")
        seen.enter_key(key)
        seen.expect_translation("der Hund")
        assert key not in seen.page.evaluate("JSON.stringify(localStorage)")
        seen.page.click("[aria-controls=memory]")
        seen.page.locator("#memory-select").select_option("Team (1 sentence)")
        seen.type("A cat", "Mieze")
        assert seen.stored("memories") is None
        seen.type(TEXT, TRANSLATION)
        seen.page.click("#edit")
        seen.page.get_by_role("textbox", name="Sentence 2").fill("Der Hund schlummert.")
        seen.page.click("#edit")
        seen.page.get_by_role("button", name="Store 1 changed sentence in “Team”").click()
        expect(seen.page.locator("#store-note")).to_have_text("Stored in “Team”.")
        exported = application.client.get(f"/memories/{made['id']}/tmx", params={"api_key": key}).text
        assert re.findall("<seg>(.*?)</seg>", exported) == ["A cat", "Mieze", "The dog sleeps.", "Der Hund schlummert."]


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        (360, "dark"),
        pytest.param(1280, "dark", marks=pytest.mark.slow),
        pytest.param(360, "light", marks=pytest.mark.slow),
    ],
)
def test_accessibility(visit: Open, application: PageApplication, scheme: str, width: int) -> None:
    """No serious finding of axe-core, whatever is open."""
    seen = visit(color_scheme=scheme, viewport={"width": width, "height": 800})
    seen.refusals = True
    seen.page.evaluate(axe.AXE_SCRIPT)

    def check(state: str) -> None:
        found = seen.page.evaluate("axe.run()")
        assert found["passes"]
        serious = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
        assert [(state, each["id"], [node["html"] for node in each["nodes"]]) for each in serious] == []

    check("empty")
    seen.type(f"{TEXT} Cat and dog.", f"{TRANSLATION} Katze und Hund.")
    check("translated")
    for panel in PANELS:
        seen.page.click(f"[aria-controls={panel}]")
        if panel == "glossary":
            seen.page.click("#add-term")
            seen.page.fill("#kept-word", "beach")
            seen.page.press("#kept-word", "Enter")
        if panel == "memory":
            open_memory(seen)
            seen.page.wait_for_selector("#output .exact")
        if panel == "inside":
            seen.page.wait_for_selector("#map .cell")
        if panel == "files":
            for name in ("a.txt", "b.exe"):
                seen.send(name)
            seen.page.wait_for_selector("#jobs a")
        check(panel)
    seen.page.click("#output .sentence >> nth=0", position={"x": 2, "y": 5})
    expect(seen.page.locator("#alternatives li button")).to_have_count(5)
    check("alternatives")
    seen.page.keyboard.press("Escape")
    seen.page.click("#shortcuts-button")
    check("shortcuts")
    seen.page.keyboard.press("Escape")
    application.do(lambda: application.models.errors.append(ValueError()))
    seen.type("A cat.")
    expect(seen.page.get_by_role("alert")).to_be_visible()
    check("trouble")


def test_with_a_model(visit: Open, service: Any) -> None:
    """What the models of words promise, a model keeps."""
    seen = visit(url=str(service.url))
    expect(seen.page.locator("#source-language")).to_have_value("en")
    with seen.page.expect_response("**/translate") as answered:
        seen.type("The dog sees the cat.\nThe cat follows the dog.")
    seen.expect_translation(answered.value.json()["translatedText"])
    expect(seen.page.locator("#output .sentence")).to_have_count(2)
    seen.page.hover("#output .piece >> nth=0")
    assert seen.page.locator("#mirror .lit").count() and seen.page.locator("#output .lit").count()
    seen.page.click("#output .sentence >> nth=1", position={"x": 2, "y": 5})
    expect(seen.page.locator("#alternatives-note")).not_to_have_text("Looking for other wordings …")
    assert seen.page.locator("#alternatives li button").count() > 1
    seen.page.click("#alternatives-inside")
    expect(seen.page.locator("#map .cell").first).to_be_visible()
