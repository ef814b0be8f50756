"""Mistakes on the command line: status 2, one message on stderr that says what is accepted, and nothing is written."""

from pathlib import Path

import pytest

from mt.cli.main import main
from tests.cli.test_distil import LISTS, REFERENCES, write
from tests.cli.test_translate_files import folder
from tests.conftest import sentences

DISTIL = "distil --source en --target de --out new/distilled "
EVALUATE = "evaluate --hypothesis-file out --tsv test.tsv "
SHARE = "accepted: above 0 and below 1, together with --backward"
LINES = "applies to lines of text; it cannot be combined with OUT"
MISTAKES = {
    "explian": "unknown verb 'explian' (did you mean explain?)",
    "translate --modle m": "unrecognized arguments: --modle (did you mean --model?)",
    "serve --prot=80": "unrecognized arguments: --prot (did you mean --port?)=80",
    "keys list --databse x": "unrecognized arguments: --databse (did you mean --database?) x",
    "translate --memory": "unrecognized arguments: --memory\n",
    "train r.toml --quux": "unrecognized arguments: --quux\n",
    # lines
    "translate --model MODEL no-such-file": "corpus files are missing",
    "translate --model docs in.en": "docs: no model here: the folder has no config.json",
    "translate --model nowhere in.en": "nowhere: no model here: there is no such folder",
    "translate --model opus-mt-en-de in.en": "no folder opus-mt-en-de; did you mean hub:opus-mt-en-de?",
    "translate --model hub:opus-mt-en-de in.en": "is not installed; run `mt-service import opus-mt-en-de` first",
    "translate --model MODEL in.en --source de": "this model has no direction from de; accepted: en-de",
    "translate --model MODEL in.en --ensemble MODEL SEVERAL": "several has another tokenizer",
    "translate --model MODEL --source in.en": "argument --source: in.en is a file; accepted: a language. Give",
    "distil n.jsonl --out x --source en --target ref.de": "argument --target: ref.de is a file; accepted: a language",
    "evaluate MODEL --source-file empty --reference-file empty": "empty and empty: no text; accepted: a corpus with",
    "translate MODEL in.en": "is a model; accepted: --model ",
    "translate in.docx": "in.docx is a document; name its translation, too: FILE OUT",
    "translate docs": "is a folder; name its translation, too: FILE OUT",
    "translate --model MODEL in.en --temperature 0.5": "temperature is 0.5 and sample is false; accepted: 1, or sample",
    "translate --model MODEL in.en --beam-size 0": "beam_size is 0; accepted: at least 1",
    "translate --source de --target en in.en --formality more": "language en does not support formality 'more'",
    "translate --model MODEL in.en --device toaster": "device 'toaster' cannot be used",
    "translate --model MODEL in.en --output /no/such/folder/out": "/no/such/folder/out: cannot be written",
    "translate --model MODEL --n-best 2": "--n-best requires --json",
    "translate --model MODEL --threads 0": "0; accepted: a number of at least 1",
    "translate --model MODEL --formality rude": "invalid choice: 'rude'",
    "translate --model MODEL --formality more --sample": "it cannot be combined with --sample",
    "translate --model MODEL --ray auto": "--ray translates a file, not stdin",
    # documents and folders
    "translate --model MODEL no-such.docx out.docx": "no-such.docx does not exist; accepted: a document or a folder",
    "translate --model MODEL docs/b/picture.png out.png": "has an unknown format; accepted: .arb, .csv",
    "translate --model MODEL docs/b/picture.png b.eml": "(save a mail as .html or .txt); lines of a text by --output",
    "translate --model MODEL docs docs/a.pdf": "is a file, but",
    "translate --model MODEL docs docs/out": "accepted: a folder outside of it",
    "translate --model MODEL docs/a.docx docs": "is the document itself; accepted: another file",
    "translate --model MODEL docs/a.docx out.odt": "accepted: .docx",
    "translate --model MODEL docs x --encoding klingon": "the encoding 'klingon' is unknown; accepted: such as utf-16",
    "translate --model MODEL docs x --source de": "this model has no direction from de; accepted: en-de",
    **{f"translate --model MODEL in.en x {option}": LINES for option in ("--json", "--sentences", "--output y")},
    # scores
    "evaluate": "a MODEL or --hypothesis-file FILE",
    "evaluate MODEL": "--source-file FILE and --reference-file FILE, or --tsv FILE",
    "evaluate --hypothesis-file out --tsv t --baseline MODEL": "--baseline requires a MODEL",
    "evaluate --hypothesis-file out --tsv t --ensemble MODEL": "--ensemble requires a MODEL",
    "evaluate MODEL --tsv t --worst -1": "at least 0",
    f"{EVALUATE} --columns en,fr --source en --target de": "--columns en,fr lacks de",
    f"{EVALUATE} --source de --target german": "'de-german' is not a direction",
    "calibrate MODEL --source-file in.en --reference-file in.en --source de": "no direction from de; accepted: en-de",
    "calibrate MODEL --tsv test.tsv en,de --source en": "--source and --target require --source-file",
    "calibrate MODEL --tsv test.tsv en,fr": "the languages are en,fr; accepted: the languages of one of en-de",
    "calibrate MODEL --tsv test.tsv en,de": "has 4 pairs with a source, too few to fit the confidence of the model; "
    "accepted: at least 200, better 1,000",
    "calibrate starter --tsv test.tsv en,de": "starter belongs to the package; copy the model first, from ",
    "shortlist starter --corpus test.tsv en,de": "starter belongs to the package; copy the model first, from ",
    # other verbs
    "fetch multi30": "did you mean multi30k?",
    "fetch tatoeba-en-xx": "tatoeba-en-de",
    "explain MODEL dog --only mask --output x": "--only is 'mask'; accepted: tokens-source, tokens-target,",
    "export MODEL x --to ctranslate2 --keep-float": "--keep-float requires --to int8",
    "explain SEVERAL dog --output x": "the model has several directions: give source and target; accepted: en-de",
    "explain": "accepted: a model directory and a sentence, or --example",
    **{f"{verb} opus-mt-en-de x --to int8": "did you mean hub:opus-mt-en-de?" for verb in ("explain", "export")},
    "export MODEL MODEL --to huggingface": "is or contains the model to convert",
    "shortlist MODEL --corpus test.tsv en,fr": "no corpus has en-de; accepted: files with both languages",
    "shortlist MODEL --corpus test.tsv en,de --frequent 0": "--frequent: 0; accepted: a number of at least 1",
    "shortlist MODEL": "one of the arguments --corpus --lex is required",
    "train-lm x --minutes 0 --d-model 30 --block 2": "--minutes is 0.0; accepted: above 0; --block is 2;",
    "train-lm x --d-model 30": "--d-model is 30; accepted: an even multiple of --heads, 4",
    "train-lm in.en --out docs": "no language model here",
    f"{DISTIL} n.jsonl --drop 0.1": SHARE,
    f"{DISTIL} n.jsonl --backward m --drop 1": SHARE,
    f"{DISTIL} n.jsonl --backward MODEL --drop 0.4 --device cpu": "translates en-de; accepted: a model of de-en",
    f"{DISTIL} n.jsonl m.jsonl": "m.jsonl differ from those in ",
    f"{DISTIL} n.jsonl --reference-file short.de": "n.jsonl has 4 lines, short.de has 1",
    f"{DISTIL} short.de": "line 1: JSON: Invalid JSON",
    f"{DISTIL} empty.jsonl": "no line has a translation",
    f"{DISTIL} n.jsonl --target en": "'en-en' is not a direction; accepted: two languages",
    f"{DISTIL} n.jsonl --out n.jsonl/x": "n.jsonl",
    f"{DISTIL} n.jsonl --reference-file ref.de --out ref": "ref.de; accepted: another path",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder(tmp_path / "docs")
    for name, lines in {
        "in.en": sentences(4),
        "out": ["Das Haus."] * 4,
        "test.tsv": [f"{text}\tDas Haus." for text in sentences(4)],
        "short.de": ["Eins"],
        "ref.de": REFERENCES,
        "empty": [],
    }.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    for name, lists in {"n": LISTS, "m": {"A bird.": ["Ein Vogel."]}, "empty": {"A dog.": [""]}}.items():
        write(tmp_path / f"{name}.jsonl", lists)
    return tmp_path


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_told_and_leaves_nothing(
    small_model: Path, several_directions: Path, here: Path, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    named = {"MODEL": small_model, "SEVERAL": several_directions}
    before = sorted(here.rglob("*"))
    try:
        status = main([str(named.get(word, word)) for word in words.split()])
    except SystemExit as ended:
        status = int(str(ended.code))
    printed = capfd.readouterr()
    assert (status, printed.out) == (2, "") and "error: " in printed.err and "Traceback" not in printed.err
    assert MISTAKES[words] in printed.err
    assert sorted(here.rglob("*")) == before
