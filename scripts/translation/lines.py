"""What becomes of the lines of a file, whoever translates them: this process (Job), or many of a cluster (crew.py)."""

import argparse
import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mt.data.corpus import Fault
from mt.decoding.options import SearchOptions
from mt.engine.results import Failure, Translation
from mt.engine.risk import MinimumRisk
from mt.engine.translator import Translator
from mt.errors import DataError
from mt.text.terms import Terms

MBR = {"temperature": 0.5}
"""How translations are drawn for minimum Bayes risk, unless the command line says. A small model that was trained with
smoothed labels holds too much for possible: on Multi30k, draws at temperature 0.5 gave better choices, by BLEU and
chrF2, than those of top_p 0.9; and no vocabulary has to be sorted for each token."""


@dataclass(frozen=True)
class Line:
    """A line of the output."""

    text: str
    problem: str  # why there is no translation, or nothing
    size: int  # bytes of the line of the input, as far as they are known


@dataclass(frozen=True)
class Job:
    """What was asked for, and a model to do it."""

    translator: Translator
    options: argparse.Namespace
    search: SearchOptions
    terms: Terms

    @classmethod
    def load(cls, options: argparse.Namespace, terms: Terms) -> "Job":
        """Raises MTError for what nothing can be done about, as a missing model."""
        translator = Translator.load(
            options.model,
            options.device,
            options.dtype,
            options.threads,
            shortlist=options.shortlist,
            others=options.ensemble,
        )
        return cls(translator, options, asked_search(translator, options), terms)

    def fingerprint(self) -> dict[str, Any]:
        """All that the lines of the output depend on, but for the input and the glossary."""
        options = self.options
        source, target = self.translator.direction_of(options.source, options.target)
        return {
            "model.safetensors": digest(options.model / "model.safetensors"),
            "ensemble": [digest(each / "model.safetensors") for each in options.ensemble],
            "tokenizer.model": self.translator.tokenizer.digest,
            "source": source,
            "target": target,
            "sentences": options.sentences,
            "json": options.json,
            "mbr": options.mbr and (options.n_best or 1),
            "device": self.translator.scorer.device.type,
            "dtype": self.translator.dtype,
            "shortlist": digest(options.model / "shortlist.safetensors") if options.shortlist else "",
            **asdict(self.search),
        }

    def lines(self, given: Iterator[str | Fault], first: int, typed: bool) -> Iterator[Line]:
        """One for each; `first` is the number of the first one. If they are `typed`, each is answered at once.

        Raises DataError where the input cannot be read further.
        """
        for number, (line, found) in enumerate(self._outcomes(given, typed), first):
            if isinstance(line, Fault) and line.fatal:
                raise DataError(line.text)
            problem = problem_of(line, found, f"{name_of(self.options)}:{number}")
            yield Line(written(line, found, problem, self.options.json), problem, size_of_line(line))

    def _outcomes(
        self, lines: Iterator[str | Fault], typed: bool
    ) -> Iterator[tuple[str | Fault, Translation | Failure]]:
        """Each line with what became of it; what cannot be read becomes what an empty line becomes."""
        read: deque[str | Fault] = deque()

        def texts(group: Iterable[str | Fault]) -> Iterator[str]:
            for line in group:
                read.append(line)
                yield "" if isinstance(line, Fault) else line

        for group in ([line] for line in lines) if typed else [lines]:
            for found in self._stream(texts(group)):
                yield read.popleft(), found

    def _stream(self, texts: Iterable[str]) -> Iterator[Translation | Failure]:
        return self.translator.stream(
            texts,
            source=self.options.source,
            target=self.options.target,
            options=self.search,
            sentences=self.options.sentences,
            terms=self.terms,
            choose=tuple if self.options.mbr is None else MinimumRisk(self.options.n_best or 1),
        )


def name_of(options: argparse.Namespace) -> str:
    """What messages call the input."""
    return "standard input" if options.file == "-" else str(options.file)


def problem_of(line: str | Fault, found: Translation | Failure, where: str) -> str:
    """Why there is no translation, or nothing."""
    if isinstance(line, Fault):
        return line.text
    return f"{where}: {found.problem}" if isinstance(found, Failure) else ""


def written(line: str | Fault, found: Translation | Failure, problem: str, as_json: bool) -> str:
    """What stands in the output for a line."""
    if not as_json:
        return "" if isinstance(found, Failure) else " ".join(found.text.splitlines())
    entry: dict[str, Any] = {} if isinstance(line, Fault) else {"source": line}
    if problem or isinstance(found, Failure):
        return json.dumps({**entry, "problem": problem}, ensure_ascii=False)
    best, *others = (
        {"translation": each.text, "score": each.score, "log_probability": each.log_probability}
        for each in found.alternatives
    )
    entry |= best
    if len(found.sentences) > 1:
        entry["sentences"] = [
            {"source": each.source, "translation": each.text, "score": each.score} for each in found.sentences
        ]
    if others:
        entry["alternatives"] = [best, *others]
    return json.dumps(entry, ensure_ascii=False)


def digest(path: Path) -> str:
    """SHA-256 of a file's bytes. Raises DataError."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def asked_search(translator: Translator, options: argparse.Namespace) -> SearchOptions:
    """The model's own search but for what the command line says. Raises RequestError."""
    names = ("beam_size", "n_best", "length_penalty", "sample", "temperature", "top_k", "top_p", "seed")
    asked: dict[str, Any] = {name: value for name in names if (value := getattr(options, name)) is not None}
    if options.mbr is not None:
        asked = {**MBR, **asked, "sample": True, "n_best": options.mbr}
    elif not options.sample and "beam_size" not in asked:
        asked["beam_size"] = max(translator.options.beam_size, asked.get("n_best", 1))
    return replace(translator.options, **asked)


def size_of_line(line: str | Fault) -> int:
    """Bytes of text, as far as they are known."""
    return 0 if isinstance(line, Fault) else len(line.encode()) + 1
