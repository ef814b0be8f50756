"""Many clients at once: every answer right, and the work shared."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from mt import Translator
from tests.conftest import sentences

CLIENTS = 64
REQUESTS = 1000


@pytest.mark.slow
def test_64_clients_1000_requests(start_service: Callable[..., Any], small_model: Path, tmp_path: Path) -> None:
    """In plain torch, whose steps are slow enough for requests to meet: the compiled kernels outrun 64 clients."""
    service = start_service(small_model, CXX="/nonexistent", XDG_CACHE_HOME=str(tmp_path))
    texts = sentences(REQUESTS, seed=7)
    translator = Translator.load(small_model, device="cpu")
    expected = [found.text for found in translator.translate_many(texts)]

    alone = Translator.load(small_model, device="cpu")
    for text in texts[:100]:
        alone.translate_many([text])
    steps_of_100 = alone.engine.steps

    limits = httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=CLIENTS)
    with (
        httpx.Client(base_url=service.url, trust_env=False, timeout=120, limits=limits) as client,
        ThreadPoolExecutor(CLIENTS) as pool,
    ):
        answers = list(
            pool.map(lambda q: client.post("/translate", json={"q": q, "source": "en", "target": "de"}), texts)
        )
    assert [answer.status_code for answer in answers] == [200] * REQUESTS
    assert [answer.json()["translatedText"] for answer in answers] == expected

    assert service.terminate() == 0
    stopped = service.logged("stopped")
    assert stopped["texts"] == REQUESTS
    assert stopped["decoder_steps"] <= steps_of_100 * (REQUESTS // 100) / 8
