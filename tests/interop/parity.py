"""A model of transformers and its import, side by side."""

import json
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

    def outputs(self, source: Sequence[int], target: Sequence[int]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Encoder output and logits, ours and theirs, of one pair; logits of our pieces from EOS on."""
        begun = [self.theirs.config.decoder_start_token_id, *(self.target_ids[id] for id in target)]
        with torch.inference_mode():
            mine = torch.tensor([source])
            memory = self.ours.model.encode(mine, mine > 0)
            logits = self.ours.model(mine, mine > 0, torch.tensor([[BOS, *target]]))
            expected = self.theirs(
                input_ids=torch.tensor([self.asked(source)]), decoder_input_ids=torch.tensor([begun])
            )
        return (
            memory,
            expected.encoder_last_hidden_state,
            logits[..., EOS:],
            expected.logits[..., list(self.target_ids[EOS:])],
        )

    def probabilities(self, source: Sequence[int], target: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Log-probabilities of our pieces from EOS on, ours and theirs, as a search has them."""
        begun = [self.theirs.config.decoder_start_token_id, *(self.target_ids[id] for id in target)]
        with torch.inference_mode():
            asked = torch.tensor([self.asked(source)])
            whole = self.theirs(input_ids=asked, decoder_input_ids=torch.tensor([begun])).logits.log_softmax(-1)
            ids = torch.tensor([source])
            own = self.ours.model(ids, ids > 0, torch.tensor([[BOS, *target]])).log_softmax(-1)
        return own[..., EOS:], whole[..., list(self.target_ids[EOS:])]

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
            expected = self.theirs(
                input_ids=torch.tensor([self.asked(source)]), decoder_input_ids=torch.tensor([begun])
            )
        pieces = list(self.target_ids[EOS:])
        assert_close(memory, expected.encoder_last_hidden_state, atol=rounding, rtol=0)
        assert_close(logits, expected.logits[..., pieces], atol=rounding, rtol=1e-5)
        if probabilities:
            whole = expected.logits.log_softmax(-1)[0, :, pieces]
            assert_close(self.log_probabilities(source, target), whole, atol=1e-4, rtol=1e-5)

    def assert_equal_beams(
        self, sources: Sequence[Sequence[int]], longest: int, ngram: int, translations: int, prefix: Sequence[int] = ()
    ) -> None:
        """Assert that both searches find translations of equal scores, and more than so many different ones."""
        found = self.beams(sources, longest, 1.0, ngram, prefix)
        assert found.translations > translations
        assert (found.better, found.worse) == (0, 0)

    def beams(
        self, sources: Sequence[Sequence[int]], longest: int, penalty: float, ngram: int = 0, prefix: Sequence[int] = ()
    ) -> "Beams":
        """Both searches with 4 beams, which stop by the same rule: K hypotheses, and nothing alive scores better.

        No `ngram` tokens come twice, for random models go in circles. What reaches the longest length is left out: we
        end it, and they do not. `prefix` has at most one token.
        """
        options = SearchOptions(
            beam_size=BEAMS,
            n_best=BEAMS,
            length_penalty=penalty,
            max_length_factor=0,
            max_length_offset=longest,
            no_repeat_ngram=ngram,
        )
        scorer = ModelScorer(self.ours.model)
        mine = [found[0].tokens for found in decode(scorer, sources, options, [prefix] * len(sources))]
        theirs = self._generate(sources, longest, penalty, ngram, prefix)
        ended = [number for number, tokens in enumerate(theirs) if len(tokens) < longest - 1]
        differ = [number for number in ended if mine[number] != theirs[number]]
        scores = [
            [
                sum(each.token_log_probabilities[len(prefix) :]) / len(each.token_log_probabilities) ** penalty
                for each in score_targets(scorer, [sources[n] for n in differ], [side[n] for n in differ])
            ]
            for side in (mine, theirs)
        ]
        gaps = [a - b for a, b in zip(*scores, strict=True)]
        return Beams(
            len(ended),
            len({theirs[number] for number in ended}),
            ties=sum(abs(gap) < TIE for gap in gaps),
            better=sum(gap >= TIE for gap in gaps),
            worse=sum(gap <= -TIE for gap in gaps),
        )

    def _generate(
        self, sources: Sequence[Sequence[int]], longest: int, penalty: float, ngram: int, prefix: Sequence[int] = ()
    ) -> list[tuple[int, ...]]:
        config = self.theirs.config
        rows = [torch.tensor(self.asked(source)) for source in sources]
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=config.pad_token_id)
        lengths = torch.tensor([len(row) for row in rows])
        found = self.theirs.generate(
            padded,
            attention_mask=(torch.arange(padded.shape[1]) < lengths[:, None]).long(),
            num_beams=BEAMS,
            length_penalty=penalty,
            early_stopping=False,
            do_sample=False,
            max_new_tokens=longest,
            no_repeat_ngram_size=ngram,
            suppress_tokens=[config.pad_token_id, self.unknown],
            forced_bos_token_id=self.target_ids[prefix[0]] if prefix else None,
        )
        our_id = {theirs: ours for ours, theirs in enumerate(self.target_ids) if ours >= EOS}
        lines = [[our_id[id] for id in line if id in our_id] for line in found[:, 1:].tolist()]
        return [tuple(line[: line.index(EOS)] if EOS in line else line) for line in lines]

    @property
    def unknown(self) -> int:
        return self.target_ids[UNK]


@dataclass(frozen=True)
class Beams:
    """Of so many sentences: those that differ, by the score that our model gives ours and theirs."""

    sentences: int
    translations: int  # different ones
    ties: int
    better: int
    worse: int


def their_ids(vocabulary: dict[str, int], pieces: Sequence[str]) -> list[int]:
    """Their id of each of our pieces; -1 for what stands for nothing."""
    return [vocabulary.get(piece, -1) for piece in pieces]


def loaded_pair(theirs: Any, ours: LoadedModel, vocabularies: Sequence[dict[str, int]]) -> Pair:
    source, target = ours.tokenizer, ours.tokenizer.target
    return Pair(
        theirs,
        ours,
        their_ids(vocabularies[0], source.pieces(range(len(source)))),
        their_ids(vocabularies[-1], target.pieces(range(len(target)))),
    )


def refusal(source: Path | str, out: Path, directions: Sequence[str] = (), **options: Any) -> str:
    """The error of an import, after which nothing is written."""
    with pytest.raises(ModelError) as caught:
        import_model(str(source), out, directions, ImportOptions(**options))
    assert not out.exists()
    return str(caught.value)


def edit_json(path: Path, **changes: Any) -> None:
    values = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**values, **changes}), encoding="utf-8")


def card(folder: Path) -> str:
    return (folder / "README.md").read_text(encoding="utf-8")
