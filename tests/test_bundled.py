"""The starter model of the package, and the frozen model of the tests."""

import os
from pathlib import Path

import pytest

from mt import Translator
from mt.bundled import STARTER_MODEL
from service.hub_models import install_models
from service.settings import Settings
from service.workers.model_files import find_models, read_card
from tests.conftest import FROZEN


def test_a_saved_model_of_an_earlier_day_translates_as_it_did() -> None:
    rows = [line.split("\t") for line in (FROZEN.with_name("lines.tsv")).read_text(encoding="utf-8").splitlines()]
    translations = Translator.load(FROZEN, "cpu").translate_many([source for source, _ in rows])
    assert [translation.text for translation in translations] == [expected for _, expected in rows] != []


def test_it_is_served_by_default_and_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("MT_")]:
        monkeypatch.delenv(name)
    assert find_models(Settings()) == (STARTER_MODEL,)
    assert find_models(Settings(model=(tmp_path,))) == (tmp_path,)
    monkeypatch.chdir(tmp_path)
    assert install_models(Settings(model=(Path("starter"), Path("own")))).model == (STARTER_MODEL, Path("own"))
    Path("starter").mkdir()
    assert install_models(Settings(model=(Path("starter"),))).model == (Path("starter"),)


def test_it_is_small_and_names_its_sources() -> None:
    assert sum(path.stat().st_size for path in STARTER_MODEL.iterdir()) < 15_000_000
    facts = read_card(STARTER_MODEL)
    assert facts.licence == "Apache-2.0, with the names of the sources above" and "53.4 and 68.1" in facts.scores
    card = (STARTER_MODEL / "README.md").read_text(encoding="utf-8")
    licences = "CC-BY 2.0 FR|CC-BY 4.0|Open Government Licence|Open Publication License|MPL-2.0|CeCILL".split("|")
    assert [licence for licence in licences if licence not in card] == []
