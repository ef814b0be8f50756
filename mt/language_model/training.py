"""Training of a language model on the bytes of a file, and its score on held-out bytes.

Shapes: B blocks of T bytes, V = 256 different bytes.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from mt.config import TrainingConfig
from mt.distributed import World
from mt.errors import DataError
from mt.language_model.model import LanguageModel
from mt.language_model.sampling import SamplingOptions, generate
from mt.training.optimizer import optimizers, scaled_step
from mt.training.schedule import cooldown, learning_rate, warmup_updates

HELD_OUT_SHARE, MOST_HELD_OUT = 0.05, 1 << 16  # the end of the file, at most 64 KiB
MEASURED_UPDATES = 5  # their duration gives the number of updates that a time limit allows
REPORT_EVERY, SAMPLE_EVERY = 50, 200  # updates
REPORT_SECONDS = 15.0  # a report is due after this time too
SAMPLE_LENGTH = 120  # bytes
Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class TextBytes:
    """The bytes of a file: those to train on, and the last part, which is held out."""

    training: Bytes
    held_out: Bytes

    @classmethod
    def read(cls, path: Path, block: int) -> "TextBytes":
        """Map a file of any size into memory. Raises: DataError if it is missing or too short for blocks of a model."""
        least = math.ceil(2 * (block + 1) / HELD_OUT_SHARE)
        if not path.is_file():
            raise DataError(f"{path}: there is no such file; accepted: a text file")
        if (size := path.stat().st_size) < least:
            raise DataError(f"{path} has {size:,} bytes; accepted: at least {least:,} for blocks of {block} bytes")
        content = np.memmap(path, np.uint8, "r")
        end = size - min(int(HELD_OUT_SHARE * size), MOST_HELD_OUT)
        return cls(content[:end], content[end:])


def blocks_at(text: Bytes, begins: NDArray[np.int64], block: int) -> tuple[Tensor, Tensor]:
    """Return the blocks that begin at `begins` [B], and the byte that follows each byte of them: both int64 [B, T]."""
    chunk = torch.from_numpy(text[begins[:, None] + np.arange(block + 1)].astype(np.int64))
    return chunk[:, :-1], chunk[:, 1:]


@torch.inference_mode()
def bits_per_byte(model: LanguageModel, text: Bytes, batch: int = 32) -> float:
    """Return the mean of -log2 p(byte | bytes before it in its block) over consecutive blocks of `text`.

    The first byte of the text, and bytes after the last whole block, are not predicted.
    """
    block, device = model.config.block, next(model.parameters()).device
    begins = np.arange(0, len(text) - block, block)
    total, training = 0.0, model.training
    model.eval()
    for part in np.array_split(begins, -(-len(begins) // batch)):
        inputs, labels = (side.to(device) for side in blocks_at(text, part, block))
        total += float(cross_entropy(model(inputs).flatten(0, 1), labels.flatten(), reduction="sum"))
    model.train(training)
    return total / math.log(2) / (len(begins) * block)


def unigram_bits(text: Bytes) -> float:
    """Return the bits per byte of a model that knows the frequency of each byte of `text` and nothing else."""
    shares = np.bincount(text) / len(text)
    return float(-(shares * np.log2(shares, where=shares > 0, out=np.zeros_like(shares))).sum())


def train(
    model: LanguageModel, text: TextBytes, config: TrainingConfig, seed: int, report: Callable[[str], None]
) -> int:
    """Train `model` on random blocks of a text until a limit of `config` is reached. Return the number of updates.

    An update has `config.update_tokens` bytes. `report` receives lines of progress: the loss in bits per byte, the
    speed, the time that is left, and what the model writes.
    """
    block, device, minutes = model.config.block, next(model.parameters()).device, config.max_minutes or math.inf
    numbers, random = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    steppers = optimizers(model, config, torch.float32, World())
    losses: list[Tensor] = []
    planned = config.max_updates
    began = reported = time.monotonic()
    model.train()
    for update in range(1, config.max_updates + 1):
        seconds = time.monotonic() - began
        if seconds >= 60 * minutes:
            return update - 1
        begins = numbers.integers(0, len(text.training) - block, max(1, config.update_tokens // block))
        inputs, labels = (side.to(device) for side in blocks_at(text.training, begins, block))
        loss = cross_entropy(model(inputs).flatten(0, 1), labels.flatten())
        model.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
        if update == MEASURED_UPDATES + 1:
            planned = int(min(planned, 60 * minutes * MEASURED_UPDATES / seconds))
        rate = learning_rate(update, config, model.config.d_model, warmup_updates(config, planned))
        for stepper in steppers:
            scaled_step(stepper, rate * cooldown(update, seconds, config), (norm / config.clip_norm).clamp_min(1.0))
        losses.append(loss.detach() / math.log(2))
        now = time.monotonic()
        if update % REPORT_EVERY == 0 or now - reported >= REPORT_SECONDS:
            speed = len(losses) * inputs.numel() / (now - reported)
            left = min(60 * minutes - seconds, (config.max_updates - update) * (now - began) / update)
            mean, losses, reported = float(torch.stack(losses).mean()), [], now
            report(f"update {update:,} | {mean:.3f} bits per byte | {speed:,.0f} bytes/s | {max(left, 0):.0f} s left")
        if update % SAMPLE_EVERY == 0:
            report(repr(sample(model, random)))
    return config.max_updates


def sample(model: LanguageModel, random: torch.Generator) -> str:
    """Return a short text that the model writes without a prompt."""
    model.eval()
    text = bytes(generate(model, b"", SAMPLE_LENGTH, SamplingOptions(temperature=0.8), random))
    model.train()
    return text.decode(errors="replace")
