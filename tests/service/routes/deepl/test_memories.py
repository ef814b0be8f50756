"""Translation memories and their jobs, by the official SDK and by requests that it does not send."""

import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any

import deepl
import httpx
import pytest

from mt.languages import Direction
from service.access.api_keys import list_keys, revoke_key
from service.errors import NotFound
from service.http.problems import MAX_MESSAGE
from service.memories.jobs import MAX_JOBS, MAX_JOBS_PER_CALLER, JobStatus, MemoryJob, MemoryJobs
from service.memories.units import MemoryUnit
from tests.service.application import Application

PAIR = {"en": "Word", "de": "Wort"}
JOBS = "/v3/translation_memories/jobs"


def tmx(*units: dict[str, str], header: str = 'srclang="en"') -> str:
    body = ""
    for unit in units:
        body += "".join(["<tu>", *(f'<tuv xml:lang="{a}"><seg>{b}</seg></tuv>' for a, b in unit.items()), "</tu>"])
    return f'<tmx version="1.4"><header {header}/><body>{body}</body></tmx>'


def imported(client: deepl.DeepLClient, content: str, name: str = "a.tmx", **options: Any) -> Any:
    created = client.create_translation_memory_import(name, len(content.encode()), **options)
    client.upload_translation_memory_file(created, content.encode())
    return client.wait_until_translation_memory_job_done(created.job_id)


def test_a_memory_is_imported_and_exported(client: deepl.DeepLClient) -> None:
    long = {"en": "x" * 5000, "de": "y"}
    job = imported(client, tmx(PAIR, {"en": "Ärger two", "de": "Zwei"}, long), display_name="Legal")
    assert (job.operation, job.display_name, job.source_content_type) == ("import", "Legal", "application/xml")
    assert (job.status, job.result.skipped_segment_count, job.result.error_message) == ("completed", 1, None)
    memory = client.get_translation_memory(job.result.translation_memory_id)
    assert (memory.name, memory.source_language, memory.target_languages) == ("Legal", "en", ["de"])
    assert [one.source_text for one in client.list_translation_memory_segments(memory)] == ["Word", "Ärger two"]
    first, second = (client.create_translation_memory_export(memory) for _ in range(2))
    exported: Any = client.wait_until_translation_memory_job_done(first.job_id)
    assert exported.result.expires_at > exported.creation_time
    assert (first.job_id, second.reused_existing) == (second.job_id, True)


@pytest.mark.parametrize(
    ("units", "header", "direction"),
    [
        ([{"EN": "Word", "DE_ch": "Wort"}], 'srclang="EN"', ("en", "de")),
        ([{"de": "Wort", "en": "Word"}], "", ("de", "en")),
        ([PAIR, {"en": "Two", "de-AT": "Zwei"}, {"en": "Three", "de-CH": "Drei"}], 'srclang="en"', ("en", "de")),
        ([{"eng": "Word", "deu": "Wort"}], 'srclang="eng"', ("en", "de")),
    ],
)
def test_the_file_states_the_languages(
    client: deepl.DeepLClient, units: list[dict[str, str]], header: str, direction: tuple[str, str]
) -> None:
    job = imported(client, tmx(*units, header=header))
    memory = client.get_translation_memory(job.result.translation_memory_id)
    assert (memory.source_language, *memory.target_languages, memory.segment_count) == (*direction, len(units))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (tmx({**PAIR, "fr": "Mot"}), "the file has the target languages de, fr; accepted: one"),
        (tmx({"ab-" * 90_000: "Word", "de": "Wort"}), "ab-ab"),
        (tmx({"en": "Word", "xx": "W"}), "xx is not supported; accepted: de, en"),
        (tmx({"en": "Word"}), "a.tmx: the texts are in the languages en; accepted: at least two"),
        (tmx(), "a.tmx: the texts are in the languages none; accepted: at least two"),
        ("no XML", "a.tmx: not well-formed XML"),
        (tmx(PAIR)[:-20], "a.tmx: not well-formed XML"),
    ],
)
def test_a_file_that_cannot_be_imported_fails_its_job(client: deepl.DeepLClient, content: str, problem: str) -> None:
    before = len(client.list_translation_memories())
    job = imported(client, content)
    assert (job.status, job.result.translation_memory_id) == ("failed", None)
    assert problem in job.result.error_message and len(job.result.error_message) <= MAX_MESSAGE
    assert len(client.list_translation_memories()) == before


