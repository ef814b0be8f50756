"""Perplexity of a language model on a text: `mt-service evaluate MODEL --text FILE`."""

import math
from pathlib import Path
from typing import Any

import torch
from rich.table import Column, Table

from mt.data.corpus import read_lines
from mt.scoring.language_model import LanguageModelScorer


def measure_perplexity(model: Path, text: Path, device: str) -> dict[str, Any]:
    """Return the perplexity of a model on the lines of a file, and the conditions of the measurement, as JSON values.

    The perplexity is exp(-log-probability / number of units), where units are tokens, characters or bytes. The end of
    each line counts as one unit. The perplexities per character and per byte can be compared between models with
    different vocabularies.

    Raises:
        ModelError, DataError, RequestError: if the model or the text cannot be used.
    """
    scorer = LanguageModelScorer.load(model, device)
    lines = list(read_lines(text))
    scored = scorer.score_lines(lines)
    units = {
        "token": scored.tokens,
        "character": sum(len(line) + 1 for line in lines),
        "byte": sum(len(line.encode()) + 1 for line in lines),
    }
    return {
        "model": str(model),
        "language": scorer.language,
        "text": str(text),
        "lines": len(lines),
        "context": f"blocks of {scorer.block_tokens} tokens" if scorer.block_tokens else "the line",
        "vocabulary_size": len(scorer.tokenizer),
        "log_probability": scored.log_probability,
        "units": units,
        "perplexity": {unit: math.exp(-scored.log_probability / number) for unit, number in units.items()},
        "bits": {unit: -scored.log_probability / number / math.log(2) for unit, number in units.items()},
        "device": str(next(scorer.model.parameters()).device),
        "dtype": "float32",
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def perplexity_table(scores: dict[str, Any]) -> Table:
    title = f"{scores['model']} on {scores['text']}, context: {scores['context']}"
    columns = (Column(name, justify="right") for name in ("number", "perplexity", "bits"))
    table = Table("unit", *columns, title=title, title_justify="left")
    for unit, number in scores["units"].items():
        table.add_row(unit, f"{number:,}", f"{scores['perplexity'][unit]:.3f}", f"{scores['bits'][unit]:.3f}")
    return table
