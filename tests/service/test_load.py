"""The whole program under the load of many clients, and what it answers to each of them."""

import asyncio
import shutil
import signal
from pathlib import Path

import pytest

from mt import Translator
from tests.conftest import sentences
from tests.service.running import FROZEN, Sent, connected, keep_asking, started, until
from tests.weights import load_weights, save_weights

pytestmark = pytest.mark.system


async def test_models_are_exchanged_under_load(tmp_path: Path) -> None:
    """By SIGHUP: no request fails, each answer is by one version, and the last ones by the last that can be used."""
    model = Path(shutil.copytree(FROZEN, tmp_path / "model"))
    weights = load_weights(FROZEN / "model.safetensors")
    texts = sentences(6)

    def written(factor: float) -> list[str]:
        changed = {name: tensor * factor if "decoder" in name else tensor for name, tensor in weights.items()}
        save_weights(tmp_path / "other", changed)
        (tmp_path / "other").replace(model / "model.safetensors")
        return [translation.text for translation in Translator.load(model, "cpu").translate_many(texts)]

    versions = [written(1.0)]
    with started(model, MT_CACHE_CHARACTERS="0") as target:
        async with connected(target.url) as client:
            sent: list[Sent] = []
            stop = asyncio.Event()
            asking = asyncio.create_task(keep_asking(client, sent, 8, stop.is_set, text=lambda: texts))

            async def answers_after(event: str, times: int) -> None:
                target.process.send_signal(signal.SIGHUP)
                await until(lambda: len(target.events(event)) == times)
                enough = len(sent) + 32
                await until(lambda: len(sent) >= enough)

            for times, factor in enumerate((0.5, 1.0, 0.5), start=1):
                versions.append(await asyncio.to_thread(written, factor))
                await answers_after("reloaded", times)
            (model / "model.safetensors").write_bytes(b"\x80\x04\x95canary")
            await answers_after("reload refused", 1)
            stop.set()
            await asking
    assert {each.status for each in sent} == {200}
    assert all(each.text in versions for each in sent)
    assert versions[0] != versions[1] == versions[-1] == sent[-1].text
