"""Continue a text with a language model of bytes, which `mt-service train-lm` has trained.

    mt-service generate runs/book --prompt "It was"
    mt-service generate runs/book --prompt "It was" --temperature 0.7 --top-p 0.9 --seed 2 --length 1000

Each byte is drawn from the model's distribution, changed by --temperature, --top-k and --top-p in this order.
"""

import argparse
import sys
from codecs import getincrementaldecoder
from collections.abc import Sequence
from pathlib import Path

import torch

from mt.cli.command import CommandParser, command, count
from mt.engine.devices import select_device
from mt.language_model.model import load_language_model
from mt.language_model.sampling import SamplingOptions, generate


@command
def main(argv: Sequence[str]) -> int:
    options = parse(argv)
    sampling = SamplingOptions(options.temperature, options.top_k, options.top_p)
    torch.set_num_threads(1)  # a step is too short to be split among threads
    model = load_language_model(options.model, select_device(options.device))
    decoder = getincrementaldecoder("utf-8")(errors="replace")
    sys.stdout.write(options.prompt)
    random = torch.Generator().manual_seed(options.seed)
    for byte in generate(model, options.prompt.encode(errors="replace"), options.length, sampling, random):
        sys.stdout.write(decoder.decode(bytes([byte])))
        sys.stdout.flush()
    print(decoder.decode(b"", final=True))
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("generate", __doc__)
    parser.add_argument("model", type=Path, metavar="DIR", help="folder of a language model")
    add = parser.common.add_argument
    add("--prompt", default="", metavar="TEXT", help="beginning of the text (default: none)")
    add("--length", type=count, default=300, metavar="N", help="number of bytes to write (default: %(default)s)")
    add("--temperature", type=float, default=0.8, metavar="X", help="below 1: probable bytes more often (%(default)s)")
    add("--top-k", type=int, default=0, metavar="N", help="draw among the N most probable bytes (default: all)")
    add("--top-p", type=float, default=1.0, metavar="X", help="draw among the most probable bytes of X in total")
    add("--seed", type=int, default=1, metavar="N", help="equal seeds give equal texts (default: %(default)s)")
    parser.add_device()
    return parser.parse_args(argv)
