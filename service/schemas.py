"""Bodies and responses of POST /translate, by LibreTranslate's contract with our extensions, and parts of other bodies.

The method `of` of a response returns the response to a request, with the values of the service's answers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from mt.decoding.options import SearchOptions
from mt.pipeline.results import SentenceTranslation
from service.errors import shorten
from service.glossaries.offered import OFFERED
from service.http.fields import (
    AsNumber,
    Count,
    FileField,
    FlagField,
    FormalityField,
    JsonPairs,
    JsonTexts,
    LanguageField,
    Number,
    TextField,
    TextOrTexts,
    Words,
)
from service.translation.answers import other_texts, rounded_match
from service.translation.jobs import Answer, DetectedSource, StreamedSentence, percent, untranslated_parts

TextRange = tuple[int, int]
"""Begin and end of a range of characters (code points) in a text."""

MAX_TERMS = 1000  # glossary terms of a request
PART_CHARACTERS = 65_536  # of an answer that are joined, encoded and sent in one step
_SEARCH_OPTIONS = frozenset(SearchOptions.__dataclass_fields__)
_CONTRACT = {"q", "file", "source", "target", "format", "alternatives", "api_key"}
AUTO = "auto"  # source language that stands for the detected one
DEFAULT_MODEL = "default"
FORMALITY: Any = Field(
    None,
    description="`less` and `prefer_less`: informal; `more` and `prefer_more`: formal. German and French have them; "
    "for other targets, `less` and `more` are refused, and the other values have no effect.",
)

SourceField = Annotated[LanguageField, AfterValidator(lambda code: AUTO if code.lower() == AUTO else code)]
"""A source language, or AUTO in any letter case."""


class RequestFields(BaseModel):
    """Base class of bodies. Unknown fields are ignored; a null field, or an empty language, counts as missing."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    api_key: TextField | None = Field(None, description="API key, if the service requires one.")

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        reference = handler(schema)
        described = handler.resolve_ref_schema(reference)
        for name, field in described["properties"].items():
            if name not in described.get("required", ()) and {"type": "null"} not in field.get("anyOf", ()):
                about = {key: field.pop(key) for key in ("title", "description", "default") if key in field}
                described["properties"][name] = {"anyOf": [field, {"type": "null"}], **about}
        return reference

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_fields(cls, fields: dict[str, Any]) -> dict[str, Any]:
        empty = {"source", "target", "format", "model", "api_key"}
        return {name: item for name, item in fields.items() if item is not None and not (item == "" and name in empty)}


