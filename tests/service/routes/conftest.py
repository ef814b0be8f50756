"""One application for all tests of LibreTranslate's routes, and of our own."""

from collections.abc import Iterator

import pytest

from tests.service.application import Application
from tests.service.doubles import WordModels, backwards, upper


@pytest.fixture(scope="package")
def shared_native() -> Iterator[Application]:
    with Application(
        {"en-de": upper, "de-fr": backwards},
        max_characters=5000,
        max_stored_file_bytes=60_000,
        max_pending_characters=9000,
        max_body_bytes=100_000,
        suggestions=True,
        admin_key="an-admin-key-of-32-characters-ab",
    ) as application:
        yield application


DEEPL_WAYS = ("en-de", "en-pb", "en-pt", "en-zh", "de-en", "fr-en")


@pytest.fixture(scope="package")
def deepl_application() -> Iterator[Application]:
    with Application(
        dict.fromkeys(DEEPL_WAYS, upper),
        require_key=True,
        max_body_bytes=300_000,
        max_file_bytes=300_000,
        max_glossaries=5,
    ) as application:
        yield application


@pytest.fixture
def native(shared_native: Application) -> Application:
    """en-de in capitals, de-fr in reverse order; new keys for each test."""
    shared_native.renew()
    return shared_native


@pytest.fixture
def models(native: Application) -> WordModels:
    return native.models
