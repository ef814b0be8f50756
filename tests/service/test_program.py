"""`python -m service` as an operator meets it."""

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
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.program import GROUPS
from service.settings import Settings, load_settings
from tests.conftest import sentences

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MT_")}
    return subprocess.run(
        [sys.executable, "-m", "service", *arguments],
        cwd=ROOT,
        env=environment | {"OMP_NUM_THREADS": "1"} | settings,
        capture_output=True,
        text=True,
    )


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


def test_the_web_process_does_without_torch() -> None:
    """It only passes translations on; torch would make it start a second later."""
    code = "import sys, service.program; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    assert "no model here" in one_error(run("--model", str(tmp_path), "--port", "0"))


def test_settings_that_cannot_be_used_are_all_named() -> None:
    said = one_error(run("--port", "many", "--threads", "0", MT_GRACE_SECONDS="soon"))
    assert "--port is 'many'" in said and "--threads is '0'" in said
    assert "MT_GRACE_SECONDS is 'soon'" in said


def test_a_port_that_is_taken(small_model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"cannot listen on 127.0.0.1, port {port}" in one_error(run("--model", str(small_model), "--port", port))


def test_options_come_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MT_PORT", "1")
    monkeypatch.setenv("MT_HOST", "h")
    found = load_settings({"model": "m", "port": "2"})
    assert (found.model, found.host, found.port) == ((Path("m"),), "h", 2)


def test_every_setting_is_read() -> None:
    code = "".join(path.read_text() for path in (ROOT / "service").rglob("*.py"))
    assert [name for name in Settings.model_fields if not re.search(rf"\b(settings|self)\.{name}\b", code)] == []


def children(process: int) -> list[int]:
    return [int(found) for found in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def test_sigterm_with_100_in_the_house_loses_none(start_service: Callable[..., Any], small_model: Path) -> None:
    """And is not ready at once, refuses what is new, and leaves no process behind."""
    service = start_service(small_model, MT_CACHE_CHARACTERS="0", MT_GRACE_SECONDS="60")
    workers = children(service.process.pid)
    assert len(workers) == 1
    limits = httpx.Limits(max_connections=200)
    with (
        httpx.Client(base_url=service.url, trust_env=False, timeout=120, limits=limits) as client,
        ThreadPoolExecutor(100) as pool,
    ):
        bodies = [{"q": "\n".join(sentences(60, seed)), "source": "en", "target": "de"} for seed in range(101)]
        last = bodies.pop()
        os.kill(workers[0], signal.SIGSTOP)
        posted = [pool.submit(client.post, "/translate", json=body) for body in bodies]
        while "mt_pending_requests 100.0" not in client.get("/metrics").text:
            time.sleep(0.01)
        service.process.send_signal(signal.SIGTERM)
        while not any(line["event"] == "stopping" for line in service.logs):
            time.sleep(0.001)
        assert client.get("/readyz").status_code == 503
        assert client.post("/translate", json=last).status_code == 503
        assert client.get("/livez").status_code == 200
        os.kill(workers[0], signal.SIGCONT)
        answers = [future.result() for future in posted]
        assert service.process.wait(60) == 0
    assert [answer.status_code for answer in answers] == [200] * 100
    assert {answer.json()["translatedText"].count("\n") for answer in answers} == {59}
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def test_a_second_sigterm_ends_it_at_once(start_service: Callable[..., Any], small_model: Path) -> None:
    service = start_service(small_model)
    (worker,) = children(service.process.pid)
    os.kill(worker, signal.SIGSTOP)  # what it has will not be done
    body = {"q": "The dog.", "source": "en", "target": "de"}
    with ThreadPoolExecutor(1) as pool:
        url = f"{service.url}/translate"
        lost = pool.submit(lambda: httpx.post(url, json=body, trust_env=False, timeout=120))
        while "mt_pending_requests 1.0" not in httpx.get(f"{service.url}/metrics", trust_env=False).text:
            pass
        service.process.send_signal(signal.SIGTERM)
        while not any(line["event"] == "stopping" for line in service.logs):
            time.sleep(0.01)
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(10) == -signal.SIGTERM
        assert isinstance(lost.exception(), httpx.TransportError)
    while Path(f"/proc/{worker}").exists():
        time.sleep(0.01)


def test_kill_9_of_the_service_leaves_no_worker(start_service: Callable[..., Any], small_model: Path) -> None:
    service = start_service(small_model)
    (worker,) = children(service.process.pid)
    service.process.kill()
    service.process.wait()
    for _ in range(6000):
        if ended := not Path(f"/proc/{worker}").exists() or "Z" in Path(f"/proc/{worker}/stat").read_text().split()[2]:
            break
        time.sleep(0.01)
    assert ended


def test_sighup_exchanges_a_model(start_service: Callable[..., Any], small_model: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(small_model, model)
    service = start_service(model)
    for content, event in ((b"\x80\x04", "reload refused"), (None, "reloaded")):
        if content is None:
            shutil.copytree(small_model, model, dirs_exist_ok=True)
            (model / "calibration.json").write_text("[]")
        else:
            (model / "model.safetensors").write_bytes(content)
        service.process.send_signal(signal.SIGHUP)
        while not any(line["event"] == event for line in service.logs):
            body = {"q": f"The dog. {time.monotonic()}", "source": "en", "target": "de"}
            assert httpx.post(f"{service.url}/translate", json=body, trust_env=False, timeout=60).status_code == 200
    assert service.terminate() == 0


def test_logs_name_requests_and_never_hold_text(start_service: Callable[..., Any], small_model: Path) -> None:
    service = start_service(small_model)
    canary = "Zyxwvutsrqp"
    with httpx.Client(base_url=service.url, trust_env=False) as client:
        body = {"q": canary, "source": "en", "target": "de"}
        found = client.post("/translate", json=body, headers={"X-Request-ID": "mine"}).json()["translatedText"]
        client.post("/translate", json=body | {"q": f"{canary} " * 200})
        client.post("/translate", json=body | {"source": canary, "format": canary})
        client.get(f"/{canary}?{canary}")
    assert service.terminate() == 0
    lines = [line for line in service.logs if line["event"] == "request"]
    assert [(line["route"], line["status"]) for line in lines] == [
        ("/translate", 200),
        ("/translate", 200),
        ("/translate", 400),
        (None, 404),
    ]
    assert lines[0]["request_id"] == "mine"
    assert canary not in str(service.logs) and found not in str(service.logs)
