"""Text in, text out: the class that a Python user holds."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import torch

from mt.checkpoint import Confidence, Description, LoadedModel
from mt.decoding.options import Normalization, SearchOptions
from mt.decoding.scorer import ModelScorer
from mt.engine.attention import Attender
from mt.engine.batches import Batch, Decoder, SearchDecoder
from mt.engine.bulk import Desk
from mt.engine.compiled import CompiledDecoder
from mt.engine.engine import Engine
from mt.engine.ensemble import ensemble_decoder, load_members
from mt.engine.insight import Observer
from mt.engine.messages import Request
from mt.engine.plan import Choose, Planner
from mt.engine.precision import Dtype, choose_decoder
from mt.engine.results import Failure, Insight, Translation
from mt.engine.scheduler import Limits
from mt.engine.spelling import Speller
from mt.engine.threads import AnyEngine, EngineThreads
from mt.errors import LanguageError, ModelError, RequestError, problems
from mt.model.transformer import Transformer
from mt.text.terms import Terms
from mt.tokenizer import Tokenizer

AHEAD = 2048  # texts of a stream that are sorted by length together


def select_device(name: str) -> torch.device:
    """`auto`: a GPU if there is one. Raises ModelError for a device that is not there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device).tolist()  # the device `meta` holds no numbers
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ModelError(f"device {name!r} cannot be used ({error}); accepted: auto, cpu, cuda, cuda:N") from error
    return device


def start_engine(decoder: Decoder[Batch], device: torch.device, threads: int | None) -> AnyEngine:
    """Compiled kernels run in threads of one core each; torch runs in one, and divides its work itself."""
    limits = Limits.of(device.type)
    if not isinstance(decoder, CompiledDecoder):
        if threads is not None:
            torch.set_num_threads(threads)
        return Engine(decoder, limits)
    limits = Limits.compiled(decoder.model.decoder_layers * decoder.model.d_model)
    threads = threads or torch.get_num_threads()
    return Engine(decoder, limits) if threads == 1 else EngineThreads(decoder, limits, threads)


