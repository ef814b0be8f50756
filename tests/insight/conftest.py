import pytest
from matplotlib.figure import Figure

from mt.checkpoint import LoadedModel, load_model
from mt.insight.pictures import draw
from mt.insight.translation_record import TranslationRecord, explain
from tests.conftest import FROZEN


@pytest.fixture(scope="session")
def loaded() -> LoadedModel:
    return load_model(FROZEN)


@pytest.fixture(scope="session")
def explanation(loaded: LoadedModel) -> TranslationRecord:
    return explain(loaded, " My husband is very fast. ")


@pytest.fixture(scope="session")
def pictures(explanation: TranslationRecord) -> dict[str, Figure]:
    return draw(explanation)
