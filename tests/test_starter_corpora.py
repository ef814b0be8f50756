"""scripts/starter_corpora.py: which line of a corpus is in which file."""

import lzma
from pathlib import Path

import pytest

from mt.errors import DataError
from mt.recipe import load_recipe
from scripts.starter_corpora import CorpusPair, fragments, make, validation, write_corpora

TRAIN = {
    "tatoeba/train.en-de": [
        "Tom is here.\tTom ist hier.",
        "Go away!\tGeh weg!",
        "I see the tree.\tIch sehe den Baum.",
        "I saw the tree.\tIch sah den Baum.",
        "I see a house.\tIch sehe ein Haus.",
    ],
    "tatoeba/train.en-fr": [
        "Tom is here.\tTom est ici.",
        "Go away!\tVa-t'en !",
        "I see the tree.\tJe vois l'arbre.",
        "I see a house.\tJe vois une maison.",
    ],
    "docs/train.en-de": ["Note: Save the file.\tHinweis: Speichern Sie die Datei.", "Only here.\tNur hier."],
    "docs/train.en-fr": ["Note: Save the file.\tRemarque : Enregistrez le fichier."],
    "laws/train.en-fr": ["The Act\tLa Loi", "The Act has  five words.\tLa Loi a cinq mots."],
    "web/train.en-de": [
        "It was written by Wellnhofer .\tEs wurde von Wellnhofer geschrieben .\twebwml-old",
        "Warsaw\tWarschau\tgeo",
        "A river.\tEin Fluss.\tmlqe",
    ],
    "web/train.en-fr": [
        "It was written by Wellnhofer .\tCela vient de Wellnhofer .\twebwml-mit",
        "Is it free ?\tEst-ce libre ?\twebwml-mit",
        "Warsaw\tVarsovie\tgeo",
        "The goals.\tLes objectifs.\tsdg",
    ],
}
DEVELOPMENT = {
    "tatoeba/dev.en-de": ["I see it.\tIch sehe ein Haus.", "Leave!\tGeh weg!", "I live here.\tIch wohne hier gern."],
    "docs/dev.en-fr": ["I see the tree.\tUn arbre."],
    "web/dev.en-de": ["My bike is new.\tMein Rad ist neu.\tmlqe"],
    "web/dev.en-fr": ["My bike is new.\tMon vélo est neuf.\tmlqe"],
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("corpora")
    for name, lines in (TRAIN | DEVELOPMENT).items():
        path = root / f"{name}.tsv.xz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode()))
    return root


@pytest.fixture(scope="module")
def out(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("starter")
    write_corpora(data, folder)
    return folder


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # An English side or a longer German side of a development set leaves, a short one stays.
        ("tatoeba.en-de", ["Tom is here.\tTom ist hier.", "Go away!\tGeh weg!", "I saw the tree.\tIch sah den Baum."]),
        ("tatoeba.en-fr", ["Tom is here.\tTom est ici.", "Go away!\tVa-t'en !", "I see a house.\tJe vois une maison."]),
        ("tatoeba.de-fr", ["Tom ist hier.\tTom est ici.", "Geh weg!\tVa-t'en !"]),
        ("docs.en-de", ["Note: Save the file.\tHinweis: Speichern Sie die Datei.", "Only here.\tNur hier."]),
        ("laws.en-fr", ["The Act has five words.\tLa Loi a cinq mots."]),
        ("debian.en-de", ["It was written by Wellnhofer.\tEs wurde von Wellnhofer geschrieben."]),
        ("debian.en-fr", ["It was written by Wellnhofer.\tCela vient de Wellnhofer.", "Is it free?\tEst-ce libre ?"]),
        ("mlqe.en-de", ["A river.\tEin Fluss."]),
        ("other.en-fr", ["The goals.\tLes objectifs."]),
        ("lexicon.de-fr", ["Warschau\tVarsovie"]),
        ("copies.en-de", ["Wellnhofer is here.\tWellnhofer ist hier.", "Wellnhofer\tWellnhofer"]),
        ("valid.de-fr", ["Mein Rad ist neu.\tMon vélo est neuf."]),
    ],
)
def test_lines_of_a_file(out: Path, name: str, expected: list[str]) -> None:
    assert (out / f"{name}.tsv").read_text(encoding="utf-8").splitlines() == expected


def test_files_have_fragments_and_phrases(out: Path) -> None:
    lines = (out / "fragments.en-de.tsv").read_text(encoding="utf-8").splitlines()
    forms = {"warsaw\tWarschau", "Warsaw.\tWarschau."}
    assert {"Note\tHinweis", "Save the file.\tSpeichern Sie die Datei."} <= {*lines} <= {*lines[:2], *forms}
    phrases = (out / "phrases.de-fr.tsv").read_text(encoding="utf-8").splitlines()
    assert {"Rechnungsnummer\tNuméro de facture", "Rechnungsnummer.\tNuméro de facture."} <= {*phrases}


def test_each_corpus_of_the_recipe_is_made(data: Path) -> None:
    text, development = make(data)
    files = (text | validation(development)).items()
    made = {f"starter/{name}.{languages}.tsv" for name, pairs in files for languages in pairs}
    recipe = load_recipe(Path("scripts/recipes/starter.toml"))
    assert {corpus.path for corpus in (*recipe.data.train, *recipe.data.valid)} <= made


def test_the_same_corpora_give_the_same_files(data: Path, out: Path, tmp_path: Path) -> None:
    write_corpora(data, tmp_path)
    first, second = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in (out, tmp_path))
    assert first == second


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (("Open: all day", "Offen: ganztags"), [("Open", "Offen"), ("all day", "ganztags")]),
        (("Rome – a city", "Rom – eine Stadt"), [("Rome", "Rom"), ("a city", "eine Stadt")]),
        (("Use **the key** now.", "Nutzen Sie **die Taste** nun."), [("the key", "die Taste")]),
        (("It is late (six).", "Es ist spät (sechs)."), [("six", "sechs")]),
        (("It rains. We go.", "Es regnet. Wir gehen."), [("It rains.", "Es regnet."), ("We go.", "Wir gehen.")]),
        (("It rains. We stay.", "Es regnet, wir bleiben."), []),  # another number of sentences
        (("Note: go", "Hinweis: Bitte gehen Sie nun weg"), [("Note", "Hinweis")]),  # other lengths
        (("See (https://a.example).", "Siehe (https://a.example)."), []),
    ],
)
def test_fragments(pair: CorpusPair, expected: list[CorpusPair]) -> None:
    assert list(fragments([pair], "en-de")) == expected


def test_an_unknown_source_of_web_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "train.en-de.tsv.xz").write_bytes(lzma.compress(b"A river.\tEin Fluss.\tnews\n"))
    with pytest.raises(DataError, match=r"web: the source 'news' is unknown; accepted: .*mlqe"):
        make(tmp_path)
