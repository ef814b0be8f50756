"""Classes of recipes: frozen, validated values, which mt/recipe.py reads from TOML.

The docstring of a field is its description in the JSON schema, from which the reference of recipe keys is generated.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from mt.languages import Direction, DirectionSet, parse_tag

Size = Literal["tiny", "small", "base", "big"]
TokenizerKind = Literal["bpe", "character", "byte"]

SIZES: dict[Size, dict[str, Any]] = {
    "tiny": {"encoder_layers": 4, "decoder_layers": 4, "d_model": 128, "d_ff": 256, "heads": 4},
    "small": {"encoder_layers": 3, "decoder_layers": 3, "d_model": 256, "d_ff": 1024, "heads": 4},
    # Vaswani et al. 2017, table 3: 63.1M and 214.2M parameters with 37,000 tied embeddings. The paper: 65M and 213M.
    "base": {"encoder_layers": 6, "decoder_layers": 6, "d_model": 512, "d_ff": 2048, "heads": 8},
    "big": {"encoder_layers": 6, "decoder_layers": 6, "d_model": 1024, "d_ff": 4096, "heads": 16, "dropout": 0.3},
}

LONGEST_NAME = 100  # most characters of the directions in a folder's name; file systems allow 255 for the whole name


class Section(BaseModel):
    """A frozen table of a recipe or of a model's metadata. Unknown keys and non-finite numbers are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class ModelConfig(Section):
    """Architecture of the Transformer. `size` selects an entry of `SIZES`; other keys override values of the entry."""

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
    norm_epsilon: float = Field(1e-5, gt=0)
    """Constant that LayerNorm adds to the variance: 1e-5 in torch and fairseq, 1e-6 in Marian and JoeyNMT."""
    activation: Literal["relu", "gelu", "swish"] = "relu"
    """Activation of the feed-forward networks. `swish` is x sigmoid(x), or SiLU (Ramachandran et al. 2017)."""
    positions: Literal["interleaved", "concatenated", "tensor2tensor", "learned"] = "interleaved"
    """Position encoding. `interleaved` alternates sines and cosines (section 3.5); `concatenated` has all sines first
    (transformers), as has `tensor2tensor`, with frequencies from 1 to 1/10000 (Marian, fairseq). `learned` is a table
    of parameters for source and target each (mBART)."""
    first_position: int = Field(0, ge=0)
    """Position of the first token in the position encoding; in fairseq, the id of the padding token plus 1."""
    scale_embedding: bool = True
    """Multiply token embeddings by sqrt(d_model) (section 3.4)."""
    embedding_norm: bool = False
    """Apply a LayerNorm to the sum of token embeddings and positions, one for each side (mBART)."""
    tie_source: bool = True
    """Share one embedding matrix between source and target (section 3.4). Must be false for separate vocabularies."""
    tie_output: bool = True
    """Share the target embedding matrix with the output layer (section 3.4; Press and Wolf 2017)."""
    logits_bias: bool = False
    """Add a bias to each logit (`decoder_ff_logit_out_b` of Marian)."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout rate of each sublayer's output and of the embeddings (section 5.4)."""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout rate of the attention probabilities."""
    activation_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout rate inside the feed-forward networks, after the activation."""
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


