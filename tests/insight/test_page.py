"""The page and its pictures: complete, self-contained, and safe with any sentence."""

import base64
import re
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
import torch

from mt.checkpoint import LoadedModel, load_model
from mt.errors import LanguageError, RequestError
from mt.insight.drawing import DARK, LEVELS, Cells, Drawing, Text
from mt.insight.page import draw, html_page
from mt.insight.translation_record import Query, TranslationRecord, explain
from mt.tokenizer import EOS

FROZEN = Path(__file__).resolve().parent.parent / "frozen" / "model"
CHROMIUM = shutil.which("chromium")
PICTURES = {
    *("tokens-source", "tokens-target", "embedding-source", "embedding-target", "positions", "positions-by-distance"),
    *("masks", "query", "magnitudes", "probabilities", "beam", "alignment"),
    *(f"attention-{block}-{layer}" for block in ("encoder", "decoder", "cross") for layer in (1, 2)),
}


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return load_model(FROZEN)


@pytest.fixture(scope="module")
def explanation(loaded: LoadedModel) -> TranslationRecord:
    return explain(loaded, " My husband is very fast. ")


@pytest.fixture(scope="module")
def drawings(explanation: TranslationRecord) -> dict[str, Drawing]:
    return draw(explanation)


@pytest.fixture(scope="module")
def page(explanation: TranslationRecord, drawings: dict[str, Drawing]) -> str:
    return html_page(explanation, drawings)


def test_it_explains_the_translation(explanation: TranslationRecord) -> None:
    assert (explanation.sentence, explanation.translation) == (
        "My husband is very fast.",
        "Mein Mann ist sehr schnell.",
    )
    words = [
        (explanation.sentence[slice(*source)], explanation.translation[slice(*target)])
        for source, target in explanation.links
    ]
    assert ("fast", "schnell") in words and (".", ".") in words


def test_the_steps_have_the_probabilities_of_the_search(explanation: TranslationRecord) -> None:
    steps, best = explanation.steps, explanation.tree.hypotheses[0]
    assert [step.chosen for step in steps] == [*explanation.target[1:], explanation.vocabulary[EOS]]
    log_probs = torch.tensor([step.probability for step in steps]).log().tolist()
    assert log_probs == pytest.approx(best.token_log_probabilities, abs=1e-4)
    assert all(step.candidates[step.rank - 1][0] == step.chosen for step in steps if step.rank <= 5)


def test_every_picture_is_on_the_page(drawings: dict[str, Drawing], page: str) -> None:
    assert drawings.keys() == PICTURES
    assert set(re.findall(r'<figure id="picture-([\w-]+)">', page)) == PICTURES
    assert all(drawing.width > 0 and drawing.height > 0 and drawing.shapes for drawing in drawings.values())


def test_the_page_has_no_external_part(page: str) -> None:
    assert not re.findall(r"(?i)https?:|//[\w-]+\.|url\(|@import|<link|<iframe|<img", page)
    assert all(link.startswith("#") for link in re.findall(r'(?:href|src)="([^"]*)"', page))


def test_the_policy_allows_the_style_and_the_script(page: str) -> None:
    """A policy without 'unsafe-inline' forbids style attributes and handlers, and other styles and scripts."""
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    for tag in ("style", "script"):
        [content] = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert f"'sha256-{base64.b64encode(sha256(content.encode()).digest()).decode()}'" in policy
    assert not re.findall(r"<[^>]* (?:style|on\w+)=", page)


def test_markup_in_a_sentence_is_text(loaded: LoadedModel) -> None:
    explanation = explain(loaded, '<b onclick="x">fast</b>')
    assert "<b onclick" not in html_page(explanation, draw(explanation))


def test_the_data_of_a_heat_map_are_the_weights(explanation: TranslationRecord, drawings: dict[str, Drawing]) -> None:
    maps = [shape for shape in drawings["attention-cross-2"].shapes if isinstance(shape, Cells)]
    weights = explanation.record.of("cross")[1].weights
    assert len(maps) == len(weights) + 1
    for cells, head in zip(maps, [*weights, weights.mean(0)], strict=True):
        assert cells.values[:-1] == head.tolist()
        assert cells.values[-1] == pytest.approx(head.mean(0).tolist())


