"""Comparison of int8 with float32 for a model that has no calibration text, such as an imported one."""

import torch

from mt.checkpoint import CalibrationPair, Int8Check, LoadedModel
from mt.data.check_sentences import check_sentences
from mt.engine.backends.calibration import divergence
from mt.engine.backends.cpu import CompiledScorer, compile_model

MAX_DIRECTIONS = 8
MAX_SENTENCES = 64


@torch.inference_mode()
def measure_int8(loaded: LoadedModel) -> Int8Check:
    """Compare int8 with float32 in the compiled kernels, which must be available.

    At most `MAX_SENTENCES` sentences are translated, in at most `MAX_DIRECTIONS` of the model's directions.
    """
    directions = sorted(loaded.description.directions, key=str)
    directions = directions[:: -(-len(directions) // MAX_DIRECTIONS)]
    pieces = loaded.tokenizer.pieces(range(len(loaded.tokenizer)))
    share = MAX_SENTENCES // len(directions)
    pairs = [
        CalibrationPair(direction=direction, source=sentence, target="")
        for direction in directions
        for sentence in check_sentences(direction.source, pieces)[:share]
    ]
    exact, rounded = (CompiledScorer(compile_model(loaded, int8)) for int8 in (False, True))
    return divergence(exact, rounded, loaded, pairs)
