import json
import os
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from mt import Translator
from mt.bundled import STARTER_MODEL
from mt.cli.translate import StreamOutput, main, open_output, parse, read_glossary
from mt.cli.translation_job import TranslationJob
from mt.data.resumable_file import ResumableFile
from mt.errors import DataError
from mt.text.terms import Terms
from tests.conftest import ROOT, sentences

FORMS = ("more", "prefer_less")
TEXTS = ["The dog sees the cat.", "", "  The cat draws the dog. ", " ", "The river."]


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """A file with empty lines, spaces at the ends and a Windows line end."""
    file = tmp_path / "in.en"
    file.write_bytes("\r\n".join(TEXTS).encode())
    return file


def output(capfd: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    assert main([str(argument) for argument in arguments]) == 0
    result = capfd.readouterr()
    assert result.err[:20] in ("", "sentences to check: ")  # small models leave some untranslated
    assert result.out.endswith("\n")
    return result.out[:-1].split("\n")


def test_lines_and_sentences(small_model: Path, lines: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    expected = [translation.text for translation in Translator.load(small_model, "cpu").translate_many(TEXTS)]
    assert output(capfd, "--model", small_model, lines) == expected
    assert expected[1] == "" and expected[2].startswith("  ")
    file = tmp_path / "in"
    file.write_text("The dog. The cat.\u2028The river.\n", encoding="utf-8")
    result = json.loads(output(capfd, "--model", small_model, file, "--json")[0])
    assert [sentence["source"] for sentence in result["sentences"]] == ["The dog.", "The cat.", "The river."]
    parts = [sentence["translation"] for sentence in result["sentences"]]
    assert result["translation"] == f"{parts[0]} {parts[1]}\u2028{parts[2]}"
    assert output(capfd, "--model", small_model, file) == [" ".join(parts)]
    assert "sentences" not in json.loads(output(capfd, "--model", small_model, file, "--json", "--sentences")[0])


def test_standard_input(small_model: Path) -> None:
    """The only test in a process of its own: the others call `main`."""
    text = "".join(line + "\n" for line in sentences(30))
    done = subprocess.run(
        [sys.executable, "scripts/translate.py", "--model", str(small_model), "--threads", "1"],
        cwd=ROOT,
        env=os.environ | {"LC_ALL": "C"},
        input=text.encode(),
        capture_output=True,
    )
    assert done.returncode == 0 and done.stderr.startswith(b"sentences to check: ")
    expected = Translator.load(small_model, "cpu").translate_many(sentences(30))
    assert done.stdout.decode("utf-8") == "".join(item.text + "\n" for item in expected)


def test_json(small_model: Path, lines: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "out.jsonl"
    assert main(["--model", str(small_model), str(lines), "--json", "--n-best", "4", "--output", str(file)]) == 0
    assert capfd.readouterr().out == ""
    first, empty, *_ = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert list(first) == ["source", "translation", "score", "log_probability", "alternatives"]
    assert first["source"] == "The dog sees the cat."
    assert len(first["alternatives"]) == 4
    assert first["alternatives"][0] == {name: first[name] for name in ("translation", "score", "log_probability")}
    assert empty == {"source": "", "translation": "", "score": 0.0, "log_probability": 0.0}
    translator = Translator.load(small_model, "cpu")
    options = replace(translator.options, beam_size=4, n_best=4)
    best = translator.translate("The dog sees the cat.", options=options)
    assert (first["translation"], first["score"]) == (best.text, best.score)


def test_search_options(small_model: Path, lines: Path, capfd: pytest.CaptureFixture[str]) -> None:
    translator, reference = (Translator.load(small_model, "cpu", backend=backend) for backend in ("cpu", "torch"))
    greedy = replace(translator.options, beam_size=1)
    drawn = replace(translator.options, sample=True, temperature=0.7, seed=5)
    searches = [("--beam-size 1", greedy, translator), ("--sample --temperature 0.7 --seed 5", drawn, reference)]
    for options, search, backend in searches:
        best = backend.translate("The dog sees the cat.", options=search).text
        assert output(capfd, "--model", small_model, lines, *options.split())[0] == best
    best = json.loads(output(capfd, "--model", small_model, lines, "--length-penalty", 0, "--json")[0])
    assert best["score"] == best["log_probability"]


@pytest.mark.parametrize("content", [b"dog\tPudel\n\nhorse\tGaul\n", "dog;Pudel\r\n;\r\nred;süß".encode("cp1252")])
def test_a_glossary(small_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], content: bytes) -> None:
    texts, terms = tmp_path / "in.en", tmp_path / "terms.csv"
    texts.write_text("The dog sees the cat.\nThe river.\n")
    terms.write_bytes(content)
    first, second = output(capfd, "--model", small_model, texts, "--glossary", terms)
    assert "Pudel" in first and second == Translator.load(small_model, "cpu").translate_many(["The river."])[0].text


@pytest.mark.parametrize("heading", ["Source\ttarget", "English;German", "Englisch,Deutsch", "EN\tde-DE", "de,en"])
def test_glossary_heading(small_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], heading: str) -> None:
    terms, row = tmp_path / "terms.csv", next(filter(heading.__contains__, "\t;,"))
    exchanged = heading == "de,en"
    terms.write_text(f"{heading}\n{'Pudel,dog' if exchanged else f'dog{row}Pudel'}\n")
    assert read_glossary(terms, "en", "de") == read_glossary(terms, "en") == Terms((("dog", "Pudel"),))
    message = f"{terms}:1: {heading.replace(row, ', ')} is a heading, no term"
    assert message + "; the first column has the translations" * exchanged + "\n" in capfd.readouterr().err
    if "ource" not in heading:
        assert len(read_glossary(terms, "en", "fr").glossary) == 2


def test_the_glossary_of_the_page_serves_here_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    terms = tmp_path / "company.csv"
    terms.write_text("term,translation,from,to\ndog,Pudel,eng,de-DE\nHund,dog,de,en\ndog,chien,en,fr\n")
    assert read_glossary(terms, "en", "de") == Terms((("dog", "Pudel"),))
    assert read_glossary(terms, "EN", "German") == Terms((("dog", "Pudel"),))
    told = capfd.readouterr().err.splitlines()
    assert told[0] == f"{terms}:1: term, translation, from, to is a heading, no term"
    assert told[1] == f"{terms}: terms of other languages, which are left out: 2"
    with pytest.raises(DataError, match=r"company\.csv:2: .* 2 columns, or 4 with --source and --target"):
        read_glossary(terms, "en", None)
    terms.write_text("dog,Pudel,en,de\ncat,Katze,en,ed\n")
    with pytest.raises(DataError, match=r"company\.csv:2: 'cat,Katze,en,ed'; accepted: .* the last two languages"):
        read_glossary(terms, "en", "de")


def test_formality_of_lines_and_documents(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text, file, written = "Where did you buy your coat?", tmp_path / "in.txt", tmp_path / "out.txt"
    file.write_text(f"{text}\n")
    starter = Translator.load(STARTER_MODEL, "cpu")  # the default of the command
    forms = {form: starter.translate(text, source="en", target="de", formality=form).text for form in FORMS}
    assert len(set(forms.values())) == len(FORMS)
    for form, translation in forms.items():
        options = ("--source", "en", "--target", "de", "--formality", form)
        assert output(capfd, file, *options) == [translation]
        assert main([str(file), str(written), *options]) == 0
        capfd.readouterr()
        assert written.read_text() == f"{translation}\n"


def test_a_glossary_that_cannot_be_used(small_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    texts, terms = tmp_path / "in.en", tmp_path / "terms.tsv"
    texts.write_text("The dog.\n")
    terms.write_text("dog\tPudel\ncat\ndog\tHund\n")
    assert main(["--model", str(small_model), str(texts), "--glossary", str(terms)]) == 2
    messages = capfd.readouterr().err.splitlines()
    assert messages[1:] == [
        f"  - {terms}:2: 'cat'; accepted: 2 columns, or 4 with --source and --target, the last two languages",
        f"  - {terms}:3: 'dog' is 'Hund' here and 'Pudel' in line 1",
    ]


def test_the_model_may_be_left_out(
    small_model: Path, lines: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = output(capfd, "--model", small_model, lines)
    monkeypatch.setenv("MT_MODEL", str(small_model))
    assert output(capfd, lines) == expected
    monkeypatch.delenv("MT_MODEL")
    lines.write_text("The dog sees the cat.\n")
    assert "Hund" in output(capfd, lines, "--source", "en", "--target", "de")[0]  # the starter model
    assert main([str(lines)]) == 2
    assert "the model has several directions: give source and target; accepted: en-de" in capfd.readouterr().err


def test_sentences_to_check(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    unknown, document = "The gizmo flumbered the wozzle.", tmp_path / "in.txt"
    document.write_text(f"Where is the station?\nGood morning. {unknown}\n" + f"{unknown}\n" * 10)
    languages = ["--source", "en", "--target", "de"]
    assert main([str(document), *languages, "--json"]) == 0
    result = capfd.readouterr()
    first, second, *_ = map(json.loads, result.out.splitlines())
    assert first["quality"] > 80 and "check" not in first
    assert [sentence.get("check") for sentence in second["sentences"]] == [None, "unlike the training text"]
    heading, *listed = result.err.splitlines()
    assert heading == "sentences to check: 11, the first 10" and len(listed) == 10
    assert listed[0].startswith(f"  line 2: unlike the training text: {unknown} -> ")
    assert main([str(document), str(tmp_path / "out.txt"), *languages]) == 0
    _, heading, *every, _ = capfd.readouterr().err.splitlines()
    assert heading == "sentences to check: 11" and len(every) == 11
    assert every[:10] == [f"  {document}: {line.split(': ', 1)[1]}" for line in listed]


def test_bad_lines_are_empty(small_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], poison: str) -> None:
    file = tmp_path / "in"
    file.write_bytes(b"The dog.\nThe \xff cat.\npoison\nThe river.")
    good = [item.text for item in Translator.load(small_model, "cpu").translate_many(["The dog.", "The river."])]
    assert main(["--model", str(small_model), str(file)]) == 3
    item = capfd.readouterr()
    assert item.out == f"{good[0]}\n\n\n{good[1]}\n"
    first, second, last = item.err.splitlines()
    assert first.startswith(f"{file}:2: not UTF-8 at byte 5 of the line")
    assert second.startswith(f"{file}:3: the text that begins 'poison' cannot be translated: ValueError: not this")
    assert last == "2 of 4 lines could not be translated and are empty"
    assert main(["--model", str(small_model), str(file), "--json"]) == 3
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert lines[1] == {"problem": first} and lines[2] == {"source": poison, "problem": second}
    assert lines[3]["translation"] == good[1]


def killed_after(arguments: list[str], part: Path, lines: int) -> None:
    """Run the script and kill it, with no chance to clean up, when it has written so many lines."""
    command = [sys.executable, "scripts/translate.py", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    while process.poll() is None and (not part.exists() or part.read_bytes().count(b"\n") < lines):
        time.sleep(0.005)
    process.kill()
    assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("change", ["--glossary in.en", "--formality more", "--sentences", "--json", "--beam-size 1"])
def test_another_job_does_not_resume(small_model: Path, lines: Path, change: str) -> None:
    def open_with(*more: str) -> AbstractContextManager[StreamOutput | ResumableFile]:
        options = parse(["--model", str(small_model), str(lines), "--output", f"{lines}.de", *more])
        return open_output(options, TranslationJob.load(options, Terms()))

    with open_with() as file:
        file.write("Der Hund.", problem=False)
    with pytest.raises(DataError, match="begun by another job"):
        open_with(*change.replace("in.en", str(lines)).split())


@pytest.mark.system
def test_killed_runs_resume(small_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file, expected, written = (tmp_path / name for name in ("in", "expected", "out"))
    part = tmp_path / "out.part"
    lines = [text.encode() for text in sentences(500)] * 3
    lines[250] = b"\xff"
    lines[1400] = b"The \xfe cat."
    file.write_bytes(b"\n".join(lines))
    arguments = ["--model", str(small_model), str(file), "--beam-size", "1", "--threads", "1", "--output"]
    assert main([*arguments, str(expected)]) == 3
    printed = capfd.readouterr().err.splitlines()[-1]
    assert printed == "2 of 1,500 lines could not be translated and are empty"
    for lines_before in (1, 500):
        killed_after([*arguments, str(written)], part, lines_before)
        assert not written.exists()
        assert part.read_bytes().count(b"\n") < 1500
        with part.open("ab") as cut:
            cut.write("half a line é".encode()[:-1])
    assert main([*arguments, str(written)]) == 3
    result = capfd.readouterr().err
    assert result.startswith("resuming after line ") and result.splitlines()[-1] == printed
    assert written.read_bytes() == expected.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["expected", "in", "out"]
