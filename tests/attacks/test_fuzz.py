"""Some hundred documents and requests of the fuzzers; `python -m scripts.attack.fuzz_...` runs thousands."""

import pytest

from scripts.attack import fuzz_documents, fuzz_requests

pytestmark = pytest.mark.attack


def test_mutated_documents_are_rendered_or_refused() -> None:
    cases = list(fuzz_documents.run(f"1/{number}" for number in range(300)))
    assert [str(case) for case in cases if case.outcome.startswith("FAILED")] == []
    assert {case.outcome for case in cases} == {"rendered", "refused"}


def test_uploads_of_mutated_documents_harm_nobody() -> None:
    assert fuzz_documents.upload_all(f"2/{number}" for number in range(550)) == []


def test_no_request_hangs_or_breaks_the_service() -> None:
    assert fuzz_requests.run(count=400, seed=1, warm_up=100) == []
