"""Contents of the JSON files of a model directory."""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from mt.config import DecodingConfig, ModelConfig
from mt.languages import Direction, DirectionSet
from mt.section import Section

COVERED_LENGTH = 80  # tokens; the source length of models for which it is unknown
FORMAT_VERSION, INT8_VERSION = 1, 2  # with float and with int8 weights; CHANGELOG.md says which releases read them


class Description(Section):
    """Content of `config.json` of a translation model: architecture, directions and default search options."""

    format_version: int = FORMAT_VERSION
    name: str
    about: str = ""
    """One sentence for users about the data that the model was trained on."""
    directions: DirectionSet
    vocabulary_size: int
    source_vocabulary_size: int | None = None
    """Size of the source vocabulary if source and target have separate vocabularies, otherwise None."""
    model: ModelConfig
    decoding: DecodingConfig = DecodingConfig()
    weights: Literal["float32", "int8"] = "float32"
    """Number format of the matrices in `model.safetensors`. An int8 matrix has a float scale for each row."""
    normalised_text: bool = False
    """Whether all text that the model was trained on was normalised (mt.text.normalise)."""
    source_length: int = Field(COVERED_LENGTH, ge=1)
    """Number of tokens that few sources of the training text exceed. Longer sentences are divided at clauses."""

    @field_validator("directions")
    @classmethod
    def _has_directions(cls, directions: DirectionSet) -> DirectionSet:
        if not len(directions):
            raise ValueError("the list is empty; accepted: at least one direction, such as 'en-de'")
        return directions

    @model_validator(mode="after")
    def _format_version_states_int8_weights(self) -> Self:
        version = INT8_VERSION if self.weights == "int8" else FORMAT_VERSION
        if self.format_version != version:
            raise ValueError(
                f"weights is {self.weights} and format_version is {self.format_version}; accepted: version {version}"
            )
        return self

    def with_weights(self, weights: Literal["float32", "int8"]) -> Self:
        """Return a copy whose weights have the format `weights`, with the matching format version."""
        version = INT8_VERSION if weights == "int8" else FORMAT_VERSION
        return self.model_copy(update={"weights": weights, "format_version": version})

    @model_validator(mode="after")
    def _two_vocabularies_have_two_matrices(self) -> Self:
        if self.source_vocabulary_size is not None and self.model.tie_source:
            raise ValueError("source_vocabulary_size is given and model.tie_source is true; accepted: one of them")
        return self


class CalibrationPair(Section):
    """A source text and its translation, on which the outputs of int8 and float32 weights are compared."""

    direction: Direction
    source: str
    target: str


class Confidence(Section):
    """Content of `confidence.json`: parameters of a formula that estimates chrF / 100 of a translation.

    intercept + slope * (mean token probability)**exponent + token_length * ln(characters of the translation per token)

    See mt/scoring/confidence.py. The parameters were fitted to translations of `sentences` sentences on which the model
    was not trained.
    """

    slope: float = Field(ge=0)
    exponent: int = Field(1, ge=1)
    intercept: float
    token_length: float = 0.0
    max_novelty: float = Field(1.0, ge=0, le=1)
    """Sources of a higher novelty (see SourceBigrams) get no estimate, because the fit had few such sources."""
    sentences: int = Field(ge=1)


class CalibrationLoss(Section):
    """Content of `int8.json` of a model with calibration text: what the text loses by int8 weights.

    `loss` is the decrease of the log-probability of its `sentences` targets, in nats per token.
    """

    sentences: int = Field(ge=1)
    loss: float


class Int8Check(Section):
    """Content of `int8.json` of an imported model without calibration text: the divergence of int8 from float32.

    The numbers are Kullback-Leibler divergences in nats per token, from the float32 distribution of the next token to
    the int8 one. They are measured along the float32 translations of `sentences` sentences.
    """

    sentences: int = Field(ge=1)
    divergence: float
    """Mean over all tokens of all sentences."""
    worst_decile: float
    """Mean over the tenth of the sentences with the largest mean divergence."""
