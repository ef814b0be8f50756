"""Small files that freeze the service (SECURITY 4, 5, 6; ATTACKS 1, 4, 5)."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.attacks.payloads import LARGE_DOCUMENTS, SIZED_DOCUMENTS
from tests.attacks.target import BYSTANDER, Target, measure, running, together

pytestmark = pytest.mark.attack
SIZE = 200_000  # bytes


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with running(MT_CACHE_CHARACTERS="0") as found:
        yield found


@pytest.mark.parametrize(("name", "content"), SIZED_DOCUMENTS.values(), ids=SIZED_DOCUMENTS.keys())
def test_small_documents_harm_nobody(target: Target, name: str, content: Callable[[int], bytes]) -> None:
    answers, others = [], []
    impact = measure(
        target,
        lambda: together(
            lambda: answers.append(target.upload(name, content(SIZE), timeout=120)),
            lambda: others.append(target.upload("b.txt", b"Where is the station?", caller=BYSTANDER, timeout=120)),
        ),
    )
    print(impact, f"{answers[0].seconds:.1f} s, status {answers[0].status}")
    assert impact.problems() == []
    assert answers[0].status in (200, 400, 413, 422)
    assert others[0].status == 200 and others[0].seconds < 10


@pytest.mark.parametrize(("name", "content"), LARGE_DOCUMENTS.values(), ids=LARGE_DOCUMENTS.keys())
def test_large_documents_are_refused_before_they_fill_the_memory(target: Target, name: str, content: bytes) -> None:
    before = target.memory()
    answers = []
    impact = measure(target, lambda: answers.append(target.upload(name, content, timeout=120)))
    print(impact, f"{answers[0].seconds:.1f} s, status {answers[0].status}")
    assert impact.problems() == []
    assert answers[0].status in (400, 413, 422)
    assert target.memory() - before < 100_000_000


def test_the_next_document_is_not_affected(target: Target) -> None:
    hostile = [SIZED_DOCUMENTS[name] for name in ("docx-nested", "srt-newlines")]
    calls = [lambda name=name, content=content: target.upload(name, content(400_000)) for name, content in hostile]
    together(*calls)
    answer = target.upload("b.txt", b"Where is the station?", caller=BYSTANDER)
    assert answer.status == 200 and answer.seconds < 10


def test_sigterm_ends_the_service_while_a_document_is_parsed() -> None:
    with running() as target:
        name, content = SIZED_DOCUMENTS["docx-nested"]
        threading.Thread(target=target.upload, args=(name, content(1_000_000)), daemon=True).start()
        time.sleep(1)
        assert target.stop(35) == 0
