"""The starter model of the package."""

import os
from pathlib import Path

import pytest

from mt import Translator
from mt.bundled import STARTER_MODEL
from service.hub_models import install_models
from service.settings import Settings
from service.workers.model_files import find_models, read_card


@pytest.mark.parametrize(
    ("direction", "text", "translation"),
    [
        ("en-de", "He forgot his keys at the office.", "Er hat seine Schlüssel im Büro vergessen."),
        ("de-en", "Meine Mutter arbeitet in einem Krankenhaus.", "My mother works in a hospital."),
        ("en-fr", "Where can I park the car?", "Où puis-je garer la voiture ?"),
        ("fr-en", "Ma voiture ne démarre pas.", "My car doesn't start."),
        ("fr-de", "J'ai oublié mon parapluie dans le train.", "Ich habe meinen Regenschirm im Zug vergessen."),
    ],
)
def test_it_translates(direction: str, text: str, translation: str) -> None:
    source, _, target = direction.partition("-")
    assert Translator.load(STARTER_MODEL, "cpu").translate(text, source=source, target=target).text == translation


def test_it_is_served_if_no_model_is_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("MT_")]:
        monkeypatch.delenv(name)
    assert find_models(Settings()) == (STARTER_MODEL,)
    assert find_models(Settings(model=(tmp_path,))) == (tmp_path,)


def test_it_is_small_and_names_its_sources() -> None:
    assert sum(path.stat().st_size for path in STARTER_MODEL.iterdir()) < 15_000_000
    facts = read_card(STARTER_MODEL)
    assert facts.licence == "Apache-2.0, with the names of the sources above" and "53.4 and 68.1" in facts.scores
    card = (STARTER_MODEL / "README.md").read_text(encoding="utf-8")
    for licence in (
        "CC-BY 2.0 FR",
        "CC-BY 4.0",
        "Open Government Licence",
        "Open Publication License",
        "MPL-2.0",
        "CeCILL",
    ):
        assert licence in card


def test_its_name_stands_for_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert install_models(Settings(model=(Path("starter"), Path("own")))).model == (STARTER_MODEL, Path("own"))
    Path("starter").mkdir()
    assert install_models(Settings(model=(Path("starter"),))).model == (Path("starter"),)
