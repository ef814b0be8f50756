"""Train a language model of bytes on any text file, and print its score on the held-out end of the file.

    mt-service train-lm book.txt
    mt-service generate runs/book --prompt "It was"

The model is a small decoder-only Transformer (mt/language_model). The default sizes suit three minutes on an idle
CPU core. The score is the number of bits per byte: 8 for a model that knows nothing.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from mt.cli.command import RUNS, CommandParser, command, count
from mt.config import TrainingConfig
from mt.engine.devices import select_device
from mt.language_model.model import LanguageModel, LanguageModelConfig, read_config, save_language_model
from mt.language_model.training import TextBytes, bits_per_byte, train, unigram_bits

UPDATE_BYTES = 2048
LEAST_GAIN = 0.5  # bits per byte below the entropy of single bytes; with less, the model has hardly read any context


@command
def main(argv: Sequence[str]) -> int:
    options = parse(argv)
    out = options.out or RUNS / options.file.stem
    if out.exists():
        read_config(out)  # refuses to replace another folder
    text = TextBytes.read(options.file, options.block)
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    config = LanguageModelConfig(
        layers=options.layers, d_model=options.d_model, heads=options.heads, block=options.block
    )
    model = LanguageModel(config).to(select_device(options.device))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    show(f"{parameters:,} parameters, {len(text.training):,} bytes to train on, {len(text.held_out):,} held out")
    training = TrainingConfig(max_minutes=options.minutes, max_updates=options.updates, update_tokens=UPDATE_BYTES)
    updates = train(model, text, training, options.seed, show)
    save_language_model(out, model)
    bits, unigram = bits_per_byte(model, text.held_out), unigram_bits(text.held_out)
    show(f"held out: {bits:.3f} bits per byte after {updates:,} updates; the frequencies of bytes alone: {unigram:.3f}")
    if bits > unigram - LEAST_GAIN:
        show(
            f"warning: not {LEAST_GAIN} bits better than the frequencies of bytes; train longer: --minutes or --updates"
        )
    show(f"the model is in {out}")
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("train-lm", __doc__)
    parser.add_argument("file", type=Path, metavar="FILE", help="text file")
    add = parser.common.add_argument
    add("--out", type=Path, metavar="DIR", help=f"folder of the model (default: {RUNS}/ and the name of FILE)")
    add("--minutes", type=float, default=3.0, metavar="X", help="duration of the training (default: %(default)s)")
    parser.add_device()
    more = parser.more.add_argument
    more("--layers", type=count, default=4, metavar="N", help="number of layers (default: %(default)s)")
    more("--d-model", type=count, default=128, metavar="N", help="size of each layer's output (default: %(default)s)")
    more("--heads", type=count, default=4, metavar="N", help="attention heads of a layer (default: %(default)s)")
    more("--block", type=count, default=128, metavar="N", help="bytes that the model reads (default: %(default)s)")
    more("--updates", type=count, default=1_000_000, metavar="N", help="maximum number of updates")
    more("--seed", type=int, default=1, metavar="N", help="seed of weights, blocks and samples (default: %(default)s)")
    more("--threads", type=count, default=1, metavar="N", help="CPU threads (default: %(default)s); 2 may be slower")
    options = parser.parse_args(argv)
    wrong = []
    if not options.minutes > 0:
        wrong.append(f"--minutes is {options.minutes}; accepted: above 0")
    if options.block < 8:
        wrong.append(f"--block is {options.block}; accepted: at least 8")
    if options.d_model % 2 or options.d_model % options.heads:
        wrong.append(f"--d-model is {options.d_model}; accepted: an even multiple of --heads, {options.heads}")
    if options.seed < 0:
        wrong.append(f"--seed is {options.seed}; accepted: at least 0")
    if wrong:
        parser.error("; ".join(wrong))
    return options


def show(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
