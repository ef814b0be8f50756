"""What an operator relies on: probes, the admin's routes, metrics, settings, rates and quotas."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref
from collections.abc import Iterator
from typing import Any, cast

import pytest

from service import freed_memory, pauses
from service.access.api_keys import make_key
from service.errors import CannotTranslate, NotServing, Overloaded, ReloadRefused, Unavailable
from service.freed_memory import RETURN_BYTES, LongList, RequestMemory
from service.http.admission import RequestGate, WorkKind
from service.pauses import AGAIN_SECONDS, GROWTH_BYTES, GrowthCollector
from service.readiness import CANARY_CALLER, CANARY_TEXT, Readiness
from service.settings import SettingsError, load_settings
from service.workers.fleet import Fleet
from tests.service.application import Application
from tests.service.conftest import ROOT, environment
from tests.service.doubles import WordModels, backwards, upper

ADMIN = "an-admin-key-of-32-characters-ab"
PROBES = ("/livez", "/readyz", "/health")


@pytest.fixture(scope="module")
def shared() -> Iterator[Application]:
    with Application(
        {"en-de": upper, "de-fr": backwards},
        lambda models: {"readiness": Readiness(cast(Fleet, models), interval=0)},
        admin_key=ADMIN,
        public_metrics=False,
    ) as application:
        yield application


@pytest.fixture
def application(shared: Application) -> Iterator[Application]:
    yield shared
    models = shared.models
    models.ready, models.failure, models.gate.closed = True, None, False
    shared.until(lambda: shared.client.get("/readyz").status_code == 200)


def test_probes_of_a_service_that_is_well(application: Application) -> None:
    for path in PROBES:
        assert application.client.get(path).json() == {"status": "ok"}
        head = application.client.head(path)
        assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize(
    ("ready", "draining", "reason"),
    [
        (False, False, "the models are not loaded"),
        (True, True, "the service is shutting down"),
        (False, True, "the service is shutting down"),
    ],
)
def test_probes_of_one_that_cannot_translate(
    application: Application, ready: bool, draining: bool, reason: str
) -> None:
    application.models.ready, application.models.gate.closed = ready, draining
    assert [application.client.get(path).status_code for path in PROBES] == [200, 503, 503]
    refused = application.client.get("/readyz")
    assert (refused.json()["error"], refused.json()["code"]) == (f"Not ready: {reason}", "not_serving")
    assert int(refused.headers["retry-after"]) >= 1
    assert application.client.head("/readyz").status_code == 503


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        *[("GET", path, "read") for path in ("/v2/usage", "/v3/glossaries", "/download_file/a")],
        *[("POST", path, "read") for path in ("/detect", "/v2/usage", "/v2/document/a/result")],
        *[("POST", path, "document") for path in ("/translate_file", "/v2/document")],
        *[("POST", path, "translation") for path in ("/translate", "/v2/translate")],
        *[("POST", "/v2/glossaries", "write"), ("PUT", "/memories", "write"), ("DELETE", "/v3/glossaries/a", "write")],
    ],
)
def test_requests_of_callers_count_as_work(application: Application, method: str, path: str, kind: str) -> None:
    gate, application.models.gate = application.models.gate, RequestGate()
    application.models.gate.limits = dict.fromkeys(WorkKind, (0, 0))
    try:
        refused = application.client.request(method, path, data={"q": "a", "text": "a", "target_lang": "DE"})
        assert (refused.status_code, f"0 {kind} requests at a time" in refused.text) == (429, True)
    finally:
        application.models.gate = gate


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (CannotTranslate("no"), "a short text could not be translated (cannot_translate)"),
        (Unavailable(), "a short text could not be translated (unavailable)"),
        (TimeoutError(), "a short text was not translated within 30 s"),
    ],
)
def test_a_failed_canary_ends_readiness(application: Application, failure: Exception, reason: str) -> None:
    client, models = application.client, application.models
    models.failure = failure
    application.until(lambda: client.get("/readyz").status_code == 503)
    assert client.get("/readyz").json()["error"] == f"Not ready: {reason}"
    assert client.get("/livez").status_code == 200
    models.failure = None
    application.until(lambda: client.get("/readyz").status_code == 200)
    assert set(models.canaries) == {(CANARY_TEXT, CANARY_CALLER)}


def is_ready(readiness: Readiness) -> bool:
    try:
        readiness.check()
    except NotServing:
        return False
    return True


async def test_a_full_queue_is_no_failure_and_no_success() -> None:
    models = WordModels()
    readiness = Readiness(cast(Fleet, models), interval=0)
    for failure, ready in ((Overloaded(1), True), (CannotTranslate("no"), False), (Overloaded(1), False), (None, True)):
        models.failure = failure
        before = len(models.canaries)
        is_ready(readiness)
        while len(models.canaries) == before:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        models.failure = Overloaded(1)  # the question sends one more
        assert is_ready(readiness) == ready
        await asyncio.sleep(0.01)
    await readiness.close()


async def test_a_lost_database_ends_readiness() -> None:
    readiness = Readiness(cast(Fleet, WordModels()), lambda: True, interval=0)
    assert is_ready(readiness)
    while is_ready(readiness):
        await asyncio.sleep(0)
    await readiness.close()


@pytest.mark.parametrize(("interval", "hangs", "canaries"), [(3600, False, 0), (0, True, 1)])
async def test_one_canary_at_a_time_and_none_too_soon(interval: float, hangs: bool, canaries: int) -> None:
    models = WordModels()
    if hangs:
        models.opened.clear()
    readiness = Readiness(cast(Fleet, models), interval=interval)
    for _ in range(20):
        assert is_ready(readiness)  # and at once, even while one hangs
        await asyncio.sleep(0)
    await readiness.close()
    assert len(models.canaries) == canaries


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_reload(application: Application) -> None:
    client, models = application.client, application.models
    for headers in ({}, bearer("wrong"), bearer(ADMIN + "a"), {"Authorization": f"Basic {ADMIN}"}):
        refused = client.post("/admin/reload", headers=headers)
        assert (refused.status_code, refused.json()["code"], models.revision) == (403, "invalid_key", 1)
    models.failure = ReloadRefused("m/config.json is no JSON")
    refused = client.post("/admin/reload", headers=bearer(ADMIN))
    assert refused.status_code == ReloadRefused.status and "m/config.json is no JSON" in refused.json()["error"]
    models.failure = None
    reloaded = [{"name": f"words-{way}", "version": "2", "changed": True} for way in ("en-de", "de-fr")]
    assert client.post("/admin/reload", headers=bearer(ADMIN)).json() == {"models": reloaded}
    models.revision = 1


def test_metrics_behind_the_admin_key(application: Application) -> None:
    client = application.client
    assert client.get("/metrics").status_code == 403
    assert client.head("/metrics", headers=bearer(ADMIN)).status_code == 200
    refused = b'mt_requests_total{method="GET",route="/metrics",status="403"} 1.0'
    assert refused in client.get("/metrics", headers=bearer(ADMIN)).content


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the variables of tests, such as MT_TEST_CORPORA, which are no settings."""
    for name in [name for name in os.environ if name.startswith("MT_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"require_key": "true"}, "require_key is set, but database is not"),
        ({"public_metrics": "false"}, "public_metrics is off, but admin_key is not set"),
        ({"admin_key": "hunter2"}, "--admin-key refused; accepted: 16 characters or more"),
        ({"allow_origins": "example.org"}, "'example.org' is not an origin; accepted: an origin such as https://"),
        ({"allow_origins": "https://a.example/path"}, "is not an origin"),
        ({"trusted_proxies": "10.0.0.1/8"}, "has host bits set; accepted: an address or a network such as 10.0.0"),
        ({"root_path": "translator/"}, "accepted: a path such as /translator"),
        ({"read_timeout_seconds": "0"}, "--read-timeout-seconds is '0'; accepted: a number above 0"),
        ({"read_timeout_seconds": "soon"}, "--read-timeout-seconds is 'soon'; accepted: a number above 0"),
        ({"require_key": "ja"}, "--require-key is 'ja'; accepted: true or false"),
        ({"log_json": "nein"}, "--log-json is 'nein'; accepted: true or false"),
        ({"port": "http"}, "--port is 'http'; accepted: a whole number from 0 to 65535"),
        ({"threads": "1.5"}, "--threads is '1.5'; accepted: a whole number from 1"),
        ({"dtype": "int4"}, "--dtype is 'int4'; accepted: 'auto', 'float32', 'bfloat16' or 'int8'"),
        ({"max_pending_characters": "5"}, "a max_characters of at most max_pending_characters"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({"model": "m"} | settings)
    assert message in str(caught.value) and "hunter2" not in str(caught.value)


def test_variables_that_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are named, without their values, which may be secrets, and beside the other problems."""
    for name, value in {"MT_REQUIRE_KEYS": "true", "mt_admin_key_": ADMIN, "MT_9": "1", "MT_PORT": "x"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load_settings({"model": "m"})
    lines = str(caught.value).splitlines()
    assert lines[1:-1] == [
        "  - the environment variable MT_9 is not a setting",
        "  - the environment variable MT_REQUIRE_KEYS is not a setting (did you mean MT_REQUIRE_KEY?)",
        "  - the environment variable mt_admin_key_ is not a setting (did you mean MT_ADMIN_KEY?)",
    ]
    assert "MT_PORT is 'x'" in lines[-1] and ADMIN not in str(caught.value)
    for name in ("MT_REQUIRE_KEYS", "mt_admin_key_", "MT_PORT"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("MT_9", "")
    monkeypatch.setenv("MT_DATA", "data")
    monkeypatch.setenv("mt_max_characters", "7")
    assert load_settings({"model": "m"}).max_characters == 7


def test_lists_of_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MT_TRUSTED_PROXIES", "10.0.0.0/8, ::1")
    monkeypatch.setenv("MT_ADMIN_KEY", "")
    assert load_settings({"model": "m"}).admin_key is None, "an empty variable is no key"
    found = load_settings({"model": "m", "allow_origins": "https://a.example,http://b:8080", "admin_key": ADMIN})
    assert found.trusted_proxies == ("10.0.0.0/8", "::1")
    assert found.allow_origins == ("https://a.example", "http://b:8080")
    assert ADMIN not in repr(found)
    found = load_settings({"model": "m", "trusted_proxies": "*, 10.0.0.0/8, 10.1.0.0/16, 10.0.0.1"})
    assert found.broad_proxies == ("*", "10.0.0.0/8")


def test_a_service_that_other_machines_reach_without_a_key_is_open() -> None:
    for is_open, hosts in ((True, ("0.0.0.0", "::", "translate.example")), (False, ("127.0.0.2", "::1", "localhost"))):
        assert [load_settings({"model": "m", "host": host}).is_open for host in hosts] == [is_open] * 3
    options = {"model": "m", "host": "0.0.0.0", "require_key": "true", "database": "service.db"}
    assert not load_settings(options).is_open


def test_rates_hold_back_work_and_never_probes() -> None:
    body = {"q": "the dog", "source": "en", "target": "de"}
    with Application(anonymous_rate=1) as running:
        key, _ = running.database.run_sync(lambda connection: make_key(connection, "slow", rate=2))
        for fields, rate in (({"api_key": key}, 2), ({}, 1)):
            for _ in range(rate):
                running.post("/translate", body | fields)
            refused = running.client.post("/translate", json=body | fields)
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
            assert refused.json()["error"].startswith(f"Slowdown: {rate} per 1 minute")
            assert 1 <= int(refused.headers["retry-after"]) <= 61
        for probe in (*PROBES, "/metrics") * 5:
            assert running.client.get(probe).status_code == 200


def probe(port: int, host: str = "127.0.0.1") -> subprocess.CompletedProcess[str]:
    settings, command = environment({"MT_PORT": str(port), "MT_HOST": host}), [sys.executable, "-m", "service.probe"]
    return subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)


def test_the_probe_of_a_container() -> None:
    application = Application()
    for host in ("0.0.0.0", "127.0.0.1"):
        done = probe(application.port, host)
        assert (done.returncode, done.stderr) == (0, "")
    application.models.ready = False
    assert probe(application.port).returncode == 1
    application.stop()
    done = probe(application.port)
    assert done.returncode == 1 and done.stderr.startswith("not ready: ") and "Traceback" not in done.stderr


class Node:
    def __init__(self) -> None:
        self.itself = self


def test_a_long_list_that_lives_to_the_end_of_the_process_does_not_delay_it() -> None:
    program = "import builtins; from service.freed_memory import LongList; builtins.kept = LongList(range(100_000))"
    ended = subprocess.run([sys.executable, "-c", program], timeout=30, capture_output=True, check=True)
    assert ended.stderr == b""


def test_a_long_list_is_freed_without_a_copy() -> None:
    """A copy would touch each item, which took the event loop 10 ms."""
    item = set[int]()
    items, freed = LongList([item, *range(100_000)]), weakref.ref(item)
    del item
    tracemalloc.start()
    del items
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 700_000  # of the 800,000 bytes of a copy; the list itself shrinks by halves
    deadline = time.monotonic() + 60
    while freed() is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_many_short_lists_are_freed_in_a_thread() -> None:
    """The sentences of 1,000 texts took the event loop 93 ms."""
    freed_here = list[bool]()

    class Item:
        def __del__(self) -> None:
            freed_here.append(threading.current_thread() is threading.main_thread())

    lists = [LongList([Item(), Item()]) for _ in range(50)]
    del lists
    deadline = time.monotonic() + 60
    while len(freed_here) < 100:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not any(freed_here)


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        ([(5, 1)], False),
        ([(5 + GROWTH_BYTES + 1, 1)], True),
        ([(4, 1), (5 + GROWTH_BYTES, 2)], True),
        ([(5 + 2 * GROWTH_BYTES, 1), None, (5 + 2 * GROWTH_BYTES, 2)], False),
        ([(5 + 2 * GROWTH_BYTES, 1), None, (5 + 2 * GROWTH_BYTES, 1 + AGAIN_SECONDS)], True),
        ([(5 + 2 * GROWTH_BYTES, 1, True)], False),
        ([(5 + 2 * GROWTH_BYTES, 1, True), (5 + 2 * GROWTH_BYTES, 2)], True),
        ([(5 + 2 * GROWTH_BYTES, AGAIN_SECONDS, True)], True),
        ([(6 + 10 * GROWTH_BYTES, 1, True)], True),
    ],
)
async def test_garbage_is_collected_if_memory_grows(
    monkeypatch: pytest.MonkeyPatch, checks: list[Any], expected: bool
) -> None:
    """Each check has the memory of the process, the time, and perhaps whether the service is busy.

    None makes garbage, after the first has been collected.
    """
    state = (5, 0.0)
    monkeypatch.setattr(pauses, "memory_bytes", lambda _: state[0])
    gc.disable()
    try:
        left = weakref.ref(Node())
        collector = GrowthCollector(lambda: state[1])
        for check in checks:
            if check is None:
                assert left() is None
                left = weakref.ref(Node())
            else:
                state = check
                await collector.check(*check[2:])
        assert (left() is None) == expected
    finally:
        gc.enable()


async def test_memory_that_is_free_is_returned_and_no_reason_for_a_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [5]
    monkeypatch.setattr(pauses, "memory_bytes", lambda _: sizes[-1])
    monkeypatch.setattr(pauses, "return_freed_memory", lambda: sizes.append(6))
    gc.disable()
    try:
        collector, left = GrowthCollector(), weakref.ref(Node())
        sizes.append(6 + GROWTH_BYTES)
        await collector.check()
        assert sizes == [5, 6 + GROWTH_BYTES, 6] and left() is not None
    finally:
        gc.enable()


async def test_memory_of_large_requests_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a garbage collection, which would stop the event loop."""
    returned, cycle = list[bool](), Node()
    monkeypatch.setattr(freed_memory, "return_freed_memory", lambda: returned.append(True))
    left = weakref.ref(cycle)
    gc.disable()
    try:
        del cycle
        for sizes in ([1, RETURN_BYTES - 2], [RETURN_BYTES - 1, 1]):
            memory = RequestMemory(seconds=0)
            for size in sizes:
                memory.add(size)
            await asyncio.sleep(0.01)
        assert returned == [True]
        assert left() is not None
    finally:
        gc.enable()
