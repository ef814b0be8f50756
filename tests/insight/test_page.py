"""The page and its pictures: complete, self-contained, and safe with any sentence."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

from mt.checkpoint import LoadedModel
from mt.errors import RequestError
from mt.insight.page import html_page
from mt.insight.translation_record import Query, TranslationRecord, explain
from mt.tokenizer import EOS

CHROMIUM = shutil.which("chromium")
CORNER = """() => {  // colour of the first pixel of a picture
    const context = document.createElement("canvas").getContext("2d");
    context.drawImage(document.querySelector("#picture-masks"), 0, 0);
    return `rgb(${[...context.getImageData(0, 0, 1, 1).data.slice(0, 3)].join(", ")})`;
}"""
PICTURES = {
    *("tokens-source", "tokens-target", "embedding-source", "embedding-target", "positions", "positions-by-distance"),
    *("masks", "query", "magnitudes", "probabilities", "beam", "alignment"),
    *(f"attention-{block}-{layer}" for block in ("encoder", "decoder", "cross") for layer in (1, 2)),
}
EMPTY = dict.fromkeys(PICTURES, Figure())  # for tests of the text: drawing takes seconds


@pytest.fixture(scope="module")
def page(explanation: TranslationRecord, pictures: dict[str, Figure]) -> str:
    return html_page(explanation, pictures)


def test_it_explains_the_translation_and_its_search(explanation: TranslationRecord) -> None:
    sentence, translation = explanation.sentence, explanation.translation
    assert (sentence, translation) == ("My husband is very fast.", "Mein Mann ist sehr schnell.")
    words = [(sentence[slice(*source)], translation[slice(*target)]) for source, target in explanation.links]
    assert ("fast", "schnell") in words and (".", ".") in words
    steps, best = explanation.steps, explanation.tree.hypotheses[0]
    assert [step.chosen for step in steps] == [*explanation.target[1:], explanation.vocabulary[EOS]]
    log_probs = torch.tensor([step.probability for step in steps]).log().tolist()
    assert log_probs == pytest.approx(best.token_log_probabilities, abs=1e-4)
    assert all(step.candidates[step.rank - 1][0] == step.chosen for step in steps if step.rank <= 5)


def test_the_page_is_complete(pictures: dict[str, Figure], page: str, loaded: LoadedModel) -> None:
    assert pictures.keys() == PICTURES
    assert set(re.findall(r'<img id="picture-([\w-]+)"', page)) == PICTURES
    outside = re.sub(r'src="data:image/svg\+xml;base64,[\w+/=]+"', "", page)
    assert not re.findall(r"(?i)https?:|//[\w-]+\.|url\(|@import|<link|<iframe|<script|src=| on\w+=", outside)
    assert all(link.startswith("#") for link in re.findall(r'href="([^"]*)"', outside))
    explanation = explain(loaded, '<b onclick="x">fast</b>')
    assert "<b onclick" not in html_page(explanation, EMPTY)


def test_a_query(loaded: LoadedModel) -> None:
    explanation = explain(loaded, "My husband is very fast.", query=Query.parse("cross.2.1.3"))
    page = html_page(explanation, EMPTY)
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


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(page: str, tmp_path: Path, scheme: str) -> None:
    """Without errors or requests; page and pictures have the reader's colours; the page does not scroll sideways."""
    playwright = pytest.importorskip("playwright.sync_api")
    file = tmp_path / "index.html"
    file.write_text(page, encoding="utf-8")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        visit = browser.new_page(color_scheme=scheme, viewport={"width": 400, "height": 800})
        complaints: list[str] = []
        requests: list[str] = []
        visit.on("console", lambda message: complaints.append(message.text))
        visit.on("request", lambda request: requests.append(request.url[:40]))
        visit.goto(file.as_uri())
        color = "rgb(255, 255, 255)" if scheme == "light" else "rgb(18, 22, 29)"
        assert visit.evaluate("getComputedStyle(document.body).backgroundColor") == color
        assert visit.evaluate(CORNER) == color
        assert visit.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert visit.evaluate("[...document.images].every(image => image.complete && image.naturalWidth)")
        assert complaints == [] and all(url.startswith(("data:image", file.as_uri()[:40])) for url in requests)
        browser.close()


def test_the_text_about_positions_is_that_of_the_model(explanation: TranslationRecord) -> None:
    assert "alternate, as in the paper" in html_page(explanation, EMPTY)
    for positions, text in (("concatenated", "All sines come first"), ("learned", "positions are parameters")):
        config = explanation.config.model_copy(update={"positions": positions})
        page = html_page(replace(explanation, config=config), EMPTY)
        assert text in page and "alternate" not in page
