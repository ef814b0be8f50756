"""`mt-service export` as a user types it."""

from pathlib import Path

import pytest

from mt.checkpoint import read_description
from mt.cli.export import main


@pytest.mark.parametrize(("tool", "package"), [("ctranslate2", "ctranslate2"), ("huggingface", "transformers")])
def test_a_model_is_exported(small_model: Path, tmp_path: Path, tool: str, package: str) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed (extra: interop)")
    assert main([str(small_model), str(tmp_path / "out"), "--to", tool]) == 0
    assert "# small for " in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_the_starter_model_is_exported_by_its_name(tmp_path: Path) -> None:
    assert main(["starter", str(tmp_path / "out"), "--to", "int8"]) == 0
    assert read_description(tmp_path / "out").name == "starter"
