"""Batches for the generation of transformers, with a model that records its inputs."""

from typing import Any

import pytest
import torch

from mt.cli.benchmarks.harness import Batching, PeerSearch

pytest.importorskip("transformers")

from mt.cli.benchmarks.peer_transformers import MarianPeer

PAD = 9


class RecordingModel:
    """A model that returns its input."""

    device = "cpu"

    class config:
        pad_token_id = PAD

    def generate(self, **arguments: Any) -> torch.Tensor:
        self.arguments = arguments
        return torch.as_tensor(arguments["input_ids"])


def test_padding_is_masked() -> None:
    peer, model = MarianPeer.__new__(MarianPeer), RecordingModel()
    peer._model, peer._special = model, {PAD}
    assert peer.translate([[5, 3], [4, 5, 6, 3]], PeerSearch(2, Batching(2))) == [[5, 3], [4, 5, 6, 3]]
    assert model.arguments["input_ids"].tolist() == [[4, 5, 6, 3], [5, 3, PAD, PAD]]
    assert model.arguments["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
