"""Metrics and the log: what they count and describe, that labels are bounded, and that no key is ever in them."""

import ast
import asyncio
import fcntl
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

import service
from mt.errors import MTError
from service.access.api_keys import make_key
from service.access.database import Database
from service.errors import InternalError
from service.logs import QUEUED_LINES, Phase, RequestRecord
from service.metrics import CACHE_METRICS, FLEET_METRICS, Metrics
from service.translation.cache import TranslationCache
from tests.service.application import Application
from tests.service.doubles import STATS


def samples(text: str | bytes) -> dict[str, float]:
    content, found = text.decode() if isinstance(text, bytes) else text, {}
    for sample in (sample for family in text_string_to_metric_families(content) for sample in family.samples):
        labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
        found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_what_is_counted_of_a_request() -> None:
    metrics = Metrics()
    record = RequestRecord("c", 10, {Phase.QUEUE: 0.02, Phase.TRANSLATE: 0.2})
    metrics.count_request("/translate", "POST", 200, 0.3, record)
    metrics.count_request("/translate", "POST", 200, 0.5, RequestRecord("c", 5))
    metrics.count_request("", "BREW", 404, 0.001, RequestRecord())
    found = samples(asyncio.run(metrics.text()))
    assert found["mt_requests_total{method=POST,route=/translate,status=200}"] == 2
    assert found["mt_requests_total{method=other,route=none,status=404}"] == 1
    assert found["mt_characters_total"] == 15
    assert found["mt_request_seconds_count{route=/translate}"] == 2
    assert found["mt_request_seconds_sum{route=/translate}"] == pytest.approx(0.8)
    assert found["mt_request_seconds_bucket{le=0.25,route=/translate}"] == 0
    assert found["mt_request_seconds_bucket{le=0.5,route=/translate}"] == 2
    assert found["mt_phase_seconds_sum{phase=queue}"] == 0.02
    assert found["mt_phase_seconds_sum{phase=translate}"] == 0.2


def test_other_work_continues_while_many_series_are_written() -> None:
    metrics = Metrics()
    for number in range(2000):
        metrics.count_request(f"/{number}", "GET", 200, 0.1, RequestRecord())

    async def processor_seconds() -> float:
        begin = time.thread_time()
        await metrics.text()
        return time.thread_time() - begin

    assert asyncio.run(processor_seconds()) < 0.02  # 0.3 if the event loop reads them


FLEET = (
    *("pending_requests", "queued_texts", "running_texts", "texts_finished_total", "texts_failed_total"),
    *("requests_refused_total", "worker_restarts_total"),
    *("reloads_total", "reloads_refused_total", "workers", "workers_ready"),
    *("decoder_steps_total", "decoder_rows_total", "source_tokens_total", "target_tokens_total"),
)


def test_what_the_fleet_and_the_cache_count() -> None:
    cache = TranslationCache(0)
    cache.hits, cache.joined, cache.misses = 1, 2, 3
    metrics, other = Metrics(), Metrics()
    stats = [STATS]
    metrics.sample(FLEET_METRICS, lambda: stats[-1])
    metrics.sample(CACHE_METRICS, lambda: cache)
    counts = samples(asyncio.run(metrics.text()))
    assert [counts[f"mt_{name}"] for name in FLEET] == [*range(1, 12), 20, 60, 21, 22]
    assert [counts[f"mt_cache_{name}_total"] for name in ("hits", "joined", "misses")] == [1, 2, 3]
    stats.append(replace(STATS, refused=80))
    assert samples(asyncio.run(metrics.text()))["mt_requests_refused_total"] == 80
    assert "mt_workers" not in samples(asyncio.run(other.text()))


@pytest.fixture(scope="module")
def application() -> Iterator[Application]:
    with Application() as running:
        yield running


def test_labels_are_bounded(application: Application) -> None:
    client = application.client

    def ask(name: str) -> None:
        client.get(f"/memories/{name}")
        client.get(f"/{name}/{name}?{name}={name}", headers={"X-Request-ID": name, "Authorization": name})
        client.request(name.upper(), f"/{name}")
        client.request(name.upper(), "/memories/a")

    ask("first")
    before = set(samples(client.get("/metrics").text))
    before = set(samples(client.get("/metrics").text))
    for number in range(50):
        ask(f"canary{number}")
    assert set(samples(client.get("/metrics").text)) == before
    assert not any("canary" in name for name in before)


