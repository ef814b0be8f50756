"""Translation of the lines of a file in this process."""

import argparse
import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console

from mt.checkpoint import model_digest
from mt.cli.command import tell
from mt.data.corpus import Fault, read_lines_and_faults, read_stream_lines
from mt.decoding.options import SearchOptions
from mt.errors import DataError
from mt.pipeline.results import Failure, SentenceTranslation, Translation
from mt.pipeline.translator import Translator
from mt.text.formality import Formality, chosen_formality
from mt.text.terms import Terms

LISTED = 10  # sentences to check that are listed


@dataclass(frozen=True)
class OutputLine:
    """A line of output. `size` is the size of the input line in bytes.

    If the line could not be translated, `problem` is the reason, otherwise "". `doubts` describe sentences to check.
    """

    text: str
    problem: str
    size: int
    doubts: tuple[str, ...] = ()


class DoubtfulSentences:
    """The number of sentences that a reader should check, and the first `most` of them, for messages."""

    def __init__(self, most: int = LISTED) -> None:
        self.count, self.most = 0, most
        self.listed: list[str] = []

    def add(self, place: str, doubts: Sequence[str]) -> None:
        self.count += len(doubts)
        self.listed += [f"  {place}: {doubt}" for doubt in doubts[: self.most - len(self.listed)]]

    def tell(self, console: Console, more: str = "") -> None:
        if self.count:
            first = f", the first {self.most}" if self.count > self.most else ""
            tell(console, f"sentences to check: {self.count:,}{first}{more}\n" + "\n".join(self.listed))


def describe_doubts(sentences: Iterable[SentenceTranslation]) -> tuple[str, ...]:
    """Return the reason, the source and the translation of each sentence that a reader should check."""
    texts = ((sentence, map(str.split, (sentence.source, sentence.text))) for sentence in sentences if sentence.doubt)
    return tuple(f"{sentence.doubt}: {' -> '.join(map(' '.join, both))}" for sentence, both in texts)


@dataclass(frozen=True)
class TranslationJob:
    """A loaded model with the options of the command line, which translates the lines of a file."""

    translator: Translator
    options: argparse.Namespace
    search: SearchOptions
    terms: Terms
    formality: Formality | None

    @classmethod
    def load(cls, options: argparse.Namespace, terms: Terms) -> "TranslationJob":
        """Load the model. Raises: MTError if the model cannot be loaded or does not support an option."""
        backend = "torch" if options.sample and options.backend == "auto" else options.backend
        translator = Translator.load(
            options.model, options.device, options.dtype, options.threads, others=options.ensemble, backend=backend
        )
        target = translator.direction_of(options.source, options.target)[1]
        formality = chosen_formality(options.formality, target)
        return cls(translator, options, search_options(translator, options), terms, formality)

    def fingerprint(self) -> dict[str, Any]:
        """Return the digests of the models and all options that influence the output, as JSON values."""
        options = self.options
        source, target = self.translator.direction_of(options.source, options.target)
        return {
            "models": [model_digest(model) for model in (options.model, *options.ensemble)],
            "source": source,
            "target": target,
            "formality": self.formality,
            "sentences": options.sentences,
            "json": options.json,
            "device": self.translator.device.partition(":")[0],
            "dtype": self.translator.dtype,
            "shortlist": self.translator.shortlist,
            **asdict(self.search),
        }

    def translate_input(self, first: int) -> Iterator[OutputLine]:
        """Yield the output of each line from line `first` on, in order. Raises: DataError if reading fails."""
        lines = islice(input_lines(self.options), first - 1, None)
        return self.translate(lines, first, interactive=is_interactive(self.options))

    def translate(self, lines: Iterator[str | Fault], first: int, interactive: bool) -> Iterator[OutputLine]:
        """Yield the output of each line of `lines`, in order. `first` is the number of the first one, for messages.

        `interactive` says whether to translate each line before the next one is read. Raises: DataError if that fails.
        """
        for number, (line, result) in enumerate(self._results(lines, interactive), first):
            if isinstance(line, Fault) and line.fatal:
                raise DataError(line.text)
            problem = ""
            if isinstance(line, Fault):
                problem = line.text
            elif isinstance(result, Failure):
                problem = f"{input_name(self.options)}:{number}: {result.problem}"
            text = as_json(line, result, problem) if self.options.json else as_text(result)
            doubts = describe_doubts(result.sentences) if isinstance(result, Translation) else ()
            yield OutputLine(text, problem, line_size(line), doubts)

    def _results(
        self, lines: Iterator[str | Fault], interactive: bool
    ) -> Iterator[tuple[str | Fault, Translation | Failure]]:
        """Yield each line with its result. A Fault is translated like an empty line."""
        pending: deque[str | Fault] = deque()

        def texts(group: Iterable[str | Fault]) -> Iterator[str]:
            for line in group:
                pending.append(line)
                yield "" if isinstance(line, Fault) else line

        for group in ([line] for line in lines) if interactive else [lines]:
            planner = self.translator.planner(
                source=self.options.source,
                target=self.options.target,
                options=self.search,
                sentences=self.options.sentences,
                terms=self.terms,
            ).with_formality(self.formality)
            for result in self.translator.run_stream(planner, texts(group)):
                yield pending.popleft(), result


