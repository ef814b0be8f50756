from pathlib import Path

import pytest

from mt import Translator
from mt.bundled import STARTER_MODEL
from tests.kernels.conftest import library as library


@pytest.fixture(scope="module")
def translator(small_model: Path) -> Translator:
    return Translator.load(small_model, device="cpu")


@pytest.fixture(scope="session")
def starter() -> Translator:
    return Translator.load(STARTER_MODEL, "cpu", threads=1)