def test_lines_of_the_log(application: Application) -> None:
    errors = {"ours": InternalError("line 7"), "theirs": MTError("a text that somebody sent")}
    structlog.reset_defaults()
    with capture_logs() as lines:
        for id in ("a", "ours", "theirs"):
            application.models.errors[:] = [errors[id]] if id in errors else []
            body = {"q": f"text {id}", "source": "en", "target": "de"}
            application.client.post("/translate", json=body, headers={"X-Request-ID": id})
        application.client.get("/things")
        application.client.post("/translate", json={"api_key": "mt_wrong"})
        application.client.post("/v2/translate", content=b" " * 2_000_000)
        application.until(lambda: sum(line["event"] == "request" for line in lines) == 6)  # each follows its answer
    requests = [line for line in lines if line["event"] == "request"]
    assert [(line["route"], line["status"], line.get("code"), line["caller"]) for line in requests] == [
        ("/translate", 200, None, "127.0.0.1"),
        ("/translate", 500, "internal_error", "127.0.0.1"),
        ("/translate", 500, "internal_error", "127.0.0.1"),
        (None, 404, "not_found", "127.0.0.1"),
        ("/translate", 403, "invalid_key", "127.0.0.1"),
        ("/v2/translate", 413, "body_too_large", "127.0.0.1"),
    ]
    expected = {"request_id": "a", "method": "POST", "caller": "127.0.0.1", "characters": 6}
    assert {key: requests[0][key] for key in expected} == expected
    assert "characters" not in requests[3]
    ours, theirs = (line for line in lines if line["event"] == "failed")
    assert (ours["location"], ours["request_id"]) == ("line 7", "ours")
    assert theirs["location"].startswith("MTError at ") and "somebody sent" not in str(lines)


def test_probes_that_go_well_have_no_line(application: Application) -> None:
    structlog.reset_defaults()
    probe = {"X-Request-ID": "probe"}
    with capture_logs() as lines:
        application.client.get("/livez", headers=probe)
        application.client.post("/livez", headers=probe)
        application.client.get("/things")  # the lines before have been written then
    assert [line["status"] for line in lines if line.get("request_id") == "probe"] == [405]


@pytest.mark.system
def test_keys_and_texts_are_nowhere(start_service: Callable[..., Any], small_model: Path, tmp_path: Path) -> None:
    """Keys that are right, wrong, revoked or out of place, in each way that they are sent; texts in logs."""
    path = tmp_path / "service.db"
    with Database.open(path) as store:
        right = store.run_sync(lambda connection: make_key(connection, "right", quota=60))[0]
        slow = store.run_sync(lambda connection: make_key(connection, "slow", rate=1))[0]
        dead = store.run_sync(lambda connection: make_key(connection, "dead", expires=1.0))[0]
    admin, text = "the-canary-of-the-operator", "Zyxwvutsrqp"
    service = start_service(small_model, MT_DATABASE=str(path), MT_ADMIN_KEY=admin, MT_REQUIRE_KEY="true")
    body = {"q": "The dog sees the cat.", "source": "en", "target": "de"}
    said: list[httpx.Response] = []
    with httpx.Client(base_url=service.url, trust_env=False, timeout=300) as client:
        for fields in ({"q": text}, {"q": f"{text} " * 200}, {"source": text, "format": text}):
            said.append(client.post("/translate", json=body | {"api_key": right} | fields))
        client.get(f"/{text}?{text}")
        for key in (right, slow, dead, "mt_a-canary-that-is-no-key", "\ud800canary"):
            sent = json.dumps(body | {"api_key": key})
            said.append(client.post("/translate", content=sent, headers={"Content-Type": "application/json"}))
            said.append(client.post("/translate", content=sent))
            if key.isascii():
                deepl = {"Authorization": f"DeepL-Auth-Key {key}"}
                said.append(client.post("/translate", data=body | {"api_key": key}))
                said.append(client.post("/translate", params=body | {"api_key": key}))
                said.append(client.post("/translate", json=body | {"api_key": [key]}))
                said.append(client.post("/v2/translate", json={"text": ["a" * 61], "target_lang": "DE"}, headers=deepl))
                said.append(client.get("/v2/usage", headers=deepl))
                said.append(client.get("/v2/usage", params={"auth_key": key}))
                said.append(client.post("/admin/reload", headers={"Authorization": f"Bearer {key}"}))
        said.append(client.post("/admin/reload", headers={"Authorization": f"Bearer {admin}"}))
        said.append(client.get("/frontend/settings"))
        said.append(client.get("/metrics"))
    assert service.stop() == 0
    statuses = {response.status_code for response in said}
    assert {200, 400, 403, 429, 456} <= statuses and not any(status >= 500 for status in statuses)
    told = [f"{response.headers} {response.text}" for response in said] + [json.dumps(service.logs)]
    for key in (right, slow, dead, admin, "canary"):
        assert not any(key in each for each in told)
    assert text not in str(service.logs) and said[0].json()["translatedText"] not in str(service.logs)
    assert any(line.get("caller", "").startswith("key:") for line in service.logs)
    with Database.open(path) as store:
        (spent,) = store.run_sync(lambda connection: connection.execute("SELECT sum(characters) FROM usage").fetchone())
    assert spent == len(text) + 3 * len(body["q"]), "what was charged is stored at the end"


