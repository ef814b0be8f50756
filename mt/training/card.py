"""The card of a model directory: what a reader must know before trusting it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from mt.config import CorpusConfig, Recipe
from mt.data.dataset import Prepared
from mt.evaluation import Report
from mt.training.report import WATCHED
from mt.training.state import Progress


@dataclass(frozen=True)
class Published:
    """Which weights became the model, what validation says of them, by its names, and where that was measured."""

    origin: str
    figures: Mapping[str, float]
    device: str


def write_card(
    recipe: Recipe, data: Prepared, progress: Progress, published: Published, scores: Mapping[str, Report]
) -> str:
    """`README.md` of the directory of a model that translates, in Markdown."""
    decoding = recipe.decoding
    lines = [
        f"# {recipe.run_name}",
        "",
        f"Translates {', '.join(recipe.data.directions)}. Load it with `Translator.load`, or serve it with "
        "`python -m service --model` and this directory.",
        "",
        "## Scores",
        "",
        f"Beam {decoding.beam_size}, length penalty {decoding.length_penalty} ({decoding.normalization}), on "
        f"{published.device} with torch {torch.__version__}. On at most {recipe.training.validate_sentences:,} "
        f"sentences of the validation set: {published.figures['valid_bleu']:.2f} BLEU.",
        "",
    ]
    if scores:
        lines += ["| direction | test sentences | metric | score | signature |", "|---|---|---|---|---|"]
        for direction, report in scores.items():
            lines += [
                f"| {direction} | {report.sentences:,} | {score.name} | {score.value:.2f} | `{score.signature}` |"
                for score in report.scores
            ]
        lines.append("")
    lines += _tuned(recipe, progress, published)
    model = recipe.model
    lines += _trained(recipe, data, progress, published, f"Transformer: {model.encoder_layers}+{model.decoder_layers}")
    if recipe.tuning is None:
        lines += ["It has read nothing else: expect poor translations of text unlike these corpora.", ""]
    return "\n".join(lines)


@dataclass(frozen=True)
class Perplexity:
    """Of a language model on a text: of so many tokens, ends included."""

    text: str
    tokens: int
    value: float


def write_language_model_card(
    recipe: Recipe, data: Prepared, progress: Progress, published: Published, perplexities: Sequence[Perplexity]
) -> str:
    """`README.md` of the directory of a language model, in Markdown."""
    lines = [
        f"# {recipe.run_name}",
        "",
        f"A language model of {recipe.data.language}: it says how probable a text is, and translates nothing. Load it "
        "with `LanguageScorer.load` (mt/engine/language.py), or give it to `scripts/rerank.py --language-model`.",
        "",
        "## Perplexity",
        "",
        f"Of a token of its own vocabulary, the end of each line included, on {published.device} with torch "
        f"{torch.__version__}. It compares with that of models of the same vocabulary only.",
        "",
        "| text | tokens | perplexity |",
        "|---|---|---|",
        *(f"| {each.text} | {each.tokens:,} | {each.value:.2f} |" for each in perplexities),
        "",
        *_trained(recipe, data, progress, published, f"Decoder without an encoder: {recipe.model.decoder_layers}"),
        "It has read nothing else: text unlike these corpora is improbable to it.",
        "",
    ]
    return "\n".join(lines)


def _trained(recipe: Recipe, data: Prepared, progress: Progress, published: Published, layers: str) -> list[str]:
    """How a model was trained; `layers` says of what kind it is, and how many it has."""
    model = recipe.model
    corpora = ", ".join(_mixed(corpus) for corpus in recipe.data.train)
    begin = f", beginning with `{recipe.tuning.model}`" if recipe.tuning else ""
    units = "lines" if recipe.data.language else "pairs"
    return [
        "## How it was trained",
        "",
        f"- Text: {corpora} ({len(data.train):,} {units} after cleaning); {_vocabulary(recipe, data)}.",
        f"- {layers} layers, d_model {model.d_model}, "
        f"d_ff {model.d_ff}, {model.heads} heads, {model.norm}-norm, dropout {model.dropout}.",
        f"- {progress.updates:,} updates{begin}, of about {recipe.training.update_tokens:,} target tokens, "
        f"{progress.seconds / 60:.0f} minutes, seed {recipe.seed}.",
        f"- Weights: {published.origin}.",
        "- The recipe, with every value, is `recipe.toml` in the run's folder.",
        "",
    ]


def _mixed(corpus: CorpusConfig) -> str:
    """Its path, and how it was mixed in, if it was."""
    how = [f"weight {corpus.weight:g}"] if corpus.weight != 1 else []
    how += [f"marked {corpus.mark}"] if corpus.mark else []
    return f"{corpus.path} ({', '.join(how)})" if how else corpus.path


def _vocabulary(recipe: Recipe, data: Prepared) -> str:
    if recipe.tuning is None:
        return f"one BPE vocabulary of {len(data.tokenizer):,}"
    sizes = dict.fromkeys((len(data.tokenizer), len(data.tokenizer.target)))
    return f"the vocabulary of that model ({' and '.join(f'{size:,}' for size in sizes)})"


def _tuned(recipe: Recipe, progress: Progress, published: Published) -> list[str]:
    """What a model was tuned from, and what that brought and cost."""
    tuning = recipe.tuning
    if tuning is None:
        return []
    what = "all weights"
    if tuning.frozen:
        what = f"all weights but {', '.join(tuning.frozen)}"
    if tuning.adapter_rank:
        what = f"adapters of rank {tuning.adapter_rank}, scale {tuning.adapter_scale}, folded in"
        what += f"; not trained: {', '.join(tuning.frozen)}" if tuning.frozen else ""
    before = progress.before
    rows = [f"| validation BLEU | {before['valid_bleu']:.2f} | {published.figures['valid_bleu']:.2f} |"]
    rows += [
        f"| {name.removeprefix(WATCHED).replace('valid_loss', 'validation loss')} | {before[name]:.3f} | {loss:.3f} |"
        for name, loss in published.figures.items()
        if name != "valid_bleu"
    ]
    return [
        "## Tuned",
        "",
        f"From `{tuning.model}`, whose own card and licence hold for this model, too. Trained: {what}. Losses are in "
        "nats a target token; a corpus by its path is one that the model was not to forget.",
        "",
        "| | before | after |",
        "|---|---|---|",
        *rows,
        "",
    ]
