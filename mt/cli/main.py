"""The program `mt-service VERB` and the list of its verbs. Only the module of the requested verb is imported."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from mt.cli.command import report_missing
from mt.errors import did_you_mean
from mt.processes import drop_unread_errors

VERBS = {
    "fetch": ("fetch", "write the embedded corpus, or download a public one"),
    "prepare": ("prepare", "clean and tokenize the corpora of a recipe"),
    "train": ("train", "train a model from a recipe"),
    "build": ("build", "build the best models from corpora: teachers, students, report"),
    "evaluate": ("evaluate", "score a model: BLEU, chrF2, TER"),
    "translate": ("translate", "translate a file or standard input"),
    "serve": ("serve", "serve models over HTTP"),
    "models": ("models", "list models that can be imported, and the installed ones"),
    "import": ("import_model", "convert a model of Marian or Hugging Face"),
    "export": ("export", "convert a model for CTranslate2 or transformers"),
    "calibrate": ("calibrate", "fit a model's confidence and check int8 on parallel text"),
    "shortlist": ("shortlist", "compute a vocabulary shortlist for faster decoding on a CPU"),
    "shrink": ("shrink", "cut layers or vocabulary of a model to make a student"),
    "distil": ("distil", "build a training corpus from n-best lists of teacher models"),
    "train-lm": ("train_lm", "train a language model of bytes on any text file"),
    "generate": ("generate", "continue a text with a language model of bytes"),
    "explain": ("explain", "show how a model translates a sentence: pictures and an HTML page"),
}
"""Module of this package and one-line description of each verb. A package of EXTENSIONS adds the verbs of its VERBS."""

EXTENSIONS = ("service.verbs",)


def all_verbs() -> dict[str, tuple[str, str]]:
    """Return the module and the one-line description of each verb, with the verbs of EXTENSIONS."""
    verbs = {verb: (f"mt.cli.{module}", description) for verb, (module, description) in VERBS.items()}
    for package in EXTENSIONS:
        verbs |= import_module(package).VERBS
    return verbs


def main(argv: Sequence[str] | None = None) -> int:
    """Run the verb `argv[0]` with all further arguments, or list the verbs. Return the exit status."""
    drop_unread_errors()
    arguments = sys.argv[1:] if argv is None else list(argv)
    if not arguments or arguments[0] in ("-h", "--help", "--version"):
        print(f"mt-service {version('mt-service')}" if arguments[:1] == ["--version"] else overview())
        return 0
    verb, *rest = arguments
    verbs = all_verbs()
    if verb not in verbs:
        print(f"error: unknown verb {verb!r}{did_you_mean(verb, verbs)}\n\n{overview()}", file=sys.stderr)
        return 2
    try:
        module = import_module(verbs[verb][0])
    except ModuleNotFoundError as error:
        report_missing(error)
        return 2
    return int(module.main(rest))


def overview() -> str:
    listed = "\n".join(f"  {verb:12} {description}" for verb, (_, description) in all_verbs().items())
    return f"usage: mt-service VERB [options] | --version\n\n{listed}\n\n`mt-service VERB --help` describes a verb."
