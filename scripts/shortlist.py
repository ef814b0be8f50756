"""Make a model's shortlist: which tokens may come out of a sentence, learnt from the training text of a recipe.

    python scripts/shortlist.py runs/multi30k-en-de/model scripts/recipes/multi30k-en-de.toml
    python scripts/translate.py runs/multi30k-en-de/model news.en --shortlist

It is written into the model directory as shortlist.safetensors, and used where it is asked for. A smaller one is faster
and may cost quality: scripts/evaluate.py with --shortlist and without says how much.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import batched
from pathlib import Path

import numpy as np
from prepare import RUNS, prepare_with_progress
from rich.console import Console
from rich.progress import Progress

from mt.checkpoint import LoadedModel, load_model, save_shortlist
from mt.config import Recipe, load_recipe
from mt.data.dataset import ParallelDataset, Prepared
from mt.data.lexicon import Flat, Lexicon, Sequences, learn_lexicon
