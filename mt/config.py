"""Recipes: everything that decides a model, as frozen, checked values. mt/recipe.py reads them from TOML."""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

Size = Literal["tiny", "small", "base", "big"]

SIZES: dict[Size, dict[str, Any]] = {
    "tiny": {"encoder_layers": 4, "decoder_layers": 4, "d_model": 128, "d_ff": 256, "heads": 4},
    "small": {"encoder_layers": 3, "decoder_layers": 3, "d_model": 256, "d_ff": 1024, "heads": 4},
    # Vaswani et al. 2017, table 3. With a shared vocabulary of 37,000 ours count 63.1M and 214.2M parameters; the
    # paper prints 65M and 213M. Three-way tying leaves 37,000 x d_model embeddings, once; the rest is fixed by the
    # table, so the paper's rounding, or a vocabulary a little larger for base, must make the difference.
    "base": {"encoder_layers": 6, "decoder_layers": 6, "d_model": 512, "d_ff": 2048, "heads": 8},
    "big": {"encoder_layers": 6, "decoder_layers": 6, "d_model": 1024, "d_ff": 4096, "heads": 16, "dropout": 0.3},
}


LONGEST_NAME = 100  # characters; a file system has 255, some of which other names need


class Section(BaseModel):
    """A frozen table of a recipe; an unknown key is an error, and so is a number that is not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _are_pairs(directions: tuple[str, ...]) -> tuple[str, ...]:
    wrong = [
        direction
        for direction in directions
        if not re.fullmatch(r"\w+-\w+", direction) or len(set(direction.split("-"))) != 2
    ]
    if wrong:
        raise ValueError(f"no direction: {', '.join(map(repr, wrong))}; accepted: source-target, such as 'en-de'")
    if len(set(directions)) != len(directions):
        raise ValueError(f"{list(directions)} names a direction twice")
    return directions


Directions = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_are_pairs)]
"""What a model translates, such as ("en-de", "de-en"): source and target, each a language code without a hyphen."""


def _are_pairs_or_one_language(directions: tuple[str, ...]) -> tuple[str, ...]:
    alone = [direction for direction in directions if re.fullmatch(r"\w+", direction)]
    if len(directions) == 1 and alone:
        return directions
    try:
        return _are_pairs(directions)
    except ValueError as error:
        hint = ", or one language and nothing else, such as ['de'], for a language model" if alone else ""
        raise ValueError(f"{error}{hint}") from error


class ModelConfig(Section):
    """The architecture. `size` names a row of SIZES; keys beside it replace that row's numbers."""

    encoder_layers: int = Field(ge=1, le=1000)
    decoder_layers: int = Field(ge=1, le=1000)
    d_model: int = Field(ge=2, multiple_of=2)
    d_ff: int = Field(ge=1)
    heads: int = Field(ge=1)
    norm: Literal["pre", "post"] = "pre"
    """Where LayerNorm stands: `post` as in the paper (section 3.1), `pre` (Xiong et al. 2020) trains deep stacks."""
    norm_epsilon: float = Field(1e-5, gt=0)
    """What LayerNorm adds to the variance: 1e-5 in torch and fairseq, 1e-6 in Marian and JoeyNMT."""
    activation: Literal["relu", "gelu", "swish"] = "relu"
    """`swish`, x sigmoid(x), is also known as SiLU (Ramachandran et al. 2017; Marian's usual choice)."""
    positions: Literal["interleaved", "concatenated", "tensor2tensor"] = "interleaved"
    """How sines and cosines lie in a row: in turn as in the paper (section 3.5), or the sines first, `concatenated`
    (transformers' MarianMT), in `tensor2tensor` with frequencies from 1 to 1/10000, both included (Marian, fairseq)."""
    first_position: int = Field(0, ge=0)
    """The number of a sentence's first position; fairseq begins after its padding's id."""
    scale_embedding: bool = True
    """Multiply token embeddings by sqrt(d_model) (section 3.4)."""
    tie_source: bool = True
    """One matrix embeds source and target (section 3.4). Two vocabularies have one each."""
    tie_output: bool = True
    """The matrix that embeds the target is the output layer, too (section 3.4; Press and Wolf 2017)."""
    logits_bias: bool = False
    """The output layer adds a bias to each piece (Marian's `decoder_ff_logit_out_b`)."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """On each sublayer's output and on the embeddings (section 5.4)."""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    activation_dropout: float = Field(0.0, ge=0, lt=1)
    max_length: int = Field(1024, ge=8, le=1_000_000)
    """The longest source or target, in tokens, that the model accepts."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in_size(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or "size" not in values:
            return values
        explicit = {key: value for key, value in values.items() if key != "size"}
        if values["size"] not in get_args(Size):  # the key stays, and is reported with whatever else is wrong
            return {**SIZES["base"], **values}
        return {**SIZES[values["size"]], **explicit}

    @model_validator(mode="after")
    def _heads_divide_d_model(self) -> Self:
        if self.d_model % self.heads:
            raise ValueError(f"d_model is {self.d_model} and heads {self.heads}; accepted: heads that divide d_model")
        return self


class CorpusConfig(Section):
    """One corpus: `{language}` in its path stands for line-aligned files, `columns` for a tab-separated one."""

    path: str
    columns: tuple[str, ...] = ()
    """Languages of the columns of a .tsv file, such as ["en", "de"]; further columns are ignored."""
    weight: float = Field(1.0, ge=0.001, le=1000)
    """Of a training corpus: how often an epoch has each of its pairs. 2 is twice; 0.5 is in every other epoch, where
    the seed decides in which."""
    mark: str = Field("", pattern=r"^\w*$")
    """Of a training corpus: the name of a symbol that stands before each of its sources, such as "bt" for text that
    was translated back, so that the model can tell it from what people wrote (Caswell et al. 2019)."""
    directions: Annotated[tuple[str, ...], AfterValidator(_are_pairs)] = ()
    """Of a training corpus: those that learn from it, such as that into the language that people wrote, of text that
    was translated back. Left out, all for which it has both languages."""

    @model_validator(mode="after")
    def _one_of_two_shapes(self) -> Self:
        if ("{language}" in self.path) == bool(self.columns):
            raise ValueError(
                f"path is {self.path!r} and columns {list(self.columns)}; accepted: a path with {{language}} "
                "(one file a language), or a .tsv file with columns"
            )
        return self

    @model_validator(mode="after")
    def _columns_have_directions(self) -> Self:
        wrong = [each for each in self.directions if self.columns and not {*each.split("-")} <= {*self.columns}]
        if wrong:
            raise ValueError(
                f"{self.path} has the columns {list(self.columns)} and is for {', '.join(wrong)}; "
                "accepted: directions between its columns"
            )
        return self

    def languages(self, directions: Sequence[str]) -> set[str]:
        """Those that it is read in, if a recipe has `directions`."""
        return {language for direction in self.directions or directions for language in direction.split("-")}

    def file(self, root: Path, language: str) -> Path:
        """Where the text of a language lies."""
        return root / self.path.replace("{language}", language)


def _not_mixed(corpora: tuple[CorpusConfig, ...]) -> tuple[CorpusConfig, ...]:
    wrong = [corpus.path for corpus in corpora if corpus.weight != 1 or corpus.mark or corpus.directions]
    if wrong:
        raise ValueError(
            f"a weight, a mark or directions at {', '.join(wrong)}; accepted: none of them, except in data.train"
        )
    return corpora


HeldOut = Annotated[tuple[CorpusConfig, ...], AfterValidator(_not_mixed)]
"""Corpora that a model does not learn from: read as they are."""


def _corpora(given: Any) -> Any:
    """A path alone stands for its corpus, and a corpus alone for a list of it."""
    if isinstance(given, str | Mapping):
        given = [given]
    if not isinstance(given, Sequence):
        return given
    return [{"path": corpus} if isinstance(corpus, str) else corpus for corpus in given]


class CleaningConfig(Section):
    """Which training pairs stay; validation and test sets are never cleaned.

    0 switches off a filter that has a threshold.
    """

    min_words: int = Field(1, ge=0)
    """Each side has at least so many words."""
    max_words: int = Field(250, ge=0)
    """Each side has at most so many words."""
    max_characters: int = Field(2000, ge=0)
    """Each side has at most so many characters."""
    max_ratio: float = Field(3.0, ge=0)
    """The longer side has at most so many times the shorter's characters, and ten; a wide one (Han) counts as three."""
    drop_identical: bool = True
    """Drop a pair of equal sides, except names and numbers: up to three words."""
    match_digits: bool = True
    """Drop a pair if each side has a number of four digits or more that the other lacks: 1991 against 2000.
    Not for calendars with other years, such as Thai's."""
    max_repetition: int = Field(5, ge=0)
    """A phrase of one to four words follows upon itself at most so many times."""
    min_script: float = Field(0.1, ge=0, le=1)
    """At least this share of a side's words has a letter of its language's script, if there are over three words."""
    deduplicate: bool = True
    """Keep the first of several equal pairs; takes about 100 bytes of memory for each pair."""


