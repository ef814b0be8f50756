"""The image, built and checked by scripts/image.sh. Skipped where no container engine can work."""

import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.image, pytest.mark.slow]

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "image.sh"
NO_ENGINE = 77


def image(word: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", SCRIPT, word], capture_output=True, text=True)


def test_the_image_keeps_its_promises() -> None:
    built = image("build")
    if built.returncode == NO_ENGINE:
        pytest.skip(built.stderr.strip())
    assert built.returncode == 0, built.stderr
    done = image("check")
    print(built.stderr, built.stdout, done.stderr, done.stdout)
    assert done.returncode == 0, done.stderr
    assert "FAIL" not in done.stderr and done.stderr.count("\nok ") >= 15
