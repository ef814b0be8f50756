"""Beam search for translations that must hold some words and must not hold others, however these are spelt in ids.

Beams are shared out among hypotheses by how many of the words they have, as in Post and Vilar 2018 ("Fast Lexically
Constrained Decoding with Dynamic Beam Allocation for Neural Machine Translation"), section 3. Two things differ. A word
is an automaton rather than a list of ids, so that the model chooses among its forms. And what a model never says, it
holds improbable everywhere: where such a word belongs is read from the probability of the word that it displaces.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mt.decoding.beam import BeamSearch
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.rows import Hypothesis, SentenceTable
from mt.decoding.scores import best

MUCH = 10_000  # more often than any word comes
LEAST_CUE = -12.0
"""The log-probability of a place for a word is at least this."""

ENOUGH = 5
"""Where more beams are only there to be shared out: a hypothesis that ends is one of so many of the best that have all
words, and so many are reason to stop if nothing promises better."""
LENT = -2.0
"""What is added to a log-probability that is another beam's."""


@dataclass(frozen=True, eq=False)
class Wording:
    """What a translation must and must not hold: A automata over N nodes and M columns, into which ids are grouped.

    Node 0 and column 0 are padding, and so is id 0 in a table of ids. A word is complete in a `full` node, and counts
    when what follows says that it ends there.
    """

    columns: npt.NDArray[np.int16]  # [V] of each id
    following: npt.NDArray[np.int32]  # [N, M] nodes
    counts: npt.NDArray[np.bool_]  # [N, M] whether a word has come to its end with this
    proposals: npt.NDArray[np.int32]  # [N, P] ids that go on with a word as it is usually spelt
    completions: npt.NDArray[np.int32]  # [N, F] ids that would complete a word
    full: npt.NDArray[np.bool_]  # [N]
    begins: npt.NDArray[np.int32]  # [A, P] ids that a word begins with as it is usually spelt
    costs: npt.NDArray[np.float32]  # [A, P] what is added to their log-probabilities
    cues: npt.NDArray[np.int32]  # [A, E] ids that the words which it displaces begin with
    starts: tuple[int, ...]  # [A] nodes: after a mark; the next one is inside of another word
    needed: tuple[int, ...]  # [A] times that a word must come
    allowed: tuple[int, ...]  # [A] times that it may come
    endings: tuple[float, ...]  # [A] what is added to the log-probability of going on where the word is complete
    patience: int = MUCH  # steps after which no hypothesis that lacks a word is waited for, if there is one with all