def test_an_upload_awaits_its_file(running: Application, client: deepl.DeepLClient) -> None:
    content = tmx(PAIR).encode()
    created = client.create_translation_memory_import("a.tmx", len(content))
    awaiting: Any = client.get_translation_memory_job(created.job_id).result
    assert (awaiting.status, awaiting.required_action) == ("awaiting_input", "Upload the file to upload_url by PUT")

    def upload(body: bytes) -> httpx.Response:
        return running.client.put(created.upload_url, content=body)

    short = upload(content[:-1])
    assert short.status_code == 400 and f"has {len(content) - 1} bytes, but its job states {len(content)}" in short.text
    assert [upload(content).status_code for _ in range(2)] == [200, 200]  # a client repeats what it saw no answer to
    assert client.get_translation_memory_job(created.job_id).status == "completed"
    assert len(client.list_translation_memories()) == 1


def test_a_job_awaits_its_file_again_after_a_passing_error(running: Application, client: deepl.DeepLClient) -> None:
    content = tmx(PAIR).encode()
    created = client.create_translation_memory_import("c.tmx", len(content))
    running.database.outcomes = ("refused",)
    for status in (503, 200):
        assert running.client.put(created.upload_url, content=content).status_code == status
    assert client.get_translation_memory_job(created.job_id).status == "completed"


def signal_parsers(number: int) -> None:
    """Send a signal to the parser processes of the application in this process."""
    for children in Path("/proc/self/task").glob("*/children"):
        for process in children.read_text().split():
            if b"service.parsers" in Path("/proc", process, "cmdline").read_bytes():
                os.kill(int(process), number)


def test_a_second_upload_counts_if_the_client_of_the_first_leaves(client: deepl.DeepLClient) -> None:
    imported(client, tmx(PAIR))  # a parser process has started
    content = tmx(PAIR).encode()
    created = client.create_translation_memory_import("b.tmx", len(content))
    url = httpx.URL(created.upload_url)
    head = f"PUT {url.path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n"
    signal_parsers(signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(1) as pool, socket.create_connection((url.host, url.port)) as first:
            first.sendall(head.encode() + content)
            time.sleep(0.3)
            second = pool.submit(httpx.put, url, content=content, trust_env=False, timeout=300)
            wait([second], 0.3)
            first.close()
            time.sleep(0.3)
            signal_parsers(signal.SIGCONT)
            assert second.result().status_code == 200
    finally:
        signal_parsers(signal.SIGCONT)
    assert client.get_translation_memory_job(created.job_id).status == "completed"


@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        ({}, 400, "missing source_file parameter"),
        ({"source_file": {"file_name": "a.tmx", "content_length": 0}}, 400, "content_length is 0; accepted: a whole"),
        ({"source_file": {"file_name": "", "content_length": 1}}, 400, "source_file"),
        ({"source_file": {"file_name": "a" * 2000, "content_length": 1}}, 400, "source_file"),
        ({"source_file": {"file_name": "a.tmx", "content_length": 10**9}}, 413, ""),
        ({"source_file": "a.tmx"}, 400, "source_file"),
    ],
)
def test_an_import_is_described(raw: httpx.Client, body: dict[str, Any], status: int, problem: str) -> None:
    answer = raw.post("/v3/translation_memories/import", json=body)
    assert (answer.status_code, problem in answer.json()["message"]) == (status, True), answer.json()["message"]


