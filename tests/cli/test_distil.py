"""`scripts/distil.py` as a user types it, on n-best lists that a person can judge."""

import json
from pathlib import Path

import pytest

from mt.cli import distil, translate
from mt.cli.distil import main
from mt.languages import Direction
from mt.scoring.pairs import ScoredPair
from tests.conftest import sentences

LISTS = {
    "A dog runs.": ["Ein Hund rennt.", "Ein Hund läuft schnell.", "Hund."],
    "A cat.": ["Eine Katze."],
    "": [""],
    "Two men eat lunch.": ["Zwei Männer essen.", "Zwei Männer essen Mittag."],
}
REFERENCES = ["Ein Hund läuft sehr schnell.", "Eine Katze.", "", "Zwei Männer essen Mittag."]
OTHER = {
    "A dog runs.": ["Der Hund läuft."],
    "A cat.": ["Katze."],
    "": [""],
    "Two men eat lunch.": ["Zwei Männer essen."],
}


def write(path: Path, lists: dict[str, list[str]]) -> Path:
    """As `translate.py --json` does: without alternatives where there is one translation."""
    lines = []
    for source, translations in lists.items():
        best = {"translation": translations[0], "score": -1.0}
        more = [{"translation": text, "score": -1.0} for text in translations]
        lines.append(json.dumps({"source": source, **best} | ({"alternatives": more} if len(more) > 1 else {})))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    path = tmp_path / "ref.de"
    path.write_text("".join(f"{line}\n" for line in REFERENCES), encoding="utf-8")
    return path


def distilled(folder: Path, *arguments: object) -> list[tuple[str, str]]:
    out = folder / "new" / "distilled"
    assert main([*map(str, arguments), "--direction", "en-de", "--out", str(out)]) == 0
    sides = (Path(f"{out}.{code}").read_text(encoding="utf-8").splitlines() for code in ("en", "de"))
    return list(zip(*sides, strict=True))


def test_the_nearest_to_the_reference(tmp_path: Path, reference: Path) -> None:
    assert distilled(tmp_path, write(tmp_path / "n.jsonl", LISTS), "--reference", reference) == [
        ("A dog runs.", "Ein Hund läuft schnell."),
        ("A cat.", "Eine Katze."),
        ("Two men eat lunch.", "Zwei Männer essen Mittag."),
    ]


def test_the_pairs_with_the_least_probable_sources_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Scorer:
        """The log-probability of a source is minus its number of characters, of one token."""

        @classmethod
        def load(cls, path: Path, device: str) -> "Scorer":
            return cls()

        def score(self, sources: list[str], targets: list[str], direction: Direction) -> list[ScoredPair]:
            assert str(direction) == "de-en"
            return [ScoredPair(-float(len(target)), (0.0,)) for target in targets]

    monkeypatch.setattr(distil, "PairScorer", Scorer)
    n_best = write(tmp_path / "n.jsonl", LISTS)
    kept = distilled(tmp_path, n_best, "--backward", "model", "--drop", "0.4")
    assert [source for source, _ in kept] == ["A dog runs.", "A cat."]


def test_a_reference_without_spaces_chooses_too(tmp_path: Path) -> None:
    (tmp_path / "ref.zh").write_text("我喜欢学习中文。\n", encoding="utf-8")
    file = write(tmp_path / "n.jsonl", {"I like to learn Chinese.": ["他去学校。", "我喜欢学习\n中文吗。"]})
    out = tmp_path / "out"
    assert main([str(file), "--reference", str(tmp_path / "ref.zh"), "--direction", "en-zh", "--out", str(out)]) == 0
    assert Path(f"{out}.zh").read_text(encoding="utf-8") == "我喜欢学习 中文吗。\n"


def test_several_teachers_and_no_reference(tmp_path: Path) -> None:
    files = [write(tmp_path / "n.jsonl", LISTS), write(tmp_path / "m.jsonl", OTHER)]
    assert distilled(tmp_path, *files) == [
        ("A dog runs.", "Ein Hund rennt."),
        ("A dog runs.", "Der Hund läuft."),
        ("A cat.", "Eine Katze."),
        ("A cat.", "Katze."),
        ("Two men eat lunch.", "Zwei Männer essen."),
    ]


def test_what_translate_writes_can_be_read(small_model: Path, tmp_path: Path) -> None:
    texts, written = tmp_path / "in.en", tmp_path / "out.jsonl"
    texts.write_text("".join(f"{text}\n" for text in sentences(5)))
    asked = [str(small_model), str(texts), "--sentences", "--n-best", "3", "--json", "--output", str(written)]
    assert translate.main(asked) == 0
    best = [json.loads(line)["translation"].strip() for line in written.read_text(encoding="utf-8").splitlines()]
    pairs = zip(sentences(5), best, strict=True)
    assert distilled(tmp_path, written) == [(source, text) for source, text in pairs if text]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["n.jsonl", "m.jsonl"], "m.jsonl differ from those in "),
        (["n.jsonl", "--reference", "short.de"], "n.jsonl has 4 lines, short.de has 1"),
        (["short.de"], "line 1: JSON: Invalid JSON"),
        (["empty.jsonl"], "no line has a translation"),
        (["n.jsonl", "--direction", "en-en"], "'en-en' is not a direction; accepted: two languages"),
        (["n.jsonl", "--direction", "german"], "'german' is not a direction; accepted: two languages, such as en-de"),
        (["n.jsonl", "--out", "n.jsonl/x"], "n.jsonl"),
        (["n.jsonl", "--reference", "ref.de", "--out", "ref"], "ref.de; accepted: another path"),
    ],
)
def test_errors(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "n.jsonl", LISTS)
    write(tmp_path / "m.jsonl", {"A bird.": ["Ein Vogel."]})
    write(tmp_path / "empty.jsonl", {"A dog.": [""]})
    (tmp_path / "short.de").write_text("Eins\n")
    (tmp_path / "ref.de").write_text("".join(f"{line}\n" for line in REFERENCES))
    assert main(["--direction", "en-de", "--out", "new/distilled", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and message in said
    assert not (tmp_path / "new").exists() and not (tmp_path / "ref.en").exists()
