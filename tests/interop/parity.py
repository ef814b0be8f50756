"""A model of transformers and its import, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from mt.checkpoint import LoadedModel
from mt.decoding.options import SearchOptions
from mt.decoding.scorer import ModelScorer
from mt.errors import ModelError
from mt.interop.importer import import_model
from mt.interop.origin import ImportOptions
from mt.scoring.pairs import score_targets
from mt.tokenizer import BOS, EOS, UNK
from tests.decoding.reference import decode

BEAMS = 4
TIE = 1e-4  # two scores so close are equal


@dataclass(frozen=True)
class Pair:
    """`source_ids` and `target_ids` are theirs of each of our ids from EOS on; those before stand for nothing."""

    theirs: Any
    ours: LoadedModel
    source_ids: Sequence[int]
    target_ids: Sequence[int]

    def asked(self, source: Sequence[int]) -> list[int]:
        return [self.source_ids[id] for id in source]

    def log_probabilities(self, source: Sequence[int], target: Sequence[int]) -> Tensor:
        """Ours of our pieces from EOS on, after BOS and each token of the target."""
        ids = torch.tensor([source])
        with torch.inference_mode():
            logits = self.ours.model(ids, ids > 0, torch.tensor([[BOS, *target]]))
        return logits.log_softmax(-1)[0, :, EOS:]

    def assert_equal(
        self, source: Sequence[int], target: Sequence[int], rounding: float = 1e-5, probabilities: bool = False
    ) -> None:
        """Assert that the encoder outputs and the logits of our pieces from EOS on differ by rounding only.

        `probabilities` compares the log-probabilities of these pieces, too, in float32 sums of another order.
        """
        begun = [self.theirs.config.decoder_start_token_id, *(self.target_ids[id] for id in target)]
        with torch.inference_mode():
            mine = torch.tensor([source])
            memory = self.ours.model.encode(mine, mine > 0)
            logits = self.ours.model(mine, mine > 0, torch.tensor([[BOS, *target]]))[..., EOS:]
            asked = torch.tensor([self.asked(source)])
            expected = self.theirs(input_ids=asked, decoder_input_ids=torch.tensor([begun]))
        pieces = list(self.target_ids[EOS:])
        assert_close(memory, expected.encoder_last_hidden_state, atol=rounding, rtol=0)
        assert_close(logits, expected.logits[..., pieces], atol=rounding, rtol=1e-5)
        if probabilities:
            whole = expected.logits.log_softmax(-1)[0, :, pieces]
            assert_close(self.log_probabilities(source, target), whole, atol=1e-4, rtol=1e-5)

    def assert_equal_beams(
        self, sources: Sequence[Sequence[int]], longest: int, ngram: int, translations: int, prefix: Sequence[int] = ()
    ) -> None:
        """Assert that both searches with 4 beams find translations of equal scores, and enough different ones.

        Both stop by the same rule: K hypotheses, and nothing alive scores better. No `ngram` tokens come twice, for
        random models go in circles. What reaches the longest length is left out: we end it, and they do not. `prefix`
        has at most one token.
        """
        limits: dict[str, Any] = {"max_length_factor": 0, "max_length_offset": longest, "no_repeat_ngram": ngram}
        options = SearchOptions(beam_size=BEAMS, n_best=BEAMS, **limits)
        scorer = ModelScorer(self.ours.model)
        mine = [found[0].tokens for found in decode(scorer, sources, options, [prefix] * len(sources))]
        theirs = self._generate(sources, longest, ngram, prefix)
        ended = [number for number, tokens in enumerate(theirs) if len(tokens) < longest - 1]
        assert len({theirs[number] for number in ended}) > translations
        differ = [number for number in ended if mine[number] != theirs[number]]
        scores = [
            [
                sum(pair.token_log_probabilities[len(prefix) :]) / len(pair.token_log_probabilities)
                for pair in score_targets(scorer, [sources[n] for n in differ], [side[n] for n in differ])
            ]
            for side in (mine, theirs)
        ]
        assert scores[0] == pytest.approx(scores[1], abs=TIE)

    def _generate(
        self, sources: Sequence[Sequence[int]], longest: int, ngram: int, prefix: Sequence[int] = ()
    ) -> list[tuple[int, ...]]:
        config = self.theirs.config
        rows = [torch.tensor(self.asked(source)) for source in sources]
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=config.pad_token_id)
        lengths = torch.tensor([len(row) for row in rows])
        found = self.theirs.generate(
            padded,
            attention_mask=(torch.arange(padded.shape[1]) < lengths[:, None]).long(),
            num_beams=BEAMS,
            length_penalty=1.0,
            early_stopping=False,
            do_sample=False,
            max_new_tokens=longest,
            no_repeat_ngram_size=ngram,
            suppress_tokens=[config.pad_token_id, self.target_ids[UNK]],
            forced_bos_token_id=self.target_ids[prefix[0]] if prefix else None,
        )
        our_id = {theirs: ours for ours, theirs in enumerate(self.target_ids) if ours >= EOS}
        lines = [[our_id[id] for id in line if id in our_id] for line in found[:, 1:].tolist()]
        return [tuple(line[: line.index(EOS)] if EOS in line else line) for line in lines]


def loaded_pair(theirs: Any, ours: LoadedModel, vocabularies: Sequence[dict[str, int]]) -> Pair:
    source, target = (
        [vocabulary.get(piece, -1) for piece in side.pieces(range(len(side)))]
        for side, vocabulary in ((ours.tokenizer, vocabularies[0]), (ours.tokenizer.target, vocabularies[-1]))
    )
    return Pair(theirs, ours, source, target)


def refusal(source: Path | str, out: Path, directions: Sequence[str] = (), **options: Any) -> str:
    with pytest.raises(ModelError) as caught:
        import_model(str(source), out, directions, ImportOptions(**options))
    assert not out.exists()
    return str(caught.value)


def card(folder: Path) -> str:
    return (folder / "README.md").read_text(encoding="utf-8")