LEVELS = ("debug", "info", "warning", "error")


def test_every_event_is_described_and_every_description_is_of_an_event() -> None:
    root = Path(service.__path__[0])
    events = set()
    for node in (node for path in root.rglob("*.py") for node in ast.walk(ast.parse(path.read_text("utf-8")))):
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[ast.Constant(value=event), *_]):
                is_name = isinstance(node.func, ast.Name)
                events |= {event} if (name == "write" and is_name) or (name in LEVELS and not is_name) else set()
    page = (root.parent / "docs" / "reference" / "log-events.md").read_text("utf-8")
    assert events == set(re.findall(r"^\| `(.+?)` \|", page, re.MULTILINE))


def start(program: str) -> "subprocess.Popen[bytes]":
    """Run lines of Python in a process whose stderr is a pipe of 4096 bytes."""
    beginning = "import logging, os, structlog\nfrom service.logs import open_logs\nlog = structlog.get_logger()\n"
    command = [sys.executable, "-c", beginning + program]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr
    fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, 4096)
    return process


def test_a_closed_stderr_ends_no_request() -> None:
    program = """
with open_logs(as_json=True):
    read, write = os.pipe(); os.close(read); os.dup2(write, 2)
    log.info("request"); logging.warning("failed"); print("goes on")
"""
    with start(program) as process:
        assert process.communicate(timeout=60) == (b"goes on\n", b"")


@pytest.mark.parametrize(
    "last",
    [
        "from service.program import main; print(main(['--port', 'none']))",
        "from service.processes import start_child; print(start_child('loud')[0].wait(30))",
        "from mt.cli.main import main; print(main(['keys', 'list', '--database', '/no']))",
    ],
    ids=["the last error", "a child", "a verb"],
)
def test_a_full_stderr_stops_neither_the_end_nor_a_child(last: str, tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("import sys; print('a' * 1_000_000, file=sys.stderr); sys.exit(2)")
    program = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
try:
    os.set_blocking(2, False)
    while os.write(2, b"a"): pass
except BlockingIOError:
    os.set_blocking(2, True)
with open_logs(as_json=True):
    {last}
"""
    with start(program) as process:
        try:
            assert process.stdout and process.wait(60) == 0
            assert process.stdout.read() == b"2\n"
        finally:
            process.kill()


def test_lines_that_are_not_read_in_time_are_dropped_and_counted() -> None:
    count = 2 * QUEUED_LINES
    program = f"""
with open_logs(as_json=True):
    for number in range({count}):
        log.info("request", number=number)
    print(flush=True)
    input()
    logging.warning("stopped")
    raise ValueError("the end")
"""
    with start(program) as process:
        assert process.stdin and process.stdout and process.stderr
        assert process.stdout.readline() == b"\n"  # nothing of stderr is read until all lines are logged
        lines = [process.stderr.readline() for _ in range(QUEUED_LINES // 2)]
        process.stdin.write(b"\n")
        process.stdin.close()
        lines += process.stderr
    end = lines.index(b"Traceback (most recent call last):\n")
    *requests, dropped, stopped = map(json.loads, lines[:end])
    assert [line["number"] for line in requests] == list(range(len(requests)))
    assert len(requests) >= QUEUED_LINES
    assert (dropped["event"], dropped["lines"]) == ("log lines dropped", count - len(requests))
    assert stopped["event"] == "stopped"
    assert lines[-1] == b"ValueError: the end\n"


def test_a_child_imports_nothing_from_the_working_directory(tmp_path: Path) -> None:
    (folder := tmp_path / "start").mkdir()
    (folder / "colorsys.py").write_text("raise SystemExit(9)")
    (tmp_path / "child.py").write_text("import colorsys")
    program = "import sys; sys.path.append(sys.argv[1]); from service.processes import start_child as start\n"
    command = [sys.executable, "-P", "-c", program + "print(start('child')[0].wait(30))", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(service.__path__[0]).parent)}
    assert subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True).stdout == b"0\n"
