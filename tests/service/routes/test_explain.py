"""POST /explain over a real connection: the page of one sentence, what is refused, and limits of the process."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest

from mt.languages import Direction
from service.errors import DeadlineExceeded, InvalidRequest, Overloaded, ServiceError, TooManyRequests
from service.explanations.explanations import ExplanationLimits, Explanations

SENTENCE = {"q": "the dog sees the cat", "source": "en", "target": "de"}
EN_DE = Direction("en", "de")


def test_the_page_shows_the_sentence_and_names_no_other_host(client: httpx.Client) -> None:
    response = client.post("/explain", data=SENTENCE)  # a form, as the web page sends it
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["cache-control"] == "no-store"
    assert "sandbox allow-scripts" in response.headers["content-security-policy"]
    assert "allow-same-origin" not in response.headers["content-security-policy"]
    page = response.text
    assert page.startswith("<!doctype html>") and SENTENCE["q"] in page
    assert {"tokens", "masks", "cross", "beam", "alignment"} <= set(re.findall(r'<section id="(\w+)"', page))
    assert not re.search(r"https?://|//\w+\.\w+/", page.replace("http://www.w3.org/2000/svg", ""))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"q": "a " * 31}, "Invalid request: q has 31 words; accepted: one sentence of at most 30"),
        ({"q": "a" * 301}, "Invalid request: q has 301 characters; accepted: one sentence of at most 300"),
        ({"q": " ?! "}, "Invalid request: q has no word; accepted: one sentence"),
        ({"q": ["a", "b"]}, "Invalid request: q must be a valid string"),
        ({"target": "en"}, "Invalid request: source and target are both en; accepted: two languages"),
        ({"target": "xx"}, "xx is not supported; accepted: de, en, fr"),
        ({"source": "de", "target": "fr"}, "French (fr) is not available as a target language from German (de)"),
        ({"source": None}, "Invalid request: missing source parameter"),
    ],
)
def test_what_is_refused(client: httpx.Client, fields: dict[str, Any], message: str) -> None:
    response = client.post("/explain", json={**SENTENCE, **fields})
    assert response.status_code == 400
    assert response.json()["error"].startswith(message)


def test_access_is_that_of_translate(in_thread: Callable[..., Any], tmp_path: Path) -> None:
    url = in_thread(require_key=True, database=tmp_path / "service.db").url
    for key, refused in (({}, (400, "missing_key")), ({"api_key": "wrong"}, (403, "invalid_key"))):
        response = httpx.post(f"{url}/explain", json={**SENTENCE, **key}, trust_env=False)
        assert (response.status_code, response.json()["code"]) == refused


def page(model: Path, limits: ExplanationLimits, caller: str = "") -> Coroutine[Any, Any, str]:
    return Explanations(limits).page(caller, model, SENTENCE["q"], EN_DE)


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        (ExplanationLimits(wall_seconds=0.2), DeadlineExceeded),
        (ExplanationLimits(model_bytes=1000), InvalidRequest),
        pytest.param(ExplanationLimits(cpu_seconds=1), DeadlineExceeded, marks=pytest.mark.slow),
    ],
)
def test_limits(small_model: Path, limits: ExplanationLimits, error: type[ServiceError]) -> None:
    with pytest.raises(error):
        asyncio.run(page(small_model, limits))


@pytest.mark.slow
def test_a_process_that_takes_too_much_memory_says_so() -> None:
    """The weights of a model are stood in for by a tensor of 1 GiB, where 100 MiB are allowed."""
    code = """
import torch
from service.explanations import process
process.confine(100 << 20, 20)
process.load_model = lambda *_: torch.empty(1 << 30, dtype=torch.uint8)
print(process.run(process.ExplanationTask("", "", "", "", 0, 0, 0)).status)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "memory\n"


def test_one_page_for_a_caller_few_callers_and_a_process_that_ends(small_model: Path) -> None:
    async def run() -> None:
        explanations = Explanations(ExplanationLimits(waiting=1))

        async def ask(caller: str) -> str:
            return await explanations.page(caller, small_model, SENTENCE["q"], EN_DE)

        first = asyncio.create_task(ask("first"))
        second = asyncio.create_task(ask("second"))
        while explanations._process is None:
            await asyncio.sleep(0.01)
        process = explanations._process
        with pytest.raises(TooManyRequests):
            await ask("first")
        with pytest.raises(Overloaded):
            await ask("third")
        second.cancel()
        first.cancel()
        assert all(
            isinstance(ended, BaseException) for ended in await asyncio.gather(first, second, return_exceptions=True)
        )
        assert process.returncode is not None
        assert explanations._callers == set()
        with pytest.raises(TooManyRequests):
            await ask("first")  # it would start and kill one process after another
        third = asyncio.create_task(ask("third"))
        await asyncio.sleep(0)
        assert not third.done()  # who has left does not fill the queue
        third.cancel()
        await asyncio.gather(third, return_exceptions=True)

    asyncio.run(run())
