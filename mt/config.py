"""Classes of recipes: frozen, validated values that mt/recipe.py reads from TOML.

The docstring of a field is its description in the JSON schema, from which the reference of recipe keys is generated.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import Field, model_validator

from mt.data_config import CleaningConfig, DataConfig, HeldOutCorpora
from mt.languages import DirectionSet
from mt.section import Section

Size = Literal["tiny", "small", "base", "big"]

SIZES: dict[Size, dict[str, Any]] = {
    "tiny": {"encoder_layers": 4, "decoder_layers": 4, "d_model": 128, "d_ff": 256, "heads": 4},
    "small": {"encoder_layers": 3, "decoder_layers": 3, "d_model": 256, "d_ff": 1024, "heads": 4},
    # Sizes of Vaswani et al. 2017, table 3. With 37,000 tied embeddings, they have 63.1M and 214.2M parameters; the
    # paper states 65M and 213M.
    "base": {"encoder_layers": 6, "decoder_layers": 6, "d_model": 512, "d_ff": 2048, "heads": 8},
    "big": {"encoder_layers": 6, "decoder_layers": 6, "d_model": 1024, "d_ff": 4096, "heads": 16, "dropout": 0.3},
}

LONGEST_NAME = 100  # maximum length of the directions in a folder's name; file systems allow 255 characters in total


class ModelSection(Section):
    """Architecture of the Transformer. `size` selects default values (docs/train.md); other keys override them."""

    encoder_layers: int = Field(ge=1, le=1000)
    """Number of encoder layers."""
    decoder_layers: int = Field(ge=1, le=1000)
    """Number of decoder layers."""
    d_model: int = Field(ge=2, multiple_of=2)
    """Size of embeddings and of each layer's output."""
    d_ff: int = Field(ge=1)
    """Inner size of the feed-forward networks."""
    heads: int = Field(ge=1)
    """Number of attention heads, a divisor of `d_model`."""
    norm: Literal["pre", "post"] = "pre"
    """Position of LayerNorm: `post` as in the paper (section 3.1), or `pre` for deep models (Xiong et al. 2020)."""
    activation: Literal["relu", "gelu", "swish"] = "relu"
    """Activation of the feed-forward networks. `swish` is x sigmoid(x), or SiLU (Ramachandran et al. 2017)."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout rate of each sublayer's output and of the embeddings (section 5.4)."""
    max_length: int = Field(1024, ge=8, le=1_000_000)
    """Longest source or target that the model accepts, in tokens."""

    @model_validator(mode="before")
    @classmethod
    def _apply_size(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or "size" not in values:
            return values
        explicit = {key: value for key, value in values.items() if key != "size"}
        if values["size"] not in get_args(Size):  # keep the key: it is reported with all other problems
            return {**SIZES["base"], **values}
        return {**SIZES[values["size"]], **explicit}

    @model_validator(mode="after")
    def _heads_divide_d_model(self) -> Self:
        if self.d_model % self.heads:
            raise ValueError(f"d_model is {self.d_model} and heads {self.heads}; accepted: heads that divide d_model")
        return self


class ModelConfig(ModelSection):
    """Architecture of any model, trained here or imported: the keys of a recipe, and what only other toolkits need."""

    norm_epsilon: float = Field(1e-5, gt=0)
    """Constant that LayerNorm adds to the variance: 1e-5 in torch, 1e-6 in Marian."""
    positions: Literal["interleaved", "concatenated", "tensor2tensor", "learned"] = "interleaved"
    """Position encoding. `interleaved` alternates sines and cosines (section 3.5). `concatenated` has all sines before
    all cosines (transformers). `tensor2tensor` does too, with frequencies from 1 to exactly 1/10000 (Marian, M2M-100).
    `learned` has a table of parameters for the source and another one for the target (mBART)."""
    first_position: int = Field(0, ge=0)
    """Position of the first token in the position encoding; 2 in M2M-100."""
    scale_embedding: bool = True
    """Multiply token embeddings by sqrt(d_model) (section 3.4)."""
    embedding_norm: bool = False
    """Apply a LayerNorm to the sum of token embeddings and positions, separate for source and target (mBART)."""
    tie_source: bool = True
    """Share one embedding matrix between source and target (section 3.4). Must be false for separate vocabularies."""
    tie_output: bool = True
    """Share the target embedding matrix with the output layer (section 3.4; Press and Wolf 2017)."""
    logits_bias: bool = False
    """Add a bias to each logit (`decoder_ff_logit_out_b` of Marian)."""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout rate of the attention probabilities."""
    activation_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout rate inside the feed-forward networks, after the activation."""


class TokenizerConfig(Section):
    """The SentencePiece BPE tokenizer, which source and target share. Characters that it lacks are encoded as bytes."""

    vocabulary_size: int = Field(8000, ge=300)
    """Number of pieces, including special tokens and 256 bytes. A small corpus gives fewer pieces."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """BPE-dropout rate of the training text (Provilkov et al. 2020)."""
    training_sentences: int = Field(2_000_000, ge=1)
    """Maximum number of sentences to train the tokenizer on, evenly spaced in the corpora."""
    source_tags: tuple[str, ...] = ()
    """Source tags to add to the vocabulary besides those of `data.train`, so that later models can use them for
    corpora."""
    model: Path | None = None
    """Folder of an existing tokenizer to use instead of training one. All other keys except `dropout` are ignored."""


class TrainingConfig(Section):
    """The training of a model: limits, learning rate, optimizer, regularisation and checkpoints."""

    batch_tokens: int = Field(4096, ge=16)
    """Maximum number of source tokens and of target tokens in a batch, including padding; limits the memory."""
    update_tokens: int = Field(4096, ge=16)
    """Approximate number of target tokens of an update, over all its batches and all processes."""
    max_updates: int = Field(100_000, ge=1)
    """Number of updates after which training ends."""
    max_minutes: float | None = Field(None, gt=0)
    """Minutes after which training ends, including those before a resume."""
    schedule: Literal["noam", "inverse_sqrt"] = "inverse_sqrt"
    """Learning rate schedule. `noam` is equation 3 of the paper. `inverse_sqrt` has the same shape; its peak is
    `learning_rate`."""
    learning_rate: float | None = Field(None, gt=0)
    """Peak of `inverse_sqrt`, or factor of `noam` (1 in the paper). Left out: 1 with `noam`; otherwise
    0.034 / sqrt(d_model) with muon and 1e-3 with adam."""
    warmup_updates: int | None = Field(None, ge=1)
    """Number of updates over which the learning rate rises to its peak. Left out: a tenth of the updates that fit into
    `max_updates` and `max_minutes`, at most 1,000."""
    cooldown_updates: int | None = Field(None, ge=0)
    """Number of updates at the end of training over which the learning rate falls to 0. Left out: the last fifth of
    `max_updates` or of `max_minutes`, whichever ends first."""
    optimizer: Literal["adam", "muon"] = "muon"
    """Optimizer of the weight matrices in the layers; all other parameters use Adam (Jordan et al. 2024). Left out:
    adam if [tuning] is given, otherwise muon."""
    clip_norm: float = Field(1.0, gt=0)
    """Maximum norm of the gradient of an update. A gradient with a larger norm is scaled down to this norm."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Label smoothing (section 5.4)."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Number format of forward and backward passes. `auto` is bfloat16 if the devices of all processes have
    instructions for it, otherwise float32; the choice is made at each start."""
    validate_every: int = Field(500, ge=1)
    """Number of updates between validations."""
    validate_sentences: int = Field(1000, ge=1)
    """Maximum number of validation sentences that are translated for BLEU. The loss is computed on all sentences."""
    patience: int = Field(10, ge=1)
    """Training ends after this number of validations in a row without a better BLEU."""
    save_every: int = Field(500, ge=1)
    """Number of updates between checkpoints. A validation writes one, too, and so do 3 minutes without any."""
    keep_checkpoints: int = Field(5, ge=1)
    """Number of latest checkpoints to keep. The best checkpoint is kept in any case."""
    average_checkpoints: int = Field(5, ge=1)
    """Number of latest checkpoints to average. The averaged weights are a candidate for the final model."""


class DecodingConfig(Section):
    """Search options of validation. They are also the model's defaults, which a request can override."""

    beam_size: int = Field(5, ge=1)
    """Number of beams; 1 is greedy search."""
    length_penalty: float = Field(1.0, ge=0)
    """Exponent of the length normalisation; 0 switches it off."""
    normalization: Literal["length", "gnmt"] = "length"
    """Divisor of the score of n tokens: `length` is n ** length_penalty, `gnmt` ((5 + n) / 6) ** length_penalty (Wu et
    al. 2016)."""
    no_repeat_ngram: int = Field(0, ge=0)
    """Length of token sequences that may not occur twice in a translation; 0 allows all."""
    max_length_factor: float = Field(2.0, ge=0)
    """Maximum length of a translation in tokens: max_length_factor * (source length) + max_length_offset."""
    max_length_offset: int = Field(10, ge=1)
    """Constant term of the maximum length of a translation, in tokens."""


class TuningConfig(Section):
    """Fine-tuning: the trained model with which training begins, and the parameters to train.

    The new model has the architecture and the tokenizer of the trained model. With this section, `[model]` may only set
    dropout rates, `[tokenizer]` may only set `dropout`, and the defaults of `[decoding]` are those of the trained
    model.
    """

    model: Path
    """Directory of a model that was trained here or imported, or "starter" for the starter model of the package."""
    frozen: tuple[str, ...] = ()
    """Names of parameters that are not trained. `*` matches any text, as in ["encoder.*", "embedding.*"]."""
    monitor: HeldOutCorpora = ()
    """Further corpora, for example text of the former domain. Each validation reports the loss on each of them."""
    directions: DirectionSet = Field(DirectionSet(), exclude=True)
    """Directions of the trained model. They are read from the model's directory, and are no key of a recipe."""
    architecture: ModelConfig | None = Field(None, exclude=True)
    """Architecture of the trained model. It is read from the model's directory, and is no key of a recipe."""


class Recipe(Section):
    """A recipe: all values that determine a training run."""

    name: str = Field(pattern=r"^[\w.-]+$")
    """Name of the run. The name of its folder is this name followed by the directions."""
    seed: int = Field(1, ge=0)
    """Seed of the initial weights, of dropout, of BPE-dropout and of the order of the data."""
    about: str = Field("", max_length=500)
    """One sentence about the training data. The service shows it to users."""
    data: DataConfig
    cleaning: CleaningConfig = CleaningConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelSection
    training: TrainingConfig = Field(default_factory=TrainingConfig)
    decoding: DecodingConfig = DecodingConfig()
    tuning: TuningConfig | None = None
    """Fine-tuning of a trained model. Left out: training begins with random weights."""

    @model_validator(mode="before")
    @classmethod
    def _tune_with_adam(cls, values: Any) -> Any:
        training = values.get("training", {}) if isinstance(values, Mapping) else None
        if isinstance(training, Mapping) and values.get("tuning") is not None:
            return {**values, "training": {"optimizer": "adam", **training}}
        return values

    @property
    def directions(self) -> DirectionSet:
        """Directions of the final model: those of the fine-tuned model, if any, then the new ones of the data."""
        before, trained = self.tuning.directions if self.tuning else DirectionSet(), self.data.directions
        if not len(before):
            return trained
        added = [direction for direction in trained if direction not in before]
        return DirectionSet.of((*before, *added)) if added else before

    @property
    def architecture(self) -> ModelConfig:
        """Architecture of the final model: that of `model` or, with [tuning], of the trained model with its dropout."""
        if self.tuning is None or self.tuning.architecture is None:
            return ModelConfig.model_validate(self.model.model_dump())
        return self.tuning.architecture.model_copy(update={"dropout": self.model.dropout})

    @property
    def run_name(self) -> str:
        """Name of the run's folder: name and directions, as in `multi30k-en-de`.

        A digest replaces very long directions.
        """
        directions = "+".join(map(str, self.data.directions))
        if len(directions) > LONGEST_NAME:
            digest = hashlib.sha256(directions.encode()).hexdigest()
            directions = f"{len(self.data.directions)}-directions-{digest[:8]}"
        return f"{self.name}-{directions}"
