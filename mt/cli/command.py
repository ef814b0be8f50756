"""Shared conventions of the verbs: program names, help texts and exit statuses."""

import argparse
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Protocol

from rich.console import Console

from mt.arguments import ArgumentParser
from mt.bundled import STARTER_MODEL
from mt.errors import MTError
from mt.interop.catalogue import model_path
from mt.languages import language_named

OPTIONAL = dict.fromkeys(("matplotlib", "tensorboard", "torch"), "'mt-service[training]'")
"""Argument of `pip install` that installs each optional package. Serving and translating on a CPU need none of them."""

RUNS = Path("runs")  # folder of runs and prepared data
UNLIMITED_WIDTH = 100_000  # columns
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all control characters but tabs and line breaks


class Main(Protocol):
    """Type of the function `main` of a verb, after it was wrapped by `command`."""

    def __call__(self, argv: Sequence[str] | None = None) -> int:
        """Run the verb with the arguments `argv` (default: sys.argv) and return the exit status."""
        ...


def command(main: Callable[[Sequence[str]], int]) -> Main:
    """Return `main` with error handling: print an MTError or OSError and return status 2; return 130 for Ctrl-C."""

    @wraps(main)
    def run(argv: Sequence[str] | None = None) -> int:
        try:
            return main(sys.argv[1:] if argv is None else argv)
        except BrokenPipeError:  # the reader of the output has ended, such as `head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes stdout at its exit
            return 128 + signal.SIGPIPE
        except (MTError, OSError) as error:  # OSError: for example a full disk, or a folder without write permission
            report_error(str(error))
            return 2
        except ModuleNotFoundError as error:
            report_missing(error)
            return 2
        except KeyboardInterrupt:
            Console(stderr=True).print("stopped", style="yellow")
            return 130

    return run


def report_missing(error: ModuleNotFoundError) -> None:
    """Print how to install the missing package, if it is optional. Otherwise, raise `error` again."""
    if error.name not in OPTIONAL:
        raise error
    report_error(f"{error.name} is not installed. Run pip install {OPTIONAL[error.name]}")


def report_error(message: str) -> None:
    _print(Console(stderr=True), f"error: {message}", "red")


def recipe_path(text: str) -> Path:
    """Return the path of a recipe: `text`, or the recipe of this name in the package if no such file exists."""
    path = Path(text)
    installed = Path(__file__).parents[1] / "recipes" / path.name
    return installed if path.name == text and not path.exists() and installed.is_file() else path


def own_model(text: str) -> Path:
    """Return the path of a model directory that a verb writes into. Raises: ArgumentTypeError for the starter model."""
    if model_path(text).resolve() == STARTER_MODEL.resolve():
        raise argparse.ArgumentTypeError(f"{text} belongs to the package; copy the model first, from {STARTER_MODEL}")
    return model_path(text)


def language(text: str) -> str:
    """Return the value of `--source` or `--target`. Raises: ArgumentTypeError if it names a file and no language."""
    if Path(text).is_file() and not language_named(text):
        raise argparse.ArgumentTypeError(f"{text} is a file; accepted: a language. Give files as FILE or --source-file")
    return text


def program_name(verb: str) -> str:
    """Return the command with which the user started `verb`, such as "mt-service train", for usage lines."""
    started = Path(sys.argv[0])
    if started.name == "__main__.py" and started.parent.name == "mt":
        return f"python -m mt {verb}"
    if started.suffix == ".py" and started.parent.name == "scripts":
        return f"python scripts/{started.name}"
    return f"mt-service {verb}"


class CommandParser(ArgumentParser):
    """Argument parser of a verb. The help lists the options in the group `common` before those in the group `more`."""

    def __init__(self, verb: str, description: str | None) -> None:
        super().__init__(
            prog=program_name(verb),
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            add_help=False,
        )
        self.common = self.add_argument_group("common options")
        self.more = self.add_argument_group("more options")
        self.more.add_argument("-h", "--help", action="help", help="show this help")

    def add_actions(self) -> "argparse._SubParsersAction[ArgumentParser]":
        """Add the required argument ACTION. Return an object whose method `add_parser` defines an action."""
        return self.add_subparsers(
            dest="action", required=True, title="actions", metavar="ACTION", parser_class=ArgumentParser
        )

    def add_model(self) -> None:
        """Add `--model`, by default MT_MODEL in the environment or else the starter model."""
        self.common.add_argument(
            "--model",
            type=model_path,
            default=os.environ.get("MT_MODEL") or STARTER_MODEL.name,
            metavar="MODEL",
            help="model directory (default: MT_MODEL in the environment, or the starter model)",
        )

    def add_languages(self) -> None:
        for side in ("source", "target"):
            text = f"{side} language, if the model has several"
            self.common.add_argument(f"--{side}", type=language, metavar="L", help=text)

    def add_test_files(self, what: str) -> None:
        """Add `--source-file` and `--reference-file`, the two sides of `what`, such as "test set"."""
        self.common.add_argument(
            "--source-file", type=Path, metavar="FILE", help=f"{what}: one sentence a line; plain, .gz or .xz"
        )
        self.common.add_argument(
            "--reference-file", type=Path, metavar="FILE", help=f"{what}: reference translations, line by line"
        )

    def add_device(self) -> None:
        self.common.add_argument(
            "--device", default="auto", metavar="NAME", help="auto, cpu, cuda, cuda:1 ... (default: %(default)s)"
        )

    def add_search(self) -> None:
        add = self.more.add_argument
        add("--beam-size", type=int, metavar="N", help="hypotheses of beam search; 1 is greedy (default: the model's)")
        add("--length-penalty", type=float, metavar="X", help="higher favours longer output (default: the model's)")

    def add_precision(self) -> None:
        self.more.add_argument(
            "--dtype", default="auto", metavar="NAME", help="auto, float32, bfloat16 or int8 (default: %(default)s)"
        )
        self.more.add_argument(
            "--backend", default="auto", metavar="NAME", help="auto, cpu, cuda or torch (default: %(default)s)"
        )

    def add_ensemble(self) -> None:
        self.more.add_argument(
            "--ensemble",
            type=model_path,
            nargs="+",
            default=[],
            metavar="MODEL",
            help="average the model's probabilities with those of these models; all must have the same vocabulary",
        )


def stderr_console() -> Console:
    """Return a console that prints on stderr. If stderr is not a terminal, lines are not wrapped."""
    return Console(stderr=True, markup=False, width=None if sys.stderr.isatty() else UNLIMITED_WIDTH)


def tell(console: Console, text: str) -> None:
    """Print a text as it is: without markup, and without line breaks at the width of the terminal.

    Control characters are escaped: in the name of a file, they would control the terminal.
    """
    _print(console, text)


def warn(console: Console, text: str) -> None:
    _print(console, f"warning: {text}", "yellow")


def _print(console: Console, text: str, style: str = "") -> None:
    shown = _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)
    console.print(shown, style=style, markup=False, highlight=False, soft_wrap=True)


def count(text: str) -> int:
    """Return the value of an option as an integer. Raises: ArgumentTypeError if it is less than 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}; accepted: a number of at least 1")
    return value