@dataclass
class WordedSearch(SentenceTable):
    """BeamSearch with a wording for each sentence; hypotheses that lack a word cannot end.

    The candidates of a step are the best continuations of each beam, and from each beam those that begin a word that it
    lacks; one that has begun so goes on with it until it is complete. They are grouped by how many of the words they
    hold, and whether one is under way; the best of each group come first, then the second best of each, until there are
    K.

    The log-probability of a word that was begun because it must come is made of three. That of its place: of the words
    that it displaces, its `cues`, here, or, less, in a beam that two steps ago was the same, for what stands before a
    word may have to agree with it. That of its form, among all its forms. And of how well it agrees: its probability
    here, compared with that in the best of such beams.
    """

    beam: BeamSearch
    columns: Tensor  # int16 [B, V]
    following: Tensor  # [B, N, M]
    counts: Tensor  # bool [B, N, M]
    proposals: Tensor  # [B, N, P]
    completions: Tensor  # [B, N, F]
    full: Tensor  # bool [B, N]
    begins: Tensor  # [B, A, P]
    costs: Tensor  # [B, A, P]
    cues: Tensor  # [B, A, E]
    starts: Tensor  # [B, A]
    needed: Tensor  # [B, A]
    allowed: Tensor  # [B, A]
    endings: Tensor  # [B, A]
    patience: Tensor  # [B]
    nodes: Tensor  # [B, K, A]
    met: Tensor  # [B, K, A] times that a word has come
    word: Tensor  # [B, K] the automaton whose word is under way, or -1
    parents: Tensor  # [B, K] the beam that each was, a step ago
    grandparents: Tensor  # [B, K] two steps ago

    @classmethod
    def start(
        cls,
        source_lengths: Sequence[int],
        options: Sequence[SearchOptions],
        wordings: Sequence[Wording],
        special: SpecialIds,
        device: torch.device,
    ) -> Self:
        """Sentences before their first step, all with one beam size."""
        beams = options[0].beam_size
        beam = BeamSearch.start(source_lengths, options, [()] * len(options), special, device)
        starts = _stacked([np.asarray(wording.starts) for wording in wordings], device)
        nodes = starts[:, None].expand(-1, beams, -1)
        none = torch.zeros((len(options), beams), dtype=torch.int64, device=device)
        return cls(
            beam=beam,
            columns=_stacked([wording.columns for wording in wordings], device).to(torch.int16),
            following=_stacked([wording.following for wording in wordings], device),
            counts=_stacked([wording.counts for wording in wordings], device).bool(),
            proposals=_stacked([wording.proposals for wording in wordings], device),
            completions=_stacked([wording.completions for wording in wordings], device),
            full=_stacked([wording.full for wording in wordings], device).bool(),
            begins=_stacked([wording.begins for wording in wordings], device),
            costs=_stacked([wording.costs for wording in wordings], device, torch.float32),
            cues=_stacked([wording.cues for wording in wordings], device),
            starts=starts,
            needed=_stacked([np.asarray(wording.needed) for wording in wordings], device),
            allowed=_stacked([np.asarray(wording.allowed) for wording in wordings], device),
            endings=_stacked([np.asarray(wording.endings) for wording in wordings], device, torch.float32),
            patience=torch.tensor([wording.patience for wording in wordings], device=device),
            nodes=nodes.clone(),
            met=torch.zeros_like(nodes),
            word=none - 1,
            parents=none,
            grandparents=none.clone(),
        )

    @property
    def tokens(self) -> Tensor:
        return self.beam.tokens

    @property
    def finished(self) -> Tensor:
        return self.beam.finished

    @property
    def failed(self) -> Tensor:
        return self.beam.failed

    def results(self, sentences: Sequence[int]) -> list[list[Hypothesis]]:
        """As BeamSearch.results; two beams may have come to the same translation, of which the better one counts."""
        each = self.beam.best_of(sentences, torch.full_like(self.beam.steps, self.word.shape[1]))
        wanted = (self.beam.nth[sentences, 0] + 1).tolist()
        distinct = ({hypothesis.tokens: hypothesis for hypothesis in reversed(found)} for found in each)
        return [
            [hypothesis for hypothesis in found if unique[hypothesis.tokens] is hypothesis][:count]
            for found, unique, count in zip(each, distinct, wanted, strict=True)
        ]

    def advance(self, logits: Tensor) -> Tensor | None:
        beams = self.word.shape[1]
        log_probs, ends = self.beam.scores(logits)
        places = self._places(log_probs)
        written = self.met + _at(self.full, self.nodes)
        self._forbid(log_probs, written)
        ids, values, word = self._candidates(log_probs, places, written)  # [B, K, Q]
        nodes, met = self._after(ids)  # [B, K, Q, A]
        complete = _at(self.full, nodes).gather(3, word.clamp(min=0)[..., None])[..., 0] & (word >= 0)
        word = word.masked_fill(complete, -1)
        values = values.masked_fill(_doubled(ids, values, complete, min(beams, logits.shape[1])), -torch.inf)
        totals = values + self._changes(nodes, met) + self.beam.alive_totals[:, :, None]
        groups = self._groups(nodes, met, word).flatten(1)
        ranks = totals.flatten(1)
        chosen = _shared_out(ranks, groups, beams)  # [B, K]

        ends = ends.masked_fill(~(written >= self.needed[:, None]).all(2), -torch.inf)
        fellows = ranks.masked_fill(groups < _top(beams), -torch.inf)
        enough = self.beam.nth.clamp(min=min(beams, ENOUGH) - 1)
        outranked = ends < torch.cat((fellows, ends), 1).topk(beams).values.gather(1, enough)
        ends = ends.masked_fill(outranked & (self.beam.steps < self.beam.constraints.last)[:, None], -torch.inf)

        each, parents = chosen[:, :, None].expand(-1, -1, self.nodes.shape[2]), chosen // ids.shape[2]
        self.nodes.copy_(nodes.flatten(1, 2).gather(1, each))
        self.met.copy_(met.flatten(1, 2).gather(1, each))
        self.word.copy_(word.flatten(1).gather(1, chosen))
        self.grandparents.copy_(self.parents.gather(1, parents))
        self.parents.copy_(parents)
        alive = ranks.gather(1, chosen)
        late = (self.beam.steps >= self.patience) & (self.beam.pool[:, 0] > -torch.inf)
        hopeless = late[:, None] & (groups.gather(1, chosen) < _top(beams))
        leading = alive.masked_fill(hopeless, -torch.inf)
        return self.beam.go_on(alive, parents, ids.flatten(1).gather(1, chosen), ends, leading, enough)

    def _places(self, log_probs: Tensor) -> Tensor:
        """The log-probability [B, K, A] that here is the place for each word, and that it agrees with what is there."""
        cued = (self.cues > 0).any(2)[:, None]
        here, said = self._any_of(log_probs, self.cues), self._any_of(log_probs, self.begins)
        kin = (self.grandparents[:, :, None] == self.grandparents[:, None]) & (self.word < 0)[:, None]  # [B, K, K]
        near = here[:, None].masked_fill(~kin[..., None], -torch.inf).amax(2)
        place = here.maximum(near + LENT).clamp(min=LEAST_CUE)
        joint = (self.beam.alive_totals[..., None] + place + said)[:, None].masked_fill(~kin[..., None], -torch.inf)
        best_said = said.gather(1, joint.argmax(2))
        agreement = (said - best_said).nan_to_num(nan=0.0).clamp(min=LEAST_CUE, max=0)
        return torch.where(cued, place + agreement, said.clamp(min=LEAST_CUE))

    def _any_of(self, log_probs: Tensor, ids: Tensor) -> Tensor:
        """The log-probabilities [B, K, A] that one of the ids [B, A, N] comes."""
        batch, beams, automata = self.nodes.shape
        wanted = ids.flatten(1)[:, None].expand(-1, beams, -1).flatten(0, 1)
        return log_probs.gather(1, wanted).view(batch, beams, automata, -1).logsumexp(3)

    def _forbid(self, log_probs: Tensor, written: Tensor) -> None:
        """-inf for the ids that would complete a word which must not come again."""
        spent = written >= self.allowed[:, None]  # [B, K, A]
        ids = _at(self.completions, self.nodes) * spent[..., None]  # those of padding have -inf already
        log_probs.scatter_(1, ids.view(log_probs.shape[0], -1), -torch.inf)

    def _candidates(self, log_probs: Tensor, places: Tensor, written: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Ids and log-probabilities [B, K, Q]: the best continuations; words that are lacking; the rest of such a word.

        With each comes the automaton whose word is then under way, or -1.
        """
        batch, beams, automata = self.nodes.shape
        values, ids = best(log_probs, min(beams, log_probs.shape[1]))
        free = self.word < 0
        shape = (batch, beams, -1)
        values = values.view(shape).masked_fill(~free[:, :, None], -torch.inf)

        begins = self.begins[:, None].expand(-1, beams, -1, -1)  # [B, K, A, P]
        said = log_probs.gather(1, begins.flatten(2).flatten(0, 1)).view(begins.shape)
        form = said - said.logsumexp(3, keepdim=True) + self.costs[:, None]
        lacking = free[:, :, None] & (written < self.needed[:, None])
        openings = (form + places[..., None]).masked_fill(~lacking[..., None] | (said == -torch.inf), -torch.inf)

        under_way = self.nodes.gather(2, self.word.clamp(min=0)[:, :, None])[:, :, 0]
        onward = _at(self.proposals, under_way) * ~free[:, :, None]  # [B, K, P]
        said = log_probs.gather(1, onward.flatten(0, 1)).view(onward.shape)
        whole = said.logsumexp(2)
        alike = under_way[:, :, None] == under_way[:, None]
        whole = whole[:, None].masked_fill(~(alike & ~free[:, None]), -torch.inf).amax(2)
        steps = (said - whole[:, :, None]).masked_fill(said == -torch.inf, -torch.inf)

        word = torch.arange(automata, device=ids.device).view(1, 1, -1, 1).expand(begins.shape).flatten(2)
        return (
            torch.cat((ids.view(shape), begins.flatten(2), onward), 2),
            torch.cat((values, openings.flatten(2), steps), 2),
            torch.cat((torch.full_like(ids, -1).view(shape), word, self.word[:, :, None].expand_as(onward)), 2),
        )

    def _after(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Nodes and counts [B, K, Q, A] once these ids [B, K, Q] have been written."""
        columns = self.columns.gather(1, tokens.flatten(1)).view(*tokens.shape, 1).long()
        places = self.nodes[:, :, None, :] * self.following.shape[2] + columns
        nodes = self.following.flatten(1).gather(1, places.flatten(1)).view(places.shape)
        counted = self.counts.flatten(1).gather(1, places.flatten(1)).view(places.shape)
        return nodes, self.met[:, :, None, :] + counted

    def _changes(self, nodes: Tensor, met: Tensor) -> Tensor:
        """What is added [B, K, Q] where a complete word that is needed goes on: -inf if it becomes another word."""
        complete = _at(self.full, self.nodes) & (self.met < self.needed[:, None])  # [B, K, A]
        goes_on = complete[:, :, None] & (met == self.met[:, :, None])
        leaves = (nodes <= self.starts[:, None, None] + 1) & goes_on
        ending = torch.where(goes_on, self.endings[:, None, None], 0.0).sum(3)
        return ending.masked_fill(leaves.any(3), -torch.inf)

    def _groups(self, nodes: Tensor, met: Tensor, word: Tensor) -> Tensor:
        """By how many words are written, and whether one is under way, [B, K, Q]; two beams or more for each group."""
        written = (met + _at(self.full, nodes)).minimum(self.needed[:, None, None]).sum(3)
        done = 2 * written + (word >= 0)
        whole = 2 * self.needed.sum(1)[:, None, None]
        most = _top(self.nodes.shape[1])
        return torch.where(whole > most, done * most // whole.clamp(min=1), done + (most - whole))


def _doubled(ids: Tensor, values: Tensor, complete: Tensor, own: int) -> Tensor:
    """Which candidates [B, K, Q] write a whole word that another, a more probable one, writes, too.

    The `own` first ones of each beam are those that write it of themselves.
    """
    same = (ids[:, :, :own, None] == ids[:, :, None]) & complete[:, :, None]
    worse = values[:, :, :own, None] < values[:, :, None]
    first = (same & worse).any(3)
    return torch.cat((first, ((same & ~worse).any(2))[:, :, own:]), 2)


def _at(table: Tensor, nodes: Tensor) -> Tensor:
    """What a table [B, N, ...] says of nodes [B, ...]."""
    batch = torch.arange(nodes.shape[0], device=nodes.device).view(-1, *[1] * (nodes.dim() - 1))
    return table[batch, nodes]


def _top(beams: int) -> int:
    """The group of those that have all words."""
    return beams // 2


def _shared_out(totals: Tensor, groups: Tensor, beams: int) -> Tensor:
    """Places [B, K] of candidates [B, Q]: the best of each group, then the second best of each, and so on."""
    batch, width = totals.shape
    dead = _top(beams) + 1
    groups = torch.where(totals == -torch.inf, dead, groups)
    order = totals.argsort(stable=True, dim=1, descending=True)
    order = order.gather(1, groups.gather(1, order).argsort(stable=True, dim=1))
    groups = groups.gather(1, order)
    ranks = torch.arange(width, device=totals.device).expand(batch, -1) - torch.searchsorted(groups, groups)
    keys = torch.where(groups == dead, width, ranks) * (dead + 1) + dead - groups
    return order.gather(1, keys.topk(beams, 1, largest=False).indices)


def _stacked(arrays: Sequence[npt.NDArray[Any]], device: torch.device, dtype: torch.dtype = torch.int64) -> Tensor:
    """[B, ...], padded with zeros."""
    shape = [len(arrays), *(max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True))]
    found = np.zeros(shape, dtype=np.float32 if dtype is torch.float32 else np.int64)
    for number, array in enumerate(arrays):
        found[number][tuple(slice(size) for size in array.shape)] = array
    return torch.from_numpy(found).to(device)
