"""The card of a model directory: what a reader must know before trusting its translations."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from mt.config import Recipe
from mt.data.dataset import Prepared
from mt.evaluation import Report
from mt.training.state import Progress


@dataclass(frozen=True)
class Published:
    """Which weights became the model, their BLEU on the validation set, and where that was measured."""

    origin: str
    valid_bleu: float
    device: str


def write_card(
    recipe: Recipe, data: Prepared, progress: Progress, published: Published, scores: Mapping[str, Report]
) -> str:
    """`README.md` of the model directory, in Markdown."""
    model, decoding = recipe.model, recipe.decoding
    corpora = ", ".join(corpus.path for corpus in recipe.data.train)
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
        f"sentences of the validation set: {published.valid_bleu:.2f} BLEU.",
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
    lines += [
        "## How it was trained",
        "",
        f"- Text: {corpora} ({len(data.train):,} pairs after cleaning); one BPE vocabulary of {len(data.tokenizer):,}.",
        f"- Transformer: {model.encoder_layers}+{model.decoder_layers} layers, d_model {model.d_model}, "
        f"d_ff {model.d_ff}, {model.heads} heads, {model.norm}-norm, dropout {model.dropout}.",
        f"- {progress.updates:,} updates of about {recipe.training.update_tokens:,} target tokens, "
        f"{progress.seconds / 60:.0f} minutes, seed {recipe.seed}.",
        f"- Weights: {published.origin}.",
        "- The recipe, with every value, is `recipe.toml` in the run's folder.",
        "",
        "It has read nothing else: expect poor translations of text unlike these corpora.",
        "",
    ]
    return "\n".join(lines)