class DataConfig(Section):
    """Corpora and what is kept of them."""

    root: Path = Field(default_factory=lambda: Path(os.environ.get("MT_DATA", "data")))
    directions: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_are_pairs_or_one_language)]
    """What the model translates, such as ["en-de"]; with several, each source carries a tag of its target language.
    One language alone, ["de"], asks for a language model, whose corpora have that side only."""
    train: tuple[CorpusConfig, ...] = Field(min_length=1)
    valid: HeldOut = Field(min_length=1)
    test: HeldOut = ()
    temperature: float = Field(1.0, ge=1)
    """How evenly an epoch mixes directions: a share p of its pairs becomes one in proportion to p ** (1 / temperature).
    1 leaves them as they are; 5 raises rare ones a lot (Arivazhagan et al. 2019, section 3.1)."""
    max_tokens: int = Field(200, ge=1)
    """Training pairs with more tokens than this on a side are left out; the end, a tag and a mark count."""

    @field_validator("train", "valid", "test", mode="before")
    @classmethod
    def _path_alone(cls, corpora: Any) -> Any:
        return _corpora(corpora)

    @model_validator(mode="after")
    def _corpora_have_directions(self) -> Self:
        wrong = [
            f"{corpus.path} is for {direction}"
            for corpus in self.train
            for direction in corpus.directions
            if direction not in self.directions
        ]
        if wrong:
            raise ValueError(f"{', '.join(wrong)}; accepted: data.directions, {', '.join(self.directions)}")
        return self

    @model_validator(mode="after")
    def _corpora_are_of_use(self) -> Self:
        idle = [
            f"{corpus.path} has the columns {list(corpus.columns)}"
            for corpus in dict.fromkeys((*self.train, *self.valid, *self.test))
            if corpus.columns and not any({*each.split("-")} <= {*corpus.columns} for each in self.directions)
        ]
        if idle:
            raise ValueError(
                f"{', '.join(idle)}; accepted: all languages of one of data.directions, {', '.join(self.directions)}"
            )
        return self

    @property
    def language(self) -> str | None:
        """That of a language model; None if the model is to translate."""
        return None if "-" in self.directions[0] else self.directions[0]

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(sorted({language for direction in self.directions for language in direction.split("-")}))

    @property
    def marks(self) -> tuple[str, ...]:
        """Those of the training corpora."""
        return tuple(sorted({corpus.mark for corpus in self.train if corpus.mark}))