class CorpusConfig(Section):
    """One corpus: line-aligned files, with `{language}` in their path, or a tab-separated file with `columns`."""

    path: str
    """Path relative to `data.root`. `{language}` stands for the language; a path for a language model may lack it."""
    columns: tuple[str, ...] = ()
    """Languages of the columns of a .tsv file. An empty name skips a column: ["en", "", "de"]."""
    weight: float = Field(1.0, ge=0.001, le=1000)
    """Number of times that an epoch uses each pair of a training corpus. With 0.5, a pair is in every other epoch."""
    source_tag: str = Field("", pattern=r"^\w*$")
    """Name of a token that is put before each source of a training corpus, such as "bt" for back-translated text. The
    token lets the model distinguish such text from text that people wrote (Caswell et al. 2019)."""
    directions: DirectionSet = DirectionSet()
    """Directions for which a training corpus is used. Left out: all directions of which it has both languages."""

    @model_validator(mode="after")
    def _is_aligned_or_tabular(self) -> Self:
        if ("{language}" in self.path) == bool(self.columns):
            raise ValueError(
                f"path is {self.path!r} and columns {list(self.columns)}; accepted: a path with {{language}} "
                "(one file per language), or a .tsv file with columns"
            )
        return self

    @model_validator(mode="after")
    def _columns_have_directions(self) -> Self:
        wrong = [direction for direction in self.directions if not self.may_have(direction)]
        if wrong:
            raise ValueError(
                f"{self.path} has the columns {list(self.columns)}, but the directions {', '.join(map(str, wrong))}; "
                "accepted: directions between two of its columns"
            )
        return self

    def may_have(self, direction: Direction) -> bool:
        """Return whether the corpus may have both languages: true if it has no columns, or a column for each."""
        return not self.columns or {direction.source, direction.target} <= {*self.columns}

    def file(self, root: Path, language: str) -> Path:
        """Return `path` below the folder `root`, with `{language}` replaced."""
        return root / self.path.replace("{language}", language)


def _check_held_out(corpora: tuple[CorpusConfig, ...]) -> tuple[CorpusConfig, ...]:
    wrong = [corpus.path for corpus in corpora if corpus.weight != 1 or corpus.source_tag or len(corpus.directions)]
    if wrong:
        raise ValueError(
            f"weight, source_tag or directions are set for {', '.join(wrong)}; accepted: only in data.train"
        )
    return corpora


def _expand_corpora(value: Any, info: ValidationInfo) -> Any:
    """Return a list of corpora for paths or tables. For a language model, a plain file has the language as column."""
    if isinstance(value, str | Mapping):
        value = [value]
    if not isinstance(value, Sequence):
        return value
    corpora = [{"path": corpus} if isinstance(corpus, str) else corpus for corpus in value]
    language = info.data.get("language")
    return [
        {"columns": [language], **corpus}
        if language and isinstance(corpus, Mapping) and "{language}" not in str(corpus.get("path"))
        else corpus
        for corpus in corpora
    ]


Corpora = Annotated[tuple[CorpusConfig, ...], BeforeValidator(_expand_corpora)]
HeldOutCorpora = Annotated[Corpora, AfterValidator(_check_held_out)]
"""Corpora for validation, testing or monitoring, on which the model is not trained."""


def _check_tag(language: str) -> str:
    if parse_tag(language) != language:
        raise ValueError(f"{language!r} is not in canonical letter case; accepted: {parse_tag(language)!r}")
    return language


class CleaningConfig(Section):
    """Filters of the training pairs; validation and test sets are never cleaned. A threshold of 0 disables a filter."""

    min_words: int = Field(1, ge=0)
    """Minimum number of words of the source and of the target."""
    max_words: int = Field(250, ge=0)
    """Maximum number of words of the source and of the target."""
    max_characters: int = Field(2000, ge=0)
    """Maximum number of characters of the source and of the target."""
    max_length_ratio: float = Field(3.0, ge=0)
    """Maximum length of the longer text: max_length_ratio * (shorter length) + 10. A wide character counts as three."""
    drop_identical: bool = True
    """Drop a pair whose source and target are equal and have more than three words."""
    match_digits: bool = True
    """Drop a pair if each text has a number of 4 or more digits that the other lacks. Turn off if calendars differ."""
    max_repetition: int = Field(5, ge=0)
    """Maximum number of times that a phrase of one to four words may occur in a row."""
    min_script_share: float = Field(0.1, ge=0, le=1)
    """Minimum share of words that have a letter of the language's script, in a text of more than three words."""
    deduplicate: bool = True
    """Keep only the first of equal pairs. Requires about 100 bytes of memory per pair."""


