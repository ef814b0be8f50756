"""Every operation of the OpenAPI document with data that fits it, and data that does not, made up by schemathesis.

No 5xx but a 503 that is documented, and whatever comes back is what the document says: status, type, shape and headers.
`MT_FUZZ_CASES=1000` tries so many for each operation, half of each kind, with a seed that is new each time.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given
from schemathesis import Case, CheckFunction, GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.service.running import FROZEN

ADMIN = "an-admin-key-of-32-characters-ab"
GIVEN = os.environ.get("MT_FUZZ_CASES")
CASES = int(GIVEN or "10")
GLOSSARIES = 30  # that are there before anything is deleted
TRUTHS: list[CheckFunction] = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
GLOSSARY = {"name": "g", "source_lang": "en", "target_lang": "de", "entries": "dog\tHund"}


@dataclass
class Tried:
    """A service, its document, and what came back so far."""

    url: str
    document: dict[str, Any]
    session: requests.Session = field(default_factory=requests.Session)
    statuses: dict[str, Counter[int]] = field(default_factory=dict)

    def send(self, case: Case[Any]) -> None:
        """Raises what is not as it should be."""
        label = case.operation.label
        counted = self.statuses.setdefault(label, Counter())
        headers = {"Authorization": f"Bearer {ADMIN}"} if "/admin" in label and counted.total() % 2 else None
        response = case.call(base_url=self.url, session=self.session, headers=headers, timeout=60)
        counted[response.status_code] += 1
        hurried = "timeout_ms" in str(response.request.body)
        check(response.status_code, response.headers, response.content, hurried)
        case.validate_response(response, checks=TRUTHS)


def check(status: int, headers: Any, content: bytes, hurried: bool = False) -> None:
    """Whatever was sent: no mistake of ours, and text that can be read. The hurried may be told that time is up."""
    assert status < 500 or status == 503 or (hurried and status == 504), f"{status}: {content[:300]!r}"
    if status == 503:
        retry = headers.get("Retry-After") or headers["retry-after"]
        assert int(retry[0] if isinstance(retry, list) else retry) >= 1
    content.decode("utf-8")


@pytest.fixture(scope="module")
def tried(start_service: Callable[..., Any]) -> Iterator[Tried]:
    limits = {"MT_MAX_CHARACTERS": "2000", "MT_MAX_BODY_BYTES": "40000"}
    service = start_service(FROZEN, MT_ADMIN_KEY=ADMIN, MT_MAX_GLOSSARIES="10000", **limits)
    with httpx.Client(base_url=service.url, trust_env=False, timeout=60) as client:
        made = [client.post("/v2/glossaries", json=GLOSSARY).json()["glossary_id"] for _ in range(GLOSSARIES)]
        document = client.get("/openapi.json").json()
    with requests.Session() as session:
        session.trust_env = False
        yield Tried(service.url, with_values(document, values(made)), session)
    assert service.process.poll() is None
    assert service.events("failed") == []


def values(glossaries: list[str]) -> dict[str, list[Any]]:
    """Of fields for which made-up data would lead nowhere. Data that does not fit the document has it all the same."""
    return {
        "source": ["en", "auto", "de", "zz"],
        "target": ["de", "de", "en"],
        "targets": [["de"], []],
        "source_lang": ["EN", "en"],
        "target_lang": ["DE", "de"],
        "alternatives": [0, 1, 3, 11],
        "beam_size": [1, 2, None],
        "timeout_ms": [1, 30, 60_000, None],
        "glossary": [{"dog": "Hund"}, {}],
        "glossary_id": glossaries,
        "glossary_ids": [glossaries[:1], glossaries[:6], []],
        "entries": ["dog\tHund", "dog\tHund\ncat\tKatze", "dog"],
        "entries_format": ["tsv", "csv"],
        "formality": ["default", "more", None],
        "api_key": [None],
    }


def with_values(document: dict[str, Any], known: dict[str, list[Any]]) -> dict[str, Any]:
    """The document with values that mean something for fields of these names, where they are asked for."""
    schemas = document["components"]["schemas"]
    schemas |= {name: knowing(schemas[name], known) for name in schemas if name.endswith("Request")}
    for operations in document["paths"].values():
        for operation in operations.values():
            asked = {name: operation[name] for name in ("parameters", "requestBody") if name in operation}
            operation |= knowing(asked, known)
    return document


def knowing(part: Any, known: dict[str, list[Any]]) -> Any:
    if isinstance(part, list):
        return [knowing(each, known) for each in part]
    if not isinstance(part, dict):
        return part
    found = {name: knowing(value, known) for name, value in part.items()}
    if isinstance(found.get("properties"), dict):
        for name in known.keys() & found["properties"].keys():
            found["properties"][name] = {"enum": known[name]}
    if found.get("in") in ("path", "query") and found["name"] in known:
        found["schema"] = {"enum": known[found["name"]]}
    return found


def searching(cases: int) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=cases,
        derandomize=GIVEN is None,
        database=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )


def test_every_operation(tried: Tried, subtests: pytest.Subtests) -> None:
    operations = []
    for result in schemathesis.openapi.from_dict(tried.document).get_all_operations():
        assert isinstance(result, Ok), result
        operations.append(result.ok())
    operations.sort(key=lambda operation: operation.method.upper() == "DELETE")
    assert len(operations) >= 30
    for operation in operations:
        assert {"4XX", "5XX"} <= set(operation.definition.raw["responses"]), operation.label
    for operation in operations:
        for mode in GenerationMode:
            with subtests.test(operation=operation.label, mode=mode.value):

                @searching(CASES // 2)
                @given(case=operation.as_strategy(generation_mode=mode))
                def attack(case: Case[Any]) -> None:
                    tried.send(case)

                try:
                    attack()
                except hypothesis.errors.Unsatisfiable:
                    assert mode is GenerationMode.NEGATIVE, "nothing to send can be wrong"
    for label, statuses in tried.statuses.items():
        print(f"{label}: {statuses.total()} cases, {dict(sorted(statuses.items()))}")


UNSTATED = {
    "--exclude-checks": ["positive_data_acceptance", "negative_data_rejection"],
    "--exclude-path": ["/admin/reload", "/v3/translation_memories/import"],
}
"""What the document cannot state, so that schemathesis would report it.

It accepts what the service refuses: language codes that are not served, formats of files and of glossary entries, a
limit of the settings, and null, which a form cannot hold. It refuses what the service accepts: numbers and flags that
a form sends as text. /admin/reload refuses a missing key with 403 in place of 401. The path of imports is also that of
a memory, whose methods `Allow` then lists.
"""


def test_schemathesis_finds_no_more_than_is_explained(tried: Tried) -> None:
    """Examples and the coverage phase of its command line, with all other checks."""
    excluded = [part for option, values in UNSTATED.items() for value in values for part in (option, value)]
    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("schemathesis"), "run", f"{tried.url}/openapi.json"),
            *("--phases", "examples,coverage", "--checks", "all", "--continue-on-failure", "--no-color", *excluded),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