def test_jobs_belong_to_their_key(running: Application, client: deepl.DeepLClient) -> None:
    job = imported(client, tmx(PAIR))
    export = client.create_translation_memory_export(job.result.translation_memory_id)
    poor = running.sdk("poor")
    for id in (job.job_id, export.job_id, "unknown"):
        with pytest.raises(deepl.DeepLException, match="There is no job"):
            poor.get_translation_memory_job(id)
    with pytest.raises(deepl.DeepLException, match="There is no translation memory"):
        poor.create_translation_memory_export(job.result.translation_memory_id)
    for method, id in (("GET", job.job_id), ("PUT", export.job_id), ("GET", "unknown")):
        answer = running.client.request(method, f"{JOBS}/{id}/file", content=b"x")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_the_addresses_of_jobs_end_with_their_key(running: Application, client: deepl.DeepLClient) -> None:
    job = imported(client, tmx(PAIR))
    export = client.create_translation_memory_export(job.result.translation_memory_id)
    upload = client.create_translation_memory_import("b.tmx", 1)
    assert running.client.get(f"{JOBS}/{export.job_id}/file").status_code == 200
    key = running.database.run_sync(list_keys)[-2]  # "rich", the first of the two newest
    assert key.name.startswith("rich")
    running.database.run_sync(partial(revoke_key, id_or_name=key.id))
    for method, id in (("GET", export.job_id), ("PUT", upload.job_id)):
        answer = running.client.request(method, f"{JOBS}/{id}/file", content=b"x")
        assert (answer.status_code, answer.json()["code"]) == (403, "invalid_key")


def test_the_oldest_jobs_of_a_caller_are_forgotten() -> None:
    jobs = MemoryJobs()
    other = jobs.add(MemoryJob("other", "a.tmx", 1))
    mine = [jobs.add(MemoryJob("me", f"{number}.tmx", 1)) for number in range(MAX_JOBS_PER_CALLER + 2)]
    export = jobs.add(MemoryJob("me", memory="m", status=JobStatus.COMPLETED))
    assert jobs.owned("other", other.id) is other and jobs.export("me", "m") is export
    assert [jobs.owned("me", job.id) for job in mine[3:]] == mine[3:]
    for forgotten in mine[:3]:
        with pytest.raises(NotFound):
            jobs.owned("me", forgotten.id)
    assert jobs.export("other", "m") is None


def test_many_callers_do_not_evict_the_job_of_one() -> None:
    jobs = MemoryJobs()
    first = jobs.add(MemoryJob("first", "a.tmx", 1))
    for number in range(MAX_JOBS + 20):
        jobs.add(MemoryJob(f"caller {number // MAX_JOBS_PER_CALLER}", "a.tmx", 1))
    assert jobs.owned("first", first.id) is first


@pytest.fixture
def memory(running: Application) -> str:
    units = [MemoryUnit(f"Word {number}", f"Wort {number}") for number in range(12)]

    async def store() -> str:
        caller = await running.services.access.admit(running.keys["rich"], "")
        return (await running.services.memories.put(caller.id, "words", Direction("en", "de"), units)).id

    return running.wait(store())


def test_a_memory_belongs_to_its_key(running: Application, client: deepl.DeepLClient, memory: str) -> None:
    (listed,) = client.list_translation_memories()
    assert client.get_translation_memory(listed).updated_time == listed.updated_time
    page = client.list_translation_memory_segments(memory, filter_text="wORT 1")
    assert [one.source_text for one in page] == ["Word 1", "Word 10", "Word 11"]
    assert (page.segment_count, page.next_page_cursor) == (12, None)
    target = page.segments[0].targets[0]
    assert (target.target_text, target.target_language) == ("Wort 1", "de")
    with pytest.raises(deepl.DeepLException, match="There is no translation memory"):
        running.sdk("poor").get_translation_memory(memory)
    with pytest.raises(deepl.DeepLException, match="filter_text String should have at most 1000 characters"):
        client.list_translation_memory_segments(memory, filter_text="ß" * 1001)
    with pytest.raises(deepl.DeepLException, match="page_cursor String should match pattern"):
        client.list_translation_memory_segments(memory, page_cursor="\U0001e4f0")  # a digit that Python does not know


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source_lang": "EN", "target_lang": "PT-PT"}, "is for en-de, not for en-pt"),
        ({"translation_memory": "unknown"}, "There is no translation memory"),
        ({"translation_memory": None, "extra_body_parameters": {"translation_memory_threshold": 80}}, "threshold req"),
    ],
)
def test_unusable_memories(client: deepl.DeepLClient, memory: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(deepl.DeepLException, match=message):
        client.translate_text("x", **{"target_lang": "DE", "translation_memory": memory, **fields})