class DataConfig(Section):
    """Corpora and the selection of their pairs."""

    root: Path = Field(default_factory=lambda: Path(os.environ.get("MT_DATA", "data")))
    """Folder of the corpora. Left out: the value of the environment variable MT_DATA, or `data`."""
    directions: DirectionSet = DirectionSet()
    """Directions that the model translates, such as ["en-de", "en-pt-BR"], or {source = ["en"], target = ["de", "fr"]}
    for each source with each target. If there are several, a tag of the target language precedes each source text."""
    language: Annotated[str, AfterValidator(_check_tag)] | None = None
    """Language of the text on which a language model is trained. Given in place of `directions`."""
    train: Corpora = Field(min_length=1)
    """Training corpora."""
    valid: HeldOutCorpora = ()
    """Corpora of the validation set, by which the best checkpoint is chosen."""
    split_validation: int = Field(0, ge=0)
    """Number of pairs of each direction, selected by `seed` among corpora without a source tag, that are moved into the
    validation set, in place of `valid`. Training pairs with a source sentence of the validation set are dropped."""
    test: HeldOutCorpora = ()
    """Corpora of the test set, on which the final model is scored."""
    temperature: float = Field(1.0, ge=1)
    """Sampling temperature of directions. A direction with a share p of all pairs gets a share of each epoch that is
    proportional to p ** (1 / temperature) (Arivazhagan et al. 2019, section 3.1). 1 keeps the shares."""
    max_tokens: int = Field(200, ge=1)
    """Maximum length of a training source or target in tokens, including end token, language tag and source tag."""
    block_tokens: int = Field(0, ge=0)
    """Number of tokens of the text blocks, cut at random offsets, that train a language model. 0: single lines."""

    @field_validator("directions", mode="before")
    @classmethod
    def _is_not_a_language(cls, value: Any) -> Any:
        if isinstance(value, Sequence) and len(value) == 1 and isinstance(value[0], str) and "-" not in value[0]:
            hint = f"['en-{value[0]}'], or language = {value[0]!r} in place of directions, for a language model"
            raise ValueError(f"{list(value)} names no target language; accepted: two languages, such as {hint}")
        return value

    @model_validator(mode="after")
    def _corpora_fit_directions(self) -> Self:
        for one, other in (("directions", "language"), ("valid", "split_validation")):
            if bool(getattr(self, one)) == bool(getattr(self, other)):
                given = "both are" if getattr(self, one) else "neither is"
                raise ValueError(f"of data.{one} and data.{other}, {given} given; accepted: exactly one")
        wrong = [
            f"{corpus.path} has the direction {direction}"
            for corpus in self.train
            for direction in corpus.directions
            if direction not in self.directions
        ]
        if wrong:
            raise ValueError(f"{', '.join(wrong)}; accepted: directions of data.directions ({self.directions})")
        unused = [
            f"{corpus.path} has the columns {list(corpus.columns)}"
            for corpus in dict.fromkeys((*self.train, *self.valid, *self.test))
            if corpus.columns and self.language not in corpus.columns and not any(map(corpus.may_have, self.directions))
        ]
        if unused:
            raise ValueError(f"{', '.join(unused)}; accepted: columns for {self.language or self.directions}")
        return self

    @property
    def languages(self) -> tuple[str, ...]:
        """All languages, sorted."""
        languages = (*self.directions.sources, *self.directions.targets, *filter(None, [self.language]))
        return tuple(sorted({*languages}))

    @property
    def source_tags(self) -> tuple[str, ...]:
        """Source tags of the training corpora, sorted."""
        return tuple(sorted({corpus.source_tag for corpus in self.train if corpus.source_tag}))


