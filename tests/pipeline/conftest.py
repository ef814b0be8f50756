from pathlib import Path

import pytest

from mt import Translator
from tests.kernels.conftest import library as library


@pytest.fixture(scope="module")
def translator(small_model: Path) -> Translator:
    return Translator.load(small_model, device="cpu")
