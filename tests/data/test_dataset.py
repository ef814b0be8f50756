import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import get_ident

import numpy as np
import pytest

from mt.config import Recipe
from mt.data.dataset import ParallelDataset, PreparedData, Ragged, RaggedWriter, load_prepared
from mt.data.preparation import prepare, prepared_folder
from mt.errors import DataError
from mt.files import lock
from mt.languages import DirectionSet
from mt.tokenizer import Tokenizer
from tests.data.conftest import counted_pairs

Build = Callable[..., Recipe]
Prepared = Callable[..., PreparedData]
ROWS = [[1, 2, 3], [], [200], [], [7, 7]]


def split_off(count: int) -> dict[str, dict[str, object]]:
    return {"data": {"train": ("plain.{language}",), "valid": (), "split_validation": count}}


@pytest.fixture
def prepared(tmp_path: Path, tiny_recipe: Build) -> Prepared:
    return lambda *args, **sections: load_prepared(prepare(tiny_recipe(*args, **sections), tmp_path / "prepared"))


def pairs_of(dataset: ParallelDataset) -> list[tuple[str, str]]:
    everything = range(len(dataset))
    return list(zip(dataset.texts("source", everything), dataset.texts("target", everything), strict=True))


def decoded(dataset: ParallelDataset, tokenizer: Tokenizer) -> list[tuple[str, str]]:
    pairs = ((dataset.source[index], dataset.target[index]) for index in range(len(dataset)))
    return [(tokenizer.decode(source.tolist()), tokenizer.decode(target.tolist())) for source, target in pairs]


@pytest.mark.parametrize(
    ("dtype", "rows"), [*((dtype, ROWS) for dtype in (np.uint8, np.uint16, np.int32)), (np.uint8, []), (np.uint8, [[]])]
)
def test_ragged_gives_back_what_was_written(tmp_path: Path, dtype: type[np.generic], rows: list[list[int]]) -> None:
    writer = RaggedWriter(tmp_path / "rows", dtype)
    writer.append(np.array(row, dtype) for row in rows[:2])
    writer.append(np.array(row, np.int64) for row in rows[2:])
    writer.close()
    ragged = Ragged(tmp_path / "rows")
    assert [ragged[index].tolist() for index in range(len(ragged))] == rows
    assert ragged.lengths.tolist() == list(map(len, rows))
    if rows == ROWS:
        taken, lengths = ragged.take(np.array([4, 1, 0, 4]))
        assert (taken.tolist(), lengths.tolist()) == ([7, 7, 1, 2, 3, 7, 7], [2, 0, 3, 2])
    assert ragged.data.dtype == dtype
    assert isinstance(ragged.data, np.memmap)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.data.npy", "rows.offsets.npy"]


def test_prepared_data_is_the_corpus(tmp_path: Path, tiny_recipe: Build) -> None:
    stages: list[tuple[str, int]] = []
    folder = prepare(tiny_recipe(), tmp_path / "prepared", progress=lambda stage, pairs: stages.append((stage, pairs)))
    data = load_prepared(folder)
    assert pairs_of(data.train) == counted_pairs(0, 50)
    assert decoded(data.train, data.tokenizer) == counted_pairs(0, 50)
    assert pairs_of(data.valid) == [("two", "zwei"), ("", ""), ("eight eight", "acht acht")]  # never cleaned
    assert decoded(data.valid, data.tokenizer) == pairs_of(data.valid)
    assert data.train.direction.tolist() == [0] * 50
    assert data.train.corpus.tolist() == [0] * 30 + [1] * 15 + [2] * 5
    assert data.train.source.lengths.tolist() == [len(data.train.source[index]) for index in range(50)]
    assert data.meta["pairs"] == {"train": 50, "valid": 3}
    assert data.meta["vocabulary_size"] == len(data.tokenizer)
    assert ("encode train", 50) in stages and ("encode valid", 3) in stages


def test_prepared_text_is_normalised_and_has_no_copies(prepared: Prepared, tiny_corpus: Path) -> None:
    dirty = "\ufeffna\u0308her  be\u00adi 1\u202f000\u00a0ｋｍ"
    (tiny_corpus / "dirty.tsv").write_text(f"{dirty}\t{dirty}\u00a0!\n", encoding="utf-8")
    corpus = {"path": "dirty.tsv", "columns": ("en", "de")}
    data = prepared(data={"train": ("plain.{language}", corpus)}, cleaning={"drop_identical": False})
    assert pairs_of(data.train)[30:] == [("näher bei 1 000 km", "näher bei 1 000 km !")]
    (tiny_corpus / "back.tsv").write_text("one\teins\nseven seven\tsieben sieben\n", encoding="utf-8")
    back = {"path": "back.tsv", "columns": ("en", "de"), "source_tag": "bt"}
    data = prepared(data={"train": ("plain.{language}", back)})
    assert pairs_of(data.train)[30:] == [("seven seven", "sieben sieben")], "one is the first pair of the other"
    assert data.train.corpus.tolist() == [0] * 30 + [1]