def test_a_drawing_in_both_forms() -> None:
    cells = Cells(0, 0, (10, 10), [[0.0, 1.0, 1.0], [-0.5, 0.0, 2.0]], ["a", "b"], ["<", "d", "e"])
    drawing = Drawing("a & b", 30, 20, [cells, Text(1, 2, "<s>")])
    assert [[cells.level(value) for value in row] for row in cells.values] == [
        [0, LEVELS, LEVELS],
        [-LEVELS // 2, 0, LEVELS],  # 2 is beyond the scale
    ]
    file, element = drawing.svg(DARK), drawing.svg()
    assert f".ink{{fill:{DARK['ink']}}}" in file and "data-" not in file and "&lt;s&gt;" in file
    assert 'class="high" fill-opacity="1" d="M1 0h2v1h-2zM2 1h1v1h-1z"' in file
    assert 'class="low" fill-opacity="0.5" d="M0 1h1v1h-1z"' in file
    assert "<style>" not in element and 'data-values="[[0.0,1.0,1.0],[-0.5,0.0,2.0]]"' in element
    assert 'aria-label="a &amp; b"' in element


def test_a_query(loaded: LoadedModel) -> None:
    explanation = explain(loaded, "My husband is very fast.", query=Query.parse("cross.2.1.3"))
    page = html_page(explanation, draw(explanation))
    weights, values = explanation.attention.weights[0, 2], explanation.attention.v[0]
    assert torch.equal(weights, explanation.record.of("cross")[1].weights[0, 2])
    assert f"Cross-attention, layer 2, head 1, the query of token 3, {explanation.target[2]}." in page
    assert all(f"<td>{weight:.4f}</td>" in page for weight in weights.tolist())
    assert page.count("<td>masked</td>") == 2
    shown = [tuple(map(float, last)) for last in re.findall(r"<td>\[([-.\d]+), ([-.\d]+)[^\]]*\]</td></tr>", page)]
    assert shown == [tuple(round(number, 3) for number in row[:2].tolist()) for row in [*values, weights @ values]]


@pytest.mark.parametrize(
    ("sentence", "query", "problem"),
    [
        (" ", "encoder.1.1.1", "the sentence is empty; accepted: a sentence with at least one word"),
        ("fast", "encoder.3.1.1", "the query in the block encoder has layer 3; accepted: 1 to 2"),
        ("fast", "cross.1.0.90", "head 0; accepted: 1 to 2, position 90; accepted: 1 to"),
        ("fast", "encoder.1.1", "the query is 'encoder.1.1'; accepted: BLOCK.LAYER.HEAD.POSITION such as cross.2.1.3"),
        ("fast", "memory.1.1.1", "with the block encoder, decoder, cross"),
        ("fast " * 200, "encoder.1.1.1", "has 601 tokens; accepted: at most 128"),
    ],
)
def test_what_cannot_be_explained(loaded: LoadedModel, sentence: str, query: str, problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        explain(loaded, sentence, query=Query.parse(query))


def test_too_many_weights(loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mt.insight.translation_record.MAX_WEIGHTS", 100)
    with pytest.raises(RequestError, match=r"attention weights; accepted: at most 100 weights"):
        explain(loaded, "My husband is very fast.")


def test_another_direction(loaded: LoadedModel) -> None:
    with pytest.raises(LanguageError, match="accepted: en-de"):
        explain(loaded, "fast", target="fr")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(page: str, tmp_path: Path, scheme: str) -> None:
    """Without errors or requests; a cell shows its value; the button changes the colours; the page does not scroll."""
    playwright = pytest.importorskip("playwright.sync_api")
    file = tmp_path / "index.html"
    file.write_text(page, encoding="utf-8")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        visit = browser.new_page(color_scheme=scheme, viewport={"width": 400, "height": 800})
        complaints: list[str] = []
        requests: list[str] = []
        visit.on("console", lambda message: complaints.append(message.text))
        visit.on("pageerror", lambda error: complaints.append(str(error)))
        visit.on("request", lambda request: requests.append(request.url))
        visit.goto(file.as_uri())
        visit.locator("#picture-masks .cells").first.hover(position={"x": 3, "y": 3})
        assert visit.locator("#tip").inner_text().endswith(": 1")
        paper = "getComputedStyle(document.body).backgroundColor"
        before = visit.evaluate(paper)
        assert before == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 29)"}[scheme]
        visit.click("#theme")
        assert visit.evaluate(paper) != before
        assert visit.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert (complaints, requests) == ([], [file.as_uri()])
        browser.close()


def test_the_text_about_positions_is_that_of_the_model(
    explanation: TranslationRecord, drawings: dict[str, Drawing]
) -> None:
    assert "alternate, as in the paper" in html_page(explanation, drawings)
    for positions, text in (("concatenated", "All sines come first"), ("learned", "positions are parameters")):
        config = explanation.config.model_copy(update={"positions": positions})
        page = html_page(replace(explanation, config=config), drawings)
        assert text in page and "alternate" not in page
