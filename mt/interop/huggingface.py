"""Import of MarianMT models of transformers (transformers.MarianMTModel). The hub has OPUS-MT models in this format."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from mt.config import ModelConfig
from mt.errors import LanguageError, ModelError, problems
from mt.interop.foreign import ForeignModel, Side, tag_languages
from mt.interop.huggingface_files import (
    ACTIVATIONS,
    BIAS,
    OUTPUT,
    SHARED,
    SIZES,
    SOURCE,
    TARGET,
    Options,
    final_bias,
    learned_weights,
    missing_files,
    option_problems,
    read_json,
    read_vocabulary,
    read_weights,
    search_options,
    weight_files,
)
from mt.interop.layer_names import huggingface_layer_rows
from mt.interop.mapping import Row, embedding_rows
from mt.interop.origin import AS_MARIAN, ImportOptions, Origin
from mt.languages import likely_script, primary_language, standard_tag

POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
UNKNOWN = "<unk>"

OPTIONS: Options = {
    "model_type": (None, ("marian",)),
    "activation_function": ("gelu", tuple(ACTIVATIONS)),
    "scale_embedding": (False, (True, False)),
    "share_encoder_decoder_embeddings": (True, (True, False)),
    "tie_word_embeddings": (True, (True, False)),
    "normalize_before": (False, (False,)),
    "normalize_embedding": (False, (False,)),
    "static_position_embeddings": (True, (True,)),
}


def read_marian_mt(origin: Origin, import_options: ImportOptions) -> ForeignModel:
    """Read a MarianMT directory.

    Raises:
        ModelError: Files are missing or cannot be read.
    """
    folder = MarianMTFolder.read(origin.folder, import_options.allow_pickle)
    weights, wrong = folder.learned_weights()
    source, target = folder.sides()
    wrong = [*option_problems(folder.config, OPTIONS), *folder.size_problems(source, target), *wrong]
    return ForeignModel(
        name=origin.name,
        kind="MarianMT model (Hugging Face)",
        architecture={**folder.architecture(), **(AS_MARIAN if import_options.as_marian else {})},
        table=marian_mt_rows,
        weights=weights,
        source=source,
        target=target,
        decoding=search_options(folder.config, folder.generation),
        directions=folder.directions(),
        problems=wrong,
        provenance=origin.provenance(folder.files),
    )


@dataclass(frozen=True)
class MarianMTFolder:
    """Content of a MarianMT directory."""

    config: Mapping[str, Any]
    generation: Mapping[str, Any]
    tokenizer: Mapping[str, Any]
    vocabularies: tuple[Mapping[str, int], Mapping[str, int]]  # of source and target
    sentencepiece: tuple[bytes, bytes]
    weights: Mapping[str, Tensor]
    files: tuple[str, ...]  # the files that were read

    @classmethod
    def read(cls, folder: Path, allow_pickle: bool) -> "MarianMTFolder":
        needed = ["config.json", "vocab.json", "source.spm", "target.spm", *weight_files(folder, allow_pickle)]
        if lacking := missing_files(folder, needed):
            raise ModelError(problems(f"{folder} cannot be imported as a MarianMT model", lacking))
        config, generation, tokenizer = (
            read_json(folder / name) for name in ("config.json", "generation_config.json", "tokenizer_config.json")
        )
        source = read_vocabulary(folder / "vocab.json")
        two = (folder / "target_vocab.json").is_file() and tokenizer.get("separate_vocabs", True)
        target = read_vocabulary(folder / "target_vocab.json") if two else source
        return cls(
            config=config,
            generation=generation,
            tokenizer=tokenizer,
            vocabularies=(source, target),
            sentencepiece=((folder / "source.spm").read_bytes(), (folder / "target.spm").read_bytes()),
            weights=read_weights(folder, allow_pickle),
            files=(*needed, *(["target_vocab.json"] if two else [])),
        )

    def option(self, name: str) -> Any:
        default, _ = OPTIONS[name]
        return self.config.get(name, default)

    def sides(self) -> tuple[Side, Side]:
        """Return the vocabularies of source and target.

        In MarianMT the padding piece also begins a target. The model may also predict it, unless the options forbid it.
        """
        config = self.config
        pad = config.get("pad_token_id", 58100)
        banned = {**config, **self.generation}
        renormalised = banned.get("renormalize_logits") and [pad] in (banned.get("bad_words_ids") or [])
        sides = [
            Side(
                ids=ids,
                sentencepiece=sentencepiece,
                unk=ids.get(UNKNOWN, -1),
                eos=config.get("eos_token_id", 0),
                pad=pad,
                start=config.get("decoder_start_token_id", 58100),
                pad_counts=not renormalised,
            )
            for ids, sentencepiece in zip(self.vocabularies, self.sentencepiece, strict=True)
        ]
        return sides[0], sides[1]

    def size_problems(self, source: Side, target: Side) -> Iterator[str]:
        """Yield a message for each vocabulary whose size is not the one in config.json."""
        size = self.config.get("vocab_size")
        decoder_size = self.config.get("decoder_vocab_size") or size
        if len(source.ids) != size:
            stated = f"config.json's vocab_size is {size}"
            yield f"vocab.json has {len(source.ids)} pieces, but {stated}; accepted: equal sizes"
        if len(target.ids) != decoder_size:
            name = "vocab.json" if source.ids is target.ids else "target_vocab.json"
            stated = f"config.json's decoder_vocab_size is {decoder_size}"
            yield f"{name} has {len(target.ids)} pieces, but {stated}; accepted: equal sizes"

    def architecture(self) -> dict[str, Any]:
        return {
            "norm": "post",
            "positions": "concatenated",
            "activation": ACTIVATIONS.get(
                self.option("activation_function"), "relu"
            ),  # `option_problems` reports an unknown activation
            "scale_embedding": bool(self.option("scale_embedding")),
            "tie_source": bool(self.option("share_encoder_decoder_embeddings")),
            "tie_output": bool(self.option("tie_word_embeddings")),
            **{ours: self.config[name] for ours, name in SIZES.items() if name in self.config},
        }

    def directions(self) -> list[str] | dict[str, list[str]]:
        """Return the directions that the tokenizer's configuration states.

        If the vocabulary has language tags, these are the directions into each language with a tag. The list is empty
        if the tokenizer's configuration names no language, or a group of languages such as `roa`.
        """
        source, tagged = self._language("source"), [*tag_languages(self.vocabularies[0])]
        if source and tagged:
            return {"source": [source], "target": [language for language in tagged if language != source]}
        target = self._language("target")
        return [f"{source}-{target}"] if source and target else []

    def _language(self, side: str) -> str:
        """Return the language of `side` that the tokenizer's configuration states.

        The result is an empty string if it states none, or a group of languages.
        """
        try:
            language = standard_tag(str(self.tokenizer.get(f"{side}_lang")))
        except LanguageError:
            return ""
        return language if len(primary_language(language)) == 2 or likely_script(language) else ""

    def learned_weights(self) -> tuple[dict[str, Tensor], list[str]]:
        """Return the weights without constants and tied copies, and a message for each wrong constant or copy."""
        shared, tied = (self.option(name) for name in ("share_encoder_decoder_embeddings", "tie_word_embeddings"))
        copies = [(SHARED, SOURCE), (SHARED, TARGET)] if shared else []
        copies += [(SHARED if shared else TARGET, OUTPUT)] if tied else []
        learned, wrong = learned_weights(self.weights, copies, self.architecture(), POSITIONS)
        return {**learned, BIAS: final_bias(learned, len(self.vocabularies[1]))}, wrong


def marian_mt_rows(config: ModelConfig) -> Iterator[Row]:
    yield from embedding_rows(SOURCE, SHARED if config.tie_source else TARGET, OUTPUT, config)
    if config.logits_bias:
        yield Row((BIAS,), ("embedding.bias",))
    yield from huggingface_layer_rows(config)
