"""Mutated documents: a few hundred of the fuzzer's; tests/attacks/fuzz_documents.py runs thousands."""

import pytest

from tests.attacks.fuzz_documents import run
from tests.attacks.fuzz_service import upload_all
from tests.attacks.mutations import mutate, seeds

pytestmark = pytest.mark.attack


def test_mutated_documents_are_rendered_or_refused() -> None:
    cases = list(run(f"1/{number}" for number in range(300)))
    assert [str(case) for case in cases if case.outcome.startswith("FAILED")] == []
    assert {case.outcome for case in cases} == {"rendered", "refused"}


def test_uploads_of_mutated_documents_harm_nobody() -> None:
    assert upload_all(mutate(seeds(), f"2/{number}") for number in range(550)) == 0
