"""`mt-service export` as a user types it."""

from pathlib import Path

import pytest

from mt.cli.export import main


@pytest.mark.parametrize(("tool", "package"), [("ctranslate2", "ctranslate2"), ("huggingface", "transformers")])
def test_a_model_is_exported(small_model: Path, tmp_path: Path, tool: str, package: str) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed (extra: interop)")
    assert main([str(small_model), str(tmp_path / "out"), "--to", tool]) == 0
    assert "# small for " in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_what_cannot_be_done_is_said(small_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(small_model), str(small_model), "--to", "huggingface"]) == 2
    assert "is or contains the model to convert" in capsys.readouterr().err
