"""Loading of a model in a worker."""

import ctypes
from dataclasses import replace
from pathlib import Path
from shutil import copytree

from mt.checkpoint import load_model
from mt.kernels.shortlist import Shortlist, save_shortlist
from mt.tokenizer import EOS
from service.settings import Settings
from service.workers.messages import ModelSetup
from service.workers.worker_loop import load
from tests.kernels.conftest import CHECK
from tests.kernels.conftest import library as library


def test_a_served_model_uses_its_shortlist(library: ctypes.CDLL, small_model: Path, tmp_path: Path) -> None:
    model = Path(copytree(small_model, tmp_path / "model"))
    assert not load(ModelSetup(model, "cpu")).shortlist  # it has none
    tokenizer = load_model(model).tokenizer
    shortlist = Shortlist.build(tokenizer.pieces(range(len(tokenizer))), EOS, [], [])
    save_shortlist(model, replace(shortlist, check=CHECK), tokenizer)
    assert Settings().shortlist and load(ModelSetup(model, "cpu")).shortlist
    assert load(ModelSetup(model, "cpu", shortlist=Settings().shortlist)).shortlist
    assert not load(ModelSetup(model, "cpu", shortlist=False)).shortlist
