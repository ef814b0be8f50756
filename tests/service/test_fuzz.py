"""Every operation of the OpenAPI document with data that fits it, and data that does not, made up by schemathesis.

No 5xx but a 503 that is documented, and whatever comes back is what the document says: status, type, shape and headers.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.service.running import FROZEN

ADMIN = "an-admin-key-of-32-characters-ab"
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


def test_schemathesis_finds_no_more_than_is_explained(start_service: Callable[..., Any]) -> None:
    """Examples and the coverage phase of its command line, with all other checks."""
    limits = {"MT_MAX_CHARACTERS": "2000", "MT_MAX_BODY_BYTES": "40000", "MT_MAX_GLOSSARIES": "10000"}
    service = start_service(FROZEN, MT_ADMIN_KEY=ADMIN, **limits)
    paths = httpx.get(f"{service.url}/openapi.json", trust_env=False).json()["paths"]
    operations = [operation for methods in paths.values() for operation in methods.values()]
    assert len(operations) >= 30
    assert all({"4XX", "5XX"} <= set(operation["responses"]) for operation in operations)
    excluded = [part for option, values in UNSTATED.items() for value in values for part in (option, value)]
    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("schemathesis"), "run", f"{service.url}/openapi.json"),
            *("--phases", "examples,coverage", "--checks", "all", "--continue-on-failure", "--no-color", *excluded),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert service.process.poll() is None
    assert service.events("failed") == []