def input_name(options: argparse.Namespace) -> str:
    return "standard input" if options.file == "-" else str(options.file)


def input_lines(options: argparse.Namespace) -> Iterator[str | Fault]:
    """Open the input, a file or stdin. Yield each line, or a Fault in its place. Raises: DataError if it is missing."""
    if options.file == "-":
        return read_stream_lines(sys.stdin.buffer, input_name(options))
    return read_lines_and_faults(Path(options.file))


def is_interactive(options: argparse.Namespace) -> bool:
    """Return whether a person types the lines, so that each is translated before the next one is read."""
    return options.file == "-" and sys.stdin.isatty()


def as_text(result: Translation | Failure) -> str:
    return "" if isinstance(result, Failure) else " ".join(result.text.splitlines())


def as_json(line: str | Fault, result: Translation | Failure, problem: str) -> str:
    entry: dict[str, Any] = {} if isinstance(line, Fault) else {"source": line}
    if problem or isinstance(result, Failure):
        return json.dumps({**entry, "problem": problem}, ensure_ascii=False)
    best, *others = (
        {"translation": a.text, "score": a.score, "log_probability": a.log_probability} for a in result.alternatives
    )
    entry |= best
    if len(result.sentences) == 1:
        entry |= quality_of(result.sentences[0])
    elif result.sentences:
        entry["sentences"] = [
            {"source": s.source, "translation": s.text, "score": s.score, **quality_of(s)} for s in result.sentences
        ]
    if others:
        entry["alternatives"] = [best, *others]
    return json.dumps(entry, ensure_ascii=False)


def quality_of(sentence: SentenceTranslation) -> dict[str, Any]:
    quality = {} if sentence.confidence is None else {"quality": round(100 * sentence.confidence, 1)}
    return quality | ({"check": sentence.doubt} if sentence.doubt else {})


def search_options(translator: Translator, options: argparse.Namespace) -> SearchOptions:
    """Return the search options of the model, with the changes of the command line. A verb may lack some of them.

    Raises: RequestError if a value is invalid.
    """
    names = ("beam_size", "n_best", "length_penalty", "sample", "temperature", "seed")
    changes: dict[str, Any] = {name: value for name in names if (value := getattr(options, name, None)) is not None}
    if "sample" not in changes and "beam_size" not in changes:
        changes["beam_size"] = max(translator.options.beam_size, changes.get("n_best", 1))
    return replace(translator.options, **changes)


def line_size(line: str | Fault) -> int:
    """Return the size of a line in bytes, or 0 for a Fault, whose size is unknown."""
    return 0 if isinstance(line, Fault) else len(line.encode()) + 1