class TokenizerConfig(Section):
    """The SentencePiece tokenizer, which source and target share."""

    kind: TokenizerKind = "bpe"
    """Unit of the vocabulary: pieces of words (`bpe`), characters, or bytes. Other characters are encoded as bytes."""
    vocabulary_size: int = Field(8000, ge=300)
    """Number of pieces, including special tokens and 256 bytes. A small corpus gives fewer pieces."""
    nfkc: bool = False
    """Normalise text to Unicode's NFKC form."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """BPE-dropout rate of the training text (Provilkov et al. 2020)."""
    training_sentences: int = Field(2_000_000, ge=1)
    """Maximum number of sentences on which the tokenizer is trained; they are evenly spaced in the corpora."""
    source_tags: tuple[str, ...] = ()
    """Source tags of the vocabulary in addition to those of `data.train`, for corpora of later models."""
    model: Path | None = None
    """Folder of an existing tokenizer to use instead of training one. All other keys except `dropout` are ignored."""


Beta = Annotated[float, Field(ge=0, lt=1)]


class TrainingConfig(Section):
    """The training of a model: limits, learning rate, optimizer, regularisation and checkpoints."""

    batch_tokens: int = Field(4096, ge=16)
    """Maximum number of source tokens and of target tokens of a batch, including padding. Limits the memory."""
    update_tokens: int = Field(4096, ge=16)
    """Approximate number of target tokens of an update, over all its batches and all processes."""
    max_updates: int = Field(100_000, ge=1)
    """Number of updates after which training ends."""
    max_minutes: float | None = Field(None, gt=0)
    """Minutes after which training ends, including those before a resume."""
    schedule: Literal["noam", "inverse_sqrt"] = "inverse_sqrt"
    """Learning rate schedule: `noam`, equation 3 of the paper, or `inverse_sqrt`, the same curve given by its peak."""
    learning_rate: float | None = Field(None, gt=0)
    """Peak of `inverse_sqrt`, or factor of `noam` (1 in the paper). Left out: 1 with `noam`; otherwise
    0.034 / sqrt(d_model) with muon and 1e-3 with adam."""
    warmup_updates: int | None = Field(None, ge=1)
    """Number of updates over which the learning rate rises to its peak. Left out: a tenth of the updates that fit into
    `max_updates` and `max_minutes`, at most 1,000."""
    cooldown_updates: int | None = Field(None, ge=0)
    """Number of updates at the end of training over which the learning rate falls to 0. Left out: the last fifth of
    `max_updates` or of `max_minutes`, whichever ends first."""
    shard: bool = False
    """Split weights, gradients and optimizer states among the processes, for a model that does not fit on one GPU."""
    optimizer: Literal["adam", "muon"] = Field(default_factory=lambda fields: "adam" if fields.get("shard") else "muon")
    """Optimizer of the weight matrices in the layers; all other parameters use Adam (Jordan et al. 2024). Left out:
    adam if `shard` is true or [tuning] is given, otherwise muon."""
    adam_betas: tuple[Beta, Beta] = (0.9, 0.98)
    """Decay rates of Adam's first and second moment."""
    adam_epsilon: float = Field(1e-9, gt=0)
    """Constant that Adam adds to the denominator."""
    weight_decay: float = Field(0.0, ge=0)
    """Decoupled weight decay, as a factor of the learning rate (Loshchilov and Hutter 2019)."""
    clip_norm: float = Field(1.0, gt=0)
    """Maximum norm of the gradient of an update. A gradient with a larger norm is scaled down to this norm."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Label smoothing (section 5.4)."""
    r_drop: float = Field(0.0, ge=0)
    """Weight of the divergence between the outputs of two forward passes with different dropout (Wu et al. 2021; alpha
    in that paper, usually 1 to 5). Above 0, an update takes twice as long."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Number format of forward and backward passes. `auto` is bfloat16 if the devices of all processes have
    instructions for it, otherwise float32; the choice is made at each start."""
    compile: bool = False
    """Compile the loss with torch.compile."""
    validate_every: int = Field(500, ge=1)
    """Number of updates between validations."""
    validate_sentences: int = Field(1000, ge=1)
    """Maximum number of validation sentences that are translated for BLEU. The loss is computed on all sentences."""
    patience: int = Field(10, ge=1)
    """Number of consecutive validations without a better BLEU (language model: perplexity) that end training."""
    save_every: int = Field(500, ge=1)
    """Number of updates between checkpoints. Each validation also writes a checkpoint."""
    keep_checkpoints: int = Field(5, ge=1)
    """Number of latest checkpoints that are kept. The best checkpoint is kept in any case."""
    average_checkpoints: int = Field(5, ge=1)
    """Number of latest kept checkpoints whose averaged weights are a candidate for the final model."""
    ema_decay: float | None = Field(None, gt=0, lt=1)
    """Decay of an exponential moving average of the weights, another candidate for the final model. Left out: none."""
    max_skipped_updates: int = Field(5, ge=0)
    """Maximum number of consecutive updates that may be skipped because of a non-finite loss or a lack of memory."""

    @model_validator(mode="after")
    def _options_are_compatible(self) -> Self:
        if self.compile and self.shard:
            raise ValueError("compile and shard are both true; accepted: one of them")
        if self.optimizer == "muon" and self.shard:
            raise ValueError("shard is true and optimizer is 'muon', which needs whole matrices; accepted: 'adam'")
        return self


