"""The model card: the file `README.md` of a model directory, with scores and a description of the training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from mt.checkpoint import card_section
from mt.config import Recipe
from mt.data.dataset import PreparedData
from mt.data_config import CorpusConfig
from mt.evaluation import Report
from mt.languages import Direction
from mt.training.report import BLEU, MONITORED
from mt.training.schedule import peak_warning
from mt.training.state import Progress
from mt.training.tuning import forgetting_warning


@dataclass(frozen=True)
class Published:
    """Origin of the published weights, and their metrics on the validation set."""

    origin: str  # such as "mean of the last 5 checkpoints"
    metrics: Mapping[str, float]  # validation metrics by name
    device: str  # device of the validation, such as "cuda"


def write_card(
    recipe: Recipe,
    data: PreparedData,
    progress: Progress,
    published: Published,
    scores: Mapping[Direction, Report],
    changes: Sequence[str] = (),
) -> str:
    """Return the `README.md` of a model, in Markdown. `scores` are the scores on the test set, by direction.

    `changes` are lines about the keys of the recipe that were changed during the run.
    """
    decoding = recipe.decoding
    lines = [
        f"# {recipe.run_name}",
        "",
        f"Translates {recipe.directions}. Load it with `Translator.load`, or serve it with "
        "`python -m service --model` and this directory.",
        "",
        "## Scores",
        "",
        f"Beam {decoding.beam_size}, length penalty {decoding.length_penalty} ({decoding.normalization}), on "
        f"{published.device} with torch {torch.__version__}. On at most {recipe.training.validate_sentences:,} "
        f"sentences of the validation set: {published.metrics[BLEU]:.2f} BLEU.",
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
    lines += _tuned(recipe, progress, published) + _trained(recipe, data, progress, published, changes)
    if recipe.tuning:
        lines.append(card_section(recipe.tuning.model, "The card of the first model"))
    else:
        lines += ["It was trained on nothing else: expect poor translations of text unlike these corpora.", ""]
    return "\n".join(lines)


def _trained(
    recipe: Recipe, data: PreparedData, progress: Progress, published: Published, changes: Sequence[str]
) -> list[str]:
    """Return the lines of the section "How it was trained"."""
    model = recipe.model
    corpora = ", ".join(_describe(corpus) for corpus in recipe.data.train)
    begin = f", beginning with `{recipe.tuning.model}`" if recipe.tuning else ""
    warning = peak_warning(recipe.training, progress.updates, progress.planned_updates)
    return [
        "## How it was trained",
        "",
        f"- Text: {corpora} ({len(data.train):,} pairs after cleaning); {_vocabulary(recipe, data)}.",
        f"- Transformer: {model.encoder_layers}+{model.decoder_layers} layers, d_model {model.d_model}, "
        f"d_ff {model.d_ff}, {model.heads} heads, {model.norm}-norm, dropout {model.dropout}.",
        f"- {progress.updates:,} updates{begin}, of about {recipe.training.update_tokens:,} target tokens, "
        f"{progress.seconds / 60:.0f} minutes, seed {recipe.seed}.",
        *([f"- Warning: {warning}."] if warning else []),
        f"- Weights: {published.origin}.",
        "- The recipe, with every value, is `recipe.toml` in the run's folder.",
        *(["- It was changed during the run; this card has the last values:"] if changes else []),
        *(f"  - {change}" for change in dict.fromkeys(changes)),  # a resume that was killed repeats its lines
        "",
    ]


def _describe(corpus: CorpusConfig) -> str:
    """Return the path of a corpus, or its name if the path is absolute, with its weight and source tag if set."""
    path = corpus.path.rpartition("/")[2] if corpus.path.startswith("/") else corpus.path
    options = [f"weight {corpus.weight:g}"] * (corpus.weight != 1)
    options += [f"source tag {corpus.source_tag}"] * bool(corpus.source_tag)
    return f"{path} ({', '.join(options)})" if options else path


def _vocabulary(recipe: Recipe, data: PreparedData) -> str:
    if recipe.tuning is None:
        return f"one BPE vocabulary of {len(data.tokenizer):,}"
    sizes = dict.fromkeys((len(data.tokenizer), len(data.tokenizer.target)))
    return f"the vocabulary of that model ({' and '.join(f'{size:,}' for size in sizes)})"


def _tuned(recipe: Recipe, progress: Progress, published: Published) -> list[str]:
    """Return the lines of the section on tuning, with the metrics before and after. Return [] without [tuning]."""
    tuning = recipe.tuning
    if tuning is None:
        return []
    trained = f"all weights but {', '.join(tuning.frozen)}" if tuning.frozen else "all weights"
    before = progress.before
    rows = [f"| validation BLEU | {before[BLEU]:.2f} | {published.metrics[BLEU]:.2f} |"]
    rows += [
        f"| {name.removeprefix(MONITORED).replace('valid_loss', 'validation loss')} | {before[name]:.3f} | {loss:.3f} |"
        for name, loss in published.metrics.items()
        if name != BLEU
    ]
    return [
        "## Tuned",
        "",
        f"From `{tuning.model}`, whose card and licence, below, also apply to this model. Trained: {trained}. Losses "
        "are in nats per target token. A row with a path is the loss on that monitored corpus.",
        "",
        "| | before | after |",
        "|---|---|---|",
        *rows,
        "",
        *([f"Warning: {warning}.", ""] if (warning := forgetting_warning(recipe)) else []),
    ]
