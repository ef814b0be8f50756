"""Generation of text with a language model. The engine and the searches are those of translation."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mt.checkpoint import LoadedLanguageModel, load_language_model
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.scorer import LanguageScorer, Scorer
from mt.engine.backends.torch import SearchDecoder
from mt.engine.devices import select_device
from mt.engine.engine import Engine
from mt.engine.requests import Request, Result
from mt.engine.scheduler import Limits
from mt.errors import RequestError, problems
from mt.tokenizer import EOS

INCOMPLETE = "\ufffd"  # decoded text of an incomplete sequence of bytes of a character


@dataclass(frozen=True)
class GenerationOptions:
    """A prompt, and options for the texts that continue the prompt.

    `count` is the number of texts. A text ends after `lines` lines or `max_length` new tokens. The last line of the
    prompt is continued and counts as the first line. `search` selects sampling, greedy search or beam search; the
    length options in `search` are not used.
    """

    prompt: str = ""
    search: SearchOptions = field(default_factory=lambda: SearchOptions(sample=True))
    count: int = 1
    lines: int = 1
    max_length: int = 200

    def __post_init__(self) -> None:
        """Check the values. Raises: RequestError with all values that are not accepted."""
        values = {"count": self.count, "lines": self.lines, "max_length": self.max_length}
        invalid = [f"{name} is {value}; accepted: at least 1" for name, value in values.items() if value < 1]
        if not self.search.sample and self.count > self.search.beam_size:
            invalid.append(
                f"count is {self.count}; accepted without sampling: at most {self.search.beam_size} (beam_size)"
            )
        if not self.search.sample and self.count > 1 and self.lines > 1:
            invalid.append(f"lines is {self.lines}; accepted: 1 if beam search returns several hypotheses (count > 1)")
        if invalid:
            raise RequestError(problems("the options of generation cannot be used", invalid))


@dataclass
class Draft:
    """An unfinished text. Each request to the engine generates one line, or a part of a long line."""

    number: int
    lines: list[list[int]]  # ids of the complete lines, including those of the prompt
    line: list[int]  # ids of the current line
    lines_left: int
    tokens_left: int
    requests: int = 0

    @property
    def finished(self) -> bool:
        return not (self.lines_left and self.tokens_left)

    def extend(self, tokens: Sequence[int], ended: bool) -> None:
        """Append tokens to the current line. If `ended` is true, the line ends after these tokens."""
        self.line = [*self.line, *tokens]
        self.tokens_left -= len(tokens)
        self.lines_left -= ended
        if ended and not self.finished:
            self.lines.append(self.line)
            self.line = []


@dataclass(frozen=True)
class ObservedScorer:
    """Scorer that also calls `observe` at each step, with the tokens [R] that the search chose in the previous step.

    There is one token for each of the R hypotheses of the batch.
    """

    scorer: Scorer[Any]
    observe: Callable[[Tensor], None]

    @property
    def special(self) -> SpecialIds:
        return self.scorer.special

    @property
    def device(self) -> torch.device:
        return self.scorer.device

    def start(self, sources: Any, beams: int) -> Any:
        return self.scorer.start(sources, beams)

    def step(self, state: Any, tokens: Tensor) -> Tensor:
        self.observe(tokens)
        return self.scorer.step(state, tokens)


class TextGenerator:
    """A language model that continues texts."""

    def __init__(self, loaded: LoadedLanguageModel, device: torch.device) -> None:
        self.tokenizer = loaded.tokenizer
        self.description = loaded.description
        self.scorer = LanguageScorer(loaded.model, device=device)

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> "TextGenerator":
        """Load a model directory. Raises ModelError or TokenizerError if a file of the model cannot be used."""
        place = select_device(device)
        return cls(load_language_model(Path(path), place), torch.device(place))

    def generate(self, options: GenerationOptions) -> list[str]:
        """Return `count` texts that begin with the prompt: samples in order, or hypotheses of a search, best first.

        Sample n does not depend on `count`.

        Raises:
            RequestError: The prompt has several lines, and the model was trained on single lines.
        """
        drafts = [self._draft(options, number) for number in range(options.count if options.search.sample else 1)]
        engine = self._engine(self.scorer)
        running = {draft.number: self._submit(engine, draft, options) for draft in drafts}
        for result in engine.drain():
            request, draft = running[result.id], drafts[result.id]
            if options.count > 1 and not options.search.sample:
                return [self._text(draft, _new_tokens(request, best)) for best in _hypotheses(result)]
            _extend(draft, request, result)
            if not draft.finished:
                running[draft.number] = self._submit(engine, draft, options)
        return [self._text(draft) for draft in drafts]

    def stream(self, options: GenerationOptions) -> Iterator[str]:
        """Yield the first text of `generate` in parts: the prompt, then the text of each token as it is generated.

        Beam search yields whole lines, because its best hypothesis may change until the end of a line.
        """
        written: list[int] = []
        draft = self._draft(options, 0)
        engine = self._engine(ObservedScorer(self.scorer, lambda tokens: written.append(int(tokens[0]))))
        text, shown = self._text(draft), 0
        while not draft.finished:
            written.clear()
            request = self._submit(engine, draft, options)
            while engine.busy:
                for result in engine.step():
                    _extend(draft, request, result)
                    written.clear()
                latest = written[1 + len(request.prefix) :]  # the search begins with BOS
                text = self._text(draft, () if options.search.beams else latest)
                if len(text) > shown and not text.endswith(INCOMPLETE):
                    yield text[shown:]
                    shown = len(text)
        if len(text) > shown:
            yield text[shown:]

    def _engine(self, scorer: Scorer[Any]) -> Engine:
        return Engine(SearchDecoder(scorer), Limits.of(scorer.device.type))

    def _draft(self, options: GenerationOptions, number: int) -> Draft:
        """Return a draft that consists of the prompt.

        Raises: RequestError if the prompt has several lines, and the model was trained on single lines.
        """
        *before, last = self.tokenizer.encode_many(options.prompt.split("\n"))
        if before and not self.description.block_tokens:
            raise RequestError(
                f"the prompt has {len(before) + 1} lines; accepted: one line, because the model was trained on single "
                "lines (a recipe with data.block_tokens trains on several lines)"
            )
        return Draft(number, before, last, options.lines, options.max_length)

    def _submit(self, engine: Engine, draft: Draft, options: GenerationOptions) -> Request:
        """Submit a request that continues a draft, and return the request.

        The model reads the current line, and as many earlier lines as fit into the maximum length. At least half of the
        length is for the current line. A current line that is too long is continued from its last tokens.
        """
        room, line = self.description.model.max_length, draft.line
        prefix = line if len(line) + 2 <= room else line[-(room // 2) :]
        wanted = len(prefix) + draft.tokens_left + 1  # 1 for EOS
        space = room - min(wanted, max(room // 2, len(prefix) + 2))
        context: list[int] = []
        for earlier in reversed(draft.lines) if self.description.block_tokens else ():
            if len(context) + len(earlier) + 1 > space:
                break
            context[:0] = [*earlier, EOS]
        longest = min(wanted, room - len(context))
        search = replace(
            options.search.of((draft.number, draft.requests)),
            n_best=1 if options.search.sample else options.count,
            max_length=longest,
            max_length_offset=longest,
            max_length_factor=0.0,
        )
        draft.requests += 1
        request = Request(draft.number, tuple(context), search, tuple(prefix))
        engine.submit(request)
        return request

    def _text(self, draft: Draft, latest: Sequence[int] = ()) -> str:
        """Return the text of a draft, followed by the text of the tokens `latest` up to EOS."""
        new = latest[: latest.index(EOS)] if EOS in latest else latest
        return "\n".join(map(self.tokenizer.decode, [*draft.lines, [*draft.line, *new]]))


def _hypotheses(result: Result) -> tuple[Hypothesis, ...]:
    """Return the hypotheses of a result. Raises: RequestError if there are none."""
    if not result.hypotheses:
        raise RequestError(f"no text was generated: {result.problem}")
    return result.hypotheses


def _new_tokens(request: Request, hypothesis: Hypothesis) -> tuple[int, ...]:
    return hypothesis.tokens[len(request.prefix) :]


def _extend(draft: Draft, request: Request, result: Result) -> None:
    """Append the best hypothesis of `result` to a draft.

    The hypothesis ends the line, unless it has the maximum length. At the maximum length, EOS is forced.
    """
    best = _hypotheses(result)[0]
    draft.extend(_new_tokens(request, best), ended=len(best.tokens) + 1 < request.options.max_length)
