"""Translator of texts: a trained model and an engine that runs it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Unpack

from mt.bundled import model_directory
from mt.checkpoint import LoadedModel
from mt.decoding.options import Normalization, SearchOptions
from mt.engine.backends.ensemble import load_ensemble
from mt.engine.backends.protocol import Attend, Backend, Dtype
from mt.engine.backends.registry import BACKENDS, load_backend
from mt.engine.devices import cpu_threads, select_device
from mt.engine.engine import Engine
from mt.engine.requests import Request
from mt.engine.threads import AnyEngine, ThreadedEngine
from mt.errors import LanguageError, ModelError, RequestError, problems
from mt.languages import DirectionSet, closest_language
from mt.pipeline.arguments import TextArguments, check_arguments, check_text, check_texts, search_options, terms_of
from mt.pipeline.constraint_compiler import ConstraintCompiler
from mt.pipeline.dispatcher import ResultDispatcher
from mt.pipeline.explain import Explainer
from mt.pipeline.results import ExplainOptions, Failure, Translation
from mt.pipeline.text_task import TextPlanner
from mt.pipeline.variants import SentenceContext, WordKey
from mt.scoring.confidence import QualityEstimator
from mt.text.formality import chosen_formality
from mt.text.normalise import Normaliser
from mt.text.terms import Terms

PUBLIC_NAMES = tuple("description device directions dtype load options stream translate translate_many".split())
"""Attributes of a Translator for users of Python. The others serve the command line and the service."""

CHUNK_TEXTS = 2048  # texts of a stream that are submitted together, sorted by length
_KEPT_DIRECTIONS = 1000  # spellings of directions whose languages are known without a search


def start_engine(backend: Backend, threads: int | None) -> AnyEngine:
    """Start an engine with `threads` threads, or with the default number of threads.

    If the backend is multithreaded, each thread decodes with an engine of its own. If it is not, one engine decodes,
    and torch uses this number of threads.
    """
    if backend.multithreaded:
        threads = threads or cpu_threads()
        if backend.use_threads:
            backend.use_threads(threads)
        if threads > 1:
            return ThreadedEngine(backend.decoder, backend.limits, threads)
    elif threads := threads or backend.threads:
        import_module("torch").set_num_threads(threads)
    return Engine(backend.decoder, backend.limits)


class Translator:
    """A translation model with its tokenizer and an engine.

    Several threads may share a translator; a lock lets one thread run at a time.

    >>> from mt import Translator
    >>> translator = Translator.load("tests/frozen/model", device="cpu", dtype="float32")
    >>> translator
    Translator('frozen-en-de', directions='en-de', device='cpu', dtype='float32')
    >>> translator.translate("My husband is very fast.").text
    'Mein Mann ist sehr schnell.'
    """

    def __init__(
        self,
        loaded: LoadedModel,
        engine: AnyEngine | None = None,
        dtype: Dtype = Dtype.FLOAT32,
        shortlist: bool = False,
        attend: Attend | None = None,
    ) -> None:
        """Create a translator of a loaded model. The default engine decodes in plain torch.

        `dtype` is the number format of the engine, and `shortlist` tells whether the engine uses a shortlist. `attend`
        computes cross-attention in place of the model.
        """
        self.tokenizer = loaded.tokenizer
        self.description = loaded.description
        self.bigrams, self.phrases = loaded.bigrams, loaded.phrases
        self.estimator = QualityEstimator(loaded.confidence, loaded.bigrams) if loaded.confidence else None
        self.device = loaded.device
        self.dtype = dtype
        self.shortlist = shortlist
        self.engine: AnyEngine = engine or import_module("mt.engine.backends.torch").load_engine(loaded)
        self.attend: Attend = attend or import_module("mt.scoring.model_attention").ModelAttention(loaded.model)
        self.dispatcher = ResultDispatcher(self.engine, self.attend)
        self._ids = count()  # ids of requests and callers
        self._compiler = ConstraintCompiler(loaded.tokenizer.target)
        self._normaliser = Normaliser(loaded.tokenizer.knows)
        self._direction_of = lru_cache(_KEPT_DIRECTIONS)(self._choose_direction)
        self._words_alone: dict[WordKey, str] = {}

    @classmethod
    def load(
        cls,
        path: str | Path,
        device: str = "auto",
        dtype: str = "auto",
        threads: int | None = None,
        others: Sequence[str | Path] = (),
        backend: str = "auto",
    ) -> "Translator":
        """Load a model directory.

        Args:
            path: The model directory, or `starter` for the starter model of the package.
            device: `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:N`.
            dtype: `auto`, `float32`, `bfloat16` or `int8`.
            threads: Number of CPU cores that translate, by default all, or 2 beside a GPU. If torch decodes, this sets
                the number of threads that torch uses in the whole process.
            backend: `auto` (the fastest that can decode the model), `cpu`, `cuda` or `torch`. `torch` is slow; it
                replaces a backend that does not work on a machine.
            others: More model directories with the same vocabulary and directions. They decode together with the model
                in `path` as an ensemble, in plain torch. The model in `path` determines the search options and the
                attention. An ensemble has no confidence.

        Raises:
            ModelError, TokenizerError: A file, the device or the dtype cannot be used.
        """
        wrong = []
        if dtype not in set(Dtype):
            wrong.append(f"dtype is {dtype!r}; accepted: {', '.join(Dtype)}")
        if threads is not None and threads < 1:
            wrong.append(f"threads is {threads}; accepted: at least 1")
        if backend not in ("auto", *BACKENDS):
            wrong.append(f"backend is {backend!r}; accepted: auto, {', '.join(BACKENDS)}")
        if wrong:
            raise ModelError(problems(f"{path} cannot be loaded with these options", wrong))
        device = select_device(device)
        models = load_ensemble([model_directory(str(directory)) for directory in (path, *others)], device)
        decoding = load_backend(models, device, Dtype(dtype), backend)
        loaded = replace(models[0], confidence=None) if others else models[0]
        return cls(loaded, start_engine(decoding, threads), decoding.dtype, decoding.shortlist, decoding.attend)

    @classmethod
    def from_loaded(cls, loaded: LoadedModel) -> "Translator":
        """Create a translator that uses the current weights of a model in memory.

        On a CPU, the compiled kernels decode if they are available. On a GPU, CUDA graphs decode in the model's dtype.
        """
        if loaded.device != "cpu":
            return cls(loaded, import_module("mt.engine.backends.cuda").load_engine(loaded))
        loaded = replace(loaded, weights=loaded.model)
        decoding = load_backend([loaded], loaded.device, Dtype.FLOAT32)
        return cls(loaded, start_engine(decoding, None), shortlist=decoding.shortlist, attend=decoding.attend)

    def __repr__(self) -> str:
        name, directions = self.description.name, self.directions
        return f"Translator({name!r}, directions='{directions}', device='{self.device}', dtype='{self.dtype}')"

    def __dir__(self) -> tuple[str, ...]:
        return PUBLIC_NAMES

    @property
    def directions(self) -> DirectionSet:
        return self.description.directions

    @cached_property
    def options(self) -> SearchOptions:
        """Search options of the model's recipe.

        >>> from dataclasses import replace
        >>> translator = Translator.load("tests/frozen/model", device="cpu", dtype="float32")
        >>> options = replace(translator.options, length_penalty=0.6)
        >>> len(translator.translate("My husband is very fast.", n_best=3, options=options).alternatives)
        3
        """
        decoding = self.description.decoding.model_dump()
        normalization = Normalization(decoding.pop("normalization"))
        return SearchOptions(**decoding, normalization=normalization, max_length=self._max_length)

    @property
    def _max_length(self) -> int:
        """Maximum number of tokens of a source or target, EOS included."""
        return self.description.model.max_length

    def translate(self, text: str, **arguments: Unpack[TextArguments]) -> Translation:
        """Translate a text of any length. White space between sentences is kept.

        A text is split into paragraphs and sentences, and a sentence that is too long for the model is split into
        parts. Text without letters and digits is not changed. All arguments but `text` are optional.

        Args:
            text: The text.
            source: Source language, such as `de`, `DE` or `de-AT`. May be omitted if the target has only one.
            target: Target language. May be omitted if the model has only one target language for the source.
            beam_size: Number of hypotheses of the beam search; 1 is greedy. By default, that of `options`.
            n_best: Number of translations in `Translation.alternatives`. By default, that of `options`.
            glossary: The required translation of each term (mt.text.terms).
            do_not_translate: Terms that are copied unchanged.
            formality: `more` or `less`, for formal or informal address in German and French; `prefer_more` and
                `prefer_less` have no effect on other target languages. Sampling ignores it.
            alignment: True sets `Translation.sentences[n].links`, which link words of source and translation.
            sentences: True translates the text as one sentence, as in a test set, into one line. The text is split
                only if it is too long for the model.
            options: All search options; by default those of the model's recipe.

        Raises:
            LanguageError: The model does not translate the direction.
            RequestError: An argument cannot be used, the target has no such formality, or the model fails on the text.

        >>> translator = Translator.load("tests/frozen/model", device="cpu", dtype="float32")
        >>> text = "My husband is very fast."
        >>> translation = translator.translate(text, glossary={"husband": "Gatte"}, alignment=True)
        >>> "Gatte" in translation.text, translation.confidence
        (True, None)
        >>> source, target = translation.sentences[0].links[0]
        >>> text[slice(*source)], translation.text[slice(*target)]
        ('My', 'Mein')
        """
        check_text(text)
        return self.run(self._planner(arguments), [text])[0]

    def translate_many(self, texts: Iterable[str], **arguments: Unpack[TextArguments]) -> list[Translation]:
        """Translate several texts in order, together and therefore faster than one by one.

        The keyword arguments are those of `translate`. RequestError is raised after all other texts are translated.

        >>> translator = Translator.load("tests/frozen/model", device="cpu", dtype="float32")
        >>> [translation.text for translation in translator.translate_many(["Is this a beautiful theater?"])]
        ['Ist das ein schönes Theater?']
        """
        check_texts(texts)
        texts = list(texts)
        check_texts(texts)
        return self.run(self._planner(arguments), texts)

    def stream(self, texts: Iterable[str], **arguments: Unpack[TextArguments]) -> Iterator[Translation | Failure]:
        """Translate any number of texts in constant memory. Yield one result per text in order.

        The keyword arguments are those of `translate`. The result for a text that cannot be translated is a Failure,
        and the stream continues. LanguageError and RequestError for the arguments are raised by the call itself.
        """
        check_texts(texts)
        return self.run_stream(self._planner(arguments), texts)

    def run(self, planner: TextPlanner, texts: Sequence[str]) -> list[Translation]:
        """Translate texts with a planner. Raises RequestError as `translate` does."""
        tasks = [planner.task(text) for text in texts]
        self.dispatcher.run(tasks)
        failed = [task.problem for task in tasks if task.problem]
        if failed:
            raise RequestError(failed[0] if len(failed) == 1 else problems(f"{len(failed)} texts failed", failed))
        return [task.translation() for task in tasks]

    def run_stream(
        self, planner: TextPlanner, texts: Iterable[str], ahead: int = CHUNK_TEXTS
    ) -> Iterator[Translation | Failure]:
        """Translate a stream of texts with a planner. At most 2 x `ahead` texts are read before the first result."""
        return self.dispatcher.stream(map(planner.attempt, texts), ahead)

    def planner(
        self,
        *,
        source: str | None = None,
        target: str | None = None,
        options: SearchOptions | None = None,
        sentences: bool = False,
        terms: Terms | None = None,
        explain: ExplainOptions | None = None,
        caller: int | None = None,
    ) -> TextPlanner:
        """Return a planner of texts for `run`, `run_stream` or the `dispatcher`.

        Callers take turns in the engine. `caller` is the number of a caller; by default, each planner is a caller of
        its own. The other arguments are those of `translate`.

        Raises:
            LanguageError: The model does not translate the direction, or `source` is None, but the model has several
                source languages and must know which one.
        """
        source_language, target_language = self.direction_of(source, target)
        if self.tokenizer.tags_each_side and not source_language:
            raise LanguageError(
                "the source language is not given, but this model needs it; accepted: one of "
                f"{', '.join(self.directions.sources_of(target_language))}"
            )
        options = options or self.options
        if options.max_length > self._max_length:
            options = replace(options, max_length=self._max_length)
        context = SentenceContext(
            tokenizer=self.tokenizer,
            normaliser=self._normaliser.of_language(source_language),
            compiler=self._compiler,
            words_alone=self._words_alone,
            request_ids=self._ids,
            caller=next(self._ids) if caller is None else caller,
            source=source_language,
            target=target_language,
            tag=tuple(self.tokenizer.source_prefix(source_language, target_language, self.directions)),
            options=options,
            terms=terms or Terms(),
            max_length=self._max_length,
            prefix=tuple(self.tokenizer.target_prefix(target_language)),
            covered_length=self.description.source_length,
            bigrams=self.bigrams,
            phrases=self.phrases,
            reads_target=target_language in self.directions.sources,
        )
        config = self.description.model
        heads = config.decoder_layers * config.heads
        explainer = Explainer(context, heads, explain) if explain else None
        return TextPlanner(context, sentences=sentences, explainer=explainer, estimator=self.estimator)

    def _planner(self, arguments: TextArguments) -> TextPlanner:
        """Return the planner for the arguments of `translate`. Raises the errors of `translate`."""
        check_arguments(arguments, self.direction_of)
        planner = self.planner(
            source=arguments.get("source"),
            target=arguments.get("target"),
            options=search_options(arguments, self.options),
            sentences=arguments.get("sentences", False),
            terms=terms_of(arguments),
            explain=ExplainOptions(alignment=arguments.get("alignment", False)),
        )
        return planner.with_formality(chosen_formality(arguments.get("formality"), planner.context.target))

    def request(
        self,
        sentence: str,
        *,
        source: str | None = None,
        target: str | None = None,
        options: SearchOptions | None = None,
    ) -> Request | None:
        """Return the request for one sentence, or None for an empty sentence.

        Raises:
            RequestError: The sentence is too long for the model.
        """
        context = self.planner(source=source, target=target, options=options).context
        sentence = context.normaliser.normalise(sentence.strip()).text
        length = len(context.encode(sentence))
        if length > self._max_length:
            raise RequestError(
                f"the text that begins {sentence[:40]!r} has {length} tokens; accepted: at most {self._max_length}"
            )
        return context.request(sentence, context.options) if sentence else None

    def direction_of(self, source: str | None, target: str | None) -> tuple[str, str]:
        """Return the source and target language of a direction of the model.

        An argument may be None if the model leaves only one choice. The source is empty if there are several.

        Raises:
            LanguageError: The model does not translate the direction, or several target languages are possible.
        """
        return self._direction_of(source, target)

    def _choose_direction(self, source: str | None, target: str | None) -> tuple[str, str]:
        target = target and (closest_language(target, self.directions.targets) or target)
        targets = [target] if target else self.directions.targets
        if source is None and len(targets) == 1 and len(self.directions.sources_of(targets[0])) > 1:
            return "", targets[0]
        direction = self.directions.choose(source, target)
        return direction.source, direction.target