class TokenizerConfig(Section):
    vocabulary_size: int = Field(8000, ge=300)
    nfkc: bool = False
    dropout: float = Field(0.0, ge=0, lt=1)
    """BPE-dropout of the training text (Provilkov et al. 2020)."""
    training_sentences: int = Field(2_000_000, ge=1)
    """At most so many sentences, evenly spaced, teach the tokenizer."""


Beta = Annotated[float, Field(ge=0, lt=1)]


class TrainingConfig(Section):
    """One update sees about `update_tokens` target tokens, in batches of at most `batch_tokens` padded ones."""

    batch_tokens: int = Field(4096, ge=16)
    update_tokens: int = Field(4096, ge=16)
    max_updates: int = Field(100_000, ge=1)
    max_minutes: float | None = Field(None, gt=0)
    """Training time after which the run ends, resumes included."""
    schedule: Literal["noam", "inverse_sqrt"] = "inverse_sqrt"
    learning_rate: float = Field(1e-3, gt=0)
    """Peak of `inverse_sqrt`; factor of `noam` (the paper's is 1)."""
    warmup_updates: int = Field(1000, ge=1)
    cooldown_updates: int = Field(0, ge=0)
    """The last updates before `max_updates`, over which the rate falls to 0."""
    optimizer: Literal["adam", "muon"] = "adam"
    """What steps the matrices of the layers; all else steps by Adam (Jordan et al. 2024). The rate holds for both."""
    adam_betas: tuple[Beta, Beta] = (0.9, 0.98)
    adam_epsilon: float = Field(1e-9, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    clip_norm: float = Field(1.0, gt=0)
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    r_drop: float = Field(0.0, ge=0)
    """How much two passes over a pair, with different dropout, must agree (Wu et al. 2021; their alpha, mostly 1 to 5).
    Above 0 an update takes twice as long."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """What forward and backward compute in; `auto`, decided at each start, is bfloat16 where every process's device has
    instructions for it."""
    compile: bool = False
    shard: bool = False
    """Split weights, gradients and Adam's moments among the processes: for a model that one GPU cannot hold."""
    validate_every: int = Field(500, ge=1)
    validate_sentences: int = Field(1000, ge=1)
    """At most so many sentences of the validation set are translated for BLEU; the loss sees them all."""
    patience: int = Field(10, ge=1)
    """Validations without a better BLEU, or a better perplexity of a language model, after which training stops."""
    save_every: int = Field(500, ge=1)
    keep: int = Field(5, ge=1)
    """Checkpoints kept beside the best."""
    average: int = Field(5, ge=1)
    """The last checkpoints, of those kept, whose mean may become the model."""
    ema_decay: float | None = Field(None, gt=0, lt=1)
    """Decay of an exponential average of the weights, which then may become the model too."""
    max_skipped: int = Field(5, ge=0)
    """Updates in a row that may be skipped, for a non-finite loss or lack of memory, before the run stops."""

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.compile and self.shard:
            raise ValueError("compile and shard are both true; accepted: one of them")
        if self.optimizer == "muon" and self.shard:
            raise ValueError("shard is true and optimizer 'muon', which needs whole matrices; accepted: 'adam'")
        return self


class DecodingConfig(Section):
    """How validation decodes, and what the model does unless a request says otherwise."""

    beam_size: int = Field(5, ge=1)
    length_penalty: float = Field(1.0, ge=0)
    normalization: Literal["length", "gnmt"] = "length"
    """What a score is divided by for n tokens: n ** length_penalty, or ((5 + n) / 6) ** length_penalty."""
    no_repeat_ngram: int = Field(0, ge=0)
    """No sequence of so many tokens comes twice in a translation; 0 is off."""
    max_length_factor: float = Field(2.0, ge=0)
    max_length_offset: int = Field(10, ge=1)


class TuningConfig(Section):
    """A trained model that training begins with: its weights, architecture and tokenizer; and what of it may change.

    `[model]` then changes dropout rates, `[tokenizer]` its dropout, and nothing else; `[decoding]` is the model's own
    but for the keys that are given.
    """

    model: Path
    """A model directory, trained here or imported."""
    directions: tuple[str, ...] = ()
    """What that model translates; filled in from it."""
    frozen: tuple[str, ...] = ()
    """Parameters that are not trained, by name, where * stands for anything: ["encoder.*", "embedding.*"]."""
    adapter_rank: int = Field(0, ge=0)
    """Above 0, only low-rank adapters of the attention's query and value are trained (Hu et al. 2022), and folded into
    the weights of what is published."""
    adapter_scale: float = Field(1.0, gt=0)
    """What an adapter is multiplied by; the paper's alpha / r."""
    watch: HeldOut = ()
    """Corpora of what the model must not forget: their loss is shown at each validation."""

    @field_validator("watch", mode="before")
    @classmethod
    def _path_alone(cls, corpora: Any) -> Any:
        return _corpora(corpora)


class Recipe(Section):
    """A whole recipe. `seed` decides the initial weights, dropout, BPE-dropout and the order of the data."""

    name: str = Field(pattern=r"^[\w.-]+$")
    seed: int = Field(1, ge=0)
    data: DataConfig
    cleaning: CleaningConfig = CleaningConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    tuning: TuningConfig | None = None
    """Left out, training begins with random weights."""

    @property
    def directions(self) -> tuple[str, ...]:
        """What the model translates in the end: what it is trained on and, if it is tuned, what it did before."""
        return tuple(dict.fromkeys((*(self.tuning.directions if self.tuning else ()), *self.data.directions)))

    @property
    def run_name(self) -> str:
        """`multi30k-en-de`: the name and the directions or, where those are too many for the name of a file, their
        number and a digest."""
        directions = "+".join(self.data.directions)
        if len(directions) > LONGEST_NAME:
            digest = hashlib.sha256(directions.encode()).hexdigest()
            directions = f"{len(self.data.directions)}-directions-{digest[:8]}"
        return f"{self.name}-{directions}"
