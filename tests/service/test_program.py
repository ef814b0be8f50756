"""`python -m service` as an operator meets it."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from mt import Translator
from service.access.api_keys import make_key
from service.access.database import Database
from service.program import GROUPS
from service.settings import Settings
from tests.conftest import sentences
from tests.service.conftest import ROOT, environment
from tests.service.running import FROZEN, Sent, ask, connected, figures, keep_asking, started, until
from tests.weights import load_weights, save_weights

pytestmark = pytest.mark.system


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "service", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment(settings), capture_output=True, text=True)


REFUSED = """
import json, os, sys, tempfile
from service.program import main
done = []
for line in json.loads(sys.argv[1]):
    with tempfile.TemporaryFile("w+") as stderr:
        os.dup2(stderr.fileno(), 2)
        status = main(line)
        stderr.seek(0)
        done.append((status, stderr.read()))
print(json.dumps(done))
"""


def test_help_names_every_setting() -> None:
    done = run("--help")
    assert done.returncode == 0
    for name in Settings.model_fields:
        assert "--" + name.replace("_", "-") in done.stdout
    for begin, head in GROUPS.items():
        assert begin in Settings.model_fields and f"\n{head}:\n" in done.stdout
    assert "--require-key {true,false}" in done.stdout and "(default: 100_000)" in done.stdout
    assert "curl http://localhost:8000/translate" in done.stdout


def one_error(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ") and done.stdout == ""
    return done.stderr


@pytest.mark.parametrize(
    ("module", "unneeded"),
    [
        (
            "service.program, service.workers.worker_process",
            {"transformers", "ctranslate2", "tensorboard", "matplotlib", "pandas", "mtdata", "pytest", "httpx"},
        ),
        ("service.probe", {"asyncio", "fastapi", "mt", "pydantic", "structlog", "torch"}),  # runs every few seconds
    ],
)
def test_no_process_loads_what_it_does_not_need(module: str, unneeded: set[str]) -> None:
    code = f"import sys; import {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not unneeded & set(done.stdout.split())


def test_it_starts_and_translates_without_a_network() -> None:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rn", "true"], capture_output=True).returncode:
        pytest.skip("this needs unshare(1), and leave to make a network namespace")
    command = [unshare, "-rn", sys.executable, "-m", "tests.service.offline"]
    done = subprocess.run(command, cwd=ROOT, env=environment({}), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    translated, statuses, outside, status = json.loads(done.stdout)
    assert (translated, statuses, status) == (["Bitte warten Sie."] * 2, [200], 0)
    assert outside != "connected"


def test_what_keeps_it_from_starting(small_model: Path, tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish.db"
    rubbish.write_bytes(b"rubbish " * 1000)
    (tmp_path / "now.db-wal").mkdir()
    with Database.open(tmp_path / "m.db") as database:
        database.run_sync(partial(make_key, name="expired", expires=1.0))
    model = ("--model", str(small_model))
    no_model = ("--model", str(tmp_path))  # what the page offers is checked before models are loaded
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        problems = {
            no_model: "no model here",
            ("--model", f"{small_model},opus-mt-en-de"): "no folder opus-mt-en-de; did you mean hub:opus-mt-en-de?",
            (*model, "--database", str(rubbish)): f"error: the database {rubbish} cannot be used: file is not a data",
            (*model, "--database", str(tmp_path / "now.db")): "now.db cannot be used: ",
            (*no_model, "--page-memories", "house"): "the operator has no memory 'house'",
            (*no_model, "--page-memories", "", "--page-glossary", str(rubbish)): f"the glossary {rubbish} cannot be",
            (*no_model, "--host", "0.0.0.0"): "no key is required",
            (*no_model, "--database", str(tmp_path / "misspelt.db")): "new database created",
            (*no_model, "--database", str(tmp_path / "m.db"), "--require-key", "true"): "no key is valid: every",
            (*model, "--port", port): f"cannot listen on 127.0.0.1, port {port}",
        }
        lines = [["--port", "0", *arguments] for arguments in problems]
        command = [sys.executable, "-c", REFUSED, json.dumps(lines)]  # one process: its imports take seconds
        done = subprocess.run(command, cwd=ROOT, env=environment({}), capture_output=True, text=True, check=True)
    for (status, stderr), problem in zip(json.loads(done.stdout), problems.values(), strict=True):
        assert status == (75 if "now.db" in problem else 2) and problem in stderr
        assert "error: " in stderr and "Traceback" not in stderr
    settings = one_error(run("--port", "many", "--threads", "0", MT_GRACE_SECONDS="soon"))
    for problem in ("--port is 'many'", "--threads is '0'", "MT_GRACE_SECONDS is 'soon'"):
        assert problem in settings


def test_every_model_that_cannot_be_served_is_named_and_none_is_run(tmp_path: Path) -> None:
    canary = b"cos\nsystem\n(S'touch " + os.fsencode(tmp_path / "canary") + b"'\ntR."
    names = ("cut", "pickle", "link", "pipe", "zero")
    models = [Path(shutil.copytree(FROZEN, tmp_path / name / "model")) for name in names]
    os.truncate(models[0] / "model.safetensors", 1000)
    (models[1] / "model.safetensors").write_bytes(canary)
    (models[2] / "model.safetensors").unlink()
    (models[2] / "model.safetensors").symlink_to("nowhere")
    (models[3] / "model.safetensors").unlink()
    os.mkfifo(models[3] / "model.safetensors")
    (models[4] / "tokenizer.model").unlink()
    (models[4] / "tokenizer.model").symlink_to("/dev/zero")
    problems = one_error(run("--model", ",".join(map(str, models)), "--port", "0", "--device", "cpu"))
    assert [model for model in models if str(model) not in problems] == []
    assert not (tmp_path / "canary").exists()


def test_every_setting_is_read() -> None:
    code = "".join(path.read_text() for path in (ROOT / "service").rglob("*.py"))
    assert [name for name in Settings.model_fields if not re.search(rf"(settings|self)\.{name}\b", code)] == []


def test_sigterm_with_100_in_the_house_loses_none(start_service: Callable[..., Any], small_model: Path) -> None:
    """And is not ready at once, refuses what is new, and leaves no process behind."""
    service = start_service(small_model, MT_CACHE_CHARACTERS="0", MT_GRACE_SECONDS="300")
    workers = service.processes()[1:]
    assert len(workers) == 1
    limits = httpx.Limits(max_connections=200)
    with (
        httpx.Client(base_url=service.url, trust_env=False, timeout=300, limits=limits) as client,
        ThreadPoolExecutor(100) as pool,
    ):
        bodies = [{"q": "\n".join(sentences(6, seed)), "source": "en", "target": "de"} for seed in range(101)]
        last = bodies.pop()
        os.kill(workers[0], signal.SIGSTOP)
        posted = [pool.submit(client.post, "/translate", json=body) for body in bodies]
        while "mt_pending_requests 100.0" not in client.get("/metrics").text:
            time.sleep(0.01)
        service.process.send_signal(signal.SIGTERM)
        while not service.events("stopping"):
            time.sleep(0.001)
        assert client.get("/readyz").status_code == 503
        assert client.post("/translate", json=last).status_code == 503
        assert client.get("/livez").status_code == 200
        os.kill(workers[0], signal.SIGCONT)
        answers = [future.result() for future in posted]
        assert service.process.wait(300) == 0
    assert [answer.status_code for answer in answers] == [200] * 100
    assert {answer.json()["translatedText"].count("\n") for answer in answers} == {5}
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def test_sigterm_refuses_connections_that_wait(start_service: Callable[..., Any], small_model: Path) -> None:
    """Closing the listening sockets would reset them."""
    service = start_service(small_model)
    os.kill(service.process.pid, signal.SIGSTOP)
    head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
    with ExitStack() as stack:
        waiting = [stack.enter_context(socket.create_connection(("127.0.0.1", service.port), 60)) for _ in range(300)]
        for connection in waiting:
            connection.sendall(head)
        service.process.send_signal(signal.SIGTERM)
        os.kill(service.process.pid, signal.SIGCONT)
        assert {connection.recv(4096)[:13] for connection in waiting} == {b"HTTP/1.1 503 "}
    assert service.process.wait(60) == 0


def test_a_second_sigterm_ends_it_at_once(start_service: Callable[..., Any], small_model: Path) -> None:
    service = start_service(small_model)
    (worker,) = service.processes()[1:]
    os.kill(worker, signal.SIGSTOP)  # what it has will not be done
    body = {"q": "The dog.", "source": "en", "target": "de"}
    with ThreadPoolExecutor(1) as pool:
        url = f"{service.url}/translate"
        lost = pool.submit(lambda: httpx.post(url, json=body, trust_env=False, timeout=120))
        while "mt_pending_requests 1.0" not in httpx.get(f"{service.url}/metrics", trust_env=False).text:
            pass
        service.process.send_signal(signal.SIGTERM)
        while not service.events("stopping"):
            time.sleep(0.01)
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(60) == -signal.SIGTERM
        assert isinstance(lost.exception(), httpx.TransportError)
    while Path(f"/proc/{worker}").exists():
        time.sleep(0.01)


def test_kill_9_of_the_service_leaves_no_worker(start_service: Callable[..., Any], small_model: Path) -> None:
    service = start_service(small_model)
    (worker,) = service.processes()[1:]
    service.process.kill()
    service.process.wait()
    for _ in range(6000):
        if ended := not Path(f"/proc/{worker}").exists() or "Z" in Path(f"/proc/{worker}/stat").read_text().split()[2]:
            break
        time.sleep(0.01)
    assert ended


async def test_grace_has_an_end() -> None:
    with started(rigged={"step_seconds": 0.5}, MT_GRACE_SECONDS="1") as target:
        async with connected(target.url) as client:
            waiting = asyncio.create_task(ask(client, "the dog and " * 10))  # takes 10 s
            while not (await figures(client))["mt_pending_requests"]:
                await asyncio.sleep(0.01)
            target.process.send_signal(signal.SIGTERM)
            answer = await waiting
        assert (answer.status, answer.body["code"]) == (503, "unavailable")
        assert answer.seconds > 0.9
        assert target.wait(60) == 0


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