class DecodingConfig(Section):
    """Search options of validation. They are also the model's defaults, which a request can override."""

    beam_size: int = Field(5, ge=1)
    """Number of beams; 1 is greedy search."""
    length_penalty: float = Field(1.0, ge=0)
    """Exponent of the length normalisation; 0 switches it off."""
    normalization: Literal["length", "gnmt"] = "length"
    """Divisor of the score of n tokens: n ** length_penalty, or ((5 + n) / 6) ** length_penalty (Wu et al. 2016)."""
    no_repeat_ngram: int = Field(0, ge=0)
    """Length of token sequences that may not occur twice in a translation; 0 allows all."""
    max_length_factor: float = Field(2.0, ge=0)
    """Maximum length of a translation in tokens: max_length_factor * (source length) + max_length_offset."""
    max_length_offset: int = Field(10, ge=1)
    """Constant term of the maximum length of a translation, in tokens."""


class TuningConfig(Section):
    """Fine-tuning: the trained model with which training begins, and the parameters that are trained.

    The new model keeps architecture and tokenizer. With this section, `[model]` may only set dropout rates,
    `[tokenizer]` may only set `dropout`, and the defaults of `[decoding]` are those of the trained model.
    """

    model: Path
    """Directory of a model that was trained here or imported."""
    directions: DirectionSet = DirectionSet()
    """Directions of the trained model, which are read from its directory."""
    frozen: tuple[str, ...] = ()
    """Names of parameters that are not trained. `*` matches any text, as in ["encoder.*", "embedding.*"]."""
    adapter_rank: int = Field(0, ge=0)
    """Rank of low-rank adapters of the query and value projections of attention (Hu et al. 2022). Above 0, only the
    adapters are trained; they are merged into the weights of the final model."""
    adapter_scale: float = Field(1.0, gt=0)
    """Factor of the adapters' output, alpha / r in the paper."""
    monitor: HeldOutCorpora = ()
    """Corpora, such as text of the former domain, whose loss each validation reports."""


class Recipe(Section):
    """A recipe: everything that determines a training run."""

    name: str = Field(pattern=r"^[\w.-]+$")
    """Name of the run. The name of its folder is this name followed by the directions."""
    seed: int = Field(1, ge=0)
    """Seed of the initial weights, of dropout, of BPE-dropout and of the order of the data."""
    about: str = Field("", max_length=500)
    """What the model is trained on, in a sentence that the service shows to its users."""
    data: DataConfig
    cleaning: CleaningConfig = CleaningConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig
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
        """Directions of the final model: those of the model that is fine-tuned, then the new ones of the data."""
        before, trained = self.tuning.directions if self.tuning else DirectionSet(), self.data.directions
        if not len(before):
            return trained
        added = [direction for direction in trained if direction not in before]
        return DirectionSet.of((*before, *added)) if added else before

    @property
    def run_name(self) -> str:
        """Name of the run's folder: name and directions, as in `multi30k-en-de`, or a digest of long directions."""
        directions = self.data.language or "+".join(map(str, self.data.directions))
        if len(directions) > LONGEST_NAME:
            digest = hashlib.sha256(directions.encode()).hexdigest()
            directions = f"{len(self.data.directions)}-directions-{digest[:8]}"
        return f"{self.name}-{directions}"
