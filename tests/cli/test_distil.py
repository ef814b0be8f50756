"""`mt-service distil` as a user types it, on n-best lists that a person can judge."""

import json
from pathlib import Path

import pytest

from mt.cli import translate
from mt.cli.distil import main
from mt.languages import Direction
from mt.scoring.pair_filter import round_trip_scores
from mt.scoring.pairs import PairScorer
from tests.conftest import sentences, write_model

EN_DE = Direction("en", "de")

LISTS = {
    "A dog runs.": ["Ein Hund rennt.", "Ein Hund läuft schnell.", "Hund."],
    "A cat.": ["Eine Katze."],
    "": [""],
    "Two men eat lunch.": ["Zwei Männer essen.", "Zwei Männer essen Mittag."],
}
REFERENCES = ["Ein Hund läuft sehr schnell.", "Eine Katze.", "", "Zwei Männer essen Mittag."]
OTHER = dict(zip(LISTS, (["Der Hund läuft."], ["Katze."], [""], ["Zwei Männer essen."]), strict=True))


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
    assert main([*map(str, arguments), "--source", "en", "--target", "de", "--out", str(out)]) == 0
    sides = (Path(f"{out}.{code}").read_text(encoding="utf-8").splitlines() for code in ("en", "de"))
    return list(zip(*sides, strict=True))


def test_the_nearest_to_the_reference(tmp_path: Path, reference: Path) -> None:
    assert distilled(tmp_path, write(tmp_path / "n.jsonl", LISTS), "--reference-file", reference) == [
        ("A dog runs.", "Ein Hund läuft schnell."),
        ("A cat.", "Eine Katze."),
        ("Two men eat lunch.", "Zwei Männer essen Mittag."),
    ]


@pytest.fixture(scope="module")
def backward(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "backward", ["de-en"], seed=5)


def test_pairs_with_low_scores_are_dropped(backward: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = list(zip(sentences(12), sentences(12, seed=1), strict=True))
    n_best = write(tmp_path / "n.jsonl", {source: [target] for source, target in pairs})
    scores = round_trip_scores(PairScorer.load(backward, "cpu"), pairs, EN_DE)
    lowest = sorted(scores)[:4]
    expected = [pair for pair, score in zip(pairs, scores, strict=True) if score not in lowest]
    assert distilled(tmp_path, n_best, "--backward", backward, "--drop", "0.4", "--device", "cpu") == expected
    n_best, out = write(tmp_path / "n.jsonl", {"A dog.": ["Hund " * 300]}), tmp_path / "out"
    options = f"--source en --target de --out {out} --backward {backward} --drop 0.4 --device cpu"
    assert main([str(n_best), *options.split()]) == 2
    assert "all pairs are too long for --backward" in capsys.readouterr().err
    assert not Path(f"{out}.de").exists()


def test_several_teachers_and_no_reference(tmp_path: Path) -> None:
    files = [write(tmp_path / "n.jsonl", LISTS), write(tmp_path / "m.jsonl", OTHER)]
    assert distilled(tmp_path, *files) == [
        ("A dog runs.", "Ein Hund rennt."),
        ("A dog runs.", "Der Hund läuft."),
        ("A cat.", "Eine Katze."),
        ("A cat.", "Katze."),
        ("Two men eat lunch.", "Zwei Männer essen."),
    ]


def test_swapped_languages_are_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = "The children play in the garden behind the house", "Die Kinder spielen im Garten hinter dem Haus."
    lists = {f"{source} {number}.": [f"{number}. {target}"] for number in range(12)}
    nbest = write(tmp_path / "teacher.jsonl", lists)
    assert main([str(nbest), "--source", "de", "--target", "en", "--out", str(tmp_path / "out")]) == 0
    assert "are the languages swapped?" in capsys.readouterr().err.replace("\n", " ")


def test_what_translate_writes_can_be_read(small_model: Path, tmp_path: Path) -> None:
    texts, written = tmp_path / "in.en", tmp_path / "out.jsonl"
    texts.write_text("".join(f"{text}\n" for text in sentences(5)))
    options = f"--model {small_model} {texts} --sentences --n-best 3 --json --output {written}"
    assert translate.main(options.split()) == 0
    best = [json.loads(line)["translation"].strip() for line in written.read_text(encoding="utf-8").splitlines()]
    pairs = zip(sentences(5), best, strict=True)
    assert distilled(tmp_path, written) == [(source, text) for source, text in pairs if text]