def test_every_dropped_pair_is_listed(tmp_path: Path, tiny_recipe: Build, tiny_corpus: Path) -> None:
    rows = ["de\ten", *(f"\tline {number}" for number in range(2, 7)), "drei\tthree", "neun\tnine"]
    (tiny_corpus / "header.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    corpus = {"path": "header.tsv", "columns": ("de", "en")}
    folder = prepare(tiny_recipe(data={"train": (corpus,)}), tmp_path / "prepared")
    dropped = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["dropped"]["en-de"]
    counts = [(row["reason"], row["count"], len(row["examples"])) for row in dropped]
    assert counts == [("empty", 5, 3), ("header row", 1, 1)]
    lines = (folder / "dropped.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0].split("\t") == ["file", "line", "direction", "reason", "source", "target"]
    path = str(tiny_corpus / "header.tsv")
    assert [line.split("\t") for line in lines[1:]] == [
        [path, "1", "en-de", "header row", "en", "de"],
        *([path, str(number), "en-de", "empty", f"line {number}", ""] for number in range(2, 7)),
    ]


def test_a_header_of_a_validation_set_is_refused(tmp_path: Path, tiny_recipe: Build, tiny_corpus: Path) -> None:
    (tiny_corpus / "valid.tsv").write_text("target\tsource\nzwei\ttwo\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"valid\.tsv:1: this is a header row: 'source', 'target'"):
        prepare(tiny_recipe(), tmp_path / "prepared")


ENGLISH = [f"The {animal} sleeps under the old tree in the garden." for animal in ("dog", "cat", "horse", "bird")]
GERMAN = [f"{animal} schläft unter dem alten Baum im Garten." for animal in ("Der Hund", "Die Katze", "Das Pferd")]


def test_a_warning_names_columns_in_another_language(prepared: Prepared, tiny_corpus: Path) -> None:
    pairs = [f"{source}\t{target}\n" for source in ENGLISH for target in GERMAN]
    (tiny_corpus / "some.tsv").write_text("".join(pairs), encoding="utf-8")
    corpus = {"path": "some.tsv", "columns": ("en", "fr")}
    warning, leak = prepared(("en-fr",), data={"train": (corpus,), "valid": (corpus,)}).meta["warnings"]
    assert "some.tsv: column 2 of 'fr' reads as German" in warning and "4 of 4 validation sources" in leak


def test_a_validation_set_is_split_off_by_seed(tmp_path: Path, tiny_recipe: Build, tiny_corpus: Path) -> None:
    plain = counted_pairs(0, 30)
    (tiny_corpus / "again.tsv").write_text("".join(f"{en}\t{de} ja\n" for en, de in plain), encoding="utf-8")
    back = {"path": "table.tsv.xz", "columns": ("de", "en"), "source_tag": "bt"}
    train = ("plain.{language}", {"path": "again.tsv", "columns": ("en", "de")}, back)

    def parts(seed: int, directions: tuple[str, ...] = ("en-de",)) -> tuple[ParallelDataset, ParallelDataset]:
        recipe = tiny_recipe(directions, data={"train": train, "valid": (), "split_validation": 7})
        data = load_prepared(prepare(recipe.model_copy(update={"seed": seed}), tmp_path / "prepared"))
        return data.train, data.valid

    rest, valid = parts(1)
    assert len(valid) == 7 and set(pairs_of(valid)) <= set(plain), "the first pair of a source, of untagged corpora"
    sources = {source for source, _ in pairs_of(valid)}
    assert len(sources) == 7 and not sources & {source for source, _ in pairs_of(rest)}
    assert len(rest) == 2 * 30 + 5 - 2 * 7 and len(rest) == len(rest.source) == len(rest.corpus)
    assert pairs_of(parts(2)[1]) != pairs_of(valid)
    rest, valid = parts(1, ("en-de", "de-en"))
    assert np.bincount(valid.direction).tolist() == [7, 7]
    seen = {text for pair in pairs_of(rest) for text in pair}
    assert not seen & {source for source, _ in pairs_of(valid)}, "in neither direction"


VALID = {"path": "valid.tsv", "columns": ("de", "en")}


@pytest.mark.parametrize(
    ("directions", "valid", "said"),
    [
        (("en-de",), ("plain.{language}",), ["30 of 30 validation sources are"]),
        (("en-de", "de-en"), ("packed.{language}.gz",), ["30 of 30 validation sources are"]),
        (("en-de",), (VALID, "packed.{language}.gz"), ["15 of 18 validation sources are"]),
        (("en-de",), (VALID,), []),
    ],
)
def test_validation_sources_in_the_training_text_are_counted(
    prepared: Prepared, directions: tuple[str, ...], valid: tuple[object, ...], said: list[str]
) -> None:
    warnings = prepared(directions, data={"valid": valid}).meta["warnings"]
    assert [warning.partition(" in the ")[0] for warning in warnings] == said
    assert all("set data.split_validation and no data.valid" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("sections", "problem"),
    [
        (split_off(30), "data.split_validation is 30, but a direction has 30 different sources"),
        (split_off(1000), "data.split_validation is 1000, but a direction has 30 different sources"),
        ({"cleaning": {"max_characters": 1}}, "no train pairs are left for en-de"),
    ],
)
def test_too_few_pairs(
    tmp_path: Path, tiny_recipe: Build, sections: dict[str, dict[str, object]], problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        prepare(tiny_recipe(**sections), tmp_path / "prepared")
    assert list((tmp_path / "prepared").iterdir()) == []


def test_who_waits_for_prepared_data_does_not_make_them_again(tmp_path: Path, tiny_recipe: Build) -> None:
    makers: set[int] = set()

    def note(stage: str, pairs: int) -> None:
        makers.add(get_ident())

    folder = prepared_folder(tiny_recipe(), tmp_path / "prepared")
    folder.parent.mkdir()
    with ThreadPoolExecutor(2) as threads:
        with lock(folder):
            both = [threads.submit(prepare, tiny_recipe(), tmp_path / "prepared", 1, note) for _ in range(2)]
            assert not wait(both, 0.2).done
        assert [future.result() for future in both] == [folder] * 2
    assert len(makers) == 1
    assert pairs_of(load_prepared(folder).train) == counted_pairs(0, 50)
    assert [path.name for path in (tmp_path / "prepared").iterdir()] == [folder.name]


def test_a_corpus_may_teach_one_direction_only(prepared: Prepared) -> None:
    plain = {"path": "plain.{language}", "directions": ("de-en",)}
    table = {"path": "table.tsv.xz", "columns": ("de", "en")}
    train = prepared(("en-de", "de-en"), data={"train": (plain, table)}).train
    existing = counted_pairs(45, 50)
    back = [(german, english) for english, german in [*counted_pairs(0, 30), *existing]]
    assert pairs_of(train) == [*existing, *back]
    assert train.direction.tolist() == [0] * 5 + [1] * 35
    assert train.corpus.tolist() == [1] * 5 + [0] * 30 + [1] * 5


def test_files_of_untaught_directions(
    prepared: Prepared, tmp_path: Path, tiny_recipe: Build, tiny_corpus: Path
) -> None:
    table = {"path": "french.tsv", "columns": ("en", "fr")}
    (tiny_corpus / "french.tsv").write_text("two\tdeux\n", encoding="utf-8")
    valid = ({"path": "valid.tsv", "columns": ("de", "en")}, table)
    plain = {"path": "plain.{language}", "directions": ("en-de",)}
    assert len(prepared(("en-de", "en-fr"), data={"train": (plain, table), "valid": valid}).train) == 31
    everywhere = tiny_recipe(("en-de", "en-fr"), data={"train": ("plain.{language}", table), "valid": valid})
    with pytest.raises(DataError, match=r"plain\.fr"):
        prepare(everywhere, tmp_path / "prepared")


def test_the_folder_name_depends_on_recipe_and_corpora(tmp_path: Path, tiny_recipe: Build, tiny_corpus: Path) -> None:
    def name(recipe: Recipe) -> str:
        return prepared_folder(recipe, tmp_path).name

    plain = name(tiny_recipe())
    assert plain.startswith("tiny-en-de-")
    first, *others = tiny_recipe().data.train

    def with_first(**changes: object) -> tuple[object, ...]:
        return (first.model_copy(update=changes), *others)

    equal: list[dict[str, dict[str, object]]] = [
        {},
        {"model": {"size": "base"}, "training": {"learning_rate": 0.5}},
        {"data": {"train": with_first(weight=2), "temperature": 5}},  # data are mixed as batches are made
    ]
    assert {name(tiny_recipe(**sections)) for sections in equal} == {plain}
    different: list[dict[str, dict[str, object]]] = [
        {"tokenizer": {"vocabulary_size": 321}},
        {"data": {"valid": (), "split_validation": 5}},
        {"data": {"valid": (), "split_validation": 6}},
        {"cleaning": {"max_words": 7}},
        {"data": {"train": ("plain.{language}",)}},
        {"data": {"train": with_first(source_tag="bt")}},
        {"data": {"train": with_first(directions=DirectionSet.parse(["en-de"]))}},
    ]
    names = {plain, name(tiny_recipe(("de-en",))), *(name(tiny_recipe(**sections)) for sections in different)}
    file = tiny_corpus / "plain.en"
    os.utime(file, (1, 1))
    names.add(name(tiny_recipe()))
    file.write_bytes(file.read_bytes() + b"one\n")
    os.utime(file, (1, 1))
    names.add(name(tiny_recipe()))
    assert len(names) == 11


def test_the_digest_is_that_of_what_was_read(tmp_path: Path, tiny_recipe: Build, tiny_corpus: Path) -> None:
    def digest(under: str) -> object:
        return load_prepared(prepare(tiny_recipe(), tmp_path / under)).meta["digest"]

    first = digest("prepared")
    os.utime(tiny_corpus / "plain.en", (1, 1))
    assert digest("prepared") == digest("elsewhere") == first
    lines = (tiny_corpus / "plain.en").read_text(encoding="utf-8").splitlines(keepends=True)
    (tiny_corpus / "plain.en").write_text("".join([lines[1], lines[0], *lines[2:]]), encoding="utf-8")
    assert digest("prepared") != first