class Translator:
    """A model with its tokenizer, and an engine of its own for `translate`."""

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        description: Description,
        limits: Limits | None = None,
        engine: AnyEngine | None = None,
    ) -> None:
        """Decodes `model` itself unless an engine is given that does."""
        self.tokenizer = tokenizer
        self.description = description
        device = next(model.parameters()).device
        self.model = model
        self.scorer = ModelScorer(model, device=device)
        plain = SearchDecoder(self.scorer)
        self.engine = engine or Engine(plain, limits or Limits.of(device.type))
        self.dtype = Dtype.FLOAT32
        self.shortlist = False  # whether one limits what comes out
        self.confidence: Confidence | None = None  # how good translations are likely to be, if that was fitted
        self.attender = Attender(model, device)
        self.desk = Desk(self.engine, self.attender)
        self._ids = count()
        self._spell = lru_cache(maxsize=1)(Speller)

    @classmethod
    def load(
        cls,
        path: str | Path,
        device: str = "auto",
        dtype: str = "auto",
        threads: int | None = None,
        shortlist: bool = False,
        others: Sequence[str | Path] = (),
    ) -> "Translator":
        """Load a model directory. `threads` is how many CPU cores translate; all that there are unless it is given.

        With `shortlist`, what scripts/shortlist.py wrote beside the model limits the tokens that may come out of each
        sentence, and scores are as if there were no others. It acts on greedy and beam search in the compiled kernels;
        samples, forced prefixes, repetition penalties, ensembles and other devices keep the whole vocabulary.

        With `others`, model directories of the same vocabulary and directions, all translate together, as an ensemble:
        in plain torch, so slower than so many single models. The first says how to search, and its attention is what
        is looked at. No confidence was fitted to what an ensemble says, so it tells none.

        Raises ModelError or TokenizerError, which say what is wrong with which file, device or dtype.
        """
        found = []
        if dtype not in set(Dtype):
            found.append(f"dtype is {dtype!r}; accepted: {', '.join(Dtype)}")
        if threads is not None and threads < 1:
            found.append(f"threads is {threads}; accepted: at least 1")
        if found:
            raise ModelError(problems(f"{path} cannot be loaded as asked", found))
        where = select_device(device)
        loaded, *more = members = load_members([Path(each) for each in (path, *others)], where)
        if shortlist and loaded.shortlist is None:
            raise ModelError(
                f"{path}: there is no shortlist here; accepted: a model for which scripts/shortlist.py made one"
            )
        decoder, chosen = (
            ensemble_decoder(members, where, Dtype(dtype)) if more else choose_decoder(loaded, where, Dtype(dtype))
        )
        if shortlist and loaded.shortlist is not None and isinstance(decoder, CompiledDecoder):
            decoder = decoder.keeping_to(loaded.shortlist)
        translator = cls(
            loaded.model, loaded.tokenizer, loaded.description, engine=start_engine(decoder, where, threads)
        )
        translator.dtype = chosen
        translator.confidence = None if more else loaded.confidence
        translator.shortlist = isinstance(decoder, CompiledDecoder) and decoder.shortlist is not None
        return translator

    @classmethod
    def over(cls, loaded: LoadedModel) -> "Translator":
        """A model that is in memory, in the numbers that it has; on a CPU by the compiled kernels where they are."""
        device = next(loaded.model.parameters()).device
        engine = None
        if device.type == "cpu":
            engine = start_engine(choose_decoder(loaded, device, Dtype.FLOAT32)[0], device, None)
        translator = cls(loaded.model, loaded.tokenizer, loaded.description, engine=engine)
        translator.confidence = loaded.confidence
        return translator

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
        sentences: bool = False,
        whole: bool = True,
        terms: Terms | None = None,
    ) -> list[Translation]:
        """Translate texts of any length and number; the order is kept, and so is the white space between sentences.

        A text is split into paragraphs and sentences, and a sentence that is too long for the model into parts. With
        `sentences`, each text is one sentence already, as a line of a test set is: it is split only if it is too long,
        and its translation is one line. What holds neither letter nor digit stays as it is.

        `whole` sees to it that addresses, placeholders, code, file names, emoji and numbers come back as they were
        (mt/text/protect.py), that capitals are no harm (casing.py), and that a translation in circles or without its
        end is tried again (repetition.py). Without it, each sentence gets what the search finds, as a measurement of
        a model or a search wants it. `terms` say how words are to be translated, and which are not to be (terms.py).

        `source` and `target` may be left out where the model has one direction; `beam_size` and `n_best` change
        `options`, or the model's own. Raises LanguageError for a direction that the model lacks, RequestError for
        options that cannot be used, and for texts that the model fails on, when all others are done.
        """
        search = self._search(options, beam_size, n_best)
        planner = self.planner(
            source=source, target=target, options=search, sentences=sentences, whole=whole, terms=terms
        )
        return self.run(planner, texts)

    def run(self, planner: Planner, texts: Sequence[str]) -> list[Translation]:
        """`translate` with what `planner` was told, such as an Insight. Raises RequestError as it does."""
        plans = [planner.plan(text) for text in texts]
        self.desk.run(plans)
        found = [plan.problem for plan in plans if plan.problem]
        if found:
            raise RequestError(found[0] if len(found) == 1 else problems(f"{len(found)} texts failed", found))
        return [plan.translation() for plan in plans]

    def stream(
        self,
        texts: Iterable[str],
        *,
        source: str | None = None,
        target: str | None = None,
        options: SearchOptions | None = None,
        sentences: bool = False,
        whole: bool = True,
        terms: Terms | None = None,
        choose: Choose = tuple,
        ahead: int = AHEAD,
    ) -> Iterator[Translation | Failure]:
        """`translate` for texts without end, in constant memory: one outcome a text, in order, as soon as it can be.

        Up to 2 x `ahead` texts are read before the first outcome is handed out. A text that fails gives a Failure
        in its place, and the stream goes on. Raises as `translate` does for a direction or options, at once.
        """
        planner = self.planner(
            source=source,
            target=target,
            options=options,
            sentences=sentences,
            whole=whole,
            terms=terms,
            choose=choose,
        )
        return self.desk.stream(map(planner.attempt, texts), ahead)

    def planner(
        self,
        *,
        source: str | None = None,
        target: str | None = None,
        options: SearchOptions | None = None,
        sentences: bool = False,
        whole: bool = True,
        terms: Terms | None = None,
        insight: Insight | None = None,
        choose: Choose = tuple,
    ) -> Planner:
        """What turns texts into plans, for `run`, or for those who submit them to the `desk` themselves.

        `insight` asks for more about each sentence than `translate` tells; `choose` is what becomes of its n-best list,
        such as a MinimumRisk. Raises LanguageError.
        """
        from_language, into = self.direction_of(source, target)
        options = options or self.options
        tag = tuple(self.tokenizer.opening(into, self.directions))
        look = None
        if insight:
            look = Observer(self.tokenizer, self.attender, tag, from_language, self._longest, insight)
        return Planner(
            tokenizer=self.tokenizer,
            ids=self._ids,
            source=from_language,
            target=into,
            tag=tag,
            longest=self._longest,
            options=replace(options, max_length=min(options.max_length, self._longest)),
            sentences=sentences,
            caller=next(self._ids),
            whole=whole,
            terms=terms or Terms(),
            spell=self._spell,
            look=look,
            confidence=self.confidence,
            choose=choose,
        )

    def request(
        self,
        sentence: str,
        *,
        source: str | None = None,
        target: str | None = None,
        options: SearchOptions | None = None,
    ) -> Request | None:
        """One sentence as the engine takes it, or None if it is empty. Raises RequestError if it is too long."""
        planner = self.planner(source=source, target=target, options=options, sentences=True)
        ids = planner.encode(sentence.strip())
        if len(ids) > self._longest:
            raise RequestError(
                f"the text that begins {sentence.strip()[:40]!r} has {len(ids)} tokens; "
                f"accepted: at most {self._longest}"
            )
        return Request(next(self._ids), ids, planner.options.of(ids)) if sentence.strip() else None

    def direction_of(self, source: str | None, target: str | None) -> tuple[str, str]:
        """Source and target language, either of which may be left to the model where it has one choice.

        The source is empty where several fit. Raises LanguageError if the model does not translate that.
        """
        pairs = [tuple(direction.split("-")) for direction in self.directions]
        fitting = [pair for pair in pairs if source in (None, pair[0]) and target in (None, pair[1])]
        sources, targets = ({pair[side] for pair in fitting} for side in (0, 1))
        if len(targets) != 1:
            asked = f"{source or '?'}-{target or '?'}"
            raise LanguageError(f"{asked} is not a direction of this model; accepted: {', '.join(self.directions)}")
        return sources.pop() if len(sources) == 1 else "", targets.pop()

    def _search(self, options: SearchOptions | None, beam_size: int | None, n_best: int | None) -> SearchOptions:
        """Raises RequestError."""
        options = options or self.options
        if n_best is not None and beam_size is None and n_best > options.beam_size:
            beam_size = n_best
        asked: dict[str, Any] = {"beam_size": beam_size, "n_best": n_best}
        return replace(options, **{name: value for name, value in asked.items() if value is not None})