class TranslationFields(RequestFields):
    """The fields that requests for texts and requests for files have in common."""

    glossary: JsonPairs = Field(default_factory=dict, description="Terms and their translations.")
    glossary_id: TextField | None = Field(
        None,
        description="Id of a glossary stored by POST /v2/glossaries; or `operator`: the terms that GET "
        "/frontend/settings lists, those of the language of each text. `glossary` takes precedence.",
    )
    do_not_translate: JsonTexts = Field(default_factory=list, description="Terms that are not translated.")
    memory: TextField | None = Field(
        None, description="Id of a translation memory (PUT /memories); POST /translate then returns `match`."
    )
    memory_threshold: Number = Field(
        100, ge=0, le=100, description="Smallest similarity of a match, from 0 to 100; 100: exact matches only."
    )
    formality: FormalityField = FORMALITY
    model: Annotated[TextField, AfterValidator(lambda name: "" if name == DEFAULT_MODEL else name)] | None = Field(
        None,
        description="Name of a model of GET /models, or `default`, the default model of a direction; POST /translate "
        "then returns `models`.",
    )

    @model_validator(mode="before")
    @classmethod
    def _no_misspelt_field(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Refuse search options that are no fields, and names like those of extensions; ignore other unknown fields."""
        unknown = [name for name in fields if name not in cls.model_fields]
        if not unknown:
            return fields
        extensions = [name for name in cls.model_fields if name not in _CONTRACT]
        if refused := ", ".join(sorted(_SEARCH_OPTIONS.intersection(unknown))):
            message = "a request cannot set {names}; accepted: {extensions}"
            raise PydanticCustomError("misspelt", message, {"names": refused, "extensions": ", ".join(extensions)})
        for name in unknown[:10]:  # the comparison is slow
            if similar := get_close_matches(name[:50], extensions, 1, 0.85):
                message = "unknown parameter {name}; did you mean {similar}?"
                raise PydanticCustomError("misspelt", message, {"name": shorten(name), "similar": similar[0]})
        return fields

    def term_problems(self, source: str) -> list[str]:
        """Return what is wrong with the terms of a text in `source`."""
        terms = len(self.glossary) + len(self.do_not_translate)
        problems = []
        if terms > MAX_TERMS:
            problems.append(f"glossary and do_not_translate have {terms} terms; accepted: at most {MAX_TERMS}")
        if self.glossary_id not in (None, OFFERED) and source == AUTO:
            problems.append("glossary_id needs a source language")
        return problems


class FileRequest(TranslationFields):
    """A file to translate."""

    file: FileField = Field(description="File in a format that GET /frontend/settings lists.")
    source: SourceField = Field(description="Code of GET /languages, or auto.")
    target: LanguageField = Field(description="Code of GET /languages.")
    columns: Words = Field(
        [],
        description="Columns to translate of a .csv or .tsv file, separated by commas: names in the first row, or "
        "numbers.",
    )
    encoding: TextField = Field("", description="Encoding of a text file that is not Unicode; detected if left out.")
    quality: FlagField = Field(False, description="Whether to return how many sentences are doubtful.")
    tmx: FlagField = Field(False, description="Whether to write the sentences and their translations to a TMX file.")


class DetectedLanguage(BaseModel):
    """The detected language of a text, with a confidence from 0 to 100."""

    confidence: float
    language: str

    @classmethod
    def of(cls, detected: DetectedSource) -> Self:
        return cls(confidence=round(100 * detected.confidence, 1), language=detected.language)


class TranslateRequest(TranslationFields):
    """Texts to translate, and their languages. The text between sentences is preserved."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"q": "Where is the train station?", "source": "en", "target": "de"},
                {"q": ["Good morning.", "Thank you."], "source": "auto", "target": "de", "alternatives": 2},
            ],
            "required": ["q", "source"],
            "anyOf": [{"required": ["target"]}, {"required": ["targets"]}],  # see `_first_target`
        },
    )

    q: TextOrTexts = Field(description="Text, or list of texts.")
    source: SourceField = Field(
        description="Code of GET /languages; or auto, which detects the language of each text. A code may have a "
        "region: `en_US` and `eng` name `en`."
    )
    target: LanguageField = Field(
        description="Code of GET /languages. Required without `targets`; with `targets`, the default is the first of "
        "them."
    )
    format: Annotated[TextField, WithJsonSchema({"type": "string", "enum": ["text", "html"]})] = Field(
        "text", description="text, or html: tags then stay with their words, and entities stay escaped."
    )
    alternatives: Count = Field(0, description="Largest number of alternative translations of each text.")
    targets: JsonTexts = Field(default_factory=list, description="Target languages; `translations` has the answers.")
    split_sentences: FlagField = Field(True, description="False if each text is one sentence.")
    beam_size: Annotated[int, Field(ge=1), AsNumber] | None = Field(
        None, description="Beam size of the search; the model's default if left out."
    )
    quality: FlagField = Field(False, description="Whether to return the expected quality of each text, from 0 to 100.")
    untranslated: FlagField = Field(
        False, description="Whether to list unchanged sentences, unknown words and missing clauses."
    )
    segments: FlagField = Field(
        False, description="Whether to return the ranges of each sentence in both texts; for plain text only."
    )
    alignment: FlagField = Field(False, description="Whether to return `segments` with the alignment of words.")
    attention: FlagField = Field(
        False, description="Whether to return `segments` with the model's cross-attention, of at most 200,000 weights."
    )
    stream: FlagField = Field(False, description="Whether to answer with server-sent events, one per sentence.")
    timeout_ms: Annotated[int, Field(ge=1, le=86_400_000), AsNumber] | None = Field(
        None, description="Time after which the request is answered with 504."
    )

    @model_validator(mode="before")
    @classmethod
    def _first_target(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Use the first of `targets` as `target` if `target` is missing."""
        targets = fields.get("targets")
        if targets and isinstance(targets, list) and fields.get("target") in (None, ""):
            return fields | {"target": targets[0]}
        return fields

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.q,) if isinstance(self.q, str) else tuple(self.q)

    @property
    def lists_segments(self) -> bool:
        return self.segments or self.alignment or self.attention


class SegmentAttention(BaseModel):
    """Cross-attention of a sentence: its tokens, and `weights[layer][head][target token][source token]`."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: tuple[tuple[tuple[tuple[float, ...], ...], ...], ...]


class SegmentResponse(BaseModel):
    """A sentence. `source` is its range in the text, and `target` is the range of its translation."""

    source: TextRange
    target: TextRange
    quality: float | None = Field(None, description="From 0 to 100.")
    unfamiliar: bool | None = Field(
        None, description="True if `quality` is absent because the sentence is unlike the model's training text."
    )
    match: float | None = Field(None, description="From 0 to 1; only with a match in the memory.")
    untranslated: tuple[str, ...] | None = Field(
        None, description="The sentence if it stays unchanged, or its unknown words and missing clauses; if requested."
    )
    alternatives: tuple[str, ...] | None = None
    alignment: tuple[tuple[TextRange, TextRange], ...] | None = Field(None, description="Pairs of aligned ranges.")
    attention: SegmentAttention | None = None

    @classmethod
    def of(cls, request: TranslateRequest, sentence: SentenceTranslation) -> Self:
        maps = sentence.attention
        others = other_texts(sentence.text, (alternative.text for alternative in sentence.alternatives))
        return cls(
            source=sentence.source_range,
            target=sentence.target_range,
            quality=percent(sentence.confidence),
            unfamiliar=sentence.unfamiliar or None,
            match=rounded_match(sentence.match),
            untranslated=(untranslated_parts(sentence) or None) if request.untranslated else None,
            alternatives=others if request.alternatives else None,
            alignment=sentence.links if request.alignment else None,
            attention=SegmentAttention(source=maps.source, target=maps.target, weights=maps.weights) if maps else None,
        )


class TargetResponse(BaseModel):
    """Answer for one target. If `q` is a list, each field is a list. Fields that are not requested are absent."""

    translatedText: str | list[str]
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = Field(None, description="Only with auto.")
    alternatives: list[str] | list[list[str]] | None = Field(None, description="Other translations, the best first.")
    bridge: str | list[str | None] | None = Field(
        None, description="Pivot language of a text, if no model translates directly from source to target."
    )
    quality: float | list[float | None] | None = Field(None, description="From 0 to 100.")
    match: float | list[float | None] | None = Field(
        None,
        description="Similarity, from 0 to 1, of the text to its match in the memory; absent without a match.",
    )
    untranslated: list[str] | list[list[str]] | None = Field(
        None, description="Unchanged sentences, unknown words and missing clauses."
    )
    models: list[str] | list[list[str]] | None = Field(
        None, description="Names of the models that translated a text: two if there is a pivot. Only with `model`."
    )
    segments: list[SegmentResponse] | list[list[SegmentResponse]] | None = None

    @classmethod
    def of(cls, request: TranslateRequest, answers: Sequence[Answer]) -> Self:
        """Return the response for one target."""

        def values(value: "Callable[[Answer], object]") -> Any:  # in quotes: it is evaluated for each response
            listed = [value(answer) for answer in answers]
            return listed[0] if isinstance(request.q, str) else listed

        return cls(
            translatedText=values(lambda answer: answer.text),
            detectedLanguage=values(lambda answer: answer.detected and DetectedLanguage.of(answer.detected))
            if request.source == AUTO
            else None,
            alternatives=values(lambda answer: list(answer.alternatives)) if request.alternatives else None,
            bridge=values(lambda answer: answer.bridge or None) if any(answer.bridge for answer in answers) else None,
            quality=values(lambda answer: percent(answer.confidence)) if request.quality else None,
            match=values(lambda answer: rounded_match(answer.match)) if request.memory else None,
            untranslated=values(lambda answer: list(answer.untranslated)) if request.untranslated else None,
            models=values(lambda answer: list(answer.models)) if request.model is not None else None,
        )

    @classmethod
    def written(cls, request: TranslateRequest, answers: Sequence[Answer]) -> Iterator[str]:
        """Yield pieces of JSON without the last brace; one call for all segments would keep the interpreter lock."""

        def segment(sentence: SentenceTranslation) -> list[str]:
            return [SegmentResponse.of(request, sentence).model_dump_json(exclude_none=True)]

        yield cls.of(request, answers).model_dump_json(exclude_none=True)[:-1]
        if request.lists_segments:
            yield ',"segments":'
            texts = (_written_list(map(segment, answer.sentences)) for answer in answers)
            yield from next(texts) if isinstance(request.q, str) else _written_list(texts)


def _written_list(items: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the pieces of a JSON list, given those of its items."""
    separator = "["
    for item in items:
        yield separator
        yield from item
        separator = ","
    yield "[]" if separator == "[" else "]"


def parts_of(pieces: Iterable[str]) -> list[bytes]:
    """Return the bytes of `pieces`, joined to parts of about PART_CHARACTERS characters."""
    parts, waiting, size = list[bytes](), list[str](), 0
    for piece in pieces:
        for begin in range(0, len(piece), PART_CHARACTERS):
            waiting.append(piece[begin : begin + PART_CHARACTERS])
            size += len(waiting[-1])
            if size >= PART_CHARACTERS:
                parts.append("".join(waiting).encode())
                waiting, size = [], 0
    return [*parts, "".join(waiting).encode()]


class TranslateResponse(TargetResponse):
    """Answer for `target`. If the request has `targets`, `translations` has the answer for each of them."""

    translations: dict[str, TargetResponse] | None = None


class StreamedSegment(BaseModel):
    """A translated sentence. Joined together, the `translatedText` of all sentences is the whole translation."""

    text: int | None = Field(None, description="Index of the text in the list; absent for a single text.")
    index: int
    source: TextRange
    translatedText: str
    quality: float | None = None

    @classmethod
    def of(cls, request: TranslateRequest, sentence: StreamedSentence) -> Self:
        return cls(
            text=sentence.text if isinstance(request.q, list) else None,
            index=sentence.index,
            source=sentence.source,
            translatedText=sentence.translation,
            quality=percent(sentence.confidence) if request.quality else None,
        )
