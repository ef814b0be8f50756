"""Translation of documents in this process."""

from dataclasses import dataclass, field, replace

from mt.decoding.options import SearchOptions
from mt.errors import DocumentError
from mt.pipeline.results import ExplainOptions, Failure, SentenceTranslation
from mt.pipeline.translator import CHUNK_TEXTS, Translator
from mt.text.documents import DocumentOptions, open_document
from mt.text.formality import Formality
from mt.text.markup import TranslatedSegment
from mt.text.terms import Terms


@dataclass(frozen=True)
class TranslatedDocument:
    """A translated document: its content, the number of its segments, and the sentences to check.

    `problems` contains the reason for each segment that could not be translated and is unchanged.
    """

    content: bytes
    segments: int
    problems: tuple[str, ...]
    doubtful: tuple[SentenceTranslation, ...] = ()


@dataclass(frozen=True)
class FileTranslator:
    """Translator of documents of all supported formats, in one direction."""

    translator: Translator
    source: str | None = None
    target: str | None = None
    search: SearchOptions | None = None
    terms: Terms | None = None
    formality: Formality | None = None
    limits: DocumentOptions = field(default_factory=DocumentOptions)

    def translate(self, name: str, content: bytes) -> TranslatedDocument:
        """Translate the content of a file. The suffix of `name` selects the format, as in `open_document`.

        A segment that cannot be translated stays unchanged.

        Raises:
            DocumentError: The document cannot be read, or none of its segments can be translated.
            LanguageError, RequestError: The model does not support the direction or the options.
        """
        source, target = self.translator.direction_of(self.source, self.target)
        options = replace(self.limits, source_language=source, target_language=target)
        document = open_document(name, content, options)
        plain, aligned = (
            self.translator.planner(
                source=self.source,
                target=self.target,
                options=self.search,
                terms=self.terms,
                explain=ExplainOptions(alignment=alignment),
            ).with_formality(self.formality)
            for alignment in (False, True)
        )
        tasks = (
            (aligned if segment.marks and not segment.ordered else plain).attempt(
                segment.text, segment.kept, segment.marked
            )
            for segment in document.segments
        )
        translations: list[TranslatedSegment] = []
        problems: list[str] = []
        doubtful: list[SentenceTranslation] = []
        for result in self.translator.dispatcher.stream(tasks, CHUNK_TEXTS):
            if isinstance(result, Failure):
                problems.append(result.problem)
                translations.append(TranslatedSegment(result.source))
            else:
                links = tuple(link for sentence in result.sentences for link in sentence.links)
                translations.append(TranslatedSegment(result.text, links))
                doubtful += (sentence for sentence in result.sentences if sentence.doubt)
        if problems and len(problems) == len(translations):
            raise DocumentError(f"none of the {len(problems):,} texts of {name} can be translated: {problems[0]}")
        return TranslatedDocument(document.render(translations), len(translations), tuple(problems), tuple(doubtful))
