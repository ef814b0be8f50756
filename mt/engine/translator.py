"""Text in, text out: the class that a Python user holds, and the edge where text becomes ids and ids become text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import torch

from mt.checkpoint import Description, LoadedModel, load_model
from mt.decoding.options import Normalization, SearchOptions
from mt.decoding.rows import Hypothesis
from mt.decoding.scorer import ModelScorer
from mt.engine.engine import Engine
from mt.engine.messages import Request, Result
from mt.engine.scheduler import Limits
from mt.errors import LanguageError, ModelError, RequestError, problems
from mt.model.transformer import Transformer
from mt.tokenizer import EOS, Tokenizer


@dataclass(frozen=True)
class Alternative:
    """One translation of an n-best list; `score` is its log-probability divided by the length penalty."""

    text: str
    score: float
    log_probability: float
    pieces: tuple[str, ...]
    piece_log_probabilities: tuple[float, ...]  # one a piece, and a last one for the end


@dataclass(frozen=True)
class Translation:
    """The best translation of a text, and the whole n-best list, of which it is the first."""

    text: str
    score: float
    alternatives: tuple[Alternative, ...]


def select_device(name: str) -> torch.device:
    """`auto`: a GPU if there is one. Raises ModelError for a device that is not there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f"device {name!r} cannot be used ({error}); accepted: auto, cpu, cuda, cuda:N") from error
    return device


class Translator:
    """A model with its tokenizer, and an engine of its own for `translate`."""

    def __init__(
        self, model: Transformer, tokenizer: Tokenizer, description: Description, limits: Limits | None = None
    ) -> None:
        self.tokenizer = tokenizer
        self.description = description
        device = next(model.parameters()).device
        self.model = model
        self.scorer = ModelScorer(model, device=device)
        self.engine = Engine(self.scorer, limits or Limits.of(device.type))
        self._ids = count()

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> "Translator":
        """Load a model directory. Raises ModelError or TokenizerError, which say what is wrong with which file."""
        loaded: LoadedModel = load_model(Path(path), select_device(device))
        return cls(loaded.model, loaded.tokenizer, loaded.description)

    @property
    def directions(self) -> tuple[str, ...]:
        return self.description.directions

    @property
    def options(self) -> SearchOptions:
        """The search that the model's recipe asks for."""
        asked = self.description.decoding.model_dump()
        return SearchOptions(
            **{**asked, "normalization": Normalization(asked["normalization"])}, max_length=self._longest
        )

    @property
    def _longest(self) -> int:
        """Tokens of a source or a target, EOS included, for which the model has positions."""
        return self.description.model.max_length

    def translate(
        self,
        texts: Sequence[str],
        *,
        source: str | None = None,
        target: str | None = None,
        options: SearchOptions | None = None,
        beam_size: int | None = None,
        n_best: int | None = None,
    ) -> list[Translation]:
        """Translate texts, a sentence each, in any number; the order is kept. Empty text stays empty.

        A translation is one line: line breaks stay only where they begin or end a text.

        `source` and `target` may be left out where the model has one direction; `beam_size` and `n_best` change
        `options`, or the model's own. Raises LanguageError for a direction that the model lacks, RequestError for
        options that cannot be used, a text over the model's length, or a sentence that the model fails on.
        """
        options = options or self.options
        if n_best is not None and beam_size is None and n_best > options.beam_size:
            beam_size = n_best
        asked: dict[str, Any] = {"beam_size": beam_size, "n_best": n_best}
        options = replace(options, **{name: value for name, value in asked.items() if value is not None})
        requests, found = [], []
        for text in texts:
            try:
                requests.append(self.request(text, source=source, target=target, options=options))
            except RequestError as error:
                found.append(str(error))
        if found:
            raise RequestError(found[0] if len(found) == 1 else problems(f"{len(found)} texts are refused", found))
        for request in sorted((r for r in requests if r is not None), key=lambda r: -len(r.source)):
            self.engine.submit(request)
        results = {result.id: result for result in self.engine.drain()}
        return [
            untranslated(text) if request is None else self.finish(text, results[request.id])
            for text, request in zip(texts, requests, strict=True)
        ]

    def request(
        self, text: str, *, source: str | None = None, target: str | None = None, options: SearchOptions | None = None
    ) -> Request | None:
        """What the engine needs to translate a text, or None if there is nothing in it to translate."""
        language = self.target_of(source, target)
        ids = self.tokenizer.encode(text.strip())
        if not ids:
            return None
        tag = [self.tokenizer.tag(language)] if len(self.directions) > 1 else []
        encoded = (*tag, *ids, EOS)
        if len(encoded) > self._longest:
            raise RequestError(
                f"the text that begins {text.strip()[:40]!r} has {len(encoded)} tokens; "
                f"accepted: at most {self._longest}"
            )
        options = options or self.options
        options = replace(options, max_length=min(options.max_length, self._longest))
        return Request(next(self._ids), encoded, options)

    def finish(self, text: str, result: Result) -> Translation:
        """The translation in a result, with the white space around `text`. Raises RequestError if it failed."""
        if result.problem:
            raise RequestError(f"the text that begins {text.strip()[:40]!r} cannot be translated: {result.problem}")
        before, after = surrounding_space(text)
        alternatives = tuple(self._alternative(before, after, hypothesis) for hypothesis in result.hypotheses)
        return Translation(alternatives[0].text, alternatives[0].score, alternatives)

    def target_of(self, source: str | None, target: str | None) -> str:
        """The target language of a direction, of which either side may be left to the model where it has one choice.

        Raises LanguageError if the model does not translate that.
        """
        fitting = [
            direction
            for direction in self.directions
            if source in (None, direction.split("-")[0]) and target in (None, direction.split("-")[1])
        ]
        if len({direction.split("-")[1] for direction in fitting}) != 1:
            asked = f"{source or '?'}-{target or '?'}"
            raise LanguageError(f"{asked} is not a direction of this model; accepted: {', '.join(self.directions)}")
        return fitting[0].split("-")[1]

    def _alternative(self, before: str, after: str, hypothesis: Hypothesis) -> Alternative:
        return Alternative(
            text=before + " ".join(self.tokenizer.decode(hypothesis.tokens).splitlines()) + after,
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            pieces=tuple(self.tokenizer.pieces(hypothesis.tokens)),
            piece_log_probabilities=hypothesis.token_log_probabilities,
        )


def untranslated(text: str) -> Translation:
    """A text in which there is nothing to translate, as it was."""
    return Translation(text, 0.0, (Alternative(text, 0.0, 0.0, (), ()),))


def surrounding_space(text: str) -> tuple[str, str]:
    """The white space before and after a text."""
    stripped = text.strip()
    begin = text.index(stripped)
    return text[:begin], text[begin + len(stripped) :]
