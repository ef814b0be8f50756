import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = runpy.run_path(str(ROOT / "scripts" / "packaging" / "reference.py"))


@pytest.mark.parametrize("name", REFERENCE["PAGES"])
def test_page_is_up_to_date(name: str) -> None:
    committed = (REFERENCE["FOLDER"] / name).read_text(encoding="utf-8")
    assert committed == REFERENCE["PAGES"][name]().rstrip() + "\n", "run: python scripts/packaging/reference.py"


@pytest.mark.parametrize(
    "row",
    [
        ("`en`", "English", "`eng_Latn`", "`__en__`", "`en_XX`", "`en`", "`EN`", "`EN-GB`, `EN-US`"),
        ("`pt-BR`", "Portuguese (Brazil)", "", "", "", "`pt-BR`, `pb`", "`PT`", "`PT-BR`"),
        ("`sr`", "Serbian", "`srp_Cyrl`", "`__sr__`", "", "`sr`", "`SR`", "`SR`"),
    ],
)
def test_codes_of_a_language(row: tuple[str, ...]) -> None:
    assert f"| {' | '.join(row)} |" in REFERENCE["languages_page"]().splitlines()
